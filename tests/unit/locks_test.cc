#include "engine/locks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace sava::engine {
namespace {

struct World {
  keyspace::Keyspace keyspace{2, 1, 1};
  journal::Journal journal{2};
  Locks a{&keyspace, &journal, 0};
  Locks b{&keyspace, &journal, 1};

  bool Free(size_t stripe) {
    keyspace::StripeLock& lock = keyspace.stripe(stripe).lock;
    if (!lock.TryLock()) return false;
    lock.Unlock();
    return true;
  }
};

TEST(Locks, ASetVisitsItsStripesInAscendingOrder) {
  LockSet set;
  EXPECT_TRUE(set.empty());
  for (const size_t stripe : {127, 3, 64, 63, 3}) set.Add(stripe);
  std::vector<size_t> seen;
  set.ForEach([&](size_t stripe) { seen.push_back(stripe); });
  EXPECT_EQ(seen, (std::vector<size_t>{3, 63, 64, 127}));
  EXPECT_EQ(set.first(), 3U);
  EXPECT_TRUE(set.many());
  EXPECT_EQ(set.stripes(), 4U);
}

TEST(Locks, OneStripeIsNotMany) {
  for (const size_t stripe : {0, 1, 63, 64, 127}) {
    LockSet set;
    set.Add(stripe);
    EXPECT_FALSE(set.many()) << stripe;
    EXPECT_FALSE(set.empty()) << stripe;
    EXPECT_EQ(set.first(), stripe);
    set.Add((stripe + 64) % 128);
    EXPECT_TRUE(set.many()) << stripe;
  }
}

TEST(Locks, ASingleStripeIsKeptAndSeveralAreGivenBack) {
  World world;
  world.a.BeginBatch();
  LockSet one;
  one.Add(5);
  ASSERT_TRUE(world.a.Lock(one));
  world.a.Unlock(one);
  EXPECT_TRUE(world.a.holds(5));
  EXPECT_FALSE(world.Free(5));
  LockSet two;
  two.Add(5);
  two.Add(9);
  ASSERT_TRUE(world.a.Lock(two));
  EXPECT_FALSE(world.Free(5));
  EXPECT_FALSE(world.Free(9));
  world.a.Unlock(two);
  EXPECT_EQ(world.a.held(), -1);
  EXPECT_TRUE(world.Free(5));
  EXPECT_TRUE(world.Free(9));
  world.a.EndBatch();
}

TEST(Locks, AStripeThatAnotherThreadHoldsIsNotWaitedForLong) {
  World world;
  const StripeGuard guard(world.b, 5);
  LockSet one;
  one.Add(5);
  world.a.BeginBatch();
  EXPECT_FALSE(world.a.Lock(one));
  EXPECT_EQ(world.a.held(), -1);
  world.a.EndBatch();
}

TEST(Locks, AGuardGivesBackWhatItTook) {
  World world;
  {
    const StripeGuard guard(world.a, 7);
    EXPECT_TRUE(guard.locked());
    EXPECT_FALSE(world.Free(7));
    const StripeGuard other(world.b, 7, StripeGuard::How::kTry);
    EXPECT_FALSE(other.locked());
  }
  EXPECT_TRUE(world.Free(7));
}

TEST(Locks, TicketsAreHandedOnByStripes) {
  World world;
  {
    const StripeGuard guard(world.a, 7);
    world.a.set_seen(41);
  }
  { const StripeGuard guard(world.b, 8); }
  EXPECT_EQ(world.b.seen(), 0U);
  { const StripeGuard guard(world.b, 7); }
  EXPECT_EQ(world.b.seen(), 41U);
}

TEST(Locks, ASetGrowsByStripesInAnyOrder) {
  for (const bool empty : {true, false}) {
    World world;
    world.a.BeginBatch();
    LockSet set;
    if (!empty) set.Add(50);
    ASSERT_TRUE(world.a.Lock(set));
    const auto never = [] { return false; };
    for (const size_t stripe : {70, 3}) {
      EXPECT_EQ(world.a.Extend(&set, stripe, never), Locks::Extended::kYes);
      EXPECT_FALSE(world.Free(stripe));
    }
    EXPECT_EQ(set.stripes(), empty ? 2U : 3U);
    EXPECT_EQ(world.Free(50), empty);
    world.a.Unlock(set);
    world.a.EndBatch();
    for (const size_t stripe : {3, 50, 70}) EXPECT_TRUE(world.Free(stripe)) << stripe;
  }
}

// One thread holds the higher of two stripes and asks for the lower; another has the lower and
// waits for the higher.
TEST(Locks, WhoTakesSeveralInOrderGivesWayToWhoAsksForOneMore) {
  World world;
  std::atomic<bool> got{false};
  world.a.BeginBatch();
  LockSet high;
  high.Add(9);
  ASSERT_TRUE(world.a.Lock(high));
  std::thread other([&] {
    world.b.BeginBatch();
    LockSet both;
    both.Add(5);
    both.Add(9);
    EXPECT_TRUE(world.b.Lock(both));
    got = true;
    world.b.Unlock(both);
    world.b.EndBatch();
  });
  while (world.Free(5)) std::this_thread::yield();
  EXPECT_EQ(world.a.Extend(&high, 5, [] { return false; }), Locks::Extended::kYes);
  EXPECT_FALSE(got);
  world.a.Unlock(high);
  world.a.EndBatch();
  other.join();
  EXPECT_TRUE(got);
}

TEST(Locks, OnlyOneThreadWaitsForOneMore) {
  World world;
  world.keyspace.stripe(5).lock.Lock();
  world.a.BeginBatch();
  LockSet set;
  set.Add(9);
  ASSERT_TRUE(world.a.Lock(set));
  ASSERT_TRUE(world.keyspace.gate().BeginExtending());
  EXPECT_EQ(world.a.Extend(&set, 5, [] { return false; }), Locks::Extended::kTaken);
  world.keyspace.gate().EndExtending();
  EXPECT_EQ(world.a.Extend(&set, 5, [] { return true; }), Locks::Extended::kStopped);
  EXPECT_FALSE(world.keyspace.gate().extending());
  EXPECT_EQ(set.stripes(), 1U);
  world.keyspace.stripe(5).lock.Unlock();
  world.a.Unlock(set);
  world.a.EndBatch();
}

TEST(Locks, WithTheGateClosedNothingIsLocked) {
  World world;
  const GateGuard gate(world.a);
  EXPECT_TRUE(world.a.exclusive());
  const StripeGuard guard(world.a, 7);
  EXPECT_TRUE(guard.locked());
  EXPECT_TRUE(world.Free(7));
  LockSet all;
  all.AddAll();
  {
    const LockSetGuard set(world.a, all);
    const GateGuard again(world.a);
  }
  EXPECT_TRUE(world.a.exclusive());
}

TEST(Locks, MoreThanSixtyFourStripesCloseTheGate) {
  World world;
  LockSet set;
  for (size_t i = 0; i < 65; ++i) set.Add(i);
  world.a.BeginBatch();
  ASSERT_TRUE(world.a.Lock(set));
  EXPECT_TRUE(world.a.exclusive());
  world.a.Unlock(set);
  EXPECT_FALSE(world.a.exclusive());
  world.a.EndBatch();
  {
    const LockSetGuard guard(world.a, set);
    EXPECT_TRUE(world.a.exclusive());
  }
  EXPECT_FALSE(world.a.exclusive());
}

}  // namespace
}  // namespace sava::engine
