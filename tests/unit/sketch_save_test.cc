// Sketches written and read back: whole, cut off at every byte, with flipped bits, in pieces while
// they change; the seeds of the fuzz target; and the golden files, which later versions must still
// be able to read.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>

#include "../../fuzz/sketch_load_property.h"
#include "base/rng.h"
#include "sketch_golden.h"
#include "types/value/save.h"

namespace sava::types {
namespace {

std::string FileBytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Something that changes a sketch wherever it can.
void Change(Object& object, base::Rng& rng) {
  const std::string item = ZipfStream::Name(rng.Below(6000));
  if (auto* sketch = dynamic_cast<CountMin*>(&object)) {
    sketch->Add(item, 1 + rng.Below(5));
    if (rng.Below(200) == 0) {
      const CountMin::Weighted twice[] = {{sketch, 1}, {sketch, 0}};
      sketch->Merge(twice);
    }
  } else if (auto* top = dynamic_cast<TopK*>(&object)) {
    top->Add(item, 1 + rng.Below(5));
  } else {
    auto& documents = static_cast<SimHash&>(object);
    const std::string id = "doc:" + std::to_string(rng.Below(3000));
    if (rng.Below(2) == 0) {
      documents.Remove(id);
    } else {
      documents.Add(id, rng.Next());
    }
  }
}

class SketchSave : public testing::TestWithParam<GoldenSketch> {
 protected:
  const TypeInfo& type() const { return *kSketchTypes[GetParam().type]; }
  // The bytes of the fuzz target: which type, then the value.
  std::string WithType(const std::string& body) const {
    return static_cast<char>(GetParam().type) + body;
  }
};

TEST_P(SketchSave, ReadsBackEqual) {
  const auto object = GetParam().make();
  EXPECT_EQ(object->rdb_type(), kRdbModule);
  const auto again = LoadSketch(type(), SaveSketch(*object));
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(DigestOf(*again), DigestOf(*object));
  EXPECT_EQ(again->size(), object->size());
  EXPECT_EQ(CheckSketchLoad(WithType(SaveSketch(*object))), "");
}

// Both go on and stay equal.
TEST_P(SketchSave, GoesOnWhereItStopped) {
  const auto object = GetParam().make();
  const auto again = LoadSketch(type(), SaveSketch(*object));
  ASSERT_NE(again, nullptr);
  base::Rng left(9);
  base::Rng right(9);
  for (int i = 0; i < 2000; ++i) {
    Change(*object, left);
    Change(*again, right);
  }
  EXPECT_EQ(DigestOf(*again), DigestOf(*object));
}

TEST_P(SketchSave, RefusesWhatIsCutOff) {
  const std::string bytes = SaveSketch(*GetParam().make());
  const size_t step = 1 + bytes.size() / 3000;
  for (size_t size = 0; size < bytes.size(); size += step) {
    EXPECT_EQ(LoadSketch(type(), std::string_view(bytes).substr(0, size)), nullptr) << size;
  }
}

TEST_P(SketchSave, SurvivesFlippedBits) {
  const std::string bytes = WithType(SaveSketch(*GetParam().make()));
  const size_t step = 1 + bytes.size() / 60;
  for (size_t at = 1; at < bytes.size(); at += step) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      EXPECT_EQ(CheckSketchLoad(damaged), "") << "byte " << at << " bit " << bit;
    }
  }
}

TEST_P(SketchSave, LoadsTheGoldenFile) {
  const std::filesystem::path path = std::filesystem::path(SAVA_SOURCE_DIR) /
                                     "tests/golden/sketches" /
                                     (std::string(GetParam().name) + ".bin");
  const std::string saved = FileBytes(path);
  Reader in(saved);
  EXPECT_EQ(in.Length(), type().module_id);
  const auto object = LoadSketch(type(), BodyOf(saved));
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(DigestOf(*object), DigestOf(*GetParam().make()));
  EXPECT_EQ(CheckSketchLoad(WithType(BodyOf(saved))), "");
}

// A snapshot in pieces while the sketch changes: what comes out is the sketch at the cut.
TEST_P(SketchSave, SavesInPiecesWhileItChanges) {
  for (const size_t budget : {1, 1000, 100'000}) {
    for (const uint64_t changes : {1, 20, 500}) {
      const auto object = GetParam().make();
      const std::string at_cut = DigestOf(*object);
      base::Rng rng(budget + changes);
      std::string pieces;
      object->BeginCut([&pieces](std::string_view bytes) { pieces += bytes; }, false);
      do {
        for (uint64_t i = 0; i < changes; ++i) Change(*object, rng);
      } while (!object->SavePieces(budget));
      for (uint64_t i = 0; i < changes; ++i) Change(*object, rng);
      EXPECT_TRUE(object->SavePieces(budget));
      const auto again = LoadSketch(type(), BodyOf(pieces));
      ASSERT_NE(again, nullptr) << budget << ' ' << changes;
      EXPECT_EQ(DigestOf(*again), at_cut) << budget << ' ' << changes;
    }
  }
}

TEST_P(SketchSave, AnAbortedCutLeavesNothingBehind) {
  const auto object = GetParam().make();
  size_t pieces = 0;
  object->BeginCut([&pieces](std::string_view) { ++pieces; }, false);
  object->AbortCut();
  const size_t then = pieces;
  base::Rng rng(1);
  for (int i = 0; i < 500; ++i) Change(*object, rng);
  EXPECT_TRUE(object->SavePieces(1 << 20));
  EXPECT_EQ(pieces, then);
}

INSTANTIATE_TEST_SUITE_P(All, SketchSave, testing::ValuesIn(kGoldenSketches),
                         [](const auto& at) { return std::string(at.param.name); });

// What is large is saved in pieces, and no piece is larger than some 16 KB.
TEST(SketchCut, LargeOnesComeInSmallPieces) {
  const std::unique_ptr<Object> large[] = {MakeCountMin(50'000, 5, 20'000),
                                           MakeTopK({.k = 500, .width = 4000}, 20'000),
                                           MakeSimHash(5000)};
  for (const auto& object : large) {
    EXPECT_TRUE(object->large());
    size_t most = 0;
    size_t pieces = 0;
    object->BeginCut(
        [&](std::string_view bytes) {
          most = std::max(most, bytes.size());
          ++pieces;
        },
        false);
    while (!object->SavePieces(1)) continue;
    EXPECT_LE(most, 17'000U) << object->type().name;
    EXPECT_GT(pieces, 5U);
  }
  EXPECT_FALSE(MakeCountMin(2000, 5, 10)->large());
  EXPECT_FALSE(MakeTopK({.k = 10}, 5000)->large());
  EXPECT_FALSE(MakeSimHash(100)->large());
}

TEST(SketchLoad, ReplaysItsCorpus) {
  const std::filesystem::path corpus =
      std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/sketch_load";
  int replayed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    EXPECT_EQ(CheckSketchLoad(FileBytes(entry.path())), "") << entry.path();
    ++replayed;
  }
  EXPECT_GE(replayed, 10);
}

TEST(SketchLoad, RefusesAnything) {
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random() % 60, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 4 == 0 ? random() : random() % 8);
    EXPECT_EQ(CheckSketchLoad(bytes), "");
  }
}

// Sizes that the bytes do not bear out reserve nothing.
TEST(SketchLoad, DoesNotBelieveSizes) {
  std::string cms;
  std::string topk;
  {
    Writer out(&cms);
    out.ModuleUnsigned(1);
    out.ModuleUnsigned(CountMin::kMaxCells);
    out.ModuleUnsigned(1);
    out.ModuleUnsigned(0);
    out.ModuleString("x");
    out.ModuleEnd();
  }
  {
    Writer out(&topk);
    out.ModuleUnsigned(1);
    for (int i = 0; i < 3; ++i) out.ModuleUnsigned(UINT32_MAX);
    out.ModuleDouble(0.5);
    out.ModuleUnsigned(1);
    out.ModuleUnsigned(UINT32_MAX - 2U);
    out.ModuleString("x");
    out.ModuleEnd();
  }
  EXPECT_EQ(LoadSketch(CountMin::Type(), cms), nullptr);
  EXPECT_EQ(LoadSketch(TopK::Type(), topk), nullptr);
}

}  // namespace
}  // namespace sava::types
