// XINFO: what a stream, its groups and their consumers are made of.
#include <algorithm>
#include <string>

#include "commands/help.h"
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

constexpr int64_t kShown = 10;  // of entries and pending ones, unless told

void Field(Context& context, std::string_view name, uint64_t value) {
  context.reply().Bulk(name);
  context.reply().Int(static_cast<int64_t>(value));
}

void IdField(Context& context, std::string_view name, const types::StreamId& id) {
  context.reply().Bulk(name);
  ReplyStreamId(context, id);
}

// Entries read and lag, which may be unknown.
void ProgressFields(Context& context, const Stream& stream, const StreamGroup& group) {
  protocol::Reply& reply = context.reply();
  reply.Bulk("entries-read");
  if (group.entries_read == StreamGroup::kUnknownRead) {
    reply.Null();
  } else {
    reply.Int(group.entries_read);
  }
  reply.Bulk("lag");
  const auto lag = stream.Lag(group);
  lag ? reply.Int(*lag) : reply.Null();
}

void StreamFields(Context& context, const Stream& stream) {
  Field(context, "length", stream.length());
  Field(context, "radix-tree-keys", stream.blocks());
  Field(context, "radix-tree-nodes", stream.RadixTreeNodes());
  IdField(context, "last-generated-id", stream.last_id());
  IdField(context, "max-deleted-entry-id", stream.max_deleted_id());
  Field(context, "entries-added", stream.entries_added());
  IdField(context, "recorded-first-entry-id", stream.first_id());
}

void EntryField(Context& context, std::string_view name, const Stream& stream,
                const std::optional<types::StreamId>& id) {
  context.reply().Bulk(name);
  if (!id || !ReplyEntryAt(context, stream, *id)) context.reply().Null();
}

void ConsumerInFull(Context& context, const StreamGroup& group, const StreamConsumer& consumer,
                    int64_t count) {
  protocol::Reply& reply = context.reply();
  reply.Map(5);
  reply.Bulk("name");
  reply.Bulk(consumer.name);
  reply.Bulk("seen-time");
  reply.Int(consumer.seen_at);
  reply.Bulk("active-time");
  reply.Int(consumer.active_at);
  Field(context, "pel-count", consumer.pending.size());
  reply.Bulk("pending");
  const size_t mark = reply.Mark();
  int64_t shown = 0;
  consumer.pending.ForEachFrom(types::kLeastStreamId, [&](const PendingId& item) {
    const PendingEntry& entry = *group.pending().Find(item.id);
    reply.Array(3);
    ReplyStreamId(context, entry.id);
    reply.Int(entry.delivered_at);
    reply.Int(static_cast<int64_t>(entry.deliveries));
    return ++shown != count;
  });
  reply.ArrayAt(mark, shown);
}

void GroupInFull(Context& context, const Stream& stream, std::string_view name,
                 const StreamGroup& group, int64_t count) {
  protocol::Reply& reply = context.reply();
  reply.Map(7);
  reply.Bulk("name");
  reply.Bulk(name);
  IdField(context, "last-delivered-id", group.last_id);
  ProgressFields(context, stream, group);
  Field(context, "pel-count", group.pending().size());
  reply.Bulk("pending");
  const size_t mark = reply.Mark();
  int64_t shown = 0;
  group.pending().ForEachFrom(types::kLeastStreamId, [&](const PendingEntry& entry) {
    reply.Array(4);
    ReplyStreamId(context, entry.id);
    reply.Bulk(entry.consumer->name);
    reply.Int(entry.delivered_at);
    reply.Int(static_cast<int64_t>(entry.deliveries));
    return ++shown != count;
  });
  reply.ArrayAt(mark, shown);
  reply.Bulk("consumers");
  reply.Array(static_cast<int64_t>(group.consumers().size()));
  for (const auto& [consumer_name, consumer] : group.consumers()) {
    ConsumerInFull(context, group, *consumer, count);
  }
}

void StreamInFull(Context& context, const Stream& stream, int64_t count) {
  protocol::Reply& reply = context.reply();
  reply.Map(9);
  StreamFields(context, stream);
  reply.Bulk("entries");
  const size_t mark = reply.Mark();
  int64_t shown = 0;
  stream.Range(types::kLeastStreamId, types::kGreatestStreamId, [&](const StreamEntry& entry) {
    ReplyEntry(context, entry);
    return ++shown != count;
  });
  reply.ArrayAt(mark, shown);
  reply.Bulk("groups");
  reply.Array(static_cast<int64_t>(stream.groups().size()));
  for (const auto& [name, group] : stream.groups()) {
    GroupInFull(context, stream, name, *group, count);
  }
}

// The stream at argument 2; the error is replied.
Stream* NeedStream(Context& context) {
  Stream* stream = nullptr;
  if (!FindObject(context, context.arg(2), Access::kRead, &stream)) return nullptr;
  if (stream == nullptr) context.Error(errors::kNoSuchKey);
  return stream;
}

void InfoStream(Context& context) {
  const Stream* stream = NeedStream(context);
  if (stream == nullptr) return;
  if (context.argc() == 3) {
    context.reply().Map(10);
    StreamFields(context, *stream);
    Field(context, "groups", stream->groups().size());
    EntryField(context, "first-entry", *stream, stream->First());
    EntryField(context, "last-entry", *stream, stream->Last());
    return;
  }
  int64_t count = kShown;
  if ((context.argc() != 4 && context.argc() != 6) || !context.ArgIs(3, "full")) {
    return SubcommandSyntaxError(context);
  }
  if (context.argc() == 6) {
    if (!context.ArgIs(4, "count")) return SubcommandSyntaxError(context);
    if (!context.IntArg(5, &count)) return;
    if (count < 0) count = kShown;
  }
  StreamInFull(context, *stream, count);
}

void InfoGroups(Context& context) {
  const Stream* stream = NeedStream(context);
  if (stream == nullptr) return;
  protocol::Reply& reply = context.reply();
  reply.Array(static_cast<int64_t>(stream->groups().size()));
  for (const auto& [name, group] : stream->groups()) {
    reply.Map(6);
    reply.Bulk("name");
    reply.Bulk(name);
    Field(context, "consumers", group->consumers().size());
    Field(context, "pending", group->pending().size());
    IdField(context, "last-delivered-id", group->last_id);
    ProgressFields(context, *stream, *group);
  }
}

void InfoConsumers(Context& context) {
  const Stream* stream = NeedStream(context);
  if (stream == nullptr) return;
  const StreamGroup* group = stream->FindGroup(context.arg(3));
  if (group == nullptr) {
    return context.Error(errors::NoConsumerGroup(context.arg(3), context.arg(2)));
  }
  protocol::Reply& reply = context.reply();
  const int64_t now = context.now_ms();
  reply.Array(static_cast<int64_t>(group->consumers().size()));
  for (const auto& [name, consumer] : group->consumers()) {
    reply.Map(4);
    reply.Bulk("name");
    reply.Bulk(name);
    Field(context, "pending", consumer->pending.size());
    reply.Bulk("idle");
    reply.Int(std::max<int64_t>(now - consumer->seen_at, 0));
    reply.Bulk("inactive");
    reply.Int(consumer->active_at == -1 ? -1 : now - consumer->active_at);
  }
}

constexpr KeySpec kInfoKey = KeyAt(2, kKeyRo | kKeyAccess);

const CommandSpec kInfoRows[] = {
    {.name = "stream",
     .handler = InfoStream,
     .arity = -3,
     .flags = kReadonly,
     .acl = kAclStream,
     .keys = {kInfoKey},
     .group = "stream",
     .since = "5.0.0",
     .summary = "Tells about a stream, with FULL also its groups and what is pending.",
     .complexity = "O(N) where N is the number of blocks of the stream, or of what FULL shows",
     .arguments = "key [FULL [COUNT count:integer]]",
     .reply = "map",
     .example = "XINFO STREAM readings"},
    {.name = "groups",
     .handler = InfoGroups,
     .arity = 3,
     .flags = kReadonly,
     .acl = kAclStream,
     .keys = {kInfoKey},
     .group = "stream",
     .since = "5.0.0",
     .summary = "Lists the groups of a stream.",
     .complexity = "O(1) for each group",
     .arguments = "key",
     .reply = "array of maps",
     .example = "XINFO GROUPS readings"},
    {.name = "consumers",
     .handler = InfoConsumers,
     .arity = 4,
     .flags = kReadonly,
     .acl = kAclStream,
     .keys = {kInfoKey},
     .group = "stream",
     .since = "5.0.0",
     .summary = "Lists the consumers of a group.",
     .complexity = "O(1) for each consumer",
     .arguments = "key group:string",
     .reply = "array of maps",
     .example = "XINFO CONSUMERS readings archive",
     .tips = "nondeterministic_output"},
    {.name = "help",
     .handler = HelpCommand,
     .arity = 2,
     .flags = kLoading | kStale,
     .acl = kAclStream,
     .group = "stream",
     .since = "5.0.0",
     .summary = "Prints this help.",
     .complexity = "O(1)",
     .reply = "array of lines",
     .example = "XINFO HELP"},
};

const CommandSpec kInfoFamily[] = {
    {.name = "xinfo",
     .arity = -2,
     .group = "stream",
     .since = "5.0.0",
     .summary = "Tells about streams, groups and consumers.",
     .complexity = "Depends on subcommand.",
     .example = "XINFO HELP",
     .subcommands = kInfoRows},
};

}  // namespace

std::span<const CommandSpec> StreamInfoCommands() { return kInfoFamily; }

}  // namespace sava::commands
