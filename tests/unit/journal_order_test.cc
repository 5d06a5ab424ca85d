// The journal's order: threads change the same keys in ways that do not commute, one by one, in
// transactions and all at once; what was logged, run again by one client, gives the same data.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "engine_fixture.h"
#include "journal/journal.h"
#include "journal_text.h"

namespace sava::engine {
namespace {

using Words = std::vector<std::string>;

struct Logged {
  uint32_t db;
  Words words;
};

struct Recorder final : journal::Consumer {
  void Receive(const journal::Record& record) override {
    EXPECT_GE(record.ticket(), next);
    for (const journal::Effect& effect : record) {
      log.push_back({effect.database, journal::WordsOf(effect.bytes)});
    }
  }
  void EndRun(uint64_t now) override { next = now; }

  uint64_t next = 0;
  std::vector<Logged> log;
};

constexpr size_t kLanes = 3;
constexpr int kSteps = 4000;

class OrderTest : public testing::Test {
 public:
  static std::string Key(base::Rng& rng) { return "k" + std::to_string(rng.Below(12)); }

  static void Step(TestClient& client, base::Rng& rng, const std::string& mark) {
    switch (rng.Below(16)) {
      case 0:
        client.RunPatiently({"RENAME", Key(rng), Key(rng)});
        break;
      case 1:
        client.RunPatiently({"COPY", Key(rng), Key(rng), "REPLACE"});
        break;
      case 2:
        client.RunPatiently({"MSET", Key(rng), mark, Key(rng), mark});
        break;
      case 3:
        client.RunPatiently({"MULTI"});
        client.RunPatiently({"APPEND", Key(rng), mark});
        client.RunPatiently({"GETDEL", Key(rng)});
        client.RunPatiently({"EXEC"});
        break;
      case 4:
        client.RunPatiently({"SELECT", std::to_string(rng.Below(2))});
        break;
      case 5:
        client.RunPatiently({"MOVE", Key(rng), std::to_string(rng.Below(2))});
        break;
      case 6:
        if (rng.Below(20) == 0) client.RunPatiently({"SWAPDB", "0", "1"});
        if (rng.Below(100) == 0) client.RunPatiently({"FLUSHDB"});
        break;
      default:
        client.RunPatiently({"APPEND", Key(rng), mark});
        break;
    }
  }

  static std::map<std::string, std::string> Data(TestEngine& test) {
    TestClient client(test, 0);
    std::map<std::string, std::string> data;
    for (const char* db : {"0", "1"}) {
      client.Run({"SELECT", db});
      for (int i = 0; i < 12; ++i) {
        const std::string key = "k" + std::to_string(i);
        data[std::string(db) + key] = client.Run({"GET", key});
      }
    }
    return data;
  }
};

TEST_F(OrderTest, RunAgainItGivesTheSameData) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Recorder sink;
    TestEngine test(kLanes);
    test.engine.journal().Attach(sink);
    {
      std::vector<std::jthread> threads;
      for (size_t lane = 0; lane < kLanes; ++lane) {
        threads.emplace_back([&, lane] {
          base::Rng rng(seed * 100 + lane);
          TestClient client(test, lane);
          for (int i = 0; i < kSteps; ++i) {
            Step(client, rng, std::string(1, static_cast<char>('a' + lane)));
            if (rng.Below(50) == 0) test.engine.journal().MergeHere();
          }
        });
      }
    }
    test.engine.journal().Detach(sink);
    TestEngine again(1);
    {
      TestClient client(again, 0);
      uint32_t db = 0;
      for (const Logged& one : sink.log) {
        if (one.db != db) client.Run({"SELECT", std::to_string(db = one.db)});
        client.Run(one.words);
      }
    }
    EXPECT_GT(sink.log.size(), static_cast<size_t>(kSteps));
    ASSERT_EQ(Data(test), Data(again)) << "seed " << seed;
  }
}

// Whoever is told of a write by another thread can wait until it is on disk only if the write has
// its ticket by then.
TEST(Journal, NobodyIsToldOfAWriteBeforeItHasItsTicket) {
  Recorder sink;
  TestEngine test(2);
  test.settings.notify_keyspace_events =
      commands::kNotifyKeyspace | commands::kNotifyKeyevent | commands::kNotifyString;
  journal::Journal& journal = test.engine.journal();
  journal.Attach(sink);
  TestClient listener(test, 1);
  TestClient monitor(test, 1);
  TestClient writer(test, 0);
  monitor.client.set(kClientMonitor);
  std::vector<uint64_t> told;
  listener.lane.mailbox.set_wake([&] { told.push_back(journal.next_ticket()); });
  // Each of these tells something to the other lane, whose mailbox is empty.
  const auto tell = [&](const std::vector<Words>& commands) {
    told.clear();
    test.engine.ReceiveMail(listener.lane);
    const uint64_t before = journal.next_ticket();
    for (const Words& words : commands) writer.Run(words);
    ASSERT_EQ(told.size(), 1U) << commands[0][0];
    EXPECT_GT(told[0], before) << commands[0][0];
  };
  listener.Run({"PSUBSCRIBE", "__key*"});
  tell({{"SET", "a", "1"}});
  tell({{"MULTI"}, {"SET", "a", "2"}, {"SET", "b", "2"}, {"EXEC"}});
  test.engine.ReceiveMail(listener.lane);
  EXPECT_NE(std::string::npos, listener.TakeOutput().find("__keyevent@0__:set"));
  listener.Run({"PUNSUBSCRIBE"});
  listener.Run({"SUBSCRIBE", "news"});
  tell({{"MULTI"}, {"PUBLISH", "news", "a is 3"}, {"SET", "a", "3"}, {"EXEC"}});
  test.engine.ReceiveMail(listener.lane);
  EXPECT_NE(std::string::npos, listener.TakeOutput().find("a is 3"));
  listener.Run({"UNSUBSCRIBE"});
  test.engine.observer().monitors().fetch_add(1);
  writer.Run({"MULTI"});
  writer.Run({"SET", "a", "4"});
  tell({{"EXEC"}});
  test.engine.ReceiveMail(listener.lane);
  EXPECT_NE(std::string::npos, monitor.TakeOutput().find("\"SET\" \"a\" \"4\""));
  test.engine.observer().monitors().fetch_sub(1);
  listener.lane.mailbox.set_wake({});
  journal.Detach(sink);
}

}  // namespace
}  // namespace sava::engine
