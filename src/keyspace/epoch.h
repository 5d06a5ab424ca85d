// Epoch: memory that other threads may still be looking at (table segments read by the prefetch
// stage without a lock) is freed only when every thread has left the gate since.
//
// A lane (one per thread) publishes the epoch it entered at; Retire stamps memory with the current
// epoch; Collect frees what is older than every lane inside.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>

namespace sava::keyspace {

class Epoch {
 public:
  explicit Epoch(size_t lanes) : lanes_(std::make_unique<Lane[]>(lanes)), lane_count_(lanes) {}
  ~Epoch() {
    for (const Retired& item : retired_) free(item.memory);
  }
  Epoch(const Epoch&) = delete;
  Epoch& operator=(const Epoch&) = delete;

  void Enter(size_t lane) {
    lanes_[lane].at.store(now_.load(std::memory_order_relaxed), std::memory_order_seq_cst);
  }
  void Leave(size_t lane) { lanes_[lane].at.store(0, std::memory_order_release); }
  bool Inside(size_t lane) const { return lanes_[lane].at.load(std::memory_order_seq_cst) != 0; }
  size_t lane_count() const { return lane_count_; }

  // Memory from malloc that nobody can find any more.
  void Retire(void* memory) {
    const uint64_t stamp = now_.fetch_add(1, std::memory_order_acq_rel);
    std::lock_guard lock(mutex_);
    retired_.push_back({memory, stamp});
    pending_.store(true, std::memory_order_relaxed);
  }
  // Cheap when there is nothing to do. Call outside, or between batches.
  void Collect() {
    if (!pending_.load(std::memory_order_relaxed)) return;
    uint64_t oldest = UINT64_MAX;
    for (size_t i = 0; i < lane_count_; ++i) {
      const uint64_t at = lanes_[i].at.load(std::memory_order_seq_cst);
      if (at != 0 && at < oldest) oldest = at;
    }
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return;
    while (!retired_.empty() && retired_.front().stamp < oldest) {
      free(retired_.front().memory);
      retired_.pop_front();
    }
    if (retired_.empty()) pending_.store(false, std::memory_order_relaxed);
  }

 private:
  struct alignas(64) Lane {
    std::atomic<uint64_t> at{0};
  };
  struct Retired {
    void* memory;
    uint64_t stamp;
  };

  std::unique_ptr<Lane[]> lanes_;
  size_t lane_count_;
  std::atomic<uint64_t> now_{1};
  std::atomic<bool> pending_{false};
  std::mutex mutex_;
  std::deque<Retired> retired_;  // guarded by mutex_, stamps ascending (nearly: freed in order)
};

}  // namespace sava::keyspace
