// StripeLock: a mutex that spins for about two microseconds, then sleeps on a futex. Critical
// sections are a few hundred nanoseconds; a holder that was preempted must not burn the waiter's
// core. TryLockFor gives up, so that a loop can park the connection and go on.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

#include "base/clock.h"

namespace sava::keyspace {

class StripeLock {
 public:
  bool TryLock() {
    uint32_t expected = 0;
    return state_.compare_exchange_strong(expected, 1, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }

  void Lock() {
    if (!TryLock()) LockSlow(-1);
  }

  // False when the lock was not had within about `micros`.
  bool TryLockFor(int64_t micros) { return TryLock() || LockSlow(micros); }

  void Unlock() {
    if (state_.exchange(0, std::memory_order_release) == 2) Futex(FUTEX_WAKE_PRIVATE, 1, nullptr);
  }

 private:
  bool LockSlow(int64_t micros) {
    static const auto kSpin = static_cast<uint64_t>(2 * base::TicksPerMicro());
    const uint64_t start = base::Ticks();
    do {
      for (int i = 0; i < 16; ++i) {
        if (state_.load(std::memory_order_relaxed) == 0 && TryLock()) return true;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      }
    } while (base::Ticks() - start < kSpin);
    const int64_t deadline = micros < 0 ? 0 : base::Clock::System().MonotonicMicros() + micros;
    // From here on the lock is taken in state 2: another sleeper may be waiting.
    while (state_.exchange(2, std::memory_order_acquire) != 0) {
      if (micros < 0) {
        Futex(FUTEX_WAIT_PRIVATE, 2, nullptr);
        continue;
      }
      const int64_t left = deadline - base::Clock::System().MonotonicMicros();
      if (left <= 0) return false;
      const timespec wait{0, left * 1000};
      Futex(FUTEX_WAIT_PRIVATE, 2, &wait);
    }
    return true;
  }

  void Futex(int operation, uint32_t value, const timespec* timeout) {
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&state_), operation, value, timeout, nullptr, 0);
  }

  std::atomic<uint32_t> state_{0};  // 0 free, 1 held, 2 held and perhaps waited for
};

}  // namespace sava::keyspace
