// Clients that wait for keys: who is served when, and that nobody is served twice or forgotten.
//
// The commands are a small family over numbers, so that nothing but the engine is tested: a key
// holds how many elements it has, and is gone when it has none.
#include "commands/blocking.h"

#include <gtest/gtest.h>

#include <atomic>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "base/text.h"
#include "engine/engine_context.h"
#include "engine_fixture.h"
#include "types/collections/list.h"

namespace sava::engine {
namespace {

using commands::Access;
using commands::Context;

std::atomic<int64_t> pops{0};  // how many elements handlers have taken

void Add(Context& ctx, std::string_view key, int64_t n) {
  const commands::Value value = ctx.Find(key, Access::kWrite);
  ctx.SetInteger(key, (value ? value.integer : 0) + n);
  ctx.Changed();
}

bool TakeOne(Context& ctx, std::string_view key) {
  const commands::Value value = ctx.Find(key, Access::kWrite);
  if (!value.is_int()) return false;
  if (value.integer > 1) {
    ctx.SetInteger(key, value.integer - 1);
  } else {
    ctx.Delete(key);
  }
  ctx.Changed();
  pops.fetch_add(1);
  return true;
}

// GIVE key n
void Give(Context& ctx) {
  int64_t n = 0;
  if (!ctx.IntArg(2, &n)) return;
  Add(ctx, ctx.arg(1), n);
  ctx.reply().Ok();
}

// TAKE key ... milliseconds
void Take(Context& ctx) {
  int64_t deadline = 0;
  if (!commands::TimeoutMillis(ctx, ctx.argc() - 1, &deadline)) return;
  const commands::Args keys = ctx.args().subspan(1, ctx.argc() - 2);
  for (const std::string_view key : keys) {
    if (ctx.ready_key().has_value() && *ctx.ready_key() != key) continue;
    if (!TakeOne(ctx, key)) continue;
    return ctx.reply().Bulk(key);
  }
  if (!ctx.can_block()) return ctx.reply().Null();
  ctx.Block({.keys = keys, .deadline_ms = deadline});
}

// PASS from to milliseconds
void Pass(Context& ctx) {
  int64_t deadline = 0;
  if (!commands::TimeoutMillis(ctx, 3, &deadline)) return;
  if (TakeOne(ctx, ctx.arg(1))) {
    pops.fetch_sub(1);
    Add(ctx, ctx.arg(2), 1);
    return ctx.reply().Simple("PASSED");
  }
  if (!ctx.can_block()) return ctx.reply().Null();
  ctx.Block({.keys = ctx.args().subspan(1, 1), .deadline_ms = deadline});
}

// TAKEAT key at milliseconds: not before a moment.
void TakeAt(Context& ctx) {
  int64_t at = 0;
  int64_t deadline = 0;
  if (!ctx.IntArg(2, &at) || !commands::TimeoutMillis(ctx, 3, &deadline)) return;
  if (ctx.now_ms() >= at && TakeOne(ctx, ctx.arg(1))) return ctx.reply().Bulk(ctx.arg(1));
  ctx.Block({.keys = ctx.args().subspan(1, 1),
             .deadline_ms = deadline,
             .wake_at_ms = ctx.now_ms() < at ? at : 0,
             .reply = Context::BlockRequest::TimeoutReply::kEmptyArray});
}

// GONE key: waits until it is not there.
void Gone(Context& ctx) {
  if (!ctx.Find(ctx.arg(1), Access::kRead)) return ctx.reply().Simple("GONE");
  ctx.Block({.keys = ctx.args().subspan(1, 1), .on_deletion = true});
}

std::atomic<int> tries{0};  // of TAKELIST

// TAKELIST key: waits for a list.
void TakeList(Context& ctx) {
  tries.fetch_add(1);
  const commands::Value value = ctx.Find(ctx.arg(1), Access::kRead);
  if (value.kind == commands::Value::Kind::kObject) return ctx.reply().Simple("LIST");
  ctx.Block({.keys = ctx.args().subspan(1, 1), .type = &types::List::Type()});
}

constexpr commands::KeySpec kFirst = commands::KeyAt(1, commands::kKeyRw);
constexpr commands::CommandSpec kRows[] = {
    {.name = "give", .handler = Give, .arity = 3, .flags = commands::kWrite, .keys = {kFirst}},
    {.name = "take",
     .handler = Take,
     .arity = -3,
     .flags = commands::kWrite | commands::kBlocking,
     .keys = {{.flags = commands::kKeyRw, .first = 1, .last = -2, .step = 1}}},
    {.name = "pass",
     .handler = Pass,
     .arity = 4,
     .flags = commands::kWrite | commands::kBlocking,
     .keys = {{.flags = commands::kKeyRw, .first = 1, .last = 1, .step = 1}}},
    {.name = "takeat", .handler = TakeAt, .arity = 4, .flags = commands::kWrite, .keys = {kFirst}},
    {.name = "takelist",
     .handler = TakeList,
     .arity = 2,
     .flags = commands::kWrite,
     .keys = {kFirst}},
    {.name = "gone", .handler = Gone, .arity = 2, .flags = commands::kWrite, .keys = {kFirst}},
};

// What a loop does between two batches.
void Round(TestEngine& test, Lane& lane) {
  test.engine.BeginRound(lane);
  test.engine.ReceiveMail(lane);
  test.engine.ResumeWaiting(lane);
  lane.waits.TakeResumed();
  for (Client* client : lane.to_flush) client->set(kClientFlushQueued, false);
  lane.to_flush.clear();
  test.engine.EndRound(lane);
}

class BlockingTest : public testing::Test {
 public:
  // Runs a command that is expected to wait.
  void Waits(TestClient& client, const std::vector<std::string>& words) {
    EXPECT_EQ("", client.Run(words));
    EXPECT_TRUE(client.client.blocked()) << words[0];
  }
  void Rounds() {
    for (int i = 0; i < 2; ++i) {
      for (auto& lane : test.engine.lanes()) Round(test, *lane);
    }
  }
  std::string Answer(TestClient& client) {
    Rounds();
    return client.TakeOutput();
  }
  int64_t Size(TestClient& client, const std::string& key) {
    const std::string reply = client.Run({"GET", key});
    int64_t size = 0;
    if (reply[0] == '$' && reply[1] != '-') {
      const size_t at = reply.find("\r\n") + 2;
      base::ParseInt(std::string_view(reply).substr(at, reply.size() - at - 2), &size);
    }
    return size;
  }

  TestEngine test{2, kRows};
  TestClient giver{test, 0};
  TestClient a{test, 1};
  TestClient b{test, 1};
  TestClient c{test, 0};
};

TEST_F(BlockingTest, TakesAtOnceWhatIsThere) {
  giver.Run({"GIVE", "k", "2"});
  EXPECT_EQ("$1\r\nk\r\n", a.Run({"TAKE", "k", "0"}));
  EXPECT_FALSE(a.client.waiting());
  EXPECT_EQ(1, Size(giver, "k"));
}

TEST_F(BlockingTest, ServesInOrderOfArrival) {
  Waits(b, {"TAKE", "k", "0"});
  Waits(a, {"TAKE", "other", "k", "0"});
  Waits(c, {"TAKE", "k", "0"});
  EXPECT_EQ(2, test.engine.waiting().lines().keys());
  giver.Run({"GIVE", "k", "1"});
  EXPECT_EQ("$1\r\nk\r\n", Answer(b));
  EXPECT_TRUE(a.client.blocked());
  giver.Run({"GIVE", "k", "3"});
  EXPECT_EQ("$1\r\nk\r\n", Answer(a));
  EXPECT_EQ("$1\r\nk\r\n", Answer(c));
  EXPECT_EQ(1, Size(giver, "k"));
  EXPECT_EQ(0, test.engine.waiting().lines().keys());
  EXPECT_FALSE(a.client.waiting());
}

TEST_F(BlockingTest, IsServedOnceForTwoKeys) {
  Waits(a, {"TAKE", "k1", "k2", "0"});
  EXPECT_EQ("+OK\r\n", giver.Run({"MULTI"}));
  giver.Run({"GIVE", "k1", "1"});
  giver.Run({"GIVE", "k2", "1"});
  giver.Run({"EXEC"});
  EXPECT_EQ("$2\r\nk1\r\n", Answer(a));
  EXPECT_EQ(0, Size(giver, "k1"));
  EXPECT_EQ(1, Size(giver, "k2"));
  EXPECT_EQ(0, test.engine.waiting().lines().keys());
}

TEST_F(BlockingTest, OnlyTheEndOfATransactionCounts) {
  Waits(a, {"TAKE", "k", "0"});
  giver.Run({"MULTI"});
  giver.Run({"GIVE", "k", "1"});
  giver.Run({"DEL", "k"});
  giver.Run({"EXEC"});
  EXPECT_EQ("", Answer(a));
  EXPECT_TRUE(a.client.blocked());
}

TEST_F(BlockingTest, DoesNotWaitInATransaction) {
  a.Run({"MULTI"});
  a.Run({"TAKE", "k", "0"});
  EXPECT_EQ("*1\r\n$-1\r\n", a.Run({"EXEC"}));
  EXPECT_FALSE(a.client.waiting());
}

TEST_F(BlockingTest, FurtherCommandsWait) {
  Waits(a, {"TAKE", "k", "0"});
  EXPECT_EQ("", a.Run({"GET", "k"}));
  giver.Run({"GIVE", "k", "1"});
  EXPECT_EQ("$1\r\nk\r\n", Answer(a));
  EXPECT_EQ("$-1\r\n", a.Run({"GET", "k"}));
}

TEST_F(BlockingTest, MovesAlongAChain) {
  Waits(a, {"PASS", "k1", "k2", "0"});
  Waits(b, {"PASS", "k2", "k3", "0"});
  Waits(c, {"TAKE", "k3", "0"});
  giver.Run({"GIVE", "k1", "1"});
  EXPECT_EQ(0, Size(giver, "k1") + Size(giver, "k2") + Size(giver, "k3"));
  EXPECT_EQ("+PASSED\r\n", Answer(a));
  EXPECT_EQ("+PASSED\r\n", Answer(b));
  EXPECT_EQ("$2\r\nk3\r\n", Answer(c));
}

TEST_F(BlockingTest, TheLineGoesOnBehindOneThatNeedsMoreLocks) {
  Waits(a, {"PASS", "k", "k9", "0"});
  Waits(b, {"TAKE", "k", "0"});
  giver.Run({"GIVE", "k", "2"});
  EXPECT_EQ("+PASSED\r\n", Answer(a));
  EXPECT_EQ("$1\r\nk\r\n", Answer(b));
}

TEST_F(BlockingTest, IsWokenByRenameCopyMoveAndSwap) {
  giver.Run({"GIVE", "x", "1"});
  Waits(a, {"TAKE", "k", "0"});
  giver.Run({"RENAME", "x", "k"});
  EXPECT_EQ("$1\r\nk\r\n", Answer(a));
  giver.Run({"GIVE", "x", "1"});
  Waits(a, {"TAKE", "k", "0"});
  giver.Run({"COPY", "x", "k"});
  EXPECT_EQ("$1\r\nk\r\n", Answer(a));
  a.client.db = 1;
  Waits(a, {"TAKE", "x", "0"});
  giver.Run({"MOVE", "x", "1"});
  EXPECT_EQ("$1\r\nx\r\n", Answer(a));
  giver.Run({"GIVE", "x", "1"});
  Waits(a, {"TAKE", "x", "0"});
  giver.Run({"SWAPDB", "0", "1"});
  EXPECT_EQ("$1\r\nx\r\n", Answer(a));
}

TEST_F(BlockingTest, WhatIsOfNoUseLeavesTheLineAsItIs) {
  Waits(a, {"TAKE", "k", "0"});
  Waits(b, {"TAKE", "k", "0"});
  giver.Run({"SET", "k", "text"});
  EXPECT_EQ("", Answer(a));
  EXPECT_TRUE(a.client.blocked());
  giver.Run({"DEL", "k"});
  giver.Run({"GIVE", "k", "1"});
  EXPECT_EQ("$1\r\nk\r\n", Answer(a));
  EXPECT_TRUE(b.client.blocked());
}

TEST_F(BlockingTest, ACommandIsNotTriedForAValueOfAnotherType) {
  tries = 0;
  Waits(a, {"TAKELIST", "k"});
  Waits(b, {"TAKELIST", "k"});
  ASSERT_EQ(tries, 2);
  giver.Run({"SET", "k", "text"});
  giver.Run({"APPEND", "k", "more"});
  giver.Run({"DEL", "k"});
  giver.Run({"SADD", "k", "member"});
  EXPECT_EQ(tries, 2);
  giver.Run({"DEL", "k"});
  giver.Run({"RPUSH", "k", "element"});
  EXPECT_EQ(tries, 4);
  EXPECT_EQ("+LIST\r\n", Answer(a));
  EXPECT_EQ("+LIST\r\n", Answer(b));
}

TEST_F(BlockingTest, TimeIsUp) {
  Waits(a, {"TAKE", "k", "1500"});
  a.client.resp = 2;
  EXPECT_EQ(test.clock.WallMillis() + 1500, test.engine.NextResume(a.lane));
  test.clock.AdvanceMillis(1499);
  EXPECT_EQ("", Answer(a));
  test.clock.AdvanceMillis(1);
  EXPECT_EQ("*-1\r\n", Answer(a));
  EXPECT_FALSE(a.client.waiting());
  EXPECT_EQ(0, test.engine.waiting().lines().keys());
  giver.Run({"GIVE", "k", "1"});
  EXPECT_EQ("", Answer(a));
  EXPECT_EQ(1, Size(giver, "k"));
}

TEST_F(BlockingTest, IsTriedAgainAtItsMoment) {
  const std::string moment = std::to_string(test.clock.WallMillis() + 700);
  giver.Run({"GIVE", "k", "1"});
  Waits(a, {"TAKEAT", "k", moment, "1000"});
  test.clock.AdvanceMillis(300);
  EXPECT_EQ("", Answer(a));
  test.clock.AdvanceMillis(400);
  EXPECT_EQ("$1\r\nk\r\n", Answer(a));
  // Nothing there at its moment: it waits on, for the key or the end.
  Waits(a, {"TAKEAT", "k", std::to_string(test.clock.WallMillis() + 10), "1000"});
  test.clock.AdvanceMillis(500);
  EXPECT_EQ("", Answer(a));
  test.clock.AdvanceMillis(500);
  EXPECT_EQ("*0\r\n", Answer(a));
}

TEST_F(BlockingTest, HearsThatAKeyIsGone) {
  giver.Run({"GIVE", "k", "1"});
  Waits(a, {"GONE", "k"});
  EXPECT_EQ(1, test.engine.waiting().lines().keys_on_deletion());
  giver.Run({"GIVE", "k", "1"});
  EXPECT_EQ("", Answer(a));
  giver.Run({"DEL", "k"});
  EXPECT_EQ("+GONE\r\n", Answer(a));
  giver.Run({"GIVE", "k", "1"});
  Waits(a, {"GONE", "k"});
  giver.Run({"FLUSHALL"});
  EXPECT_EQ("+GONE\r\n", Answer(a));
  giver.Run({"SET", "k", "1", "PX", "100"});
  Waits(a, {"GONE", "k"});
  test.clock.AdvanceMillis(200);
  EXPECT_EQ("$-1\r\n", giver.Run({"GET", "k"}));
  EXPECT_EQ("+GONE\r\n", Answer(a));
  EXPECT_EQ(0, test.engine.waiting().lines().keys_on_deletion());
}

TEST_F(BlockingTest, IsUnblocked) {
  Waits(a, {"TAKE", "k", "j", "0"});
  bool done = false;
  test.engine.Exclusively(
      giver.lane, [&] { done = test.engine.waiting().Unblock(giver.lane, a.client, true); });
  EXPECT_TRUE(done);
  EXPECT_FALSE(a.client.blocked());
  EXPECT_EQ("-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n", Answer(a));
  Waits(a, {"TAKE", "k", "0"});
  giver.Run({"GIVE", "k", "1"});
  // Its answer is on its way.
  test.engine.Exclusively(
      giver.lane, [&] { done = test.engine.waiting().Unblock(giver.lane, a.client, false); });
  EXPECT_FALSE(done);
  EXPECT_EQ("$1\r\nk\r\n", Answer(a));
}

TEST_F(BlockingTest, WhoLeavesTakesNothingWithHim) {
  {
    TestClient gone(test, 1);
    Waits(gone, {"TAKE", "k", "j", "0"});
    Waits(a, {"TAKE", "k", "0"});
  }
  EXPECT_EQ(1, test.engine.waiting().lines().keys());
  giver.Run({"GIVE", "k", "1"});
  EXPECT_EQ("$1\r\nk\r\n", Answer(a));
}

TEST_F(BlockingTest, ReplyModesHold) {
  a.client.set(kClientReplySkip);
  EXPECT_EQ("", a.Run({"TAKE", "k", "0"}));
  giver.Run({"GIVE", "k", "1"});
  EXPECT_EQ("", Answer(a));
  EXPECT_EQ("$-1\r\n", a.Run({"GET", "k"}));
}

TEST_F(BlockingTest, IsLoggedAsItsOwnCommand) {
  struct : journal::Consumer {
    void Receive(const journal::Record& record) override { log.append(record.bytes()); }
    std::string log;
  } sink;
  test.engine.journal().Attach(sink);
  Waits(a, {"TAKE", "k", "0"});
  giver.Run({"GIVE", "k", "1"});
  test.engine.journal().Flush();
  test.engine.journal().Detach(sink);
  const size_t give = sink.log.find("GIVE");
  const size_t take = sink.log.find("TAKE");
  ASSERT_NE(std::string::npos, give);
  ASSERT_NE(std::string::npos, take);
  EXPECT_LT(give, take);
}

// What a waiter is told has a ticket of the giver's lane, whose clock may be far ahead: the answer
// is held until that is kept, and what the waiter does next is logged after it.
TEST_F(BlockingTest, AnAnswerFromAheadIsNotForgotten) {
  struct : journal::Consumer {
    void Receive(const journal::Record& record) override {
      if (record.bytes().find("TAKE") != std::string_view::npos) taken = record.ticket();
      if (record.bytes().find("later") != std::string_view::npos) later = record.ticket();
    }
    uint64_t taken = 0;
    uint64_t later = 0;
  } sink;
  test.engine.journal().Attach(sink);
  for (int i = 0; i < 50; ++i) giver.Run({"SET", "ahead", "1"});
  Waits(a, {"TAKE", "k", "0"});
  giver.Run({"GIVE", "k", "1"});
  EXPECT_EQ("$1\r\nk\r\n", Answer(a));
  a.Run({"SET", "later", "1"});
  test.engine.journal().Detach(sink);
  EXPECT_GT(sink.taken, 50U);
  EXPECT_GT(sink.later, sink.taken);
  EXPECT_GT(a.client.sending.wrote, sink.taken);
}

// Threads that give, take, pass on, give up, unblock and hang up on few keys: what was given is
// what was taken and what is left, and nobody waits for what is there.
class BlockingStress : public testing::Test {
 public:
  static constexpr size_t kLanes = 3;
  static constexpr size_t kClients = 6;  // of each lane
  static constexpr int kKeys = 3;

  std::string Key(base::Rng& rng) { return "k" + std::to_string(rng.Below(kKeys)); }

  void Step(size_t index, base::Rng& rng) {
    Lane& lane = *test.engine.lanes()[index];
    std::unique_ptr<TestClient>& slot = clients[index][rng.Below(kClients)];
    if (rng.Below(4) == 0) test.clock.AdvanceMillis(1);
    if (slot->client.waiting()) {
      Disturb(lane, slot, rng);
    } else {
      Count(*slot);
      Use(*slot, index, rng);
    }
    Round(test, lane);
  }

  // Its connection ends, or somebody is unblocked.
  void Disturb(Lane& lane, std::unique_ptr<TestClient>& slot, base::Rng& rng) {
    const uint64_t what = rng.Below(40);
    if (what == 0 && hangups) {
      Count(*slot);
      test.engine.BeginRound(lane);
      slot = std::make_unique<TestClient>(test, lane.index);
      test.engine.EndRound(lane);
    } else if (what < 4) {
      test.engine.Exclusively(lane, [&] {
        auto& all = test.engine.lanes()[rng.Below(kLanes)]->clients;
        auto victim = all.begin();
        std::advance(victim, static_cast<ptrdiff_t>(rng.Below(all.size())));
        test.engine.waiting().Unblock(lane, *victim->second, what == 1);
      });
    }
  }

  void Use(TestClient& one, size_t index, base::Rng& rng) {
    const std::string timeout = rng.Below(2) == 0 ? "0" : std::to_string(1 + rng.Below(3));
    const std::string elsewhere = "elsewhere" + std::to_string(index);
    switch (rng.Below(7)) {
      case 0:
      case 1: {
        const auto n = static_cast<int64_t>(1 + rng.Below(3));
        one.Run({"GIVE", Key(rng), std::to_string(n)});
        if (!one.client.waiting()) given.fetch_add(n);  // else it was parked and did not run
        break;
      }
      case 2:
      case 3:
        Count(one.Run({"TAKE", Key(rng), timeout}));
        break;
      case 4:
        Count(one.Run({"TAKE", Key(rng), Key(rng), Key(rng), timeout}));
        break;
      case 5:
        one.Run({"PASS", Key(rng), Key(rng), timeout});
        break;
      default:
        one.Run({"RENAMENX", Key(rng), elsewhere});
        one.Run({"RENAMENX", elsewhere, Key(rng)});
    }
  }

  // How often somebody was given an element, by what he was answered.
  void Count(const std::string& output) {
    for (size_t at = 0; (at = output.find("$2\r\nk", at)) != std::string::npos; ++at) {
      received.fetch_add(1);
    }
  }
  void Count(TestClient& one) { Count(one.TakeOutput()); }

  void RunThreads(int steps) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      for (size_t i = 0; i < kClients; ++i) {
        clients[lane].push_back(std::make_unique<TestClient>(test, lane));
      }
    }
    const int64_t before = pops.load();
    std::vector<std::thread> threads;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      threads.emplace_back([this, lane, steps] {
        base::Rng rng(lane + 77);
        for (int i = 0; i < steps; ++i) Step(lane, rng);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (int i = 0; i < 3; ++i) {
      for (auto& lane : test.engine.lanes()) Round(test, *lane);
    }
    for (auto& lane : clients) {
      for (auto& client : lane) Count(*client);
    }
    taken = pops.load() - before;
  }

  void Check() {
    TestClient looker(test, 0);
    int64_t left = 0;
    const auto size = [&](const std::string& key) {
      const std::string reply = looker.Run({"GET", key});
      if (reply == "$-1\r\n") return int64_t{0};
      return static_cast<int64_t>(std::stoll(reply.substr(reply.find('\n') + 1)));
    };
    for (int i = 0; i < kKeys; ++i) left += size("k" + std::to_string(i));
    for (size_t i = 0; i < kLanes; ++i) left += size("elsewhere" + std::to_string(i));
    EXPECT_EQ(given.load(), taken + left);
    EXPECT_GT(taken, 0);
    for (auto& lane : clients) {
      for (auto& client : lane) {
        if (!client->client.blocked()) continue;
        for (const Waiter::Key& key : client->client.wait.waiter->keys) {
          EXPECT_EQ(0, size(std::string(key.name))) << "somebody waits for what is there";
        }
      }
    }
  }

  TestEngine test{kLanes, kRows};
  std::vector<std::unique_ptr<TestClient>> clients[kLanes];
  std::atomic<int64_t> given{0};
  std::atomic<int64_t> received{0};
  int64_t taken = 0;
  bool hangups = true;
};

TEST_F(BlockingStress, WhatIsGivenIsTakenOnce) {
  hangups = false;
  RunThreads(10000);
  Check();
  EXPECT_EQ(taken, received.load());
}

TEST_F(BlockingStress, HoldsWithConnectionsThatEnd) {
  RunThreads(10000);
  Check();
  EXPECT_LE(received.load(), taken);
  for (auto& lane : clients) lane.clear();
  EXPECT_EQ(0, test.engine.waiting().lines().keys());
}

}  // namespace
}  // namespace sava::engine
