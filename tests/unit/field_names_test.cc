// Names that many small hashes share: taken in when they are frequent, never when they occur once,
// and the same hash with and without numbers.
#include "types/field_names.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "types/hash.h"

namespace sava::types {
namespace {

TEST(FieldNames, TakesInWhatIsFrequent) {
  FieldNames names;
  for (int i = 0; i < FieldNames::kWanted; ++i) {
    EXPECT_EQ(names.Use("frequent"), FieldNames::kNone);
  }
  const uint16_t number = names.Use("frequent");
  ASSERT_NE(number, FieldNames::kNone);
  EXPECT_EQ(names.Use("frequent"), number);
  EXPECT_EQ(names.Find("frequent"), number);
  EXPECT_EQ(names.Name(number), "frequent");
  EXPECT_EQ(names.Find("rare name"), FieldNames::kNone);
  EXPECT_EQ(names.size(), 1U);
}

TEST(FieldNames, LeavesOutWhatOccursOnce) {
  FieldNames names;
  for (int i = 0; i < 400'000; ++i) names.Use("unique:" + std::to_string(i));
  EXPECT_EQ(names.size(), 0U);
  for (int i = 0; i < 1000; ++i) {
    names.Use("tiny");
    names.Use(std::string(FieldNames::kLongest + 1, 'x'));
  }
  EXPECT_EQ(names.size(), 0U);
}

TEST(FieldNames, IsFullAtSomeTime) {
  FieldNames names;
  for (int i = 0; i < 4600; ++i) {
    for (int k = 0; k < 150; ++k) names.Use("name:" + std::to_string(i));
  }
  EXPECT_EQ(names.size(), FieldNames::kMost);
  for (int i = 0; i < 4600; ++i) {
    const std::string name = "name:" + std::to_string(i);
    const uint16_t number = names.Find(name);
    if (number != FieldNames::kNone) {
      EXPECT_EQ(names.Name(number), name);
    }
  }
}

TEST(FieldNames, ManyThreadsAgree) {
  FieldNames names;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&names] {
      for (int i = 0; i < 46000; ++i) {
        const std::string name = "shared:" + std::to_string(i % 50);
        const uint16_t number = names.Use(name);
        if (number != FieldNames::kNone) {
          ASSERT_EQ(names.Name(number), name);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(names.size(), 50U);
}

// A hash of names that have numbers is smaller, and otherwise the same.
TEST(FieldNames, HashesUseThem) {
  const CollectionLimits limits;
  const auto make = [&] {
    auto hash = std::make_unique<Hash>();
    for (int i = 0; i < 10; ++i) {
      hash->Set("field:" + std::to_string(i), std::string(16, 'v'), 0, limits);
    }
    return hash;
  };
  const auto before = make();
  for (int i = 0; i < 3 * FieldNames::kWanted; ++i) make();
  const auto after = make();
  EXPECT_EQ(before->MemoryUsage(0), 256U + 16);
  EXPECT_EQ(after->MemoryUsage(0), 224U + 16);
  for (const auto& hash : {before.get(), after.get()}) {
    EXPECT_FALSE(hash->Set("field:3", "changed", 0, limits));
    EXPECT_TRUE(hash->Set("other", "1", 0, limits));
    EXPECT_TRUE(hash->Remove("field:5"));
    EXPECT_FALSE(hash->Remove("field:5"));
    std::string_view value;
    ASSERT_TRUE(hash->Find("field:3", 0, &value));
    EXPECT_EQ(value, "changed");
    EXPECT_FALSE(hash->Set("field:4", std::string(60, 'l'), 0, limits));
    EXPECT_FALSE(hash->Set("field:9", "", 0, limits));
  }
  std::vector<std::string> texts[2];
  before->Digest([&](std::string_view part) { texts[0].emplace_back(part); });
  after->Digest([&](std::string_view part) { texts[1].emplace_back(part); });
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(texts[0].size(), 10U);
}

}  // namespace
}  // namespace sava::types
