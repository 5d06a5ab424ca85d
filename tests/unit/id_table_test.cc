// Ids lead to their nodes through any history, and a member costs few bytes.
#include "types/counters/id_table.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>
#include <vector>

namespace sava::types {
namespace {

// What IndexedCounter does with its nodes: free ones are used first.
class Nodes {
 public:
  void Insert(uint32_t id) {
    uint32_t node = static_cast<uint32_t>(ids_.size());
    if (free_.empty()) {
      ids_.push_back(id);
    } else {
      node = free_.back();
      free_.pop_back();
      ids_[node] = id;
    }
    table_.Insert(id, node, [this](uint32_t n) { return IdOf(n); });
  }
  void Erase(uint32_t id) {
    const uint32_t node = Find(id);
    table_.Erase(id, [this](uint32_t n) { return IdOf(n); });
    free_.push_back(node);
  }
  uint32_t Find(uint32_t id) {
    return table_.Find(id, [this](uint32_t n) { return IdOf(n); });
  }
  uint32_t IdAt(uint32_t node) const { return ids_[node]; }
  size_t bytes() const { return table_.bytes(); }
  size_t looks() const { return looks_; }

 private:
  uint32_t IdOf(uint32_t node) {
    ++looks_;
    return ids_[node];
  }

  IdTable table_;
  std::vector<uint32_t> ids_;
  std::vector<uint32_t> free_;
  size_t looks_ = 0;
};

TEST(IdTable, FindsWhatIsThereThroughAnyHistory) {
  for (const uint32_t ids : {30U, 1000U, 100'000U}) {
    std::mt19937 random(ids);
    Nodes nodes;
    std::unordered_map<uint32_t, bool> there;
    const uint32_t spread = ids % 3 == 0 ? 1 : 2'654'435'761U;  // one after the other, or anywhere
    for (uint32_t step = 0; step < 6 * ids; ++step) {
      // It grows for a while, then shrinks, and grows again.
      const bool growing = step / (2 * ids) != 1;
      const uint32_t id = (random() % ids) * spread;
      bool& here = there[id];
      ASSERT_EQ(nodes.Find(id) != IdTable::kNothing, here) << ids << " " << step;
      if (!here && (growing || random() % 4 == 0)) {
        nodes.Insert(id);
        here = true;
      } else if (here && (!growing || random() % 4 == 0)) {
        nodes.Erase(id);
        here = false;
      }
    }
    for (const auto& [id, here] : there) {
      const uint32_t node = nodes.Find(id);
      ASSERT_EQ(node != IdTable::kNothing, here) << ids;
      if (here) {
        ASSERT_EQ(nodes.IdAt(node), id);
      }
    }
  }
}

TEST(IdTable, TakesFewBytesAndReadsFewNodes) {
  Nodes nodes;
  for (uint32_t id = 0; id < 1'000'000; ++id) {
    nodes.Insert(id * 7);
    if (id > 100 && id % 4096 == 0) {
      // Twice for a moment, while it grows.
      EXPECT_LE(static_cast<double>(nodes.bytes()) / id, 13.0) << id;
    }
  }
  EXPECT_LE(static_cast<double>(nodes.bytes()) / 1'000'000, 6.5);
  const size_t before = nodes.looks();
  for (uint32_t id = 0; id < 1'000'000; ++id) {
    ASSERT_NE(nodes.Find(id * 7), IdTable::kNothing);
    ASSERT_EQ(nodes.Find(id * 7 + 1), IdTable::kNothing);
  }
  EXPECT_LE(nodes.looks() - before, 2'000'000U);
}

}  // namespace
}  // namespace sava::types
