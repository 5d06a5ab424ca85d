#include "engine/wait_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace sava::engine {
namespace {

using Clients = std::vector<Client*>;

struct Queue {
  Queue() {
    for (uint64_t i = 0; i < 3; ++i) clients[i].id = i + 1;
  }
  WaitQueue waits;
  Client clients[3];
  Client& a = clients[0];
  Client& b = clients[1];
  Client& c = clients[2];
};

TEST(WaitQueue, ParkedClientsGoOnInTheNextRoundInTheirOrder) {
  Queue queue;
  queue.waits.Add(queue.b, kClientParked);
  queue.waits.Add(queue.a, kClientParked);
  Client* const first[] = {&queue.c};
  queue.waits.YieldFirst(first);
  EXPECT_TRUE(queue.a.waiting() && queue.b.waiting() && queue.c.waiting());
  EXPECT_EQ(queue.waits.NextResume(1000, 0), 0) << "one waits for nothing but the next round";
  queue.waits.Resume(1000, 0);
  EXPECT_EQ(queue.waits.TakeResumed(), (Clients{&queue.c, &queue.b, &queue.a}));
  EXPECT_FALSE(queue.a.waiting() || queue.b.waiting() || queue.c.waiting());
  EXPECT_FALSE(queue.waits.NeedsResume(1000));
}

TEST(WaitQueue, APausedClientGoesOnWhenThePauseEnds) {
  Queue queue;
  queue.waits.Add(queue.a, kClientPaused);
  queue.waits.Resume(1000, 1500);
  EXPECT_TRUE(queue.waits.TakeResumed().empty());
  EXPECT_EQ(queue.waits.NextResume(1000, 1500), 1500);
  queue.waits.Resume(1500, 1500);
  EXPECT_EQ(queue.waits.TakeResumed(), Clients{&queue.a});
}

TEST(WaitQueue, AnAnswerThatDoesNotComeIsGivenAtTheDeadline) {
  Queue queue;
  const uint64_t token = queue.a.wait.token;
  queue.waits.AwaitAnswer(queue.a, 1500, [](Client& client) { client.out.Append("late"); });
  EXPECT_NE(queue.a.wait.token, token);
  EXPECT_EQ(queue.waits.NextResume(1000, 0), 1500);
  queue.waits.Resume(1499, 0);
  EXPECT_TRUE(queue.a.blocked());
  EXPECT_TRUE(queue.a.out.empty());
  queue.waits.Resume(1500, 0);
  EXPECT_EQ(queue.a.out.Since(0), "late");
  EXPECT_EQ(queue.waits.TakeResumed(), Clients{&queue.a});
}

TEST(WaitQueue, AClientThatSomebodyUnblockedGoesOnAtOnce) {
  Queue queue;
  queue.waits.AwaitAnswer(queue.a, 0, nullptr);
  EXPECT_EQ(queue.waits.NextResume(1000, 0), INT64_MAX);
  queue.a.set(kClientBlocked, false);
  EXPECT_EQ(queue.waits.NextResume(1000, 0), 0);
  queue.waits.Resume(1000, 0);
  EXPECT_EQ(queue.waits.TakeResumed(), Clients{&queue.a});
}

TEST(WaitQueue, TheNearestAlarmCounts) {
  Queue queue;
  queue.waits.SetAlarm(queue.a, 3000);
  queue.waits.SetAlarm(queue.b, 2000);
  EXPECT_EQ(queue.waits.NextResume(1000, 0), 2000);
  EXPECT_FALSE(queue.waits.NeedsResume(1999));
  EXPECT_TRUE(queue.waits.NeedsResume(2000));
  queue.waits.SetAlarm(queue.b, INT64_MAX);
  EXPECT_EQ(queue.waits.NextResume(1000, 0), 3000);
}

TEST(WaitQueue, AClientThatGoesIsForgotten) {
  Queue queue;
  queue.waits.Add(queue.a, kClientParked);
  queue.waits.SetAlarm(queue.a, 2000);
  queue.waits.GoOn(queue.a);
  queue.waits.Forget(queue.a);
  EXPECT_FALSE(queue.waits.NeedsResume(5000));
  queue.waits.Resume(5000, 0);
  EXPECT_TRUE(queue.waits.TakeResumed().empty());
}

}  // namespace
}  // namespace sava::engine
