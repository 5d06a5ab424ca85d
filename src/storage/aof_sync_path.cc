#include "storage/aof_sync_path.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>

namespace sava::storage {

namespace {

using Clock = std::chrono::steady_clock;

// A ring that takes no longer is left to the thread that waits for it: two threads that wake each
// other would take longer.
constexpr std::chrono::microseconds kQuick{1000};
// By that many bytes before them a file is known again, into which the ring's belong.
constexpr size_t kKnownBy = 256;

}  // namespace

// The next sync is the file's, and the ring may follow after it.
void RingSyncPath::Leave() {
  follows_ = false;
  wants_file_sync_ = false;
  quick_ = false;
  pending_.clear();
}

void RingSyncPath::Restart() {
  Leave();
  last_.clear();
}

void RingSyncPath::Reserve(size_t bytes) {
  if (follows_) pending_.reserve(pending_.size() + bytes);
  last_.reserve(2 * kKnownBy);
}

void RingSyncPath::Append(std::string_view bytes) {
  if (pending_.size() + bytes.size() > AofRing::kMostBytes) Leave();
  if (follows_) pending_ += bytes;
  last_ += bytes.substr(bytes.size() - std::min(bytes.size(), kKnownBy));
  last_.erase(0, last_.size() - std::min(last_.size(), kKnownBy));
}

bool RingSyncPath::MakeDurable(const Increment& at, const std::function<bool()>& sync_file) {
  if (ring_ != nullptr && follows_ && at.counts && Put(at)) return true;
  wants_file_sync_ = false;
  if (!sync_file()) return false;
  pending_.clear();
  before_ = last_;
  follows_ = ring_ != nullptr && !before_.empty();
  return true;
}

bool RingSyncPath::Put(const Increment& at) {
  if (!pending_.empty()) {
    const Clock::time_point began = Clock::now();
    quick_ = false;
    const auto put =
        ring_->Put(at.sequence, at.size - pending_.size(), before_, pending_, at.synced_size);
    if (!put) {
      spdlog::warn("Syncs of the AOF go without {}: {}", path_, put.error());
      Leave();
      ring_ = nullptr;
      refused_ = true;
    }
    if (!put || !put.value()) return false;
    quick_ = Clock::now() - began < kQuick;
    syncs_.fetch_add(1, std::memory_order_relaxed);
    pending_.clear();
    before_ = last_;
  }
  wants_file_sync_ = ring_->half_full();
  return true;
}

void RingSyncPath::Prepare(Lock& lock) {
  refused_ = true;
  lock.unlock();
  auto made = AofRing::Make(files_, path_, size_);
  lock.lock();
  if (!made) {
    spdlog::warn("Syncs of the AOF go without a ring: {}", made.error());
    return;
  }
  ring_ = std::move(*made);
  refused_ = false;
}

// Bytes that only the ring has must be in the file soon.
bool RingSyncPath::LookForFile(Lock& lock) {
  if (ring_ == nullptr) return true;
  lock.unlock();
  const bool there = files_.Exists(path_);
  lock.lock();
  if (there || ring_ == nullptr) return true;
  spdlog::warn("{} has vanished, making it again", path_);
  Leave();
  ring_ = nullptr;
  return false;
}

void RingSyncPath::Remove(Lock& lock) {
  if (ring_ == nullptr) return;
  Restart();
  ring_ = nullptr;
  lock.unlock();
  (void)files_.Remove(path_);
  lock.lock();
}

}  // namespace sava::storage
