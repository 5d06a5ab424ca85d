// StripeLock: a mutex that spins for about two microseconds, then sleeps on a futex. Critical
// sections are a few hundred nanoseconds; a holder that was preempted must not burn the waiter's
// core for long. TryLockFor gives up instead, so that a loop can park the connection and go on.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
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

  // Spins, then sleeps: false when the lock was not free within about that many milliseconds.
  bool LockWithin(int64_t millis) {
    if (TryLockFor(2)) return true;
    const timespec limit{millis / 1000, millis % 1000 * 1000000};
    while (state_.exchange(2, std::memory_order_acquire) != 0) {
      if (Futex(FUTEX_WAIT_PRIVATE, 2, &limit) != 0 && errno == ETIMEDOUT) return false;
    }
    return true;
  }

  // Spins only: false when the lock was not had within about `micros`. A holder that lost its core
  // is not worth waiting for, and a thread that sleeps on a busy machine gets its core back late.
  bool TryLockFor(int64_t micros) { return TryLock() || LockSlow(micros); }

  void Unlock() {
    if (state_.exchange(0, std::memory_order_release) == 2) Futex(FUTEX_WAKE_PRIVATE, 1);
  }

 private:
  bool LockSlow(int64_t micros) {
    static const double kTicksPerMicro = base::TicksPerMicro();
    const auto limit =
        static_cast<uint64_t>(static_cast<double>(micros < 0 ? 2 : micros) * kTicksPerMicro);
    const uint64_t start = base::Ticks();
    do {
      for (int i = 0; i < 16; ++i) {
        if (state_.load(std::memory_order_relaxed) == 0 && TryLock()) return true;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      }
    } while (base::Ticks() - start < limit);
    if (micros >= 0) return false;
    // From here on the lock is taken in state 2: another sleeper may be waiting.
    while (state_.exchange(2, std::memory_order_acquire) != 0) Futex(FUTEX_WAIT_PRIVATE, 2);
    return true;
  }

  long Futex(int operation, uint32_t value, const timespec* limit = nullptr) {
    return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&state_), operation, value, limit,
                   nullptr, 0);
  }

  std::atomic<uint32_t> state_{0};  // 0 free, 1 held, 2 held and perhaps waited for
};

}  // namespace sava::keyspace
