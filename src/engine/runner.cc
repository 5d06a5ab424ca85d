#include "engine/runner.h"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "base/if_memory.h"
#include "base/spare_memory.h"
#include "base/trim.h"
#include "engine/engine.h"
#include "engine/engine_context.h"

namespace sava::engine {

using commands::Command;
using commands::LockClass;
using keyspace::Keyspace;

namespace {

constexpr size_t kKeptHashes = 16 * 1024;

// Reserves room to log a command as it was sent, or in about as many words, before it changes
// anything: an element that a pop takes away is not lost for want of memory to log that.
void ReserveEffects(const Invocation& invocation) {
  journal::Journal& journal = invocation.engine().journal();
  if (!journal.enabled() || !invocation.origin().logged) return;
  constexpr size_t kMore = 512;
  constexpr size_t kPerWord = 32;
  constexpr size_t kMost = 16 * 1024;  // larger commands add something, they take nothing away
  size_t bytes = kMore;
  for (const std::string_view word : invocation.work().args) bytes += word.size() + kPerWord;
  journal.Reserve(invocation.lane().index, std::min(bytes, kMost));
}

}  // namespace

bool Runner::RunOne(Lane& lane, Request& request) {
  Client& client = *request.client;
  const size_t mark = client.out.Mark();
  switch (engine_.admission().Admit(lane, client, request)) {
    case Admission::Answer::kWait:
      return false;
    case Admission::Answer::kAnswered:
      FinishReply(client, mark);
      return true;
    case Admission::Answer::kRun:
      break;
  }
  bool done;
  if (request.command->is(commands::kRunsQueue)) {
    done = engine_.transactions().Run(lane, client, *request.command, request.args);
    if (done) FinishReply(client, mark);
  } else {
    done = RunLocked(lane, request, mark);
  }
  if (lane.batch.awaits_save) [[unlikely]]
    HoldForSave(lane, client, mark);
  return done;
}

bool Runner::RunLocked(Lane& lane, Request& request, size_t mark) {
  Client& client = *request.client;
  const Command* command = request.command;
  LockSet set;
  const std::span<const uint64_t> hashes(lane.batch.hashes.data() + request.first_hash,
                                         request.key_count);
  LockClass lock = command->lock;
  if (command->spec->choose_lock != nullptr) lock = command->spec->choose_lock(request.args);
  const bool script = command->is(commands::kRunsScript);
  if (script && engine_.scripting() != nullptr) {
    lane.locks.ReleaseHeld();
    lock = engine_.scripting()->Prepare(lane, *command, request.args);
  }
  base::ClearAndTrim(&lane.batch.key_hashes, kKeptHashes);
  if (lock == LockClass::kKeys) {
    if (command->simple_keys) {
      for (const uint64_t hash : hashes) set.Add(Keyspace::StripeOf(hash));
    } else {
      AddKeys(lane, *command, request.args, &set);
    }
  } else if (lock == LockClass::kAll) {
    set.AddAll();
  }
  LargeArguments large;  // freed when the locks are given back
  if (command->has(commands::kWrite)) large.Copy(request.args);
  const bool nested = lane.exclusive();  // a log is replayed while no other thread is inside
  if (!nested && !lane.locks.Lock(set)) {
    if (engine_.admission().busy()) {
      engine_.admission().Reject(lane, client, command, engine_.admission().busy_error());
      return true;
    }
    lane.stats.parked.Add();
    lane.waits.Add(client, kClientParked);
    return false;
  }
  if (lane.exclusive() && !nested &&
      engine_.admission().ChangedMeanwhile(lane, client, *command, request.args)) {
    lane.locks.Unlock(set);
    return false;
  }
  // The locks are given back also when a step around the command finds no memory.
  struct Unlocking {
    ~Unlocking() {
      lane.batch.locked = nullptr;
      if (!nested && !done) lane.locks.Unlock(set);
    }
    void Unlock() {
      if (!nested) lane.locks.Unlock(set);
      done = true;
    }
    Lane& lane;
    const LockSet& set;
    const bool nested;
    bool done = false;
  } locked{lane, set, nested};
  const uint64_t wrote = client.sending.wrote;
  lane.batch.locked = &set;
  const bool answered = Call(lane, {.client = &client,
                                    .command = command,
                                    .args = request.args,
                                    .hashes = hashes,
                                    .large = &large});
  lane.batch.locked = nullptr;
  if (script && lane.exclusive()) lock = LockClass::kAll;
  if (lane.waits.has_ready()) [[unlikely]]
    engine_.waiting().ServeReady(lane);
  if (lock == LockClass::kKeys) {
    const std::span<const uint64_t> keys = command->simple_keys ? hashes : lane.batch.key_hashes;
    if (!keys.empty()) engine_.changes().Note(lane, client, keys, wrote);
  } else if (script || command->has(commands::kReadonly | commands::kWrite)) {
    engine_.changes().Note(lane, client, {}, wrote);
  }
  locked.Unlock();
  if (lane.waits.has_retries()) [[unlikely]]
    engine_.waiting().RunRetries(lane);
  if (answered) FinishReply(client, mark);
  return true;
}

void Runner::AddKeys(Lane& lane, const Command& command, commands::Args args, LockSet* set) {
  LockClass lock = command.lock;
  if (command.spec->choose_lock != nullptr) lock = command.spec->choose_lock(args);
  if (lock == LockClass::kAll) set->AddAll();
  if (lock != LockClass::kKeys) return;
  base::ClearAndTrim(&lane.batch.key_indexes, kKeptHashes);
  commands::ForEachKey(command, args, &lane.batch.key_indexes, [&](size_t index) {
    const uint64_t hash = engine_.keyspace().Hash(args[index]);
    set->Add(Keyspace::StripeOf(hash));
    lane.batch.key_hashes.push_back(hash);
  });
}

bool Runner::Call(Lane& lane, const Work& work) {
  if (engine_.limiter().engaged()) [[unlikely]]
    return engine_.charging().Call(lane, work);
  return CallHandler(lane, work);
}

bool Runner::CallHandler(Lane& lane, const Work& work) {
  Invocation invocation(lane, work);
  EngineContext context(invocation);
  Handle(invocation, context);
  if (work.client->tracking != nullptr) [[unlikely]]
    engine_.tracking().NoteRead(lane, work);
  base::IfMemory([&] { NoteCall(lane, invocation, context.reply()); });
  return !invocation.blocked();
}

void Runner::NoteCall(Lane& lane, const Invocation& invocation, const protocol::Reply& reply) {
  Client& client = invocation.client();
  const Command& command = *invocation.work().command;
  Observer& observer = engine_.observer();
  if (observer.monitors().load(std::memory_order_relaxed) > 0 &&
      !command.has(commands::kSkipMonitor | commands::kAdmin)) [[unlikely]] {
    observer.FeedMonitors(client, invocation.shown_args(),
                          invocation.outermost() ? nullptr : &invocation.effects());
  }
  client.activity.last_command = &command;
  ++client.activity.commands;
  if (invocation.blocked()) [[unlikely]] {  // counted when it is answered
    lane.locks.timer().Restart();
    return;
  }
  const uint64_t nanos = observer.Nanos(lane.locks.timer().Take());
  observer.Answered(lane, command, nanos, reply);
  if (observer.MayBeSlow(nanos)) {
    observer.NoteSlow(client, command, invocation.shown_args(), nanos);
  }
}

// The heap being full is no end of the server: the command gets an error, what it had taken goes
// back, and others go on.
void Runner::Handle(Invocation& invocation, commands::Context& context) {
  Client& client = invocation.client();
  const Command& command = *invocation.work().command;
  const size_t mark = client.out.Mark();
  try {
    const base::MayFail here;
    if (command.has(commands::kWrite)) ReserveEffects(invocation);
    invocation.Run(command.spec->handler, context);
    invocation.End();
    return;
  } catch (const std::bad_alloc&) {
    if (client.origin.admitted && !client.origin.fails)
      throw;  // what was logged is not passed over
  } catch (const std::length_error&) {
    if (client.origin.admitted && !client.origin.fails) throw;
  }
  client.out.TruncateTo(mark);
  context.reply().Error(commands::errors::kNoMemory);
  invocation.Abandon();
  if (command.has(commands::kWrite)) engine_.memory().NoteExhausted();
}

void Runner::FinishReply(Client& client, size_t mark) {
  constexpr uint32_t kSilenced = kClientReplyOff | kClientReplySkip;
  if (!client.has(kSilenced | kClientReplySkipNext) && client.sending.pushed.empty()) return;
  if (client.has(kSilenced)) client.out.TruncateTo(mark);
  client.out.Append(client.sending.pushed);
  client.sending.pushed.clear();
  const bool skip_next = client.has(kClientReplySkipNext);
  client.set(kClientReplySkip, skip_next);
  client.set(kClientReplySkipNext, false);
}

// The reply is made; the client gets it, and may go on, when a snapshot is saved.
void Runner::HoldForSave(Lane& lane, Client& client, size_t mark) {
  lane.batch.awaits_save = false;
  lane.waits.AwaitAnswer(client, 0, nullptr);
  engine_.host()->AnswerWhenSaved(client, client.out.CutFrom(mark));
}

}  // namespace sava::engine
