// Texts that many small hashes share: taken in when they are frequent, never when they occur once,
// and the same hash with and without numbers.
#include "types/collections/shared_texts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "types/collections/hash.h"
#include "types/value/save.h"

namespace sava::types {
namespace {

std::map<std::string, std::string> Contents(const Hash& hash) {
  std::map<std::string, std::string> contents;
  hash.ForEach(Hash::kNever, [&](std::string_view field, std::string_view value) {
    contents.emplace(field, value);
  });
  return contents;
}

std::vector<std::string> Names(const Hash& hash) {
  std::vector<std::string> names;
  for (const auto& [field, value] : Contents(hash)) names.push_back(field);
  return names;
}

TEST(SharedTexts, TakesInWhatIsFrequent) {
  SharedTexts names(SharedTexts::kShortestName);
  for (int i = 0; i < SharedTexts::kWanted; ++i) {
    EXPECT_EQ(names.Use("frequent"), SharedTexts::kNone);
  }
  const uint16_t number = names.Use("frequent");
  ASSERT_NE(number, SharedTexts::kNone);
  EXPECT_EQ(names.Use("frequent"), number);
  EXPECT_EQ(names.Find("frequent"), number);
  EXPECT_EQ(names.Text(number), "frequent");
  EXPECT_EQ(names.Find("rare name"), SharedTexts::kNone);
  EXPECT_EQ(names.size(), 1U);
}

TEST(SharedTexts, LeavesOutWhatOccursOnce) {
  SharedTexts names(SharedTexts::kShortestName);
  for (int i = 0; i < 400'000; ++i) names.Use("unique:" + std::to_string(i));
  EXPECT_EQ(names.size(), 0U);
  for (int i = 0; i < 1000; ++i) {
    names.Use("tiny");
    names.Use(std::string(SharedTexts::kLongest + 1, 'x'));
  }
  EXPECT_EQ(names.size(), 0U);
}

TEST(SharedTexts, IsFullAtSomeTime) {
  SharedTexts names(SharedTexts::kShortestName);
  for (int i = 0; i < 4600; ++i) {
    // After the many that occurred once above, few are counted until one is known.
    const int times = i == 0 ? 1000 : 150;
    for (int k = 0; k < times; ++k) names.Use("name:" + std::to_string(i));
  }
  EXPECT_EQ(names.size(), SharedTexts::kMost);
  for (int i = 0; i < 4600; ++i) {
    const std::string name = "name:" + std::to_string(i);
    const uint16_t number = names.Find(name);
    if (number != SharedTexts::kNone) {
      EXPECT_EQ(names.Text(number), name);
    }
  }
}

TEST(SharedTexts, ManyThreadsAgree) {
  SharedTexts names(SharedTexts::kShortestName);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&names] {
      for (int i = 0; i < 46000; ++i) {
        const std::string name = "shared:" + std::to_string(i % 50);
        const uint16_t number = names.Use(name);
        if (number != SharedTexts::kNone) {
          ASSERT_EQ(names.Text(number), name);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(names.size(), 50U);
}

// A hash of names that have numbers is smaller, and otherwise the same.
TEST(SharedTexts, HashesUseThemForNames) {
  const CollectionLimits limits;
  int counter = 0;
  const auto make = [&] {
    auto hash = std::make_unique<Hash>();
    for (int i = 0; i < 10; ++i) {
      hash->Set("field:" + std::to_string(i), fmt::format("{:016}", ++counter), 0, limits);
    }
    return hash;
  };
  const auto before = make();
  for (int i = 0; i < 3 * SharedTexts::kWanted; ++i) make();
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
  EXPECT_EQ(Names(*before), Names(*after));
  EXPECT_EQ(Names(*before).size(), 10U);
}

// The same for values, with and without numbers for the names.
TEST(SharedTexts, HashesUseThemForValues) {
  const CollectionLimits limits;
  const std::string long_value(40, 'r');
  const auto make = [&](const std::string& prefix) {
    auto hash = std::make_unique<Hash>();
    for (int i = 0; i < 10; ++i) {
      hash->Set(prefix + std::to_string(i), long_value + std::to_string(i % 3), 0, limits);
    }
    return hash;
  };
  const auto before = make("a");
  for (int i = 0; i < 3 * SharedTexts::kWanted; ++i) make("a");
  const auto after = make("a");
  for (int i = 0; i < 3 * SharedTexts::kWanted; ++i) make("long name ");
  const auto both = make("long name ");
  // Of ten fields: 1 or 2 bytes, the name and the value; 5 bytes and the name; 6 bytes.
  EXPECT_EQ(before->MemoryUsage(0), 512U + 16);
  EXPECT_EQ(after->MemoryUsage(0), 96U + 16);
  EXPECT_EQ(both->MemoryUsage(0), 80U + 16);
  EXPECT_EQ(Contents(*before), Contents(*after));
  EXPECT_EQ(Contents(*both).size(), 10U);
  for (const auto& [field, value] : Contents(*both)) {
    EXPECT_EQ(value, long_value + std::to_string((field.back() - '0') % 3));
  }
  std::string bytes;
  for (Hash* const hash : {before.get(), after.get()}) {
    std::string_view value;
    ASSERT_TRUE(hash->Find("a4", 0, &value));
    EXPECT_EQ(value, long_value + "1");
    EXPECT_FALSE(hash->Set("a4", "short", 0, limits));
    EXPECT_FALSE(hash->Set("a5", long_value + "0", 0, limits));
    EXPECT_TRUE(hash->Set("", long_value + "2", 0, limits));
    EXPECT_TRUE(hash->Remove("a6"));
    const std::unique_ptr<Object> copy = hash->Copy();
    EXPECT_EQ(Contents(static_cast<const Hash&>(*copy)), Contents(*hash));
    std::string saved;
    {
      Writer out(&saved, false);
      hash->Save(out);
    }
    if (bytes.empty()) bytes = saved;
    EXPECT_EQ(saved, bytes);
  }
  EXPECT_EQ(Contents(*before), Contents(*after));
  // Long values without a number beside names that have one, and back to the table.
  EXPECT_FALSE(both->Set("long name 1", std::string(SharedTexts::kLongest, 'u'), 0, limits));
  EXPECT_EQ(Contents(*both)["long name 1"], std::string(SharedTexts::kLongest, 'u'));
  both->Expect(0, 1000, limits);
  EXPECT_EQ(both->encoding(), "hashtable");
  EXPECT_EQ(Contents(*both)["long name 2"], long_value + "2");
}

}  // namespace
}  // namespace sava::types
