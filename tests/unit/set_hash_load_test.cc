// The loaders of sets and hashes: every form that can be written, with bits flipped and bytes cut,
// and the seeds of the fuzz target.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "../../fuzz/set_hash_load_property.h"
#include "base/rng.h"
#include "types/collections/packed_forms.h"

namespace sava::types {
namespace {

std::string Quoted(const std::string& packed) {
  std::string bytes;
  {
    Writer out(&bytes, false);
    out.String(packed);
  }
  return bytes;
}

// One input of the fuzz target for each form: its number, then the bytes.
std::vector<std::string> Seeds() {
  constexpr int64_t kTime = 1'700'000'000'000;
  std::vector<std::string> seeds;
  const auto add = [&](int form, const std::string& body) {
    seeds.push_back(static_cast<char>(form) + body);
  };
  Set texts;
  Set numbers;
  for (int i = 0; i < 30; ++i) {
    texts.Add("member " + std::to_string(i), kDefaultCollectionLimits);
    numbers.Add(std::to_string(i * 5000), kDefaultCollectionLimits);
  }
  add(0, SaveForm(texts));
  add(1, SaveForm(numbers));
  ListpackWriter pack;
  for (const char* text : {"a", "1", "-70000", "a longer text than the others"}) pack.Add(text);
  const std::string listpack = Quoted(pack.Finish());
  add(2, listpack);
  std::string fields;
  {
    Writer out(&fields, false);
    out.Length(2);
    for (const char* text : {"a", "1", "b", "two"}) out.String(text);
  }
  add(3, fields);
  add(4, Quoted(std::string("\x02\x01"
                            "a\x01\x00"
                            "1\x02"
                            "bb\x03\x00"
                            "two\xff",
                            15)));
  // A ziplist: bytes, tail, count; each entry the length of the one before, its own, its bytes.
  add(5, Quoted(std::string("\x11\0\0\0\x0d\0\0\0\x02\0\0\x01"
                            "a\x03\x01"
                            "b\xff",
                            17)));
  add(6, listpack);
  Hash small;
  for (int i = 0; i < 6; ++i) {
    const std::string field = "f" + std::to_string(i);
    small.Set(field, std::to_string(i), 0, kDefaultCollectionLimits);
    if (i % 2 == 0) small.SetExpiry(field, kTime - i);
  }
  add(10, SaveForm(small));
  add(8, SaveForm(small).substr(8));
  small.Set("long", std::string(70, 'x'), 0, kDefaultCollectionLimits);
  add(9, SaveForm(small));
  std::string early;
  {
    Writer out(&early, false);
    out.Length(1);
    out.Length(static_cast<uint64_t>(kTime));
    out.String("a");
    out.String("1");
  }
  add(7, early);
  return seeds;
}

TEST(SetHashLoad, WhatIsWrittenIsRead) {
  for (const std::string& seed : Seeds()) {
    const LoadableForm& form = kLoadableForms[static_cast<uint8_t>(seed[0])];
    EXPECT_NE(LoadForm(*form.type, form.rdb_type, seed.substr(1)), nullptr)
        << static_cast<int>(form.rdb_type);
    EXPECT_EQ(CheckSetHashLoad(seed), "");
  }
}

TEST(SetHashLoad, DamageIsRefusedOrHarmless) {
  base::Rng rng(1);
  for (const std::string& seed : Seeds()) {
    for (size_t size = 1; size < seed.size(); ++size) {
      EXPECT_EQ(CheckSetHashLoad(seed.substr(0, size)), "");
    }
    for (int i = 0; i < 3000; ++i) {
      std::string bytes = seed;
      for (uint64_t flips = 1 + rng.Below(3); flips > 0; --flips) {
        bytes[1 + rng.Below(bytes.size() - 1)] ^= static_cast<char>(1 << rng.Below(8));
      }
      ASSERT_EQ(CheckSetHashLoad(bytes), "");
    }
  }
}

TEST(SetHashLoad, SeedsHold) {
  const auto folder = std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/set_hash_load";
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    EXPECT_EQ(CheckSetHashLoad(bytes), "") << entry.path();
    ++count;
  }
  EXPECT_GE(count, 11U);
}

}  // namespace
}  // namespace sava::types
