// Bloom filters: formulas, promised and measured rates, growth, deletion, merging.
#include "types/filters/bloom.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "types/filters/bloom_formulas.h"

namespace sava::types {
namespace {

#ifdef SAVA_SANITIZED
constexpr uint64_t kMany = 100'000;
#else
constexpr uint64_t kMany = 1'000'000;
#endif

uint64_t HashOf(uint64_t i) { return FilterHash("item:" + std::to_string(i)); }
// Never added.
uint64_t Stranger(uint64_t i) { return FilterHash("stranger:" + std::to_string(i)); }

std::unique_ptr<Bloom> Filled(const Bloom::Options& options, uint64_t items) {
  std::unique_ptr<Bloom> bloom = Bloom::Make(options);
  for (uint64_t i = 0; i < items; ++i) bloom->Add(HashOf(i));
  return bloom;
}

double MeasuredRate(const Bloom& bloom, uint64_t asked = kMany) {
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < asked; ++i) wrong += bloom.Has(Stranger(i)) ? 1 : 0;
  return static_cast<double>(wrong) / static_cast<double>(asked);
}

// Four deviations of a share measured on that many.
double Noise(double rate, uint64_t asked = kMany) {
  return 4 * std::sqrt(rate / static_cast<double>(asked));
}

void ExpectAll(const Bloom& bloom, uint64_t items) {
  for (uint64_t i = 0; i < items; ++i) ASSERT_TRUE(bloom.Has(HashOf(i))) << i;
}

double BitsPerItem(const Bloom& bloom, uint64_t items) {
  return static_cast<double>(bloom.MemoryUsage(0)) * 8 / static_cast<double>(items);
}

// ---- formulas ----

TEST(BloomFormulas, AreTheDocuments) {
  EXPECT_NEAR(ClassicRate(1000, 100, 7), std::pow(1 - std::exp(-0.7), 7), 1e-12);
  EXPECT_NEAR(ClassicRateExactly(1000, 100, 7), std::pow(1 - std::pow(0.999, 700), 7), 1e-12);
  EXPECT_EQ(ClassicHashes(1000, 100), 7U);  // 6.93
  EXPECT_EQ(ClassicHashes(10, 100), 1U);
  EXPECT_EQ(ClassicBits(1'000'000, 0.01), 9585059);
  // Formula 7: with the best k the rate is 0.6185 to the power of m / n.
  EXPECT_NEAR(ClassicRate(1e6, 1e5, 10 * std::log(2)), std::pow(0.6185, 10), 1e-4);
}

TEST(BloomFormulas, BlockedSizes) {
  for (const double n : {1.0, 10.0, 1e3, 1e7}) {
    for (const double p : {0.9, 0.3, 0.1, 0.01, 0.001, 1e-4, 1e-6}) {
      const BlockedSize size = SizeBlocked(n, p);
      EXPECT_LE(BlockedRate(size.shape, static_cast<double>(size.blocks), n), p) << n << " " << p;
      EXPECT_GE(size.blocks, 1U);
    }
  }
  EXPECT_LE(static_cast<double>(SizeBlocked(1e7, 0.01).bits()) / 1e7, 10.2);
  EXPECT_LE(static_cast<double>(SizeBlocked(1e7, 0.001).bits()) / 1e7, 15.8);
}

// ---- rates ----

struct RateCase {
  const char* name;
  Bloom::Options options;
  double bits_per_item;  // at most
};

class BloomRates : public testing::TestWithParam<RateCase> {};

TEST_P(BloomRates, KeepThePromise) {
  const Bloom::Options& options = GetParam().options;
  const std::unique_ptr<Bloom> bloom = Filled(options, kMany);
  ExpectAll(*bloom, kMany);
  const double measured = MeasuredRate(*bloom);
  EXPECT_LE(measured, 1.1 * options.error + Noise(options.error));
  const Bloom::Stats stats = bloom->stats();
  // The formula speaks of the mean of many filters: a tiny one may be luckier or less.
  if (options.capacity >= 1000 || !options.reserved) {
    EXPECT_NEAR(measured, stats.rate_formula, 0.1 * stats.rate_formula + Noise(stats.rate_formula));
  }
  EXPECT_NEAR(measured, stats.rate_observed,
              0.1 * stats.rate_observed + Noise(stats.rate_observed));
  EXPECT_NEAR(static_cast<double>(stats.items), static_cast<double>(kMany),
              static_cast<double>(kMany) * options.error);
  EXPECT_LE(BitsPerItem(*bloom, kMany), GetParam().bits_per_item);
}

INSTANTIATE_TEST_SUITE_P(
    All, BloomRates,
    testing::Values(
        RateCase{"blocked1", {.capacity = kMany, .reserved = true}, 10.6},
        RateCase{"blocked01", {.error = 0.001, .capacity = kMany, .reserved = true}, 16.5},
        RateCase{"blocked10", {.error = 0.1, .capacity = kMany, .reserved = true}, 5.3},
        RateCase{"blocked001", {.error = 1e-4, .capacity = kMany, .reserved = true}, 24},
        RateCase{"classic1",
                 {.capacity = kMany, .layout = BloomLayout::kClassic, .reserved = true},
                 9.7},
        RateCase{
            "classic01",
            {.error = 0.001, .capacity = kMany, .layout = BloomLayout::kClassic, .reserved = true},
            14.5},
        RateCase{"grown", {}, 21}, RateCase{"grown01", {.error = 0.001}, 24},
        RateCase{"beyond", {.capacity = kMany / 3, .reserved = true}, 21},
        RateCase{"far_beyond", {.capacity = 100, .reserved = true}, 24},
        RateCase{"classic_beyond",
                 {.capacity = kMany / 3, .layout = BloomLayout::kClassic, .reserved = true},
                 21},
        RateCase{"deletable", {.deletable = true}, 25}),
    [](const auto& at) { return std::string(at.param.name); });

// The document's filter, by its numbers: within a tenth of formula 5 at every fill.
TEST(BloomClassic, FollowsFormula5) {
  constexpr uint64_t kBits = 1'000'000;
  for (const uint32_t hashes : {1U, 3U, 7U, 13U}) {
    const std::unique_ptr<Bloom> bloom = Bloom::MakeClassic(kBits, hashes);
    uint64_t items = 0;
    for (const uint64_t upto : {20'000, 70'000, 150'000, 400'000}) {
      for (; items < upto; ++items) bloom->Add(HashOf(items));
      const double formula = ClassicRate(kBits, static_cast<double>(items), hashes);
      EXPECT_NEAR(MeasuredRate(*bloom, 200'000), formula, 0.1 * formula + Noise(formula, 200'000))
          << hashes << " " << items;
    }
    ExpectAll(*bloom, items);
  }
}

TEST(BloomClassic, TheDocumentsSize) {
  const std::unique_ptr<Bloom> bloom = Bloom::MakeClassic(1000, 3);
  EXPECT_EQ(bloom->Add(FilterHash("duffy@acme.com")), Bloom::Added::kNew);
  EXPECT_EQ(bloom->Add(FilterHash("duffy@acme.com")), Bloom::Added::kKnown);
  EXPECT_FALSE(bloom->Has(FilterHash("roger@acme.com")));
  for (uint64_t i = 0; i < 5000; ++i) EXPECT_NE(bloom->Add(HashOf(i)), Bloom::Added::kFull);
  ExpectAll(*bloom, 5000);
  EXPECT_NEAR(bloom->stats().fill, 1, 0.001);
}

// ---- growth ----

TEST(BloomGrowth, ExactFirst) {
  const std::unique_ptr<Bloom> bloom = Bloom::Make({});
  for (uint64_t i = 0; i < Bloom::kExactItems; ++i) {
    ASSERT_EQ(bloom->Add(HashOf(i)), Bloom::Added::kNew);
  }
  EXPECT_EQ(bloom->encoding(), "exact");
  EXPECT_EQ(MeasuredRate(*bloom, 100'000), 0);
  bloom->Add(HashOf(Bloom::kExactItems));
  EXPECT_EQ(bloom->encoding(), "table");
  ExpectAll(*bloom, Bloom::kExactItems + 1);
}

TEST(BloomGrowth, OneFilterOfTheReservedSize) {
  const std::unique_ptr<Bloom> bloom = Filled({.capacity = 100'000, .reserved = true}, 1000);
  EXPECT_EQ(bloom->encoding(), "exact");
  EXPECT_LT(bloom->MemoryUsage(0), 12'000U);
  for (uint64_t i = 0; i < 100'000; ++i) bloom->Add(HashOf(i));
  EXPECT_EQ(bloom->encoding(), "blocked");
  EXPECT_EQ(bloom->stats().stages, 1U);
  for (uint64_t i = 0; i < 110'000; ++i) bloom->Add(HashOf(i));
  EXPECT_EQ(bloom->stats().stages, 2U);
  ExpectAll(*bloom, 110'000);
}

TEST(BloomGrowth, NonScalingIsFull) {
  for (const BloomLayout layout : {BloomLayout::kBlocked, BloomLayout::kClassic}) {
    const std::unique_ptr<Bloom> bloom =
        Bloom::Make({.capacity = 3, .expansion = 0, .layout = layout, .reserved = true});
    for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(bloom->Add(HashOf(i)), Bloom::Added::kNew);
    EXPECT_EQ(bloom->Add(HashOf(3)), Bloom::Added::kFull);
    EXPECT_EQ(bloom->Add(HashOf(1)), Bloom::Added::kKnown);
    EXPECT_EQ(bloom->items(), 3U);
  }
}

TEST(BloomGrowth, StepsAsClientsKnowThem) {
  const auto growth = [](Bloom::Options options, uint64_t items) {
    options.reserved = true;
    const Bloom::Growth at = Filled(options, items)->growth();
    return std::pair(at.filters, at.capacity);
  };
  using Pair = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(growth({.error = 1e-6, .capacity = 100}, 100), Pair(1, 100));
  EXPECT_EQ(growth({.error = 1e-6, .capacity = 100}, 101), Pair(2, 300));
  EXPECT_EQ(growth({.error = 1e-6, .capacity = 100}, 301), Pair(3, 700));
  EXPECT_EQ(growth({.error = 1e-6, .capacity = 10, .expansion = 1}, 45), Pair(5, 50));
  EXPECT_EQ(growth({.error = 1e-6, .capacity = 10, .expansion = 4}, 51), Pair(3, 210));
}

// A rate that no fingerprint is long enough for: the hashes stay as they are.
TEST(BloomGrowth, TinyRatesStayExact) {
  const uint64_t items = 20'000;
  const std::unique_ptr<Bloom> bloom = Filled({.error = 1e-14}, items);
  ExpectAll(*bloom, items);
  EXPECT_EQ(bloom->encoding(), "exact");
  EXPECT_EQ(MeasuredRate(*bloom, 100'000), 0);
  EXPECT_EQ(bloom->items(), items);
}

// ---- deletion ----

// After any history of adds, deletions of what is there, and growth nothing that is there is
// denied.
TEST(BloomDeletion, NoFalseNegativeAfterAnyHistory) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    base::Rng rng(seed);
    // A rate of nearly one gives short fingerprints: items do collide.
    const double error = seed % 2 == 0 ? 0.99 : 0.01;
    const std::unique_ptr<Bloom> bloom =
        Bloom::Make({.error = error, .deletable = true, .reserved = seed % 3 == 0});
    std::map<uint64_t, unsigned> model;
    std::vector<uint64_t> present;
    for (int step = 0; step < 60'000; ++step) {
      const bool shrinking = step / 10'000 % 3 == 2;
      if (!present.empty() && rng.Below(10) < (shrinking ? 8 : 3)) {
        const size_t at = rng.Below(present.size());
        const uint64_t item = present[at];
        ASSERT_TRUE(bloom->Remove(HashOf(item)));
        present[at] = present.back();
        present.pop_back();
        if (--model[item] == 0) model.erase(item);
      } else {
        const uint64_t item = rng.Below(40'000);
        ASSERT_NE(bloom->Add(HashOf(item)), Bloom::Added::kFull);
        present.push_back(item);
        ++model[item];
      }
      if (step % 10'000 == 9'999) {
        for (const auto& [item, copies] : model) ASSERT_TRUE(bloom->Has(HashOf(item))) << item;
      }
    }
    while (!present.empty()) {
      ASSERT_TRUE(bloom->Remove(HashOf(present.back())));
      present.pop_back();
    }
    EXPECT_EQ(bloom->items(), 0U);
    EXPECT_LT(bloom->MemoryUsage(0), 1000U);
  }
}

// Two items with one fingerprint: deleting one leaves the other.
TEST(BloomDeletion, SharedFingerprints) {
  const std::unique_ptr<Bloom> bloom = Filled({.deletable = true}, 5000);
  ASSERT_EQ(bloom->encoding(), "table");
  const uint64_t hash = Stranger(1);
  const uint64_t twin = hash ^ 1;  // behind the fingerprint
  EXPECT_EQ(bloom->Add(hash), Bloom::Added::kNew);
  EXPECT_EQ(bloom->Add(twin), Bloom::Added::kKnown);
  EXPECT_TRUE(bloom->Remove(hash));
  EXPECT_TRUE(bloom->Has(twin));
  EXPECT_TRUE(bloom->Remove(twin));
  EXPECT_FALSE(bloom->Has(hash));
  EXPECT_FALSE(bloom->Remove(hash));
  ExpectAll(*bloom, 5000);
}

TEST(BloomDeletion, BoundedWhereItMayNotGrow) {
  const std::unique_ptr<Bloom> bloom =
      Bloom::Make({.capacity = 2, .expansion = 0, .deletable = true, .reserved = true});
  EXPECT_EQ(bloom->Add(HashOf(1)), Bloom::Added::kNew);
  EXPECT_EQ(bloom->Add(HashOf(2)), Bloom::Added::kNew);
  EXPECT_EQ(bloom->Add(HashOf(3)), Bloom::Added::kFull);
  EXPECT_EQ(bloom->Add(HashOf(2)), Bloom::Added::kKnown);
  EXPECT_TRUE(bloom->Remove(HashOf(1)));
  EXPECT_EQ(bloom->Add(HashOf(3)), Bloom::Added::kNew);
  EXPECT_GT(Bloom::Make({.deletable = true})->max_items(), 500'000'000U);
}

// ---- merging ----

struct MergeCase {
  const char* name;
  Bloom::Options options;
  uint64_t items;
};

// Filters of every kind, each merged with each.
TEST(BloomMerge, KeepsEverything) {
  const MergeCase cases[] = {
      {"empty", {}, 0},
      {"exact", {}, 500},
      {"table", {}, 6000},
      {"longer", {.error = 0.001}, 6000},
      {"blocked", {.capacity = 20'000, .reserved = true}, 9000},
      {"small", {.capacity = 1000, .reserved = true}, 3000},
      {"classic", {.capacity = 9000, .layout = BloomLayout::kClassic, .reserved = true}, 9000},
  };
  for (const MergeCase& left : cases) {
    for (const MergeCase& right : cases) {
      SCOPED_TRACE(std::string(left.name) + " " + right.name);
      const std::unique_ptr<Bloom> bloom = Filled(left.options, left.items);
      const std::unique_ptr<Bloom> other = Bloom::Make(right.options);
      for (uint64_t i = 0; i < right.items; ++i) other->Add(Stranger(i));
      const Bloom* const others[] = {other.get(), bloom.get()};
      ASSERT_EQ(bloom->Merge(others), Bloom::Merged::kDone);
      ExpectAll(*bloom, left.items);
      for (uint64_t i = 0; i < right.items; ++i) ASSERT_TRUE(bloom->Has(Stranger(i))) << i;
      EXPECT_LE(bloom->items(), left.items + right.items);
      // It goes on.
      for (uint64_t i = 0; i < 30'000; ++i) bloom->Add(HashOf(1'000'000 + i));
      for (uint64_t i = 0; i < 30'000; ++i) ASSERT_TRUE(bloom->Has(HashOf(1'000'000 + i)));
    }
  }
}

TEST(BloomMerge, OfEqualSizesInPlace) {
  const Bloom::Options options{.capacity = 10'000, .reserved = true};
  const std::unique_ptr<Bloom> bloom = Filled(options, 5000);
  const std::unique_ptr<Bloom> other = Bloom::Make(options);
  for (uint64_t i = 0; i < 5000; ++i) other->Add(Stranger(i));
  const Bloom* const others[] = {other.get()};
  const size_t before = bloom->MemoryUsage(0);
  ASSERT_EQ(bloom->Merge(others), Bloom::Merged::kDone);
  EXPECT_EQ(bloom->MemoryUsage(0), before);
  EXPECT_EQ(bloom->stats().stages, 1U);
}

TEST(BloomMerge, DeletablesAddTheirCopies) {
  for (const uint64_t items : {100, 6000}) {
    const std::unique_ptr<Bloom> bloom = Filled({.deletable = true}, items);
    const std::unique_ptr<Bloom> other = Filled({.deletable = true}, 5000);
    const Bloom* const others[] = {other.get()};
    ASSERT_EQ(bloom->Merge(others), Bloom::Merged::kDone);
    ExpectAll(*bloom, std::max<uint64_t>(items, 5000));
    for (uint64_t i = 0; i < 5000; ++i) ASSERT_TRUE(bloom->Remove(HashOf(i)));
    ExpectAll(*bloom, std::min<uint64_t>(items, 5000));
  }
}

TEST(BloomMerge, Refusals) {
  const std::unique_ptr<Bloom> plain = Filled({}, 10);
  const std::unique_ptr<Bloom> deletable = Filled({.deletable = true}, 10);
  const std::unique_ptr<Bloom> fixed =
      Filled({.capacity = 15, .expansion = 0, .reserved = true}, 10);
  const Bloom* const to_plain[] = {deletable.get()};
  const Bloom* const to_fixed[] = {plain.get()};
  EXPECT_EQ(plain->Merge(to_plain), Bloom::Merged::kDifferent);
  EXPECT_EQ(fixed->Merge(to_fixed), Bloom::Merged::kFull);
  EXPECT_EQ(fixed->items(), 10U);
}

}  // namespace
}  // namespace sava::types
