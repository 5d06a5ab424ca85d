// What the files of the stream family share: streams.cc (entries), streams_read.cc (XREAD and
// XREADGROUP), streams_groups.cc and streams_claim.cc (consumer groups), streams_info.cc (XINFO).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "commands/context.h"
#include "commands/find_object.h"
#include "types/collections/stream.h"

namespace sava::commands {

inline constexpr std::string_view kBadStreamId =
    "ERR Invalid stream ID specified as stream command argument";

// "ms-seq" or "ms", which takes `missing_seq`; with `special` also "-" and "+", the least and the
// greatest id; with seq_given also "ms-*", for which it becomes false.
bool ParseStreamId(std::string_view text, uint64_t missing_seq, bool special, types::StreamId* id,
                   bool* seq_given = nullptr);
// The same of an argument that is a plain id; replies the error and returns false when it is none.
bool StreamIdArg(Context& context, size_t i, types::StreamId* id);
// The ends of an interval; "(" before an id leaves it out. The error is replied.
bool IntervalStartArg(Context& context, size_t i, types::StreamId* id);
bool IntervalEndArg(Context& context, size_t i, types::StreamId* id);

inline void ReplyStreamId(Context& context, const types::StreamId& id) {
  context.reply().Bulk(id.Text());
}
// [id, [field, value, …]].
void ReplyEntry(Context& context, const types::StreamEntry& entry);
// The entry with that id; false, without a reply, when there is none.
bool ReplyEntryAt(Context& context, const types::Stream& stream, const types::StreamId& id);

// "ERR unknown subcommand or wrong number of arguments for …".
void SubcommandSyntaxError(Context& context);

// "NOGROUP No such key … or consumer group …" with what `suffix` adds.
void NoGroupError(Context& context, std::string_view key, std::string_view group,
                  std::string_view suffix = {});

// What a delivery is in the log: it makes the same entry pending wherever it is replayed.
void LogClaim(Context& context, std::string_view key, std::string_view group_name,
              const types::StreamGroup& group, const types::PendingEntry& entry);
// What a group has read up to, in the log.
void LogGroupId(Context& context, std::string_view key, std::string_view group_name,
                const types::StreamGroup& group);
// A new consumer, in the log. Not needed for one that got an entry: LogClaim makes it too.
void LogConsumer(Context& context, std::string_view key, std::string_view group_name,
                 const types::StreamConsumer& consumer);
// The consumer of that name, made when there is none (*created). It has been seen.
types::StreamConsumer& SeenConsumer(Context& context, std::string_view key,
                                    types::StreamGroup& group, std::string_view name,
                                    bool* created);

}  // namespace sava::commands
