// Transactions: MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//
// EXEC locks the stripes of all queued and all watched keys together, in ascending order, and looks
// at the watches only then: two clients that each watch what the other writes cannot both succeed.
#include <new>

#include "engine/engine_context.h"

namespace sava::engine {

using commands::Command;
using commands::Context;
using keyspace::Keyspace;

void Engine::Queue(Client& client, const Command& command, commands::Args args) {
  QueuedCommand queued;
  queued.command = &command;
  for (const std::string_view arg : args) {
    queued.args.emplace_back(arg);
    client.queue_bytes += arg.size();
  }
  client.queue.push_back(std::move(queued));
  client.last_command = &command;
  client.out.Append("+QUEUED\r\n");
}

bool Engine::WatchedKeysChanged(Lane& lane, Client& client) {
  if (client.watcher.dirty.load(std::memory_order_acquire)) return true;
  for (const WatchedKey& watched : client.watched) {
    if (!lane.context->IsExpired(watched.db, watched.key)) continue;
    // Expired since it was watched, but not removed yet.
    bool was_expired = false;
    keyspace_.stripe(Keyspace::StripeOf(keyspace_.Hash(watched.key)))
        .watches.ForEach(watched.db,
                         [&](std::string_view key, keyspace::Watcher* watcher, bool* expired) {
                           if (watcher == &client.watcher && key == watched.key)
                             was_expired = *expired;
                         });
    if (!was_expired) return true;
  }
  return false;
}

// REQUIRES: the stripes of all watched keys are locked.
void Engine::ForgetWatches(Client& client) {
  for (const WatchedKey& watched : client.watched) {
    keyspace_.stripe(Keyspace::StripeOf(keyspace_.Hash(watched.key)))
        .watches.Remove(watched.db, watched.key, &client.watcher);
  }
  client.watched.clear();
  client.watcher.dirty.store(false, std::memory_order_relaxed);
}

void Engine::Unwatch(Lane& lane, Client& client) {
  if (!lane.exclusive) {
    ReleaseHeld(lane);
    for (const WatchedKey& watched : client.watched) {
      keyspace::Stripe& stripe = keyspace_.stripe(Keyspace::StripeOf(keyspace_.Hash(watched.key)));
      stripe.Lock(&lane.seen);
      stripe.watches.Remove(watched.db, watched.key, &client.watcher);
      stripe.Unlock(lane.seen);
    }
    client.watched.clear();
  }
  ForgetWatches(client);
}

void Engine::DiscardTransaction(Lane& lane, Client& client) {
  client.queue.clear();
  client.queue_bytes = 0;
  client.set(kClientMulti | kClientDirtyExec, false);
  Unwatch(lane, client);
}

bool Engine::RunTransaction(Lane& lane, Client& client, const Command& exec, commands::Args args) {
  protocol::Reply reply(&client.out, client.resp);
  const size_t mark = reply.Mark();
  CommandStats& stats = lane.stats.by_command[static_cast<size_t>(exec.id)];
  const auto refuse = [&](std::string_view error) {
    reply.Error(error);
    errors_.Add(reply.error_code());
    lane.stats.error_replies.Add();
    stats.calls.Add();
    stats.failed.Add();
    lane.stats.commands.Add();
    FeedMonitors(lane, client, args);
    return true;
  };
  if (!client.has(kClientMulti)) return refuse("ERR EXEC without MULTI");
  if (client.has(kClientDirtyExec)) {
    DiscardTransaction(lane, client);
    return refuse("EXECABORT Transaction discarded because of previous errors.");
  }
  LockSet set;
  lane.key_hashes.clear();
  std::vector<std::vector<std::string_view>> views;
  views.reserve(client.queue.size());
  for (const QueuedCommand& queued : client.queue) {
    views.emplace_back(queued.args.begin(), queued.args.end());
    AddKeys(lane, *queued.command, views.back(), &set);
    // Commands over the keyspace without keys of their own lock as they go: only alone is that
    // safe.
    if (queued.command->lock == commands::LockClass::kNone &&
        queued.command->has(commands::kReadonly | commands::kWrite)) {
      set.all = true;
    }
  }
  for (const WatchedKey& watched : client.watched) {
    const uint64_t hash = keyspace_.Hash(watched.key);
    set.Add(Keyspace::StripeOf(hash));
    lane.key_hashes.push_back(hash);
  }
  EngineContext& context = *lane.context;
  for (const auto& words : views) context.PrebuildLarge(words);
  ReleaseHeld(lane);
  const bool any = set.all || set.bits[0] != 0 || set.bits[1] != 0;
  if (any && !Lock(lane, set)) {
    context.DropPrebuilt();
    lane.stats.parked.Add();
    Wait(lane, client, kClientParked);
    return false;
  }
  if (lane.exclusive && ChangedMeanwhile(lane, client, exec)) {
    Unlock(lane, set);
    context.DropPrebuilt();
    return false;
  }
  const bool changed = WatchedKeysChanged(lane, client);
  const uint64_t wrote = client.wrote;
  ForgetWatches(client);
  client.set(kClientMulti, false);
  std::vector<QueuedCommand> queue = std::move(client.queue);
  client.queue.clear();
  client.queue_bytes = 0;
  if (changed) {
    reply.NullArray();
  } else {
    reply.Array(static_cast<int64_t>(queue.size()));
    client.set(kClientInExec);
    context.BeginGroup();
    for (size_t i = 0; i < queue.size(); ++i) {
      // Nobody will read the answer.
      if (client.out.over() && !queue[i].command->has(commands::kWrite)) continue;
      Call(lane, client, *queue[i].command, views[i], {});
    }
    try {
      context.EndGroup();
    } catch (const std::bad_alloc&) {
      client.out.TruncateTo(mark);
      reply.Error(commands::errors::kNoMemory);
      context.Abandon();
      NoteOutOfMemory();
    }
    client.set(kClientInExec, false);
    ServeReady(lane);
  }
  if (set.all) lane.key_hashes.clear();
  if (any) NoteTold(lane, client, lane.key_hashes, wrote);
  if (any) Unlock(lane, set);
  context.DropPrebuilt();
  RunRetries(lane);
  FeedMonitors(lane, client, args);
  stats.calls.Add();
  lane.stats.commands.Add();
  client.last_command = &exec;
  return true;
}

namespace {

void Multi(Context& ctx) {
  Client& client = EngineContext::Of(ctx).client();
  if (client.has(kClientMulti)) {
    ctx.Error("ERR MULTI calls can not be nested");
    return;
  }
  client.set(kClientMulti);
  ctx.reply().Ok();
}

// EXEC needs all its locks before it runs: the engine runs it itself.
void Exec(Context& ctx) { ctx.Error("ERR EXEC without MULTI"); }

void Discard(Context& ctx) {
  auto& ec = EngineContext::Of(ctx);
  if (!ec.client().has(kClientMulti)) {
    ctx.Error("ERR DISCARD without MULTI");
    return;
  }
  ec.engine().DiscardTransaction(ec.lane(), ec.client());
  ctx.reply().Ok();
}

void Watch(Context& ctx) {
  auto& ec = EngineContext::Of(ctx);
  Client& client = ec.client();
  if (client.has(kClientMulti)) {
    ctx.Error("ERR WATCH inside MULTI is not allowed");
    return;
  }
  Keyspace& keyspace = ec.engine().keyspace();
  // A transaction that is lost already needs no more watches.
  if (!client.watcher.dirty.load(std::memory_order_acquire)) {
    for (size_t i = 1; i < ctx.argc(); ++i) {
      const std::string_view key = ctx.arg(i);
      bool known = false;
      for (const WatchedKey& watched : client.watched) {
        known = known || (watched.db == client.db && watched.key == key);
      }
      if (known) continue;
      client.watched.push_back({client.db, std::string(key)});
      keyspace.stripe(Keyspace::StripeOf(keyspace.Hash(key)))
          .watches.Add(client.db, key, &client.watcher, ec.IsExpired(client.db, key));
    }
  }
  ctx.reply().Ok();
}

void Unwatch(Context& ctx) {
  auto& ec = EngineContext::Of(ctx);
  if (!ec.client().has(kClientInExec)) ec.engine().Unwatch(ec.lane(), ec.client());
  ctx.reply().Ok();
}

using commands::CommandSpec;
constexpr uint32_t kControl = commands::kNoscript | commands::kLoading | commands::kStale |
                              commands::kFast | commands::kAllowBusy;

constexpr CommandSpec kTransactionRows[] = {
    {.name = "multi",
     .handler = Multi,
     .arity = 1,
     .flags = kControl,
     .acl = commands::kAclTransaction,
     .group = "transactions",
     .since = "1.2.0",
     .summary = "Begins a transaction: commands are queued until EXEC.",
     .complexity = "O(1)",
     .reply = "OK",
     .example = "MULTI"},
    {.name = "exec",
     .handler = Exec,
     .arity = 1,
     .flags = commands::kNoscript | commands::kLoading | commands::kStale | commands::kSkipSlowlog,
     .acl = commands::kAclTransaction,
     .group = "transactions",
     .since = "1.2.0",
     .summary = "Runs the queued commands as one.",
     .complexity = "Depends on commands in the transaction",
     .reply = "array of replies, or null when a watched key changed",
     .example = "EXEC"},
    {.name = "discard",
     .handler = Discard,
     .arity = 1,
     .flags = kControl,
     .acl = commands::kAclTransaction,
     .group = "transactions",
     .since = "2.0.0",
     .summary = "Forgets the queued commands.",
     .complexity = "O(N), when N is the number of queued commands",
     .reply = "OK",
     .example = "DISCARD"},
    {.name = "watch",
     .handler = Watch,
     .arity = -2,
     .flags = kControl,
     .acl = commands::kAclTransaction,
     .keys = {commands::KeysFrom(1, 1, commands::kKeyRo)},
     .group = "transactions",
     .since = "2.2.0",
     .summary = "Makes the next EXEC conditional: it fails when one of the keys changes before.",
     .complexity = "O(1) for every key.",
     .arguments = "key ...",
     .reply = "OK",
     .example = "WATCH balance"},
    {.name = "unwatch",
     .handler = Unwatch,
     .arity = 1,
     .flags = kControl,
     .acl = commands::kAclTransaction,
     .group = "transactions",
     .since = "2.2.0",
     .summary = "Forgets all watched keys.",
     .complexity = "O(1)",
     .reply = "OK",
     .example = "UNWATCH"},
};

}  // namespace

std::span<const commands::CommandSpec> TransactionCommands() { return kTransactionRows; }

}  // namespace sava::engine
