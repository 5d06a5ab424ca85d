// Counters that are saved in pieces while they change, and files whose values refer to the member
// dictionary.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "types/counters/afc.h"
#include "types/counters/member_dictionary.h"
#include "types/value/save.h"
#include "types/value/type_registry.h"

namespace sava::types {
namespace {

using Content = std::vector<std::pair<std::string, uint64_t>>;

Content ContentOf(const Afc& afc, int64_t now_ms = 0) {
  Content content;
  afc.Top(SIZE_MAX, now_ms, [&](std::string_view member, uint64_t count) {
    content.emplace_back(std::string(member), count);
  });
  return content;
}

std::unique_ptr<Object> LoadFrom(const std::string& bytes,
                                 const SavedDictionary* dictionary = nullptr) {
  FileAux aux;
  // Whoever called keeps it.
  const std::shared_ptr<const LoadedAux> kept(std::shared_ptr<void>(), dictionary);
  if (dictionary != nullptr) aux.Put(Afc::Type().module_id, kept);
  Reader in(bytes);
  in.set_aux(&aux);
  auto object = AllTypes().Load(kRdbModule, in);
  EXPECT_TRUE(object == nullptr || in.remaining() == 0);
  return object;
}

void Change(Afc& afc, base::Rng& rng, int steps, uint64_t members, int64_t now_ms = 0) {
  for (int i = 0; i < steps; ++i) {
    const std::string member = "member" + std::to_string(rng.Below(members));
    if (rng.Below(10) == 0) {
      afc.Remove(member, now_ms);
    } else {
      afc.Add(member, 1 + (rng.Below(20) == 0 ? rng.Below(100) : 0), now_ms);
    }
  }
}

// What was saved is what the counter held when the cut began, whatever happened afterwards.
void CheckCut(const Afc::Options& options, uint64_t members, uint64_t seed, bool refer) {
  SCOPED_TRACE(testing::Message() << "members " << members << " seed " << seed);
  base::Rng rng(seed);
  Afc afc(options, 0);
  Change(afc, rng, static_cast<int>(members) * 4, members);
  ASSERT_TRUE(afc.large());
  MemberDictionary::Shared().Pin();
  std::string all;
  SavedDictionary dictionary;
  if (refer) {
    std::string saved;
    {
      Writer out(&saved);
      MemberDictionary::Shared().SaveAll(out);
    }
    Reader in(saved);
    ASSERT_TRUE(dictionary.Load(in));
  }
  const Content before = ContentOf(afc);
  const uint64_t total = afc.Total(0);
  afc.BeginCut([&](std::string_view piece) { all += piece; }, refer);
  bool done = false;
  while (!done) {
    Change(afc, rng, 200, members * 2);
    done = afc.SavePieces(16 << 10);
  }
  Change(afc, rng, 1000, members * 2);
  MemberDictionary::Shared().Unpin();
  EXPECT_NE(ContentOf(afc), before);
  const auto loaded = LoadFrom(all, &dictionary);
  ASSERT_NE(loaded, nullptr);
  const auto& copy = static_cast<const Afc&>(*loaded);
  EXPECT_EQ(ContentOf(copy), before);
  EXPECT_NEAR(static_cast<double>(copy.Total(0)), static_cast<double>(total), 1);
  EXPECT_EQ(copy.options(), options);
  EXPECT_EQ(afc.options(), options);
}

TEST(AfcSnapshot, KeepsTheCutWhileTheCounterChanges) {
  for (const uint64_t seed : {1, 2, 3}) {
    CheckCut({}, 20000, seed, false);
    CheckCut({}, 20000, seed, true);
    CheckCut({.halflife_ms = 5000}, 5000, seed, false);
    CheckCut({.window_ms = 1000}, 5000, seed, true);
    CheckCut({.maxlen = 4000}, 5000, seed, false);
  }
}

// A counter that shrinks to the packed layout in the middle of a cut saves the rest first.
TEST(AfcSnapshot, SurvivesAChangeOfLayout) {
  base::Rng rng(7);
  Afc afc;
  Change(afc, rng, 20000, 5000);
  const Content before = ContentOf(afc);
  std::string all;
  afc.BeginCut([&](std::string_view piece) { all += piece; }, false);
  for (const auto& [member, count] : before) afc.Remove(member, 0);
  EXPECT_TRUE(afc.SavePieces(1));
  EXPECT_EQ(afc.size(), 0U);
  EXPECT_EQ(afc.layout(), "packed");
  const auto loaded = LoadFrom(all);
  ASSERT_NE(loaded, nullptr);
  EXPECT_EQ(ContentOf(static_cast<const Afc&>(*loaded)), before);
}

// A window that moves on in the middle of a cut does too.
TEST(AfcSnapshot, SurvivesARotation) {
  base::Rng rng(8);
  Afc afc({.window_ms = 1000}, 0);
  Change(afc, rng, 20000, 5000, 500);
  Change(afc, rng, 20000, 7000, 1500);
  const Content before = ContentOf(afc, 1500);
  std::string all;
  afc.BeginCut([&](std::string_view piece) { all += piece; }, false);
  afc.SavePieces(1);
  afc.Add("late", 1, 9000);
  EXPECT_TRUE(afc.SavePieces(1));
  EXPECT_EQ(ContentOf(afc, 9000), (Content{{"late", 1}}));
  const auto loaded = LoadFrom(all);
  ASSERT_NE(loaded, nullptr);
  EXPECT_EQ(ContentOf(static_cast<const Afc&>(*loaded), 1500), before);
}

TEST(AfcSnapshot, AnAbortedCutLeavesNothingBehind) {
  base::Rng rng(9);
  Afc afc;
  Change(afc, rng, 20000, 5000);
  size_t pieces = 0;
  afc.BeginCut([&](std::string_view) { ++pieces; }, false);
  afc.AbortCut();
  const size_t then = pieces;
  Change(afc, rng, 1000, 5000);
  EXPECT_TRUE(afc.SavePieces(1 << 20));
  EXPECT_EQ(pieces, then);
}

// Values that refer to the dictionary are small, and need it to be read.
TEST(AfcSnapshot, RefersToTheDictionary) {
  std::vector<std::unique_ptr<Afc>> counters;
  for (int i = 0; i < 64; ++i) {
    counters.push_back(std::make_unique<Afc>());
    for (int m = 0; m < 100; ++m) {
      counters.back()->Add("a shared member number " + std::to_string(m), 1, 0);
    }
  }
  std::string dictionary_bytes;
  {
    Writer out(&dictionary_bytes);
    MemberDictionary::Shared().SaveAll(out);
  }
  std::string whole;
  std::string referring;
  {
    Writer out(&whole, false);
    counters.back()->Save(out);
  }
  {
    Writer out(&referring, false);
    out.set_refers(true);
    counters.back()->Save(out);
  }
  EXPECT_LT(referring.size() * 5, whole.size());
  EXPECT_EQ(LoadFrom(referring), nullptr);
  SavedDictionary dictionary;
  Reader in(dictionary_bytes);
  ASSERT_TRUE(dictionary.Load(in));
  const auto loaded = LoadFrom(referring, &dictionary);
  ASSERT_NE(loaded, nullptr);
  EXPECT_EQ(ContentOf(static_cast<const Afc&>(*loaded)), ContentOf(*counters.back()));
}

}  // namespace
}  // namespace sava::types
