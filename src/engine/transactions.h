// Transactions: MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//
// EXEC locks the stripes of all queued and all watched keys together, in ascending order, and looks
// at the watches only then: two clients that each watch what the other writes cannot both succeed.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "commands/registry.h"
#include "engine/client.h"
#include "engine/lane.h"

namespace sava::engine {

class Engine;
class LargeArguments;

class Transactions {
 public:
  explicit Transactions(Engine* engine) : engine_(*engine) {}

  void Queue(Client& client, const commands::Command& command, commands::Args args);
  // EXEC; false when the client is to wait.
  bool Run(Lane& lane, Client& client, const commands::Command& exec, commands::Args args);
  void Discard(Lane& lane, Client& client);
  // While another thread is busy (Runner::RunBusy) it is done by the lane's next batch.
  void Unwatch(Lane& lane, Client& client);
  void UnwatchDue(Lane& lane);

 private:
  using Views = std::vector<std::vector<std::string_view>>;  // of the queued commands' arguments

  // The stripes of all queued and all watched keys; their hashes in lane.batch.key_hashes.
  LockSet LocksOf(Lane& lane, const Client& client, const Views& views);
  using Queued = std::vector<QueuedCommand>;
  // False: a script of it wants more than it has locked, and nothing was done: it must run
  // again with the gate closed.
  bool RunQueued(Lane& lane, Client& client, const commands::Command& exec, commands::Args args,
                 const Queued& queue, const Views& views, LargeArguments* large);
  bool WatchedKeysChanged(const Lane& lane, Client& client);
  // REQUIRES: the stripes of all watched keys are locked.
  void ForgetWatches(Client& client);

  Engine& engine_;
};

}  // namespace sava::engine
