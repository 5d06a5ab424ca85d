// Pages keep apart, regions come and go with their pages, and giving memory back touches no page
// that somebody has.
#include "base/page_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace sava::base {
namespace {

// A page filled with something of its own, and whether it still is.
void Fill(void* page) {
  for (size_t i = 0; i < PagePool::kPage; i += sizeof(void*)) {
    memcpy(static_cast<char*>(page) + i, &page, sizeof page);
  }
}

bool Filled(void* page) {
  for (size_t i = 0; i < PagePool::kPage; i += sizeof(void*)) {
    if (memcmp(static_cast<char*>(page) + i, &page, sizeof page) != 0) return false;
  }
  return true;
}

std::vector<void*> Take(PagePool& pool, size_t count) {
  std::vector<void*> pages;
  for (size_t i = 0; i < count; ++i) {
    pages.push_back(pool.Allocate());
    Fill(pages.back());
  }
  return pages;
}

// While the pool grows regions are made ready ahead of the need, and given back when it does not.
TEST(PagePool, AHelperMakesRegionsReady) {
  PagePool pool;
  int asked = 0;
  pool.set_helper([&asked] { ++asked; });
  std::vector<void*> pages = Take(pool, (PagePool::kSmallRegions - 1) * PagePool::kPages);
  EXPECT_EQ(asked, 0);  // small
  pages.push_back(pool.Allocate());
  EXPECT_EQ(asked, 1);
  pages.push_back(pool.Allocate());
  EXPECT_EQ(asked, 1);  // once, until it has come to its end
  const size_t before = pool.free_bytes();
  pool.Prepare();
  EXPECT_EQ(pool.free_bytes() - before, PagePool::kReady * PagePool::kRegion);
  EXPECT_EQ(pool.region_count(), PagePool::kSmallRegions);

  // One is taken when it is needed, and the next is asked for.
  for (void* page : Take(pool, PagePool::kPages - 2)) pages.push_back(page);
  EXPECT_EQ(pool.free_bytes(), PagePool::kReady * PagePool::kRegion);
  for (void* page : Take(pool, 1)) pages.push_back(page);
  EXPECT_EQ(pool.region_count(), PagePool::kSmallRegions + 1);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(std::set<void*>(pages.begin(), pages.end()).size(), pages.size());
  for (size_t i = 0; i < (PagePool::kSmallRegions - 1) * PagePool::kPages; ++i) {
    ASSERT_TRUE(Filled(pages[i]));
  }

  // Nothing is allocated for a while: what is ready goes.
  pool.WorthTrimming();
  pool.WorthTrimming();
  EXPECT_EQ(pool.free_bytes(), PagePool::kRegion - PagePool::kPage);
  EXPECT_EQ(pool.idle_bytes(), PagePool::kRegion - PagePool::kPage);

  // Without a helper nobody is asked, and what it would have made ready is not made.
  pool.set_helper(nullptr);
  pool.Prepare();
  EXPECT_EQ(pool.free_bytes(), PagePool::kRegion - PagePool::kPage);
  for (void* page : pages) pool.Free(page);
}

TEST(PagePool, PagesKeepApartAndRegionsGoWithThem) {
  PagePool pool;
  constexpr size_t kRegions = PagePool::kSmallRegions + 2;
  const std::vector<void*> pages = Take(pool, kRegions * PagePool::kPages);
  EXPECT_EQ(pool.region_count(), kRegions);
  EXPECT_EQ(pool.free_bytes(), 0U);
  EXPECT_EQ(std::set<void*>(pages.begin(), pages.end()).size(), pages.size());
  for (void* page : pages) {
    ASSERT_EQ(reinterpret_cast<uintptr_t>(page) % PagePool::kPage, 0U);
    ASSERT_TRUE(Filled(page));
  }
  for (void* page : pages) pool.Free(page);
  // One region stays for the next page, until its memory is given back.
  EXPECT_EQ(pool.region_count(), 1U);
  EXPECT_EQ(pool.free_bytes(), PagePool::kRegion);
  EXPECT_TRUE(pool.Trim(1));
  EXPECT_EQ(pool.region_count(), 0U);
  EXPECT_EQ(pool.free_bytes(), 0U);
  EXPECT_EQ(pool.idle_bytes(), 0U);
}

TEST(PagePool, APageComesFromTheFirstRegionThatHasOne) {
  PagePool pool;
  std::vector<void*> pages = Take(pool, 3 * PagePool::kPages);
  const auto [first, last] = std::minmax_element(pages.begin(), pages.end());
  void* const low = *first;
  void* const high = *last;
  pool.Free(high);
  pool.Free(low);
  EXPECT_EQ(pool.Allocate(), low);
  EXPECT_EQ(pool.Allocate(), high);
}

TEST(PagePool, TrimLeavesWhatIsTaken) {
  PagePool pool;
  std::vector<void*> pages = Take(pool, 12 * PagePool::kPages);
  EXPECT_FALSE(pool.Trim(1));
  EXPECT_EQ(pool.WorthTrimming(), 0U);
  std::mt19937 random(7);
  std::shuffle(pages.begin(), pages.end(), random);
  const size_t kept = pages.size() / 2;
  for (size_t i = kept; i < pages.size(); ++i) pool.Free(pages[i]);
  const size_t freed = (pages.size() - kept) * PagePool::kPage;
  EXPECT_EQ(pool.free_bytes(), freed);
  EXPECT_EQ(pool.idle_bytes(), freed);
  pages.resize(kept);

  // Much is given back at once, little when nothing happens.
  size_t least = pool.WorthTrimming();
  EXPECT_GT(least, 0U);
  EXPECT_LT(least, PagePool::kPages / 8);
  EXPECT_TRUE(pool.Trim(least));
  EXPECT_LT(pool.idle_bytes(), freed);
  while (pool.Trim(least)) {
  }
  void* const extra = pool.Allocate();
  EXPECT_EQ(pool.WorthTrimming(), 0U);
  EXPECT_EQ(pool.WorthTrimming(), PagePool::kPages / 8);
  pool.Free(extra);
  while (pool.Trim(1)) {
  }
  EXPECT_EQ(pool.idle_bytes(), 0U);
  EXPECT_EQ(pool.free_bytes(), freed);
  for (void* page : pages) ASSERT_TRUE(Filled(page));

  // What was given back is empty and can be had again, before any new region.
  std::vector<void*> again;
  while (again.size() < freed / PagePool::kPage) {
    again.push_back(pool.Allocate());
    const char* const bytes = static_cast<const char*>(again.back());
    ASSERT_TRUE(std::all_of(bytes, bytes + PagePool::kPage, [](char c) { return c == 0; }));
    Fill(again.back());
  }
  EXPECT_EQ(pool.region_count(), 12U);
  EXPECT_EQ(pool.free_bytes(), 0U);
  for (void* page : pages) ASSERT_TRUE(Filled(page));
  for (void* page : pages) pool.Free(page);
  for (void* page : again) pool.Free(page);
  EXPECT_EQ(pool.region_count(), 1U);
}

// Pages in a row.
struct Row {
  char* first;
  size_t pages;

  Row(PagePool& pool, size_t count)
      : first(static_cast<char*>(pool.Allocate(count))), pages(count) {
    for (size_t i = 0; i < pages; ++i) Fill(first + i * PagePool::kPage);
  }
  bool Intact() const {
    for (size_t i = 0; i < pages; ++i) {
      if (!Filled(first + i * PagePool::kPage)) return false;
    }
    return true;
  }
  size_t offset() const { return reinterpret_cast<uintptr_t>(first) % PagePool::kRegion; }
};

TEST(PagePool, RowsOfPagesFitInWhatIsFree) {
  PagePool pool;
  std::vector<Row> rows;
  for (size_t i = 0; i < PagePool::kPages / 16; ++i) rows.emplace_back(pool, 16);
  EXPECT_EQ(pool.region_count(), 1U);
  EXPECT_EQ(pool.free_bytes(), 0U);
  // Two rows side by side are one of twice the length, whichever went first; across words too.
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.first < b.first; });
  for (const size_t at : {3, 2, 11, 12}) pool.Free(rows[at].first, 16);
  const Row one(pool, 32);
  const Row other(pool, 32);
  EXPECT_EQ(std::min(one.first, other.first), rows[2].first);
  EXPECT_EQ(std::max(one.first, other.first), rows[11].first);
  EXPECT_EQ(pool.free_bytes(), 0U);
  // What is too short is left for what fits.
  pool.Free(rows[20].first, 16);
  pool.Free(rows[30].first, 16);
  const Row longer(pool, 17);
  EXPECT_EQ(pool.region_count(), 2U);
  const Row exact(pool, 16);
  EXPECT_EQ(exact.first, rows[20].first);
  const Row part(pool, 5);
  const Row rest(pool, 11);
  EXPECT_EQ(part.first, rows[30].first);
  EXPECT_EQ(rest.first, rows[30].first + 5 * PagePool::kPage);
  // A whole region, also when its memory was given back.
  pool.Free(longer.first, 17);
  EXPECT_TRUE(pool.Trim(1));
  EXPECT_EQ(pool.region_count(), 1U);
  const Row whole(pool, PagePool::kPages);
  EXPECT_EQ(whole.offset(), 0U);
  EXPECT_TRUE(whole.Intact() && one.Intact() && other.Intact() && exact.Intact());
  EXPECT_TRUE(rows[0].Intact() && rows[1].Intact() && rows[4].Intact() && rows[31].Intact());
}

TEST(PagePool, ThreadsShareIt) {
  PagePool pool;
  const auto work = [&pool](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<Row> mine;
    for (int step = 0; step < 20000; ++step) {
      if (mine.size() < 800 && random() % 3 != 0) {
        mine.emplace_back(pool, random() % 4 == 0 ? 2 + random() % 15 : 1);
      } else if (!mine.empty()) {
        std::swap(mine[random() % mine.size()], mine.back());
        ASSERT_TRUE(mine.back().Intact());
        pool.Free(mine.back().first, mine.back().pages);
        mine.pop_back();
      }
      if (step % 100 == 0) pool.Trim(std::max<size_t>(1, pool.WorthTrimming()));
    }
    for (const Row& row : mine) {
      ASSERT_TRUE(row.Intact());
      pool.Free(row.first, row.pages);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 3; ++seed) threads.emplace_back(work, seed);
  for (std::thread& thread : threads) thread.join();
  pool.Trim(1);
  EXPECT_EQ(pool.region_count(), 0U);
  EXPECT_EQ(pool.free_bytes(), 0U);
  EXPECT_EQ(pool.idle_bytes(), 0U);
}

}  // namespace
}  // namespace sava::base
