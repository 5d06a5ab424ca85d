// Databases on demand, and the running totals of their tables.
#include "keyspace/keyspace.h"

#include <gtest/gtest.h>

#include <string>

namespace sava::keyspace {
namespace {

constexpr int kDatabases = 5;

class KeyspaceTest : public testing::Test {
 protected:
  void Put(int db, const std::string& key, int64_t expire_at = -1) {
    const uint64_t hash = keyspace_.Hash(key);
    NewValue value;
    value.bytes = "value";
    Displaced displaced;
    keyspace_.TableFor(db, Keyspace::StripeOf(hash), 0)
        .Put(hash, key, value, expire_at, &displaced);
  }
  void Fill(int db, int keys) {
    for (int i = 0; i < keys; ++i) Put(db, "key:" + std::to_string(i), i % 4 == 0 ? 1000 + i : -1);
  }
  // The totals are what a walk over all tables finds.
  void ExpectTotalsHold() {
    size_t keys = 0;
    size_t expiring = 0;
    size_t used = 0;
    size_t held = 0;
    for (int db = 0; db < kDatabases; ++db) {
      keys += keyspace_.Size(db);
      expiring += keyspace_.Expiring(db);
      for (size_t stripe = 0; stripe < Keyspace::kStripes; ++stripe) {
        const Table* const table = keyspace_.table(db, stripe);
        if (table == nullptr) continue;
        used += table->used_bytes();
        held += table->held_bytes();
      }
    }
    EXPECT_EQ(keyspace_.AllKeys(), keys);
    EXPECT_EQ(keyspace_.UsedBytes(), used);
    EXPECT_EQ(keyspace_.HeldBytes(), held);
    size_t told = 0;
    for (size_t stripe = 0; stripe < Keyspace::kStripes; ++stripe) {
      told += keyspace_.stripe(stripe).totals.expiring.load();
    }
    EXPECT_EQ(told, expiring);
  }

  Keyspace keyspace_{1, kDatabases, 7};
};

TEST_F(KeyspaceTest, AnUnusedDatabaseHasNoTables) {
  for (size_t stripe = 0; stripe < Keyspace::kStripes; ++stripe) {
    EXPECT_EQ(keyspace_.table(3, stripe), nullptr);
  }
  EXPECT_EQ(keyspace_.Size(3), 0U);
  EXPECT_EQ(keyspace_.UsedBytes(), 0U);
  EXPECT_TRUE(keyspace_.Detach(3).empty());
}

TEST_F(KeyspaceTest, TotalsFollowEveryChange) {
  Fill(0, 5000);
  Fill(2, 700);
  ExpectTotalsHold();
  EXPECT_EQ(keyspace_.AllKeys(), 5700U);
  for (int i = 0; i < 5000; i += 3) {
    const std::string key = "key:" + std::to_string(i);
    const uint64_t hash = keyspace_.Hash(key);
    Displaced displaced;
    EXPECT_TRUE(keyspace_.table(0, Keyspace::StripeOf(hash))->Remove(hash, key, &displaced));
  }
  ExpectTotalsHold();
}

TEST_F(KeyspaceTest, SwappedDatabasesTradeTheirTables) {
  Fill(0, 300);
  keyspace_.Swap(0, 4);
  EXPECT_EQ(keyspace_.Size(0), 0U);
  EXPECT_EQ(keyspace_.Size(4), 300U);
  ExpectTotalsHold();
  Fill(0, 10);
  keyspace_.Swap(0, 4);
  EXPECT_EQ(keyspace_.Size(4), 10U);
  EXPECT_EQ(keyspace_.Size(0), 300U);
}

TEST_F(KeyspaceTest, DetachedTablesCountNoMore) {
  Fill(0, 300);
  Fill(1, 200);
  const auto detached = keyspace_.Detach(0);
  EXPECT_FALSE(detached.empty());
  EXPECT_EQ(keyspace_.AllKeys(), 200U);
  ExpectTotalsHold();
}

TEST_F(KeyspaceTest, EmptyTablesAreGivenBack) {
  Put(1, "one");
  const uint64_t hash = keyspace_.Hash("one");
  const size_t stripe = Keyspace::StripeOf(hash);
  keyspace_.DropEmpty(1, stripe);
  ASSERT_NE(keyspace_.table(1, stripe), nullptr);
  Displaced displaced;
  keyspace_.table(1, stripe)->Remove(hash, "one", &displaced);
  keyspace_.DropEmpty(1, stripe);
  EXPECT_EQ(keyspace_.table(1, stripe), nullptr);
  EXPECT_EQ(keyspace_.UsedBytes(), 0U);
}

}  // namespace
}  // namespace sava::keyspace
