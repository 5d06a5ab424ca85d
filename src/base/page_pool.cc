#include "base/page_pool.h"

#include <sys/mman.h>

#include <bit>
#include <cassert>
#include <cstdlib>
#include <new>
#include <utility>

namespace sava::base {

namespace {

constexpr size_t kLookAt = 256;  // regions that one Trim looks at

// Clears the lowest bit that is set and says which it was. REQUIRES: there is one.
template <typename Bits>
size_t TakeFirst(Bits& bits) {
  size_t word = 0;
  while (bits[word] == 0) ++word;
  const auto bit = static_cast<size_t>(std::countr_zero(bits[word]));
  bits[word] &= bits[word] - 1;
  return word * 64 + bit;
}

template <typename Bits>
bool Has(const Bits& bits, size_t index) {
  return (bits[index / 64] >> (index % 64) & 1) != 0;
}

}  // namespace

PagePool::~PagePool() {
  for (const auto& [base, region] : regions_) free(base);
}

PagePool& PagePool::Shared() {
  static auto* const pool = new PagePool;
  return *pool;
}

void PagePool::AddRegion() {
  auto* const base = static_cast<char*>(aligned_alloc(kRegion, kRegion));
  if (base == nullptr) throw std::bad_alloc();
  try {
    open_.insert(base);
    regions_.try_emplace(base);
  } catch (...) {
    open_.erase(base);
    free(base);
    throw;
  }
  Region& region = regions_.find(base)->second;
  if (regions_.size() > kSmallRegions) {
    // A wish: without huge pages everything works as well, only slower.
    static_cast<void>(madvise(base, kRegion, MADV_HUGEPAGE));
    region.idle.fill(~uint64_t{0});
    region.idle_count = kPages;
    idle_.fetch_add(kPages, std::memory_order_relaxed);
  } else {
    region.bare.fill(~uint64_t{0});
    region.bare_count = kPages;
  }
  free_.fetch_add(kPages, std::memory_order_relaxed);
  regions_count_.store(regions_.size(), std::memory_order_relaxed);
}

void* PagePool::Allocate() {
  std::lock_guard lock(mutex_);
  allocated_ = true;
  if (open_.empty()) AddRegion();
  char* const base = *open_.begin();
  if (base == spare_) spare_ = nullptr;
  Region& region = regions_.find(base)->second;
  size_t index = 0;
  if (region.idle_count > 0) {
    index = TakeFirst(region.idle);
    --region.idle_count;
    idle_.fetch_sub(1, std::memory_order_relaxed);
  } else {
    index = TakeFirst(region.bare);
    --region.bare_count;
  }
  free_.fetch_sub(1, std::memory_order_relaxed);
  if (region.idle_count + region.bare_count == 0) open_.erase(open_.begin());
  return base + index * kPage;
}

void PagePool::Free(void* page) {
  const auto address = reinterpret_cast<uintptr_t>(page);
  const size_t index = address % kRegion / kPage;
  std::unique_lock lock(mutex_);
  const auto at = regions_.find(reinterpret_cast<char*>(address - address % kRegion));
  assert(at != regions_.end() && address % kPage == 0);
  Region& region = at->second;
  assert(!Has(region.idle, index) && !Has(region.bare, index));
  region.idle[index / 64] |= uint64_t{1} << (index % 64);
  ++region.idle_count;
  idle_.fetch_add(1, std::memory_order_relaxed);
  free_.fetch_add(1, std::memory_order_relaxed);
  Opened(at->first, region, lock);
}

void PagePool::Opened(char* base, const Region& region, std::unique_lock<std::mutex>& lock) {
  const bool keep = spare_ == nullptr && region.idle_count > 0;
  if (region.idle_count + region.bare_count < kPages || keep) {
    open_.insert(base);
    if (region.idle_count + region.bare_count == kPages) spare_ = base;
    return;
  }
  idle_.fetch_sub(region.idle_count, std::memory_order_relaxed);
  free_.fetch_sub(kPages, std::memory_order_relaxed);
  if (base == spare_) spare_ = nullptr;
  open_.erase(base);
  regions_.erase(base);
  regions_count_.store(regions_.size(), std::memory_order_relaxed);
  lock.unlock();
  // Who gets these addresses next did not ask for huge pages.
  static_cast<void>(madvise(base, kRegion, MADV_NOHUGEPAGE));
  free(base);
}

size_t PagePool::WorthTrimming() {
  std::lock_guard lock(mutex_);
  const bool quiet = !std::exchange(allocated_, false);
  if (idle_.load(std::memory_order_relaxed) > regions_.size() * (kPages / 64) + kPages) {
    return kPages / 32;
  }
  return quiet ? kPages / 8 : 0;
}

bool PagePool::Trim(size_t least) {
  assert(least > 0);
  std::unique_lock lock(mutex_);
  if (idle_.load(std::memory_order_relaxed) < least) return false;
  auto at = open_.lower_bound(trimmed_);
  for (size_t looked = 0;; ++looked) {
    if (looked == kLookAt || looked == open_.size()) return false;
    if (at == open_.begin()) at = open_.end();
    --at;
    trimmed_ = *at;
    if (regions_.find(*at)->second.idle_count >= least) break;
  }
  // Nobody can have them meanwhile: they are neither idle nor bare.
  char* const base = *at;
  Region& region = regions_.find(base)->second;
  const Bits pages = region.idle;
  const size_t count = region.idle_count;
  region.idle = {};
  region.idle_count = 0;
  if (region.bare_count == 0) open_.erase(at);
  lock.unlock();
  // Else the system would put a huge page there again, in its own time.
  static_cast<void>(madvise(base, kRegion, MADV_NOHUGEPAGE));
  for (size_t first = 0; first < kPages;) {
    size_t end = first;
    while (end < kPages && Has(pages, end)) ++end;
    if (end > first) {
      static_cast<void>(madvise(base + first * kPage, (end - first) * kPage, MADV_DONTNEED));
    }
    first = end + 1;
  }
  lock.lock();
  for (size_t i = 0; i < pages.size(); ++i) region.bare[i] |= pages[i];
  region.bare_count += count;
  idle_.fetch_sub(count, std::memory_order_relaxed);
  Opened(base, region, lock);
  return true;
}

}  // namespace sava::base
