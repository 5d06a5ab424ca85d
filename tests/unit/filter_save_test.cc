// Bloom and cuckoo filters written and read back: whole, in pieces while they change, in chunks,
// cut off at every byte, with flipped bits; the seeds of the fuzz targets; and the golden files,
// which later versions must still be able to read.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "../../fuzz/filter_load_property.h"
#include "base/rng.h"
#include "filter_golden.h"
#include "types/filters/bloom.h"
#include "types/filters/cuckoo.h"
#include "types/value/save.h"

namespace sava::types {
namespace {

std::string FileBytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// How many places of a saved filter are damaged, and how many cut off.
#ifdef SAVA_SANITIZED
constexpr size_t kFlips = 5;
constexpr size_t kCuts = 100;
#else
constexpr size_t kFlips = 25;
constexpr size_t kCuts = 1000;
#endif

template <typename Filter>
void CheckReadsBack(const GoldenFilter<Filter>& golden) {
  const std::unique_ptr<Filter> filter = golden.make();
  EXPECT_EQ(filter->rdb_type(), kRdbModule);
  const std::string bytes = SaveFilter(*filter);
  const std::unique_ptr<Filter> again = LoadFilter<Filter>(bytes);
  ASSERT_NE(again, nullptr);
  EXPECT_TRUE(DigestOf(*again) == DigestOf(*filter));
  EXPECT_EQ(again->options(), filter->options());
  EXPECT_EQ(again->items(), filter->items());
  EXPECT_EQ(again->encoding(), filter->encoding());
  EXPECT_TRUE(SaveFilter(*again) == bytes);
  EXPECT_EQ(CheckFilterLoad<Filter>(bytes), "");
  // Both go on and stay equal.
  for (int i = 0; i < 6000; ++i) {
    ASSERT_EQ(again->Add(ItemHash(i * 3)), filter->Add(ItemHash(i * 3))) << i;
  }
  EXPECT_TRUE(DigestOf(*again) == DigestOf(*filter));
}

template <typename Filter>
void CheckDamage(const GoldenFilter<Filter>& golden) {
  const std::string bytes = SaveFilter(*golden.make());
  const size_t step = 1 + bytes.size() / kCuts;
  for (size_t size = 0; size < bytes.size(); size += step) {
    ASSERT_EQ(LoadFilter<Filter>(std::string_view(bytes).substr(0, size)), nullptr) << size;
  }
  for (size_t at = 0; at < bytes.size();
       at += at < 40 && bytes.size() < 5000 ? 1 : 1 + bytes.size() / kFlips) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      ASSERT_EQ(CheckFilterLoad<Filter>(damaged), "") << "byte " << at << " bit " << bit;
    }
  }
}

template <typename Filter>
void CheckGoldenFile(const GoldenFilter<Filter>& golden) {
  const std::filesystem::path path = std::filesystem::path(SAVA_SOURCE_DIR) /
                                     "tests/golden/filters" / (std::string(golden.name) + ".bin");
  const std::string bytes = BehindModuleId(FileBytes(path));
  const std::unique_ptr<Filter> filter = LoadFilter<Filter>(bytes);
  ASSERT_NE(filter, nullptr);
  const std::unique_ptr<Filter> expected = golden.make();
  EXPECT_TRUE(DigestOf(*filter) == DigestOf(*expected));
  EXPECT_EQ(filter->options(), expected->options());
  for (int i = 0; i < golden.items; ++i) {
    ASSERT_EQ(HasHash(*filter, ItemHash(i)), HasHash(*expected, ItemHash(i))) << i;
  }
}

// What comes out of a snapshot in pieces is the filter at the cut.
template <typename Filter>
void CheckPieces(const GoldenFilter<Filter>& golden) {
  for (const size_t budget : {1, 5000, 100'000}) {
    const std::unique_ptr<Filter> filter = golden.make();
    const auto at_cut = DigestOf(*filter);
    std::string pieces;
    filter->BeginCut([&pieces](std::string_view bytes) { pieces += bytes; }, false);
    base::Rng rng(budget);
    bool done = false;
    while (!done) {
      for (int i = 0; i < 300; ++i) filter->Add(ItemHash(static_cast<int>(rng.Below(20'000))));
      done = filter->SavePieces(budget);
    }
    EXPECT_TRUE(filter->SavePieces(budget));
    const std::unique_ptr<Filter> again = LoadFilter<Filter>(BehindModuleId(pieces));
    ASSERT_NE(again, nullptr) << budget;
    EXPECT_TRUE(DigestOf(*again) == at_cut) << budget;
    filter->BeginCut([](std::string_view) {}, false);
    filter->AbortCut();
    EXPECT_TRUE(filter->SavePieces(budget));
  }
}

template <typename Filter>
std::string NameOf(const testing::TestParamInfo<GoldenFilter<Filter>>& at) {
  return at.param.name;
}

class BloomSave : public testing::TestWithParam<GoldenFilter<Bloom>> {};
TEST_P(BloomSave, ReadsBackEqual) { CheckReadsBack(GetParam()); }
TEST_P(BloomSave, RefusesOrSurvivesDamage) { CheckDamage(GetParam()); }
TEST_P(BloomSave, LoadsTheGoldenFile) { CheckGoldenFile(GetParam()); }
TEST_P(BloomSave, SavesInPiecesWhileItChanges) { CheckPieces(GetParam()); }
INSTANTIATE_TEST_SUITE_P(All, BloomSave, testing::ValuesIn(kGoldenBlooms), NameOf<Bloom>);

class CuckooSave : public testing::TestWithParam<GoldenFilter<Cuckoo>> {};
TEST_P(CuckooSave, ReadsBackEqual) { CheckReadsBack(GetParam()); }
TEST_P(CuckooSave, RefusesOrSurvivesDamage) { CheckDamage(GetParam()); }
TEST_P(CuckooSave, LoadsTheGoldenFile) { CheckGoldenFile(GetParam()); }
TEST_P(CuckooSave, SavesInPiecesWhileItChanges) { CheckPieces(GetParam()); }
INSTANTIATE_TEST_SUITE_P(All, CuckooSave, testing::ValuesIn(kGoldenCuckoos), NameOf<Cuckoo>);

// Large ones are saved in pieces; each piece is small, and what was not saved yet is saved before
// it changes.
TEST(BloomSnapshot, LargeFiltersInSmallPieces) {
  for (const BloomLayout layout : {BloomLayout::kBlocked, BloomLayout::kClassic}) {
    const std::unique_ptr<Bloom> bloom =
        MakeBloom({.capacity = 300'000, .layout = layout, .reserved = true}, 50'000);
    ASSERT_TRUE(bloom->large());
    const auto at_cut = DigestOf(*bloom);
    std::string pieces;
    size_t largest = 0;
    bloom->BeginCut(
        [&](std::string_view bytes) {
          pieces += bytes;
          largest = std::max(largest, bytes.size());
        },
        false);
    int next = 50'000;
    while (!bloom->SavePieces(16 << 10)) {
      for (int i = 0; i < 5; ++i) bloom->Add(ItemHash(next++));
    }
    EXPECT_GT(next, 50'000);
    EXPECT_LT(largest, 17U << 10);
    const std::unique_ptr<Bloom> again = LoadFilter<Bloom>(BehindModuleId(pieces));
    ASSERT_NE(again, nullptr);
    EXPECT_TRUE(DigestOf(*again) == at_cut);
  }
}

template <typename Filter>
void ReplayCorpus(const std::string& name) {
  const std::filesystem::path corpus =
      std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus" / name;
  int replayed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    EXPECT_EQ(CheckFilterLoad<Filter>(FileBytes(entry.path())), "") << entry.path();
    ++replayed;
  }
  EXPECT_GE(replayed, 4);
}

TEST(FilterLoad, ReplaysItsCorpora) {
  ReplayCorpus<Bloom>("bloom_load");
  ReplayCorpus<Cuckoo>("cuckoo_load");
}

TEST(FilterLoad, RefusesAnything) {
  base::Rng rng(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(rng.Below(60), '\0');
    for (char& byte : bytes)
      byte = static_cast<char>(rng.Below(4) == 0 ? rng.Next() : rng.Below(8));
    EXPECT_EQ(CheckFilterLoad<Bloom>(bytes), "");
    EXPECT_EQ(CheckFilterLoad<Cuckoo>(bytes), "");
  }
}

// A few bytes cannot ask for much memory.
TEST(FilterLoad, BelievesNoSize) {
  std::string header = Bloom::MakeClassic(uint64_t{1} << 35, 3)->Header();
  std::string bytes;
  {
    Writer out(&bytes);
    out.ModuleString(header);
    out.ModuleString({});
    out.ModuleEnd();
  }
  EXPECT_EQ(LoadFilter<Bloom>(bytes), nullptr);
  EXPECT_EQ(Bloom::MakeClassic(uint64_t{1} << 60, 3), nullptr);
  EXPECT_EQ(Bloom::Make({.capacity = uint64_t{1} << 60, .reserved = true}), nullptr);
}

}  // namespace
}  // namespace sava::types
