// Runner: the way of a batch of commands: look up, hash and prefetch, then one after the other
// admit, lock, run, unlock.
#pragma once

#include <cstdint>
#include <span>

#include "commands/context.h"
#include "commands/registry.h"
#include "engine/lane.h"
#include "protocol/reply.h"

namespace sava::engine {

class Engine;
class Invocation;
struct Work;

class Runner {
 public:
  explicit Runner(Engine* engine) : engine_(*engine) {}

  // ---- a batch: batch.cc ----
  void Prepare(Lane& lane, std::span<Request> batch);
  void RunBatch(Lane& lane, std::span<Request> batch);

  // While another thread holds the gate closed and is busy: answers what needs nothing of what the
  // gate guards, and everything else with the error that says so. The client of a request that is
  // refused goes on in the next round. REQUIRES: outside the gate, in no round.
  void RunBusy(Lane& lane, std::span<Request> batch);

  // ---- one command ----
  // Runs a command whose locks are held; false when it has made its client wait.
  bool Call(Lane& lane, const Work& work);
  // The same, past the limiter.
  bool CallHandler(Lane& lane, const Work& work);
  // Runs the command's handler, and ends the invocation.
  void Handle(Invocation& invocation, commands::Context& context);
  // Adds the stripes of the command's keys, and their hashes to lane.batch.key_hashes.
  void AddKeys(Lane& lane, const commands::Command& command, commands::Args args, LockSet* set);
  // CLIENT REPLY OFF and SKIP: the reply was made and is removed again, except pushed messages.
  static void FinishReply(Client& client, size_t mark);

 private:
  // False when the client is to wait.
  bool RunOne(Lane& lane, Request& request);
  bool RunLocked(Lane& lane, Request& request, size_t mark);
  void RefuseForMemory(Lane& lane, const Request& request);
  void NoteCall(Lane& lane, const Invocation& invocation, const protocol::Reply& reply);
  void HoldForSave(Lane& lane, Client& client, size_t mark);

  void Resolve(Lane& lane, Request& request);
  const commands::Command* FindCommand(Lane& lane, Request& request);
  void Prefetch(const Lane& lane, std::span<const Request> batch);
  void PrefetchLock(const Lane& lane, const Request& request);
  void LookAhead(const Lane& lane, std::span<const Request> next) const;
  static bool NeedsHeld(const Lane& lane, const Request& request);

  Engine& engine_;
};

}  // namespace sava::engine
