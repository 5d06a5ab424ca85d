#include "config/oom_score.h"

#include <algorithm>
#include <fstream>

namespace sava::config {

base::Status OomScore::Apply(OomScoreAdj mode, int value) {
  constexpr const char* kPath = "/proc/self/oom_score_adj";
  const bool on = mode != OomScoreAdj::kNo;
  if (!on && !before_) return {};
  if (!before_) {
    int now = 0;
    std::ifstream(kPath) >> now;
    before_ = now;
  }
  const int base = mode == OomScoreAdj::kAbsolute ? 0 : *before_;
  std::ofstream file(kPath);
  file << std::clamp(on ? base + value : base, -1000, 1000) << std::flush;
  if (!on) before_.reset();
  return file ? base::Status()
              : base::Error{"Failed to set current oom_score_adj. Check server logs."};
}

}  // namespace sava::config
