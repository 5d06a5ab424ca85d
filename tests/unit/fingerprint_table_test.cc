// The fingerprint table against a map: after any history of adds, removals, splits and snapshots it
// holds what the map holds.
#include "types/filters/fingerprint_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "types/filters/fingerprint_page.h"

namespace sava::types {
namespace {

using Content = std::map<uint64_t, unsigned>;

uint64_t Cut(uint64_t hash, unsigned bits) { return hash & (~uint64_t{0} << (64 - bits)); }

Content ContentOf(const FingerprintTable& table) {
  Content content;
  uint64_t last = 0;
  table.ForEach([&](uint64_t hash, unsigned copies) {
    EXPECT_TRUE(content.empty() || hash > last);
    last = hash;
    content[hash] = copies;
  });
  return content;
}

void CheckEqual(const FingerprintTable& table, const Content& expected) {
  ASSERT_EQ(ContentOf(table), expected);
  uint64_t copies = 0;
  for (const auto& [hash, count] : expected) copies += count;
  EXPECT_EQ(table.distinct(), expected.size());
  EXPECT_EQ(table.copies(), copies);
}

// Hashes that collide now and then, and that repeat.
uint64_t SomeHash(base::Rng& rng, uint64_t universe) {
  return base::Rng(rng.Below(universe)).Next();
}

void Change(FingerprintTable& table, Content& model, base::Rng& rng, int steps, uint64_t universe) {
  for (int i = 0; i < steps; ++i) {
    const uint64_t hash = SomeHash(rng, universe);
    const uint64_t key = Cut(hash, table.bits());
    const bool known = model.contains(key);
    switch (rng.Below(8)) {
      case 0:
      case 1:
        ASSERT_EQ(table.Remove(hash), known);
        if (known && model[key] != FingerprintTable::kMaxCopies && --model[key] == 0) {
          model.erase(key);
        }
        break;
      case 2: {
        const auto copies = static_cast<unsigned>(1 + rng.Below(5));
        ASSERT_EQ(table.Add(hash, copies), !known);
        model[key] = std::min<unsigned>(model[key] + copies, FingerprintTable::kMaxCopies);
        break;
      }
      default:
        ASSERT_EQ(table.AddOnce(hash), !known);
        if (!known) model[key] = 1;
    }
    ASSERT_EQ(table.Count(hash), model.contains(key) ? model[key] : 0);
  }
}

struct Case {
  unsigned bits;
  uint64_t universe;
  int steps;
};

class Tables : public testing::TestWithParam<Case> {};

TEST_P(Tables, HoldWhatAMapHolds) {
  base::Rng rng(GetParam().bits * 1000 + GetParam().universe);
  FingerprintTable table(GetParam().bits);
  Content model;
  for (int round = 0; round < 4; ++round) {
    Change(table, model, rng, GetParam().steps, GetParam().universe);
    CheckEqual(table, model);
  }
  while (!model.empty()) {
    const uint64_t hash = model.begin()->first;
    model[hash] == FingerprintTable::kMaxCopies ? model.erase(hash) : --model[hash];
    ASSERT_TRUE(table.Remove(hash));
    if (model.contains(hash) && model[hash] == 0) model.erase(hash);
  }
}

TEST_P(Tables, NarrowToFewerBits) {
  base::Rng rng(77);
  FingerprintTable table(GetParam().bits);
  Content model;
  Change(table, model, rng, GetParam().steps, GetParam().universe);
  for (const unsigned bits : {GetParam().bits, GetParam().bits - 3, FingerprintTable::kMinBits}) {
    if (bits < FingerprintTable::kMinBits) continue;
    Content expected;
    for (const auto& [hash, copies] : model) {
      unsigned& count = expected[Cut(hash, bits)];
      count = std::min<unsigned>(count + copies, FingerprintTable::kMaxCopies);
    }
    CheckEqual(*table.Narrowed(bits), expected);
  }
}

std::unique_ptr<FingerprintTable> LoadPieces(unsigned bits, uint64_t distinct,
                                             const std::vector<std::string>& pieces) {
  auto table = std::make_unique<FingerprintTable>(bits);
  FingerprintTable::Loader loader(table.get());
  for (const std::string& piece : pieces) {
    if (!loader.Take(piece)) return nullptr;
  }
  return loader.Finish(distinct) ? std::move(table) : nullptr;
}

std::vector<std::string> Pieces(const FingerprintTable& table, size_t budget) {
  std::vector<std::string> pieces;
  uint64_t prefix = 0;
  bool more = true;
  while (more) {
    pieces.emplace_back();
    more = table.AppendPages(&prefix, budget, &pieces.back());
  }
  return pieces;
}

TEST_P(Tables, SaveAndLoad) {
  base::Rng rng(78);
  FingerprintTable table(GetParam().bits);
  Content model;
  Change(table, model, rng, GetParam().steps, GetParam().universe);
  std::vector<std::string> pieces = Pieces(table, 3000);
  const auto again = LoadPieces(table.bits(), table.distinct(), pieces);
  ASSERT_NE(again, nullptr);
  CheckEqual(*again, model);
  Change(*again, model, rng, 2000, GetParam().universe);
  CheckEqual(*again, model);

  EXPECT_EQ(LoadPieces(table.bits(), table.distinct() + 1, pieces), nullptr);
  std::reverse(pieces.begin(), pieces.end());
  EXPECT_NE(LoadPieces(table.bits(), table.distinct(), pieces), nullptr);
  std::vector<std::string> twice = pieces;
  twice.push_back(pieces[0]);
  EXPECT_EQ(LoadPieces(table.bits(), table.distinct(), twice), nullptr);
  pieces.pop_back();
  EXPECT_EQ(LoadPieces(table.bits(), table.distinct(), pieces), nullptr);
}

// What is saved is what it held when the cut began, whatever happens meanwhile.
TEST_P(Tables, SnapshotsWhileTheyChange) {
  base::Rng rng(79);
  FingerprintTable table(GetParam().bits);
  Content model;
  for (int round = 0; round < 6; ++round) {
    Change(table, model, rng, GetParam().steps / 4, GetParam().universe);
    const Content expected = model;
    const uint64_t distinct = table.distinct();
    std::vector<std::string> pieces;
    table.BeginCut([&](std::string_view piece) { pieces.emplace_back(piece); });
    bool done = false;
    while (!done) {
      Change(table, model, rng, static_cast<int>(rng.Below(500)), GetParam().universe);
      if (round == 3 && rng.Below(3) == 0) {
        table.AbortCut();
        break;
      }
      done = table.SavePieces(1 + rng.Below(20000));
    }
    CheckEqual(table, model);
    if (!done) continue;
    EXPECT_FALSE(table.cutting());
    const auto saved = LoadPieces(table.bits(), distinct, pieces);
    ASSERT_NE(saved, nullptr);
    CheckEqual(*saved, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Tables,
                         testing::Values(Case{64, 300, 3000}, Case{64, 100'000, 20'000},
                                         Case{37, 50'000, 30'000}, Case{33, 20'000, 30'000},
                                         Case{24, 1'000'000, 30'000}, Case{16, 200'000, 60'000}));

// Hashes with one long prefix: all are kept, and the directory stays small.
TEST(FingerprintTable, SharedPrefix) {
  FingerprintTable table(64);
  base::Rng rng(5);
  std::vector<uint64_t> hashes;
  for (int i = 0; i < 3000; ++i) hashes.push_back(rng.Next() >> 40);
  for (const uint64_t hash : hashes) table.Add(hash);
  for (const uint64_t hash : hashes) EXPECT_GE(table.Count(hash), 1U);
  EXPECT_LT(table.memory(), 200'000U);
  for (const uint64_t hash : hashes) EXPECT_TRUE(table.Remove(hash));
  EXPECT_EQ(table.distinct(), 0U);
  EXPECT_LT(table.memory(), 1000U);
}

// A count that reached its maximum stays: whoever has that fingerprint is never lost.
TEST(FingerprintTable, CountsStop) {
  FingerprintTable table(40);
  const uint64_t hash = base::Rng(1).Next();
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(table.Add(hash), i == 0);
  EXPECT_EQ(table.Count(hash), FingerprintTable::kMaxCopies);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(table.Remove(hash));
  EXPECT_EQ(table.Count(hash), FingerprintTable::kMaxCopies);
}

TEST(FingerprintTable, ClearsWhileItIsSaved) {
  FingerprintTable table(48);
  base::Rng rng(9);
  for (int i = 0; i < 5000; ++i) table.Add(rng.Next());
  const Content expected = ContentOf(table);
  std::vector<std::string> pieces;
  table.BeginCut([&](std::string_view piece) { pieces.emplace_back(piece); });
  table.SavePieces(1000);
  table.Clear();
  EXPECT_EQ(table.distinct(), 0U);
  const auto saved = LoadPieces(48, expected.size(), pieces);
  ASSERT_NE(saved, nullptr);
  EXPECT_EQ(ContentOf(*saved), expected);
}

TEST(FingerprintTable, BitsPerItem) {
  FingerprintTable table(37);
  base::Rng rng(3);
  for (int i = 0; i < 1'000'000; ++i) table.Add(rng.Next());
  EXPECT_LT(static_cast<double>(table.memory()) * 8 / 1e6, 21.5);
}

TEST(Bits, SelectZero) {
  base::Rng rng(8);
  for (int round = 0; round < 200; ++round) {
    uint64_t words[4];
    for (uint64_t& word : words) word = rng.Next() | (round % 2 == 0 ? rng.Next() : 0);
    size_t rank = 0;
    for (size_t at = 0; at < 256; ++at) {
      if (!HasBit(words, at)) {
        ASSERT_EQ(SelectZero(words, rank++), at);
      }
    }
  }
}

}  // namespace
}  // namespace sava::types
