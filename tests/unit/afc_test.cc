// Afc against its oracles: exact order for plain counters and bounded ones, in both layouts and
// across the changes between them; copies. Saving is in afc_save_test.cc, the error
// bounds of the options in afc_bounds_test.cc.
#include "types/counters/afc.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "afc_members.h"
#include "afc_oracle.h"

namespace sava::types {
namespace {

constexpr int64_t kNow = 1'700'000'000'000;

#ifdef SAVA_SANITIZED
constexpr int kLong = 16'000;
#else
constexpr int kLong = 40'000;
#endif

// ---- the oracles agree ----

TEST(AfcOracle, TheListingAndTheModelAgree) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const uint64_t most = 1 + random() % 12;
    ListedInsert listing(most);
    CounterModel model(0, most);
    const unsigned members = 1 + random() % 20;
    for (int i = 0; i < 300; ++i) {
      const std::string member = std::to_string(std::min(random() % members, random() % members));
      listing.SaveNewAssociatedKey(member);
      model.Add(member, 1);
    }
    ASSERT_EQ(listing.All(), model.All()) << "seed " << seed;
  }
}

// ---- order ----

TEST(Afc, FollowsTheRulesOfTheDocument) {
  Afc afc;
  for (const char* member : {"a", "b", "c"}) EXPECT_TRUE(afc.Add(member, 1, kNow).is_new);
  EXPECT_EQ(All(afc), (Counted{{"a", 1}, {"b", 1}, {"c", 1}}));
  EXPECT_EQ(afc.Add("c", 1, kNow).count, 2U);
  EXPECT_EQ(All(afc), (Counted{{"c", 2}, {"a", 1}, {"b", 1}}));
  EXPECT_FALSE(afc.Add("b", 1, kNow).is_new);
  EXPECT_EQ(All(afc), (Counted{{"b", 2}, {"c", 2}, {"a", 1}}));
  afc.Add("d", 1, kNow);
  EXPECT_EQ(All(afc), (Counted{{"b", 2}, {"c", 2}, {"a", 1}, {"d", 1}}));
  // More than one at once: to the front of its new group, new or not.
  afc.Add("e", 2, kNow);
  afc.Add("f", 7, kNow);
  EXPECT_EQ(All(afc), (Counted{{"f", 7}, {"e", 2}, {"b", 2}, {"c", 2}, {"a", 1}, {"d", 1}}));
  EXPECT_EQ(afc.Card(kNow), 6U);
  EXPECT_EQ(afc.Total(kNow), 15U);
  EXPECT_EQ(afc.Count("e", kNow), 2U);
  EXPECT_EQ(afc.Count("nope", kNow), 0U);
}

TEST(Afc, IsEmptyAtFirst) {
  Afc afc;
  EXPECT_EQ(afc.Card(kNow), 0U);
  EXPECT_EQ(afc.Total(kNow), 0U);
  EXPECT_EQ(afc.size(), 0U);
  EXPECT_EQ(afc.layout(), "packed");
  EXPECT_FALSE(afc.timed());
  EXPECT_FALSE(afc.Remove("x", kNow));
  EXPECT_EQ(afc.options(), Afc::Options{});
  EXPECT_TRUE(All(afc).empty());
}

// Single increments only: the listing itself is the oracle.
TEST(Afc, HasTheOrderOfTheListing) {
  for (const int members : {1, 2, 10, 100, 3000}) {
    for (const auto& name : kMemberKinds) {
      std::mt19937 random(static_cast<unsigned>(members));
      Afc afc;
      ListedInsert listing;
      // A walk along the list is slow; fewer steps where it is long.
      const int steps = members > 1000 ? kLong / 4 : kLong / 10;
      for (int i = 0; i < steps; ++i) {
        const std::string member = name(Skewed(random, members));
        afc.Add(member, 1, kNow);
        listing.SaveNewAssociatedKey(member);
        if (i % 997 == 0) {
          ASSERT_EQ(All(afc), listing.All());
        }
      }
      ASSERT_EQ(All(afc), listing.All());
    }
  }
}

TEST(Afc, AnyShortHistoryMatchesTheListing) {
  EXPECT_TRUE(rc::check([](const std::vector<uint8_t>& history) {
    Afc afc;
    ListedInsert listing;
    for (const uint8_t step : history) {
      const std::string member = MixedName(step % 12);
      afc.Add(member, 1, kNow);
      listing.SaveNewAssociatedKey(member);
      RC_ASSERT(All(afc) == listing.All());
    }
  }));
}

TEST(Afc, AnyShortHistoryMatchesTheModel) {
  EXPECT_TRUE(rc::check([](const std::vector<std::pair<uint8_t, uint16_t>>& history) {
    const uint64_t maxlen = *rc::gen::inRange<uint64_t>(0, 6);
    Afc afc({.maxlen = maxlen}, kNow);
    CounterModel model(maxlen);
    for (const auto& [step, n] : history) {
      const std::string member = MixedName(step % 9);
      if (step >= 200) {
        RC_ASSERT(afc.Remove(member, kNow) == model.Remove(member));
      } else {
        const uint64_t by = step < 100 ? 1 : 1 + n % 5;
        const auto ours = afc.Add(member, by, kNow);
        const auto theirs = model.Add(member, by);
        RC_ASSERT(ours.count == theirs.count);
        RC_ASSERT(ours.is_new == theirs.is_new);
      }
      RC_ASSERT(All(afc) == model.All());
      RC_ASSERT(afc.Card(kNow) == model.All().size());
    }
  }));
}

// A long life of one counter: it grows beyond the packed layout, shrinks again, and so on.
struct Life {
  const char* name;
  int members;
  uint64_t maxlen;
  MemberName member;
};

class AfcLife : public testing::TestWithParam<Life> {};

TEST_P(AfcLife, MatchesTheModelAcrossLayouts) {
  const Life life = GetParam();
  std::mt19937 random(7);
  Afc afc({.maxlen = life.maxlen}, kNow);
  CounterModel model(life.maxlen);
  std::map<std::string_view, int> layouts;
  for (int i = 0; i < kLong; ++i) {
    // Tides: mostly adding, then mostly removing.
    const bool ebb = (i / (kLong / 8)) % 2 == 1;
    const std::string member = life.member(Skewed(random, life.members));
    if (random() % 10 < (ebb ? 8U : 1U)) {
      ASSERT_EQ(afc.Remove(member, kNow), model.Remove(member)) << i;
    } else {
      const uint64_t n = random() % 8 == 0 ? 1 + random() % 1000 : 1;
      const auto ours = afc.Add(member, n, kNow);
      const auto theirs = model.Add(member, n);
      ASSERT_EQ(ours.count, theirs.count) << i;
      ASSERT_EQ(ours.is_new, theirs.is_new) << i;
    }
    if (i % 499 == 0) {
      ASSERT_EQ(All(afc), model.All()) << i;
    }
    ++layouts[afc.layout()];
  }
  ASSERT_EQ(All(afc), model.All());
  // Down to nothing, from the front, the middle and the end.
  while (!model.All().empty()) {
    const size_t left = model.All().size();
    const std::string member = model.All()[random() % 3 * (left - 1) / 2].first;
    ASSERT_TRUE(afc.Remove(member, kNow));
    model.Remove(member);
    if (left % 101 == 0) {
      ASSERT_EQ(All(afc), model.All());
    }
    ++layouts[afc.layout()];
  }
  EXPECT_EQ(afc.Card(kNow), 0U);
  EXPECT_EQ(afc.Total(kNow), 0U);
  if (life.members > 3000 && life.maxlen == 0) {
    EXPECT_GT(layouts["packed"], 0);
    EXPECT_GT(layouts["indexed"], 0);
  }
  // And it can be used again.
  afc.Add("again", 1, kNow);
  EXPECT_EQ(All(afc), (Counted{{"again", 1}}));
}

INSTANTIATE_TEST_SUITE_P(
    All, AfcLife,
    testing::Values(Life{"small", 60, 0, MixedName}, Life{"uuids", 5000, 0, UuidName},
                    Life{"words", 5000, 0, WordName}, Life{"binary", 5000, 0, BinaryName},
                    Life{"mixed", 4000, 0, MixedName}, Life{"bounded", 400, 50, MixedName},
                    Life{"bounded_by_one", 30, 1, WordName},
                    Life{"bounded_large", 6000, 2000, UuidName}),
    [](const auto& at) { return std::string(at.param.name); });

TEST(Afc, ChangesLayoutBothWays) {
  Afc afc;
  CounterModel model;
  for (int i = 0; i < 5000; ++i) {
    afc.Add(UuidName(i), 1, kNow);
    model.Add(UuidName(i), 1);
  }
  EXPECT_EQ(afc.layout(), "indexed");
  EXPECT_EQ(afc.encoding(), "indexed");
  EXPECT_EQ(All(afc), model.All());
  for (int i = 0; i < 4990; ++i) {
    ASSERT_TRUE(afc.Remove(UuidName(i), kNow));
    model.Remove(UuidName(i));
  }
  EXPECT_EQ(afc.layout(), "packed");
  EXPECT_EQ(All(afc), model.All());
}

// ---- extremes ----

TEST(Afc, StopsAtTheLargestCount) {
  constexpr uint64_t kMost = Afc::kMaxCount;
  Afc afc;
  CounterModel model;
  const auto add = [&](const std::string& member, uint64_t n) {
    const auto ours = afc.Add(member, n, kNow);
    EXPECT_EQ(ours.count, model.Add(member, n).count);
    EXPECT_EQ(All(afc), model.All());
  };
  add("a", kMost - 1);
  add("b", kMost);
  add("c", 5);
  add("a", 1);
  add("b", 1);  // at its end, and still to the front
  add("a", kMost);
  add("c", kMost);
  add("d", 1);
  add("d", kMost - 1);
  EXPECT_EQ(All(afc), (Counted{{"d", kMost}, {"c", kMost}, {"a", kMost}, {"b", kMost}}));
  EXPECT_EQ(afc.Total(kNow), UINT64_MAX);
  EXPECT_EQ(afc.Count("d", kNow), kMost);
}

TEST(Afc, CountsFarApartKeepTheirOrder) {
  Afc afc;
  CounterModel model;
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    const std::string member = WordName(static_cast<int>(random() % 300));
    const uint64_t n = 1 + (random() >> (1 + random() % 63)) % Afc::kMaxCount;
    ASSERT_EQ(afc.Add(member, n, kNow).count, model.Add(member, n).count);
    if (i % 50 == 0) {
      ASSERT_EQ(All(afc), model.All());
    }
  }
  EXPECT_EQ(All(afc), model.All());
}

TEST(Afc, MembersAreAnyBytes) {
  const std::string uuid = "0f8fad5b-d9cb-469f-a165-70867728950e";
  const std::vector<std::string> members = {
      "",
      std::string(1, '\0'),
      std::string(2, '\0'),
      "\xff\xfe",
      uuid,
      "0F8FAD5B-D9CB-469F-A165-70867728950E",  // upper case is another text
      "0f8fad5b-d9cb-469f-a165-70867728950g",  // not hexadecimal
      "0f8fad5bd9cb-469f-a165-70867728950e-",  // dashes elsewhere
      uuid + " ",
      uuid.substr(0, 35),
      std::string("\x0f\x8f\xad\x5b\xd9\xcb\x46\x9f\xa1\x65\x70\x86\x77\x28\x95\x0e", 16),
      std::string(126, 'x'),
      std::string(127, 'x'),
      std::string(128, 'x'),
      std::string(1500, 'l'),
      std::string(1500, 'm'),
      std::string(70'000, 'h'),
      "Обрадовића",
  };
  for (const int crowd : {0, 100, 4000}) {
    Afc afc;
    CounterModel model;
    for (int i = 0; i < crowd; ++i) {
      afc.Add(UuidName(i), 1, kNow);
      model.Add(UuidName(i), 1);
    }
    for (size_t round = 0; round < 3; ++round) {
      for (size_t i = 0; i < members.size(); ++i) {
        if ((i + round) % 3 == 0) continue;
        ASSERT_EQ(afc.Add(members[i], 1, kNow).count, model.Add(members[i], 1).count);
      }
    }
    EXPECT_EQ(All(afc), model.All());
    for (const std::string& member : members) {
      EXPECT_EQ(afc.Count(member, kNow), model.Count(member));
      EXPECT_TRUE(afc.Remove(member, kNow));
      EXPECT_EQ(afc.Count(member, kNow), 0U);
      model.Remove(member);
    }
    EXPECT_EQ(All(afc), model.All());
  }
}

TEST(Afc, TopStopsWhereItIsTold) {
  for (const int members : {7, 300, 5000}) {
    Afc afc;
    std::mt19937 random(1);
    for (int i = 0; i < members * 3; ++i) afc.Add(MixedName(Skewed(random, members)), 1, kNow);
    const Counted all = All(afc);
    for (const size_t k :
         {size_t{0}, size_t{1}, size_t{5}, all.size() - 1, all.size(), all.size() + 1, SIZE_MAX}) {
      Counted top;
      afc.Top(k, kNow,
              [&top](std::string_view member, uint64_t count) { top.emplace_back(member, count); });
      EXPECT_EQ(
          top, Counted(all.begin(), all.begin() + static_cast<ptrdiff_t>(std::min(k, all.size()))));
    }
  }
}

// ---- as an Object ----

TEST(Afc, CopiesLiveApart) {
  for (const int members : {3, 200, 5000}) {
    Afc afc;
    for (int i = 0; i < members; ++i) afc.Add(MixedName(i), 1 + static_cast<uint64_t>(i) % 7, kNow);
    const Counted before = All(afc);
    const std::unique_ptr<Object> object = afc.Copy();
    auto& copy = static_cast<Afc&>(*object);
    EXPECT_EQ(All(copy), before);
    EXPECT_EQ(copy.Total(kNow), afc.Total(kNow));
    for (int i = 0; i < members; i += 2) copy.Remove(MixedName(i), kNow);
    copy.Add("only in the copy", 3, kNow);
    EXPECT_EQ(All(afc), before);
    const Counted copied = All(copy);
    for (int i = 0; i < members; ++i) afc.Remove(MixedName(i), kNow);
    EXPECT_EQ(All(copy), copied);
    EXPECT_EQ(afc.Card(kNow), 0U);
  }
}

TEST(Afc, MemoryGrowsAndShrinks) {
  Afc afc;
  const size_t empty = afc.MemoryUsage(0);
  EXPECT_GE(empty, sizeof(Afc));
  size_t last = empty;
  for (int i = 0; i < 5000; ++i) {
    afc.Add(BinaryName(i), 1, kNow);
    if (i % 1000 == 999) {
      EXPECT_GT(afc.MemoryUsage(0), last);
      last = afc.MemoryUsage(0);
    }
  }
  for (int i = 0; i < 5000; ++i) afc.Remove(BinaryName(i), kNow);
  EXPECT_LT(afc.MemoryUsage(0), last / 10);
}

TEST(Afc, EqualHistoriesHaveEqualDigests) {
  const auto digest = [](const Afc& afc) {
    std::vector<std::string> parts;
    afc.Digest([&parts](std::string_view part) { parts.emplace_back(part); });
    return parts;
  };
  Afc a;
  Afc b;
  for (int i = 0; i < 3000; ++i) a.Add(MixedName(i % 1500), 1, kNow);
  for (int i = 0; i < 3000; ++i) b.Add(MixedName(i % 1500), 1, kNow);
  // The other one has been large meanwhile, so its parts may lie elsewhere.
  for (int i = 100'000; i < 103'000; ++i) b.Add(UuidName(i), 1, kNow);
  for (int i = 100'000; i < 103'000; ++i) b.Remove(UuidName(i), kNow);
  ASSERT_EQ(All(a), All(b));
  EXPECT_EQ(digest(a), digest(b));
  b.Add(MixedName(1), 1, kNow);
  EXPECT_NE(digest(a), digest(b));
}

// The total is the sum of the counts also after some have stopped at the end of the scale.
TEST(Afc, TheTotalSurvivesFullCounters) {
  Afc afc;
  for (const char* name : {"a", "b", "c"}) {
    afc.Add(name, Afc::kMaxCount, 0);
    afc.Add(name, Afc::kMaxCount, 0);
  }
  afc.Add("d", 7, 0);
  EXPECT_EQ(afc.Total(0), UINT64_MAX);
  for (const char* name : {"a", "b", "c"}) afc.Remove(name, 0);
  EXPECT_EQ(afc.Total(0), 7U);
}

}  // namespace
}  // namespace sava::types
