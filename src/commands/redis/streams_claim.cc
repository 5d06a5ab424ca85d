// XCLAIM and XAUTOCLAIM: pending entries change hands. Each change is logged as the XCLAIM that
// leads to the same state whenever it is replayed.
#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "commands/redis/families.h"
#include "commands/redis/streams.h"
#include "commands/registry.h"

namespace sava::commands {

namespace {

using types::PendingEntry;
using types::Stream;
using types::StreamConsumer;
using types::StreamGroup;
using types::StreamId;

// Where a claim takes place.
struct ClaimPlace {
  std::string_view key;
  std::string_view group_name;
  Stream* stream = nullptr;
  StreamGroup* group = nullptr;
};

// Arguments 1 and 2; the error is replied.
bool FindClaimPlace(Context& context, ClaimPlace* place) {
  place->key = context.arg(1);
  place->group_name = context.arg(2);
  if (!FindObject(context, place->key, Access::kWrite, &place->stream)) return false;
  if (place->stream != nullptr) place->group = place->stream->FindGroup(place->group_name);
  if (place->group != nullptr) return true;
  NoGroupError(context, place->key, place->group_name);
  return false;
}

// The entry is gone from the stream: nothing is pending any more.
void DropPending(Context& context, const ClaimPlace& place, const PendingEntry& entry) {
  LogClaim(context, place.key, place.group_name, *place.group, entry);
  place.group->Acknowledge(entry.id);
  context.Changed();
}

// Gives the entry to its new consumer and replies it.
void Claim(Context& context, const ClaimPlace& place, const PendingEntry& entry, bool just_id) {
  place.group->Assign(entry);
  entry.consumer->active_at = context.now_ms();
  if (just_id) {
    ReplyStreamId(context, entry.id);
  } else {
    ReplyEntryAt(context, *place.stream, entry.id);
  }
  LogClaim(context, place.key, place.group_name, *place.group, entry);
  context.Changed();
}

// ---- XCLAIM ----

struct ClaimOptions {
  int64_t min_idle = 0;
  std::vector<StreamId> ids;
  int64_t delivered_at = -1;  // -1: not given
  int64_t deliveries = -1;
  bool force = false;
  bool just_id = false;
  StreamId last_id;
};

bool ParseClaimOption(Context& context, size_t* i, ClaimOptions* options) {
  const bool more = *i + 1 < context.argc();
  if (context.ArgIs(*i, "force")) {
    options->force = true;
    return true;
  }
  if (context.ArgIs(*i, "justid")) {
    options->just_id = true;
    return true;
  }
  if (more && context.ArgIs(*i, "idle")) {
    if (!context.IntArg(++*i, &options->delivered_at,
                        "ERR Invalid IDLE option argument for XCLAIM")) {
      return false;
    }
    // As it comes out in 64 bits: what makes no sense becomes now.
    options->delivered_at = static_cast<int64_t>(static_cast<uint64_t>(context.now_ms()) -
                                                 static_cast<uint64_t>(options->delivered_at));
    return true;
  }
  if (more && context.ArgIs(*i, "time")) {
    return context.IntArg(++*i, &options->delivered_at,
                          "ERR Invalid TIME option argument for XCLAIM");
  }
  if (more && context.ArgIs(*i, "retrycount")) {
    return context.IntArg(++*i, &options->deliveries,
                          "ERR Invalid RETRYCOUNT option argument for XCLAIM");
  }
  if (more && context.ArgIs(*i, "lastid")) return StreamIdArg(context, ++*i, &options->last_id);
  std::string text = "ERR Unrecognized XCLAIM option '";
  context.Error(text.append(context.arg(*i)).append("'"));
  return false;
}

bool ParseClaim(Context& context, ClaimOptions* options) {
  if (!context.IntArg(4, &options->min_idle, "ERR Invalid min-idle-time argument for XCLAIM")) {
    return false;
  }
  options->min_idle = std::max<int64_t>(options->min_idle, 0);
  size_t i = 5;
  for (; i < context.argc(); ++i) {
    StreamId id;
    if (!ParseStreamId(context.arg(i), 0, false, &id)) break;
    options->ids.push_back(id);
  }
  for (; i < context.argc(); ++i) {
    if (!ParseClaimOption(context, &i, options)) return false;
  }
  const int64_t now = context.now_ms();
  if (options->delivered_at < 0 || options->delivered_at > now) options->delivered_at = now;
  return true;
}

// True when the entry was replied.
bool ClaimOne(Context& context, const ClaimPlace& place, const StreamId& id,
              const ClaimOptions& options, StreamConsumer& consumer, bool* logged) {
  const PendingEntry* known = place.group->pending().Find(id);
  if (!place.stream->Contains(id)) {
    if (known == nullptr) return false;
    DropPending(context, place, PendingEntry(*known));
    *logged = true;
    return false;
  }
  if (known == nullptr && !options.force) return false;
  PendingEntry entry{id, context.now_ms(), 1, nullptr};
  if (known != nullptr) entry = *known;
  if (known != nullptr && options.min_idle != 0 &&
      context.now_ms() - entry.delivered_at < options.min_idle) {
    return false;
  }
  entry.consumer = &consumer;
  entry.delivered_at = options.delivered_at;
  if (options.deliveries >= 0) {
    entry.deliveries = static_cast<uint64_t>(options.deliveries);
  } else if (!options.just_id) {
    ++entry.deliveries;
  }
  Claim(context, place, entry, options.just_id);
  *logged = true;
  return true;
}

void Xclaim(Context& context) {
  ClaimPlace place;
  if (!FindClaimPlace(context, &place)) return;
  ClaimOptions options;
  if (!ParseClaim(context, &options)) return;
  context.NoEffect();
  const bool advances = options.last_id > place.group->last_id;
  if (advances) place.group->last_id = options.last_id;
  bool created = false;
  StreamConsumer& consumer =
      SeenConsumer(context, place.key, *place.group, context.arg(3), &created);
  const size_t mark = context.reply().Mark();
  int64_t claimed = 0;
  bool logged = false;
  for (const StreamId& id : options.ids) {
    if (ClaimOne(context, place, id, options, consumer, &logged)) ++claimed;
  }
  if (created && consumer.pending.empty()) {
    LogConsumer(context, place.key, place.group_name, consumer);
  }
  if (advances && !logged) {
    LogGroupId(context, place.key, place.group_name, *place.group);
    context.Changed();
  }
  context.reply().ArrayAt(mark, claimed);
}

// ---- XAUTOCLAIM ----

constexpr int64_t kAttemptsPerEntry = 10;
constexpr int64_t kMostClaims = INT64_MAX / 16;

struct AutoclaimOptions {
  int64_t min_idle = 0;
  StreamId start;
  int64_t count = 100;
  bool just_id = false;
};

bool ParseAutoclaim(Context& context, AutoclaimOptions* options) {
  if (!context.IntArg(4, &options->min_idle, "ERR Invalid min-idle-time argument for XAUTOCLAIM")) {
    return false;
  }
  options->min_idle = std::max<int64_t>(options->min_idle, 0);
  if (!IntervalStartArg(context, 5, &options->start)) return false;
  for (size_t i = 6; i < context.argc(); ++i) {
    if (context.ArgIs(i, "count") && i + 1 < context.argc()) {
      if (!context.IntArg(++i, &options->count, errors::kCountOption)) return false;
      if (options->count < 1 || options->count > kMostClaims) {
        context.Error(errors::kCountOption);
        return false;
      }
    } else if (context.ArgIs(i, "justid")) {
      options->just_id = true;
    } else {
      context.Error(errors::kSyntax);
      return false;
    }
  }
  return true;
}

// The entries that are gone and those that were claimed count alike; *next is where the next call
// goes on, 0-0 at the end.
int64_t ClaimIdle(Context& context, const ClaimPlace& place, const AutoclaimOptions& options,
                  StreamConsumer& consumer, std::vector<StreamId>* gone, StreamId* next) {
  int64_t claimed = 0;
  StreamId at = options.start;
  bool end = false;
  int64_t left = options.count;
  for (int64_t attempts = options.count * kAttemptsPerEntry; attempts > 0 && left > 0; --attempts) {
    const PendingEntry* known = end ? nullptr : place.group->pending().FindFrom(at);
    if (known == nullptr) break;
    PendingEntry entry = *known;
    at = entry.id;
    end = !at.Increment();
    if (!place.stream->Contains(entry.id)) {
      DropPending(context, place, entry);
      gone->push_back(entry.id);
      --left;
      continue;
    }
    if (options.min_idle != 0 && context.now_ms() - entry.delivered_at < options.min_idle) continue;
    entry.consumer = &consumer;
    entry.delivered_at = context.now_ms();
    if (!options.just_id) ++entry.deliveries;
    Claim(context, place, entry, options.just_id);
    ++claimed;
    --left;
  }
  const PendingEntry* following = end ? nullptr : place.group->pending().FindFrom(at);
  *next = following == nullptr ? types::kLeastStreamId : following->id;
  return claimed;
}

void Xautoclaim(Context& context) {
  AutoclaimOptions options;
  if (!ParseAutoclaim(context, &options)) return;
  ClaimPlace place;
  if (!FindClaimPlace(context, &place)) return;
  context.NoEffect();
  bool created = false;
  StreamConsumer& consumer =
      SeenConsumer(context, place.key, *place.group, context.arg(3), &created);
  // The id at which the next call goes on stands before what was claimed.
  protocol::Reply& reply = context.reply();
  std::vector<StreamId> gone;
  StreamId next;
  const size_t mark = reply.Mark();
  const int64_t claimed = ClaimIdle(context, place, options, consumer, &gone, &next);
  if (created && consumer.pending.empty()) {
    LogConsumer(context, place.key, place.group_name, consumer);
  }
  reply.ArrayAt(mark, claimed);
  const std::string next_id = next.Text();
  reply.out().InsertAt(mark, "*3\r\n$" + base::IntText(static_cast<int64_t>(next_id.size())) +
                                 "\r\n" + next_id + "\r\n");
  reply.Array(static_cast<int64_t>(gone.size()));
  for (const StreamId& id : gone) ReplyStreamId(context, id);
}

const CommandSpec kClaimRows[] = {
    {.name = "xclaim",
     .handler = Xclaim,
     .arity = -6,
     .flags = kWrite | kFast,
     .acl = kAclStream,
     .keys = {KeyAt(1, kKeyRw | kKeyUpdate)},
     .group = "stream",
     .since = "5.0.0",
     .summary = "Gives pending entries to another consumer.",
     .complexity = "O(log N) for each entry, where N is the number of pending entries",
     .arguments = "key group:string consumer:string min-idle-time:string id:string "
                  "[id:string ...] [IDLE ms:integer] [TIME unix-time-milliseconds:unix-time] "
                  "[RETRYCOUNT count:integer] [FORCE] [JUSTID] [LASTID lastid:string]",
     .reply = "array of the entries it got, with JUSTID of their ids",
     .example = "XCLAIM readings archive worker-2 3600000 1526569498055-0",
     .tips = "nondeterministic_output"},
    {.name = "xautoclaim",
     .handler = Xautoclaim,
     .arity = -6,
     .flags = kWrite | kFast,
     .acl = kAclStream,
     .keys = {KeyAt(1, kKeyRw | kKeyDelete)},
     .group = "stream",
     .since = "6.2.0",
     .summary = "Gives what has been pending for long to another consumer.",
     .complexity = "O(1) when COUNT is small",
     .arguments = "key group:string consumer:string min-idle-time:string start:string "
                  "[COUNT count:integer] [JUSTID]",
     .reply = "the id to go on with, the entries it got, and the ids of those that are gone",
     .example = "XAUTOCLAIM readings archive worker-2 3600000 0-0 COUNT 25",
     .tips = "nondeterministic_output"},
};

}  // namespace

std::span<const CommandSpec> StreamClaimCommands() { return kClaimRows; }

}  // namespace sava::commands
