// SortedSet against a plain model (a map of scores and a set of pairs): random walks over all calls
// in the small and the large form, with many equal scores, long members and members that come in
// order.
#include "types/collections/sorted_set.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "types/algo/geohash.h"

namespace sava::types {
namespace {

constexpr CollectionLimits kLimits;

class Model {
 public:
  void Set(const std::string& member, double score) {
    Remove(member);
    scores_[member] = score;
    order_.insert({score, member});
  }
  bool Remove(const std::string& member) {
    const auto found = scores_.find(member);
    if (found == scores_.end()) return false;
    order_.erase({found->second, member});
    scores_.erase(found);
    return true;
  }
  void RemoveRanks(size_t from, size_t to) {
    std::vector<std::string> gone;
    auto it = std::next(order_.begin(), static_cast<ptrdiff_t>(from));
    for (size_t i = from; i < to; ++i, ++it) gone.push_back(it->second);
    for (const std::string& member : gone) Remove(member);
  }
  size_t size() const { return scores_.size(); }
  const std::map<std::string, double>& scores() const { return scores_; }
  const std::set<std::pair<double, std::string>>& order() const { return order_; }

 private:
  std::map<std::string, double> scores_;
  std::set<std::pair<double, std::string>> order_;
};

void ExpectEqual(const SortedSet& set, const Model& model) {
  ASSERT_EQ(set.size(), model.size());
  ASSERT_TRUE(set.Check());
  size_t rank = 0;
  SortedSet::Iterator it = set.At(0);
  for (const auto& [score, member] : model.order()) {
    ASSERT_TRUE(static_cast<bool>(it));
    ASSERT_EQ(it.member(), member) << rank;
    ASSERT_EQ(it.score(), score) << rank;
    it.Next();
    ++rank;
  }
  EXPECT_FALSE(static_cast<bool>(it));
  it = set.At(set.size() - 1);
  for (auto back = model.order().rbegin(); back != model.order().rend(); ++back) {
    ASSERT_TRUE(static_cast<bool>(it));
    ASSERT_EQ(it.member(), back->second);
    it.Previous();
  }
  EXPECT_FALSE(static_cast<bool>(it));
}

void ExpectSameAnswers(const SortedSet& set, const Model& model, base::Rng& rng) {
  if (model.size() == 0) return;
  const size_t rank = rng.Below(model.size());
  const auto& [score, member] = *std::next(model.order().begin(), static_cast<ptrdiff_t>(rank));
  double found = 0;
  ASSERT_EQ(set.Rank(member, &found), rank);
  ASSERT_EQ(found, score);
  ASSERT_EQ(set.Score(member), score);
  ASSERT_EQ(set.At(rank).member(), member);
  const auto low = model.order().lower_bound({score, std::string()});
  const auto high = std::isinf(score) && score > 0
                        ? model.order().end()
                        : model.order().lower_bound({std::nextafter(score, HUGE_VAL), {}});
  const auto rank_of = [&](auto place) {
    return static_cast<size_t>(std::distance(model.order().begin(), place));
  };
  ASSERT_EQ(set.CountBelow(score, false), rank_of(low));
  ASSERT_EQ(set.CountBelow(score, true), rank_of(high));
  ASSERT_FALSE(set.Score(member + "?").has_value());
}

// How members and scores are chosen.
struct Walk {
  const char* name;
  size_t members;
  int scores;  // 0: anything, 1: one of ten, 2: all equal, 3: rising, 4: falling, 5: large steps
  size_t longest;
  int steps;
};

void PrintTo(const Walk& walk, std::ostream* out) { *out << walk.name; }

double ScoreFor(const Walk& walk, int step, base::Rng& rng) {
  switch (walk.scores) {
    case 1:
      return static_cast<double>(rng.Below(10));
    case 2:
      return 7;
    case 3:
      return step;
    case 4:
      return -step * 1000.0;
    case 5:
      return static_cast<double>(rng.Below(1'000'000)) * 1e9;
    default:
      if (rng.Below(50) == 0) return rng.Below(2) == 0 ? HUGE_VAL : -HUGE_VAL;
      return rng.Below(2) == 0 ? rng.Unit() * 100 : static_cast<double>(rng.Below(1000)) - 500;
  }
}

std::string MemberFor(const Walk& walk, base::Rng& rng) {
  const uint64_t number = rng.Below(walk.members);
  // Most members of some walks begin alike.
  const bool alike = walk.name[0] == 's' && number % 50 != 0;
  std::string member = (alike ? "user:" : "") + std::to_string(number);
  if (walk.longest > 0) {
    // Of a fixed length for each number, so that it is one and the same member.
    base::Rng own(number + 1);
    member.append(own.Below(20) == 0 ? own.Below(walk.longest) : own.Below(20), 'x');
  }
  return member;
}

class SortedSetWalk : public testing::TestWithParam<Walk> {};

TEST_P(SortedSetWalk, BehavesAsTheModel) {
  const Walk& walk = GetParam();
  base::Rng rng(2024);
  SortedSet set;
  Model model;
  for (int step = 0; step < walk.steps; ++step) {
    // It grows for a third, then stays, then shrinks.
    const uint64_t phase = static_cast<uint64_t>(step) * 3 / static_cast<uint64_t>(walk.steps);
    const uint64_t dice = rng.Below(100);
    const std::string member = MemberFor(walk, rng);
    if (dice < (phase == 0 ? 90U : phase == 1 ? 50U : 15U)) {
      const double score = ScoreFor(walk, step, rng);
      const auto old = model.scores().find(member);
      const bool is_new = old == model.scores().end();
      const bool changes = !is_new && old->second != score;
      const SortedSet::AddResult result = set.Add(member, score, kLimits);
      ASSERT_EQ(result.added, is_new);
      ASSERT_EQ(result.updated, changes);
      if (is_new || changes) model.Set(member, score);
    } else if (dice < 96) {
      ASSERT_EQ(set.Remove(member), model.Remove(member));
    } else if (dice == 99 && phase == 2 && model.size() > 0) {
      const size_t from = rng.Below(model.size());
      const size_t to = std::min(model.size(), from + rng.Below(200));
      set.RemoveRanks(from, to);
      model.RemoveRanks(from, to);
    } else {
      ExpectSameAnswers(set, model, rng);
    }
    if (step % 997 == 0) ExpectEqual(set, model);
    if (testing::Test::HasFatalFailure()) FAIL() << "step " << step;
  }
  ExpectEqual(set, model);
}

INSTANTIATE_TEST_SUITE_P(
    Walks, SortedSetWalk,
    testing::Values(Walk{"small", 60, 0, 0, 3000}, Walk{"any_score", 4000, 0, 0, 20000},
                    Walk{"few_scores", 4000, 1, 0, 20000}, Walk{"one_score", 4000, 2, 0, 20000},
                    Walk{"rising", 4000, 3, 0, 20000}, Walk{"falling", 4000, 4, 0, 20000},
                    Walk{"steps", 4000, 5, 0, 20000}, Walk{"long_members", 1500, 0, 700, 8000},
                    Walk{"huge_members", 300, 1, 6000, 4000}),
    [](const auto& walk) { return std::string(walk.param.name); });

TEST(SortedSet, RefusesByItsConditions) {
  SortedSet set;
  EXPECT_TRUE(set.Add("a", 5, {.only_existing = true}, kLimits).refused);
  EXPECT_TRUE(set.Add("a", 5, {.only_greater = true}, kLimits).added);
  EXPECT_TRUE(set.Add("a", 4, {.only_greater = true}, kLimits).refused);
  EXPECT_TRUE(set.Add("a", 5, {.only_less = true}, kLimits).refused);
  EXPECT_TRUE(set.Add("a", 6, {.only_new = true}, kLimits).refused);
  EXPECT_TRUE(set.Add("a", 3, {.only_less = true}, kLimits).updated);
  EXPECT_EQ(set.Add("a", 2.5, {.increment = true}, kLimits).score, 5.5);
  set.Add("a", HUGE_VAL, kLimits);
  EXPECT_TRUE(set.Add("a", -HUGE_VAL, {.increment = true}, kLimits).nan);
  EXPECT_EQ(set.Score("a"), HUGE_VAL);
}

TEST(SortedSet, EncodingSticksToSkiplist) {
  SortedSet set;
  for (int i = 0; i < 128; ++i) set.Add(std::to_string(i), i, kLimits);
  EXPECT_EQ(set.encoding(), "listpack");
  set.Add("one more", 1, kLimits);
  EXPECT_EQ(set.encoding(), "skiplist");
  set.RemoveRanks(1, 129);
  EXPECT_EQ(set.encoding(), "skiplist");
  set.ChooseEncoding(kLimits);
  EXPECT_EQ(set.encoding(), "listpack");
  set.Add(std::string(65, 'x'), 1, kLimits);
  EXPECT_EQ(set.encoding(), "skiplist");
}

TEST(SortedSet, ListpackHasNoNegativeZero) {
  SortedSet set;
  set.Add("a", -0.0, kLimits);
  EXPECT_FALSE(std::signbit(set.Score("a").value_or(1)));
  set.Expect(1000, 1, kLimits);
  set.Add("b", -0.0, kLimits);
  EXPECT_TRUE(std::signbit(set.Score("b").value_or(1)));
}

// Members that come in order fill their blocks.
TEST(SortedSet, RisingScoresWasteLittle) {
  for (const int sign : {1, -1}) {
    SortedSet set;
    for (int i = 0; i < 20000; ++i) {
      set.Add("member:" + std::to_string(100000000 + i), sign * i * 1.5, kLimits);
    }
    EXPECT_LT(set.MemoryUsage(0), 20000 * 44U);
  }
}

TEST(SortedSet, ScanShowsEveryMemberThatStays) {
  base::Rng rng(5);
  SortedSet set;
  for (int i = 0; i < 5000; ++i) set.Add("stays:" + std::to_string(i), i, kLimits);
  for (const bool shrink : {false, true}) {
    std::map<std::string, int> seen;
    uint64_t cursor = 0;
    int calls = 0;
    do {
      cursor = set.Scan(cursor, 10,
                        [&](std::string_view member, double) { ++seen[std::string(member)]; });
      for (int i = 0; i < 20; ++i) {
        if (shrink) {
          set.Remove("goes:" + std::to_string(rng.Below(4000)));
        } else {
          set.Add("goes:" + std::to_string(rng.Below(4000)), rng.Unit(), kLimits);
        }
      }
      ++calls;
      ASSERT_LT(calls, 5000);
    } while (cursor != 0);
    for (int i = 0; i < 5000; ++i) EXPECT_GE(seen["stays:" + std::to_string(i)], 1) << i;
  }
}

TEST(SortedSet, ScanGoesOnWhenItBecomesSmall) {
  SortedSet set;
  for (int i = 0; i < 1000; ++i) set.Add(std::to_string(i), i, kLimits);
  std::set<std::string> seen;
  const auto visit = [&](std::string_view member, double) { seen.emplace(member); };
  uint64_t cursor = set.Scan(0, 300, visit);
  ASSERT_NE(cursor, 0U);
  set.RemoveRanks(20, 1000);
  while (cursor != 0) cursor = set.Scan(cursor, 10, visit);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(seen.contains(std::to_string(i))) << i;
}

TEST(SortedSet, CopyIsEqualAndIndependent) {
  SortedSet set;
  Model model;
  for (int i = 0; i < 3000; ++i) {
    set.Add(std::to_string(i), i % 17, kLimits);
    model.Set(std::to_string(i), i % 17);
  }
  const std::unique_ptr<Object> copy = set.Copy();
  set.RemoveRanks(0, 3000);
  EXPECT_EQ(set.size(), 0U);
  ExpectEqual(static_cast<SortedSet&>(*copy), model);
}

TEST(SortedSet, LexRanksWhereScoresAreEqual) {
  SortedSet set;
  std::set<std::string> model;
  base::Rng rng(11);
  for (int i = 0; i < 3000; ++i) {
    std::string member;
    for (uint64_t n = 1 + rng.Below(5); n > 0; --n) {
      member += static_cast<char>('a' + rng.Below(4));
    }
    set.Add(member, 0, kLimits);
    model.insert(member);
  }
  for (const char* bound : {"", "a", "aab", "b", "bb", "caa", "dddd", "ddddd", "z"}) {
    const auto below = std::distance(model.begin(), model.lower_bound(bound));
    const auto upto = std::distance(model.begin(), model.upper_bound(bound));
    EXPECT_EQ(set.CountMembersBelow(bound, false), static_cast<size_t>(below)) << bound;
    EXPECT_EQ(set.CountMembersBelow(bound, true), static_cast<size_t>(upto)) << bound;
  }
}

TEST(SortedSet, ScoresAsText) {
  const std::vector<std::pair<double, std::string>> cases = {
      {0, "0"},
      {-0.0, "-0"},
      {3, "3"},
      {-17, "-17"},
      {1e17, "100000000000000000"},
      {1e20, "1e+20"},
      {1e30, "1e+30"},
      {1.5, "1.5"},
      {0.1, "0.1"},
      {-0.001, "-0.001"},
      {1e-7, "1e-7"},
      {1.25e-7, "1.25e-7"},
      {0.00001, "0.00001"},
      {3.141592653589793, "3.141592653589793"},
      {1234567.891, "1234567.891"},
      {HUGE_VAL, "inf"},
      {-HUGE_VAL, "-inf"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},
  };
  for (const auto& [score, text] : cases) EXPECT_EQ(ScoreText(score), text);
}

// ---- geohashes ----

TEST(Geohash, KnownPlaces) {
  const GeoPoint palermo{13.361389, 38.115556};
  const GeoPoint catania{15.087269, 37.502669};
  EXPECT_EQ(GeoEncode(palermo), 3479099956230698U);
  EXPECT_EQ(GeoEncode(catania), 3479447370796909U);
  EXPECT_EQ(GeoText(GeoDecode(GeoEncode(palermo))), "sqc8b49rny0");
  EXPECT_EQ(GeoText(GeoDecode(GeoEncode(catania))), "sqdtr74hyu0");
  EXPECT_NEAR(GeoDistance(GeoDecode(GeoEncode(palermo)), GeoDecode(GeoEncode(catania))),
              166274.1516, 0.0001);
}

// Whatever is inside a shape is in one of the cells that cover it.
TEST(Geohash, CoverMissesNothing) {
  base::Rng rng(8);
  for (int round = 0; round < 3000; ++round) {
    GeoShape shape;
    shape.box = rng.Below(2) == 0;
    shape.centre = {rng.Unit() * 340 - 170, rng.Unit() * 150 - 75};
    shape.radius = std::pow(10, rng.Unit() * 5);
    shape.width = shape.height = shape.radius * 1.5;
    const double degrees = shape.radius / 80000;
    const GeoPoint near{shape.centre.longitude + (rng.Unit() - 0.5) * degrees,
                        shape.centre.latitude + (rng.Unit() - 0.5) * degrees};
    if (!near.InRange() || !shape.DistanceInside(near)) continue;
    const uint64_t hash = GeoEncode(near);
    bool covered = false;
    for (const GeoRange& range : GeoCover(shape)) {
      covered = covered || (hash >= range.from && hash < range.to);
    }
    EXPECT_TRUE(covered) << shape.centre.longitude << " " << shape.centre.latitude << " "
                         << shape.radius;
  }
}

}  // namespace
}  // namespace sava::types
