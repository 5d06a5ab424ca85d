// The gate while its holder takes long: loops do not sleep in front of it, and answer.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "engine_fixture.h"
#include "keyspace/gate.h"

namespace sava::engine {
namespace {

using keyspace::BusyPass;
using keyspace::Gate;

constexpr const char* kBusy = "-BUSY something takes long\r\n";

TEST(Gate, AThreadThatFindsItClosedEntersWhenItOpens) {
  Gate gate(2);
  gate.Close();
  std::atomic<bool> inside{false};
  std::thread waiting([&] {
    gate.Enter(0);
    inside = true;
    gate.Leave(0);
  });
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_FALSE(inside);
  gate.Open();
  waiting.join();
  EXPECT_TRUE(inside);
}

TEST(Gate, APassIsGivenOnlyWhileSomebodyIsBusy) {
  Gate gate(2);
  gate.Close();
  EXPECT_FALSE(BusyPass(gate));
  gate.DeclareBusy();
  EXPECT_TRUE(gate.busy());
  EXPECT_TRUE(BusyPass(gate));
  gate.EndBusy();
  gate.Open();
  EXPECT_FALSE(gate.busy());
  EXPECT_FALSE(BusyPass(gate));
}

TEST(Gate, ItDoesNotOpenWhileSomebodyServes) {
  Gate gate(2);
  gate.Close();
  gate.DeclareBusy();
  std::promise<void> serving;
  std::atomic<bool> done{false};
  std::thread other([&] {
    const BusyPass pass(gate);
    ASSERT_TRUE(pass);
    serving.set_value();
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    done = true;
  });
  serving.get_future().wait();
  gate.EndBusy();
  gate.Open();
  EXPECT_TRUE(done);
  other.join();
}

TEST(Gate, AThreadThatWaitsServesWhileSomebodyIsBusy) {
  Gate gate(2);
  std::atomic<int> served{0};
  gate.set_serve(0, [&](int) { ++served; });
  EXPECT_FALSE(gate.Serve(0)) << "nobody is busy";
  gate.Close();
  std::thread waiting([&] {
    gate.Enter(0);
    gate.Leave(0);
  });
  gate.DeclareBusy();
  while (served < 3) std::this_thread::yield();
  gate.EndBusy();
  gate.Open();
  waiting.join();
  EXPECT_FALSE(gate.Serve(1)) << "it has nothing to do meanwhile";
}

// Another thread holds the gate closed and is busy until the test is over.
struct Busy {
  Busy() : here(test, 1), other(test, 0) {}
  void Begin() {
    std::promise<void> begun;
    holder = std::thread([this, &begun] {
      test.engine.Exclusively(other.lane, [this, &begun] {
        test.engine.admission().DeclareBusy("BUSY something takes long");
        begun.set_value();
        ended.get_future().wait();
        test.engine.admission().EndBusy();
      });
    });
    begun.get_future().wait();
  }
  void End() {
    ended.set_value();
    holder.join();
  }
  std::string Run(const std::vector<std::string>& words) {
    const std::vector<std::string_view> args(words.begin(), words.end());
    Request request;
    request.client = &here.client;
    request.args = args;
    test.engine.runner().RunBusy(here.lane, {&request, 1});
    outcome = request.outcome;
    return here.TakeOutput();
  }

  TestEngine test{2};
  TestClient here;
  TestClient other;
  std::thread holder;
  std::promise<void> ended;
  Request::Outcome outcome{};
};

TEST(BusyEngine, AnswersWhatNeedsNoDataAndRefusesTheRest) {
  Busy busy;
  busy.Begin();
  EXPECT_EQ(busy.Run({"GET", "k"}), kBusy);
  EXPECT_EQ(busy.Run({"WATCH", "k"}), kBusy);
  EXPECT_EQ(busy.Run({"MULTI"}), "+OK\r\n");
  EXPECT_EQ(busy.Run({"SET", "k", "v"}), kBusy);
  EXPECT_EQ(busy.Run({"DISCARD"}), "+OK\r\n");
  EXPECT_EQ(busy.Run({"GET"}), "-ERR wrong number of arguments for 'get' command\r\n");
  EXPECT_EQ(busy.Run({"NOSUCH"}), "-ERR unknown command 'NOSUCH', with args beginning with: \r\n");
  busy.End();
  EXPECT_EQ(busy.here.Run({"GET", "k"}), "$-1\r\n");
}

TEST(BusyEngine, AnErrorWhileQueueingAbortsTheTransaction) {
  Busy busy;
  EXPECT_EQ(busy.here.Run({"MULTI"}), "+OK\r\n");
  busy.Begin();
  EXPECT_EQ(busy.Run({"SET", "k", "v"}), kBusy);
  busy.End();
  EXPECT_EQ(busy.here.Run({"EXEC"}),
            "-EXECABORT Transaction discarded because of previous errors.\r\n");
}

TEST(BusyEngine, WatchesEndWhenTheirLaneIsInsideAgain) {
  Busy busy;
  EXPECT_EQ(busy.here.Run({"WATCH", "k"}), "+OK\r\n");
  EXPECT_EQ(busy.here.Run({"MULTI"}), "+OK\r\n");
  busy.Begin();
  EXPECT_EQ(busy.Run({"EXEC"}),
            "-EXECABORT Transaction discarded because of: BUSY something takes long\r\n");
  EXPECT_EQ(busy.here.client.transaction.watched.size(), 1U);
  busy.End();
  EXPECT_EQ(busy.other.Run({"SET", "k", "v"}), "+OK\r\n");
  EXPECT_EQ(busy.here.Run({"MULTI"}), "+OK\r\n");
  EXPECT_TRUE(busy.here.client.transaction.watched.empty());
  EXPECT_EQ(busy.here.Run({"GET", "k"}), "+QUEUED\r\n");
  EXPECT_EQ(busy.here.Run({"EXEC"}), "*1\r\n$1\r\nv\r\n");
}

TEST(BusyEngine, AClientThatWaitsGetsNoAnswerOutOfOrder) {
  Busy busy;
  EXPECT_EQ(busy.here.Run({"BLPOP", "list", "0"}), "");
  ASSERT_TRUE(busy.here.client.waiting());
  busy.Begin();
  EXPECT_EQ(busy.Run({"GET", "k"}), "");
  EXPECT_EQ(busy.outcome, Request::Outcome::kRefused);
  busy.End();
  EXPECT_EQ(busy.Run({"GET", "k"}), "") << "nobody is busy any more";
  EXPECT_EQ(busy.outcome, Request::Outcome::kRefused);
}

TEST(BusyEngine, ABatchLetsAThreadCloseTheGateBeforeACommand) {
  TestEngine test(2);
  TestClient here(test, 0);
  TestClient other(test, 1);
  test.engine.BeginRound(here.lane);
  test.engine.BeginBatch(here.lane);
  std::thread closer([&] { test.engine.Exclusively(other.lane, [] {}); });
  while (!test.engine.keyspace().gate().wanted()) std::this_thread::yield();
  const std::string_view words[] = {"SET", "k", "v"};
  Request request;
  request.client = &here.client;
  request.args = words;
  test.engine.Prepare(here.lane, {&request, 1});
  test.engine.RunBatch(here.lane, {&request, 1});
  closer.join();  // which the batch has let in
  test.engine.EndBatch(here.lane);
  test.engine.EndRound(here.lane);
  EXPECT_EQ(request.outcome, Request::Outcome::kDone);
  EXPECT_EQ(here.TakeOutput(), "+OK\r\n");
}

}  // namespace
}  // namespace sava::engine
