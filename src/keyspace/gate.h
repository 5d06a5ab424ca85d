// Gate: cheap for the many, exclusive for the one. Every thread passes it once per batch; a command
// that needs the whole database to itself closes it and waits until all others are outside.
//
// Enter publishes the lane in Epoch (one atomic exchange); Close raises a flag and waits for the
// lanes. A thread that wants to close must be outside itself. After each closure the threads that
// waited get in before the gate can be closed again.
#pragma once

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <mutex>

#include "keyspace/epoch.h"

namespace sava::keyspace {

class Gate {
 public:
  explicit Gate(size_t lanes) : epoch_(lanes) {}

  Epoch& epoch() { return epoch_; }

  void Enter(size_t lane) {
    while (true) {
      epoch_.Enter(lane);
      if (closed_.load(std::memory_order_seq_cst) == 0) return;
      epoch_.Leave(lane);
      waiting_.fetch_add(1, std::memory_order_relaxed);
      while (closed_.load(std::memory_order_acquire) != 0) Futex(FUTEX_WAIT_PRIVATE, 1);
      waiting_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  void Leave(size_t lane) { epoch_.Leave(lane); }
  // Somebody waits to close: leave between two commands.
  bool wanted() const { return closed_.load(std::memory_order_relaxed) != 0; }

  // REQUIRES: the calling lane is outside.
  void Close() {
    token_.lock();
    for (int i = 0; i < 1000 && waiting_.load(std::memory_order_relaxed) > 0; ++i) sched_yield();
    closed_.store(1, std::memory_order_seq_cst);
    for (size_t i = 0; i < epoch_.lane_count(); ++i) {
      for (int spins = 0; epoch_.Inside(i); ++spins) {
        if (spins > 64) sched_yield();
      }
    }
  }
  void Open() {
    closed_.store(0, std::memory_order_seq_cst);
    Futex(FUTEX_WAKE_PRIVATE, INT32_MAX);
    token_.unlock();
  }

 private:
  void Futex(int operation, int value) {
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&closed_), operation, value, nullptr, nullptr,
            0);
  }

  Epoch epoch_;
  std::atomic<uint32_t> closed_{0};
  std::atomic<int> waiting_{0};
  std::mutex token_;
};

}  // namespace sava::keyspace
