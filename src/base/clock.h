// Time as a parameter: wall clock in milliseconds, a monotonic clock, and cheap CPU ticks for
// measuring commands. Tests hold time still with ManualClock.
#pragma once

#include <atomic>
#include <cstdint>

namespace sava::base {

class Clock {
 public:
  virtual ~Clock() = default;
  // Microseconds since the Unix epoch.
  virtual int64_t WallMicros() const = 0;
  // Microseconds that never go back.
  virtual int64_t MonotonicMicros() const = 0;

  int64_t WallMillis() const { return WallMicros() / 1000; }

  static const Clock& System();
};

class ManualClock final : public Clock {
 public:
  explicit ManualClock(int64_t micros) : micros_(micros) {}
  int64_t WallMicros() const override { return micros_.load(std::memory_order_relaxed); }
  int64_t MonotonicMicros() const override { return WallMicros(); }
  void AdvanceMillis(int64_t ms) { micros_.fetch_add(ms * 1000, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> micros_;
};

// Ticks of the processor's constant-rate counter; convert with TicksPerMicro().
inline uint64_t Ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#endif
}

// Calibrated once, at first use.
double TicksPerMicro();

// How long work may go on before others get their turn: a millisecond unless it says otherwise,
// from when it is made.
class Budget {
 public:
  explicit Budget(int64_t micros = 1000)
      : end_(Ticks() + static_cast<uint64_t>(static_cast<double>(micros) * TicksPerMicro())) {}
  bool spent(uint64_t now = Ticks()) const { return now > end_; }

 private:
  uint64_t end_;
};

}  // namespace sava::base
