#include "engine/charging.h"

#include <fmt/format.h>

#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/if_memory.h"
#include "engine/engine.h"
#include "engine/keys.h"

namespace sava::engine {

using commands::Command;
using keyspace::Keyspace;

namespace {

// Changed buckets are written to their keys after this time, or by the next upkeep.
constexpr int64_t kWrittenMs = 50;

// A bucket whose key a command is about to write, and what the key holds before.
struct Watched {
  std::shared_ptr<RateBucket> bucket;
  std::string before;
  bool existed;
};

// The text of a key that holds a string; nullptr when it holds none.
const std::string_view* TextOf(const commands::Value& value, std::string* scratch,
                               std::string_view* text) {
  if (!value) return nullptr;
  *text = value.is_string() ? value.Text(scratch) : std::string_view();
  return text;
}

}  // namespace

// Calls visit(key) for every key argument that may be a bucket's.
template <typename Visit>
void Charging::ForEachBucketKey(const Command& command, commands::Args args, const Visit& visit) {
  const std::string_view prefix = engine_.limiter().prefix();
  const auto look = [&](std::string_view key) {
    if (key.starts_with(prefix)) visit(key);
  };
  if (!command.simple_keys && command.lock == commands::LockClass::kNone) return;
  std::vector<int> scratch;
  commands::ForEachKey(command, args, &scratch, [&](size_t index) { look(args[index]); });
}

// REQUIRES: the lane's stripes are free, or everything is locked.
void Charging::LoadBucket(Lane& lane, RateBucket& bucket) {
  const StripeGuard guard(lane.locks, Keyspace::StripeOf(engine_.keyspace().Hash(bucket.key())));
  std::string scratch;
  std::string_view text;
  const commands::Value value = Glance(engine_.keyspace(), lane.now_ms, 0, bucket.key());
  bucket.Load(TextOf(value, &scratch, &text), lane.now_ms, false);
}

// REQUIRES: the key's lock.
void Charging::WriteBucket(Lane& lane, RateBucket& bucket, Invocation* outer) {
  if (!engine_.role().writes_by_itself()) return;  // it stays in memory only
  RateBucket::Text text;
  if (!bucket.TakeChange(lane.now_ms, &text)) return;
  const std::string_view value(text.bytes, text.size);
  const int64_t expire_at = lane.now_ms + text.ttl_ms;
  Invocation invocation(lane, outer);
  const bool written = base::IfMemory([&] {
    Keys(invocation).SetString(0, bucket.key(), value, expire_at, text.number);
    lane.stats.keys.dirty.Add();
    char time[24];
    const std::string_view words[] = {
        "SET", bucket.key(), value, "PXAT", {time, base::FormatInt(expire_at, time)}};
    invocation.Propagate(words, 0);
    invocation.End();
  });
  if (written) return;
  bucket.MarkDirty();
  invocation.Abandon();
  engine_.memory().NoteExhausted();
  throw std::bad_alloc();
}

void Charging::WriteDue(Lane& lane) {
  if (lane.upkeep.rate_dirty.empty()) return;
  if (lane.now_ms - lane.upkeep.rate_written_ms >= kWrittenMs) WriteBuckets(lane);
}

void Charging::WriteBuckets(Lane& lane) {
  lane.upkeep.rate_written_ms = lane.now_ms;
  if (lane.upkeep.rate_dirty.empty() || !engine_.role().writes_by_itself()) return;
  std::erase_if(lane.upkeep.rate_dirty, [&](const std::shared_ptr<RateBucket>& bucket) {
    const StripeGuard guard(lane.locks, Keyspace::StripeOf(engine_.keyspace().Hash(bucket->key())));
    const bool written = base::IfMemory([&] { WriteBucket(lane, *bucket, nullptr); });
    engine_.waiting().ServeReady(lane);
    return written;  // else the next time
  });
}

bool Charging::WritesOwnBucket(const Client& client, const Command& command, commands::Args args) {
  bool own = false;
  ForEachBucketKey(command, args, [&](std::string_view key) {
    for (const RateBucket* bucket : {client.rate.user.get(), client.rate.address.get()}) {
      own = own || (bucket != nullptr && bucket->key() == key);
    }
  });
  return own;
}

bool Charging::Charge(Lane& lane, const Request& request) {
  Client& client = *request.client;
  const Command* command = request.command;
  if (client.rate.paid) {
    client.rate.paid = false;
    return true;
  }
  if (!engine_.limiter().Resolved(client)) {
    engine_.limiter().Resolve(client, lane.now_ms);
    // Without memory the client is not resolved: it must not run without its limits.
    const bool loaded = base::IfMemory([&] {
      for (RateBucket* bucket : {client.rate.user.get(), client.rate.address.get()}) {
        if (bucket != nullptr && !bucket->loaded()) LoadBucket(lane, *bucket);
      }
    });
    if (!loaded) {
      client.rate.generation = 0;
      throw std::bad_alloc();
    }
  }
  if (client.rate.user == nullptr && client.rate.address == nullptr) return true;
  const size_t mark = client.out.Mark();
  // What was queued has been paid for.
  const bool free =
      command != nullptr && (engine_.limiter().Exempt(*command) ||
                             (client.has(kClientMulti) && command->is(commands::kEndsQueue)));
  if (!free) {
    const types::RateAnswer answer =
        engine_.limiter().Take(client, 1, lane.now_ms, &lane.upkeep.rate_dirty);
    if (!answer.allowed) {
      lane.stats.ratelimit_refused.Add();
      engine_.admission().Reject(lane, client, command,
                                 fmt::format("RATELIMITED retry_after_ms={}", answer.retry_ms));
      Runner::FinishReply(client, mark);
      return false;
    }
  }
  // Free of charge or not, no client changes its own bucket.
  if (command != nullptr && command->has(commands::kWrite) &&
      command->ArityOk(request.args.size()) && WritesOwnBucket(client, *command, request.args)) {
    engine_.admission().Reject(lane, client, command,
                               "NOPERM a limited user may not write the bucket that limits him");
    Runner::FinishReply(client, mark);
    return false;
  }
  return true;
}

// Everything was replaced: buckets follow their keys, except those of the client that did it.
// REQUIRES: gate closed.
void Charging::ReloadAll(Lane& lane, const Client& client) {
  std::string scratch;
  std::string_view text;
  for (const std::shared_ptr<RateBucket>& bucket : engine_.limiter().All()) {
    if (bucket == client.rate.user || bucket == client.rate.address) {
      if (bucket->MarkDirty()) lane.upkeep.rate_dirty.push_back(bucket);
      continue;
    }
    const commands::Value value = Glance(engine_.keyspace(), lane.now_ms, 0, bucket->key());
    bucket->Load(TextOf(value, &scratch, &text), lane.now_ms, true);
  }
}

bool Charging::Call(Lane& lane, const Work& work) {
  // What the master's buckets hold is not this server's limit.
  if (!engine_.role().writes_by_itself()) return engine_.runner().CallHandler(lane, work);
  const Command& command = *work.command;
  const bool writes = command.has(commands::kWrite);
  const bool whole = writes && lane.exclusive() && command.lock == commands::LockClass::kAll;
  std::vector<Watched> watched;
  std::string scratch;
  std::string_view text;
  // The keys it names are to hold what their buckets have.
  const auto write_named = [&] {
    if (whole) {
      // What the keys do not know yet would be lost when the buckets follow them.
      for (const std::shared_ptr<RateBucket>& bucket : engine_.limiter().All()) {
        WriteBucket(lane, *bucket, work.outer);
      }
    }
    ForEachBucketKey(command, work.args, [&](std::string_view key) {
      std::shared_ptr<RateBucket> bucket = engine_.limiter().Find(key);
      if (bucket == nullptr) return;
      WriteBucket(lane, *bucket, work.outer);
      if (!writes) return;
      const commands::Value value = Glance(engine_.keyspace(), lane.now_ms, 0, key);
      const std::string_view* found = TextOf(value, &scratch, &text);
      watched.push_back({std::move(bucket), std::string(text), found != nullptr});
    });
  };
  if (!base::IfMemory(write_named)) {  // nothing was done yet
    protocol::Reply(&work.client->out, work.client->resp).Error(commands::errors::kNoMemory);
    return true;
  }
  const bool answered = engine_.runner().CallHandler(lane, work);
  for (const Watched& item : watched) {
    const commands::Value value = Glance(engine_.keyspace(), lane.now_ms, 0, item.bucket->key());
    const std::string_view* found = TextOf(value, &scratch, &text);
    const bool same = (found != nullptr) == item.existed && (!item.existed || text == item.before);
    if (!same) item.bucket->Load(found, lane.now_ms, true);
  }
  if (whole) ReloadAll(lane, *work.client);
  return answered;
}

}  // namespace sava::engine
