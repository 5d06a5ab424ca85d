// The rate limit algorithms on a clock that the test moves: the document's trace, slow models of
// each algorithm, the strings they are kept as, and numbers at the edge of what is allowed.
#include "types/counters/rate_limit.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "../../fuzz/rate_limit_property.h"

namespace sava::types {
namespace {

constexpr int64_t kNow = 1'700'000'000'000;
__extension__ using Int128 = __int128;

RateRule Rule(RateAlgorithm algorithm, int64_t limit, int64_t period_ms, int64_t capacity = 0) {
  return {algorithm, limit, period_ms, capacity == 0 ? limit : capacity};
}

RateState Fresh(const RateRule& rule, int64_t now_ms) {
  RateState state;
  FreshBucket(rule, now_ms, &state);
  return state;
}

std::string Text(RateAlgorithm algorithm, const RateState& state) {
  char text[kBucketText];
  return std::string(text, FormatBucket(algorithm, state, text));
}

bool Parses(RateAlgorithm algorithm, std::string_view text) {
  RateState state;
  return ParseBucket(algorithm, text, &state);
}

int64_t Clock(int hours, int minutes, int seconds) {
  return kNow + ((hours * 60 + minutes) * 60 + seconds) * int64_t{1000};
}

TEST(Window, GivesTheDocumentsTrace) {
  const RateRule rule = Rule(RateAlgorithm::kWindow, 3, 60'000);
  RateState bucket;
  bucket.time = Clock(11, 1, 5);
  bucket.tokens = 3;
  struct Step {
    int64_t now;
    bool allowed;
    int64_t reset;
    int64_t tokens;
  };
  const Step steps[] = {
      {Clock(11, 1, 20), true, Clock(11, 1, 5), 2}, {Clock(11, 1, 25), true, Clock(11, 1, 5), 1},
      {Clock(11, 1, 30), true, Clock(11, 1, 5), 0}, {Clock(11, 1, 35), false, Clock(11, 1, 5), 0},
      {Clock(11, 3, 0), true, Clock(11, 3, 0), 2},
  };
  for (const Step& step : steps) {
    EXPECT_EQ(TakeTokens(rule, 1, step.now, &bucket).allowed, step.allowed) << step.now;
    EXPECT_EQ(bucket.time, step.reset);
    EXPECT_EQ(bucket.tokens, step.tokens);
  }
}

TEST(Window, RefillsOnlyAfterMoreThanThePeriod) {
  const RateRule rule = Rule(RateAlgorithm::kWindow, 1, 1000);
  RateState bucket = Fresh(rule, kNow);
  EXPECT_TRUE(TakeTokens(rule, 1, kNow, &bucket).allowed);
  const RateAnswer refused = TakeTokens(rule, 1, kNow + 1000, &bucket);
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.retry_ms, 1);
  EXPECT_TRUE(TakeTokens(rule, 1, kNow + 1001, &bucket).allowed);
  EXPECT_EQ(bucket.time, kNow + 1001);
}

TEST(Window, TellsWhatNeverFits) {
  const RateRule rule = Rule(RateAlgorithm::kWindow, 3, 1000);
  RateState bucket = Fresh(rule, kNow);
  const RateAnswer answer = TakeTokens(rule, 4, kNow, &bucket);
  EXPECT_FALSE(answer.allowed);
  EXPECT_EQ(answer.retry_ms, -1);
  EXPECT_EQ(answer.remaining, 3);
}

TEST(Refund, NeverGivesMoreThanWasTaken) {
  for (const auto algorithm : {RateAlgorithm::kWindow, RateAlgorithm::kToken, RateAlgorithm::kGcra,
                               RateAlgorithm::kSliding}) {
    const RateRule rule = Rule(algorithm, 10, 1000);
    RateState bucket = Fresh(rule, kNow);
    EXPECT_FALSE(RefundTokens(rule, 1, kNow, &bucket).allowed) << RateAlgorithmName(algorithm);
    TakeTokens(rule, 4, kNow, &bucket);
    EXPECT_EQ(RefundTokens(rule, 1, kNow, &bucket).remaining, 7) << RateAlgorithmName(algorithm);
    EXPECT_EQ(RefundTokens(rule, 100, kNow, &bucket).remaining, 10) << RateAlgorithmName(algorithm);
    EXPECT_TRUE(TakeTokens(rule, 10, kNow, &bucket).allowed) << RateAlgorithmName(algorithm);
    EXPECT_FALSE(TakeTokens(rule, 1, kNow, &bucket).allowed) << RateAlgorithmName(algorithm);
  }
}

// ---- against models ----

struct Step {
  int64_t wait_ms;
  int64_t cost;
};

std::vector<Step> Steps(int64_t period, int64_t capacity) {
  const auto step = rc::gen::build<Step>(
      rc::gen::set(&Step::wait_ms,
                   rc::gen::oneOf(rc::gen::just<int64_t>(0), rc::gen::inRange<int64_t>(0, 4),
                                  rc::gen::inRange<int64_t>(0, period + period / 8 + 3))),
      rc::gen::set(&Step::cost, rc::gen::oneOf(rc::gen::just<int64_t>(1),
                                               rc::gen::inRange<int64_t>(1, capacity + 2))));
  return *rc::gen::container<std::vector<Step>>(step);
}

RateRule AnyRule(RateAlgorithm algorithm) {
  const auto limit = *rc::gen::inRange<int64_t>(1, 100);
  const auto period =
      *rc::gen::oneOf(rc::gen::inRange<int64_t>(1, 50), rc::gen::inRange<int64_t>(1, 10'000));
  const bool burst = TakesBurst(algorithm) && *rc::gen::arbitrary<bool>();
  return Rule(algorithm, limit, period, burst ? *rc::gen::inRange<int64_t>(1, 200) : limit);
}

// What every algorithm must keep: a refusal changes nothing and names the very millisecond at which
// the same request fits; text and back is the same; after its time to live the bucket is whole.
void CheckAnswer(const RateRule& rule, const Step& step, int64_t now, const RateState& before,
                 const RateAnswer& answer, const RateState& after) {
  RC_ASSERT(answer.limit == rule.capacity);
  if (!answer.allowed) {
    RC_ASSERT(Text(rule.algorithm, before) == Text(rule.algorithm, after));
    if (step.cost > rule.capacity) {
      RC_ASSERT(answer.retry_ms == -1);
    } else {
      RC_ASSERT(answer.retry_ms > 0);
      RC_ASSERT(PeekTokens(rule, step.cost, now + answer.retry_ms, after).allowed);
      RC_ASSERT(!PeekTokens(rule, step.cost, now + answer.retry_ms - 1, after).allowed);
    }
  } else {
    RC_ASSERT(answer.retry_ms == 0);
    RateState again;
    RC_ASSERT(ParseBucket(rule.algorithm, Text(rule.algorithm, after), &again));
    RC_ASSERT(Text(rule.algorithm, again) == Text(rule.algorithm, after));
    RC_ASSERT(RateTtl(rule, after, now) == answer.reset_ms);
  }
  const RateAnswer later = PeekTokens(rule, 1, now + answer.reset_ms, after);
  RC_ASSERT(later.remaining == rule.capacity);
}

RC_GTEST_PROP(Window, IsTheDocumentsAlgorithm, ()) {
  const RateRule rule = AnyRule(RateAlgorithm::kWindow);
  RateState state = Fresh(rule, kNow);
  int64_t reset = kNow;
  int64_t tokens = rule.limit;
  int64_t now = kNow;
  for (const Step& step : Steps(rule.period_ms, rule.limit)) {
    now += step.wait_ms;
    const RateState before = state;
    const RateAnswer answer = TakeTokens(rule, step.cost, now, &state);
    CheckAnswer(rule, step, now, before, answer, state);
    const bool over = now - reset > rule.period_ms;
    const bool allowed = step.cost <= (over ? rule.limit : tokens);
    if (allowed && over) {
      reset = now;
      tokens = rule.limit;
    }
    if (allowed) tokens -= step.cost;
    RC_ASSERT(answer.allowed == allowed);
    if (allowed) RC_ASSERT(answer.remaining == tokens && state.time == reset);
  }
}

// The model counts in fractions of a token that divide a period exactly. What is cut off at the
// ninth decimal may make a request wait, never let one through.
RC_GTEST_PROP(Token, NeverExceedsAnExactBucketAndHardlyLags, ()) {
  const RateRule rule = AnyRule(RateAlgorithm::kToken);
  RateState state = Fresh(rule, kNow);
  const Int128 token = rule.period_ms;
  const Int128 full = rule.capacity * token;
  Int128 level = full;
  int64_t now = kNow;
  int64_t takes = 0;
  for (const Step& step : Steps(rule.period_ms, rule.capacity)) {
    now += step.wait_ms;
    level = std::min(full, level + Int128{step.wait_ms} * rule.limit);
    const RateState before = state;
    const RateAnswer answer = TakeTokens(rule, step.cost, now, &state);
    CheckAnswer(rule, step, now, before, answer, state);
    if (answer.allowed) {
      RC_ASSERT(step.cost * token <= level);
      level -= step.cost * token;
      ++takes;
    } else {
      RC_ASSERT(static_cast<double>(level) <
                static_cast<double>(step.cost * token) +
                    1e-8 * static_cast<double>(takes + 1) * static_cast<double>(token));
    }
  }
}

// The same thing seen as a leaking bucket: a backlog that time works off.
RC_GTEST_PROP(Gcra, IsALeakingBucket, ()) {
  const RateRule rule = AnyRule(RateAlgorithm::kGcra);
  RateState state = Fresh(rule, kNow);
  const int64_t emission = rule.period_ms * 1'000'000 / rule.limit;
  int64_t backlog = 0;
  int64_t now = kNow;
  for (const Step& step : Steps(rule.period_ms, rule.capacity)) {
    now += step.wait_ms;
    backlog = std::max<int64_t>(0, backlog - step.wait_ms * 1'000'000);
    const RateState before = state;
    const RateAnswer answer = TakeTokens(rule, step.cost, now, &state);
    CheckAnswer(rule, step, now, before, answer, state);
    const bool allowed = backlog + step.cost * emission <= rule.capacity * emission;
    RC_ASSERT(answer.allowed == allowed);
    if (allowed) backlog += step.cost * emission;
    RC_ASSERT(answer.remaining == (rule.capacity * emission - backlog) / emission);
  }
}

// A log of everything taken. With few entries the bucket is exact; with many it may count a take up
// to a sixteenth of the period (and a millisecond) too long, never too short.
RC_GTEST_PROP(Sliding, KeepsEverySpanOfAPeriodWithinTheLimit, ()) {
  const RateRule rule = AnyRule(RateAlgorithm::kSliding);
  RateState state = Fresh(rule, kNow);
  std::deque<std::pair<int64_t, int64_t>> log;
  const auto taken_since = [&](int64_t since) {
    int64_t sum = 0;
    for (const auto& [ms, count] : log) sum += ms > since ? count : 0;
    return sum;
  };
  const bool exact = rule.limit <= RateState::kSlidingEntries;
  const int64_t late = exact ? 0 : rule.period_ms / 16 + 1;
  int64_t now = kNow;
  for (const Step& step : Steps(rule.period_ms / 8, exact ? rule.limit : 2)) {
    now += step.wait_ms;
    const RateState before = state;
    const RateAnswer answer = TakeTokens(rule, step.cost, now, &state);
    CheckAnswer(rule, step, now, before, answer, state);
    if (answer.allowed) {
      RC_ASSERT(taken_since(now - rule.period_ms) + step.cost <= rule.limit);
      log.emplace_back(now, step.cost);
    } else {
      RC_ASSERT(taken_since(now - rule.period_ms - late) + step.cost > rule.limit);
    }
    while (!log.empty() && log.front().first < now - 3 * rule.period_ms) log.pop_front();
  }
}

TEST(Sliding, ManyTakesStayBoundedInSpace) {
  const RateRule rule = Rule(RateAlgorithm::kSliding, 1'000'000, 10'000);
  RateState state = Fresh(rule, kNow);
  for (int64_t i = 0; i < 100'000; ++i) {
    ASSERT_TRUE(TakeTokens(rule, 1, kNow + i, &state).allowed);
    ASSERT_LE(state.entries, RateState::kSlidingEntries);
  }
  const int64_t counted = rule.limit - PeekTokens(rule, 1, kNow + 99'999, state).remaining;
  EXPECT_GE(counted, 10'000);
  EXPECT_LE(counted, 10'000 + 10'000 / 16 + 2);
}

// ---- texts ----

TEST(BucketText, IsWhatTheDocsSay) {
  RateState state;
  state.time = kNow;
  state.tokens = 2;
  EXPECT_EQ(Text(RateAlgorithm::kWindow, state), "1700000000000 2");
  EXPECT_EQ(Text(RateAlgorithm::kToken, state), "1700000000000 2");
  state.fraction = 50'000'000;
  EXPECT_EQ(Text(RateAlgorithm::kToken, state), "1700000000000 2.05");
  EXPECT_EQ(Text(RateAlgorithm::kGcra, state), "1700000000000");
  state.entries = 2;
  state.taken[0] = {kNow, 3};
  state.taken[1] = {kNow + 20, 1};
  EXPECT_EQ(Text(RateAlgorithm::kSliding, state), "1700000000000 3 20 1");
}

TEST(BucketText, EverythingElseIsRefused) {
  for (const char* bad : {"",
                          " ",
                          "1",
                          "1 ",
                          " 1 2",
                          "1  2",
                          "1 2 ",
                          "1 2 3",
                          "a 2",
                          "1 b",
                          "-1 2",
                          "1 -2",
                          "01 2",
                          "1 02",
                          "1 2.5",
                          "1.5 2",
                          "5000000000001 1",
                          "1 1000000000000001",
                          "99999999999999999999 1",
                          "1 2\n"}) {
    EXPECT_FALSE(Parses(RateAlgorithm::kWindow, bad)) << '"' << bad << '"';
  }
  for (const char* bad : {"1 2.", "1 .5", "1 2.x", "1 2.1234567890", "1 2.5 ", "1 2.5.5", "1"}) {
    EXPECT_FALSE(Parses(RateAlgorithm::kToken, bad)) << '"' << bad << '"';
  }
  for (const char* bad : {"", "1", "1 0", "1 2 3", "1 2 0 3", "1 2 3 4 ", "1 2  3 4",
                          "5000000000000 1 1 1", "1 1000000000000000 1 1"}) {
    EXPECT_FALSE(Parses(RateAlgorithm::kSliding, bad)) << '"' << bad << '"';
  }
  for (const char* bad : {"", "x", "1.5", "9223372036854775808", "1 2"}) {
    EXPECT_FALSE(Parses(RateAlgorithm::kGcra, bad)) << '"' << bad << '"';
  }
  EXPECT_TRUE(Parses(RateAlgorithm::kWindow, "0 0"));
  EXPECT_TRUE(Parses(RateAlgorithm::kToken, "1700000000000 7.000000001"));
  EXPECT_TRUE(Parses(RateAlgorithm::kGcra, "-5"));
  std::string many = "1 1";
  for (int i = 1; i < 32; ++i) many += " 1 1";
  EXPECT_TRUE(Parses(RateAlgorithm::kSliding, many));
  EXPECT_FALSE(Parses(RateAlgorithm::kSliding, many + " 1 1"));
}

TEST(BucketText, TheFuzzCorpusHoldsItsProperty) {
  const std::filesystem::path corpus =
      std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/rate_limit";
  int replayed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)),
                            std::istreambuf_iterator<char>());
    EXPECT_EQ(CheckBucketText(bytes), "") << entry.path();
    ++replayed;
  }
  EXPECT_GE(replayed, 10);
}

// ---- the edge ----

TEST(RateRule, AbsurdOnesAreRefused) {
  EXPECT_EQ(CheckRule(Rule(RateAlgorithm::kWindow, 1, 1)), "");
  EXPECT_EQ(CheckRule(Rule(RateAlgorithm::kWindow, kMaxTokens, kMaxPeriodMs)), "");
  EXPECT_NE(CheckRule(Rule(RateAlgorithm::kWindow, -1, 1)), "");
  EXPECT_NE(CheckRule(Rule(RateAlgorithm::kWindow, kMaxTokens + 1, 1)), "");
  EXPECT_NE(CheckRule(Rule(RateAlgorithm::kWindow, 1, kMaxPeriodMs + 1)), "");
  EXPECT_NE(CheckRule(Rule(RateAlgorithm::kWindow, 1, 0)), "");
  EXPECT_NE(CheckRule(Rule(RateAlgorithm::kWindow, 3, 1, 4)), "");
  EXPECT_NE(CheckRule(Rule(RateAlgorithm::kGcra, kMaxTokens, 1)), "");
  EXPECT_NE(CheckRule(Rule(RateAlgorithm::kGcra, 1, kMaxPeriodMs, kMaxTokens)), "");
  EXPECT_NE(CheckRule(Rule(RateAlgorithm::kToken, 1, kMaxPeriodMs, kMaxTokens)), "");
}

TEST(RateRule, TheLargestWorkWithoutOverflow) {
  const RateRule rules[] = {
      Rule(RateAlgorithm::kWindow, kMaxTokens, kMaxPeriodMs),
      Rule(RateAlgorithm::kToken, kMaxTokens, kMaxPeriodMs),
      Rule(RateAlgorithm::kToken, 1, kMaxPeriodMs, 4),
      Rule(RateAlgorithm::kToken, kMaxTokens, 1),
      Rule(RateAlgorithm::kGcra, 1, kMaxPeriodMs, 4),
      Rule(RateAlgorithm::kGcra, kMaxPeriodMs, kMaxPeriodMs),
      Rule(RateAlgorithm::kSliding, kMaxTokens, kMaxPeriodMs),
  };
  for (const RateRule& rule : rules) {
    ASSERT_EQ(CheckRule(rule), "");
    for (const int64_t now : {int64_t{0}, kNow, kMaxNowMs}) {
      RateState state = Fresh(rule, now);
      const RateAnswer all = TakeTokens(rule, rule.capacity, now, &state);
      EXPECT_TRUE(all.allowed);
      EXPECT_EQ(all.remaining, 0);
      EXPECT_GT(all.reset_ms, 0);
      const RateAnswer none = TakeTokens(rule, rule.capacity, now, &state);
      EXPECT_FALSE(none.allowed);
      EXPECT_GT(none.retry_ms, 0);
      EXPECT_EQ(TakeTokens(rule, kMaxTokens, now, &state).allowed, false);
      EXPECT_EQ(RefundTokens(rule, kMaxTokens, now, &state).remaining, rule.capacity);
    }
  }
}

TEST(Token, ALongWaitAtAHighRateFillsTheBucketAndNoMore) {
  const RateRule rule = Rule(RateAlgorithm::kToken, kMaxTokens, 1);
  RateState state;
  ASSERT_TRUE(ParseBucket(rule.algorithm, "1000 999999999999999", &state));
  const RateAnswer answer = TakeTokens(rule, 1, 10'223, &state);
  EXPECT_TRUE(answer.allowed);
  EXPECT_EQ(answer.remaining, kMaxTokens - 1);
  EXPECT_EQ(answer.reset_ms, 1);
  EXPECT_EQ(Text(rule.algorithm, state), "10223 999999999999999");
}

void ExpectNoNegativeNumber(const RateAnswer& answer, const std::string& where) {
  EXPECT_GE(answer.remaining, 0) << where;
  EXPECT_GE(answer.retry_ms, -1) << where;
  EXPECT_GE(answer.reset_ms, 0) << where;
}

// Every operation on this bucket, at times from the first to the last.
void CheckBucketAtTheEdge(const RateRule& rule, const std::string& text) {
  RateState stored;
  if (!ParseBucket(rule.algorithm, text, &stored)) return;
  for (const int64_t now : {int64_t{0}, int64_t{10'223}, kNow, kMaxNowMs}) {
    for (const int64_t cost : {int64_t{0}, int64_t{1}, rule.capacity, kMaxTokens}) {
      const std::string where =
          std::string(RateAlgorithmName(rule.algorithm)) + " " + std::to_string(rule.limit) + " " +
          std::to_string(rule.period_ms) + " burst " + std::to_string(rule.capacity) + " cost " +
          std::to_string(cost) + " now " + std::to_string(now) + " on " + text;
      ExpectNoNegativeNumber(PeekTokens(rule, cost, now, stored), where);
      RateState taken = stored;
      const RateAnswer answer = TakeTokens(rule, cost, now, &taken);
      ExpectNoNegativeNumber(answer, where);
      EXPECT_TRUE(cost > 0 || answer.allowed) << where;
      RateState refunded = stored;
      ExpectNoNegativeNumber(RefundTokens(rule, cost, now, &refunded), where);
      for (const RateState& state : {taken, refunded}) {
        EXPECT_GE(RateTtl(rule, state, now), 0) << where;
        const bool gone = rule.algorithm == RateAlgorithm::kSliding && state.entries == 0;
        EXPECT_TRUE(gone || Parses(rule.algorithm, Text(rule.algorithm, state))) << where;
      }
    }
  }
}

TEST(RateRule, NothingIsNegativeAtTheEdge) {
  const int64_t counts[] = {1, 2, 1'000'003, kMaxTokens - 1, kMaxTokens};
  const int64_t periods[] = {1, 2, 999'999'999, 1'000'000'000, kMaxPeriodMs};
  const char* const texts[] = {
      "0 0",
      "1000 999999999999999",
      "0 1000000000000000",
      "1000 999999999999998.999999999",
      "5000000000000 0.000000001",
      "5000000000000 1000000000000000",
      "0 999999999999999 5000000000000 1",
      "0 1 1 1 1699999999998 1",
      "-9223372036854775808",
      "-1",
      "1700000000000000000",
      "9223372036854775807",
  };
  int rules = 0;
  for (const auto algorithm : {RateAlgorithm::kWindow, RateAlgorithm::kToken, RateAlgorithm::kGcra,
                               RateAlgorithm::kSliding}) {
    for (const int64_t limit : counts) {
      for (const int64_t period : periods) {
        for (const int64_t burst : counts) {
          const RateRule rule = Rule(algorithm, limit, period, burst);
          if (!CheckRule(rule).empty()) continue;
          ++rules;
          for (const char* text : texts) CheckBucketAtTheEdge(rule, text);
        }
      }
    }
  }
  EXPECT_GE(rules, 100);
}

TEST(Gcra, CostZeroIsAllowedBeyondASmallerBurst) {
  RateState state = Fresh(Rule(RateAlgorithm::kGcra, 10, 10'000), kNow);
  TakeTokens(Rule(RateAlgorithm::kGcra, 10, 10'000), 10, kNow, &state);
  const RateRule smaller = Rule(RateAlgorithm::kGcra, 10, 10'000, 2);
  const RateAnswer answer = PeekTokens(smaller, 0, kNow, state);
  EXPECT_TRUE(answer.allowed);
  EXPECT_EQ(answer.remaining, 0);
  EXPECT_EQ(answer.retry_ms, 0);
  EXPECT_EQ(answer.reset_ms, 10'000);
  EXPECT_FALSE(PeekTokens(smaller, 1, kNow, state).allowed);
}

TEST(Gcra, AnyStoredNumberIsTaken) {
  const RateRule rule = Rule(RateAlgorithm::kGcra, 10, 1000);
  for (const int64_t time : {INT64_MIN, int64_t{-1}, int64_t{12345}, INT64_MAX}) {
    RateState state;
    state.time = time;
    const RateAnswer answer = TakeTokens(rule, 1, kNow, &state);
    EXPECT_EQ(answer.allowed, time < INT64_MAX) << time;
    EXPECT_EQ(answer.retry_ms > 0, !answer.allowed) << time;
  }
}

TEST(Clock, ThatGoesBackTakesNothingAwayAndGivesNothing) {
  // GCRA keeps no more than a time: seen from an earlier one it is further away.
  for (const auto algorithm :
       {RateAlgorithm::kWindow, RateAlgorithm::kToken, RateAlgorithm::kSliding}) {
    const RateRule rule = Rule(algorithm, 2, 1000);
    RateState state = Fresh(rule, kNow);
    EXPECT_TRUE(TakeTokens(rule, 1, kNow, &state).allowed);
    EXPECT_TRUE(TakeTokens(rule, 1, kNow - 5000, &state).allowed) << RateAlgorithmName(algorithm);
    EXPECT_FALSE(TakeTokens(rule, 1, kNow - 5000, &state).allowed) << RateAlgorithmName(algorithm);
    EXPECT_FALSE(TakeTokens(rule, 1, kNow, &state).allowed) << RateAlgorithmName(algorithm);
    EXPECT_TRUE(TakeTokens(rule, 2, kNow + 1001, &state).allowed) << RateAlgorithmName(algorithm);
  }
}

// ---- CL.THROTTLE ----

struct Cell {
  int64_t tat = kNow * 1'000'000;
  int64_t now_ms = kNow;

  std::string Ask(int64_t burst, int64_t count, int64_t period, int64_t quantity = 1) {
    const CellAnswer answer =
        CellThrottle({burst, count, period, quantity}, now_ms * 1'000'000, tat);
    if (!answer.error.empty()) return std::string(answer.error);
    if (!answer.limited) tat = answer.new_tat;
    return std::to_string(answer.limited) + " " + std::to_string(answer.limit) + " " +
           std::to_string(answer.remaining) + " " + std::to_string(answer.retry_s) + " " +
           std::to_string(answer.reset_s);
  }
};

TEST(CellThrottle, AnswersAsRedisCellDoes) {
  Cell cell;
  EXPECT_EQ(cell.Ask(4, 1, 10, 6), "1 5 5 -1 0");
  EXPECT_EQ(cell.Ask(4, 1, 10), "0 5 4 -1 10");
  EXPECT_EQ(cell.Ask(4, 1, 10, 0), "0 5 4 -1 10");
  EXPECT_EQ(cell.Ask(4, 1, 10, 4), "0 5 0 -1 50");
  EXPECT_EQ(cell.Ask(4, 1, 10), "1 5 0 10 50");
  cell.now_ms += 1;
  EXPECT_EQ(cell.Ask(4, 1, 10), "1 5 0 10 50") << "parts of a second round up";
  cell.now_ms += 9999;
  EXPECT_EQ(cell.Ask(4, 1, 10), "0 5 0 -1 50");
  EXPECT_EQ(cell.Ask(4, 1, 10, -2), "0 5 2 -1 30") << "a negative quantity gives back";
  EXPECT_EQ(cell.Ask(-1, 1, 10), "1 0 0 -1 30");
}

TEST(CellThrottle, CountsUpTo64BitsOfNanoseconds) {
  EXPECT_EQ(Cell{}.Ask(100'000'000, 1, 60), "0 100000001 100000000 -1 60");
  EXPECT_EQ(Cell{}.Ask(153'722'866, 1, 60), "0 153722867 153722866 -1 60");
  EXPECT_EQ(Cell{}.Ask(153'722'867, 1, 60), "ERR value is out of range");
  EXPECT_EQ(Cell{}.Ask(0, 2, 9'223'372'036), "0 1 0 -1 4611686018");
  // The tolerance fits, the time that would have to be kept does not.
  Cell cell;
  EXPECT_EQ(cell.Ask(0, 1, 9'223'372'036), "ERR value is out of range");
  EXPECT_EQ(cell.Ask(100'000'000, 1, 60, 100'000'001), "0 100000001 0 -1 6000000060");
  EXPECT_EQ(cell.Ask(153'722'866, 1, 60, 50'000'000), "ERR value is out of range");
  EXPECT_EQ(cell.Ask(100'000'000, 1, 60), "1 100000001 0 60 6000000060");
}

TEST(CellThrottle, LimitedOnATimeInThePastCountsFromIt) {
  Cell cell;
  cell.tat = 12345;
  EXPECT_EQ(cell.Ask(4, 1, 10, 6), "1 5 170000004 -1 -1699999999");
  EXPECT_EQ(cell.tat, 12345);
  cell.tat = (kNow - 2500) * 1'000'000;
  EXPECT_EQ(cell.Ask(4, 1, 10, 6), "1 5 5 -1 -2");
  EXPECT_EQ(cell.Ask(4, 1, 10, 5), "0 5 0 -1 50") << "what is allowed counts from now";
}

TEST(CellThrottle, RefusesWhatCannotBeCounted) {
  Cell cell;
  const std::string zero = "Cell error: Store error: Zero rates are not supported";
  EXPECT_EQ(cell.Ask(1, 0, 60), zero);
  EXPECT_EQ(cell.Ask(1, 1, 0), zero);
  EXPECT_EQ(cell.Ask(1, 10'000'000'000, 1), zero);
  EXPECT_EQ(cell.Ask(1, 1, INT64_MAX), "ERR value is out of range");
  EXPECT_EQ(cell.Ask(1, 1, INT64_MIN), "ERR value is out of range");
  EXPECT_EQ(cell.Ask(INT64_MAX, 1, 60), "ERR value is out of range");
  EXPECT_EQ(cell.Ask(INT64_MAX - 1, 1, 60), "ERR value is out of range");
  EXPECT_EQ(cell.Ask(1, 1, 9'223'372'037), "ERR value is out of range");
  EXPECT_EQ(cell.Ask(1, 1, 60, INT64_MAX), "1 2 2 -1 0");
  EXPECT_EQ(cell.Ask(1, 1, 60, INT64_MIN),
            "Cell error: Store error: Error while setting key expire");
}

}  // namespace
}  // namespace sava::types
