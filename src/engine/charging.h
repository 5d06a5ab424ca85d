// Charging: the engine's side of the limiter (limiter.h): commands are charged to the buckets of
// their client, and buckets and their keys are kept the same.
//
// A bucket's key is written and read under the lock of its stripe; the bucket's own lock is taken
// inside that, never the other way round.
#pragma once

#include "commands/registry.h"
#include "engine/lane.h"
#include "engine/limiter.h"

namespace sava::engine {

class Engine;
class Invocation;
struct Work;

class Charging {
 public:
  explicit Charging(Engine* engine) : engine_(*engine) {}

  // True when the command may go on; otherwise it was answered.
  bool Charge(Lane& lane, const Request& request);
  // Runs a command that may name keys of buckets, see Runner::Call.
  bool Call(Lane& lane, const Work& work);
  // Writes changed buckets to their keys: when it is time, or all. REQUIRES: inside the gate, no
  // stripe is held but the one that is kept for the next command.
  void WriteDue(Lane& lane);
  void WriteBuckets(Lane& lane);

 private:
  template <typename Visit>
  void ForEachBucketKey(const commands::Command& command, commands::Args args, const Visit& visit);
  bool WritesOwnBucket(const Client& client, const commands::Command& command, commands::Args args);
  void LoadBucket(Lane& lane, RateBucket& bucket);
  void WriteBucket(Lane& lane, RateBucket& bucket, Invocation* outer);
  void ReloadAll(Lane& lane, const Client& client);

  Engine& engine_;
};

}  // namespace sava::engine
