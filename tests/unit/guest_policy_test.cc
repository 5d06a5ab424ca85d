// When one thread runs all loops, and when each its own.
#include "server/guest_policy.h"

#include <gtest/gtest.h>

namespace sava::server {
namespace {

using Verdict = GuestPolicy::Verdict;

// Threads whose time passes as a test says.
class GuestPolicyTest : public testing::Test {
 protected:
  static constexpr size_t kLoops = 2;

  // So long the threads are idle, or the first is at the log, for a share of the time, and execute
  // so many commands a millisecond; the verdicts on the way are carried out. True when the threads
  // changed.
  bool Pass(uint64_t micros, double idle, double log, double commands) {
    bool changed = false;
    for (const uint64_t end = at_.now + micros; at_.now < end;) {
      at_.now += kCycle;
      idle_ += idle * kCycle;
      log_ += log * kCycle;
      commands_ += commands * kCycle / 1000;
      changed |= Look();
    }
    return changed;
  }
  // The processor is taken away in the middle of a round.
  bool Lose(uint64_t micros) {
    at_.now += micros;
    return Look();
  }
  bool Look() {
    at_.idle = static_cast<uint64_t>(idle_);
    at_.log = static_cast<uint64_t>(log_);
    at_.commands = static_cast<uint64_t>(commands_);
    if (!policy_.Due(at_.now)) return false;
    const Verdict verdict = policy_.Judge(gathered_, at_, kLoops);
    if (verdict == Verdict::kStay) return false;
    EXPECT_EQ(gathered_, verdict == Verdict::kPart);
    gathered_ = verdict == Verdict::kGather;
    policy_.Watch(gathered_, at_);
    return true;
  }
  // Gathers, as the beginning does, and is busy until the threads part.
  void Part() {
    ASSERT_TRUE(Pass(kCycle, 1, 0, 0));
    ASSERT_TRUE(gathered_);
    ASSERT_TRUE(Pass(100'000, 0, 0, 10));
    ASSERT_FALSE(gathered_);
  }

  static constexpr uint64_t kCycle = 200;
  GuestPolicy policy_;
  GuestPolicy::Reading at_{.now = 1'000'000'000};
  bool gathered_ = false;
  double idle_ = 0;
  double log_ = 0;
  double commands_ = 0;
};

TEST_F(GuestPolicyTest, GatheredAtOnceAndForAsLongAsTheThreadRests) {
  EXPECT_TRUE(Pass(kCycle, 0, 0, 10));
  EXPECT_TRUE(gathered_);
  EXPECT_FALSE(Pass(2'000'000, 0.1, 0, 10)) << "it waits for events";
  EXPECT_FALSE(Pass(2'000'000, 0, 0.3, 10)) << "it waits for the disk";
}

TEST_F(GuestPolicyTest, AProcessorThatIsTakenAwayNowAndThenIsNoReason) {
  EXPECT_TRUE(Pass(kCycle, 0, 0, 10));
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(Lose(30'000));
    EXPECT_FALSE(Pass(10'000, 0.1, 0.5, 10));
  }
}

TEST_F(GuestPolicyTest, ThreadsThatExecuteMoreStayApartUntilThereIsLittleToDo) {
  Part();
  EXPECT_FALSE(Pass(5'000'000, 0.2, 0, 18)) << "of two threads, idle a tenth of the time each";
  EXPECT_TRUE(Pass(3'000'000, 1.2, 0, 9));
  EXPECT_TRUE(gathered_);
}

TEST_F(GuestPolicyTest, ThreadsThatExecuteNoMoreGatherAgainAndTryLessAndLessOften) {
  Part();
  uint64_t last = 0;
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(Pass(300'000, 0.1, 0, 10));
    EXPECT_TRUE(gathered_);
    const uint64_t since = at_.now;
    while (gathered_ && at_.now < since + 100'000'000) Pass(kCycle, 0, 0, 10);
    EXPECT_GE(at_.now - since, last + last / 2);
    EXPECT_LE(at_.now - since, GuestPolicy::kLongestPause + 1'000'000);
    last = at_.now - since;
  }
}

TEST_F(GuestPolicyTest, CountsThatBeginAnewDoNoHarm) {
  commands_ = 1e9;
  Part();
  commands_ = 0;  // CONFIG RESETSTAT
  EXPECT_TRUE(Pass(300'000, 0.1, 0, 20));
  EXPECT_TRUE(gathered_);
  for (int i = 0; i < 20'000 && gathered_; ++i) Pass(kCycle, 0, 0, 10);
  EXPECT_FALSE(gathered_) << "and is tried again";
  EXPECT_FALSE(Pass(1'000'000, 0, 0, 20));
  EXPECT_FALSE(gathered_);
}

TEST_F(GuestPolicyTest, WhenAnswersWaitForTheDiskAgainTheyGatherAtOnce) {
  Part();
  policy_.Forget();
  EXPECT_TRUE(Pass(kCycle, 0, 0, 10));
  EXPECT_TRUE(gathered_);
}

}  // namespace
}  // namespace sava::server
