// The list, queue and repository of document S0 as bench/comparison_service.cc has them: the list
// against the port of listing 14, the queue from several threads.
#include "../../bench/comparison_list.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "afc_oracle.h"
#include "base/rng.h"

namespace comparison {
namespace {

using Repository = AssociationRepository<std::string, std::string, std::hash<std::string>>;

TEST(ComparisonList, IsThatOfTheListing) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    sava::base::Rng rng(seed);
    AFCList<std::string> list;
    sava::types::ListedInsert oracle;
    for (int step = 0; step < 1000; ++step) {
      const std::string key = std::to_string(rng.Below(1 + rng.Below(40)));
      list.SaveNewAssociatedKey(key);
      oracle.SaveNewAssociatedKey(key);
    }
    sava::types::Counted all;
    for (const auto& node : list.GetMostFrequentAssociatedKeys(SIZE_MAX)) {
      all.emplace_back(node.associated_key, node.frequency);
    }
    ASSERT_EQ(all, oracle.All()) << seed;
    const auto first = list.GetMostFrequentAssociatedKeys(3);
    ASSERT_EQ(first.size(), 3U);
    EXPECT_EQ(first[2].associated_key, all[2].first);
  }
}

TEST(ComparisonList, IsTheSameWhenItIsLoaded) {
  Repository saved(0);
  for (int i = 0; i < 200; ++i) {
    saved.SaveAssociationInBackground("a", std::to_string(i * i % 37));
    saved.SaveAssociationInBackground("b", std::to_string(i % 5));
  }
  Repository loaded(0);
  saved.ForEach([&loaded](const std::string& key, const std::string& associated, uint32_t n) {
    loaded.Load(key, associated, n);
  });
  for (const char* key : {"a", "b"}) {
    const auto before = saved.GetMostFrequentAssociatedKeys(key, SIZE_MAX);
    const auto after = loaded.GetMostFrequentAssociatedKeys(key, SIZE_MAX);
    ASSERT_EQ(before.size(), after.size());
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(before[i].associated_key, after[i].associated_key);
      EXPECT_EQ(before[i].frequency, after[i].frequency);
    }
  }
}

// What is recorded is in the queue, and in the lists when the job has run.
TEST(ComparisonQueue, KeepsEverythingForTheJob) {
  Repository repository(0);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&repository] {
      for (int i = 0; i < 2500; ++i) repository.SaveNewAssociation("key", std::to_string(i % 10));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(repository.GetMostFrequentAssociatedKeys("key", 10).empty());
  repository.Drain();
  const auto all = repository.GetMostFrequentAssociatedKeys("key", 100);
  ASSERT_EQ(all.size(), 10U);
  for (const auto& node : all) EXPECT_EQ(node.frequency, 1000U);
  repository.DeleteAllAssociatedKeys("key");
  EXPECT_TRUE(repository.GetMostFrequentAssociatedKeys("key", 10).empty());
}

TEST(ComparisonQueue, TheJobRunsByItself) {
  Repository repository(1);
  repository.SaveNewAssociation("key", "associated");
  for (int i = 0; i < 1000; ++i) {
    if (!repository.GetMostFrequentAssociatedKeys("key", 1).empty()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(repository.GetMostFrequentAssociatedKeys("key", 1).size(), 1U);
}

}  // namespace
}  // namespace comparison
