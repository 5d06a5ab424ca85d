// OomScore: the setting oom-score-adj, put into effect.
#pragma once

#include <optional>

#include "base/result.h"
#include "config/settings.h"

namespace sava::config {

// What the system is told about whom to end first when memory runs out (oom-score-adj): from the
// score the process had when this was switched on, or absolute; switched off it has that again.
class OomScore {
 public:
  base::Status Apply(OomScoreAdj mode, int value);

 private:
  std::optional<int> before_;  // while it is switched on
};

}  // namespace sava::config
