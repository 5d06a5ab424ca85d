#include "base/page_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdlib>
#include <new>
#include <utility>

namespace sava::base {

namespace {

constexpr size_t kLookAt = 256;  // regions that one Trim looks at

using Bits = std::array<uint64_t, PagePool::kPages / 64>;

// The first bit from `at` on that is set; kPages: none.
size_t NextSet(const Bits& bits, size_t at) {
  while (at < PagePool::kPages) {
    const uint64_t word = bits[at / 64] >> (at % 64);
    if (word != 0) return at + static_cast<size_t>(std::countr_zero(word));
    at += 64 - at % 64;
  }
  return PagePool::kPages;
}

// The end of the set bits from `at` on.
size_t RowEnd(const Bits& bits, size_t at) {
  while (at < PagePool::kPages) {
    const size_t left = 64 - at % 64;
    const auto ones = static_cast<size_t>(std::countr_one(bits[at / 64] >> (at % 64)));
    at += ones;
    if (ones < left) break;
  }
  return at;
}

// The beginning of the set bits that end at `at`.
size_t RowBegin(const Bits& bits, size_t at) {
  while (at > 0) {
    const size_t left = (at - 1) % 64 + 1;
    const auto ones = static_cast<size_t>(std::countl_one(bits[(at - 1) / 64] << (64 - left)));
    at -= ones;
    if (ones < left) break;
  }
  return at;
}

Bits Either(Bits bits, const Bits& others) {
  for (size_t i = 0; i < bits.size(); ++i) bits[i] |= others[i];
  return bits;
}

}  // namespace

PagePool::~PagePool() {
  for (const auto& [base, region] : regions_) free(base);
  for (char* const base : ready_) free(base);
}

PagePool& PagePool::Shared() {
  static auto* const pool = new PagePool;
  return *pool;
}

char* PagePool::NewRegion(bool huge) {
  auto* const base = static_cast<char*>(aligned_alloc(kRegion, kRegion));
  if (base == nullptr) throw std::bad_alloc();
  // A wish: without huge pages everything works as well, only slower.
  static_cast<void>(madvise(base, kRegion, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE));
  return base;
}

void PagePool::FreeRegion(char* base) {
  // The next user of these addresses did not ask for huge pages.
  static_cast<void>(madvise(base, kRegion, MADV_NOHUGEPAGE));
  free(base);
}

void PagePool::AddRegion() {
  const bool large = regions_.size() >= kSmallRegions;
  const bool ready = large && !ready_.empty();
  char* const base = ready ? ready_.back() : NewRegion(large);
  try {
    open_.insert(base);
    rows_.emplace(kPages, base);
    regions_.try_emplace(base);
  } catch (...) {
    rows_.erase({kPages, base});
    open_.erase(base);
    if (!ready) FreeRegion(base);
    throw;
  }
  Region& region = regions_.find(base)->second;
  region.row = kPages;
  if (large) {
    region.idle.fill(~uint64_t{0});
    region.idle_count = kPages;
  } else {
    region.bare.fill(~uint64_t{0});
    region.bare_count = kPages;
  }
  regions_count_.store(regions_.size(), std::memory_order_relaxed);
  if (ready) {
    ready_.pop_back();
    return;
  }
  if (large) idle_.fetch_add(kPages, std::memory_order_relaxed);
  free_.fetch_add(kPages, std::memory_order_relaxed);
}

// ---- making ready ----

void PagePool::set_helper(std::function<void()> helper) {
  std::lock_guard lock(mutex_);
  ready_.reserve(kReady);
  helper_ = std::move(helper);
  preparing_ = false;
}

// Little is left of the regions that there are.
std::function<void()> PagePool::WantsHelp() {
  if (preparing_ || !helper_ || regions_.size() < kSmallRegions || ready_.size() >= kReady) {
    return nullptr;
  }
  const size_t open = free_.load(std::memory_order_relaxed) - ready_.size() * kPages;
  if (open > kPages) return nullptr;
  preparing_ = true;
  return helper_;
}

void PagePool::Prepare() {
  std::unique_lock lock(mutex_);
  while (helper_ && ready_.size() < kReady) {
    lock.unlock();
    char* base = nullptr;
    try {
      base = NewRegion(true);
    } catch (const std::bad_alloc&) {  // the next request will see
    }
    if (base != nullptr) {
      free_.fetch_add(kPages, std::memory_order_relaxed);
      for (size_t at = 0; at < kRegion; at += kPage) static_cast<volatile char*>(base)[at] = 0;
      idle_.fetch_add(kPages, std::memory_order_relaxed);
    }
    lock.lock();
    if (base == nullptr) break;
    ready_.push_back(base);  // room for it was reserved
  }
  preparing_ = false;
}

void PagePool::SetRow(char* base, Region& region, size_t row) {
  if (row == region.row) return;
  auto node = rows_.extract({region.row, base});
  region.row = row;
  node.value().first = row;
  rows_.insert(std::move(node));
}

char* PagePool::FindRow(size_t pages) {
  for (;;) {
    const auto at = rows_.lower_bound({pages, nullptr});
    if (at == rows_.end()) {
      AddRegion();
      continue;
    }
    char* const base = at->second;
    Region& region = regions_.find(base)->second;
    const Bits free = Either(region.idle, region.bare);
    size_t longest = 0;
    for (size_t first = NextSet(free, 0); first < kPages;) {
      const size_t end = RowEnd(free, first);
      if (end - first >= pages) return base + first * kPage;
      longest = std::max(longest, end - first);
      first = NextSet(free, end);
    }
    SetRow(base, region, longest);
  }
}

char* PagePool::FindPage() {
  if (open_.empty()) AddRegion();
  char* const base = *open_.begin();
  const Region& region = regions_.find(base)->second;
  return base + NextSet(region.idle_count > 0 ? region.idle : region.bare, 0) * kPage;
}

void* PagePool::Allocate(size_t pages) {
  assert(pages > 0 && pages <= kPages);
  std::unique_lock lock(mutex_);
  allocated_ = true;
  char* const first = pages == 1 ? FindPage() : FindRow(pages);
  const size_t offset = reinterpret_cast<uintptr_t>(first) % kRegion;
  char* const base = first - offset;
  Region& region = regions_.find(base)->second;
  size_t idle = 0;
  for (size_t i = offset / kPage; i < offset / kPage + pages; ++i) {
    const uint64_t bit = uint64_t{1} << (i % 64);
    idle += (region.idle[i / 64] & bit) != 0 ? 1 : 0;
    region.idle[i / 64] &= ~bit;
    region.bare[i / 64] &= ~bit;
  }
  region.idle_count -= idle;
  region.bare_count -= pages - idle;
  idle_.fetch_sub(idle, std::memory_order_relaxed);
  free_.fetch_sub(pages, std::memory_order_relaxed);
  if (base == spare_) spare_ = nullptr;
  if (region.idle_count + region.bare_count == 0) region.closed = open_.extract(base);
  if (const std::function<void()> helper = WantsHelp()) {
    lock.unlock();
    try {
      helper();
    } catch (const std::bad_alloc&) {  // the pages are had all the same
      lock.lock();
      preparing_ = false;
    }
  }
  return first;
}

void PagePool::Free(void* first, size_t pages) {
  const auto address = reinterpret_cast<uintptr_t>(first);
  const size_t index = address % kRegion / kPage;
  std::unique_lock lock(mutex_);
  const auto at = regions_.find(reinterpret_cast<char*>(address - address % kRegion));
  assert(at != regions_.end() && address % kPage == 0 && index + pages <= kPages);
  Region& region = at->second;
  for (size_t i = index; i < index + pages; ++i) {
    const uint64_t bit = uint64_t{1} << (i % 64);
    assert(((region.idle[i / 64] | region.bare[i / 64]) & bit) == 0);
    region.idle[i / 64] |= bit;
  }
  region.idle_count += pages;
  idle_.fetch_add(pages, std::memory_order_relaxed);
  free_.fetch_add(pages, std::memory_order_relaxed);
  const Bits free = Either(region.idle, region.bare);
  const size_t row = RowEnd(free, index + pages) - RowBegin(free, index);
  SetRow(at->first, region, std::max(row, region.row));
  Opened(at->first, region, lock);
}

void PagePool::Opened(char* base, Region& region, std::unique_lock<std::mutex>& lock) {
  const bool keep = spare_ == nullptr && region.idle_count > 0;
  if (region.idle_count + region.bare_count < kPages || keep) {
    if (!region.closed.empty()) open_.insert(std::move(region.closed));
    if (region.idle_count + region.bare_count == kPages) spare_ = base;
    return;
  }
  idle_.fetch_sub(region.idle_count, std::memory_order_relaxed);
  free_.fetch_sub(kPages, std::memory_order_relaxed);
  if (base == spare_) spare_ = nullptr;
  open_.erase(base);
  rows_.erase({region.row, base});
  regions_.erase(base);
  regions_count_.store(regions_.size(), std::memory_order_relaxed);
  lock.unlock();
  FreeRegion(base);
}

size_t PagePool::WorthTrimming() {
  std::unique_lock lock(mutex_);
  const bool quiet = !std::exchange(allocated_, false);
  if (quiet && !ready_.empty()) {
    const std::vector<char*> ready = ready_;
    ready_.clear();
    idle_.fetch_sub(ready.size() * kPages, std::memory_order_relaxed);
    free_.fetch_sub(ready.size() * kPages, std::memory_order_relaxed);
    lock.unlock();
    for (char* const base : ready) {
      // At once: the allocator would keep it for a second.
      static_cast<void>(madvise(base, kRegion, MADV_DONTNEED));
      FreeRegion(base);
    }
    lock.lock();
  }
  const size_t idle = idle_.load(std::memory_order_relaxed) - ready_.size() * kPages;
  if (idle > regions_.size() * (kPages / 64) + kPages) {
    return kPages / 32;
  }
  return quiet ? kPages / 8 : 0;
}

bool PagePool::Trim(size_t least) {
  assert(least > 0);
  std::unique_lock lock(mutex_);
  if (idle_.load(std::memory_order_relaxed) - ready_.size() * kPages < least) return false;
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
  if (region.bare_count == 0) region.closed = open_.extract(at);
  lock.unlock();
  // Else the system would put a huge page there again, in its own time.
  static_cast<void>(madvise(base, kRegion, MADV_NOHUGEPAGE));
  for (size_t first = NextSet(pages, 0); first < kPages;) {
    const size_t end = RowEnd(pages, first);
    static_cast<void>(madvise(base + first * kPage, (end - first) * kPage, MADV_DONTNEED));
    first = NextSet(pages, end);
  }
  lock.lock();
  region.bare = Either(region.bare, pages);
  region.bare_count += count;
  SetRow(base, region, kPages);  // what it really is the next search will see
  idle_.fetch_sub(count, std::memory_order_relaxed);
  Opened(base, region, lock);
  return true;
}

}  // namespace sava::base
