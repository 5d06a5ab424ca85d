// Consumer groups: XGROUP, XACK, XPENDING.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "commands/help.h"
#include "commands/redis/families.h"
#include "commands/redis/streams.h"
#include "commands/registry.h"

namespace sava::commands {

using types::PendingEntry;
using types::PendingId;
using types::Stream;
using types::StreamConsumer;
using types::StreamGroup;
using types::StreamId;

// ---- shared by the family ----

void SubcommandSyntaxError(Context& context) {
  context.Error(errors::UnknownSubcommand(context.arg(1), base::ToUpper(context.arg(0))));
}

void NoGroupError(Context& context, std::string_view key, std::string_view group,
                  std::string_view suffix) {
  std::string text = "NOGROUP No such key '";
  text.append(key).append("' or consumer group '").append(group).append("'").append(suffix);
  context.Error(text);
}

void LogClaim(Context& context, std::string_view key, std::string_view group_name,
              const StreamGroup& group, const PendingEntry& entry) {
  if (!context.wants_effects()) return context.NoEffect();
  const std::string id = entry.id.Text();
  const std::string time = base::IntText(entry.delivered_at);
  const std::string deliveries = base::IntText(static_cast<int64_t>(entry.deliveries));
  const std::string last_id = group.last_id.Text();
  context.Effect({"XCLAIM", key, group_name, entry.consumer->name, "0", id, "TIME", time,
                  "RETRYCOUNT", deliveries, "FORCE", "JUSTID", "LASTID", last_id});
}

void LogGroupId(Context& context, std::string_view key, std::string_view group_name,
                const StreamGroup& group) {
  if (!context.wants_effects()) return context.NoEffect();
  const std::string last_id = group.last_id.Text();
  const std::string read = base::IntText(group.entries_read);
  context.Effect({"XGROUP", "SETID", key, group_name, last_id, "ENTRIESREAD", read});
}

void LogConsumer(Context& context, std::string_view key, std::string_view group_name,
                 const StreamConsumer& consumer) {
  context.Effect({"XGROUP", "CREATECONSUMER", key, group_name, consumer.name});
}

StreamConsumer& SeenConsumer(Context& context, std::string_view key, StreamGroup& group,
                             std::string_view name, bool* created) {
  StreamConsumer* consumer = group.FindConsumer(name);
  *created = consumer == nullptr;
  if (consumer == nullptr) {
    consumer = group.AddConsumer(name, context.now_ms());
    context.Changed();
    context.Notify(kNotifyStream, "xgroup-createconsumer", key);
  }
  consumer->seen_at = context.now_ms();
  return *consumer;
}

namespace {

// ---- XGROUP ----

struct GroupOptions {
  bool make_stream = false;
  int64_t entries_read = StreamGroup::kUnknownRead;
};

// What CREATE and SETID have from argument 5 on. The error is replied.
bool ParseGroupOptions(Context& context, bool creates, GroupOptions* options) {
  for (size_t i = 5; i < context.argc(); ++i) {
    if (creates && context.ArgIs(i, "mkstream")) {
      options->make_stream = true;
    } else if (context.ArgIs(i, "entriesread") && i + 1 < context.argc()) {
      if (!context.IntArg(++i, &options->entries_read)) return false;
      if (options->entries_read < StreamGroup::kUnknownRead) {
        context.Error("ERR value for ENTRIESREAD must be positive or -1");
        return false;
      }
    } else {
      SubcommandSyntaxError(context);
      return false;
    }
  }
  return true;
}

// The stream of an XGROUP subcommand; replies the error and returns nullptr when there is none.
Stream* NeedGroupStream(Context& context) {
  Stream* stream = nullptr;
  if (!FindObject(context, context.arg(2), Access::kWrite, &stream)) return nullptr;
  if (stream == nullptr) {
    context.Error(
        "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to "
        "use the MKSTREAM option to create an empty stream automatically.");
  }
  return stream;
}

// The group too.
StreamGroup* NeedGroup(Context& context, Stream** stream) {
  *stream = NeedGroupStream(context);
  if (*stream == nullptr) return nullptr;
  StreamGroup* group = (*stream)->FindGroup(context.arg(3));
  if (group == nullptr) {
    context.Error(errors::NoConsumerGroup(context.arg(3), context.arg(2)));
  }
  return group;
}

void GroupChanged(Context& context, std::string_view event) {
  context.Changed();
  context.Notify(kNotifyStream, event, context.arg(2));
}

void GroupCreate(Context& context) {
  GroupOptions options;
  if (!ParseGroupOptions(context, true, &options)) return;
  const std::string_view key = context.arg(2);
  Stream* stream = nullptr;
  if (options.make_stream) {
    if (!FindObject(context, key, Access::kWrite, &stream)) return;
  } else if ((stream = NeedGroupStream(context)) == nullptr) {
    return;
  }
  if (context.argc() > 8) return SubcommandSyntaxError(context);
  StreamId id;
  if (context.arg(4) == "$") {
    if (stream != nullptr) id = stream->last_id();
  } else if (!StreamIdArg(context, 4, &id)) {
    return;
  }
  if (stream == nullptr) {
    auto made = std::make_unique<Stream>();
    made->AddGroup(context.arg(3), id, options.entries_read);
    context.SetObject(key, std::move(made));
  } else if (!stream->AddGroup(context.arg(3), id, options.entries_read)) {
    return context.Error("BUSYGROUP Consumer Group name already exists");
  }
  GroupChanged(context, "xgroup-create");
  context.reply().Ok();
}

void GroupSetid(Context& context) {
  GroupOptions options;
  if (!ParseGroupOptions(context, false, &options)) return;
  Stream* stream = nullptr;
  StreamGroup* group = NeedGroup(context, &stream);
  if (group == nullptr) return;
  if (context.argc() != 5 && context.argc() != 7) return SubcommandSyntaxError(context);
  StreamId id = stream->last_id();
  if (context.arg(4) != "$" && !ParseStreamId(context.arg(4), 0, true, &id)) {
    return context.Error(kBadStreamId);
  }
  group->last_id = id;
  group->entries_read = options.entries_read;
  GroupChanged(context, "xgroup-setid");
  context.reply().Ok();
}

// Whoever waits for the group is told that it is gone.
void GroupDestroy(Context& context) {
  Stream* stream = NeedGroupStream(context);
  if (stream == nullptr) return;
  const bool removed = stream->RemoveGroup(context.arg(3));
  if (removed) {
    context.Touched(context.arg(2));
    GroupChanged(context, "xgroup-destroy");
  }
  context.reply().Int(removed ? 1 : 0);
}

void GroupCreateConsumer(Context& context) {
  Stream* stream = nullptr;
  StreamGroup* group = NeedGroup(context, &stream);
  if (group == nullptr) return;
  const bool added = group->AddConsumer(context.arg(4), context.now_ms()) != nullptr;
  if (added) GroupChanged(context, "xgroup-createconsumer");
  context.reply().Int(added ? 1 : 0);
}

void GroupDelConsumer(Context& context) {
  Stream* stream = nullptr;
  StreamGroup* group = NeedGroup(context, &stream);
  if (group == nullptr) return;
  const StreamConsumer* consumer = group->FindConsumer(context.arg(4));
  int64_t pending = 0;
  if (consumer != nullptr) {
    pending = static_cast<int64_t>(consumer->pending.size());
    group->RemoveConsumer(context.arg(4));
    GroupChanged(context, "xgroup-delconsumer");
  }
  context.reply().Int(pending);
}

// ---- XACK ----

void Xack(Context& context) {
  Stream* stream = nullptr;
  if (!FindObject(context, context.arg(1), Access::kWrite, &stream)) return;
  StreamGroup* group = stream == nullptr ? nullptr : stream->FindGroup(context.arg(2));
  if (group == nullptr) return context.reply().Int(0);
  std::vector<StreamId> ids(context.argc() - 3);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!StreamIdArg(context, i + 3, &ids[i])) return;
  }
  int64_t acknowledged = 0;
  for (const StreamId& id : ids) acknowledged += group->Acknowledge(id) ? 1 : 0;
  if (acknowledged > 0) context.Changed(acknowledged);
  context.reply().Int(acknowledged);
}

// ---- XPENDING ----

struct PendingOptions {
  int64_t min_idle = 0;
  StreamId from;
  StreamId to;
  int64_t count = 0;
  size_t consumer_arg = 0;  // 0: of all
};

bool ParsePending(Context& context, PendingOptions* options) {
  size_t first = 3;
  if (context.ArgIs(3, "idle")) {
    if (!context.IntArg(4, &options->min_idle)) return false;
    if (context.argc() < 8) {
      context.Error(errors::kSyntax);
      return false;
    }
    first = 5;
  }
  if (!context.IntArg(first + 2, &options->count)) return false;
  options->count = std::max<int64_t>(options->count, 0);
  if (!IntervalStartArg(context, first, &options->from)) return false;
  if (!IntervalEndArg(context, first + 1, &options->to)) return false;
  if (first + 3 < context.argc()) options->consumer_arg = first + 3;
  return true;
}

void ReplyPendingSummary(Context& context, const StreamGroup& group) {
  protocol::Reply& reply = context.reply();
  reply.Array(4);
  reply.Int(static_cast<int64_t>(group.pending().size()));
  if (group.pending().empty()) {
    reply.Null();
    reply.Null();
    reply.NullArray();
    return;
  }
  ReplyStreamId(context, group.pending().front().id);
  ReplyStreamId(context, group.pending().back().id);
  const size_t mark = reply.Mark();
  int64_t shown = 0;
  for (const auto& [name, consumer] : group.consumers()) {
    if (consumer->pending.empty()) continue;
    reply.Array(2);
    reply.Bulk(name);
    reply.BulkInt(static_cast<int64_t>(consumer->pending.size()));
    ++shown;
  }
  reply.ArrayAt(mark, shown);
}

// True while more are wanted.
bool ReplyPendingEntry(Context& context, const PendingEntry& entry, const PendingOptions& options,
                       int64_t* shown) {
  if (*shown == options.count || entry.id > options.to) return false;
  const int64_t idle = context.now_ms() - entry.delivered_at;
  if (options.min_idle != 0 && idle < options.min_idle) return true;
  protocol::Reply& reply = context.reply();
  reply.Array(4);
  ReplyStreamId(context, entry.id);
  reply.Bulk(entry.consumer->name);
  reply.Int(std::max<int64_t>(idle, 0));
  reply.Int(static_cast<int64_t>(entry.deliveries));
  ++*shown;
  return true;
}

void Xpending(Context& context) {
  const bool summary = context.argc() == 3;
  if (!summary && (context.argc() < 6 || context.argc() > 9)) {
    return context.Error(errors::kSyntax);
  }
  PendingOptions options;
  if (!summary && !ParsePending(context, &options)) return;
  Stream* stream = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &stream)) return;
  const StreamGroup* group = stream == nullptr ? nullptr : stream->FindGroup(context.arg(2));
  if (group == nullptr) return NoGroupError(context, context.arg(1), context.arg(2));
  if (summary) return ReplyPendingSummary(context, *group);
  const StreamConsumer* consumer = nullptr;
  if (options.consumer_arg != 0) {
    consumer = group->FindConsumer(context.arg(options.consumer_arg));
    if (consumer == nullptr) return context.reply().Array(0);
  }
  const size_t mark = context.reply().Mark();
  int64_t shown = 0;
  if (consumer != nullptr) {
    consumer->pending.ForEachFrom(options.from, [&](const PendingId& item) {
      return ReplyPendingEntry(context, *group->pending().Find(item.id), options, &shown);
    });
  } else {
    group->pending().ForEachFrom(options.from, [&](const PendingEntry& entry) {
      return ReplyPendingEntry(context, entry, options, &shown);
    });
  }
  context.reply().ArrayAt(mark, shown);
}

// ---- rows ----

const CommandSpec kGroupRows[] = {
    {.name = "create",
     .handler = GroupCreate,
     .arity = -5,
     .flags = kWrite | kDenyOom,
     .acl = kAclStream,
     .keys = {KeyAt(2, kKeyRw | kKeyInsert)},
     .group = "stream",
     .since = "5.0.0",
     .summary = "Makes a group that reads a stream from an id on.",
     .complexity = "O(1)",
     .arguments = "key group:string id:string [MKSTREAM] [ENTRIESREAD entries-read:integer]",
     .reply = "OK",
     .example = "XGROUP CREATE readings archive $ MKSTREAM"},
    {.name = "setid",
     .handler = GroupSetid,
     .arity = -5,
     .flags = kWrite,
     .acl = kAclStream,
     .keys = {KeyAt(2, kKeyRw | kKeyUpdate)},
     .group = "stream",
     .since = "5.0.0",
     .summary = "Sets up to which id a group has read.",
     .complexity = "O(1)",
     .arguments = "key group:string id:string [ENTRIESREAD entries-read:integer]",
     .reply = "OK",
     .example = "XGROUP SETID readings archive 0"},
    {.name = "destroy",
     .handler = GroupDestroy,
     .arity = 4,
     .flags = kWrite,
     .acl = kAclStream,
     .keys = {KeyAt(2, kKeyRw | kKeyDelete)},
     .group = "stream",
     .since = "5.0.0",
     .summary = "Removes a group with all that is pending in it.",
     .complexity = "O(N) where N is the number of pending entries",
     .arguments = "key group:string",
     .reply = "1, or 0 when there was none",
     .example = "XGROUP DESTROY readings archive"},
    {.name = "createconsumer",
     .handler = GroupCreateConsumer,
     .arity = 5,
     .flags = kWrite | kDenyOom,
     .acl = kAclStream,
     .keys = {KeyAt(2, kKeyRw | kKeyInsert)},
     .group = "stream",
     .since = "6.2.0",
     .summary = "Makes a consumer in a group.",
     .complexity = "O(1)",
     .arguments = "key group:string consumer:string",
     .reply = "1, or 0 when it was there",
     .example = "XGROUP CREATECONSUMER readings archive worker-1"},
    {.name = "delconsumer",
     .handler = GroupDelConsumer,
     .arity = 5,
     .flags = kWrite,
     .acl = kAclStream,
     .keys = {KeyAt(2, kKeyRw | kKeyDelete)},
     .group = "stream",
     .since = "5.0.0",
     .summary = "Removes a consumer with what is pending for it.",
     .complexity = "O(N) where N is the number of entries pending for it",
     .arguments = "key group:string consumer:string",
     .reply = "integer: how many entries were pending for it",
     .example = "XGROUP DELCONSUMER readings archive worker-1"},
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
     .example = "XGROUP HELP"},
};

const CommandSpec kGroupFamily[] = {
    {.name = "xgroup",
     .arity = -2,
     .group = "stream",
     .since = "5.0.0",
     .summary = "Makes and changes consumer groups.",
     .complexity = "Depends on subcommand.",
     .example = "XGROUP HELP",
     .subcommands = kGroupRows},
    {.name = "xack",
     .handler = Xack,
     .arity = -4,
     .flags = kWrite | kFast,
     .acl = kAclStream,
     .keys = {KeyAt(1, kKeyRw | kKeyUpdate)},
     .group = "stream",
     .since = "5.0.0",
     .summary = "Acknowledges entries: they are pending no longer.",
     .complexity = "O(1) for each entry",
     .arguments = "key group:string id:string [id:string ...]",
     .reply = "integer: how many were pending",
     .example = "XACK readings archive 1526569495631-0"},
    {.name = "xpending",
     .handler = Xpending,
     .arity = -3,
     .flags = kReadonly,
     .acl = kAclStream,
     .keys = {KeyAt(1, kKeyRo | kKeyAccess)},
     .group = "stream",
     .since = "5.0.0",
     .summary = "Tells what was delivered and not acknowledged.",
     .complexity = "O(N) where N is the number of entries looked at, or of consumers",
     .arguments = "key group:string [[IDLE min-idle-time:integer] start:string end:string "
                  "count:integer [consumer:string]]",
     .reply = "how many, the first and the last id, and how many for each consumer; with a range, "
              "for each entry its id, consumer, idle time and number of deliveries",
     .example = "XPENDING readings archive - + 10",
     .tips = "nondeterministic_output"},
};

}  // namespace

std::span<const CommandSpec> StreamGroupCommands() { return kGroupFamily; }

}  // namespace sava::commands
