// Epoch: memory that other threads may still be looking at (table segments read by the prefetch
// stage without a lock) is freed only when every thread has left the gate since.
//
// A lane (one per thread) publishes the epoch it entered at; Retire stamps memory with the current
// epoch; Collect frees memory that is older than every lane inside.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>

namespace sava::keyspace {

class Epoch {
 public:
  explicit Epoch(size_t lanes) : lanes_(std::make_unique<Lane[]>(lanes)), lane_count_(lanes) {}
  ~Epoch() {
    while (first_ != nullptr) FreeFirst();
  }
  Epoch(const Epoch&) = delete;
  Epoch& operator=(const Epoch&) = delete;

  void Enter(size_t lane) {
    lanes_[lane].at.store(now_.load(std::memory_order_relaxed), std::memory_order_seq_cst);
  }
  void Leave(size_t lane) { lanes_[lane].at.store(0, std::memory_order_release); }
  bool Inside(size_t lane) const { return lanes_[lane].at.load(std::memory_order_seq_cst) != 0; }
  size_t lane_count() const { return lane_count_; }

  // Memory from malloc that can no longer be found. Its first kRetiredBytes are overwritten, so
  // that retiring takes no memory: a thread that still looks at it does not read those.
  static constexpr size_t kRetiredBytes = 16;
  void Retire(void* memory) noexcept {
    const uint64_t stamp = now_.fetch_add(1, std::memory_order_acq_rel);
    auto* const retired = new (memory) Retired{nullptr, stamp};
    std::lock_guard lock(mutex_);
    (first_ == nullptr ? first_ : last_->next) = retired;
    last_ = retired;
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
    while (first_ != nullptr && first_->stamp < oldest) FreeFirst();
    if (first_ == nullptr) pending_.store(false, std::memory_order_relaxed);
  }

 private:
  struct alignas(64) Lane {
    std::atomic<uint64_t> at{0};
  };
  struct Retired {
    Retired* next;
    uint64_t stamp;
  };
  static_assert(sizeof(Retired) == kRetiredBytes);

  void FreeFirst() {
    Retired* const gone = first_;
    first_ = gone->next;
    free(gone);
  }

  std::unique_ptr<Lane[]> lanes_;
  size_t lane_count_;
  std::atomic<uint64_t> now_{1};
  std::atomic<bool> pending_{false};
  std::mutex mutex_;
  // Guarded by mutex_; stamps ascending (nearly: freed in order).
  Retired* first_ = nullptr;
  Retired* last_ = nullptr;
};

}  // namespace sava::keyspace
