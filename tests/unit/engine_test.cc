// The engine in one process, without sockets: admission, transactions, expiry, eviction.
#include "engine/engine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine_fixture.h"

namespace sava::engine {
namespace {

TEST(Engine, RunsCommandsAndReplies) {
  TestEngine test(1);
  TestClient client(test, 0);
  EXPECT_EQ(client.Run({"SET", "a", "1"}), "+OK\r\n");
  EXPECT_EQ(client.Run({"get", "a"}), "$1\r\n1\r\n");
  EXPECT_EQ(client.Run({"INCR", "a"}), ":2\r\n");
  EXPECT_EQ(client.Run({"NOSUCH", "x"}),
            "-ERR unknown command 'NOSUCH', with args beginning with: 'x' \r\n");
  EXPECT_EQ(client.Run({"GET"}), "-ERR wrong number of arguments for 'get' command\r\n");
}

TEST(Engine, KeepsExpiryByTheClock) {
  TestEngine test(1);
  TestClient client(test, 0);
  client.Run({"SET", "a", "1", "PX", "100"});
  test.clock.AdvanceMillis(100);
  EXPECT_EQ(client.Run({"GET", "a"}), "$1\r\n1\r\n");
  test.clock.AdvanceMillis(1);
  EXPECT_EQ(client.Run({"GET", "a"}), "$-1\r\n");
}

TEST(Engine, ExpiresKeysNobodyLooksAt) {
  TestEngine test(1);
  TestClient client(test, 0);
  for (int i = 0; i < 1000; ++i) {
    client.Run({"SET", "k" + std::to_string(i), "v", "PX", "500"});
  }
  client.Run({"SET", "stays", "v"});
  test.clock.AdvanceMillis(2000);
  for (int i = 0; i < 1000; ++i) test.engine.Upkeep(*test.engine.lanes()[0]);
  EXPECT_EQ(client.Run({"DBSIZE"}), ":1\r\n");
}

TEST(Engine, TransactionsAbortOnQueueErrorsAndWatchedChanges) {
  TestEngine test(1);
  TestClient a(test, 0);
  TestClient b(test, 0);
  a.Run({"MULTI"});
  EXPECT_EQ(a.Run({"SET", "x", "1"}), "+QUEUED\r\n");
  EXPECT_EQ(a.Run({"EXEC"}), "*1\r\n+OK\r\n");
  a.Run({"MULTI"});
  a.Run({"NOSUCH"});
  EXPECT_EQ(a.Run({"EXEC"}), "-EXECABORT Transaction discarded because of previous errors.\r\n");
  a.Run({"WATCH", "x"});
  b.Run({"SET", "x", "2"});
  a.Run({"MULTI"});
  a.Run({"SET", "x", "3"});
  EXPECT_EQ(a.Run({"EXEC"}), "*-1\r\n");
  EXPECT_EQ(a.Run({"GET", "x"}), "$1\r\n2\r\n");
  a.Run({"WATCH", "x"});
  b.Run({"FLUSHALL"});
  a.Run({"MULTI"});
  EXPECT_EQ(a.Run({"EXEC"}), "*-1\r\n");
}

TEST(Engine, AWatchedKeyThatExpiresCountsAsChanged) {
  TestEngine test(1);
  TestClient client(test, 0);
  client.Run({"SET", "x", "1", "PX", "10"});
  client.Run({"WATCH", "x"});
  test.clock.AdvanceMillis(50);
  client.Run({"MULTI"});
  client.Run({"DBSIZE"});
  EXPECT_EQ(client.Run({"EXEC"}), "*-1\r\n");
  // Expired already when it was watched: its removal is no change.
  client.Run({"SET", "x", "1", "PX", "10"});
  test.clock.AdvanceMillis(50);
  client.Run({"WATCH", "x"});
  TestClient other(test, 0);
  other.Run({"GET", "x"});
  client.Run({"MULTI"});
  client.Run({"DBSIZE"});
  EXPECT_EQ(client.Run({"EXEC"}), "*1\r\n:0\r\n");
}

TEST(Engine, EvictsBelowMaxmemoryAndRefusesWithoutEviction) {
  TestEngine test(1);
  TestClient client(test, 0);
  const std::string value(200, 'v');
  test.settings.maxmemory = 4 << 20;
  test.settings.maxmemory_policy = config::MaxmemoryPolicy::kAllkeysLru;
  for (int i = 0; i < 40000; ++i) {
    ASSERT_EQ(client.Run({"SET", "key:" + std::to_string(i), value}), "+OK\r\n");
  }
  EXPECT_LT(test.engine.memory().Used(), (4U << 20) + (1U << 20));
  EXPECT_GT(test.engine.Total(&LaneStats::keys, &KeyStats::evicted), 1000U);
  test.settings.maxmemory = 1 << 20;
  test.settings.maxmemory_policy = config::MaxmemoryPolicy::kNoEviction;
  EXPECT_EQ(client.Run({"SET", "more", value}),
            "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
  EXPECT_EQ(client.Run({"DEL", "more"}), ":0\r\n");
}

TEST(Engine, VolatilePoliciesLeaveKeysWithoutExpiryAlone) {
  TestEngine test(1);
  TestClient client(test, 0);
  const std::string value(200, 'v');
  for (int i = 0; i < 500; ++i) client.Run({"SET", "stays:" + std::to_string(i), value});
  test.settings.maxmemory = 2 << 20;
  test.settings.maxmemory_policy = config::MaxmemoryPolicy::kVolatileTtl;
  for (int i = 0; i < 20000; ++i) {
    client.Run({"SET", "goes:" + std::to_string(i), value, "EX", "1000"});
  }
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(client.Run({"EXISTS", "stays:" + std::to_string(i)}), ":1\r\n");
  }
}

TEST(Engine, PausedClientsWaitAndGoOn) {
  TestEngine test(1);
  TestClient client(test, 0);
  test.engine.admission().Pause(test.clock.WallMillis() + 1000, true);
  EXPECT_EQ(client.Run({"GET", "a"}), "$-1\r\n");
  EXPECT_EQ(client.Run({"SET", "a", "1"}), "");
  EXPECT_TRUE(client.client.waiting());
  test.clock.AdvanceMillis(1001);
  test.engine.ResumeWaiting(*test.engine.lanes()[0]);
  EXPECT_FALSE(client.client.waiting());
  EXPECT_EQ(client.Run({"SET", "a", "1"}), "+OK\r\n");
}

TEST(Engine, JournalsEffectsInTicketOrder) {
  struct Words final : journal::Consumer {
    void Receive(const journal::Record& record) override {
      EXPECT_GT(record.ticket(), std::exchange(last, record.ticket()));
      text.push_back(std::to_string(record.size()) + ":" + std::string(record.bytes()));
    }
    uint64_t last = 0;
    std::vector<std::string> text;
  };
  TestEngine test(1);
  Words sink;
  test.engine.journal().Attach(sink);
  TestClient client(test, 0);
  client.Run({"SET", "a", "1"});
  client.Run({"GET", "a"});
  client.Run({"MULTI"});
  client.Run({"INCR", "a"});
  client.Run({"INCR", "b"});
  client.Run({"EXEC"});
  client.Run({"SET", "c", "v", "PX", "1000"});
  test.engine.journal().Flush();
  test.engine.journal().Detach(sink);
  ASSERT_EQ(sink.text.size(), 3U);
  EXPECT_EQ(sink.text[0].substr(0, 2), "1:");
  EXPECT_EQ(sink.text[1].substr(0, 2), "2:");
  EXPECT_NE(sink.text[2].find("PXAT"), std::string::npos);
}

// SLOW: takes longer than a batch may.
void Slow(commands::Context& ctx) {
  const uint64_t start = base::Ticks();
  while (static_cast<double>(base::Ticks() - start) < 3000 * base::TicksPerMicro()) {
  }
  ctx.reply().Simple("SLOW");
}

constexpr commands::CommandSpec kSlow[] = {{.name = "slow", .handler = Slow, .arity = 1}};

// Slow commands one behind the other leave others their turn, and are all run, in order.
TEST(Engine, ABatchThatTakesLongIsContinuedInTheNextRound) {
  TestEngine test(1, kSlow);
  TestClient a(test, 0);
  TestClient b(test, 0);
  const std::vector<std::string_view> slow = {"SLOW"};
  const std::vector<std::string_view> incr = {"INCR", "n"};
  // What each still has to run: of `a` every second one is slow.
  std::vector<const std::vector<std::string_view>*> rest = {&slow, &incr, &slow, &incr};
  bool b_done = false;
  int rounds = 0;
  std::string replies;
  for (; (!rest.empty() || !b_done) && rounds < 100; ++rounds) {
    std::vector<Request> batch;
    for (const auto* words : rest) {
      batch.push_back({});
      batch.back().client = &a.client;
      batch.back().args = *words;
    }
    if (!b_done) {
      batch.push_back({});
      batch.back().client = &b.client;
      batch.back().args = incr;
    }
    test.engine.BeginBatch(a.lane);
    test.engine.Prepare(a.lane, batch);
    test.engine.RunBatch(a.lane, batch);
    test.engine.EndBatch(a.lane);
    size_t done = 0;
    while (done < rest.size() && batch[done].outcome == Request::Outcome::kDone) ++done;
    for (size_t i = done; i < rest.size(); ++i) {
      EXPECT_EQ(batch[i].outcome, Request::Outcome::kRefused);
    }
    if (!b_done) b_done = batch.back().outcome == Request::Outcome::kDone;
    EXPECT_EQ(a.client.waiting(), done < rest.size());
    EXPECT_EQ(b.client.waiting(), !b_done);
    rest.erase(rest.begin(), rest.begin() + static_cast<ptrdiff_t>(done));
    replies += a.TakeOutput();
    EXPECT_EQ(test.engine.NextResume(a.lane) == 0, a.client.waiting() || b.client.waiting());
    test.engine.ResumeWaiting(a.lane);
    EXPECT_FALSE(a.client.waiting() || b.client.waiting());
    a.lane.waits.TakeResumed();
  }
  EXPECT_EQ(replies.substr(0, 7), "+SLOW\r\n");
  EXPECT_GE(rounds, 2);
  EXPECT_LE(rounds, 4);
  EXPECT_EQ(b.TakeOutput(), ":3\r\n");
}

TEST(Engine, NobodyIsWaitedForWhoHasGoneWhileOthersHadTheirTurn) {
  TestEngine test(1);
  Lane& lane = *test.engine.lanes()[0];
  {
    TestClient gone(test, 0);
    TestClient first(test, 0);
    TestClient second(test, 0);
    lane.waits.Yield(gone.client);
    Client* const before[] = {&first.client, &second.client};
    lane.waits.YieldFirst(before);
    EXPECT_TRUE(gone.client.waiting() && first.client.waiting() && second.client.waiting());
    EXPECT_EQ(test.engine.NextResume(lane), 0);
    test.engine.ResumeWaiting(lane);
    EXPECT_EQ(lane.waits.TakeResumed(),
              (std::vector<Client*>{&first.client, &second.client, &gone.client}));
    EXPECT_NE(test.engine.NextResume(lane), 0);
    lane.waits.Yield(gone.client);
  }
  EXPECT_NE(test.engine.NextResume(lane), 0) << "the loop would not sleep any more";
}

// Whoever frees large values may take the loop's processor: not before the round's answers are out.
TEST(Engine, LargeValuesAreHandedOverWhenTheRoundEnds) {
  TestEngine test(1);
  TestClient client(test, 0);
  Background& background = test.engine.background();
  const auto handed = [&] { return background.pending() + background.done(); };
  const auto fill = [&] {
    std::vector<std::string> words = {"AFC.ADD", "k"};
    for (int i = 0; i < 500; ++i) words.push_back("m" + std::to_string(i));
    client.Run(words);
    client.Run({"SET", "s", std::string(100'000, 'x')});
  };
  fill();
  test.engine.BeginRound(client.lane);
  EXPECT_EQ(client.Run({"AFC.DROP", "k"}), ":1\r\n");
  EXPECT_EQ(client.Run({"DEL", "s"}), ":1\r\n");
  EXPECT_EQ(client.Run({"GET", "s"}), "$-1\r\n");
  EXPECT_EQ(handed(), 0);
  test.engine.EndRound(client.lane);
  EXPECT_EQ(handed(), 2);
  fill();
  client.Run({"DEL", "k", "s"});
  EXPECT_EQ(handed(), 4) << "without a round at once";
  test.engine.BeginRound(client.lane);
  for (int i = 0; i < 100; ++i) {
    client.Run({"SET", "s", std::string(100'000, 'x')});
    client.Run({"DEL", "s"});
  }
  EXPECT_GE(handed(), 4 + 65) << "many do not wait";
  test.engine.EndRound(client.lane);
  EXPECT_EQ(handed(), 104);
}

// A batch of commands that together add far more than there is room for.
TEST(Engine, ABatchKeepsToMaxmemory) {
  TestEngine test(1);
  TestClient client(test, 0);
  const std::string value(1000, 'x');
  test.settings.maxmemory_policy = config::MaxmemoryPolicy::kAllkeysLru;
  test.settings.maxmemory_eviction_tenacity = 100;
  test.settings.maxmemory = test.engine.memory().Used() + (256 << 10);
  for (int batch = 0; batch < 20; ++batch) {
    std::vector<std::string> keys;
    std::vector<std::vector<std::string_view>> commands;
    for (int i = 0; i < 64; ++i) keys.push_back(fmt::format("{}:{}", batch, i));
    for (const std::string& key : keys) commands.push_back({"SET", key, value});
    std::vector<Request> requests(commands.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      requests[i].client = &client.client;
      requests[i].args = commands[i];
    }
    // A batch that takes long leaves the rest to the next round.
    for (std::span<Request> rest(requests); !rest.empty();) {
      test.engine.BeginBatch(client.lane);
      test.engine.Prepare(client.lane, rest);
      test.engine.RunBatch(client.lane, rest);
      EXPECT_LE(test.engine.memory().Used(), test.settings.maxmemory + 4096) << batch;
      test.engine.EndBatch(client.lane);
      while (!rest.empty() && rest.front().outcome == Request::Outcome::kDone) {
        rest = rest.subspan(1);
      }
      test.engine.ResumeWaiting(client.lane);
      client.lane.waits.TakeResumed();
    }
    std::string replies;
    for (int i = 0; i < 64; ++i) replies += "+OK\r\n";
    EXPECT_EQ(client.TakeOutput(), replies);
  }
}

}  // namespace
}  // namespace sava::engine
