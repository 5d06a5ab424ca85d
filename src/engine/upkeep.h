// StripeUpkeep: expiry and compaction, a little each time.
#pragma once

#include "engine/lane.h"

namespace sava::engine {

class Engine;

class StripeUpkeep {
 public:
  explicit StripeUpkeep(Engine* engine) : engine_(*engine) {}

  // Visits the stripes that belong to the lane, within half a millisecond; true when there is more
  // to do soon.
  bool Run(Lane& lane);

 private:
  bool VisitStripe(Lane& lane, size_t stripe);
  bool ExpireKeys(Lane& lane, int db, keyspace::Table& table);

  Engine& engine_;
};

}  // namespace sava::engine
