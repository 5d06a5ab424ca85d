// Which keys expire when: every item comes out once, after its time, whether there are a few or
// many of them.
#include "keyspace/wheel.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/rng.h"

namespace sava::keyspace {
namespace {

constexpr int64_t kStart = 1'700'000'000'000;
constexpr int64_t kTick = int64_t{1} << Wheel::kTickBits;

TEST(Wheel, FollowsAModel) {
  for (const size_t most : {size_t{5}, Wheel::kFew, Wheel::kFew + 1, size_t{3000}}) {
    base::Rng rng(most);
    Wheel wheel(kStart);
    std::map<uint64_t, int64_t> waiting;  // item: time
    int64_t now = kStart;
    uint64_t next = 1;
    for (int step = 0; step < 4000; ++step) {
      while (waiting.size() < most && rng.Below(3) != 0) {
        const int64_t at = now + static_cast<int64_t>(rng.Below(uint64_t{1} << rng.Below(34)));
        wheel.Add(next, at);
        waiting[next++] = at;
      }
      ASSERT_EQ(wheel.size(), waiting.size());
      uint64_t some = 0;
      ASSERT_EQ(wheel.Random(rng, &some), !waiting.empty());
      if (!waiting.empty()) {
        ASSERT_TRUE(waiting.contains(some));
      }
      now += static_cast<int64_t>(rng.Below(uint64_t{1} << rng.Below(25)));
      const size_t budget = 1 + rng.Below(20);
      const size_t taken = wheel.Advance(now, budget, [&](uint64_t item) {
        const auto found = waiting.find(item);
        ASSERT_NE(found, waiting.end());
        if (found->second < now) {
          waiting.erase(found);
        } else {
          wheel.Add(item, found->second);  // from a higher level, on its way down
        }
      });
      ASSERT_LE(taken, budget);
    }
    // Whatever is due comes when there is no limit.
    wheel.Advance(now, SIZE_MAX, [&](uint64_t item) {
      const int64_t at = waiting.at(item);
      waiting.erase(item);
      if (at >= now) {
        waiting[item] = at;
        wheel.Add(item, at);
      }
    });
    for (const auto& [item, at] : waiting) EXPECT_GE(at, now - 2 * kTick);
  }
}

TEST(Wheel, AFewTakeLittleAndUnwantedOnesAreLeftOut) {
  Wheel wheel(kStart);
  wheel.Add(1, kStart + 1000);
  EXPECT_LT(wheel.bytes(), 256U);
  for (uint64_t item = 2; item <= Wheel::kFew; ++item) {
    if (wheel.crowded()) wheel.LeaveOut([](uint64_t) { return false; });
    wheel.Add(item, kStart + 1000);
  }
  wheel.LeaveOut([](uint64_t item) { return item % 2 == 0; });
  EXPECT_EQ(wheel.size(), Wheel::kFew / 2);
  EXPECT_FALSE(wheel.crowded());
  std::vector<uint64_t> fired;
  wheel.Advance(kStart + 500, 100, [&](uint64_t item) { fired.push_back(item); });
  EXPECT_TRUE(fired.empty());
  wheel.Advance(kStart + 1000 + 2 * kTick, 100, [&](uint64_t item) { fired.push_back(item); });
  EXPECT_EQ(fired.size(), Wheel::kFew / 2);
  for (const uint64_t item : fired) EXPECT_EQ(item % 2, 1U);
  EXPECT_EQ(wheel.size(), 0U);
}

// As those of a value that is worked off in steps.
TEST(Wheel, WhatIsDueAgainComesAgainAtOnce) {
  for (const uint64_t others : {uint64_t{0}, uint64_t{2 * Wheel::kFew}}) {
    Wheel wheel(kStart);
    for (uint64_t item = 0; item < others; ++item) wheel.Add(100 + item, kStart + 1'000'000'000);
    wheel.Add(1, kStart + 1000);
    const int64_t now = kStart + 5000;
    const auto again = [&](uint64_t item) { wheel.Add(item, kStart + 1000); };
    EXPECT_EQ(wheel.Advance(now, 50, again), 50U);
    EXPECT_EQ(wheel.Advance(now, 50, again), 50U);
    EXPECT_EQ(wheel.Advance(now, 50, [](uint64_t) {}), 1U);
    EXPECT_EQ(wheel.size(), others);
  }
}

// Firing files more than are a few.
TEST(Wheel, BecomesLargeWhileItFires) {
  Wheel wheel(kStart);
  wheel.Add(1, kStart + 1000);
  std::map<uint64_t, int> fired;
  wheel.Advance(kStart + 5000, 1000, [&](uint64_t item) {
    ++fired[item];
    if (item != 1) return;
    for (uint64_t next = 2; next < 102; ++next) wheel.Add(next, kStart + 1000);
  });
  EXPECT_EQ(fired.size(), 101U);
  for (const auto& [item, times] : fired) EXPECT_EQ(times, 1) << item;
  EXPECT_EQ(wheel.size(), 0U);
}

TEST(Wheel, ASweepShowsEveryItemOnce) {
  Wheel wheel(kStart);
  base::Rng rng(7);
  for (uint64_t item = 0; item < 500; ++item) {
    wheel.Add(item, kStart + static_cast<int64_t>(rng.Below(1'000'000'000)));
  }
  std::vector<int> seen(500);
  bool more = true;
  while (more) {
    more = wheel.Sweep(100, [&](uint64_t item) { ++seen[item]; });
  }
  for (const int times : seen) EXPECT_EQ(times, 1);
  EXPECT_EQ(wheel.size(), 0U);
}

}  // namespace
}  // namespace sava::keyspace
