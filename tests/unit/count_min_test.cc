// The count-min sketch: never too low, within its bound on Zipf streams, below plain count-min, and
// sums of sketches.
#include "types/sketches/count_min.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "sketch_streams.h"

namespace sava::types {
namespace {

#ifdef SAVA_SANITIZED
constexpr size_t kEvents = 100'000;
#else
constexpr size_t kEvents = 1'000'000;
#endif

TEST(CountMin, CountsFewItemsExactly) {
  const auto sketch = CountMin::Make(2000, 5);
  EXPECT_EQ(sketch->Estimate("a"), 0U);
  EXPECT_EQ(sketch->Add("a", 3), 3U);
  EXPECT_EQ(sketch->Add("", 1), 1U);
  EXPECT_EQ(sketch->Add(std::string("\0\xff", 2), 7), 7U);
  EXPECT_EQ(sketch->Add("a", 0), 3U);
  EXPECT_EQ(sketch->Add("a", 2), 5U);
  EXPECT_EQ(sketch->Estimate("a"), 5U);
  EXPECT_EQ(sketch->Estimate(""), 1U);
  EXPECT_EQ(sketch->Estimate("b"), 0U);
  EXPECT_EQ(sketch->total(), 13U);
}

TEST(CountMin, StopsAtItsMost) {
  const auto sketch = CountMin::Make(10, 2);
  EXPECT_EQ(sketch->Add("a", CountMin::kMost - 1), CountMin::kMost - 1);
  EXPECT_EQ(sketch->Add("a", 1), CountMin::kMost);
  EXPECT_EQ(sketch->Add("a", UINT64_MAX), CountMin::kMost);
  EXPECT_EQ(sketch->Estimate("a"), CountMin::kMost);
  EXPECT_EQ(sketch->total(), CountMin::kMaxTotal);
}

TEST(CountMin, RefusesWhatIsTooLarge) {
  EXPECT_EQ(CountMin::Make(CountMin::kMaxCells, 2), nullptr);
  EXPECT_EQ(CountMin::Make(UINT64_MAX, UINT64_MAX), nullptr);
  EXPECT_NE(CountMin::Make(1, 1), nullptr);
}

// Any history: no estimate is too low, and one item's is at most the sum of all.
TEST(CountMin, IsNeverTooLow) {
  EXPECT_TRUE(rc::check([] {
    const auto width = *rc::gen::inRange<uint64_t>(1, 40);
    const auto depth = *rc::gen::inRange<uint64_t>(1, 6);
    const auto sketch = CountMin::Make(width, depth);
    std::map<uint8_t, uint64_t> truth;
    uint64_t total = 0;
    const auto events = *rc::gen::container<std::vector<std::pair<uint8_t, uint16_t>>>(
        rc::gen::arbitrary<std::pair<uint8_t, uint16_t>>());
    for (const auto& [item, n] : events) {
      truth[item] += n;
      total += n;
      RC_ASSERT(sketch->Add(std::to_string(item), n) >= truth[item]);
    }
    for (const auto& [item, count] : truth) {
      const uint64_t estimate = sketch->Estimate(std::to_string(item));
      RC_ASSERT(estimate >= count);
      RC_ASSERT(estimate <= total);
    }
    RC_ASSERT(sketch->total() == total);
  }));
}

// The promise: more than 2N/width too high with a probability of at most 2^-depth. And the mean
// error is well below that of plain count-min, whose table is the sum of all increments.
TEST(CountMin, KeepsItsBoundOnZipfStreams) {
  for (const double exponent : {0.8, 1.0, 1.3}) {
    constexpr uint64_t kWidth = 2000;
    constexpr uint64_t kDepth = 7;
    const auto sketch = CountMin::Make(kWidth, kDepth);
    std::vector<std::vector<uint64_t>> plain(kDepth, std::vector<uint64_t>(kWidth));
    ZipfStream stream(100'000, exponent, 5);
    for (size_t i = 0; i < kEvents; ++i) {
      const std::string item = ZipfStream::Name(stream.Next());
      sketch->Add(item, 1);
      for (uint64_t row = 0; row < kDepth; ++row) {
        ++plain[row][base::HashBytes(item, row + 1) % kWidth];
      }
    }
    const double bound = 2.0 * static_cast<double>(kEvents) / kWidth;
    size_t beyond = 0;
    double error = 0;
    double plain_error = 0;
    for (size_t i = 0; i < stream.items(); ++i) {
      const std::string item = ZipfStream::Name(i);
      const uint64_t estimate = sketch->Estimate(item);
      ASSERT_GE(estimate, stream.count(i));
      const auto excess = static_cast<double>(estimate - stream.count(i));
      error += excess;
      beyond += excess > bound ? 1 : 0;
      uint64_t least = UINT64_MAX;
      for (uint64_t row = 0; row < kDepth; ++row) {
        least = std::min(least, plain[row][base::HashBytes(item, row + 1) % kWidth]);
      }
      plain_error += static_cast<double>(least - stream.count(i));
    }
    EXPECT_LE(static_cast<double>(beyond), static_cast<double>(stream.items()) / 128) << exponent;
    EXPECT_LT(error, plain_error * 0.75) << exponent;
  }
}

TEST(CountMin, MergesByWeight) {
  const auto a = CountMin::Make(500, 4);
  const auto b = CountMin::Make(500, 4);
  const auto sum = CountMin::Make(500, 4);
  a->Add("x", 10);
  a->Add("y", 5);
  b->Add("x", 1);
  b->Add("z", 7);
  sum->Add("old", 3);
  const CountMin::Weighted both[] = {{a.get(), 2}, {b.get(), 3}};
  ASSERT_TRUE(sum->Merge(both));
  EXPECT_EQ(sum->Estimate("x"), 23U);
  EXPECT_EQ(sum->Estimate("y"), 10U);
  EXPECT_EQ(sum->Estimate("z"), 21U);
  EXPECT_EQ(sum->Estimate("old"), 0U);
  EXPECT_EQ(sum->total(), 54U);
  // Itself among the sources, twice.
  const CountMin::Weighted itself[] = {{sum.get(), 1}, {sum.get(), 1}, {a.get(), 1}};
  ASSERT_TRUE(sum->Merge(itself));
  EXPECT_EQ(sum->Estimate("x"), 56U);
  EXPECT_EQ(sum->total(), 123U);
}

TEST(CountMin, RefusesSumsThatDoNotFit) {
  const auto a = CountMin::Make(50, 2);
  const auto b = CountMin::Make(50, 2);
  const auto sum = CountMin::Make(50, 2);
  a->Add("x", 10);
  b->Add("x", 20);
  sum->Add("x", 4);
  const CountMin::Weighted negative[] = {{a.get(), 1}, {b.get(), -1}};
  const CountMin::Weighted large[] = {{a.get(), 500'000'000}};
  const CountMin::Weighted huge[] = {{a.get(), INT64_MAX}};
  EXPECT_FALSE(sum->Merge(negative));
  EXPECT_FALSE(sum->Merge(large));
  EXPECT_FALSE(sum->Merge(huge));
  EXPECT_EQ(sum->Estimate("x"), 4U);
  EXPECT_EQ(sum->total(), 4U);
  const CountMin::Weighted difference[] = {{b.get(), 1}, {a.get(), -1}};
  EXPECT_TRUE(sum->Merge(difference));
  EXPECT_EQ(sum->Estimate("x"), 10U);
}

// A merged sketch is a sketch of both streams: never too low.
TEST(CountMin, SumsAreNeverTooLow) {
  const auto a = CountMin::Make(200, 5);
  const auto b = CountMin::Make(200, 5);
  ZipfStream left(2000, 1.0, 1);
  ZipfStream right(2000, 1.0, 2);
  for (int i = 0; i < 20'000; ++i) {
    a->Add(ZipfStream::Name(left.Next()), 1);
    b->Add(ZipfStream::Name(right.Next()), 1);
  }
  const auto sum = CountMin::Make(200, 5);
  const CountMin::Weighted both[] = {{a.get(), 1}, {b.get(), 1}};
  ASSERT_TRUE(sum->Merge(both));
  for (size_t i = 0; i < left.items(); ++i) {
    EXPECT_GE(sum->Estimate(ZipfStream::Name(i)), left.count(i) + right.count(i));
  }
}

}  // namespace
}  // namespace sava::types
