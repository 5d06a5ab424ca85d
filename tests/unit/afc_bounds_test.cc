// The promises that MAXLEN, HALFLIFE and WINDOW make about their errors, against exact counts.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "afc_members.h"
#include "types/counters/afc.h"

namespace sava::types {
namespace {

constexpr int64_t kNow = 1'700'000'000'000;

#ifdef SAVA_SANITIZED
constexpr int kEvents = 20'000;
#else
constexpr int kEvents = 200'000;
#endif

// ---- MAXLEN ----

struct Stream {
  const char* name;
  uint64_t maxlen;
  int members;
  double exponent;
  uint64_t most;  // of an increment
};

class AfcMaxlen : public testing::TestWithParam<Stream> {};

TEST_P(AfcMaxlen, KeepsItsBounds) {
  const Stream stream = GetParam();
  std::mt19937 random(11);
  const Zipf zipf(stream.members, stream.exponent);
  Afc afc({.maxlen = stream.maxlen}, kNow);
  std::map<std::string, uint64_t> exact;
  uint64_t total = 0;
  for (int i = 0; i < kEvents; ++i) {
    const std::string member = WordName(zipf.Draw(random));
    const uint64_t n = 1 + random() % stream.most;
    afc.Add(member, n, kNow);
    exact[member] += n;
    total += n;
    ASSERT_LE(afc.Card(kNow), stream.maxlen);
    if (i % (kEvents / 10) != kEvents / 10 - 1) continue;
    EXPECT_EQ(afc.Total(kNow), total);
    const uint64_t slack = total / stream.maxlen;
    uint64_t sum = 0;
    uint64_t last = UINT64_MAX;
    for (const auto& [name, count] : All(afc)) {
      ASSERT_GE(count, exact[name]) << name << " is too low";
      ASSERT_LE(count, exact[name] + slack) << name << " is too high";
      ASSERT_LE(count, last);
      last = count;
      sum += count;
    }
    EXPECT_EQ(sum, total);
    for (const auto& [name, count] : exact) {
      if (count <= slack) continue;
      EXPECT_GE(afc.Count(name, kNow), count) << name << " was lost";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, AfcMaxlen,
    testing::Values(Stream{"flat", 100, 5000, 0.6, 1}, Stream{"zipf", 100, 5000, 1.0, 1},
                    Stream{"steep", 20, 5000, 1.4, 1}, Stream{"weighted", 64, 2000, 1.0, 50},
                    Stream{"indexed", 2000, 20000, 0.8, 1}, Stream{"one", 1, 50, 1.0, 1},
                    Stream{"roomy", 5000, 3000, 1.0, 3}),
    [](const auto& at) { return std::string(at.param.name); });

TEST(AfcMaxlen, BelowTheBoundNothingIsLost) {
  Afc afc({.maxlen = 500}, kNow);
  CounterModel model;
  std::mt19937 random(2);
  for (int i = 0; i < 5000; ++i) {
    const std::string member = MixedName(Skewed(random, 500));
    afc.Add(member, 1, kNow);
    model.Add(member, 1);
  }
  EXPECT_EQ(All(afc), model.All());
}

// ---- HALFLIFE ----

// The sum of n * 2^-(age/halflife), exactly.
class DecayModel {
 public:
  explicit DecayModel(double halflife_ms) : halflife_(halflife_ms) {}

  void Add(const std::string& member, double n, int64_t now) {
    Weight& weight = weights_[member];
    weight = {At(weight, now) + n, now};
  }
  void Remove(const std::string& member) { weights_.erase(member); }
  double At(const std::string& member, int64_t now) const {
    const auto found = weights_.find(member);
    return found == weights_.end() ? 0 : At(found->second, now);
  }
  double Total(int64_t now) const {
    double sum = 0;
    for (const auto& [member, weight] : weights_) sum += At(weight, now);
    return sum;
  }
  size_t size() const { return weights_.size(); }

 private:
  struct Weight {
    double value = 0;
    int64_t time = 0;
  };
  double At(const Weight& weight, int64_t now) const {
    return weight.value * std::exp2(-static_cast<double>(now - weight.time) / halflife_);
  }

  const double halflife_;
  std::map<std::string, Weight> weights_;
};

// One step of the order, and what counts may be off, with a hair for rounding.
const double kStep = std::exp2(1.0 / 64) * (1 + 1e-9);
constexpr double kCountError = 0.012;

void ExpectDecayed(const Afc& afc, const DecayModel& model, int64_t now) {
  double least = HUGE_VAL;
  size_t seen = 0;
  for (const auto& [member, count] : All(afc, now)) {
    const double weight = model.At(member, now);
    ASSERT_LE(weight, least * kStep) << member << " stands too low";
    least = std::min(least, weight);
    ASSERT_NEAR(static_cast<double>(count), weight, weight * kCountError + 0.5) << member;
    ASSERT_EQ(afc.Count(member, now), count);
    ++seen;
  }
  EXPECT_EQ(seen, model.size());
  EXPECT_EQ(afc.Card(now), model.size());
  const double total = model.Total(now);
  EXPECT_NEAR(static_cast<double>(afc.Total(now)), total, total * kCountError + 1);
}

struct Decay {
  const char* name;
  int64_t halflife_ms;
  int64_t most_pause_ms;
  int members;
  uint64_t most;
};

class AfcHalflife : public testing::TestWithParam<Decay> {};

TEST_P(AfcHalflife, FollowsTheExactWeights) {
  const Decay decay = GetParam();
  std::mt19937 random(5);
  int64_t now = kNow;
  Afc afc({.halflife_ms = decay.halflife_ms}, now);
  EXPECT_TRUE(afc.timed());
  DecayModel model(static_cast<double>(decay.halflife_ms));
  for (int i = 0; i < kEvents / 10; ++i) {
    now += static_cast<int64_t>(random() % static_cast<uint64_t>(decay.most_pause_ms + 1));
    const std::string member = MixedName(Skewed(random, decay.members));
    if (random() % 50 == 0) {
      afc.Remove(member, now);
      model.Remove(member);
    } else {
      const uint64_t n = 1 + random() % decay.most;
      const double weight = model.At(member, now) + static_cast<double>(n);
      const auto added = afc.Add(member, n, now);
      ASSERT_NEAR(static_cast<double>(added.count), weight, weight * kCountError + 0.5);
      model.Add(member, static_cast<double>(n), now);
    }
    if (i % 1999 == 0) ExpectDecayed(afc, model, now);
  }
  ExpectDecayed(afc, model, now);
  // Time alone changes counts, not the order.
  const Counted before = All(afc, now);
  const Counted later = All(afc, now + decay.halflife_ms);
  ASSERT_EQ(before.size(), later.size());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i].first, later[i].first);
  ExpectDecayed(afc, model, now + decay.halflife_ms);
}

INSTANTIATE_TEST_SUITE_P(
    All, AfcHalflife,
    testing::Values(Decay{"slow", 86'400'000, 1000, 200, 1}, Decay{"fast", 1000, 5, 200, 1},
                    Decay{"weighted", 60'000, 100, 50, 1'000'000},
                    Decay{"many", 3'600'000, 500, 4000, 3},
                    // Weights beyond any double, were they not brought down now and then.
                    Decay{"ages", 1000, 2000, 30, 2}),
    [](const auto& at) { return std::string(at.param.name); });

TEST(AfcHalflife, HalvesEachTime) {
  Afc afc({.halflife_ms = 1000}, kNow);
  afc.Add("a", 1024, kNow);
  for (int i = 0; i <= 10; ++i) {
    EXPECT_NEAR(static_cast<double>(afc.Count("a", kNow + 1000 * i)), 1024 >> i,
                (1024 >> i) * kCountError + 0.5);
  }
  EXPECT_EQ(afc.Count("a", kNow + 1'000'000), 0U);
  EXPECT_EQ(afc.Count("a", INT64_MAX / 2), 0U);
  EXPECT_EQ(afc.Card(kNow + 1'000'000), 1U);
}

// Members that are thousands of half-lives old weigh nothing, also when they go.
TEST(AfcHalflife, TheTotalFollowsWhatIsRemoved) {
  Afc afc({.halflife_ms = 1000}, 0);
  afc.Add("old", 1, 0);
  for (const char* name : {"a", "b", "c"}) afc.Add(name, 1000, 2'000'000);
  afc.Add("heavy", 1'000'000'000'000, 2'000'000);
  EXPECT_TRUE(afc.Remove("old", 2'000'000));
  EXPECT_TRUE(afc.Remove("heavy", 2'000'000));
  EXPECT_EQ(afc.Total(2'000'000), 3000U);
  EXPECT_TRUE(afc.Remove("b", 2'000'000));
  EXPECT_EQ(afc.Total(2'000'000), 2000U);
}

TEST(AfcHalflife, ASmallCounterIsSmall) {
  Afc afc({.halflife_ms = 1000}, 0);
  afc.Add("one", 1, 0);
  EXPECT_LT(afc.MemoryUsage(0), 1500U);
}

TEST(AfcHalflife, TheRecentOvertakesTheFrequent) {
  Afc afc({.halflife_ms = 1000}, kNow);
  for (int i = 0; i < 100; ++i) afc.Add("old", 1, kNow);
  afc.Add("new", 1, kNow);
  EXPECT_EQ(All(afc, kNow).front().first, "old");
  afc.Add("new", 1, kNow + 8000);
  EXPECT_EQ(All(afc, kNow + 8000).front().first, "new");
}

TEST(AfcHalflife, TimesBeforeTheBeginningAreTheBeginning) {
  Afc afc({.halflife_ms = 1000}, kNow);
  afc.Add("a", 64, kNow);
  afc.Add("b", 64, kNow - 5000);
  EXPECT_EQ(afc.Count("a", kNow), 64U);
  EXPECT_EQ(afc.Count("b", kNow), 64U);
  EXPECT_EQ(afc.Count("b", 0), 64U);
  // An occurrence reported late weighs what it weighs by now.
  afc.Add("a", 64, kNow + 1000);
  afc.Add("b", 64, kNow);
  EXPECT_EQ(afc.Count("a", kNow + 1000), 96U);
  EXPECT_EQ(afc.Count("b", kNow + 1000), 64U);
}

TEST(AfcHalflife, WithMaxlenTheRecentSurvive) {
  Afc afc({.maxlen = 10, .halflife_ms = 10'000}, kNow);
  std::mt19937 random(4);
  int64_t now = kNow;
  for (int i = 0; i < 20'000; ++i) {
    now += 10;
    // Half of all events are one member, which changes every ten half-lives.
    const bool hot = random() % 2 == 0;
    const std::string member =
        hot ? "hot" + std::to_string(i / 10'000) : WordName(static_cast<int>(random() % 1000));
    afc.Add(member, 1, now);
    ASSERT_LE(afc.Card(now), 10U);
  }
  EXPECT_EQ(All(afc, now).front().first, "hot1");
}

// ---- WINDOW ----

class WindowModel {
 public:
  void Add(const std::string& member, uint64_t n, int64_t now) {
    events_.push_back({member, n, now});
  }
  void Remove(const std::string& member) {
    std::erase_if(events_, [&](const Event& event) { return event.member == member; });
  }
  // Everything up to that old.
  std::map<std::string, uint64_t> Within(int64_t age, int64_t now) const {
    std::map<std::string, uint64_t> counts;
    for (const Event& event : events_) {
      if (now - event.time <= age) counts[event.member] += event.n;
    }
    return counts;
  }
  void Forget(int64_t before) {
    while (!events_.empty() && events_.front().time < before) events_.pop_front();
  }

 private:
  struct Event {
    std::string member;
    uint64_t n;
    int64_t time;
  };
  std::deque<Event> events_;
};

void ExpectWindow(const Afc& afc, const WindowModel& model, int64_t window, int64_t now) {
  auto least = model.Within(window - 1, now);
  auto most = model.Within(2 * window, now);
  uint64_t last = UINT64_MAX;
  uint64_t sum = 0;
  std::map<std::string, uint64_t> seen;
  for (const auto& [member, count] : All(afc, now)) {
    ASSERT_GE(count, least[member]) << member;
    ASSERT_LE(count, most[member]) << member;
    ASSERT_GT(count, 0U) << member;
    ASSERT_LE(count, last) << member << " stands too low";
    ASSERT_EQ(afc.Count(member, now), count);
    ASSERT_TRUE(seen.emplace(member, count).second) << member << " stands twice";
    last = count;
    sum += count;
  }
  for (const auto& [member, count] : least) {
    ASSERT_TRUE(count == 0 || seen.count(member) == 1) << member << " is not there";
  }
  EXPECT_EQ(afc.Card(now), seen.size());
  EXPECT_EQ(afc.Total(now), sum);
}

struct Window {
  const char* name;
  int64_t window_ms;
  int64_t most_pause_ms;
  int members;
};

class AfcWindow : public testing::TestWithParam<Window> {};

TEST_P(AfcWindow, CountsBetweenOneAndTwoWindows) {
  const Window at = GetParam();
  std::mt19937 random(6);
  int64_t now = kNow;
  Afc afc({.window_ms = at.window_ms}, now);
  EXPECT_TRUE(afc.timed());
  WindowModel model;
  for (int i = 0; i < kEvents / 20; ++i) {
    now += static_cast<int64_t>(random() % static_cast<uint64_t>(at.most_pause_ms + 1));
    const std::string member = MixedName(Skewed(random, at.members));
    if (random() % 40 == 0) {
      afc.Remove(member, now);
      model.Remove(member);
      ASSERT_EQ(afc.Count(member, now), 0U);
    } else {
      const uint64_t n = random() % 5 == 0 ? 1 + random() % 20 : 1;
      const auto added = afc.Add(member, n, now);
      ASSERT_EQ(added.count, afc.Count(member, now));
      model.Add(member, n, now);
    }
    model.Forget(now - 3 * at.window_ms);
    if (i % 97 == 0) ExpectWindow(afc, model, at.window_ms, now);
  }
  // And as time goes on without events, everything goes.
  for (const int64_t later : {at.window_ms / 2, at.window_ms, at.window_ms * 3 / 2}) {
    ExpectWindow(afc, model, at.window_ms, now + later);
  }
  const int64_t end = now + 2 * at.window_ms + 1;
  EXPECT_EQ(afc.Card(end), 0U);
  EXPECT_TRUE(All(afc, end).empty());
  EXPECT_EQ(afc.Total(end), 0U);
}

INSTANTIATE_TEST_SUITE_P(All, AfcWindow,
                         testing::Values(Window{"short", 1000, 20, 50},
                                         Window{"sparse", 1000, 3000, 20},
                                         Window{"long", 100'000, 50, 400},
                                         Window{"many", 60'000, 20, 5000}),
                         [](const auto& at) { return std::string(at.param.name); });

// Nothing that is asked about a member that is not there moves the window on.
TEST(AfcWindow, RemovingNothingChangesNothing) {
  Afc afc({.window_ms = 1000}, 0);
  afc.Add("a", 2, 500);
  EXPECT_FALSE(afc.Remove("nobody", 1'000'000));
  EXPECT_EQ(afc.Count("a", 600), 2U);
  EXPECT_FALSE(afc.Remove("a", 1'000'000)) << "it is forgotten by then";
}

TEST(AfcWindow, TellsWhatIsNew) {
  Afc afc({.window_ms = 1000}, kNow);
  EXPECT_TRUE(afc.Add("a", 1, kNow).is_new);
  EXPECT_FALSE(afc.Add("a", 1, kNow + 500).is_new);
  const auto later = afc.Add("a", 1, kNow + 5000);
  EXPECT_TRUE(later.is_new);
  EXPECT_EQ(later.count, 1U);
  EXPECT_TRUE(afc.Remove("a", kNow + 5000));
  EXPECT_FALSE(afc.Remove("a", kNow + 5000));
  afc.Add("b", 1, kNow + 5000);
  EXPECT_FALSE(afc.Remove("b", kNow + 50'000));
}

TEST(AfcWindow, WithMaxlenEachGenerationIsBounded) {
  Afc afc({.maxlen = 100, .window_ms = 10'000}, kNow);
  std::mt19937 random(8);
  int64_t now = kNow;
  for (int i = 0; i < 20'000; ++i) {
    now += 3;
    afc.Add(WordName(Skewed(random, 5000)), 1, now);
    if (i % 100 == 0) {
      ASSERT_LE(afc.Card(now), 200U);
      ASSERT_EQ(All(afc, now).size(), afc.Card(now));
    }
  }
}

}  // namespace
}  // namespace sava::types
