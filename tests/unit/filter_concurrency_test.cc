// Many threads on one filter: nothing that was added is lost, and nobody sees half a change. Run
// under ThreadSanitizer by `./dev tsan`.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "engine_fixture.h"

namespace sava::engine {
namespace {

constexpr size_t kLanes = 4;
#ifdef SAVA_SANITIZED
constexpr int kItems = 1500;
#else
constexpr int kItems = 10'000;
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

std::string Item(size_t lane, int i) { return std::to_string(lane) + ":" + std::to_string(i); }

void AddFromAllLanes(const std::vector<std::string>& reserve) {
  TestEngine test(kLanes);
  if (!reserve.empty()) {
    EXPECT_EQ(TestClient(test, 0).Run(reserve), "+OK\r\n");
  }
  OnLanes(test, [](TestClient& client, size_t lane) {
    for (int i = 0; i < kItems; ++i) {
      client.RunPatiently({"BF.ADD", "k", Item(lane, i)});
      EXPECT_EQ(client.RunPatiently({"BF.EXISTS", "k", Item(lane, i)}), ":1\r\n");
    }
  });
  TestClient client(test, 0);
  for (size_t lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < kItems; ++i) {
      ASSERT_EQ(client.Run({"BF.EXISTS", "k", Item(lane, i)}), ":1\r\n") << Item(lane, i);
    }
  }
}

TEST(FilterConcurrency, Grown) { AddFromAllLanes({}); }
TEST(FilterConcurrency, Blocked) {
  AddFromAllLanes({"BF.RESERVE", "k", "0.01", std::to_string(kItems * kLanes)});
}
TEST(FilterConcurrency, Beyond) { AddFromAllLanes({"BF.RESERVE", "k", "0.01", "500"}); }
TEST(FilterConcurrency, Classic) {
  AddFromAllLanes(
      {"BF.RESERVE", "k", "0.01", std::to_string(kItems * kLanes), "LAYOUT", "CLASSIC"});
}

// Each lane adds and deletes its own; what is left is what nobody deleted.
TEST(FilterConcurrency, Deletions) {
  TestEngine test(kLanes);
  EXPECT_EQ(TestClient(test, 0).Run({"BF.RESERVE", "k", "0.01", "100", "DELETABLE"}), "+OK\r\n");
  OnLanes(test, [](TestClient& client, size_t lane) {
    for (int i = 0; i < kItems; ++i) {
      client.RunPatiently({"BF.ADD", "k", Item(lane, i)});
      client.RunPatiently({"CF.ADD", "c", Item(lane, i % 50)});
      if (i % 3 == 0) continue;
      EXPECT_EQ(client.RunPatiently({"BF.DEL", "k", Item(lane, i)}), ":1\r\n");
      EXPECT_EQ(client.RunPatiently({"CF.DEL", "c", Item(lane, i % 50)}), ":1\r\n");
    }
  });
  TestClient client(test, 0);
  for (size_t lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < kItems; i += 3) {
      ASSERT_EQ(client.Run({"BF.EXISTS", "k", Item(lane, i)}), ":1\r\n") << Item(lane, i);
    }
  }
  const int kept = (kItems + 2) / 3 * static_cast<int>(kLanes);
  EXPECT_EQ(client.Run({"BF.CARD", "k"}), ":" + std::to_string(kept) + "\r\n");
}

}  // namespace
}  // namespace sava::engine
