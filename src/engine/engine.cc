#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <new>
#include <stdexcept>

#include "base/if_memory.h"
#include "base/prefetch.h"
#include "base/trim.h"
#include "engine/aging.h"
#include "engine/engine_context.h"

namespace sava::engine {

using commands::Command;
using commands::LockClass;
using keyspace::Keyspace;

namespace {

// A stripe held longer than this by someone else: the connection waits, the loop goes on.
constexpr int64_t kLockPatienceMicros = 50;
// Slow commands one behind the other: after so long other connections get their turn.
// Requests whose elements are fetched together.
constexpr size_t kLocksAhead = 1;
constexpr size_t kLookAhead = 16;
// Changed buckets of the limiter are written to their keys after this time, or by the next upkeep.
constexpr int64_t kBucketsWrittenMs = 50;
// Garbage above this is freed on the background thread.
constexpr size_t kFreeInline = 64 * 1024;
constexpr size_t kFreeInlineElements = 64;
// So many large values wait for the end of the round.
constexpr size_t kKeptGarbage = 64;
constexpr size_t kKeptHashes = 16 * 1024;
// Output of a client that has not authenticated, between two writes to its socket.
constexpr size_t kStrangerOutput = 16 * 1024;
// A multiple of the stripes.
constexpr size_t kChangeSlots = 64 * 1024;
static_assert(kChangeSlots % Keyspace::kStripes == 0);

// May be used by a RESP2 client that is subscribed.
bool AllowedWhileSubscribed(const Command& command) {
  const std::string_view name = command.spec->name;
  return name == "ping" || name == "quit" || name == "reset" ||
         ((command.spec->flags & commands::kPubsub) != 0 && (name.ends_with("subscribe")));
}

// Runs at once even while commands are being queued.
bool EndsOrGuardsQueue(const Command& command) {
  const std::string_view name = command.spec->name;
  return name == "exec" || name == "discard" || name == "multi" || name == "watch" ||
         name == "quit" || name == "reset";
}

// Whether the command, or with EXEC one of those it runs, has one of the flags.
bool Does(const Client& client, const Command& command, uint32_t flags) {
  if (command.spec->name != "exec") return command.has(flags);
  return std::ranges::any_of(
      client.queue, [flags](const QueuedCommand& queued) { return queued.command->has(flags); });
}

}  // namespace

Lane::Lane(Engine* engine_in, size_t lane_index, size_t command_count)
    : engine(engine_in), index(lane_index), stats(command_count), rng(base::SecureRandom64()) {
  context = std::make_unique<EngineContext>(this);
  serving = std::make_unique<EngineContext>(this);
  stand_in = std::make_unique<Client>();
  candidates.reserve(kCandidates + 1);  // eviction is not to take memory
  retries.reserve(kCandidates);         // nor who serves those who wait
}

Lane::~Lane() = default;

Engine::Engine(const Options& options, Settings* settings, const commands::CommandTable* table)
    : settings_(settings),
      table_(table),
      clock_(options.clock),
      keyspace_(options.lanes + 1 + kHelperLanes, static_cast<int>(settings->databases),
                options.hash_seed != 0 ? options.hash_seed : base::SecureRandom64()),
      snapshot_(&keyspace_, options.lanes),
      journal_(options.lanes + 1),
      limiter_(table),
      nanos_per_tick_(1000.0 / base::TicksPerMicro()) {
  std::vector<Mailbox*> mailboxes;
  for (size_t i = 0; i < options.lanes; ++i) {
    lanes_.push_back(std::make_unique<Lane>(this, i, table->by_id().size()));
    mailboxes.push_back(&lanes_.back()->mailbox);
  }
  house_lane_ = std::make_unique<Lane>(this, options.lanes, table->by_id().size());
  pubsub_ = std::make_unique<PubSub>(std::move(mailboxes));
  keyspace_.MakeTables(0, clock_->WallMillis());
}

Engine::~Engine() {
  for (auto& lane : lanes_) FreeGarbage(*lane);
  FreeGarbage(*house_lane_);
  background_.Drain();
}

// ---- gate and locks ----

void Engine::EnterGate(Lane& lane) { keyspace_.gate().Enter(lane.index); }

// Lets whoever wants to close the gate do so.
void Engine::StepAside(Lane& lane) {
  ReleaseHeld(lane);
  keyspace_.gate().Leave(lane.index);
  EnterGate(lane);
  lane.now_ms = clock_->WallMillis();
  lane.last_ticks = base::Ticks();
}

void Engine::BeginRound(Lane& lane) {
  EnterGate(lane);
  lane.round = base::Budget();
  lane.inside = lane.in_round = true;
}

void Engine::EndRound(Lane& lane) {
  lane.inside = lane.in_round = false;
  keyspace_.gate().Leave(lane.index);
  keyspace_.gate().epoch().Collect();
  if (!lane.garbage.empty()) FreeGarbage(lane);
}

void Engine::BeginBatch(Lane& lane) {
  if (lane.exclusive) {
    // Inside already, and alone.
  } else if (!lane.inside) {
    EnterGate(lane);
    lane.inside = true;
  } else if (keyspace_.gate().wanted()) {
    StepAside(lane);
  }
  lane.now_ms = clock_->WallMillis();
  lane.lru_clock = LruClock(lane.now_ms);
  lane.last_ticks = base::Ticks();
  if (!lane.rate_dirty.empty() && lane.now_ms - lane.rate_written_ms >= kBucketsWrittenMs) {
    WriteBuckets(lane);
  }
  LookAtMemory(lane);
  lane.journal_full =
      (journal_.enabled() && journal_.Full(lane.index)) || snapshot_.congested(lane.now_ms);
}

void Engine::LookAtMemory(Lane& lane) {
  lane.limited = settings_->maxmemory > 0 && !loading();
  lane.over_memory = lane.limited && !MakeRoom(lane);
}

// Whether a command that may add its arguments is to run. A batch that adds more than there is
// room for looks at memory again; a few KB for all lanes together are not worth it.
bool Engine::HasRoom(Lane& lane, commands::Args args) {
  if (lane.over_memory) return false;
  int64_t bytes = 0;
  for (const std::string_view arg : args) bytes += static_cast<int64_t>(arg.size()) + 32;
  lane.room -= bytes;
  if (lane.room < -kUnlookedBytes / static_cast<int64_t>(lanes_.size())) {
    ReleaseHeld(lane);
    LookAtMemory(lane);
    FreeGarbage(lane);
    lane.room -= bytes;
  }
  return !lane.over_memory;
}

void Engine::EndBatch(Lane& lane) {
  RunRetries(lane);
  ReleaseHeld(lane);
  if (!lane.in_round && !lane.exclusive) {
    keyspace_.gate().Leave(lane.index);
    lane.inside = false;
    keyspace_.gate().epoch().Collect();
  }
  if (!lane.garbage.empty()) FreeGarbage(lane);
}

void Engine::ReleaseHeld(Lane& lane) {
  if (lane.held_stripe < 0) return;
  keyspace_.stripe(static_cast<size_t>(lane.held_stripe)).Unlock(lane.seen);
  lane.held_stripe = -1;
}

void Engine::CloseGate(Lane& lane) {
  ReleaseHeld(lane);
  if (lane.inside) keyspace_.gate().Leave(lane.index);
  keyspace_.gate().Close();
  lane.last_ticks = base::Ticks();
  lane.exclusive = true;
  // It may see what any stripe has.
  if (journal_.enabled()) lane.seen = std::max(lane.seen, journal_.next_ticket() - 1);
}

void Engine::OpenGate(Lane& lane) {
  lane.exclusive = false;
  keyspace_.gate().Open();
  if (lane.inside) EnterGate(lane);
}

bool Engine::LockOne(Lane& lane, size_t stripe) {
  if (lane.held_stripe == static_cast<int>(stripe)) return true;
  ReleaseHeld(lane);
  keyspace::Stripe& wanted = keyspace_.stripe(stripe);
  if (!wanted.TryLock(&lane.seen)) {
    // It spins: time of this thread's own, and not the command's.
    const bool locked = wanted.TryLockFor(kLockPatienceMicros, &lane.seen);
    lane.last_ticks = base::Ticks();
    if (!locked) return false;
  }
  lane.held_stripe = static_cast<int>(stripe);
  return true;
}

bool Engine::Lock(Lane& lane, const LockSet& set) {
  const int count = std::popcount(set.bits[0]) + std::popcount(set.bits[1]);
  if (set.all || count > 64) {
    CloseGate(lane);
    return true;
  }
  if (count == 1) {
    const int low = std::countr_zero(set.bits[0]);
    return LockOne(lane, static_cast<size_t>(low < 64 ? low : 64 + std::countr_zero(set.bits[1])));
  }
  ReleaseHeld(lane);
  for (size_t word = 0; word < 2; ++word) {
    for (uint64_t bits = set.bits[word]; bits != 0; bits &= bits - 1) {
      keyspace::Stripe& stripe =
          keyspace_.stripe(word * 64 + static_cast<size_t>(std::countr_zero(bits)));
      if (stripe.TryLock(&lane.seen)) continue;
      stripe.Lock(&lane.seen);
      lane.last_ticks = base::Ticks();
    }
  }
  return true;
}

void Engine::Unlock(Lane& lane, const LockSet& set) {
  if (lane.exclusive) {
    OpenGate(lane);
    return;
  }
  if (std::popcount(set.bits[0]) + std::popcount(set.bits[1]) <= 1) return;  // kept as held_stripe
  for (size_t word = 0; word < 2; ++word) {
    for (uint64_t bits = set.bits[word]; bits != 0; bits &= bits - 1) {
      keyspace_.stripe(word * 64 + static_cast<size_t>(std::countr_zero(bits))).Unlock(lane.seen);
    }
  }
}

void Engine::AddKeys(Lane& lane, const Command& command, commands::Args args, LockSet* set) {
  LockClass lock = command.lock;
  if (command.spec->choose_lock != nullptr) lock = command.spec->choose_lock(args);
  if (lock == LockClass::kAll) set->all = true;
  if (lock != LockClass::kKeys) return;
  base::ClearAndTrim(&lane.key_indexes, kKeptHashes);
  if (!commands::KeyIndexes(command, args, &lane.key_indexes)) return;
  for (const int index : lane.key_indexes) {
    const uint64_t hash = keyspace_.Hash(args[static_cast<size_t>(index)]);
    set->Add(Keyspace::StripeOf(hash));
    lane.key_hashes.push_back(hash);
  }
}

// ---- a batch ----

namespace {

// About how large the entry of a request's k-th key is when its value is the word after the key; 0
// when the command does not write.
size_t WrittenBytes(const Request& request, uint32_t k) {
  const Command& command = *request.command;
  if (!command.has(commands::kWrite)) return 0;
  constexpr size_t kHeader = 8;
  const auto key =
      static_cast<size_t>(command.first_key) + static_cast<size_t>(command.key_step) * k;
  const size_t value = key + 1 < request.args.size() ? request.args[key + 1].size() : 0;
  return kHeader + request.args[key].size() + std::max<size_t>(value, 8);
}

}  // namespace

// Requests for which there is no memory stay unprepared.
void Engine::FindHashes(Lane& lane, std::span<Request> batch) {
  for (Request& request : batch) {
    const std::string_view name = request.args[0];
    if (lane.last_command != nullptr && name == lane.last_name) {
      request.command = lane.last_command;
    } else {
      request.command = table_->Resolve(request.args);
      if (request.command != nullptr && request.command->parent == nullptr &&
          request.command->subcommands.empty()) {
        lane.last_command = request.command;
        lane.last_name = name;
      }
    }
    request.first_hash = static_cast<uint32_t>(lane.hashes.size());
    request.key_count = 0;
    const Command* command = request.command;
    if (command == nullptr || !command->simple_keys || !command->ArityOk(request.args.size())) {
      request.prepared = true;
      continue;
    }
    const int argc = static_cast<int>(request.args.size());
    const int last = command->last_key >= 0 ? command->last_key : argc + command->last_key;
    for (int i = command->first_key; i <= last && i < argc; i += command->key_step) {
      const uint64_t hash = keyspace_.Hash(request.args[static_cast<size_t>(i)]);
      lane.hashes.push_back(hash);
      ++request.key_count;
      const keyspace::Table* table = keyspace_.table(request.client->db, Keyspace::StripeOf(hash));
      if (table != nullptr) table->PrefetchTable();
    }
    request.prepared = true;
  }
}

void Engine::Prepare(Lane& lane, std::span<Request> batch) {
  base::ClearAndTrim(&lane.hashes, kKeptHashes);
  for (Request& request : batch) request.prepared = false;
  if (!base::IfMemory([&] { FindHashes(lane, batch); })) {
    for (Request& request : batch) request.key_count = request.prepared ? request.key_count : 0;
  }
  lane.last_command = nullptr;  // the name's bytes live only as long as the batch
  // Each pass fetches what the next one reads, for all keys at once.
  const auto for_each_key = [&](const auto& prefetch) {
    for (const Request& request : batch) {
      for (uint32_t k = 0; k < request.key_count; ++k) {
        const uint64_t hash = lane.hashes[request.first_hash + k];
        const keyspace::Table* table =
            keyspace_.table(request.client->db, Keyspace::StripeOf(hash));
        if (table != nullptr) prefetch(*table, hash, request, k);
      }
    }
  };
  using keyspace::Table;
  for_each_key([](const Table& table, uint64_t hash, const Request&, uint32_t) {
    table.PrefetchDirectory(hash);
  });
  for_each_key([](const Table& table, uint64_t hash, const Request&, uint32_t) {
    table.PrefetchBucket(hash);
  });
  for_each_key([](const Table& table, uint64_t hash, const Request& request, uint32_t k) {
    table.PrefetchEntry(hash, WrittenBytes(request, k));
  });
  for (const Request& request : batch.first(std::min(batch.size(), kLocksAhead))) {
    PrefetchLock(lane, request);
  }
}

// A lock's line is often with another thread, which takes it back when it comes much too early.
void Engine::PrefetchLock(const Lane& lane, const Request& request) {
  if (request.key_count == 0) return;
  base::PrefetchForWrite(&keyspace_.stripe(Keyspace::StripeOf(lane.hashes[request.first_hash])));
}

// What the next requests will look up in the collections of the stripe that is held already.
void Engine::LookAhead(const Lane& lane, std::span<const Request> next) const {
  const types::Object* objects[kLookAhead];
  const Request* last = nullptr;  // whose object it is
  const types::Object* object = nullptr;
  const auto stripe = static_cast<size_t>(lane.held_stripe);
  for (size_t i = 0; i < next.size(); ++i) {
    const Request& request = next[i];
    objects[i] = nullptr;
    if (request.key_count != 1 || !request.command->looks_up || request.args.size() < 3) continue;
    const uint64_t hash = lane.hashes[request.first_hash];
    if (Keyspace::StripeOf(hash) != stripe) continue;
    if (last == nullptr || lane.hashes[last->first_hash] != hash ||
        last->client->db != request.client->db) {
      const keyspace::Table* const table = keyspace_.table(request.client->db, stripe);
      const keyspace::Entry* const entry =
          table == nullptr ? nullptr : table->Find(hash, request.args[1]);
      object =
          entry != nullptr && entry->kind() == keyspace::Kind::kObject ? entry->object() : nullptr;
      last = &request;
    }
    objects[i] = object;
    if (object != nullptr) object->Prefetch(request.args[2], 0);
  }
  for (size_t i = 0; i < next.size(); ++i) {
    if (objects[i] != nullptr) objects[i]->Prefetch(next[i].args[2], 1);
  }
}

// Whether the request works on the stripe that is held, and on no other.
bool Engine::NeedsHeld(const Lane& lane, const Request& request) {
  return request.key_count == 1 &&
         static_cast<int>(Keyspace::StripeOf(lane.hashes[request.first_hash])) == lane.held_stripe;
}

void Engine::RunBatch(Lane& lane, std::span<Request> batch) {
  const base::Budget budget;
  size_t looked = 0;                // how far LookAhead has come
  const Client* limited = nullptr;  // whose output is
  for (size_t i = 0; i < batch.size(); ++i) {
    Request& request = batch[i];
    // Kept for a neighbour only: who loses its core between two commands should hold nothing.
    if (lane.held_stripe >= 0 && !NeedsHeld(lane, request)) ReleaseHeld(lane);
    if (i + kLocksAhead < batch.size()) PrefetchLock(lane, batch[i + kLocksAhead]);
    if (i >= looked && lane.held_stripe >= 0 && request.command->looks_up) {
      looked = std::min(batch.size(), i + kLookAhead);
      LookAhead(lane, batch.subspan(i, looked - i));
    }
    Client& client = *request.client;
    if (client.waiting() || client.has(kClientCloseAfterReply | kClientCloseNow)) {
      request.outcome = Request::Outcome::kRefused;
      continue;
    }
    if (i > 0 && budget.spent(lane.last_ticks)) [[unlikely]] {
      Yield(lane, client);
      request.outcome = Request::Outcome::kRefused;
      continue;
    }
    if (keyspace_.gate().wanted() && !lane.exclusive) StepAside(lane);
    request.outcome = Request::Outcome::kDone;
    if (&client != limited) {
      LimitOutput(client);
      limited = &client;
    }
    const bool ran = base::IfMemory([&] {
      if (!request.prepared) throw std::bad_alloc();
      if (limiter_.enabled() && !Charge(lane, request)) return;
      if (RunOne(lane, request)) return;
      request.outcome = Request::Outcome::kRefused;
      client.rate_paid = limiter_.enabled();
    });
    if (!ran && client.has(kClientReplay)) throw std::bad_alloc();
    if (!ran) RefuseForMemory(lane, request);
    if (client.out.over() && !client.has(kClientReplay)) [[unlikely]]
      client.set(kClientCloseNow);
  }
}

// There was no memory for the command before it came to its locks.
void Engine::RefuseForMemory(Lane& lane, const Request& request) {
  Client& client = *request.client;
  if (request.command != nullptr && request.command->spec->name == "exec") {
    DiscardTransaction(lane, client);
  } else if (client.has(kClientMulti)) {
    client.set(kClientDirtyExec);
  }
  protocol::Reply(&client.out, client.resp).Error(commands::errors::kNoMemory);
}

bool Engine::Execute(Lane& lane, Client& client, commands::Args args) {
  Request request;
  request.client = &client;
  request.args = args;
  BeginBatch(lane);
  Prepare(lane, {&request, 1});
  RunBatch(lane, {&request, 1});
  EndBatch(lane);
  return request.outcome == Request::Outcome::kDone;
}

// ---- one command ----

bool Engine::RunOne(Lane& lane, Request& request) {
  Client& client = *request.client;
  const size_t mark = client.out.Mark();
  const Command* command = request.command;
  switch (Admit(lane, client, request)) {
    case Admission::kWait:
      return false;
    case Admission::kAnswered:
      FinishReply(client, mark);
      return true;
    case Admission::kRun:
      break;
  }
  if (command->spec->name == "exec") {
    const bool done = RunTransaction(lane, client, *command, request.args);
    if (done) FinishReply(client, mark);
    if (lane.awaits_save) HoldForSave(lane, client, mark);
    return done;
  }
  LockSet set;
  const std::span<const uint64_t> hashes(lane.hashes.data() + request.first_hash,
                                         request.key_count);
  LockClass lock = command->lock;
  if (command->spec->choose_lock != nullptr) lock = command->spec->choose_lock(request.args);
  base::ClearAndTrim(&lane.key_hashes, kKeptHashes);
  if (lock == LockClass::kKeys) {
    if (command->simple_keys) {
      for (const uint64_t hash : hashes) set.Add(Keyspace::StripeOf(hash));
    } else {
      AddKeys(lane, *command, request.args, &set);
    }
  } else {
    set.all = lock == LockClass::kAll;
  }
  EngineContext& context = *lane.context;
  if (command->has(commands::kWrite)) context.PrebuildLarge(request.args);
  const bool nested = lane.exclusive;  // a log is replayed while nobody else is inside
  bool locked = true;
  if (nested) {
    // There is nobody to lock out.
  } else if (set.all || set.bits[0] != 0 || set.bits[1] != 0) {
    locked = Lock(lane, set);
  } else {
    ReleaseHeld(lane);
  }
  if (!locked) {
    context.DropPrebuilt();
    lane.stats.parked.Add();
    Wait(lane, client, kClientParked);
    return false;
  }
  if (lane.exclusive && !nested && ChangedMeanwhile(lane, client, *command)) {
    Unlock(lane, set);
    context.DropPrebuilt();
    return false;
  }
  const uint64_t wrote = client.wrote;
  Call(lane, client, *command, request.args, hashes);
  ServeReady(lane);
  if (lock == LockClass::kKeys) {
    const std::span<const uint64_t> keys = command->simple_keys ? hashes : lane.key_hashes;
    if (!keys.empty()) NoteTold(lane, client, keys, wrote);
  } else if (command->has(commands::kReadonly | commands::kWrite)) {
    NoteTold(lane, client, {}, wrote);
  }
  if (!nested) Unlock(lane, set);
  context.DropPrebuilt();
  if (!lane.retries.empty()) [[unlikely]]
    RunRetries(lane);
  if (!context.blocked()) FinishReply(client, mark);
  if (lane.awaits_save) [[unlikely]]
    HoldForSave(lane, client, mark);
  return true;
}

// The heap being full is no end of the server: the command gets an error, what it had taken goes
// back, and others go on.
void Engine::Handle(EngineContext& context, Client& client, const Command& command) {
  const size_t mark = client.out.Mark();
  try {
    context.Run(*command.spec);
    context.End();
    return;
  } catch (const std::bad_alloc&) {
    if (client.has(kClientReplay)) throw;  // what was logged is not passed over
  } catch (const std::length_error&) {
    if (client.has(kClientReplay)) throw;
  }
  client.out.TruncateTo(mark);
  context.reply().Error(commands::errors::kNoMemory);
  context.Abandon();
  if (command.has(commands::kWrite)) NoteOutOfMemory();
}

// What is looked at while a reply is built; the loop looks again, more closely, when it has sent
// what the socket takes.
void Engine::LimitOutput(Client& client) const {
  const uint64_t hard = client.has(kClientReplay) ? 0 : OutputLimitOf(client).hard;
  client.out.set_limit(!client.authenticated ? kStrangerOutput : hard == 0 ? SIZE_MAX : hard);
}

// What the client is told waits for what it has changed, or for the last change of what it has
// seen. keys: their hashes; none: all keys. `wrote`: as the client's was before. REQUIRES: the
// locks.
void Engine::NoteTold(Lane& lane, Client& client, std::span<const uint64_t> keys, uint64_t wrote) {
  if (changes_ == nullptr) return;
  const bool changed = client.wrote != wrote;
  const uint64_t end = lane.seen + 1;
  for (const uint64_t hash : keys) {
    uint64_t& last = changes_[hash % kChangeSlots];
    if (changed) {
      last = end;
      keyspace_.stripe(Keyspace::StripeOf(hash)).changed.store(end, std::memory_order_relaxed);
    } else {
      client.saw = std::max(client.saw, last);
    }
  }
  if (!keys.empty()) return;
  if (changed) std::fill_n(changes_.get(), kChangeSlots, end);
  for (size_t i = 0; i < Keyspace::kStripes; ++i) {
    std::atomic<uint64_t>& last = keyspace_.stripe(i).changed;
    if (changed) {
      last.store(end, std::memory_order_relaxed);
    } else {
      client.saw = std::max(client.saw, last.load(std::memory_order_relaxed));
    }
  }
}

void Engine::TrackChanges(bool on) {
  if (on == (changes_ != nullptr)) return;
  changes_.reset();
  if (!on) return;
  // What was changed before is not known.
  const uint64_t end = journal_.next_ticket();
  changes_.reset(new uint64_t[kChangeSlots]);
  std::fill_n(changes_.get(), kChangeSlots, end);
  for (size_t i = 0; i < Keyspace::kStripes; ++i) {
    keyspace_.stripe(i).changed.store(end, std::memory_order_relaxed);
  }
}

void Engine::CallHandler(Lane& lane, Client& client, const Command& command, commands::Args args,
                         std::span<const uint64_t> hashes) {
  EngineContext& context = *lane.context;
  context.Begin(client, command, args, hashes);
  Handle(context, client, command);
  base::IfMemory([&] { NoteCall(lane, client, command); });
}

void Engine::NoteCall(Lane& lane, Client& client, const Command& command) {
  EngineContext& context = *lane.context;
  if (monitors_.load(std::memory_order_relaxed) > 0 &&
      !command.has(commands::kSkipMonitor | commands::kAdmin)) [[unlikely]] {
    FeedMonitors(lane, client, context.shown_args());
  }
  client.last_command = &command;
  ++client.commands;
  if (context.blocked()) [[unlikely]] {  // counted when it is answered
    lane.last_ticks = base::Ticks();
    return;
  }
  lane.stats.commands.Add();
  CommandStats& stats = lane.stats.by_command[static_cast<size_t>(command.id)];
  stats.calls.Add();
  const uint64_t ticks = base::Ticks();
  const auto nanos =
      static_cast<uint64_t>(static_cast<double>(ticks - lane.last_ticks) * nanos_per_tick_);
  lane.last_ticks = ticks;
  stats.nanos.Add(nanos);
  if (settings_->latency_tracking) stats.Record(nanos);
  if (context.reply().had_error()) {
    stats.failed.Add();
    lane.stats.error_replies.Add();
    errors_.Add(context.reply().error_code());
  }
  if (MayBeSlow(nanos)) NoteSlow(client, command, context.shown_args(), nanos);
}

// Below a tenth of a millisecond only a very low slow log threshold can want it.
bool Engine::MayBeSlow(uint64_t nanos) const {
  const int64_t slow = settings_->slowlog_log_slower_than;
  return nanos >= 100000 || (slow >= 0 && slow < 100);
}

void Engine::NoteSlow(Client& client, const Command& command, commands::Args args, uint64_t nanos) {
  const auto micros = static_cast<int64_t>(nanos / 1000);
  const int64_t unix_time = clock_->WallMillis() / 1000;
  if (settings_->slowlog_log_slower_than >= 0 && micros >= settings_->slowlog_log_slower_than &&
      settings_->slowlog_max_len > 0 && !command.has(commands::kSkipSlowlog)) {
    slowlog_.Add(unix_time, micros, args, client.addr, client.name,
                 static_cast<size_t>(settings_->slowlog_max_len));
  }
  if (settings_->latency_monitor_threshold > 0) {
    latency_.Add(command.has(commands::kFast) ? "fast-command" : "command", unix_time,
                 micros / 1000, settings_->latency_monitor_threshold);
  }
}

// CLIENT REPLY OFF and SKIP: the reply was made and is taken back, but for what was pushed.
void Engine::FinishReply(Client& client, size_t mark) {
  constexpr uint32_t kSilenced = kClientReplyOff | kClientReplySkip;
  if (!client.has(kSilenced | kClientReplySkipNext) && client.pushed.empty()) return;
  if (client.has(kSilenced)) client.out.TruncateTo(mark);
  client.out.Append(client.pushed);
  client.pushed.clear();
  const bool skip_next = client.has(kClientReplySkipNext);
  client.set(kClientReplySkip, skip_next);
  client.set(kClientReplySkipNext, false);
}

// The reply is made; the client gets it, and may go on, when a snapshot is saved.
void Engine::HoldForSave(Lane& lane, Client& client, size_t mark) {
  lane.awaits_save = false;
  client.block_deadline_ms = 0;
  client.on_timeout = nullptr;
  ++client.block_token;
  Wait(lane, client, kClientBlocked);
  host_->AnswerWhenSaved(client, client.out.CutFrom(mark));
}

void Engine::Wait(Lane& lane, Client& client, uint32_t flag) {
  client.set(flag);
  lane.waiting.push_back(&client);
}

void Engine::Yield(Lane& lane, Client& client) {
  Wait(lane, client, kClientParked);
  lane.yielded = true;
}

void Engine::YieldFirst(Lane& lane, std::span<Client* const> clients) {
  if (clients.empty()) return;
  for (Client* client : clients) client->set(kClientParked);
  lane.waiting.insert(lane.waiting.begin(), clients.begin(), clients.end());
  lane.yielded = true;
}

// Killed or paused while it waited for the gate to close.
bool Engine::ChangedMeanwhile(Lane& lane, Client& client, const Command& command) {
  if (client.has(kClientCloseNow)) return true;
  if (client.has(kClientReplay)) return false;
  if (pause_until_.load(std::memory_order_relaxed) == 0 ||
      !paused(Does(client, command, commands::kWrite | commands::kMayReplicate), lane.now_ms)) {
    return false;
  }
  Wait(lane, client, kClientPaused);
  return true;
}

// ---- admission ----

void Engine::Reject(Lane& lane, Client& client, const Command* command, std::string_view error) {
  protocol::Reply reply(&client.out, client.resp);
  std::string aborted;
  if (command != nullptr && command->spec->name == "exec") {
    DiscardTransaction(lane, client);
    if (error.starts_with("ERR ")) error.remove_prefix(4);
    aborted = "EXECABORT Transaction discarded because of: " + std::string(error);
    error = aborted;
  } else if (client.has(kClientMulti)) {
    client.set(kClientDirtyExec);
  }
  reply.Error(error);
  errors_.Add(reply.error_code());
  lane.stats.error_replies.Add();
  if (command != nullptr) {
    lane.stats.by_command[static_cast<size_t>(command->id)].rejected.Add();
  }
}

void Engine::UnknownCommand(Lane& lane, Client& client, commands::Args args) {
  std::string text;
  const Command* container = table_->Find(args[0]);
  if (container != nullptr) {
    text = fmt::format("ERR unknown subcommand '{}'. Try {} HELP.",
                       args.size() > 1 ? args[1].substr(0, 128) : "",
                       base::ToUpper(container->spec->name));
  } else {
    std::string beginning;
    for (size_t i = 1; i < args.size() && beginning.size() < 128; ++i) {
      beginning += fmt::format("'{}' ", args[i].substr(0, 128 - beginning.size()));
    }
    text = fmt::format("ERR unknown command '{}', with args beginning with: {}",
                       args[0].substr(0, 128), beginning);
  }
  Reject(lane, client, nullptr, text);
  lane.stats.commands.Add();
}

// DEBUG and MODULE are closed unless the configuration opens them.
bool Engine::Permitted(const Client& client, const Command& command) const {
  const bool debug = command.spec->name == "debug" ||
                     (command.parent != nullptr && command.parent->spec->name == "debug");
  const Allow allow = debug ? settings_->enable_debug_command : settings_->enable_module_command;
  return allow == Allow::kYes || (allow == Allow::kLocal && client.has(kClientLocal));
}

Engine::Admission Engine::Admit(Lane& lane, Client& client, const Request& request) {
  const Command* command = request.command;
  if (command == nullptr) {
    UnknownCommand(lane, client, request.args);
    return Admission::kAnswered;
  }
  const auto reject = [&](std::string_view error) {
    Reject(lane, client, command, error);
    // Monitors have seen its MULTI.
    if (command->spec->name == "exec") FeedMonitors(lane, client, request.args);
    return Admission::kAnswered;
  };
  if (!command->ArityOk(request.args.size())) {
    return reject(
        fmt::format("ERR wrong number of arguments for '{}' command", command->full_name));
  }
  if (command->spec->handler == nullptr) {  // a container without its subcommand
    UnknownCommand(lane, client, request.args);
    return Admission::kAnswered;
  }
  if (!client.authenticated && !command->has(commands::kNoAuth)) {
    return reject(commands::errors::kNoAuth);
  }
  if (command->has(commands::kProtected) && !Permitted(client, *command)) {
    const std::string_view feature =
        command->parent != nullptr ? command->parent->spec->name : command->spec->name;
    return reject(fmt::format(
        "ERR {} command not allowed. If the enable-{}-command option is set to \"local\", you can "
        "run it from a local connection, otherwise you need to set this option in the "
        "configuration file, and then restart the server.",
        base::ToUpper(feature), feature));
  }
  if (client.has(kClientMulti) && command->has(commands::kNoMulti)) {
    return reject("ERR Command not allowed inside a transaction");
  }
  if (lane.limited && Does(client, *command, commands::kDenyOom) && !HasRoom(lane, request.args)) {
    return reject(commands::errors::kOom);
  }
  if (refusing_.load(std::memory_order_relaxed) && !client.has(kClientReplay)) {
    const bool denied = Does(client, *command, commands::kWrite) || command->spec->name == "ping";
    std::unique_lock lock(refusal_mutex_);
    if (const std::string error = refusal_; denied && !error.empty()) {
      lock.unlock();
      return reject(error);
    }
  }
  if (client.resp == 2 && client.subscribed() && !AllowedWhileSubscribed(*command)) {
    return reject(fmt::format(
        "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are "
        "allowed in this context",
        base::ToLower(command->full_name)));
  }
  if (loading() && !client.has(kClientReplay) && !command->has(commands::kLoading)) {
    return reject(commands::errors::kLoading);
  }
  if (client.has(kClientMulti) && !EndsOrGuardsQueue(*command)) {
    try {
      Queue(client, *command, request.args);
    } catch (const std::bad_alloc&) {
      return reject(commands::errors::kNoMemory);
    }
    return Admission::kAnswered;
  }
  if (client.has(kClientReplay)) return Admission::kRun;
  if (pause_until_.load(std::memory_order_relaxed) != 0 &&
      paused(Does(client, *command, commands::kWrite | commands::kMayReplicate), lane.now_ms)) {
    Wait(lane, client, kClientPaused);
    return Admission::kWait;
  }
  if (lane.journal_full && Does(client, *command, commands::kWrite)) {
    Wait(lane, client, kClientParked);
    return Admission::kWait;
  }
  return Admission::kRun;
}

// ---- monitors ----

void Engine::FeedMonitors(Lane& lane, Client& client, commands::Args args) {
  if (monitors_.load(std::memory_order_relaxed) == 0) return;
  const int64_t now = clock_->WallMicros();
  std::string line =
      fmt::format("+{}.{:06} [{} {}]", now / 1000000, now % 1000000, client.db,
                  client.has(kClientUnixSocket) ? "unix:" + client.addr : client.addr);
  for (const std::string_view arg : args) {
    line += ' ';
    line += base::Quoted(arg);
  }
  line += "\r\n";
  auto message = std::make_shared<Message>();
  message->resp2 = std::move(line);
  if (lane.context->in_group()) {
    lane.context->TellMonitors(std::move(message));
  } else {
    PostToMonitors(message, client.wrote);
  }
}

void Engine::PostToMonitors(const std::shared_ptr<const Message>& line, uint64_t ticket) {
  for (auto& lane : lanes_) lane->mailbox.Post({Mail::Kind::kMessage, 0, line, 0, ticket});
}

namespace {

// Mail may be on its way while its receiver unsubscribes.
bool StillWanted(const Client& client, const Message& message) {
  switch (message.via) {
    case Message::Via::kDirect:
      return true;
    case Message::Via::kChannel:
      return client.channels.contains(message.subscription);
    case Message::Via::kShardChannel:
      return client.shard_channels.contains(message.subscription);
    case Message::Via::kPattern:
      return client.patterns.contains(message.subscription);
  }
  return true;
}

}  // namespace

bool Engine::ReceiveMail(Lane& lane) {
  bool woken = false;
  lane.own_mail = false;
  auto mails = lane.mailbox.Take();
  // What clients do next, knowing of what other lanes have done, comes after that.
  if (!mails.empty() && journal_.enabled()) {
    lane.seen = std::max(lane.seen, journal_.next_ticket() - 1);
  }
  for (Mail& mail : mails) {
    if (mail.kind == Mail::Kind::kWake && mail.client == 0) {
      woken = true;
      continue;
    }
    const auto deliver = [&](Client& client) {
      LimitOutput(client);
      client.wrote = std::max(client.wrote, mail.ticket);
      if (mail.kind == Mail::Kind::kReply) {
        // It may have given up waiting.
        if (!client.has(kClientBlocked) || client.block_token != mail.token) return;
        if (client.waiter != nullptr) {  // it is flushed when it goes on
          const Waiter& waiter = *client.waiter;
          if (waiter.nanos != 0 && MayBeSlow(waiter.nanos)) {
            NoteSlow(client, *waiter.command, waiter.args, waiter.nanos);
          }
          Release(lane, client, *mail.message);
          return;
        }
        client.set(kClientBlocked, false);
        if (!client.has(kClientReplyOff)) client.out.Append(mail.message->resp2);
      } else if (mail.kind == Mail::Kind::kAlarm) {
        if (client.waiter != nullptr && client.block_token == mail.token) Arm(lane, client);
        return;
      } else if (mail.kind == Mail::Kind::kMessage) {
        const Message& message = *mail.message;
        if (!StillWanted(client, message)) return;
        client.out.Append(client.resp == 3 && !message.resp3.empty() ? message.resp3
                                                                     : message.resp2);
      }
      if (client.has(kClientFlushQueued)) return;
      client.set(kClientFlushQueued);
      lane.to_flush.push_back(&client);
    };
    if (mail.client == 0) {  // a line for every monitor of this lane
      for (auto& [id, client] : lane.clients) {
        if (client->has(kClientMonitor) && !client->has(kClientReplyOff)) deliver(*client);
      }
    } else if (const auto it = lane.clients.find(mail.client); it != lane.clients.end()) {
      deliver(*it->second);
    }
  }
  return woken;
}

// ---- waiting ----

void Engine::Pause(int64_t until_ms, bool writes_only) {
  pause_writes_only_.store(writes_only, std::memory_order_relaxed);
  pause_until_.store(until_ms, std::memory_order_relaxed);
}

void Engine::BeginSnapshot(bool abort_on_flush) {
  using Ages = journal::Snapshot::Options::Ages;
  const MaxmemoryPolicy policy = settings_->maxmemory_policy;
  const bool lru =
      policy == MaxmemoryPolicy::kAllkeysLru || policy == MaxmemoryPolicy::kVolatileLru;
  journal::Snapshot::Options options;
  options.abort_on_flush = abort_on_flush;
  options.ages = UsesLfu(policy) ? Ages::kFrequency : lru ? Ages::kIdle : Ages::kNone;
  options.lru_clock = LruClock(clock_->WallMillis());
  snapshot_.Begin(options);
}

void Engine::RefuseWrites(std::string error) {
  std::lock_guard lock(refusal_mutex_);
  refusing_.store(!error.empty(), std::memory_order_relaxed);
  refusal_ = std::move(error);
}

void Engine::Unpause() {
  pause_until_.store(0, std::memory_order_relaxed);
  for (auto& lane : lanes_) lane->mailbox.Post({Mail::Kind::kWake, 0, nullptr});
}

bool Engine::paused(bool write_command, int64_t now_ms) const {
  const int64_t until = pause_until_.load(std::memory_order_relaxed);
  return until > now_ms && (write_command || !pause_writes_only_.load(std::memory_order_relaxed));
}

bool Engine::NeedsResume(const Lane& lane) const {
  return !lane.waiting.empty() || !lane.resumed.empty() || !lane.leaving.empty() ||
         (!lane.alarms.empty() && lane.alarms.begin()->first.first <= clock_->WallMillis());
}

void Engine::ResumeWaiting(Lane& lane) {
  RingAlarms(lane);
  lane.yielded = false;
  if (lane.waiting.empty()) return;
  const int64_t now = clock_->WallMillis();
  const int64_t pause_end = pause_until_.load(std::memory_order_relaxed);
  std::erase_if(lane.waiting, [&](Client* client) {
    if (client->waiter != nullptr) return true;  // alarms and mail see to it
    bool go = false;
    if (client->has(kClientPaused)) {
      go = pause_end <= now;
    } else if (client->has(kClientParked)) {
      go = true;
    } else if (client->has(kClientBlocked)) {
      if (client->block_deadline_ms != 0 && client->block_deadline_ms <= now) {
        if (client->on_timeout != nullptr) client->on_timeout(*client);
        go = true;
      }
    } else {
      go = true;  // somebody unblocked it
    }
    if (client->has(kClientCloseNow)) go = true;
    if (go) {
      client->set(kClientPaused | kClientParked | kClientBlocked, false);
      lane.resumed.push_back(client);
    }
    return go;
  });
}

int64_t Engine::NextResume(const Lane& lane) const {
  if (lane.own_mail || !lane.resumed.empty() || !lane.leaving.empty()) return 0;
  if (lane.yielded && !lane.waiting.empty()) return 0;
  int64_t next = lane.alarms.empty() ? INT64_MAX : lane.alarms.begin()->first.first;
  for (const Client* client : lane.waiting) {
    if (!client->waiting()) return 0;
    // Whoever held its stripe has probably lost its core: a millisecond, unless others are ready.
    if (client->has(kClientParked)) next = std::min(next, lane.now_ms + 1);
    if (client->has(kClientPaused)) {
      next = std::min(next, pause_until_.load(std::memory_order_relaxed));
    } else if (client->block_deadline_ms != 0) {
      next = std::min(next, client->block_deadline_ms);
    }
  }
  return next;
}

// ---- clients ----

bool Client::blocked() const {
  return has(kClientBlocked) && (waiter == nullptr || waiter->waiting());
}

void Engine::AddClient(Lane& lane, Client& client) {
  client.lane = lane.index;
  // It may have to wait when there is no memory for its place among those who wait.
  const size_t clients = lane.clients.size() + 1;
  if (lane.waiting.capacity() < clients) lane.waiting.reserve(2 * clients);
  lane.clients.emplace(client.id, &client);
}

void Engine::RemoveClient(Lane& lane, Client& client) {
  Unwatch(lane, client);
  ForgetWaiter(lane, client);
  pubsub_->UnsubscribeAll(client);
  if (client.has(kClientMonitor)) monitors_.fetch_sub(1, std::memory_order_relaxed);
  lane.clients.erase(client.id);
  std::erase(lane.to_flush, &client);
  std::erase(lane.waiting, &client);
  std::erase(lane.resumed, &client);
}

void Engine::ResetClient(Lane& lane, Client& client) {
  DiscardTransaction(lane, client);
  pubsub_->UnsubscribeAll(client);
  if (client.has(kClientMonitor)) monitors_.fetch_sub(1, std::memory_order_relaxed);
  client.set(kClientMonitor | kClientReplyOff | kClientReplySkip | kClientReplySkipNext |
                 kClientNoTouch | kClientNoEvict,
             false);
  client.db = 0;
  client.resp = 2;
  client.name.clear();
}

// What is large stays in the lane until the round ends: the thread that frees it may take this
// one's processor as soon as it wakes, and the round's answers are to be on their way by then.
void Engine::FreeGarbage(Lane& lane) {
  const bool later = lane.in_round && lane.garbage.size() <= kKeptGarbage;
  size_t kept = 0;
  for (keyspace::Displaced item : lane.garbage) {
    if (types::Object* const object = item.object; object != nullptr) {
      if (object->size() <= kFreeInlineElements) {
        delete object;
        item.object = nullptr;
      } else if (!later) {
        if (!base::IfMemory([&] { background_.Run([object] { delete object; }); })) delete object;
        item.object = nullptr;
      }
    }
    if (base::Blob* const blob = item.blob; blob != nullptr) {
      if (blob->size() <= kFreeInline || !blob->unique()) {
        blob->Unref();
        item.blob = nullptr;
      } else if (!later) {
        if (!base::IfMemory([&] { background_.Run([blob] { blob->Unref(); }); })) blob->Unref();
        item.blob = nullptr;
      }
    }
    if (item.object != nullptr || item.blob != nullptr) lane.garbage[kept++] = item;
  }
  lane.garbage.resize(kept);
}

uint64_t Engine::Dirty() const { return Total(&LaneStats::dirty); }

int64_t Engine::BufferBytes() const {
  uint64_t total = 0;
  for (const auto& lane : lanes_) total += lane->buffer_bytes.get();
  return static_cast<int64_t>(total);
}

size_t Engine::UsedMemory() const {
  const int64_t other = other_memory_.load(std::memory_order_relaxed) + BufferBytes();
  const int64_t used = static_cast<int64_t>(keyspace_.UsedBytes()) + other;
  return static_cast<size_t>(std::max<int64_t>(0, used));
}

bool Engine::RoomFor(uint64_t bytes) const {
  if (bytes == UINT64_MAX) return false;
  const uint64_t limit = settings_->maxmemory;
  const bool evicts = settings_->maxmemory_policy != MaxmemoryPolicy::kNoEviction;
  if (limit > 0 && bytes > limit - (evicts ? 0 : std::min<uint64_t>(limit, UsedMemory()))) {
    return false;
  }
  return bytes <= memory_ceiling_ - std::min<uint64_t>(memory_ceiling_, UsedMemory());
}

// ---- upkeep ----

// What a database without keys takes is to be had by others. The first one's tables are counted as
// the server's own; a snapshot walks the tables that there were when it began.
void Engine::DropIfEmpty(int db, size_t stripe) {
  if (db != 0 && !snapshot_.active() && !loading()) keyspace_.DropEmpty(db, stripe);
}

// True when the stripe has more to do than one visit allows.
bool Engine::UpkeepStripe(Lane& lane, size_t stripe) {
  if (!keyspace_.stripe(stripe).TryLock(&lane.seen)) return false;
  EngineContext& context = *lane.context;
  const bool expire =
      active_expire_.load(std::memory_order_relaxed) && !paused(true, lane.now_ms) && !loading();
  bool more = false;
  for (int db = 0; db < keyspace_.databases(); ++db) {
    keyspace::Table* table = keyspace_.table(db, stripe);
    if (table == nullptr) continue;
    if (expire) {
      const uint64_t start = base::Ticks();
      const auto budget = static_cast<size_t>(64 * settings_->active_expire_effort);
      size_t looked = 0;
      context.DoUpkeep([&] {
        looked = table->Expire(
            lane.now_ms, budget,
            [&](keyspace::Entry* entry) {
              context.ExpireKey(db, *table, entry, keyspace_.Hash(entry->key()));
            },
            [&](keyspace::Entry* entry) {
              context.ExpireParts(db, *table, entry, keyspace_.Hash(entry->key()), budget);
            });
      });
      if (looked >= budget) {
        lane.stats.expire_cycles_capped.Add();
        more = true;
      }
      lane.stats.expire_nanos.Add(
          static_cast<uint64_t>(static_cast<double>(base::Ticks() - start) * nanos_per_tick_));
    }
    const size_t moved = table->Compact();
    lane.stats.compacted.Add(moved);
    more = more || moved > 0;
    DropIfEmpty(db, stripe);
  }
  ServeReady(lane);
  keyspace_.stripe(stripe).Unlock(lane.seen);
  return more;
}

bool Engine::Upkeep(Lane& lane) {
  BeginBatch(lane);
  if (limiter_.engaged()) {
    WriteBuckets(lane);
    if (lane.index == 0) limiter_.Prune(lane.now_ms);
  }
  // A visit to every stripe that belongs to this lane, unless that takes too long at once.
  const base::Budget budget(500);
  bool more = false;
  for (size_t visited = 0; visited < Keyspace::kStripes; ++visited) {
    const size_t stripe = lane.upkeep_stripe;
    lane.upkeep_stripe = (lane.upkeep_stripe + 1) % Keyspace::kStripes;
    if (stripe % lanes_.size() == lane.index) more = UpkeepStripe(lane, stripe) || more;
    if (budget.spent() || keyspace_.gate().wanted()) {
      more = true;
      break;
    }
  }
  EndBatch(lane);
  return more;
}

}  // namespace sava::engine
