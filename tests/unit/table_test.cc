// The table of one stripe against a plain map, through growth, splitting, merging and shrinking.
#include "keyspace/table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>

namespace sava::keyspace {
namespace {

constexpr uint64_t kSeed = 42;

class TableTest : public testing::Test {
 protected:
  static uint64_t Hash(const std::string& key) { return KeyHasher(kSeed)(key); }

  void Set(const std::string& key, const std::string& text, int64_t expire_at = -1) {
    NewValue value;
    value.bytes = text;
    if (Entry::SizeFor(key.size(), true, text.size()) > Entry::kMaxInline) {
      value.blob = base::Blob::Copy(text);
    }
    Displaced displaced;
    table_.Put(Hash(key), key, value, expire_at, &displaced);
    Drop(displaced);
  }
  bool Remove(const std::string& key) {
    Displaced displaced;
    const bool removed = table_.Remove(Hash(key), key, &displaced);
    Drop(displaced);
    return removed;
  }
  std::string Get(const std::string& key) {
    Entry* entry = table_.Find(Hash(key), key);
    if (entry == nullptr) return "(none)";
    return std::string(entry->has(kExternal) ? entry->blob()->view() : entry->inline_bytes());
  }
  static void Drop(const Displaced& displaced) {
    if (displaced.blob != nullptr) displaced.blob->Unref();
    delete displaced.object;
  }
  std::multiset<std::string> ScanAll(size_t count) {
    std::multiset<std::string> seen;
    uint64_t order = 0;
    do {
      order = table_.Scan(order, count, [&](Entry* entry) { seen.emplace(entry->key()); });
    } while (order != 0);
    return seen;
  }

  Epoch epoch_{1};
  bool version_ = false;
  Totals totals_;
  Table table_{{&epoch_, KeyHasher(kSeed), &version_, &totals_}, 0};
};

TEST_F(TableTest, AgreesWithAMapForRandomHistories) {
  const auto seed = static_cast<unsigned>(std::random_device{}());
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937 random(seed);
  std::map<std::string, std::string> model;
  std::map<std::string, int64_t> expiries;
  // The universe breathes, so that segments grow, split, shrink and merge.
  for (int phase = 0; phase < 6; ++phase) {
    const unsigned universe = phase % 2 == 0 ? 20000 : 300;
    for (int step = 0; step < 30000; ++step) {
      const std::string key =
          "key:" + std::to_string(random() % (phase % 2 == 0 ? universe : 20000));
      const bool grow = phase % 2 == 0 ? random() % 4 != 0 : random() % 8 == 0;
      if (grow) {
        const std::string value(random() % 700, static_cast<char>('a' + random() % 26));
        const int64_t expire_at = random() % 3 == 0 ? 1000000 + random() % 1000 : -1;
        Set(key, value, expire_at);
        model[key] = value;
        expiries[key] = expire_at;
      } else {
        EXPECT_EQ(Remove(key), model.erase(key) == 1) << "seed " << seed;
        expiries.erase(key);
      }
    }
    table_.CheckInvariants();
    ASSERT_EQ(table_.size(), model.size()) << "seed " << seed;
    for (const auto& [key, value] : model) {
      ASSERT_EQ(Get(key), value) << "seed " << seed;
      ASSERT_EQ(table_.Find(Hash(key), key)->expire_at(), expiries[key]);
    }
    EXPECT_EQ(Get("missing"), "(none)");
  }
}

TEST_F(TableTest, ScanReportsEveryKeyExactlyOnceWhenNothingChanges) {
  for (int i = 0; i < 5000; ++i) Set("k" + std::to_string(i), "v");
  for (const size_t count : {1UL, 10UL, 1000UL}) {
    const auto seen = ScanAll(count);
    EXPECT_EQ(seen.size(), 5000U);
    EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 5000U);
  }
}

TEST_F(TableTest, ScanFindsWhatStaysThroughGrowthAndShrinking) {
  const auto seed = static_cast<unsigned>(std::random_device{}());
  std::mt19937 random(seed);
  std::set<std::string> staying;
  for (int i = 0; i < 500; ++i) {
    staying.insert("stay" + std::to_string(i));
    Set("stay" + std::to_string(i), "v");
  }
  for (int round = 0; round < 20; ++round) {
    std::set<std::string> seen;
    uint64_t order = 0;
    int next = 0;
    const bool growing = round % 2 == 0;
    do {
      order = table_.Scan(order, 10, [&](Entry* entry) { seen.emplace(entry->key()); });
      for (int i = 0; i < 200; ++i) {
        const std::string key =
            "other" + std::to_string(growing ? next++ % 20000 : random() % 20000);
        growing ? Set(key, "v") : static_cast<void>(Remove(key));
      }
    } while (order != 0);
    for (const std::string& key : staying) {
      ASSERT_TRUE(seen.contains(key)) << key << " lost, seed " << seed;
    }
    table_.CheckInvariants();
  }
}

TEST_F(TableTest, SettingAndClearingExpiryKeepsTheValue) {
  Set("a", "value");
  Entry* entry = table_.Find(Hash("a"), "a");
  entry = table_.SetExpiry(Hash("a"), entry, 5000);
  EXPECT_EQ(entry->expire_at(), 5000);
  EXPECT_EQ(Get("a"), "value");
  EXPECT_EQ(table_.expiring(), 1U);
  entry = table_.SetExpiry(Hash("a"), entry, -1);
  EXPECT_EQ(entry->expire_at(), -1);
  EXPECT_EQ(Get("a"), "value");
  EXPECT_EQ(table_.expiring(), 0U);
}

TEST_F(TableTest, ExpiresEachKeyAfterItsTimeAndNotBefore) {
  const auto seed = static_cast<unsigned>(std::random_device{}());
  std::mt19937 random(seed);
  std::map<std::string, int64_t> expiries;
  for (int i = 0; i < 3000; ++i) {
    const std::string key = "k" + std::to_string(i);
    // From milliseconds to months: every level of the wheel.
    const int64_t at =
        1 + static_cast<int64_t>(random() % 1000) * static_cast<int64_t>(1ULL << (random() % 24));
    Set(key, "v", at);
    expiries[key] = at;
    if (random() % 4 == 0) {  // prolonged or shortened afterwards
      const int64_t moved = 1 + static_cast<int64_t>(random() % 1000000);
      table_.SetExpiry(Hash(key), table_.Find(Hash(key), key), moved);
      expiries[key] = moved;
    }
  }
  for (int64_t now = 0; now < int64_t{1} << 34; now = now < 4096 ? now + 50 : now * 9 / 8) {
    while (table_.Expire(now, 100, [&](Entry* entry) {
      const std::string key(entry->key());
      ASSERT_LT(expiries.at(key), now) << "seed " << seed;
      Remove(key);
      expiries.erase(key);
    }) >= 100) {
    }
    for (const auto& [key, at] : expiries) {
      ASSERT_GE(at + 256, now) << key << " is late, seed " << seed;
    }
  }
  EXPECT_TRUE(expiries.empty());
  EXPECT_EQ(table_.size(), 0U);
}

// Keys whose items in the wheel are stale soon, beside `others` that expire late; and what is left.
class StaleItems : public TableTest, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    for (int i = 0; i < GetParam(); ++i) Set("other" + std::to_string(i), "v", 2000000000);
  }
  void Expire(int64_t now) {
    table_.Expire(now, 1000, [](Entry*) {});
  }
  size_t ExpireAll() {
    size_t expired = 0;
    while (table_.Expire(int64_t{1} << 31, 1000, [&](Entry* entry) {
      ++expired;
      Remove(std::string(entry->key()));
    }) >= 1000) {
    }
    return expired;
  }
};

TEST_P(StaleItems, OfShortLivedKeysDoNotPileUp) {
  for (int i = 0; i < 200000; ++i) {
    Set("lock", "v", 1000000000);
    Remove("lock");
    if (i % 100 == 0) Expire(i);
  }
  for (int i = 0; i < 1000; ++i) Expire(200000 + i);
  EXPECT_LT(table_.used_bytes(), 40000U);
  EXPECT_EQ(ExpireAll(), static_cast<size_t>(GetParam()));
}

TEST_P(StaleItems, OfExpiriesSetAgainAndAgainOnOneLivingKeyDoNotPileUp) {
  for (int i = 0; i < 200000; ++i) {
    Set("session", "v");  // without an expiry: the one it had is gone
    table_.SetExpiry(Hash("session"), table_.Find(Hash("session"), "session"), 1000000000 + i);
    if (i % 100 == 0) Expire(i);
  }
  for (int i = 0; i < 1000; ++i) Expire(200000 + i);
  EXPECT_LT(table_.used_bytes(), 40000U);
  EXPECT_EQ(ExpireAll(), static_cast<size_t>(GetParam()) + 1);
}

// A few items, and so many that the wheel has levels.
INSTANTIATE_TEST_SUITE_P(Table, StaleItems, testing::Values(0, 100));

TEST_F(TableTest, SamplesTheFewKeysThatExpireAmongMany) {
  base::Rng rng(7);
  for (int i = 0; i < 20000; ++i) Set("plain" + std::to_string(i), "v");
  for (int i = 0; i < 5; ++i) Set("volatile" + std::to_string(i), "v", 1000000 + i * 100000);
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    Entry* entries[8];
    const size_t n = table_.SampleExpiring(rng, entries, 8);
    for (size_t k = 0; k < n; ++k) seen.emplace(entries[k]->key());
  }
  EXPECT_EQ(seen.size(), 5U);
}

TEST_F(TableTest, EditGrowsWithZerosAndCopiesSharedBlobs) {
  Displaced displaced;
  Set("s", "abc");
  char* data = table_.Edit(Hash("s"), "s", 6, &displaced);
  EXPECT_EQ(std::string(data, 6), std::string("abc\0\0\0", 6));
  const std::string large(2000, 'x');
  Set("s", large);
  base::Blob* shared = table_.Find(Hash("s"), "s")->blob();
  shared->Ref();
  data = table_.Edit(Hash("s"), "s", 2001, &displaced);
  data[0] = 'y';
  EXPECT_EQ(shared->view(), large);
  EXPECT_EQ(displaced.blob, shared);
  displaced.blob->Unref();
  shared->Unref();
  EXPECT_EQ(Get("s").substr(0, 2), "yx");
}

TEST_F(TableTest, CompactionGivesSparsePagesBackAndKeepsEverything) {
  std::set<std::string> kept;
  for (int i = 0; i < 20000; ++i) Set("key" + std::to_string(i), std::string(40, 'v'));
  for (int i = 0; i < 20000; ++i) {
    if (i % 10 == 0) {
      kept.insert("key" + std::to_string(i));
    } else {
      Remove("key" + std::to_string(i));
    }
  }
  const size_t before = table_.held_bytes();
  while (table_.Compact() > 0) {
  }
  EXPECT_LT(table_.held_bytes(), before / 3);
  EXPECT_LT(table_.held_bytes(), table_.used_bytes() * 5 / 4);
  table_.CheckInvariants();
  for (const std::string& key : kept) ASSERT_EQ(Get(key), std::string(40, 'v'));
}

TEST_F(TableTest, AccountsReturnToTheStartWhenEverythingIsRemoved) {
  const size_t empty = table_.used_bytes();
  for (int i = 0; i < 10000; ++i) Set("key" + std::to_string(i), std::string(i % 1000, 'v'));
  EXPECT_GT(table_.used_bytes(), 10000U * 500);
  for (int i = 0; i < 10000; ++i) Remove("key" + std::to_string(i));
  EXPECT_LT(table_.used_bytes(), empty + 4096);
}

TEST_F(TableTest, LongKeysAreKeptWhole) {
  const std::string key(70000, 'k');
  Set(key, "v", 123);
  EXPECT_EQ(Get(key), "v");
  EXPECT_EQ(table_.Find(Hash(key), key)->key().size(), key.size());
  EXPECT_TRUE(Remove(key));
}

}  // namespace
}  // namespace sava::keyspace
