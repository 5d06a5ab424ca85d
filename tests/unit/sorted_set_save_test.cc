// Sorted sets written and read back: whole, cut off at every byte, with flipped bits, in pieces
// while they change; the forms of older files; the seeds of the fuzz target.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../../fuzz/zset_load_property.h"
#include "base/rng.h"
#include "types/collections/packed_forms.h"

namespace sava::types {
namespace {

constexpr CollectionLimits kLimits;

std::unique_ptr<SortedSet> MakeZset(int members, int kind) {
  auto set = std::make_unique<SortedSet>();
  base::Rng rng(static_cast<uint64_t>(members) * 31 + static_cast<uint64_t>(kind));
  for (int i = 0; i < members; ++i) {
    const double score = kind == 0   ? i
                         : kind == 1 ? rng.Unit() * 1e6 - 5e5
                                     : static_cast<double>(rng.Below(5));
    set->Add("member:" + std::to_string(rng.Next() % 1000000), score, kLimits);
    if (i % 50 == 7) set->Add(std::string(rng.Below(400), 'm') + std::to_string(i), i, kLimits);
  }
  if (kind == 1) set->Add("top", HUGE_VAL, kLimits);
  return set;
}

TEST(SortedSetSave, ReadsBackEqual) {
  for (const int members : {1, 2, 5, 127, 128, 129, 1000, 20000}) {
    for (int kind = 0; kind < 3; ++kind) {
      const auto set = MakeZset(members, kind);
      const auto again = LoadZset(set->rdb_type(), SaveZset(*set));
      ASSERT_NE(again, nullptr);
      EXPECT_EQ(ZsetDigest(*again), ZsetDigest(*set));
      EXPECT_EQ(again->encoding(), set->encoding());
      EXPECT_TRUE(again->Check());
    }
  }
}

TEST(SortedSetSave, ListpackWhereRedisWouldHaveOne) {
  const auto set = std::make_unique<SortedSet>();
  set->Add("a", 1, kLimits);
  set->Add("b", 2.5, kLimits);
  EXPECT_EQ(set->rdb_type(), 17);
  ListpackWriter packed;
  packed.Add("a");
  packed.AddInt(1);
  packed.Add("b");
  packed.Add("2.5");
  std::string expected;
  {
    Writer out(&expected);
    out.String(packed.Finish());
  }
  EXPECT_EQ(SaveZset(*set), expected);
  set->Add(std::string(100, 'x'), 3, kLimits);
  EXPECT_EQ(set->rdb_type(), 5);
}

// Type 3: scores as text, with marks for what has no digits.
TEST(SortedSetSave, ReadsScoresAsText) {
  std::string bytes;
  {
    Writer out(&bytes);
    out.Length(3);
    out.String("half");
    out.Byte(3);
    out.Raw("0.5");
    out.String("top");
    out.Byte(254);
    out.String("bottom");
    out.Byte(255);
  }
  const auto set = LoadZset(3, bytes);
  ASSERT_NE(set, nullptr);
  EXPECT_EQ(set->Score("half"), 0.5);
  EXPECT_EQ(set->Score("top"), HUGE_VAL);
  EXPECT_EQ(set->Score("bottom"), -HUGE_VAL);
  EXPECT_EQ(set->encoding(), "listpack");
  bytes[bytes.size() - 1] = static_cast<char>(253);
  EXPECT_EQ(LoadZset(3, bytes), nullptr);
}

TEST(SortedSetSave, RefusesNonsense) {
  const auto saved = [](const std::vector<std::pair<std::string, double>>& pairs) {
    std::string bytes;
    Writer out(&bytes);
    out.Length(pairs.size());
    for (const auto& [member, score] : pairs) {
      out.String(member);
      out.Double(score);
    }
    out.Flush();
    return bytes;
  };
  EXPECT_NE(LoadZset(5, saved({{"a", 1}, {"b", 1}})), nullptr);
  EXPECT_EQ(LoadZset(5, saved({})), nullptr);
  EXPECT_EQ(LoadZset(5, saved({{"a", 1}, {"a", 2}})), nullptr);
  EXPECT_EQ(LoadZset(5, saved({{"a", std::nan("")}})), nullptr);
  const auto packed = [](const std::vector<std::string>& items) {
    ListpackWriter writer;
    for (const std::string& item : items) writer.Add(item);
    std::string bytes;
    Writer out(&bytes);
    out.String(writer.Finish());
    out.Flush();
    return bytes;
  };
  EXPECT_NE(LoadZset(17, packed({"a", "1"})), nullptr);
  EXPECT_EQ(LoadZset(17, packed({"a", "1", "b"})), nullptr);
  EXPECT_EQ(LoadZset(17, packed({"a", "1", "a", "2"})), nullptr);
  EXPECT_EQ(LoadZset(17, packed({"a", "one"})), nullptr);
  EXPECT_EQ(LoadZset(17, packed({"a", "nan"})), nullptr);
  EXPECT_EQ(LoadZset(17, packed({})), nullptr);
  // A count that the bytes cannot hold.
  std::string huge;
  {
    Writer out(&huge);
    out.Length(uint64_t{1} << 40);
    out.String("a");
  }
  EXPECT_EQ(LoadZset(5, huge), nullptr);
}

TEST(SortedSetSave, DamageIsRefusedOrHarmless) {
  for (const int members : {3, 100, 300}) {
    const auto set = MakeZset(members, 1);
    const std::string whole = SaveZset(*set);
    const auto which = static_cast<char>(set->rdb_type() == 17 ? 3 : 1);
    for (size_t size = 0; size < whole.size(); size += members == 3 ? 1 : 37) {
      EXPECT_EQ(LoadZset(set->rdb_type(), std::string_view(whole).substr(0, size)), nullptr);
    }
    base::Rng rng(3);
    for (int i = 0; i < (members == 3 ? 500 : 60); ++i) {
      std::string bytes = whole;
      for (uint64_t n = 1 + rng.Below(3); n > 0; --n) {
        bytes[rng.Below(bytes.size())] ^= static_cast<char>(1U << rng.Below(8));
      }
      EXPECT_EQ(CheckZsetLoad(which + bytes), "");
    }
  }
}

// The value of the cut's moment comes out, whatever happens to the set meanwhile.
TEST(SortedSetSave, PiecesAreOfTheMomentOfTheCut) {
  for (int round = 0; round < 6; ++round) {
    const auto set = MakeZset(12000, round % 3);
    ASSERT_TRUE(set->large());
    ASSERT_EQ(set->rdb_type(), 5);
    const std::string before = ZsetDigest(*set);
    std::string pieces;
    set->BeginCut([&](std::string_view bytes) { pieces += bytes; }, false);
    base::Rng rng(static_cast<uint64_t>(round) + 70);
    for (int step = 0;; ++step) {
      for (int i = 0; i < 60; ++i) {
        const uint64_t dice = rng.Below(10);
        if (dice < 4 && set->size() > 0) {
          const std::string member(set->At(rng.Below(set->size())).member());
          if (round < 3) {
            set->Add(member, rng.Unit() * 1e5, kLimits);
          } else {
            set->Remove(member);
          }
        } else if (dice < 8) {
          set->Add("new:" + std::to_string(rng.Below(100000)), rng.Unit() * 100, kLimits);
        } else if (dice == 8 && round >= 4 && set->size() > 0) {
          const size_t from = rng.Below(set->size());
          set->RemoveRanks(from, std::min(set->size(), from + 100));
        }
      }
      if (set->SavePieces(step % 5 == 0 ? 3000 : 0)) break;
      ASSERT_LT(step, 5000);
    }
    ASSERT_TRUE(set->Check());
    const auto again = LoadZset(5, pieces);
    ASSERT_NE(again, nullptr);
    EXPECT_EQ(ZsetDigest(*again), before);
  }
}

TEST(SortedSetSave, EverythingMayGoWhileACutIsUnderWay) {
  const auto set = MakeZset(12000, 1);
  const std::string before = ZsetDigest(*set);
  std::string pieces;
  set->BeginCut([&](std::string_view bytes) { pieces += bytes; }, false);
  set->RemoveRanks(0, set->size());
  EXPECT_EQ(set->size(), 0U);
  EXPECT_TRUE(set->Add("again", 1, kLimits).added);
  EXPECT_EQ(set->Score("again"), 1.0);
  while (!set->SavePieces(1000)) {
  }
  const auto again = LoadZset(5, pieces);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(ZsetDigest(*again), before);
  EXPECT_EQ(set->size(), 1U);
}

TEST(SortedSetSave, AnAbortedCutLeavesTheSetAlone) {
  const auto set = MakeZset(12000, 0);
  size_t bytes = 0;
  set->BeginCut([&](std::string_view piece) { bytes += piece.size(); }, false);
  set->SavePieces(5000);
  set->AbortCut();
  const size_t handed_on = bytes;
  set->RemoveRanks(5, set->size());
  EXPECT_EQ(bytes, handed_on);
  EXPECT_TRUE(set->SavePieces(1000));
  EXPECT_EQ(set->size(), 5U);
}

TEST(SortedSetSave, FuzzCorpusHoldsItsProperty) {
  const std::filesystem::path corpus =
      std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/zset_load";
  int replayed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)),
                            std::istreambuf_iterator<char>());
    EXPECT_EQ(CheckZsetLoad(bytes), "") << entry.path();
    ++replayed;
  }
  EXPECT_GE(replayed, 4);
}

}  // namespace
}  // namespace sava::types
