// Many threads on one engine: sums conserved, transactions serializable, order of messages equal
// for all. Run under ThreadSanitizer by `./dev tsan`.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "engine_fixture.h"

namespace sava::engine {
namespace {

#ifdef SAVA_SANITIZED
constexpr int kRounds = 300;
#else
constexpr int kRounds = 3000;
#endif

template <typename Work>
void OnLanes(TestEngine& test, size_t lanes, const Work& work) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < lanes; ++i) {
    threads.emplace_back([&test, &work, i] {
      TestClient client(test, i);
      work(client, i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

int64_t Number(const std::string& reply) {
  // ":5\r\n" or "$1\r\n5\r\n"
  std::string_view text = reply;
  if (text.starts_with('$')) text.remove_prefix(text.find("\r\n") + 1);
  text.remove_prefix(1);
  int64_t value = 0;
  base::ParseInt(text.substr(0, text.find('\r')), &value);
  return value;
}

TEST(Concurrency, IncrementsOnSharedKeysAddUp) {
  TestEngine test(3);
  OnLanes(test, 3, [](TestClient& client, size_t lane) {
    std::mt19937 random(static_cast<unsigned>(lane));
    for (int i = 0; i < kRounds; ++i) {
      client.RunPatiently({"INCR", "key" + std::to_string(random() % 8)});
      client.RunPatiently({"INCR", "total"});
    }
  });
  TestClient client(test, 0);
  int64_t sum = 0;
  for (int i = 0; i < 8; ++i) sum += Number(client.Run({"GET", "key" + std::to_string(i)}));
  EXPECT_EQ(sum, 3 * kRounds);
  EXPECT_EQ(Number(client.Run({"GET", "total"})), 3 * kRounds);
}

TEST(Concurrency, MsetIsSeenWholeOrNotAtAll) {
  TestEngine test(3);
  OnLanes(test, 3, [](TestClient& client, size_t lane) {
    for (int i = 0; i < kRounds; ++i) {
      if (lane == 0) {
        const std::string n = std::to_string(100000 + i);
        client.RunPatiently({"MSET", "a", n, "b", n, "c", n});
      } else {
        const std::string reply = client.RunPatiently({"MGET", "a", "b", "c"});
        if (reply.starts_with("*3\r\n$6")) {
          const std::string first = reply.substr(4, 12);
          EXPECT_EQ(reply, "*3\r\n" + first + first + first);
        }
      }
    }
  });
}

TEST(Concurrency, WatchGuardedTransfersConserveTheSum) {
  TestEngine test(3);
  {
    TestClient client(test, 0);
    for (int i = 0; i < 4; ++i) client.Run({"SET", "account" + std::to_string(i), "1000"});
  }
  OnLanes(test, 3, [](TestClient& client, size_t lane) {
    std::mt19937 random(static_cast<unsigned>(lane) + 7);
    for (int i = 0; i < kRounds / 3; ++i) {
      const std::string from = "account" + std::to_string(random() % 4);
      const std::string to = "account" + std::to_string(random() % 4);
      if (from == to) continue;
      client.RunPatiently({"WATCH", from, to});
      const int64_t a = Number(client.RunPatiently({"GET", from}));
      const int64_t b = Number(client.RunPatiently({"GET", to}));
      client.RunPatiently({"MULTI"});
      client.RunPatiently({"SET", from, std::to_string(a - 1)});
      client.RunPatiently({"SET", to, std::to_string(b + 1)});
      client.RunPatiently({"EXEC"});
    }
  });
  TestClient client(test, 0);
  int64_t sum = 0;
  for (int i = 0; i < 4; ++i) sum += Number(client.Run({"GET", "account" + std::to_string(i)}));
  EXPECT_EQ(sum, 4000);
}

// Each side watches what the other writes: both succeeding would be write skew.
TEST(Concurrency, CrossWatchedTransactionsNeverBothSucceed) {
  TestEngine test(2);
  std::atomic<int> turn{0};
  std::vector<int> wins(static_cast<size_t>(kRounds), 0);
  std::atomic<int> arrived{0};
  std::vector<std::atomic<int>> results(static_cast<size_t>(kRounds));
  OnLanes(test, 2, [&](TestClient& client, size_t lane) {
    const std::string mine = lane == 0 ? "x" : "y";
    const std::string other = lane == 0 ? "y" : "x";
    for (int i = 0; i < kRounds; ++i) {
      client.RunPatiently({"WATCH", other});
      client.RunPatiently({"MULTI"});
      client.RunPatiently({"INCR", mine});
      arrived.fetch_add(1);
      while (arrived.load() < 2 * i + 2) std::this_thread::yield();
      const std::string reply = client.RunPatiently({"EXEC"});
      if (reply.starts_with("*1")) results[static_cast<size_t>(i)].fetch_add(1);
      turn.fetch_add(1);
      while (turn.load() < 2 * i + 2) std::this_thread::yield();
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    EXPECT_LE(results[static_cast<size_t>(i)].load(), 1) << "round " << i;
  }
}

TEST(Concurrency, SubscribersSeeMessagesInTheSameOrder) {
  TestEngine test(4);
  std::vector<std::string> seen(2);
  std::atomic<int> publishing{2};
  std::atomic<int> ready{0};
  OnLanes(test, 4, [&](TestClient& client, size_t lane) {
    if (lane < 2) {
      client.Run({"SUBSCRIBE", "news"});
      ready.fetch_add(1);
      while (publishing.load() > 0) {
        test.engine.ReceiveMail(client.lane);
        seen[lane] += client.TakeOutput();
      }
      test.engine.ReceiveMail(client.lane);
      seen[lane] += client.TakeOutput();
    } else {
      while (ready.load() < 2) std::this_thread::yield();
      for (int i = 0; i < kRounds; ++i) {
        client.RunPatiently({"PUBLISH", "news", std::to_string(lane) + ":" + std::to_string(i)});
      }
      publishing.fetch_sub(1);
    }
  });
  EXPECT_GT(seen[0].size(), static_cast<size_t>(kRounds) * 2 * 20);
  EXPECT_EQ(seen[0], seen[1]);
}

TEST(Concurrency, WholeDatabaseCommandsMixWithEverythingElse) {
  TestEngine test(3);
  OnLanes(test, 3, [&](TestClient& client, size_t lane) {
    std::mt19937 random(static_cast<unsigned>(lane) + 99);
    for (int i = 0; i < kRounds; ++i) {
      const std::string key = "k" + std::to_string(random() % 500);
      switch (random() % 12) {
        case 0:
          client.RunPatiently({"FLUSHALL"});
          break;
        case 1:
          client.RunPatiently({"SWAPDB", "0", "1"});
          break;
        case 2:
          client.RunPatiently({"RENAME", key, "other"});
          break;
        case 3:
          client.RunPatiently({"KEYS", "*"});
          break;
        case 4:
          client.RunPatiently({"SCAN", "0", "COUNT", "100"});
          break;
        case 5:
          client.RunPatiently({"RANDOMKEY"});
          break;
        case 6:
          client.RunPatiently({"EXPIRE", key, "100"});
          break;
        case 7:
          client.RunPatiently({"MSET", key, "1", key + "b", "2"});
          break;
        case 8:
          test.engine.Upkeep(client.lane);
          break;
        default:
          client.RunPatiently({"SET", key, std::string(random() % 600, 'v')});
      }
    }
  });
  TestClient client(test, 0);
  EXPECT_EQ(client.Run({"PING_"}).substr(0, 4), "-ERR");
}

TEST(Concurrency, EvictionByAllThreadsStaysNearTheLimit) {
  TestEngine test(3);
  test.settings.maxmemory = 3 << 20;
  test.settings.maxmemory_policy = config::MaxmemoryPolicy::kAllkeysLru;
  OnLanes(test, 3, [&](TestClient& client, size_t lane) {
    for (int i = 0; i < kRounds * 3; ++i) {
      client.RunPatiently(
          {"SET", "key:" + std::to_string(lane) + ":" + std::to_string(i), std::string(400, 'v')});
    }
  });
  EXPECT_LT(test.engine.memory().Used(), (3U << 20) + (512U << 10));
  if (kRounds * 9 * 450 > (4 << 20)) {
    EXPECT_GT(test.engine.memory().Used(), 2U << 20);
  }
}

}  // namespace
}  // namespace sava::engine
