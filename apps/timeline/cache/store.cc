#include "cache/store.h"

#include <chrono>

namespace timeline {
namespace {

// After a failed attempt to connect, nobody tries again for this long: a page waits only once.
constexpr std::int64_t kRestMilliseconds = 100;

std::int64_t SteadyMilliseconds() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

Store::Lease Store::Borrow() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return Lease(this, std::move(connection));
    }
    if (SteadyMilliseconds() < retry_after_) return Lease(this, nullptr);
  }
  auto connection = Open();
  if (connection) {
    generation_.fetch_add(1);
  } else {
    std::lock_guard lock(mutex_);
    retry_after_ = SteadyMilliseconds() + kRestMilliseconds;
  }
  return Lease(this, std::move(connection));
}

void Store::Return(std::unique_ptr<StoreConnection> connection) {
  std::lock_guard lock(mutex_);
  if (connection->usable()) {
    idle_.push_back(std::move(connection));
    return;
  }
  // The others go to the same server: they are dropped before somebody waits for each of them.
  generation_.fetch_add(1);
  idle_.clear();
}

}  // namespace timeline
