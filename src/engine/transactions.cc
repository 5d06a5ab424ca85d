#include "engine/transactions.h"

#include <new>
#include <utility>

#include "engine/client_list.h"
#include "engine/engine.h"
#include "engine/engine_context.h"

namespace sava::engine {

using commands::Command;
using commands::Context;
using keyspace::Keyspace;

void Transactions::Queue(Client& client, const Command& command, commands::Args args) {
  QueuedCommand queued;
  queued.command = &command;
  size_t bytes = 0;
  for (const std::string_view arg : args) {
    queued.args.emplace_back(arg);
    bytes += sizeof(std::string) + arg.size();
  }
  client.transaction.queue.push_back(std::move(queued));
  client.transaction.queue_bytes += bytes;
  client.activity.last_command = &command;
  client.out.Append("+QUEUED\r\n");
}

bool Transactions::WatchedKeysChanged(const Lane& lane, Client& client) {
  if (client.transaction.watcher.dirty.load(std::memory_order_acquire)) return true;
  for (const WatchedKey& watched : client.transaction.watched) {
    if (!IsExpired(engine_.keyspace(), lane.now_ms, watched.db, watched.key)) continue;
    // Expired since it was watched, but not removed yet.
    bool was_expired = false;
    engine_.keyspace()
        .stripe(Keyspace::StripeOf(engine_.keyspace().Hash(watched.key)))
        .watches.ForEach(watched.db,
                         [&](std::string_view key, keyspace::Watcher* watcher, bool* expired) {
                           if (watcher == &client.transaction.watcher && key == watched.key)
                             was_expired = *expired;
                         });
    if (!was_expired) return true;
  }
  return false;
}

void Transactions::ForgetWatches(Client& client) {
  for (const WatchedKey& watched : client.transaction.watched) {
    engine_.keyspace()
        .stripe(Keyspace::StripeOf(engine_.keyspace().Hash(watched.key)))
        .watches.Remove(watched.db, watched.key, &client.transaction.watcher);
    UncountName(client, watched.key);
  }
  client.transaction.watched.clear();
  client.transaction.watcher.dirty.store(false, std::memory_order_relaxed);
}

void Transactions::Unwatch(Lane& lane, Client& client) {
  if (lane.batch.busy) {  // the thread that is busy takes no locks
    if (!client.transaction.watched.empty()) lane.batch.unwatch.push_back(&client);
    return;
  }
  for (const WatchedKey& watched : client.transaction.watched) {
    const size_t home = Keyspace::StripeOf(engine_.keyspace().Hash(watched.key));
    const StripeGuard guard(lane.locks, home);
    engine_.keyspace().stripe(home).watches.Remove(watched.db, watched.key,
                                                   &client.transaction.watcher);
    UncountName(client, watched.key);
  }
  client.transaction.watched.clear();
  client.transaction.watcher.dirty.store(false, std::memory_order_relaxed);
}

void Transactions::Discard(Lane& lane, Client& client) {
  client.transaction.queue.clear();
  client.transaction.queue_bytes = 0;
  client.set(kClientMulti | kClientDirtyExec, false);
  Unwatch(lane, client);
}

bool Transactions::Run(Lane& lane, Client& client, const Command& exec, commands::Args args) {
  protocol::Reply reply(&client.out, client.resp);
  Observer& observer = engine_.observer();
  const auto answered = [&] {
    observer.FeedMonitors(client, args);
    CommandStats& stats = lane.stats.by_command[static_cast<size_t>(exec.id)];
    stats.calls.Add();
    lane.stats.commands.Add();
    if (reply.had_error()) stats.failed.Add();
    return true;
  };
  const auto refuse = [&](std::string_view error) {
    reply.Error(error);
    observer.errors().Add(reply.error_code());
    lane.stats.error_replies.Add();
    return answered();
  };
  if (!client.has(kClientMulti)) return refuse("ERR EXEC without MULTI");
  if (client.has(kClientDirtyExec)) {
    Discard(lane, client);
    return refuse("EXECABORT Transaction discarded because of previous errors.");
  }
  Views views;
  views.reserve(client.transaction.queue.size());
  for (const QueuedCommand& queued : client.transaction.queue) {
    views.emplace_back(queued.args.begin(), queued.args.end());
  }
  LockSet set = LocksOf(lane, client, views);
  LargeArguments large;  // freed when the locks are given back
  for (const auto& words : views) large.Copy(words);
  if (!lane.locks.Lock(set)) {
    if (engine_.admission().busy()) {
      engine_.admission().Reject(lane, client, &exec, engine_.admission().busy_error());
      return answered();
    }
    lane.stats.parked.Add();
    lane.waits.Add(client, kClientParked);
    return false;
  }
  if (lane.exclusive() && engine_.admission().ChangedMeanwhile(lane, client, exec, args)) {
    lane.locks.Unlock(set);
    return false;
  }
  const uint64_t wrote = client.sending.wrote;
  bool changed = WatchedKeysChanged(lane, client);
  // Its own commands find nothing watched.
  std::vector<WatchedKey> watched = std::exchange(client.transaction.watched, {});
  Queued queue = std::exchange(client.transaction.queue, {});
  if (!changed) {
    lane.batch.locked = &set;
    if (!RunQueued(lane, client, exec, args, queue, views, &large)) {
      engine_.waiting().ServeReady(lane);
      lane.locks.Unlock(set);
      set.AddAll();
      lane.locks.CloseGate();
      client.transaction.watched = std::move(watched);
      if (engine_.admission().ChangedMeanwhile(lane, client, exec, args)) {
        client.transaction.queue = std::move(queue);
        client.set(kClientMulti);
        lane.batch.locked = nullptr;
        lane.locks.Unlock(set);
        return false;
      }
      changed = WatchedKeysChanged(lane, client);
      watched = std::exchange(client.transaction.watched, {});
      if (!changed) RunQueued(lane, client, exec, args, queue, views, &large);
    }
    lane.batch.locked = nullptr;
    engine_.waiting().ServeReady(lane);
  }
  client.transaction.watched = std::move(watched);
  ForgetWatches(client);
  if (changed) reply.NullArray();
  client.set(kClientMulti, false);
  client.transaction.queue_bytes = 0;
  if (set.all()) lane.batch.key_hashes.clear();
  if (!set.empty()) {
    engine_.changes().Note(lane, client, lane.batch.key_hashes, wrote);
    lane.locks.Unlock(set);
  }
  engine_.waiting().RunRetries(lane);
  client.activity.last_command = &exec;
  return answered();
}

void Transactions::UnwatchDue(Lane& lane) {
  for (Client* const client : std::exchange(lane.batch.unwatch, {})) Unwatch(lane, *client);
}

LockSet Transactions::LocksOf(Lane& lane, const Client& client, const Views& views) {
  LockSet set;
  lane.batch.key_hashes.clear();
  for (size_t i = 0; i < views.size(); ++i) {
    const Command& command = *client.transaction.queue[i].command;
    engine_.runner().AddKeys(lane, command, views[i], &set);
    if (command.is(commands::kRunsScript) && engine_.scripting() != nullptr &&
        engine_.scripting()->PrepareQueued(lane, command, views[i]) == commands::LockClass::kAll) {
      set.AddAll();
    }
    // Commands over the keyspace without keys of their own lock as they go: only alone is that
    // safe.
    if (command.lock == commands::LockClass::kNone &&
        command.has(commands::kReadonly | commands::kWrite)) {
      set.AddAll();
    }
  }
  for (const WatchedKey& watched : client.transaction.watched) {
    const uint64_t hash = engine_.keyspace().Hash(watched.key);
    set.Add(Keyspace::StripeOf(hash));
    lane.batch.key_hashes.push_back(hash);
  }
  return set;
}

// The queue's commands are parts of the invocation of EXEC.
bool Transactions::RunQueued(Lane& lane, Client& client, const Command& exec, commands::Args args,
                             const Queued& queue, const Views& views, LargeArguments* large) {
  protocol::Reply reply(&client.out, client.resp);
  const size_t mark = reply.Mark();
  const int db = client.db;
  TransactionProgress& progress = lane.batch.transaction;
  progress = {};
  client.set(kClientMulti, false);
  reply.Array(static_cast<int64_t>(queue.size()));
  client.set(kClientInExec);
  Invocation invocation(lane, {.client = &client, .command = &exec, .args = args});
  for (size_t i = 0; i < queue.size() && !progress.again; ++i) {
    // The answer will not be read.
    if (client.out.over() && !queue[i].command->has(commands::kWrite)) continue;
    if (client.acl != nullptr) [[unlikely]] {
      if (!engine_.admission().StillAllowed(lane, client, *queue[i].command, views[i])) continue;
    }
    // A script says so itself.
    const Command& command = *queue[i].command;
    const bool reads = command.has(commands::kReadonly) && !command.has(commands::kMayReplicate);
    if (!reads && !command.is(commands::kRunsScript)) progress.left = true;
    engine_.runner().Call(lane, {.client = &client,
                                 .command = &command,
                                 .args = views[i],
                                 .large = large,
                                 .outer = &invocation});
  }
  if (progress.again) invocation.effects().DropLines(0);
  try {
    invocation.End();
  } catch (const std::bad_alloc&) {
    client.out.TruncateTo(mark);
    reply.Error(commands::errors::kNoMemory);
    invocation.Abandon();
    engine_.memory().NoteExhausted();
  }
  client.set(kClientInExec, false);
  if (progress.again) {
    client.out.TruncateTo(mark);
    client.db = db;
  }
  return !progress.again;
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
  ec.engine().transactions().Discard(ec.lane(), ec.client());
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
  if (!client.transaction.watcher.dirty.load(std::memory_order_acquire)) {
    for (size_t i = 1; i < ctx.argc(); ++i) {
      const std::string_view key = ctx.arg(i);
      bool known = false;
      for (const WatchedKey& watched : client.transaction.watched) {
        known = known || (watched.db == client.db && watched.key == key);
      }
      if (known) continue;
      client.transaction.watched.push_back({client.db, std::string(key)});
      CountName(client, key);
      keyspace.stripe(Keyspace::StripeOf(keyspace.Hash(key)))
          .watches.Add(client.db, key, &client.transaction.watcher,
                       IsExpired(keyspace, ec.lane().now_ms, client.db, key));
    }
  }
  ctx.reply().Ok();
}

void Unwatch(Context& ctx) {
  auto& ec = EngineContext::Of(ctx);
  if (!ec.client().has(kClientInExec)) ec.engine().transactions().Unwatch(ec.lane(), ec.client());
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
     .traits = commands::kInsideMulti,
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
     .traits = commands::kRunsQueue | commands::kEndsQueue | commands::kInsideMulti,
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
     .traits = commands::kEndsQueue | commands::kInsideMulti,
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
     .traits = commands::kInsideMulti,
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
