// Set against a plain set over the borders of its forms; what OBJECT ENCODING answers at Redis's
// limits; saved, loaded, cut, damaged.
#include "types/collections/set.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "types/collections/packed_forms.h"
#include "types/value/save.h"

namespace sava::types {
namespace {

using Model = std::set<std::string>;

const CollectionLimits kLimits;

Model MembersOf(const Set& set) {
  Model members;
  set.ForEach(
      [&](std::string_view member) { EXPECT_TRUE(members.emplace(member).second) << member; });
  return members;
}

std::string Saved(const Object& object) {
  std::string bytes;
  {
    Writer out(&bytes);
    object.Save(out);
  }
  return bytes;
}

std::unique_ptr<Object> Loaded(uint8_t rdb_type, std::string_view bytes) {
  Reader in(bytes);
  auto object = Set::Type().load(rdb_type, in);
  return in.ok() && in.remaining() == 0 ? std::move(object) : nullptr;
}

std::string Some(base::Rng& rng, uint64_t range, bool numbers) {
  const auto value = static_cast<int64_t>(rng.Below(range)) - static_cast<int64_t>(range / 2);
  if (numbers) {
    // In all three widths.
    const int64_t scale[] = {1, 1'000, 10'000'000'000};
    return std::to_string(value * scale[rng.Below(3)]);
  }
  return "m" + std::to_string(value);
}

TEST(Set, BehavesAsASet) {
  for (const uint64_t range : {20, 120, 300, 3000}) {
    for (const int texts : {0, 1, 50, 100}) {
      base::Rng rng(range + static_cast<uint64_t>(texts));
      Set set;
      Model model;
      for (int i = 0; i < 4000; ++i) {
        const std::string member = Some(rng, range, rng.Below(100) >= static_cast<uint64_t>(texts));
        switch (rng.Below(4)) {
          case 0:
          case 1:
            ASSERT_EQ(set.Add(member, kLimits), model.insert(member).second) << member;
            break;
          case 2:
            ASSERT_EQ(set.Remove(member), model.erase(member) == 1) << member;
            break;
          default:
            ASSERT_EQ(set.Contains(member), model.count(member) == 1) << member;
        }
        ASSERT_EQ(set.size(), model.size());
      }
      EXPECT_EQ(MembersOf(set), model);
      const auto copy = set.Copy();
      EXPECT_EQ(MembersOf(static_cast<const Set&>(*copy)), model);
      EXPECT_EQ(copy->encoding(), set.encoding());
      const auto again = Loaded(set.rdb_type(), Saved(set));
      ASSERT_NE(again, nullptr);
      EXPECT_EQ(MembersOf(static_cast<const Set&>(*again)), model);
    }
  }
}

TEST(Set, NamesItsEncodingAsRedisDoes) {
  Set numbers;
  for (int i = 0; i < 512; ++i) numbers.Add(std::to_string(i), kLimits);
  EXPECT_EQ(numbers.encoding(), "intset");
  EXPECT_EQ(numbers.rdb_type(), 11);
  numbers.Add("512", kLimits);
  EXPECT_EQ(numbers.encoding(), "hashtable");
  EXPECT_EQ(numbers.rdb_type(), 2);
  for (int i = 0; i < 512; ++i) numbers.Remove(std::to_string(i));
  EXPECT_EQ(numbers.encoding(), "hashtable");

  Set few;
  few.Add("1", kLimits);
  few.Add("a", kLimits);
  EXPECT_EQ(few.encoding(), "listpack");
  EXPECT_EQ(few.rdb_type(), 2);
  few.Remove("a");
  EXPECT_EQ(few.encoding(), "listpack");
  for (int i = 1; i < 128; ++i) few.Add("m" + std::to_string(i), kLimits);
  EXPECT_EQ(few.size(), 128U);
  EXPECT_EQ(few.encoding(), "listpack");
  few.Add("m1", kLimits);
  EXPECT_EQ(few.encoding(), "listpack");
  few.Add("one more", kLimits);
  EXPECT_EQ(few.encoding(), "hashtable");

  Set with_long;
  with_long.Add(std::string(64, 'x'), kLimits);
  EXPECT_EQ(with_long.encoding(), "listpack");
  with_long.Add(std::string(65, 'x'), kLimits);
  EXPECT_EQ(with_long.encoding(), "hashtable");

  Set many_numbers;
  for (int i = 0; i < 128; ++i) many_numbers.Add(std::to_string(i), kLimits);
  many_numbers.Add("text", kLimits);
  EXPECT_EQ(many_numbers.encoding(), "hashtable");

  EXPECT_EQ(Set("7", 1, kLimits).encoding(), "intset");
  EXPECT_EQ(Set("7", 513, kLimits).encoding(), "hashtable");
  EXPECT_EQ(Set("a", 128, kLimits).encoding(), "listpack");
  EXPECT_EQ(Set("a", 129, kLimits).encoding(), "hashtable");

  // By other limits, whatever the form is.
  CollectionLimits wide;
  wide.set_max_listpack_entries = 10000;
  wide.set_max_listpack_value = 10000;
  Set listpack;
  for (int i = 0; i < 2000; ++i) listpack.Add("text" + std::to_string(i), wide);
  EXPECT_EQ(listpack.encoding(), "listpack");
  EXPECT_EQ(listpack.size(), 2000U);
  CollectionLimits none;
  none.set_max_intset_entries = 0;
  none.set_max_listpack_entries = 0;
  Set table;
  table.Add("1", none);
  EXPECT_EQ(table.encoding(), "hashtable");
}

TEST(Set, KeepsNumbersInOrder) {
  Set set;
  for (const char* text :
       {"70000", "-5", "3", "9223372036854775807", "-9223372036854775808", "0"}) {
    EXPECT_TRUE(set.Add(text, kLimits));
  }
  std::string all;
  set.ForEach([&](std::string_view member) { all.append(member).append(" "); });
  EXPECT_EQ(all, "-9223372036854775808 -5 0 3 70000 9223372036854775807 ");
  // Not in canonical form: a text.
  EXPECT_FALSE(set.Contains("03"));
  EXPECT_TRUE(set.Add("03", kLimits));
  EXPECT_EQ(set.encoding(), "listpack");
}

TEST(Set, BecomesNumbersAgainOnlyWhenAsked) {
  Set set;
  for (const char* text : {"5", "a", "1"}) set.Add(text, kLimits);
  set.MaybeNumbers(kLimits);
  EXPECT_EQ(set.encoding(), "listpack");
  set.Remove("a");
  set.MaybeNumbers(kLimits);
  EXPECT_EQ(set.encoding(), "intset");
  EXPECT_EQ(MembersOf(set), (Model{"1", "5"}));
}

TEST(Set, ChoosesFromEveryForm) {
  base::Rng rng(5);
  for (const uint64_t size : {3, 100, 2000}) {
    for (const bool numbers : {true, false}) {
      Set set;
      for (uint64_t i = 0; i < size; ++i) {
        set.Add((numbers ? "" : "m") + std::to_string(i), kLimits);
      }
      Model seen;
      std::string member;
      for (uint64_t i = 0; i < size * 20; ++i) {
        ASSERT_TRUE(set.Random([&] { return rng.Next(); }, &member));
        ASSERT_TRUE(set.Contains(member));
        seen.insert(member);
      }
      EXPECT_EQ(seen.size(), size);
    }
  }
}

// From the small form into the table in the middle of a walk.
TEST(Set, AWalkMissesNothingThroughReEncoding) {
  base::Rng rng(6);
  Set set;
  for (int i = 0; i < 120; ++i) set.Add("m" + std::to_string(i), kLimits);
  Model seen;
  uint64_t cursor = 0;
  int next = 120;
  do {
    cursor = set.Scan(cursor, 10, [&](std::string_view member) { seen.emplace(member); });
    for (int i = 0; i < 50 && next < 5000; ++i) set.Add("m" + std::to_string(next++), kLimits);
  } while (cursor != 0);
  for (int i = 0; i < 120; ++i) EXPECT_EQ(seen.count("m" + std::to_string(i)), 1U);
}

TEST(Set, ReadsRedisForms) {
  ListpackWriter pack;
  for (const char* text : {"a", "17", "long enough to be a text"}) pack.Add(text);
  std::string bytes;
  {
    Writer out(&bytes);
    out.String(pack.Finish());
  }
  const auto from_listpack = Loaded(20, bytes);
  ASSERT_NE(from_listpack, nullptr);
  EXPECT_EQ(from_listpack->encoding(), "listpack");
  EXPECT_EQ(MembersOf(static_cast<const Set&>(*from_listpack)),
            (Model{"a", "17", "long enough to be a text"}));

  ListpackWriter twice;
  twice.Add("a");
  twice.Add("a");
  bytes.clear();
  {
    Writer out(&bytes);
    out.String(twice.Finish());
  }
  EXPECT_EQ(Loaded(20, bytes), nullptr);
  // Nothing in it, and a count that cannot be.
  EXPECT_EQ(Loaded(2, std::string(1, '\0')), nullptr);
  EXPECT_EQ(Loaded(2, "\x81\xff\xff\xff\xff\xff\xff\xff\xff"), nullptr);
}

TEST(Set, RefusesWhatIsCutOff) {
  for (const bool numbers : {true, false}) {
    Set set;
    for (int i = 0; i < 200; ++i) set.Add((numbers ? "" : "m") + std::to_string(i), kLimits);
    const std::string bytes = Saved(set);
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_EQ(Loaded(set.rdb_type(), bytes.substr(0, size)), nullptr) << size;
    }
  }
}

TEST(Set, ACutKeepsItsMoment) {
  base::Rng rng(11);
  Set set;
  for (int i = 0; i < 10000; ++i) set.Add("m" + std::to_string(i), kLimits);
  ASSERT_TRUE(set.large());
  const Model model = MembersOf(set);
  const uint8_t type = set.rdb_type();
  std::string saved;
  set.BeginCut([&](std::string_view bytes) { saved.append(bytes); }, false);
  for (bool done = false; !done; done = set.SavePieces(4096)) {
    for (int i = 0; i < 200; ++i) {
      const std::string member = "m" + std::to_string(rng.Below(30000));
      rng.Below(2) == 0 ? set.Add(member, kLimits) : set.Remove(member);
    }
  }
  const auto read = Loaded(type, saved);
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(MembersOf(static_cast<const Set&>(*read)), model);
}

TEST(Set, IsSmall) {
  Set set;
  for (int i = 0; i < 10; ++i) set.Add("member:" + std::to_string(i), kLimits);
  EXPECT_LE(set.MemoryUsage(0), 128U + 16);
  Set large;
  for (int i = 1000000; i < 1050000; ++i) large.Add("member:00" + std::to_string(i), kLimits);
  EXPECT_LE(large.MemoryUsage(0), 50000U * 25);
}

}  // namespace
}  // namespace sava::types
