// Many threads on counters: no increment is lost, whoever reads sees a whole counter, and members
// shared through the dictionary live as long as somebody counts them. Run under ThreadSanitizer by
// `./dev tsan`.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "afc_members.h"
#include "base/text.h"
#include "engine_fixture.h"
#include "types/counters/afc.h"

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

int64_t Number(std::string_view reply) {
  int64_t value = -1;
  EXPECT_TRUE(reply.starts_with(':')) << reply;
  base::ParseInt(reply.substr(1, reply.find('\r') - 1), &value);
  return value;
}

// The integers of a RESP2 reply in order.
std::vector<int64_t> Integers(const std::string& reply) {
  std::vector<int64_t> numbers;
  for (size_t at = reply.find(':'); at != std::string::npos; at = reply.find("\r\n:", at)) {
    if (reply[at] != ':') at += 2;
    int64_t value = 0;
    base::ParseInt(std::string_view(reply).substr(at + 1, reply.find('\r', at) - at - 1), &value);
    numbers.push_back(value);
  }
  return numbers;
}

TEST(AfcConcurrency, IncrementsAddUp) {
  TestEngine test(kLanes);
  constexpr int kKeys = 3;
  constexpr int kMembers = 2000;  // beyond the packed layout
  OnLanes(test, [](TestClient& client, size_t lane) {
    std::mt19937 random(static_cast<unsigned>(lane));
    for (int i = 0; i < kRounds; ++i) {
      const std::string key = "k" + std::to_string(random() % kKeys);
      client.RunPatiently({"AFC.ADD", key, types::UuidName(types::Skewed(random, kMembers))});
      client.RunPatiently({"AFC.INCRBY", "total", "m" + std::to_string(i % 5), "2"});
    }
  });
  TestClient client(test, 0);
  int64_t sum = 0;
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = "k" + std::to_string(i);
    const int64_t total = Number(client.Run({"AFC.TOTAL", key}));
    const int64_t card = Number(client.Run({"AFC.CARD", key}));
    int64_t counted = 0;
    int64_t last = INT64_MAX;
    const std::vector<int64_t> counts =
        Integers(client.Run({"AFC.TOP", key, "1000000", "WITHCOUNTS"}));
    for (const int64_t count : counts) {
      EXPECT_LE(count, last);
      last = count;
      counted += count;
    }
    EXPECT_EQ(static_cast<int64_t>(counts.size()), card);
    EXPECT_EQ(counted, total);
    sum += total;
  }
  EXPECT_EQ(sum, static_cast<int64_t>(kLanes) * kRounds);
  EXPECT_EQ(Number(client.Run({"AFC.TOTAL", "total"})), static_cast<int64_t>(kLanes) * kRounds * 2);
}

TEST(AfcConcurrency, ReadersSeeWholeCounters) {
  TestEngine test(kLanes);
  OnLanes(test, [](TestClient& client, size_t lane) {
    std::mt19937 random(static_cast<unsigned>(lane) + 10);
    for (int i = 0; i < kRounds; ++i) {
      if (lane == 0 && i % 50 == 0) {
        client.RunPatiently({"DEL", "k"});
      } else if (lane == 1) {
        // Both members always change together, so they are equal whenever one looks.
        const std::vector<int64_t> counts =
            Integers(client.RunPatiently({"AFC.COUNT", "k", "left", "right"}));
        ASSERT_EQ(counts.size(), 2U);
        EXPECT_EQ(counts[0], counts[1]);
        const std::string top = client.RunPatiently({"AFC.TOP", "k", "3", "WITHCOUNTS"});
        EXPECT_TRUE(top.starts_with('*')) << top;
      } else {
        client.RunPatiently(
            {"AFC.ADD", "k", "left", "right", types::MixedName(static_cast<int>(random() % 3000))});
      }
    }
  });
}

TEST(AfcConcurrency, SharedMembersLiveAsLongAsTheyAreCounted) {
  TestEngine test(kLanes);
  constexpr int kKeys = 40;
  // Counters with the same members come and go; every answer is a member somebody could have added.
  std::vector<std::string> members;
  members.reserve(50);
  for (int i = 0; i < 50; ++i) members.push_back(types::UuidName(i));
  OnLanes(test, [&members](TestClient& client, size_t lane) {
    std::mt19937 random(static_cast<unsigned>(lane) + 20);
    for (int i = 0; i < kRounds; ++i) {
      const std::string key = "k" + std::to_string(random() % kKeys);
      const std::string other = "k" + std::to_string(random() % kKeys);
      switch (random() % 12) {
        case 0:
          client.RunPatiently({"DEL", key});
          break;
        case 1:
          client.RunPatiently({"COPY", key, other, "REPLACE"});
          break;
        case 2:
          client.RunPatiently({"AFC.MERGE", key, other});
          break;
        case 3:
          client.RunPatiently({"AFC.REM", key, members[random() % members.size()]});
          break;
        case 4: {
          const std::string top = client.RunPatiently({"AFC.TOP", key, "100"});
          for (size_t at = top.find("$36\r\n"); at != std::string::npos;
               at = top.find("$36\r\n", at + 1)) {
            const std::string member = top.substr(at + 5, 36);
            EXPECT_NE(std::find(members.begin(), members.end(), member), members.end()) << member;
          }
          break;
        }
        default:
          client.RunPatiently({"AFC.ADD", key, members[random() % members.size()],
                               members[random() % members.size()]});
      }
    }
  });
  TestClient client(test, 0);
  EXPECT_EQ(client.RunPatiently({"FLUSHALL"}), "+OK\r\n");
}

// The type alone: counters of different threads share nothing but the dictionary.
TEST(AfcConcurrency, CountersOfDifferentThreadsShareTheDictionary) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      std::mt19937 random(t);
      std::vector<std::unique_ptr<types::Afc>> afcs(20);
      std::vector<std::unique_ptr<types::CounterModel>> models(20);
      for (int i = 0; i < kRounds * 4; ++i) {
        const size_t at = random() % afcs.size();
        if (afcs[at] == nullptr || random() % 500 == 0) {
          if (afcs[at] != nullptr) {
            EXPECT_EQ(types::All(*afcs[at]), models[at]->All());
          }
          afcs[at] = std::make_unique<types::Afc>();
          models[at] = std::make_unique<types::CounterModel>();
        }
        const std::string member = types::UuidName(static_cast<int>(random() % 120));
        if (random() % 8 == 0) {
          EXPECT_EQ(afcs[at]->Remove(member, 0), models[at]->Remove(member));
        } else {
          EXPECT_EQ(afcs[at]->Add(member, 1, 0).count, models[at]->Add(member, 1).count);
        }
      }
      for (size_t i = 0; i < afcs.size(); ++i) {
        if (afcs[i] == nullptr) continue;
        EXPECT_EQ(types::All(*afcs[i]), models[i]->All());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace sava::engine
