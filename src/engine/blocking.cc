// The engine's side of blocking commands: who waits, who is served when.
//
// Whatever changes a key marks it ready when somebody waits for it (EngineContext::NoteChange). At
// the end of the whole command or EXEC, its locks still held, the waiters of ready keys are served
// in order of arrival by running their commands again on this thread; their replies go to their own
// loops by mail. A waiter whose command has further keys is tried after the locks are given back,
// with all of its own, before this thread goes on to anything else.
#include "engine/blocking.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "engine/engine_context.h"

namespace sava::engine {

using commands::Command;
using keyspace::Keyspace;

// ---- waiters and lines ----

Waiter::Taken Waiter::Take() {
  State seen = State::kWaiting;
  while (true) {
    if (state.compare_exchange_strong(seen, State::kServing)) return Taken::kYes;
    if (seen == State::kClaimed) return Taken::kGone;
    if (seen == State::kMissed) return Taken::kBusy;
    if (seen == State::kServing && state.compare_exchange_strong(seen, State::kMissed)) {
      return Taken::kBusy;
    }
    seen = State::kWaiting;
  }
}

Waiter::Taken Waiter::PutBack() {
  State seen = State::kServing;
  if (state.compare_exchange_strong(seen, State::kWaiting)) return Taken::kYes;
  if (seen == State::kMissed && state.compare_exchange_strong(seen, State::kWaiting)) {
    return Taken::kBusy;
  }
  return Taken::kGone;
}

size_t WaitLine::After(uint64_t order) const {
  // Mostly it is about the first of a long line.
  if (waiters.empty() || order < waiters.front()->order) return 0;
  if (order == waiters.front()->order) return 1;
  const auto at =
      std::upper_bound(waiters.begin(), waiters.end(), order,
                       [](uint64_t value, const WaiterPtr& one) { return value < one->order; });
  return static_cast<size_t>(at - waiters.begin());
}

WaitLine* WaitLines::Find(int db, size_t stripe, std::string_view key) {
  Lines& lines = stripes_[stripe].lines;
  if (lines.empty()) return nullptr;
  const auto it = lines.find(NameView{db, key});
  return it == lines.end() ? nullptr : &it->second;
}

void WaitLines::Add(int db, size_t stripe, std::string_view key, const WaiterPtr& waiter) {
  Lines& lines = stripes_[stripe].lines;
  auto it = lines.find(NameView{db, key});
  if (it != lines.end() && it->second.waiters.back() == waiter) return;
  if (it == lines.end()) {
    WaitLine fresh;
    fresh.place.push_back({db, stripe, std::string(key)});
    fresh.waiters.push_back(waiter);
    it = lines.emplace(Name{db, std::string(key)}, std::move(fresh)).first;
    keys_.fetch_add(1, std::memory_order_relaxed);
  } else {
    it->second.waiters.push_back(waiter);
  }
  WaitLine& line = it->second;
  waiter->lines.fetch_add(1, std::memory_order_relaxed);
  if (waiter->on_deletion && line.on_deletion++ == 0) {
    on_deletion_.fetch_add(1, std::memory_order_relaxed);
  }
}

void WaitLines::Erase(size_t stripe, Lines::iterator it, size_t position) {
  WaitLine& line = it->second;
  Waiter& waiter = *line.waiters[position];
  waiter.lines.fetch_sub(1, std::memory_order_release);
  if (waiter.on_deletion && --line.on_deletion == 0) {
    on_deletion_.fetch_sub(1, std::memory_order_relaxed);
  }
  line.waiters.erase(line.waiters.begin() + static_cast<ptrdiff_t>(position));
  if (!line.waiters.empty()) return;
  stripes_[stripe].lines.erase(it);
  keys_.fetch_sub(1, std::memory_order_relaxed);
}

void WaitLines::Remove(int db, size_t stripe, std::string_view key, const Waiter& waiter) {
  const auto it = stripes_[stripe].lines.find(NameView{db, key});
  if (it == stripes_[stripe].lines.end()) return;
  const size_t after = it->second.After(waiter.order);
  if (after > 0 && it->second.waiters[after - 1].get() == &waiter) Erase(stripe, it, after - 1);
}

void WaitLines::ForEach(int db, size_t stripe,
                        const std::function<void(const std::string& key, WaitLine& line)>& visit) {
  for (auto& [name, line] : stripes_[stripe].lines) {
    if (name.db == db) visit(name.key, line);
  }
}

// ---- going to sleep ----

void Engine::Block(Lane& lane, Client& client, const Command& command, commands::Args args,
                   const commands::Context::BlockRequest& request) {
  if (!request.args.empty()) args = request.args;
  auto waiter = std::make_shared<Waiter>();
  waiter->order = next_waiter_.fetch_add(1, std::memory_order_relaxed);
  waiter->client = client.id;
  waiter->lane = lane.index;
  waiter->token = ++client.block_token;
  waiter->db = client.db;
  waiter->resp = client.resp;
  waiter->flags = client.flags & kClientNoTouch;
  waiter->deadline_ms = request.deadline_ms;
  waiter->wake_at_ms.store(request.wake_at_ms, std::memory_order_relaxed);
  waiter->reply = request.reply;
  waiter->on_deletion = request.on_deletion || command.spec->name == "xreadgroup";
  waiter->type = request.type;
  waiter->command = &command;
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
    waiter->keys.push_back({keep(key), Keyspace::StripeOf(keyspace_.Hash(key))});
  }
  lane.key_indexes.clear();
  waiter->needs_all = commands::KeyIndexes(command, args, &lane.key_indexes) &&
                      lane.key_indexes.size() > request.keys.size();
  client.waiter = waiter;
  try {
    for (const Waiter::Key& key : waiter->keys) {
      waits_.Add(client.db, key.stripe, key.name, waiter);
    }
    Arm(lane, client);
  } catch (const std::bad_alloc&) {  // it waits nowhere
    for (const Waiter::Key& key : waiter->keys) {
      waits_.Remove(client.db, key.stripe, key.name, *waiter);
    }
    client.waiter = nullptr;
    throw;
  }
  client.set(kClientBlocked);
  client.block_deadline_ms = request.deadline_ms;
  client.on_timeout = nullptr;
}

// Sets the alarm of a waiting client. On its lane's thread.
void Engine::Arm(Lane& lane, Client& client) {
  int64_t at = INT64_MAX;
  if (client.waiter != nullptr) {
    const int64_t wake = client.waiter->wake_at_ms.load(std::memory_order_relaxed);
    if (client.waiter->deadline_ms != 0) at = client.waiter->deadline_ms;
    if (wake != 0) at = std::min(at, wake);
  }
  SetAlarm(lane, client, at);
}

void Engine::SetAlarm(Lane& lane, Client& client, int64_t at) {
  if (at == client.alarm_ms) return;
  // The place of the old alarm is the new one's: only the first takes memory.
  auto node = lane.alarms.extract({client.alarm_ms, client.id});
  if (at == INT64_MAX) {
    client.alarm_ms = at;
  } else if (node.empty()) {
    lane.alarms.emplace(std::pair{at, client.id}, &client);
    client.alarm_ms = at;
  } else {
    client.alarm_ms = at;
    node.key().first = at;
    lane.alarms.insert(std::move(node));
  }
}

// ---- waking up ----

void Engine::MarkReady(Lane& lane, int db, size_t stripe, std::string_view key, bool gone) {
  WaitLine* line = waits_.Find(db, stripe, key);
  if (line == nullptr || line->ready || (gone && line->on_deletion == 0)) return;
  line->ready = true;
  lane.ready.splice(lane.ready.end(), line->place);
}

void Engine::MarkAllReady(Lane& lane, int db, bool gone) {
  if (!waits_.any()) return;
  for (size_t stripe = 0; stripe < Keyspace::kStripes; ++stripe) {
    waits_.ForEach(db, stripe, [&](const std::string&, WaitLine& line) {
      if (line.ready || (gone && line.on_deletion == 0)) return;
      line.ready = true;
      lane.ready.splice(lane.ready.end(), line.place);
    });
  }
}

void Engine::ServeEverybody(Lane& lane) {
  for (int db = 0; db < keyspace_.databases(); ++db) MarkAllReady(lane, db, false);
  ServeReady(lane);
  RunRetries(lane);
}

void Engine::ServeReadyKeys(Lane& lane) {
  // What a long command has made may have expired by its end.
  lane.now_ms = clock_->WallMillis();
  while (!lane.ready.empty()) {
    std::list<ReadyKey> place;
    place.splice(place.end(), lane.ready, lane.ready.begin());
    const ReadyKey& key = place.front();
    WaitLine* line = waits_.Find(key.db, key.stripe, key.key);
    if (line == nullptr) continue;
    line->ready = false;
    try {
      ServeLine(lane, key.db, {key.key, key.stripe}, 0);
    } catch (const std::bad_alloc&) {  // nothing was taken: they wait for the key's next change
    }
    line = waits_.Find(key.db, key.stripe, key.key);
    if (line == nullptr || !line->place.empty()) continue;
    // Changed again by those who were served.
    std::list<ReadyKey>& home = line->ready ? lane.ready : line->place;
    home.splice(home.end(), place);
  }
}

// Serves the waiters that came after `order`. REQUIRES: the key's lock.
void Engine::ServeLine(Lane& lane, int db, const Waiter::Key& key, uint64_t order) {
  const WaitLine* line = waits_.Find(db, key.stripe, key.name);
  if (line == nullptr) return;
  size_t at = line->After(order);
  while (line != nullptr && at < line->waiters.size()) {
    const commands::Value value = lane.serving->Glance(db, key.name);
    if (!value && line->on_deletion == 0) return;
    const WaiterPtr waiter = line->waiters[at];
    if (!waiter->Wants(value) && waiter->waiting()) {
      ++at;
      continue;
    }
    if (waiter->needs_all && waiter->waiting()) {
      const auto own = std::ranges::find(waiter->keys, key.name, &Waiter::Key::name);
      lane.retries.push_back({.waiter = waiter, .key = *own});
      return;
    }
    if (Serve(lane, *waiter, key) == Waiter::Taken::kGone) {
      line = waits_.Find(db, key.stripe, key.name);
    } else {
      ++at;
    }
  }
}

// Runs the waiter's command again. kGone: it waits no longer, and has left the line of `key`, or
// all of its lines; kYes: it was tried and waits on; kBusy: another thread is at it.
// REQUIRES: the lock of `key`, or of all its keys.
Waiter::Taken Engine::Serve(Lane& lane, Waiter& waiter, std::optional<Waiter::Key> key) {
  const Waiter::Taken taken = TryServe(lane, waiter, key);
  if (taken != Waiter::Taken::kGone) return taken;
  if (key.has_value()) {
    waits_.Remove(waiter.db, key->stripe, key->name, waiter);
  } else {
    for (const Waiter::Key& one : waiter.keys) {
      waits_.Remove(waiter.db, one.stripe, one.name, waiter);
    }
  }
  // Only now: its own loop finds it in no line that it would have to lock.
  if (!lane.served.empty()) {
    lane.served.front().ticket = lane.seen + 1;
    PostTo(lane, waiter, std::exchange(lane.served, {}));
  }
  return taken;
}

Waiter::Taken Engine::TryServe(Lane& lane, Waiter& waiter, std::optional<Waiter::Key> key) {
  // What will tell of it, and log it, is made before anything is taken for it.
  constexpr size_t kEffects = 1024;
  lane.serving->ExpectRecord(2 * waiter.words.size() + 32 * waiter.args.size() + kEffects);
  auto message = std::make_shared<Message>();
  std::list<Mail> mail;
  mail.push_back({Mail::Kind::kReply, waiter.client, message, waiter.token});
  if (const Waiter::Taken taken = waiter.Take(); taken != Waiter::Taken::kYes) return taken;
  Client& stand_in = *lane.stand_in;
  stand_in.id = waiter.client;
  stand_in.db = waiter.db;
  stand_in.resp = waiter.resp;
  stand_in.flags = waiter.flags;
  EngineContext& context = *lane.serving;
  const uint64_t start = base::Ticks();
  context.Begin(stand_in, *waiter.command, waiter.args, {});
  context.BeginServing(&waiter, key.has_value() ? std::optional(key->name) : std::nullopt);
  Handle(context, stand_in, *waiter.command);
  if (context.blocked()) {
    stand_in.out.Consume(stand_in.out.pending());
    const Waiter::Taken put = waiter.PutBack();
    if (put != Waiter::Taken::kBusy) return put;
    lane.retries.push_back({.waiter = waiter.shared_from_this()});
    return Waiter::Taken::kYes;
  }
  waiter.state.store(Waiter::State::kClaimed, std::memory_order_release);
  const auto nanos =
      static_cast<uint64_t>(static_cast<double>(base::Ticks() - start) * nanos_per_tick_);
  CountAnswered(lane, *waiter.command, nanos, context.reply());
  waiter.nanos = std::max<uint64_t>(nanos, 1);
  if (stand_in.out.over()) {
    stand_in.out = protocol::OutBuffer();
    protocol::Reply(&stand_in.out, 2).Error(commands::errors::kNoMemory);
  }
  message->out = std::exchange(stand_in.out, {});
  lane.served = std::move(mail);
  return Waiter::Taken::kGone;
}

// One key after the other. REQUIRES: all its keys are locked.
Waiter::Taken Engine::ServeAnyKey(Lane& lane, Waiter& waiter) {
  for (const Waiter::Key& key : waiter.keys) {
    if (!waiter.Wants(lane.serving->Glance(waiter.db, key.name))) continue;
    if (Serve(lane, waiter, key) == Waiter::Taken::kGone) return Waiter::Taken::kGone;
  }
  return Waiter::Taken::kYes;
}

void Engine::PostTo(Lane& lane, const Waiter& waiter, Mail::Kind kind,
                    std::shared_ptr<const Message> message) {
  std::list<Mail> mail;
  mail.push_back({kind, waiter.client, std::move(message), waiter.token});
  PostTo(lane, waiter, std::move(mail));
}

void Engine::PostTo(Lane& lane, const Waiter& waiter, std::list<Mail>&& mail) {
  if (waiter.lane == lane.index && lane.in_round) {
    // This thread looks into its mailbox before it sleeps.
    lane.own_mail = true;
    lane.mailbox.PostQuietly(std::move(mail));
  } else {
    lanes_[waiter.lane]->mailbox.Post(std::move(mail));
  }
}

void Engine::CountAnswered(Lane& lane, const Command& command, uint64_t nanos,
                           const protocol::Reply& reply) {
  lane.stats.commands.Add();
  CommandStats& stats = lane.stats.by_command[static_cast<size_t>(command.id)];
  stats.calls.Add();
  stats.nanos.Add(nanos);
  if (settings_->latency_tracking) stats.Record(nanos);
  if (!reply.had_error()) return;
  stats.failed.Add();
  lane.stats.error_replies.Add();
  errors_.Add(reply.error_code());
}

// Tries waiters that need all their locks. REQUIRES: inside the gate; no stripe is held that is not
// the lane's held_stripe.
void Engine::RunRetries(Lane& lane) {
  if (lane.retries.empty()) return;
  ReleaseHeld(lane);
  // What is served may add to them.
  for (size_t i = 0; i < lane.retries.size(); ++i) {
    const Retry retry = lane.retries[i];
    LockSet set;
    try {
      lane.key_hashes.clear();
      AddKeys(lane, *retry.waiter->command, retry.waiter->args, &set);
    } catch (const std::bad_alloc&) {  // nothing was taken: it waits on
      continue;
    }
    for (const Waiter::Key& key : retry.waiter->keys) set.Add(key.stripe);
    const bool nested = lane.exclusive;
    if (!nested) LockPatiently(lane, set);
    const uint64_t wrote = lane.stand_in->wrote;
    try {
      RunRetry(lane, retry);
    } catch (const std::bad_alloc&) {  // the same
    }
    ServeReadyKeys(lane);
    NoteTold(lane, *lane.stand_in, lane.key_hashes, wrote);
    if (!nested) UnlockAll(lane, set);
  }
  lane.retries.clear();
}

// REQUIRES: all keys of its waiter are locked.
void Engine::RunRetry(Lane& lane, const Retry& retry) {
  Waiter& waiter = *retry.waiter;
  const Waiter::Taken left = waiter.needs_all || retry.by_time ? Serve(lane, waiter, std::nullopt)
                                                               : ServeAnyKey(lane, waiter);
  if (left == Waiter::Taken::kGone) {
    for (const Waiter::Key& key : waiter.keys) {
      waits_.Remove(waiter.db, key.stripe, key.name, waiter);
    }
  }
  if (!retry.key) return;
  ServeLine(lane, waiter.db, *retry.key, left == Waiter::Taken::kGone ? 0 : waiter.order);
}

void Engine::LockPatiently(Lane& lane, const LockSet& set) {
  if (set.all || std::popcount(set.bits[0]) + std::popcount(set.bits[1]) != 1) {
    Lock(lane, set);
    return;
  }
  const int low = std::countr_zero(set.bits[0]);
  keyspace_.stripe(static_cast<size_t>(low < 64 ? low : 64 + std::countr_zero(set.bits[1])))
      .Lock(&lane.seen);
}

void Engine::UnlockAll(Lane& lane, const LockSet& set) {
  if (set.all || std::popcount(set.bits[0]) + std::popcount(set.bits[1]) != 1) {
    Unlock(lane, set);
    return;
  }
  const int low = std::countr_zero(set.bits[0]);
  keyspace_.stripe(static_cast<size_t>(low < 64 ? low : 64 + std::countr_zero(set.bits[1])))
      .Unlock(lane.seen);
}

// ---- the end of waiting ----

// The client goes on. On its lane's thread; its waiter is claimed.
void Engine::Release(Lane& lane, Client& client, const Message& message) {
  const size_t mark = client.out.Mark();
  client.out.Append(message.resp2);
  client.out.Append(message.out);
  if (client.out.over()) client.set(kClientCloseNow);
  FinishReply(client, mark);
  if (client.waiter->lines.load(std::memory_order_acquire) > 0) {
    lane.leaving.push_back(std::move(client.waiter));
  }
  client.waiter = nullptr;
  SetAlarm(lane, client, INT64_MAX);
  client.last_active_ms = clock_->WallMillis();
  client.block_deadline_ms = 0;
  client.set(kClientBlocked, false);
  lane.resumed.push_back(&client);
}

// Takes a claimed waiter out of all lines. REQUIRES: no stripe is held, or the gate is closed.
void Engine::LeaveLines(Lane& lane, const Waiter& waiter) {
  if (waiter.lines.load(std::memory_order_acquire) == 0) return;
  if (!lane.exclusive) ReleaseHeld(lane);
  for (const Waiter::Key& key : waiter.keys) {
    keyspace::Stripe& stripe = keyspace_.stripe(key.stripe);
    if (!lane.exclusive) stripe.Lock(&lane.seen);
    waits_.Remove(waiter.db, key.stripe, key.name, waiter);
    if (!lane.exclusive) stripe.Unlock(lane.seen);
  }
}

std::string Engine::TimeoutText(const Waiter& waiter) {
  protocol::OutBuffer out;
  protocol::Reply reply(&out, waiter.resp);
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

bool Engine::Unblock(Lane& lane, Client& client, bool with_error) {
  if (client.waiter == nullptr || !client.waiter->Claim()) return false;
  const WaiterPtr waiter = client.waiter;
  auto message = std::make_shared<Message>();
  protocol::OutBuffer out;
  protocol::Reply reply(&out, waiter->resp);
  if (with_error) {
    reply.Error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
    message->resp2 = out.Since(0);
  } else {
    message->resp2 = TimeoutText(*waiter);
  }
  CountAnswered(lane, *waiter->command, 0, reply);
  LeaveLines(lane, *waiter);
  PostTo(lane, *waiter, Mail::Kind::kReply, std::move(message));
  return true;
}

void Engine::ForgetWaiter(Lane& lane, Client& client) {
  SetAlarm(lane, client, INT64_MAX);
  if (client.waiter == nullptr) return;
  client.waiter->state.exchange(Waiter::State::kClaimed);
  LeaveLines(lane, *client.waiter);
  client.waiter = nullptr;
}

// Clients whose time is up are answered; those whose moment has come are tried again.
void Engine::RingAlarms(Lane& lane) {
  if (lane.leaving.empty() && lane.alarms.empty()) return;
  const int64_t now = clock_->WallMillis();
  const bool due = !lane.alarms.empty() && lane.alarms.begin()->first.first <= now;
  if (lane.leaving.empty() && !due) return;
  BeginBatch(lane);
  for (const WaiterPtr& waiter : std::exchange(lane.leaving, {})) LeaveLines(lane, *waiter);
  std::vector<std::pair<uint64_t, uint64_t>> tried;  // client and token
  while (!lane.alarms.empty() && lane.alarms.begin()->first.first <= now) {
    Client& client = *lane.alarms.begin()->second;
    const WaiterPtr waiter = client.waiter;
    if (waiter->deadline_ms != 0 && waiter->deadline_ms <= now) {
      if (!waiter->Claim()) {
        SetAlarm(lane, client, now + 1);  // its answer is on its way
        continue;
      }
      protocol::Reply none(nullptr, waiter->resp);
      CountAnswered(lane, *waiter->command, 0, none);
      LeaveLines(lane, *waiter);
      Message message;
      message.resp2 = TimeoutText(*waiter);
      Release(lane, client, message);
      continue;
    }
    const bool writes = waiter->command->has(commands::kWrite | commands::kMayReplicate);
    if (paused(writes, now) || loading() || (writes && refusing_.load(std::memory_order_relaxed))) {
      const int64_t later = now + 100;
      SetAlarm(lane, client,
               waiter->deadline_ms == 0 ? later : std::min(waiter->deadline_ms, later));
      continue;
    }
    SetAlarm(lane, client, INT64_MAX);
    tried.emplace_back(client.id, client.block_token);
    lane.retries.push_back({.waiter = waiter, .by_time = true});
  }
  RunRetries(lane);
  for (const auto& [id, token] : tried) {
    const auto it = lane.clients.find(id);
    if (it == lane.clients.end() || it->second->block_token != token) continue;
    Client& client = *it->second;
    if (client.waiter == nullptr) continue;
    Arm(lane, client);
    // A moment that has passed again and again shall not keep the loop busy.
    if (client.alarm_ms <= now) SetAlarm(lane, client, now + 1);
  }
  EndBatch(lane);
}

}  // namespace sava::engine
