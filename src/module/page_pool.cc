// PagePool inside another host. Regions are small, since a host may have little data of ours, and
// no huge pages are asked for: the host forks to save. A region is its pages and what aligning them
// takes, in one block of the host's; nothing is kept for later but one free region.
#include "base/page_pool.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <new>
#include <utility>

#include "base/large_memory.h"

namespace sava::base {

namespace {

constexpr size_t kRegionPages = 64;
constexpr uint64_t kAllFree = ~uint64_t{0};

}  // namespace

PagePool::~PagePool() {
  for (const auto& [base, region] : regions_) FreeAligned(base);
}

PagePool& PagePool::Shared() {
  static auto* const pool = new PagePool;
  return *pool;
}

void* PagePool::Allocate(size_t pages) {
  assert(pages > 0 && pages <= kPages);
  if (pages > 1) {
    void* const row = AlignedMemory(kPage, pages * kPage);
    if (row == nullptr) throw std::bad_alloc();
    return row;
  }
  const std::lock_guard lock(mutex_);
  if (open_.empty()) {
    auto* const base = static_cast<char*>(AlignedMemory(kPage, kRegionPages * kPage));
    if (base == nullptr) throw std::bad_alloc();
    try {
      open_.insert(base);
      regions_.try_emplace(base).first->second.idle[0] = kAllFree;
    } catch (...) {
      open_.erase(base);
      FreeAligned(base);
      throw;
    }
    regions_count_.store(regions_.size(), std::memory_order_relaxed);
    free_.fetch_add(kRegionPages, std::memory_order_relaxed);
  }
  char* const base = *open_.begin();
  Region& region = regions_.find(base)->second;
  const auto page = static_cast<size_t>(std::countr_zero(region.idle[0]));
  region.idle[0] &= ~(uint64_t{1} << page);
  if (region.idle[0] == 0) region.closed = open_.extract(base);
  if (base == spare_) spare_ = nullptr;
  free_.fetch_sub(1, std::memory_order_relaxed);
  return base + page * kPage;
}

void PagePool::Free(void* first, size_t pages) {
  if (pages > 1) return FreeAligned(first);
  const std::lock_guard lock(mutex_);
  auto at = regions_.upper_bound(static_cast<char*>(first));
  assert(at != regions_.begin());
  --at;
  Region& region = at->second;
  const size_t page = static_cast<size_t>(static_cast<char*>(first) - at->first) / kPage;
  assert(page < kRegionPages && (region.idle[0] >> page & 1) == 0);
  region.idle[0] |= uint64_t{1} << page;
  free_.fetch_add(1, std::memory_order_relaxed);
  if (!region.closed.empty()) open_.insert(std::move(region.closed));
  if (region.idle[0] != kAllFree) return;
  if (spare_ == nullptr) {
    spare_ = at->first;
    return;
  }
  char* const base = at->first;
  open_.erase(base);
  regions_.erase(at);
  regions_count_.store(regions_.size(), std::memory_order_relaxed);
  free_.fetch_sub(kRegionPages, std::memory_order_relaxed);
  FreeAligned(base);
}

// Nothing is made ready ahead of the need, and nothing free is kept.
void PagePool::set_helper(std::function<void()> /*helper*/) {}
void PagePool::Prepare() {}
bool PagePool::Trim(size_t /*least*/) { return false; }
size_t PagePool::WorthTrimming() { return 0; }

}  // namespace sava::base
