// Counters written and read back: whole, cut off at every byte, with flipped bits; the seeds of the
// fuzz target; and the golden files, which later versions must still be able to read.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "../../fuzz/afc_load_property.h"
#include "afc_golden.h"
#include "afc_members.h"
#include "types/counters/afc.h"
#include "types/counters/member_dictionary.h"
#include "types/value/save.h"
#include "types/value/type_registry.h"

namespace sava::types {
namespace {

std::string FileBytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class AfcSave : public testing::TestWithParam<GoldenAfc> {};

TEST_P(AfcSave, ReadsBackEqual) {
  const std::unique_ptr<Afc> afc = GetParam().make();
  EXPECT_EQ(afc->rdb_type(), kRdbModule);
  const std::string bytes = SaveAfc(*afc);
  const std::unique_ptr<Afc> again = LoadAfc(bytes);
  ASSERT_NE(again, nullptr);
  for (const int64_t later : {0, 500, 5000, 100'000}) {
    const int64_t now = kGoldenNow + later;
    EXPECT_EQ(All(*again, now), All(*afc, now));
    EXPECT_EQ(again->Card(now), afc->Card(now));
    EXPECT_EQ(again->Total(now), afc->Total(now));
  }
  EXPECT_EQ(again->options(), afc->options());
  EXPECT_EQ(again->layout(), afc->layout());
  EXPECT_EQ(SaveAfc(*again), bytes);
}

// Both go on counting and stay equal.
TEST_P(AfcSave, GoesOnWhereItStopped) {
  const std::unique_ptr<Afc> afc = GetParam().make();
  const std::unique_ptr<Afc> again = LoadAfc(SaveAfc(*afc));
  ASSERT_NE(again, nullptr);
  std::mt19937 random(9);
  int64_t now = kGoldenNow;
  for (int i = 0; i < 3000; ++i) {
    now += static_cast<int64_t>(random() % 5);
    const std::string member = MixedName(Skewed(random, 2000));
    if (random() % 4 == 0) {
      ASSERT_EQ(again->Remove(member, now), afc->Remove(member, now));
    } else {
      const auto ours = again->Add(member, 1, now);
      const auto theirs = afc->Add(member, 1, now);
      ASSERT_EQ(ours.count, theirs.count);
      ASSERT_EQ(ours.is_new, theirs.is_new);
    }
  }
  EXPECT_EQ(All(*again, now), All(*afc, now));
}

TEST_P(AfcSave, RefusesWhatIsCutOff) {
  const std::string bytes = SaveAfc(*GetParam().make());
  // Every byte of small ones, some of large ones.
  const size_t step = 1 + bytes.size() / 3000;
  for (size_t size = 0; size < bytes.size(); size += step) {
    EXPECT_EQ(LoadAfc(std::string_view(bytes).substr(0, size)), nullptr) << size;
  }
}

TEST_P(AfcSave, SurvivesFlippedBits) {
  const std::string bytes = SaveAfc(*GetParam().make());
  const size_t step = 1 + bytes.size() / 400;
  for (size_t at = 0; at < bytes.size(); at += step) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      EXPECT_EQ(CheckAfcLoad(damaged), "") << "byte " << at << " bit " << bit;
    }
  }
}

TEST_P(AfcSave, LoadsTheGoldenFile) {
  const GoldenAfc& golden = GetParam();
  const std::filesystem::path path = std::filesystem::path(SAVA_SOURCE_DIR) / "tests/golden/afc" /
                                     (std::string(golden.name) + ".bin");
  const std::string bytes = WithoutModuleId(FileBytes(path));
  const std::unique_ptr<Afc> afc = LoadAfc(bytes);
  ASSERT_NE(afc, nullptr);
  const std::unique_ptr<Afc> expected = golden.make();
  EXPECT_EQ(All(*afc, kGoldenNow), All(*expected, kGoldenNow));
  EXPECT_EQ(afc->Total(kGoldenNow), expected->Total(kGoldenNow));
  EXPECT_EQ(afc->options(), expected->options());
  EXPECT_EQ(CheckAfcLoad(bytes), "");
}

// Members named by their ids in a dictionary that the file holds once.
TEST_P(AfcSave, RefersToADictionary) {
  const std::unique_ptr<Afc> afc = GetParam().make();
  const std::string bytes = SaveAfc(*afc, true);
  std::string dictionary_bytes;
  {
    Writer out(&dictionary_bytes);
    MemberDictionary::Shared().SaveAll(out);
  }
  SavedDictionary dictionary;
  Reader in(dictionary_bytes);
  ASSERT_TRUE(dictionary.Load(in));
  const std::unique_ptr<Afc> again = LoadAfc(bytes, &dictionary);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(All(*again, kGoldenNow), All(*afc, kGoldenNow));
  EXPECT_EQ(again->Total(kGoldenNow), afc->Total(kGoldenNow));
}

// A snapshot in pieces while the counter changes: what comes out is the counter at the cut.
TEST_P(AfcSave, SavesInPiecesWhileItChanges) {
  for (const bool refer : {false, true}) {
    for (const size_t budget : {1, 1000, 100'000}) {
      const std::unique_ptr<Afc> afc = GetParam().make();
      const Counted at_cut = All(*afc, kGoldenNow);
      const uint64_t total = afc->Total(kGoldenNow);
      MemberDictionary::Shared().Pin();
      std::string pieces;
      afc->BeginCut([&pieces](std::string_view bytes) { pieces += bytes; }, refer);
      std::mt19937 random(4);
      while (!afc->SavePieces(budget)) {
        for (int i = 0; i < 20; ++i) {
          const std::string member = MixedName(Skewed(random, 4000));
          if (random() % 3 == 0) {
            afc->Remove(member, kGoldenNow);
          } else {
            afc->Add(member, 1 + random() % 3, kGoldenNow);
          }
          if (!at_cut.empty()) afc->Add(at_cut[random() % at_cut.size()].first, 1, kGoldenNow);
        }
      }
      std::string dictionary_bytes;
      {
        Writer out(&dictionary_bytes);
        MemberDictionary::Shared().SaveAll(out);
      }
      MemberDictionary::Shared().Unpin();
      SavedDictionary dictionary;
      Reader in(dictionary_bytes);
      ASSERT_TRUE(dictionary.Load(in));
      const std::unique_ptr<Afc> again =
          LoadAfc(WithoutModuleId(pieces), refer ? &dictionary : nullptr);
      ASSERT_NE(again, nullptr) << budget;
      EXPECT_EQ(All(*again, kGoldenNow), at_cut) << budget;
      EXPECT_EQ(again->Total(kGoldenNow), total);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, AfcSave, testing::ValuesIn(kGoldenAfcs),
                         [](const auto& at) { return std::string(at.param.name); });

TEST(AfcLoad, ReplaysItsCorpus) {
  const std::filesystem::path corpus =
      std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/afc_load";
  int replayed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    EXPECT_EQ(CheckAfcLoad(FileBytes(entry.path())), "") << entry.path();
    ++replayed;
  }
  EXPECT_GE(replayed, 8);
}

// As many different counts as members: neither loading nor copying walks them all for each.
TEST(AfcLoad, ManyGroups) {
  constexpr int kMembers = 300000;
  Afc afc;
  for (int i = 0; i < kMembers; ++i) {
    afc.Add(std::to_string(i), static_cast<uint64_t>(kMembers - i), 0);
  }
  std::string bytes;
  {
    Writer out(&bytes);
    afc.Save(out);
  }
  Reader in(bytes);
  const auto loaded = AllTypes().Load(kRdbModule, in);
  ASSERT_NE(loaded, nullptr);
  EXPECT_EQ(static_cast<const Afc&>(*loaded).Total(0), afc.Total(0));
  EXPECT_EQ(afc.Copy()->size(), static_cast<size_t>(kMembers));
}

TEST(AfcLoad, RefusesAnything) {
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random() % 60, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 4 == 0 ? random() : random() % 8);
    EXPECT_EQ(CheckAfcLoad(bytes), "");
  }
}

}  // namespace
}  // namespace sava::types
