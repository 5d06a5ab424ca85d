// Clients that wait for keys: how they begin to wait, and when they are served.
//
// A change of a key marks it ready when a client waits for it (Keys::NoteChange). At
// the end of the whole command or EXEC, its locks still held, the waiters of ready keys are served
// in order of arrival by running their commands again on this thread; their replies go to their own
// loops by mail. A waiter whose command has further keys is tried after the locks are given back,
// with all of its own, before this thread goes on to anything else.
#include "engine/waiting.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/if_memory.h"
#include "engine/access_check.h"
#include "engine/engine.h"
#include "engine/engine_context.h"

namespace sava::engine {

using commands::Command;
using keyspace::Keyspace;

namespace {

// What the waiter is answered when its time is up.
std::string TimeoutText(const Waiter& waiter) {
  protocol::OutBuffer out;
  protocol::Reply reply(&out, waiter.asker.resp);
  switch (waiter.reply) {
    case Waiter::TimeoutReply::kNull:
      reply.Null();
      break;
    case Waiter::TimeoutReply::kNullArray:
      reply.NullArray();
      break;
    case Waiter::TimeoutReply::kEmptyArray:
      reply.Array(0);
      break;
  }
  return std::string(out.Since(0));
}

}  // namespace

// ---- going to sleep ----

void Waiting::Block(Lane& lane, Client& client, const Command& command, commands::Args args,
                    const commands::Context::BlockRequest& request) {
  if (!request.args.empty()) args = request.args;
  auto waiter = std::make_shared<Waiter>();
  waiter->order = next_waiter_.fetch_add(1, std::memory_order_relaxed);
  waiter->asker.client = client.id;
  waiter->asker.lane = lane.index;
  waiter->asker.token = ++client.wait.token;
  waiter->asker.db = client.db;
  waiter->asker.resp = client.resp;
  waiter->asker.flags = client.flags & kClientNoTouch;
  waiter->deadline_ms = request.deadline_ms;
  waiter->wake_at_ms.store(request.wake_at_ms, std::memory_order_relaxed);
  waiter->reply = request.reply;
  waiter->on_deletion = request.on_deletion;
  waiter->type = request.type;
  waiter->command = &command;
  waiter->asker.acl = client.acl;
  waiter->asker.tracks = client.tracking != nullptr && Tracking::Wants(client, command);
  size_t size = 0;
  for (const std::string_view arg : args) size += arg.size();
  for (const std::string_view key : request.keys) size += key.size();
  waiter->words.reserve(size);
  const auto keep = [&](std::string_view word) {
    const size_t at = waiter->words.size();
    waiter->words += word;
    return std::string_view(waiter->words).substr(at);
  };
  waiter->args.reserve(args.size());
  for (const std::string_view arg : args) waiter->args.push_back(keep(arg));
  waiter->keys.reserve(request.keys.size());
  for (const std::string_view key : request.keys) {
    waiter->keys.push_back({keep(key), Keyspace::StripeOf(engine_.keyspace().Hash(key))});
  }
  lane.batch.key_indexes.clear();
  waiter->needs_all = commands::KeyIndexes(command, args, &lane.batch.key_indexes) &&
                      lane.batch.key_indexes.size() > request.keys.size();
  client.wait.waiter = waiter;
  try {
    for (const Waiter::Key& key : waiter->keys) {
      lines_.Add(client.db, key.stripe, key.name, waiter);
    }
    Arm(lane, client);
  } catch (const std::bad_alloc&) {  // it waits nowhere
    for (const Waiter::Key& key : waiter->keys) {
      lines_.Remove(client.db, key.stripe, key.name, *waiter);
    }
    client.wait.waiter = nullptr;
    throw;
  }
  client.memory.argument_bytes = waiter->words.capacity() +
                                 waiter->args.capacity() * sizeof(std::string_view) +
                                 waiter->keys.capacity() * sizeof(Waiter::Key);
  client.set(kClientBlocked);
  client.wait.deadline_ms = request.deadline_ms;
  client.wait.on_timeout = nullptr;
}

void Waiting::Arm(Lane& lane, Client& client) {
  int64_t at = INT64_MAX;
  if (client.wait.waiter != nullptr) {
    const int64_t wake = client.wait.waiter->wake_at_ms.load(std::memory_order_relaxed);
    if (client.wait.waiter->deadline_ms != 0) at = client.wait.waiter->deadline_ms;
    if (wake != 0) at = std::min(at, wake);
  }
  lane.waits.SetAlarm(client, at);
}

// ---- waking up ----

void Waiting::MarkReady(Lane& lane, int db, size_t stripe, std::string_view key, bool gone) {
  WaitLine* line = lines_.Find(db, stripe, key);
  if (line == nullptr || line->ready || (gone && line->on_deletion == 0)) return;
  line->ready = true;
  lane.waits.ready_.splice(lane.waits.ready_.end(), line->place);
}

void Waiting::MarkAllReady(Lane& lane, int db, bool gone) {
  if (!lines_.any()) return;
  for (size_t stripe = 0; stripe < Keyspace::kStripes; ++stripe) {
    lines_.ForEach(db, stripe, [&](const std::string&, WaitLine& line) {
      if (line.ready || (gone && line.on_deletion == 0)) return;
      line.ready = true;
      lane.waits.ready_.splice(lane.waits.ready_.end(), line.place);
    });
  }
}

void Waiting::ServeEverybody(Lane& lane) {
  for (int db = 0; db < engine_.keyspace().databases(); ++db) MarkAllReady(lane, db, false);
  ServeReady(lane);
  RunRetries(lane);
  if (!lane.stale.empty()) engine_.tracking().Post(lane);  // the house lane may be in no batch
}

void Waiting::ServeReady(Lane& lane) {
  if (lane.waits.has_ready()) [[unlikely]]
    ServeReadyKeys(lane);
}

void Waiting::MailTaken(Lane& lane) { lane.waits.own_mail_ = false; }

void Waiting::ServeReadyKeys(Lane& lane) {
  // What a long command has made may have expired by its end.
  lane.now_ms = engine_.clock().WallMillis();
  while (!lane.waits.ready_.empty()) {
    std::list<ReadyKey> place;
    place.splice(place.end(), lane.waits.ready_, lane.waits.ready_.begin());
    const ReadyKey& key = place.front();
    WaitLine* line = lines_.Find(key.db, key.stripe, key.key);
    if (line == nullptr) continue;
    line->ready = false;
    try {
      ServeLine(lane, key.db, {key.key, key.stripe}, 0);
    } catch (const std::bad_alloc&) {  // nothing was taken: they wait for the key's next change
    }
    line = lines_.Find(key.db, key.stripe, key.key);
    if (line == nullptr || !line->place.empty()) continue;
    // Changed again by those that were served.
    std::list<ReadyKey>& home = line->ready ? lane.waits.ready_ : line->place;
    home.splice(home.end(), place);
  }
}

// Serves the waiters that came after `order`. REQUIRES: the key's lock.
void Waiting::ServeLine(Lane& lane, int db, const Waiter::Key& key, uint64_t order) {
  const WaitLine* line = lines_.Find(db, key.stripe, key.name);
  if (line == nullptr) return;
  size_t at = line->After(order);
  while (line != nullptr && at < line->waiters.size()) {
    const commands::Value value = Glance(engine_.keyspace(), lane.now_ms, db, key.name);
    if (!value && line->on_deletion == 0) return;
    const WaiterPtr waiter = line->waiters[at];
    if (!waiter->Wants(value) && waiter->waiting()) {
      ++at;
      continue;
    }
    if (waiter->needs_all && waiter->waiting()) {
      const auto own = std::ranges::find(waiter->keys, key.name, &Waiter::Key::name);
      lane.waits.retries_.push_back({.waiter = waiter, .key = *own});
      return;
    }
    if (Serve(lane, *waiter, key) == Waiter::Taken::kGone) {
      line = lines_.Find(db, key.stripe, key.name);
    } else {
      ++at;
    }
  }
}

// Runs the waiter's command again. kGone: it waits no longer, and has left the line of `key`, or
// all of its lines; kYes: it was tried and waits on; kBusy: another thread is at it.
// REQUIRES: the lock of `key`, or of all its keys.
Waiter::Taken Waiting::Serve(Lane& lane, Waiter& waiter, std::optional<Waiter::Key> key) {
  const Waiter::Taken taken = TryServe(lane, waiter, key);
  if (taken != Waiter::Taken::kGone) return taken;
  if (key.has_value()) {
    lines_.Remove(waiter.asker.db, key->stripe, key->name, waiter);
  } else {
    for (const Waiter::Key& one : waiter.keys) {
      lines_.Remove(waiter.asker.db, one.stripe, one.name, waiter);
    }
  }
  // Only now: its own loop finds it in no line that it would have to lock.
  if (!lane.waits.served_.empty()) {
    lane.waits.served_.front().ticket = lane.locks.seen() + 1;
    PostTo(lane, waiter, std::exchange(lane.waits.served_, {}));
  }
  return taken;
}

// Rules that have changed while it waited no longer allow its command: it is answered so.
bool Waiting::Forbidden(Lane& lane, Waiter& waiter, Client& stand_in) {
  stand_in.user = waiter.asker.acl->name;
  const Command& command = *waiter.command;
  const access::Verdict verdict = CheckAccess(stand_in, command, waiter.args);
  if (verdict.allowed()) return false;
  waiter.state.store(Waiter::State::kClaimed, std::memory_order_release);
  stand_in.activity.last_command = &command;
  NoteRefused(engine_, stand_in, command, waiter.args, verdict, AccessContext::kTopLevel,
              lane.now_ms);
  protocol::Reply reply(&stand_in.out, stand_in.resp);
  reply.Error(RefusalError(stand_in, command, waiter.args, verdict));
  engine_.observer().Rejected(lane, &command, reply);
  return true;
}

Waiter::Taken Waiting::TryServe(Lane& lane, Waiter& waiter, std::optional<Waiter::Key> key) {
  // What will tell of it, and log it, is made before anything is taken for it.
  if (journal::Journal& journal = engine_.journal(); journal.enabled()) {
    constexpr size_t kEffects = 1024;
    journal.Reserve(lane.index, 2 * waiter.words.size() + 32 * waiter.args.size() + kEffects);
  }
  auto message = std::make_shared<Message>();
  std::list<Mail> mail;
  mail.push_back({Mail::Kind::kReply, waiter.asker.client, message, waiter.asker.token});
  if (const Waiter::Taken taken = waiter.Take(); taken != Waiter::Taken::kYes) return taken;
  Client& stand_in = *lane.waits.stand_in_;
  stand_in.id = waiter.asker.client;
  stand_in.db = waiter.asker.db;
  stand_in.resp = waiter.asker.resp;
  stand_in.flags = waiter.asker.flags;
  stand_in.acl = waiter.asker.acl;
  if (waiter.asker.acl != nullptr) [[unlikely]] {
    if (Forbidden(lane, waiter, stand_in)) {
      message->out = std::exchange(stand_in.out, {});
      lane.waits.served_ = std::move(mail);
      return Waiter::Taken::kGone;
    }
  }
  const uint64_t start = base::Ticks();
  const Work work{.client = &stand_in,
                  .command = waiter.command,
                  .args = waiter.args,
                  .waiter = &waiter,
                  .ready_key = key.has_value() ? std::optional(key->name) : std::nullopt};
  Invocation invocation(lane, work);
  EngineContext context(invocation);
  engine_.runner().Handle(invocation, context);
  if (invocation.blocked()) {
    stand_in.out.Consume(stand_in.out.pending());
    const Waiter::Taken put = waiter.PutBack();
    if (put != Waiter::Taken::kBusy) return put;
    lane.waits.retries_.push_back({.waiter = waiter.shared_from_this()});
    return Waiter::Taken::kYes;
  }
  waiter.state.store(Waiter::State::kClaimed, std::memory_order_release);
  if (waiter.asker.tracks) engine_.tracking().NoteServed(lane, waiter, key ? &*key : nullptr);
  const auto nanos = engine_.observer().Nanos(base::Ticks() - start);
  engine_.observer().Answered(lane, *waiter.command, nanos, context.reply());
  waiter.nanos = std::max<uint64_t>(nanos, 1);
  if (stand_in.out.over()) {
    stand_in.out = protocol::OutBuffer();
    protocol::Reply(&stand_in.out, 2).Error(commands::errors::kNoMemory);
  }
  message->out = std::exchange(stand_in.out, {});
  lane.waits.served_ = std::move(mail);
  return Waiter::Taken::kGone;
}

// One key after the other. REQUIRES: all its keys are locked.
Waiter::Taken Waiting::ServeAnyKey(Lane& lane, Waiter& waiter) {
  for (const Waiter::Key& key : waiter.keys) {
    if (!waiter.Wants(Glance(engine_.keyspace(), lane.now_ms, waiter.asker.db, key.name))) continue;
    if (Serve(lane, waiter, key) == Waiter::Taken::kGone) return Waiter::Taken::kGone;
  }
  return Waiter::Taken::kYes;
}

void Waiting::PostTo(Lane& lane, const Waiter& waiter, Mail::Kind kind,
                     std::shared_ptr<const Message> message) {
  std::list<Mail> mail;
  mail.push_back({kind, waiter.asker.client, std::move(message), waiter.asker.token});
  PostTo(lane, waiter, std::move(mail));
}

void Waiting::PostTo(Lane& lane, const Waiter& waiter, std::list<Mail>&& mail) {
  if (waiter.asker.lane == lane.index && lane.locks.in_round()) {
    // This thread looks into its mailbox before it sleeps.
    lane.waits.own_mail_ = true;
    lane.mailbox.PostQuietly(std::move(mail));
  } else {
    engine_.lanes()[waiter.asker.lane]->mailbox.Post(std::move(mail));
  }
}

void Waiting::RunRetries(Lane& lane) {
  if (!lane.waits.has_retries()) return;
  // What is served may add to them.
  for (size_t i = 0; i < lane.waits.retries_.size(); ++i) {
    const Retry retry = lane.waits.retries_[i];
    LockSet set;
    try {
      lane.batch.key_hashes.clear();
      engine_.runner().AddKeys(lane, *retry.waiter->command, retry.waiter->args, &set);
    } catch (const std::bad_alloc&) {  // nothing was taken: it waits on
      continue;
    }
    for (const Waiter::Key& key : retry.waiter->keys) set.Add(key.stripe);
    const LockSetGuard guard(lane.locks, set);
    const uint64_t wrote = lane.waits.stand_in_->sending.wrote;
    try {
      RunRetry(lane, retry);
    } catch (const std::bad_alloc&) {  // the same
    }
    ServeReadyKeys(lane);
    engine_.changes().Note(lane, *lane.waits.stand_in_, lane.batch.key_hashes, wrote);
  }
  lane.waits.retries_.clear();
}

// REQUIRES: all keys of its waiter are locked.
void Waiting::RunRetry(Lane& lane, const Retry& retry) {
  Waiter& waiter = *retry.waiter;
  const Waiter::Taken left = waiter.needs_all || retry.by_time ? Serve(lane, waiter, std::nullopt)
                                                               : ServeAnyKey(lane, waiter);
  if (left == Waiter::Taken::kGone) {
    for (const Waiter::Key& key : waiter.keys) {
      lines_.Remove(waiter.asker.db, key.stripe, key.name, waiter);
    }
  }
  if (!retry.key) return;
  ServeLine(lane, waiter.asker.db, *retry.key, left == Waiter::Taken::kGone ? 0 : waiter.order);
}

// ---- the end of waiting ----

void Waiting::Answer(Lane& lane, Client& client, const Message& message) {
  const size_t mark = client.out.Mark();
  client.out.Append(message.resp2);
  client.out.Append(message.out);
  if (client.out.over()) client.set(kClientCloseNow);
  Runner::FinishReply(client, mark);
  if (client.wait.waiter->lines.load(std::memory_order_acquire) > 0) {
    lane.waits.leaving_.push_back(std::move(client.wait.waiter));
  }
  client.wait.waiter = nullptr;
  client.memory.argument_bytes = 0;
  lane.waits.SetAlarm(client, INT64_MAX);
  client.activity.last_active_ms = engine_.clock().WallMillis();
  client.wait.deadline_ms = 0;
  client.set(kClientBlocked, false);
  lane.waits.GoOn(client);
}

// Takes a claimed waiter out of all lines. REQUIRES: no stripe is held, or the gate is closed.
void Waiting::LeaveLines(Lane& lane, const Waiter& waiter) {
  if (waiter.lines.load(std::memory_order_acquire) == 0) return;
  for (const Waiter::Key& key : waiter.keys) {
    const StripeGuard guard(lane.locks, key.stripe);
    lines_.Remove(waiter.asker.db, key.stripe, key.name, waiter);
  }
}

bool Waiting::Unblock(Lane& lane, Client& client, bool with_error) {
  const WaiterPtr waiter = client.wait.waiter;
  if (waiter == nullptr) return false;
  // A waiter that is claimed must be answered, so all is made before.
  auto message = std::make_shared<Message>();
  protocol::OutBuffer out;
  protocol::Reply reply(&out, waiter->asker.resp);
  if (with_error) {
    reply.Error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
    message->resp2 = out.Since(0);
  } else {
    message->resp2 = TimeoutText(*waiter);
  }
  std::list<Mail> mail;
  mail.push_back(
      {Mail::Kind::kReply, waiter->asker.client, std::move(message), waiter->asker.token});
  if (!waiter->Claim()) return false;
  base::IfMemory([&] { engine_.observer().Answered(lane, *waiter->command, 0, reply); });
  LeaveLines(lane, *waiter);
  PostTo(lane, *waiter, std::move(mail));
  return true;
}

void Waiting::RoleChanged(Lane& lane) {
  engine_.ForEachLane([&](Lane& other) {
    for (auto& [id, client] : other.clients) {
      if (client->wait.waiter == nullptr || !client->wait.waiter->Claim()) continue;
      const WaiterPtr waiter = client->wait.waiter;
      auto message = std::make_shared<Message>();
      protocol::OutBuffer out;
      protocol::Reply reply(&out, waiter->asker.resp);
      reply.Error(
          "UNBLOCKED force unblock from blocking operation, instance state changed (master -> "
          "replica?)");
      message->resp2 = out.Since(0);
      engine_.observer().Answered(lane, *waiter->command, 0, reply);
      client->set(kClientCloseAfterReply);
      LeaveLines(lane, *waiter);
      PostTo(lane, *waiter, Mail::Kind::kReply, std::move(message));
    }
  });
}

void Waiting::Forget(Lane& lane, Client& client) {
  lane.waits.SetAlarm(client, INT64_MAX);
  if (client.wait.waiter == nullptr) return;
  client.wait.waiter->state.exchange(Waiter::State::kClaimed);
  LeaveLines(lane, *client.wait.waiter);
  client.wait.waiter = nullptr;
}

void Waiting::RingAlarms(Lane& lane) {
  if (lane.waits.leaving_.empty() && lane.waits.alarms_.empty()) return;
  const int64_t now = engine_.clock().WallMillis();
  if (lane.waits.leaving_.empty() && !lane.waits.due(now)) return;
  engine_.BeginBatch(lane);
  for (const WaiterPtr& waiter : std::exchange(lane.waits.leaving_, {})) LeaveLines(lane, *waiter);
  std::vector<std::pair<uint64_t, uint64_t>> tried;  // client and token
  while (lane.waits.due(now)) {
    Client& client = *lane.waits.alarms_.begin()->second;
    const WaiterPtr waiter = client.wait.waiter;
    if (waiter->deadline_ms != 0 && waiter->deadline_ms <= now) {
      if (!waiter->Claim()) {
        lane.waits.SetAlarm(client, now + 1);  // its answer is on its way
        continue;
      }
      protocol::Reply none(nullptr, waiter->asker.resp);
      engine_.observer().Answered(lane, *waiter->command, 0, none);
      LeaveLines(lane, *waiter);
      Message message;
      message.resp2 = TimeoutText(*waiter);
      Answer(lane, client, message);
      continue;
    }
    const bool writes = waiter->command->has(commands::kWrite | commands::kMayReplicate);
    if (!engine_.admission().MayRetry(writes, now)) {
      const int64_t later = now + 100;
      lane.waits.SetAlarm(client,
                          waiter->deadline_ms == 0 ? later : std::min(waiter->deadline_ms, later));
      continue;
    }
    lane.waits.SetAlarm(client, INT64_MAX);
    tried.emplace_back(client.id, client.wait.token);
    lane.waits.retries_.push_back({.waiter = waiter, .by_time = true});
  }
  RunRetries(lane);
  for (const auto& [id, token] : tried) {
    const auto it = lane.clients.find(id);
    if (it == lane.clients.end() || it->second->wait.token != token) continue;
    Client& client = *it->second;
    if (client.wait.waiter == nullptr) continue;
    Arm(lane, client);
    // A moment that has passed again and again shall not keep the loop busy.
    if (client.wait.alarm_ms <= now) lane.waits.SetAlarm(client, now + 1);
  }
  engine_.EndBatch(lane);
}

}  // namespace sava::engine
