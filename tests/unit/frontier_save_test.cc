// Frontiers written and read back: whole, cut off, with flipped bits, in pieces; the seeds of the
// fuzz target; and the golden files, which later versions must still be able to read.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "../../fuzz/frontier_load_property.h"
#include "base/rng.h"
#include "base/varint.h"
#include "frontier_golden.h"
#include "types/frontier/frontier_set.h"
#include "types/value/save.h"

namespace sava::types {
namespace {

std::string BytesOfFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class FrontierSave : public testing::TestWithParam<GoldenFrontier> {};

TEST_P(FrontierSave, ReadsBackEqual) {
  EXPECT_EQ(CheckFrontierLoad(SaveFrontier(*GetParam().make())), "");
  const auto frontier = GetParam().make();
  const auto again = LoadFrontier(SaveFrontier(*frontier));
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(FrontierDigest(*again), FrontierDigest(*frontier));
  EXPECT_EQ(again->options(), frontier->options());
  EXPECT_EQ(again->stats().added, frontier->stats().added);
  EXPECT_EQ(again->stats().leased, frontier->stats().leased);
}

TEST_P(FrontierSave, LoadsTheGoldenFile) {
  const std::filesystem::path path = std::filesystem::path(SAVA_SOURCE_DIR) /
                                     "tests/golden/frontier_type" /
                                     (std::string(GetParam().name) + ".bin");
  const std::string saved = BytesOfFile(path);
  Reader in(saved);
  EXPECT_EQ(in.Length(), Frontier::Type().module_id);
  const auto frontier = LoadFrontier(FrontierBody(saved));
  ASSERT_NE(frontier, nullptr);
  EXPECT_EQ(FrontierDigest(*frontier), FrontierDigest(*GetParam().make()));
}

TEST_P(FrontierSave, RefusesWhatIsCutOff) {
  const std::string bytes = SaveFrontier(*GetParam().make());
  const size_t step = 1 + bytes.size() / 300;
  for (size_t size = 0; size < bytes.size(); size += step) {
    EXPECT_EQ(LoadFrontier(std::string_view(bytes).substr(0, size)), nullptr) << size;
  }
}

TEST_P(FrontierSave, SurvivesFlippedBits) {
  const auto frontier = GetParam().make();
  std::string bytes;
  {
    // Not compressed, so that the damage reaches what is inside.
    Writer out(&bytes, false);
    frontier->Save(out);
  }
  bytes = FrontierBody(bytes);
  const size_t step = 1 + bytes.size() / 120;
  for (size_t at = 0; at < bytes.size(); at += step) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at / step % 8)));
    EXPECT_EQ(CheckFrontierLoad(damaged), "") << "byte " << at;
  }
}

INSTANTIATE_TEST_SUITE_P(All, FrontierSave, testing::ValuesIn(kGoldenFrontiers),
                         [](const auto& at) { return std::string(at.param.name); });

TEST(FrontierCut, LargeOnesComeInSmallPieces) {
  Frontier::Options options;
  options.dedup = Frontier::Dedup::kSeen;
  const auto frontier = MakeFrontier(options, 3000);
  EXPECT_TRUE(frontier->large());
  size_t most = 0;
  size_t pieces = 0;
  frontier->BeginCut(
      [&](std::string_view bytes) {
        most = std::max(most, bytes.size());
        ++pieces;
      },
      false);
  while (!frontier->SavePieces(1)) continue;
  EXPECT_LE(most, 19'000U);
  EXPECT_GT(pieces, 5U);
  EXPECT_FALSE(MakeFrontier({}, 20)->large());
}

TEST(FrontierCut, AnAbortedCutLeavesNothingBehind) {
  const auto frontier = MakeFrontier({}, 500);
  size_t pieces = 0;
  frontier->BeginCut([&pieces](std::string_view) { ++pieces; }, false);
  frontier->AbortCut();
  const size_t then = pieces;
  frontier->AddOne({"new", "/", 1}, {}, 3000);
  EXPECT_TRUE(frontier->SavePieces(1 << 20));
  EXPECT_EQ(pieces, then);
}

TEST(FrontierLoad, ReplaysItsCorpus) {
  const std::filesystem::path corpus =
      std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/frontier_load";
  int replayed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    EXPECT_EQ(CheckFrontierLoad(BytesOfFile(entry.path())), "") << entry.path();
    ++replayed;
  }
  EXPECT_GE(replayed, 4);
}

// Numbers of hosts and blocks that the bytes do not bear out reserve nothing.
TEST(FrontierLoad, DoesNotBelieveSizes) {
  for (const int which : {11, 12}) {
    std::string head;
    for (int i = 0; i < 21; ++i) {
      uint64_t number = i == 0 || i == 9 ? 1 : 0;
      if (i == which) number = uint64_t{1} << 30;
      base::AppendVarint(&head, number);
    }
    const double error = 0.01;
    head.append(reinterpret_cast<const char*>(&error), sizeof error);
    std::string bytes;
    {
      Writer out(&bytes);
      out.ModuleString(head);
      out.ModuleString({});
      out.ModuleEnd();
    }
    EXPECT_EQ(LoadFrontier(bytes), nullptr);
  }
}

// ---- the set of URLs ----

TEST(FrontierSet, HoldsWhatWasInserted) {
  for (const unsigned bits : {56U, 64U}) {
    FrontierSet set(bits);
    base::Rng rng(bits);
    std::vector<uint64_t> hashes(100'000);
    for (uint64_t& hash : hashes) {
      hash = rng.Next();
      EXPECT_TRUE(set.Insert(hash));
    }
    EXPECT_EQ(set.size(), hashes.size());
    EXPECT_LE(set.bytes(), hashes.size() * 9);
    for (size_t i = 0; i < hashes.size(); ++i) {
      ASSERT_FALSE(set.Insert(hashes[i]));
      if (i % 3 == 0) {
        ASSERT_TRUE(set.Erase(hashes[i]));
      }
    }
    for (size_t i = 0; i < hashes.size(); ++i) ASSERT_EQ(set.Has(hashes[i]), i % 3 != 0);
    FrontierSet again(bits);
    set.SaveAll([&](std::string_view piece) { EXPECT_TRUE(again.Load(piece)); });
    EXPECT_EQ(again.size(), set.size());
    for (size_t i = 0; i < hashes.size(); ++i) ASSERT_EQ(again.Has(hashes[i]), i % 3 != 0);
    for (const uint64_t hash : hashes) set.Erase(hash);
    EXPECT_EQ(set.size(), 0U);
    EXPECT_LE(set.bytes(), 1000U);
  }
}

// Hashes with one long prefix: the directory stays small, nothing is lost.
TEST(FrontierSet, TakesHashesThatAreNotSpread) {
  FrontierSet set(64);
  constexpr uint64_t kCount = 20'000;
  for (uint64_t i = 0; i < kCount; ++i) EXPECT_TRUE(set.Insert(0xabcdef0000000000 + i * 7));
  for (uint64_t i = 0; i < kCount; ++i) ASSERT_TRUE(set.Has(0xabcdef0000000000 + i * 7));
  EXPECT_FALSE(set.Has(0xabcdef0000000001));
  EXPECT_LE(set.bytes(), kCount * 16);
}

}  // namespace
}  // namespace sava::types
