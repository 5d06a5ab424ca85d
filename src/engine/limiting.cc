// The engine's side of the limiter: charging commands, and keeping buckets and their keys the same.
//
// A bucket's key is written and read under the lock of its stripe; the bucket's own lock is taken
// inside that, never the other way round.
#include <fmt/format.h>

#include "engine/keys.h"

namespace sava::engine {

using commands::Command;
using keyspace::Keyspace;

namespace {

// The text of a key that holds a string; nullptr when it holds none.
const std::string_view* TextOf(const commands::Value& value, std::string* scratch,
                               std::string_view* text) {
  if (!value) return nullptr;
  *text = value.is_string() ? value.Text(scratch) : std::string_view();
  return text;
}

// A bucket whose key a command is about to write, and what the key holds before.
struct Watched {
  std::shared_ptr<RateBucket> bucket;
  std::string before;
  bool existed;
};

}  // namespace

// Calls visit(key) for every key argument that may be a bucket's.
template <typename Visit>
void Engine::ForEachBucketKey(const Command& command, commands::Args args, const Visit& visit) {
  const std::string_view prefix = limiter_.prefix();
  const auto look = [&](std::string_view key) {
    if (key.starts_with(prefix)) visit(key);
  };
  if (command.simple_keys) {
    const int argc = static_cast<int>(args.size());
    const int last = command.last_key >= 0 ? command.last_key : argc + command.last_key;
    for (int i = command.first_key; i <= last && i < argc; i += command.key_step) {
      look(args[static_cast<size_t>(i)]);
    }
  } else if (command.lock != commands::LockClass::kNone) {
    std::vector<int> indexes;
    if (!commands::KeyIndexes(command, args, &indexes)) return;
    for (const int index : indexes) look(args[static_cast<size_t>(index)]);
  }
}

// REQUIRES: the lane's stripes are free, or everything is locked.
void Engine::LoadBucket(Lane& lane, RateBucket& bucket) {
  const StripeGuard guard(lane.locks, Keyspace::StripeOf(keyspace_.Hash(bucket.key())));
  std::string scratch;
  std::string_view text;
  const commands::Value value = Glance(keyspace_, lane.now_ms, 0, bucket.key());
  bucket.Load(TextOf(value, &scratch, &text), lane.now_ms, false);
}

// REQUIRES: the key's lock.
void Engine::WriteBucket(Lane& lane, RateBucket& bucket, Invocation* outer) {
  RateBucket::Text text;
  if (!bucket.TakeChange(lane.now_ms, &text)) return;
  const std::string_view value(text.bytes, text.size);
  const int64_t expire_at = lane.now_ms + text.ttl_ms;
  Invocation invocation(lane, outer);
  Keys(invocation).SetString(0, bucket.key(), value, expire_at, text.number);
  lane.stats.dirty.Add();
  char time[24];
  const std::string_view words[] = {
      "SET", bucket.key(), value, "PXAT", {time, base::FormatInt(expire_at, time)}};
  invocation.Propagate(words, 0);
  invocation.End();
}

void Engine::WriteBuckets(Lane& lane) {
  lane.rate_written_ms = lane.now_ms;
  if (lane.rate_dirty.empty()) return;
  for (const std::shared_ptr<RateBucket>& bucket : lane.rate_dirty) {
    const StripeGuard guard(lane.locks, Keyspace::StripeOf(keyspace_.Hash(bucket->key())));
    WriteBucket(lane, *bucket, nullptr);
    ServeReady(lane);
  }
  lane.rate_dirty.clear();
}

bool Engine::WritesOwnBucket(const Client& client, const Command& command, commands::Args args) {
  bool own = false;
  ForEachBucketKey(command, args, [&](std::string_view key) {
    for (const RateBucket* bucket : {client.rate_user.get(), client.rate_address.get()}) {
      own = own || (bucket != nullptr && bucket->key() == key);
    }
  });
  return own;
}

// True when the command may go on; otherwise it was answered.
bool Engine::Charge(Lane& lane, const Request& request) {
  Client& client = *request.client;
  const Command* command = request.command;
  if (client.rate_paid) {
    client.rate_paid = false;
    return true;
  }
  if (!limiter_.Resolved(client)) {
    limiter_.Resolve(client, lane.now_ms);
    for (RateBucket* bucket : {client.rate_user.get(), client.rate_address.get()}) {
      if (bucket != nullptr && !bucket->loaded()) LoadBucket(lane, *bucket);
    }
  }
  if (client.rate_user == nullptr && client.rate_address == nullptr) return true;
  const size_t mark = client.out.Mark();
  // What was queued has been paid for.
  const bool free =
      command != nullptr && (limiter_.Exempt(*command) ||
                             (client.has(kClientMulti) && command->is(commands::kEndsQueue)));
  if (!free) {
    const types::RateAnswer answer = limiter_.Take(client, 1, lane.now_ms, &lane.rate_dirty);
    if (!answer.allowed) {
      lane.stats.ratelimit_refused.Add();
      Reject(lane, client, command, fmt::format("RATELIMITED retry_after_ms={}", answer.retry_ms));
      FinishReply(client, mark);
      return false;
    }
  }
  // Free of charge or not, nobody helps himself.
  if (command != nullptr && command->has(commands::kWrite) &&
      command->ArityOk(request.args.size()) && WritesOwnBucket(client, *command, request.args)) {
    Reject(lane, client, command, "NOPERM a limited user may not write the bucket that limits him");
    FinishReply(client, mark);
    return false;
  }
  return true;
}

// Everything was replaced: buckets follow their keys, except those of the one who did it.
// REQUIRES: gate closed.
void Engine::ReloadAll(Lane& lane, const Client& client) {
  std::string scratch;
  std::string_view text;
  for (const std::shared_ptr<RateBucket>& bucket : limiter_.All()) {
    if (bucket == client.rate_user || bucket == client.rate_address) {
      if (bucket->MarkDirty()) lane.rate_dirty.push_back(bucket);
      continue;
    }
    const commands::Value value = Glance(keyspace_, lane.now_ms, 0, bucket->key());
    bucket->Load(TextOf(value, &scratch, &text), lane.now_ms, true);
  }
}

bool Engine::CallLimited(Lane& lane, const Work& work) {
  const Command& command = *work.command;
  const bool writes = command.has(commands::kWrite);
  const bool whole = writes && lane.exclusive() && command.lock == commands::LockClass::kAll;
  if (whole) {
    // What the keys do not know yet would be lost when the buckets follow them.
    for (const std::shared_ptr<RateBucket>& bucket : limiter_.All()) {
      WriteBucket(lane, *bucket, work.outer);
    }
  }
  std::vector<Watched> watched;
  std::string scratch;
  std::string_view text;
  ForEachBucketKey(command, work.args, [&](std::string_view key) {
    std::shared_ptr<RateBucket> bucket = limiter_.Find(key);
    if (bucket == nullptr) return;
    WriteBucket(lane, *bucket, work.outer);
    if (!writes) return;
    const commands::Value value = Glance(keyspace_, lane.now_ms, 0, key);
    const std::string_view* found = TextOf(value, &scratch, &text);
    watched.push_back({std::move(bucket), std::string(text), found != nullptr});
  });
  const bool answered = CallHandler(lane, work);
  for (const Watched& item : watched) {
    const commands::Value value = Glance(keyspace_, lane.now_ms, 0, item.bucket->key());
    const std::string_view* found = TextOf(value, &scratch, &text);
    const bool same = (found != nullptr) == item.existed && (!item.existed || text == item.before);
    if (!same) item.bucket->Load(found, lane.now_ms, true);
  }
  if (whole) ReloadAll(lane, *work.client);
  return answered;
}

}  // namespace sava::engine
