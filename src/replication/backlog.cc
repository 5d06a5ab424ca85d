#include "replication/backlog.h"

#include <algorithm>
#include <cstring>

namespace sava::replication {

namespace {

// At most this many blocks leave at once: a slow reader that is dropped may have kept gigabytes.
constexpr int kTrimAtOnce = 128;
constexpr int64_t kBlocksOfBacklog = 16;

int64_t MemoryOf(const BacklogBlock& block) {
  constexpr size_t kOwner = 2 * sizeof(std::shared_ptr<BacklogBlock>);  // with its counts
  return static_cast<int64_t>(block.size + sizeof(BacklogBlock) + kOwner);
}

}  // namespace

Backlog::Backlog(int64_t begin, int64_t keep)
    : keep_(keep), written_(begin), first_(begin), end_(begin) {
  AddBlock(0);
}

void Backlog::AddBlock(size_t wanted) {
  const auto most = static_cast<size_t>(
      std::max<int64_t>(keep_.load(std::memory_order_relaxed) / kBlocksOfBacklog, kSmallestBlock));
  auto block = std::make_shared<BacklogBlock>(
      written_, std::clamp(wanted, kSmallestBlock, std::max(most, kSmallestBlock)));
  tail_ = block.get();
  memory_.fetch_add(MemoryOf(*block), std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  blocks_.push_back(std::move(block));
  TrimLocked();
}

void Backlog::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    if (written_ == tail_->begin + static_cast<int64_t>(tail_->size)) {
      AddBlock(bytes.size());
    }
    const auto used = static_cast<size_t>(written_ - tail_->begin);
    const size_t size = std::min(bytes.size(), tail_->size - used);
    memcpy(tail_->data.get() + used, bytes.data(), size);
    written_ += static_cast<int64_t>(size);
    bytes.remove_prefix(size);
  }
}

void Backlog::MarkForeign(int64_t begin, int64_t end, commands::Reader least) {
  const std::lock_guard lock(mutex_);
  for (size_t reader = 0; reader < static_cast<size_t>(least); ++reader) {
    foreign_[reader].push_back({begin, end});
  }
}

int64_t Backlog::first() const {
  const std::lock_guard lock(mutex_);
  return first_;
}

BacklogPlace Backlog::AtWritten() {
  const std::lock_guard lock(mutex_);
  return {written_, blocks_.back()};
}

std::optional<BacklogPlace> Backlog::Open(int64_t at) {
  const std::lock_guard lock(mutex_);
  if (at < first_ || at > end()) return std::nullopt;
  const auto behind =
      std::ranges::upper_bound(blocks_, at, {}, [](const auto& block) { return block->begin; });
  return BacklogPlace{at, *std::prev(behind)};
}

std::string_view Backlog::Read(BacklogPlace* place, int64_t limit) {
  const int64_t end = std::min(limit, this->end());
  if (place->at >= end) return {};
  const BacklogBlock* block = place->block.get();
  if (place->at >= block->begin + static_cast<int64_t>(block->size)) {
    const std::lock_guard lock(mutex_);
    const auto behind = std::ranges::upper_bound(blocks_, place->at, {},
                                                 [](const auto& one) { return one->begin; });
    place->block = *std::prev(behind);
    block = place->block.get();
  }
  const int64_t stop = std::min(end, block->begin + static_cast<int64_t>(block->size));
  return {block->data.get() + (place->at - block->begin), static_cast<size_t>(stop - place->at)};
}

std::optional<Backlog::Span> Backlog::ForeignFrom(int64_t at, commands::Reader reader) const {
  if (reader == commands::Reader::kSava) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const std::deque<Span>& foreign = foreign_[static_cast<size_t>(reader)];
  const auto found = std::ranges::upper_bound(foreign, at, {}, &Span::end);
  if (found == foreign.end()) return std::nullopt;
  return *found;
}

void Backlog::Trim() {
  const std::lock_guard lock(mutex_);
  TrimLocked();
}

// The last block is the writer's.
void Backlog::TrimLocked() {
  const int64_t keep = keep_.load(std::memory_order_relaxed);
  for (int i = 0; i < kTrimAtOnce && blocks_.size() > 1; ++i) {
    const auto& front = blocks_.front();
    const int64_t behind = front->begin + static_cast<int64_t>(front->size);
    if (end() - behind < keep || front.use_count() > 1) break;
    memory_.fetch_sub(MemoryOf(*front), std::memory_order_relaxed);
    first_ = behind;
    blocks_.pop_front();
  }
  for (std::deque<Span>& foreign : foreign_) {
    while (!foreign.empty() && foreign.front().end <= first_) foreign.pop_front();
  }
}

}  // namespace sava::replication
