// Many threads on one sketch: nothing is lost, and whoever reads sees a whole sketch. Run under
// ThreadSanitizer by `./dev tsan`.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "engine_fixture.h"
#include "types/sketches/simhash_text.h"

namespace sava::engine {
namespace {

constexpr size_t kLanes = 4;
#ifdef SAVA_SANITIZED
constexpr int kRounds = 500;
#else
constexpr int kRounds = 5000;
#endif

template <typename Work>
void OnLanes(TestEngine& test, const Work& work) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kLanes; ++i) {
    threads.emplace_back([&test, &work, i] {
      TestClient client(test, i);
      work(client, i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// More counters than items: every count is exact, so that a lost one would show.
TEST(SketchConcurrency, CountMinLosesNothing) {
  TestEngine test(kLanes);
  TestClient client(test, 0);
  ASSERT_EQ(client.Run({"CMS.INITBYDIM", "k", "100000", "5"}), "+OK\r\n");
  constexpr int kItems = 20;
  OnLanes(test, [](TestClient& own, size_t) {
    for (int i = 0; i < kRounds; ++i) {
      own.RunPatiently({"CMS.INCRBY", "k", "i" + std::to_string(i % kItems), "1", "all", "2"});
    }
  });
  constexpr int kAll = static_cast<int>(kLanes) * kRounds;
  EXPECT_EQ(client.Run({"CMS.QUERY", "k", "all"}), "*1\r\n:" + std::to_string(2 * kAll) + "\r\n");
  for (int i = 0; i < kItems; ++i) {
    EXPECT_EQ(client.Run({"CMS.QUERY", "k", "i" + std::to_string(i)}),
              "*1\r\n:" + std::to_string(kAll / kItems) + "\r\n");
  }
  EXPECT_NE(client.Run({"CMS.INFO", "k"}).find(":" + std::to_string(3 * kAll) + "\r\n"),
            std::string::npos);
}

TEST(SketchConcurrency, TopKLosesNothing) {
  TestEngine test(kLanes);
  TestClient client(test, 0);
  ASSERT_EQ(client.Run({"TOPK.RESERVE", "k", "30"}), "+OK\r\n");
  constexpr int kItems = 20;
  OnLanes(test, [](TestClient& own, size_t lane) {
    for (int i = 0; i < kRounds; ++i) {
      own.RunPatiently({"TOPK.ADD", "k", "i" + std::to_string(i % kItems)});
      if (lane == 0 && i % 100 == 0) {
        EXPECT_TRUE(own.RunPatiently({"TOPK.LIST", "k", "WITHCOUNT"}).starts_with('*'));
      }
    }
  });
  for (int i = 0; i < kItems; ++i) {
    EXPECT_EQ(client.Run({"TOPK.COUNT", "k", "i" + std::to_string(i)}),
              "*1\r\n:" + std::to_string(static_cast<int>(kLanes) * kRounds / kItems) + "\r\n");
  }
}

// Documents of all threads, across the threshold of the index; each finds its own at once.
TEST(SketchConcurrency, SimHashLosesNothing) {
  TestEngine test(kLanes);
  OnLanes(test, [](TestClient& own, size_t lane) {
    base::Rng rng(lane);
    for (int i = 0; i < kRounds; ++i) {
      const std::string id = std::to_string(lane) + ":" + std::to_string(i);
      const std::string hash = types::FingerprintText(rng.Next());
      own.RunPatiently({"SIMHASH.ADD", "k", id, "HASH", hash});
      const std::string found = own.RunPatiently({"SIMHASH.QUERY", "k", "HASH", hash});
      EXPECT_NE(found.find("\r\n" + id + "\r\n"), std::string::npos) << found;
    }
  });
  TestClient client(test, 0);
  EXPECT_EQ(client.Run({"SIMHASH.CARD", "k"}),
            ":" + std::to_string(static_cast<int>(kLanes) * kRounds) + "\r\n");
}

}  // namespace
}  // namespace sava::engine
