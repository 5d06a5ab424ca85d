// Gate: cheap for the many, exclusive for the one. Every thread passes it once per batch; a command
// that needs the whole database to itself closes it and waits until all others are outside.
//
// Enter publishes the lane in Epoch (one atomic exchange); Close raises a flag and waits for the
// lanes. A thread that wants to close must be outside itself. After each closure the threads that
// waited get in before the gate can be closed again.
//
// A thread that finds the gate closed sleeps (Enter), or goes on with other things and is woken
// when it may come again (TryEnter): an event loop waits in epoll, so that it can still answer. The
// thread that holds the gate closed for long declares itself busy: the others are woken, and may
// serve, one at a time, what needs nothing of what the gate guards (BusyPass).
#pragma once

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "keyspace/epoch.h"

namespace sava::keyspace {

class Gate {
 public:
  explicit Gate(size_t lanes) : epoch_(lanes), lanes_(std::make_unique<Waiting[]>(lanes)) {}

  Epoch& epoch() { return epoch_; }
  // What wakes the lane's thread. REQUIRES: before there are threads.
  void set_wake(size_t lane, std::function<void()> wake) { lanes_[lane].wake = std::move(wake); }

  void Enter(size_t lane) {
    while (!Passes(lane)) {
      waiting_.fetch_add(1, std::memory_order_relaxed);
      while (closed_.load(std::memory_order_acquire) != 0) Futex(FUTEX_WAIT_PRIVATE, 1);
      waiting_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  // False when the gate is closed: the lane is woken when it opens, and once when its holder
  // declares itself busy; it is to try again then.
  bool TryEnter(size_t lane) {
    Waiting& own = lanes_[lane];
    while (!Passes(lane)) {
      if (!own.counted) waiting_.fetch_add(1, std::memory_order_relaxed);
      own.counted = true;
      own.asks.store(true, std::memory_order_seq_cst);
      if (closed_.load(std::memory_order_seq_cst) != 0) return false;
      own.asks.store(false, std::memory_order_relaxed);  // it has opened meanwhile
    }
    if (own.counted) waiting_.fetch_sub(1, std::memory_order_relaxed);
    own.counted = false;
    return true;
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
    if (busy_.load(std::memory_order_relaxed)) {
      busy_.store(false, std::memory_order_seq_cst);
      while (busy_passes_.load(std::memory_order_seq_cst) > 0) sched_yield();
    }
    closed_.store(0, std::memory_order_seq_cst);
    Futex(FUTEX_WAKE_PRIVATE, INT32_MAX);
    WakeAll();
    token_.unlock();
  }

  // What this thread does with the gate closed takes long, until it opens it. REQUIRES: it has
  // closed it.
  void DeclareBusy() {
    busy_.store(true, std::memory_order_seq_cst);
    WakeAll();
  }
  bool busy() const { return busy_.load(std::memory_order_acquire); }

 private:
  friend class BusyPass;

  struct alignas(64) Waiting {
    std::atomic<bool> asks{false};  // to be woken
    bool counted = false;           // in waiting_; its own thread's
    std::function<void()> wake;
  };

  bool Passes(size_t lane) {
    epoch_.Enter(lane);
    if (closed_.load(std::memory_order_seq_cst) == 0) return true;
    epoch_.Leave(lane);
    return false;
  }
  void WakeAll() {
    for (size_t i = 0; i < epoch_.lane_count(); ++i) {
      Waiting& lane = lanes_[i];
      if (!lane.asks.load(std::memory_order_seq_cst)) continue;
      if (lane.asks.exchange(false, std::memory_order_seq_cst) && lane.wake) lane.wake();
    }
  }
  void Futex(int operation, int value) {
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&closed_), operation, value, nullptr, nullptr,
            0);
  }

  Epoch epoch_;
  std::unique_ptr<Waiting[]> lanes_;
  std::atomic<uint32_t> closed_{0};
  std::atomic<int> waiting_{0};
  std::atomic<bool> busy_{false};
  std::atomic<int> busy_passes_{0};
  std::mutex busy_mutex_;  // whoever serves while the holder is busy, the holder included
  std::mutex token_;
};

// While it lives the holder of the gate is busy and does not open it, and no other thread has a
// pass. Not given (false) when the holder is not busy, or not any more.
class BusyPass {
 public:
  explicit BusyPass(Gate& gate) : gate_(gate) {
    gate_.busy_passes_.fetch_add(1, std::memory_order_seq_cst);
    given_ = gate_.busy_.load(std::memory_order_seq_cst);
    if (given_) gate_.busy_mutex_.lock();
  }
  ~BusyPass() {
    if (given_) gate_.busy_mutex_.unlock();
    gate_.busy_passes_.fetch_sub(1, std::memory_order_seq_cst);
  }
  BusyPass(const BusyPass&) = delete;
  BusyPass& operator=(const BusyPass&) = delete;
  explicit operator bool() const { return given_; }

 private:
  Gate& gate_;
  bool given_ = false;
};

}  // namespace sava::keyspace
