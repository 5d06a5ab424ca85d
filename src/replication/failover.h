// Failover: a planned hand-over of the mastership (FAILOVER). Writes are paused; when a replica has
// everything, this server becomes its replica, and it becomes the master.
//
// Thread safety: Start and Abort with the gate closed; Tick inside the gate on the first loop; the
// rest on any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sava::replication {

class Master;

class Failover {
 public:
  enum class State : uint8_t { kNone, kWaitingForSync, kInProgress };
  struct Wish {
    std::string host;  // empty: any replica
    int64_t port = 0;
    bool force = false;      // after the timeout, whether or not the replica has everything
    int64_t timeout_ms = 0;  // 0: none
  };

  explicit Failover(Master* master) : master_(*master) {}

  // An error says why not.
  base::Status Start(const Wish& wish);
  // False when there is none.
  bool Abort(std::string_view why);
  void Tick(int64_t now_ms);

  State state() const { return state_.load(std::memory_order_acquire); }
  bool under_way() const { return state() != State::kNone; }
  std::string_view state_name() const;

 private:
  void HandOver(std::string host, int64_t port);
  void End(std::string_view why);

  Master& master_;
  std::atomic<State> state_{State::kNone};
  std::mutex mutex_;
  Wish wish_;                // guarded by mutex_
  int64_t deadline_ms_ = 0;  // guarded by mutex_; 0: none
  uint64_t ticket_ = 0;      // guarded by mutex_: nothing is written from here on
  uint64_t number_ = 0;      // guarded by mutex_: of this try
};

}  // namespace sava::replication
