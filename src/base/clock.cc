#include "base/clock.h"

#include <ctime>

namespace sava::base {

namespace {

int64_t Read(clockid_t id) {
  timespec now;
  clock_gettime(id, &now);
  return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

class SystemClock final : public Clock {
 public:
  int64_t WallMicros() const override { return Read(CLOCK_REALTIME); }
  int64_t MonotonicMicros() const override { return Read(CLOCK_MONOTONIC); }
};

double Calibrate() {
  const int64_t start = Read(CLOCK_MONOTONIC);
  const uint64_t ticks = Ticks();
  int64_t now = start;
  while (now - start < 5000) now = Read(CLOCK_MONOTONIC);
  return static_cast<double>(Ticks() - ticks) / static_cast<double>(now - start);
}

}  // namespace

const Clock& Clock::System() {
  static const SystemClock clock;
  return clock;
}

double TicksPerMicro() {
  static const double rate = Calibrate();
  return rate;
}

}  // namespace sava::base
