// Gate: cheap for the many, exclusive for the one. Every thread passes it once per batch; a command
// that needs the whole database to itself closes it and waits until all others are outside.
//
// Enter publishes the lane in Epoch (one atomic exchange); Close raises a flag and waits for the
// lanes. A thread that wants to close must be outside itself. After each closure the threads that
// waited get in before the gate can be closed again.
//
// A thread that finds the gate closed sleeps. A thread that does something for long, with the gate
// closed or under locks, declares itself busy. The threads that wait for it then look at their
// connections instead of sleeping, and answer, one thread at a time, what needs nothing that the
// gate guards (Serve, BusyPass).
#pragma once

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "keyspace/epoch.h"
#include "keyspace/stripe_lock.h"

namespace sava::keyspace {

class Gate {
 public:
  static constexpr size_t kNoLane = SIZE_MAX;

  explicit Gate(size_t lanes) : epoch_(lanes), serve_(std::make_unique<ServeFunction[]>(lanes)) {}

  Epoch& epoch() { return epoch_; }
  // The lane's thread calls this, for a little work each time, while it waits for a thread
  // that is busy. REQUIRES: on that thread, or before there are threads.
  void set_serve(size_t lane, std::function<void(int wait_ms)> serve) {
    serve_[lane] = std::move(serve);
  }
  // False when no thread is busy, or the lane has nothing to do meanwhile: the caller sleeps.
  bool Serve(size_t lane, int wait_ms = 5) {
    if (!busy() || lane == kNoLane || !serve_[lane]) return false;
    serve_[lane](wait_ms);
    return true;
  }

  void Enter(size_t lane) {
    while (!Passes(lane)) {
      waiting_.fetch_add(1, std::memory_order_relaxed);
      while (closed_.load(std::memory_order_acquire) != 0) {
        if (!Serve(lane)) Futex(FUTEX_WAIT_PRIVATE, 1, serve_[lane] ? &kPatience : nullptr);
      }
      waiting_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  void Leave(size_t lane) { epoch_.Leave(lane); }
  // A thread waits to close: leave between two commands.
  bool wanted() const { return closed_.load(std::memory_order_relaxed) != 0; }

  // REQUIRES: the calling lane is outside.
  void Close(size_t lane = kNoLane) {
    while (!token_.LockWithin(2)) Serve(lane);
    for (int i = 0; i < 1000 && waiting_.load(std::memory_order_relaxed) > 0; ++i) sched_yield();
    closed_.store(1, std::memory_order_seq_cst);
    for (size_t i = 0; i < epoch_.lane_count(); ++i) {
      for (int spins = 0; epoch_.Inside(i); ++spins) {
        if (spins > 64 && !Serve(lane)) sched_yield();
      }
    }
  }
  void Open() {
    closed_.store(0, std::memory_order_seq_cst);
    Futex(FUTEX_WAKE_PRIVATE, INT32_MAX);
    token_.Unlock();
  }

  // What this thread does inside, or with the gate closed, takes long. Several may be busy.
  // REQUIRES: what serving threads need does not change until EndBusy, which comes before it
  // leaves.
  void DeclareBusy() { busy_.fetch_add(1, std::memory_order_seq_cst); }
  void EndBusy() {
    if (busy_.fetch_sub(1, std::memory_order_seq_cst) != 1) return;
    while (busy_passes_.load(std::memory_order_seq_cst) > 0) sched_yield();
  }
  bool busy() const { return busy_.load(std::memory_order_acquire) > 0; }

  // ---- one thread at a time may ask for a further stripe while it holds some ----
  // False: another does. A thread that takes stripes one after the other, and finds one taken,
  // gives them back meanwhile and tries again.
  bool BeginExtending() { return !extending_.exchange(true, std::memory_order_acq_rel); }
  void EndExtending() { extending_.store(false, std::memory_order_release); }
  bool extending() const { return extending_.load(std::memory_order_acquire); }

 private:
  friend class BusyPass;

  // A lane's thread calls it while it waits.
  using ServeFunction = std::function<void(int wait_ms)>;
  // A thread that sleeps checks this often whether another one is busy.
  static constexpr timespec kPatience{0, 2000000};

  bool Passes(size_t lane) {
    epoch_.Enter(lane);
    if (closed_.load(std::memory_order_seq_cst) == 0) return true;
    epoch_.Leave(lane);
    return false;
  }
  void Futex(int operation, int value, const timespec* limit = nullptr) {
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&closed_), operation, value, limit, nullptr, 0);
  }

  Epoch epoch_;
  std::unique_ptr<ServeFunction[]> serve_;
  std::atomic<uint32_t> closed_{0};
  std::atomic<int> waiting_{0};
  std::atomic<int> busy_{0};  // threads that are
  std::atomic<int> busy_passes_{0};
  // Threads that serve while another is busy, and that one itself; a pass may be taken in a pass.
  std::recursive_mutex busy_mutex_;
  std::atomic<bool> extending_{false};
  StripeLock token_;
};

// While it lives a thread is busy and stays inside, and no other thread has a pass. False when no
// thread is busy, or none is any more.
class BusyPass {
 public:
  explicit BusyPass(Gate& gate) : gate_(gate) {
    gate_.busy_passes_.fetch_add(1, std::memory_order_seq_cst);
    given_ = gate_.busy_.load(std::memory_order_seq_cst) > 0;
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
