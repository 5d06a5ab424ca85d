// XREAD and XREADGROUP. Who waits is run again when one of its streams changed; a `$` has by then
// become the id that was the last when it began to wait. Deliveries to a group are logged as the
// XCLAIMs that make them pending, and the XGROUP SETID that says how far the group has read.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "commands/blocking.h"
#include "commands/redis/families.h"
#include "commands/redis/streams.h"
#include "commands/registry.h"

namespace sava::commands {

namespace {

using types::PendingEntry;
using types::PendingId;
using types::Stream;
using types::StreamConsumer;
using types::StreamEntry;
using types::StreamGroup;
using types::StreamId;

struct ReadOptions {
  bool in_group = false;  // XREADGROUP
  bool blocks = false;
  int64_t deadline_ms = 0;
  int64_t count = 0;  // 0: all
  bool no_ack = false;
  std::optional<std::string_view> group;
  std::string_view consumer;
  size_t first_key = 0;
  size_t streams = 0;
};

// The streams and what is asked of each.
struct ReadFrom {
  enum class What : uint8_t { kAfter, kNew, kHistory } what = What::kAfter;
  StreamId after;
  Stream* stream = nullptr;
  StreamGroup* group = nullptr;
  bool passed_over = false;  // runs again for another key
};

// STREAMS at argument i and what follows. The error is replied.
bool ParseStreams(Context& context, size_t i, ReadOptions* options) {
  options->first_key = i + 1;
  const size_t words = context.argc() - options->first_key;
  options->streams = words / 2;
  if (words % 2 == 0) return true;
  context.Error(options->in_group
                    ? "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or "
                      "'>' must be specified."
                    : "ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' "
                      "must be specified.");
  return false;
}

bool OnlyForGroups(Context& context, const ReadOptions& options, std::string_view option) {
  if (options.in_group) return true;
  context.Error("ERR The " + std::string(option) +
                " option is only supported by XREADGROUP. You called XREAD instead.");
  return false;
}

bool ParseRead(Context& context, ReadOptions* options) {
  for (size_t i = 1; i < context.argc() && options->first_key == 0; ++i) {
    const size_t more = context.argc() - i - 1;
    if (more >= 1 && context.ArgIs(i, "block")) {
      if (!TimeoutMillis(context, ++i, &options->deadline_ms)) return false;
      if (context.in_script()) {
        context.Error(fmt::format("ERR {} command is not allowed with BLOCK option from scripts",
                                  context.arg(0)));
        return false;
      }
      options->blocks = true;
    } else if (more >= 1 && context.ArgIs(i, "count")) {
      if (!context.IntArg(++i, &options->count)) return false;
      if (options->count < 0) options->count = 0;
    } else if (more >= 1 && context.ArgIs(i, "streams")) {
      if (!ParseStreams(context, i, options)) return false;
    } else if (more >= 2 && context.ArgIs(i, "group")) {
      if (!OnlyForGroups(context, *options, "GROUP")) return false;
      options->group = context.arg(i + 1);
      options->consumer = context.arg(i + 2);
      i += 2;
    } else if (context.ArgIs(i, "noack")) {
      if (!OnlyForGroups(context, *options, "NOACK")) return false;
      options->no_ack = true;
    } else {
      context.Error(errors::kSyntax);
      return false;
    }
  }
  if (options->first_key == 0) {
    context.Error(errors::kSyntax);
    return false;
  }
  if (options->in_group && !options->group) {
    context.Error("ERR Missing GROUP option for XREADGROUP");
    return false;
  }
  return true;
}

bool Meaningless(Context& context, std::string_view id) {
  std::string text = "ERR The ";
  text.append(id).append(
      " ID is meaningless in the context of XREADGROUP: you want to read the history of this "
      "consumer by specifying a proper ID, or use the > ID to get new messages. The ");
  context.Error(text.append(id).append(" ID would just return an empty result set."));
  return false;
}

// What is asked of the stream, by its id at argument i. The error is replied.
bool ParseReadId(Context& context, size_t i, const ReadOptions& options, ReadFrom* from) {
  const std::string_view id = context.arg(i);
  if (id == "$") {
    if (options.in_group) return Meaningless(context, id);
    if (from->stream != nullptr) from->after = from->stream->last_id();
    return true;
  }
  if (id == "+") {
    if (options.in_group) return Meaningless(context, id);
    const auto last = from->stream == nullptr ? std::nullopt : from->stream->Last();
    if (last) {
      from->after = *last;
      from->after.Decrement();
    }
    return true;
  }
  if (id == ">") {
    if (options.in_group) {
      from->what = ReadFrom::What::kNew;
      return true;
    }
    context.Error(
        "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> "
        "<consumer> option.");
    return false;
  }
  if (options.in_group) from->what = ReadFrom::What::kHistory;
  return StreamIdArg(context, i, &from->after);
}

enum class Look : uint8_t { kGood, kAnswered, kWaitOn };

// Finds the stream of key number `n` and, if need be, its group.
Look LookAt(Context& context, size_t n, const ReadOptions& options, ReadFrom* from) {
  const std::string_view key = context.arg(options.first_key + n);
  const auto ready = context.ready_key();
  if (ready && *ready != key) {
    from->passed_over = true;
    return Look::kGood;
  }
  const Value value = context.Find(key, options.in_group ? Access::kWrite : Access::kRead);
  if (value) {
    from->stream = ObjectAs<Stream>(value);
    if (from->stream == nullptr) {
      if (ready && !options.in_group) return Look::kWaitOn;
      context.Error(errors::kWrongType);
      return Look::kAnswered;
    }
  }
  if (options.group) {
    from->group = from->stream == nullptr ? nullptr : from->stream->FindGroup(*options.group);
    if (from->group == nullptr) {
      NoGroupError(context, key, *options.group, " in XREADGROUP with GROUP option");
      return Look::kAnswered;
    }
  }
  return ParseReadId(context, options.first_key + options.streams + n, options, from)
             ? Look::kGood
             : Look::kAnswered;
}

// ---- answering ----

void ShowAfter(Context& context, const ReadOptions& options, const ReadFrom& from) {
  StreamId start = from.after;
  const size_t mark = context.reply().Mark();
  int64_t shown = 0;
  if (start.Increment()) {
    from.stream->Range(start, types::kGreatestStreamId, [&](const StreamEntry& entry) {
      ReplyEntry(context, entry);
      return ++shown != options.count;
    });
  }
  context.reply().ArrayAt(mark, shown);
}

// New entries for the consumer, pending from now on. How many changes were logged.
void Deliver(Context& context, std::string_view key, const ReadOptions& options,
             const ReadFrom& from, StreamConsumer& consumer) {
  StreamGroup& group = *from.group;
  StreamId start = group.last_id;
  const size_t mark = context.reply().Mark();
  int64_t shown = 0;
  start.Increment();
  from.stream->Range(start, types::kGreatestStreamId, [&](const StreamEntry& entry) {
    from.stream->Advance(group, entry.id);
    ReplyEntry(context, entry);
    if (!options.no_ack) {
      const PendingEntry pending{entry.id, context.now_ms(), 1, &consumer};
      group.Assign(pending);
      consumer.active_at = context.now_ms();
      LogClaim(context, key, *options.group, group, pending);
    }
    return ++shown != options.count;
  });
  context.reply().ArrayAt(mark, shown);
  if (shown == 0) return;
  LogGroupId(context, key, *options.group, group);
  context.Changed();
}

// What is pending for the consumer; an entry that is gone stands there without fields.
void ShowHistory(Context& context, const ReadOptions& options, const ReadFrom& from,
                 const StreamConsumer& consumer) {
  StreamId start = from.after;
  const size_t mark = context.reply().Mark();
  int64_t shown = 0;
  if (start.Increment()) {
    consumer.pending.ForEachFrom(start, [&](const PendingId& item) {
      if (ReplyEntryAt(context, *from.stream, item.id)) {
        PendingEntry* pending = from.group->EditPending(item.id);
        pending->delivered_at = context.now_ms();
        ++pending->deliveries;
      } else {
        context.reply().Array(2);
        ReplyStreamId(context, item.id);
        context.reply().NullArray();
      }
      return ++shown != options.count;
    });
  }
  context.reply().ArrayAt(mark, shown);
}

bool HasMore(const ReadFrom& from) {
  if (from.what == ReadFrom::What::kHistory) return true;
  const auto last = from.stream->Last();
  return last && *last > (from.group != nullptr ? from.group->last_id : from.after);
}

// True when the stream had something to show.
bool ReadOne(Context& context, size_t n, const ReadOptions& options, const ReadFrom& from) {
  const std::string_view key = context.arg(options.first_key + n);
  StreamConsumer* consumer = nullptr;
  const bool more = HasMore(from);
  if (from.group != nullptr) {
    bool created = false;
    consumer = &SeenConsumer(context, key, *from.group, options.consumer, &created);
    const bool gets = more && from.what == ReadFrom::What::kNew && !options.no_ack;
    if (created && !gets) LogConsumer(context, key, *options.group, *consumer);
  }
  if (!more) return false;
  if (context.reply().resp() == 2) context.reply().Array(2);
  context.reply().Bulk(key);
  if (from.what == ReadFrom::What::kHistory) {
    ShowHistory(context, options, from, *consumer);
  } else if (consumer != nullptr) {
    Deliver(context, key, options, from, *consumer);
  } else {
    ShowAfter(context, options, from);
  }
  return true;
}

// With every `$` as the id it is now.
void WaitForStreams(Context& context, const ReadOptions& options,
                    const std::vector<ReadFrom>& froms) {
  std::vector<std::string_view> words(context.args().begin(), context.args().end());
  std::vector<std::string> ids(options.streams);
  for (size_t n = 0; n < options.streams; ++n) {
    std::string_view& word = words[options.first_key + options.streams + n];
    if (word != "$") continue;
    ids[n] = froms[n].after.Text();
    word = ids[n];
  }
  Context::BlockRequest request;
  request.keys = context.args().subspan(options.first_key, options.streams);
  request.deadline_ms = options.deadline_ms;
  request.on_deletion = options.in_group;
  request.type = &Stream::Type();
  request.args = words;
  context.Block(request);
}

void Read(Context& context, bool in_group) {
  ReadOptions options;
  options.in_group = in_group;
  if (!ParseRead(context, &options)) return;
  if (in_group) context.NoEffect();
  std::vector<ReadFrom> froms(options.streams);
  bool waits_on = false;
  for (size_t n = 0; n < options.streams; ++n) {
    const Look look = LookAt(context, n, options, &froms[n]);
    if (look == Look::kAnswered) return;
    waits_on = waits_on || look == Look::kWaitOn;
  }
  const size_t mark = context.reply().Mark();
  int64_t shown = 0;
  for (size_t n = 0; n < options.streams && !waits_on; ++n) {
    if (froms[n].passed_over || froms[n].stream == nullptr) continue;
    if (ReadOne(context, n, options, froms[n])) ++shown;
  }
  if (shown > 0) {
    context.reply().resp() == 2 ? context.reply().ArrayAt(mark, shown)
                                : context.reply().MapAt(mark, shown);
  } else if (options.blocks && context.can_block()) {
    WaitForStreams(context, options, froms);
  } else {
    context.reply().NullArray();
  }
}

void Xread(Context& context) { Read(context, false); }
void Xreadgroup(Context& context) { Read(context, true); }

// The keys are the first half of what follows STREAMS. Wrong arguments have none: the handler says
// what is wrong with them.
bool FindReadKeys(Args args, std::vector<int>* indexes) {
  size_t i = 1;
  for (; i < args.size(); ++i) {
    if (base::EqualsNoCase(args[i], "block") || base::EqualsNoCase(args[i], "count")) {
      ++i;
    } else if (base::EqualsNoCase(args[i], "group")) {
      i += 2;
    } else if (!base::EqualsNoCase(args[i], "noack")) {
      break;
    }
  }
  if (i >= args.size() || !base::EqualsNoCase(args[i], "streams")) return true;
  const size_t words = args.size() - i - 1;
  if (words % 2 != 0) return true;
  for (size_t key = i + 1; key <= i + words / 2; ++key) indexes->push_back(static_cast<int>(key));
  return true;
}

constexpr KeySpec StreamsFrom(int16_t from) {
  return {.flags = kKeyRo | kKeyAccess,
          .last = -1,
          .limit = 2,
          .keyword = "STREAMS",
          .keyword_from = from};
}

const CommandSpec kReadRows[] = {
    {.name = "xread",
     .handler = Xread,
     .arity = -4,
     .flags = kReadonly | kBlocking,
     .acl = kAclStream,
     .keys = {StreamsFrom(1)},
     .find_keys = FindReadKeys,
     .group = "stream",
     .since = "5.0.0",
     .summary = "Gets the entries behind given ids of several streams, waiting for them if asked.",
     .complexity = "O(N) for each stream, where N is the number of entries returned",
     .arguments = "[COUNT count:integer] [BLOCK milliseconds:integer] STREAMS key [key ...] "
                  "id:string [id:string ...]",
     .reply = "for each stream with entries its key and them (a map in RESP3); null when there are "
              "none",
     .example = "XREAD COUNT 10 STREAMS readings 0"},
    {.name = "xreadgroup",
     .handler = Xreadgroup,
     .arity = -7,
     .flags = kWrite | kBlocking,
     .acl = kAclStream,
     .keys = {StreamsFrom(4)},
     .find_keys = FindReadKeys,
     .group = "stream",
     .since = "5.0.0",
     .summary = "Gets entries that no consumer of a group has had, or what is pending for one.",
     .complexity = "O(N) for each stream, where N is the number of entries returned",
     .arguments = "GROUP group:string consumer:string [COUNT count:integer] "
                  "[BLOCK milliseconds:integer] [NOACK] STREAMS key [key ...] id:string "
                  "[id:string ...]",
     .reply = "for each stream with entries its key and them (a map in RESP3); null when there are "
              "none",
     .example = "XREADGROUP GROUP archive worker-1 STREAMS readings >"},
};

}  // namespace

std::span<const CommandSpec> StreamReadCommands() { return kReadRows; }

}  // namespace sava::commands
