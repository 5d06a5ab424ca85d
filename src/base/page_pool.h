// PagePool: pages of 4 KB, cut from regions of 2 MB for which the system is asked for huge pages:
// with a million keys much of a lookup's time goes to finding out where its page is.
//
// A page comes from the region that is first in memory among those that have one, so that the
// others drain; several pages in a row come from the region whose longest row of free pages is the
// shortest that will do. A region of which no page is taken goes back to malloc, but for one. Trim
// gives the free pages of regions back to the system; they lose their huge page then. The first
// 16 MB have none, so that a small data set takes no more than it needs.
//
// The first touch of a huge page takes a fraction of a millisecond, and several where a virtual
// machine gets its memory only then. So while the pool grows a helper makes regions ready ahead of
// the need, if there is one (set_helper); else the first thread to touch a region waits.
//
// Thread safety: all calls. One leaf lock, held for moments, or while a region is allocated.
// Cost: O(log regions) a call.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace sava::base {

class PagePool {
 public:
  static constexpr size_t kPage = 4096;
  static constexpr size_t kRegion = size_t{2} << 20;
  static constexpr size_t kPages = kRegion / kPage;
  static constexpr size_t kSmallRegions = 8;
  static constexpr size_t kReady = 2;

  PagePool() = default;
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;
  // Pages that were not freed go with it.
  ~PagePool();

  // The pool of the process, for slabs; it outlives all of them.
  static PagePool& Shared();

  // Pages in a row. Their bytes are not set. Throws std::bad_alloc. REQUIRES: 0 < pages <= kPages.
  void* Allocate(size_t pages = 1);
  // What one Allocate gave, with as many pages.
  void Free(void* first, size_t pages = 1);

  // `helper` is called, with no lock of the pool held, when regions should be made ready: it must
  // have Prepare called on another thread soon. An empty one: no more preparing.
  void set_helper(std::function<void()> helper);
  // Makes regions ready until there are kReady, and touches them. Several milliseconds.
  void Prepare();

  // Gives back the free pages of one region of which at least that many are free and take memory.
  // False when none was found among some that were looked at; the next call goes on from there.
  // REQUIRES: least > 0.
  bool Trim(size_t least);
  // What Trim is called with from time to time: 0, not at all, unless much could be given back, or
  // little while nothing has been allocated since the last call. Then it also gives back the
  // regions that were made ready.
  size_t WorthTrimming();

  size_t region_count() const { return regions_count_.load(std::memory_order_relaxed); }
  // Bytes of free pages: all of them, and those that take memory.
  size_t free_bytes() const { return free_.load(std::memory_order_relaxed) * kPage; }
  size_t idle_bytes() const { return idle_.load(std::memory_order_relaxed) * kPage; }

 private:
  using Bits = std::array<uint64_t, kPages / 64>;
  struct Region {
    Bits idle{};  // free, and taking memory
    Bits bare{};  // free, and given back or never touched
    size_t idle_count = 0;
    size_t bare_count = 0;
    size_t row = 0;  // at most that many free pages stand in a row
    // What stands in open_ for it while it is not there: a page can be freed without memory.
    std::set<char*>::node_type closed;
  };

  // 2 MB, for which the system is asked for a huge page, or for small ones.
  static char* NewRegion(bool huge);
  static void FreeRegion(char* base);

  // ---- mutex_ is held ----
  void AddRegion();
  // The helper, if it should be called.
  std::function<void()> WantsHelp();
  char* FindPage();
  // The first of that many free pages in a row; a region is added when there is no such row.
  char* FindRow(size_t pages);
  void SetRow(char* base, Region& region, size_t row);
  // After pages of it became free. Releases it, and the lock, when nothing else is in it and
  // another such region is kept, or all of it was given back.
  void Opened(char* base, Region& region, std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;  // all below; the counts are read without it
  std::map<char*, Region> regions_;
  std::set<char*> open_;                     // regions with a free page
  std::set<std::pair<size_t, char*>> rows_;  // all regions, by Region::row
  char* spare_ = nullptr;                    // the region that is kept although no page is taken
  char* trimmed_ = nullptr;  // where Trim stopped: it goes from the last region to the first
  std::function<void()> helper_;
  std::vector<char*> ready_;  // touched, not regions yet; counted as free and idle
  bool preparing_ = false;    // the helper was called and has not come to its end
  std::atomic<size_t> regions_count_{0};
  std::atomic<size_t> free_{0};
  std::atomic<size_t> idle_{0};
  bool allocated_ = false;  // since WorthTrimming was asked
};

}  // namespace sava::base
