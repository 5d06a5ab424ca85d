// Hash against a plain map over the borders of its forms; times of fields; what OBJECT ENCODING
// answers at Redis's limits; saved, loaded, cut, damaged.
#include "types/collections/hash.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "types/collections/packed_forms.h"
#include "types/value/save.h"

namespace sava::types {
namespace {

struct Cell {
  std::string value;
  int64_t at = Hash::kNoExpiry;
  bool operator==(const Cell&) const = default;
};
using Model = std::map<std::string, Cell>;

const CollectionLimits kLimits;
constexpr int64_t kNow = 1'700'000'000'000;

Model CellsOf(const Hash& hash, int64_t now = Hash::kNever) {
  Model cells;
  hash.ForEach(now, [&](std::string_view field, std::string_view value) {
    const Cell cell{std::string(value), hash.ExpiryOf(field)};
    EXPECT_TRUE(cells.emplace(std::string(field), cell).second) << field;
  });
  return cells;
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
  auto object = Hash::Type().load(rdb_type, in);
  return in.ok() && in.remaining() == 0 ? std::move(object) : nullptr;
}

// Some values are frequent, so that they get numbers (SharedTexts).
std::string Text(base::Rng& rng, size_t most) {
  if (rng.Below(3) == 0) return "a value of many " + std::to_string(rng.Below(20));
  return std::string(rng.Below(most + 1), static_cast<char>('a' + rng.Below(26)));
}

std::string Field(uint64_t i) {
  return i % 17 == 0 ? "a longer name of a field " + std::to_string(i) : "f" + std::to_string(i);
}

TEST(Hash, BehavesAsAMap) {
  for (const uint64_t fields : {5, 60, 140, 700, 4000}) {
    for (const size_t most : {10, 40, 64, 300}) {
      base::Rng rng(fields + most);
      Hash hash;
      Model model;
      for (int i = 0; i < 3000; ++i) {
        const std::string field = Field(rng.Below(fields));
        switch (rng.Below(4)) {
          case 0:
          case 1: {
            const std::string value = Text(rng, most);
            const bool fresh = model.insert_or_assign(field, Cell{value}).second;
            ASSERT_EQ(hash.Set(field, value, Hash::kNever, kLimits), fresh);
            break;
          }
          case 2:
            ASSERT_EQ(hash.Remove(field), model.erase(field) == 1);
            break;
          default: {
            std::string_view value;
            const auto found = model.find(field);
            ASSERT_EQ(hash.Find(field, Hash::kNever, &value), found != model.end());
            if (found != model.end()) {
              ASSERT_EQ(value, found->second.value);
            }
          }
        }
        ASSERT_EQ(hash.size(), model.size());
      }
      EXPECT_EQ(CellsOf(hash), model);
      const auto copy = hash.Copy();
      EXPECT_EQ(CellsOf(static_cast<const Hash&>(*copy)), model);
      const auto again = Loaded(hash.rdb_type(), Saved(hash));
      ASSERT_NE(again, nullptr);
      EXPECT_EQ(CellsOf(static_cast<const Hash&>(*again)), model);
    }
  }
}

// The heads of packed fields at every border of their lengths.
TEST(Hash, PacksAllLengths) {
  CollectionLimits wide;
  wide.hash_max_listpack_value = 1 << 20;
  // Some names and values get numbers on the way: the second time they have them.
  for (const size_t field : {0, 1, 7, 8, 62, 63, 64, 127, 128, 300, 62, 63, 64, 127, 128}) {
    for (const size_t value : {0, 31, 32, 63, 64, 65, 126, 127, 128, 1000}) {
      for (int i = 0; i < 110; ++i) {
        Hash().Set(std::string(field, 'f'), std::string(value, 'v'), Hash::kNever, wide);
      }
      Hash hash;
      const std::string name(field, 'f');
      const std::string text(value, 'v');
      EXPECT_TRUE(hash.Set("before", "1", Hash::kNever, wide));
      EXPECT_TRUE(hash.Set(name, text, Hash::kNever, wide));
      EXPECT_TRUE(hash.Set("behind", "2", Hash::kNever, wide));
      EXPECT_EQ(CellsOf(hash), (Model{{"before", {"1"}}, {name, {text}}, {"behind", {"2"}}}));
      EXPECT_FALSE(hash.Set(name, "changed", Hash::kNever, wide));
      EXPECT_TRUE(hash.Remove("before"));
      EXPECT_EQ(CellsOf(hash), (Model{{name, {"changed"}}, {"behind", {"2"}}}));
    }
  }
}

TEST(Hash, NamesItsEncodingAsRedisDoes) {
  Hash hash;
  for (int i = 0; i < 512; ++i) hash.Set("f" + std::to_string(i), "v", kNow, kLimits);
  EXPECT_EQ(hash.encoding(), "listpack");
  EXPECT_EQ(hash.rdb_type(), 16);
  hash.Set("f0", "again", kNow, kLimits);
  EXPECT_EQ(hash.encoding(), "listpack");
  hash.Set("one more", "v", kNow, kLimits);
  EXPECT_EQ(hash.encoding(), "hashtable");
  EXPECT_EQ(hash.rdb_type(), 4);
  for (int i = 0; i < 512; ++i) hash.Remove("f" + std::to_string(i));
  EXPECT_EQ(hash.encoding(), "hashtable");

  Hash values;
  values.Set("f", std::string(64, 'x'), kNow, kLimits);
  EXPECT_EQ(values.encoding(), "listpack");
  values.Set("f", std::string(65, 'x'), kNow, kLimits);
  EXPECT_EQ(values.encoding(), "hashtable");
  Hash names;
  names.Set(std::string(65, 'x'), "v", kNow, kLimits);
  EXPECT_EQ(names.encoding(), "hashtable");
  Hash expecting;
  expecting.Expect(513, 1, kLimits);
  EXPECT_EQ(expecting.encoding(), "hashtable");

  Hash timed;
  timed.Set("f", "v", kNow, kLimits);
  timed.SetExpiry("f", kNow + 1000);
  EXPECT_EQ(timed.encoding(), "listpackex");
  EXPECT_EQ(timed.rdb_type(), 25);
  timed.SetExpiry("f", Hash::kNoExpiry);
  EXPECT_EQ(timed.encoding(), "listpackex");
  EXPECT_EQ(timed.rdb_type(), 16);
  timed.SetExpiry("f", kNow + 1000);
  timed.Set("g", std::string(65, 'x'), kNow, kLimits);
  EXPECT_EQ(timed.encoding(), "hashtable");
  EXPECT_EQ(timed.rdb_type(), 24);
}

TEST(Hash, FewLongValuesTakeLittleMoreThanTheirBytes) {
  for (const size_t length : {65U, 127U, 300U}) {
    Hash hash;
    hash.Set("f1", std::string(length, 'x'), kNow, kLimits);
    hash.Set("f2", std::string(length, 'y'), kNow, kLimits);
    EXPECT_EQ(hash.encoding(), "hashtable");
    EXPECT_EQ(hash.rdb_type(), 4);
    EXPECT_LE(hash.MemoryUsage(0), 2 * length + 2 * length / 4 + 64) << length;
    // With a time it has to have a table; the encoding stays.
    hash.SetExpiry("f1", kNow + 1000);
    EXPECT_EQ(hash.encoding(), "hashtable");
    EXPECT_EQ(hash.ExpiryOf("f1"), kNow + 1000);
    std::string_view value;
    EXPECT_TRUE(hash.Find("f2", kNow, &value));
    EXPECT_EQ(value, std::string(length, 'y'));
  }
}

TEST(Hash, SmallOnesAreSmall) {
  Hash hash;
  for (int i = 0; i < 10; ++i) {
    hash.Set("field:" + std::to_string(i), std::string(16, 'v'), kNow, kLimits);
  }
  EXPECT_EQ(hash.MemoryUsage(0), 256U + 16);
}

TEST(Hash, FieldsPastTheirTimeAreGone) {
  Hash hash;
  hash.Set("stays", "1", kNow, kLimits);
  hash.Set("goes", "2", kNow, kLimits);
  hash.SetExpiry("goes", kNow + 10);
  EXPECT_EQ(hash.next_deadline(), kNow + 10);
  EXPECT_TRUE(hash.Find("goes", kNow + 10, nullptr));
  EXPECT_FALSE(hash.Find("goes", kNow + 11, nullptr));
  EXPECT_TRUE(hash.Find("goes", Hash::kNever, nullptr));
  EXPECT_EQ(CellsOf(hash, kNow + 11).size(), 1U);
  base::Rng rng(1);
  std::string_view field;
  std::string_view value;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(hash.Random([&] { return rng.Next(); }, kNow + 11, &field, &value));
    EXPECT_EQ(field, "stays");
  }
  size_t scanned = 0;
  EXPECT_EQ(hash.Scan(0, 10, kNow + 11, [&](std::string_view, std::string_view) { ++scanned; }),
            0U);
  EXPECT_EQ(scanned, 1U);
  // Written anew it has no time.
  EXPECT_FALSE(hash.Set("goes", "3", kNow + 11, kLimits, true));
  EXPECT_EQ(hash.ExpiryOf("goes"), Hash::kNoExpiry);
  EXPECT_EQ(hash.next_deadline(), -1);

  hash.SetExpiry("goes", kNow + 20);
  EXPECT_FALSE(hash.Set("goes", "4", kNow, kLimits, true));
  EXPECT_EQ(hash.ExpiryOf("goes"), kNow + 20);
  EXPECT_FALSE(hash.Set("goes", "5", kNow, kLimits));
  EXPECT_EQ(hash.ExpiryOf("goes"), Hash::kNoExpiry);
  hash.SetExpiry("stays", kNow);
  hash.SetExpiry("goes", kNow);
  EXPECT_FALSE(hash.Random([&] { return rng.Next(); }, kNow + 1, &field, &value));
}

TEST(Hash, PartsAndFormsForThoseWhoDoNotKnowHashes) {
  Hash hash;
  for (const char* field : {"kept", "timed", "gone"}) hash.Set(field, field, kNow, kLimits);
  hash.SetExpiry("timed", kNow + 1);
  hash.SetExpiry("gone", kNow - 1);
  Object& object = hash;
  EXPECT_TRUE(object.IsPartExpired("gone", kNow));
  for (const char* field : {"kept", "timed", "missing"}) {
    EXPECT_FALSE(object.IsPartExpired(field, kNow)) << field;
  }
  const StockForm form = object.stock_form(kNow);
  EXPECT_FALSE(form.empty);
  std::string bytes;
  {
    Writer out(&bytes);
    object.SaveStockForm(out, kNow);
  }
  Reader in(bytes);
  const auto again = Hash::Type().load(form.rdb_type, in);
  ASSERT_NE(again, nullptr);
  const Model cells = CellsOf(static_cast<const Hash&>(*again));
  EXPECT_EQ(cells, (Model{{"kept", {"kept"}}, {"timed", {"timed"}}}));
  EXPECT_TRUE(object.RemovePart("gone"));
  EXPECT_FALSE(object.RemovePart("gone"));
  object.RemovePart("kept");
  EXPECT_TRUE(object.stock_form(kNow + 2).empty);
}

TEST(Hash, TimesFollowAModel) {
  base::Rng rng(4);
  Hash hash;
  Model model;
  int64_t now = kNow;
  for (int i = 0; i < 30000; ++i) {
    const std::string field = "f" + std::to_string(rng.Below(2000));
    const auto found = model.find(field);
    switch (rng.Below(5)) {
      case 0:
      case 1: {
        const bool fresh =
            found == model.end() || (found->second.at != Hash::kNoExpiry && found->second.at < now);
        ASSERT_EQ(hash.Set(field, "v", now, kLimits), fresh);
        model[field] = Cell{"v"};
        break;
      }
      case 2:
      case 3:
        if (found != model.end()) {
          found->second.at = now + static_cast<int64_t>(rng.Below(3000));
          hash.SetExpiry(field, found->second.at);
        }
        break;
      default:
        if (found != model.end() && rng.Below(2) == 0) {
          found->second.at = Hash::kNoExpiry;
          hash.SetExpiry(field, Hash::kNoExpiry);
        } else {
          ASSERT_EQ(hash.Remove(field), model.erase(field) == 1);
        }
    }
    if (i % 100 != 0) continue;
    now += 50;
    std::vector<std::string> names;
    while (hash.RemoveExpired(now, 7, &names)) {
    }
    std::set<std::string> due;
    for (auto it = model.begin(); it != model.end();) {
      const bool gone = it->second.at != Hash::kNoExpiry && it->second.at < now;
      if (gone) due.insert(it->first);
      it = gone ? model.erase(it) : std::next(it);
    }
    ASSERT_EQ(std::set<std::string>(names.begin(), names.end()), due);
    ASSERT_EQ(names.size(), due.size());
    if (hash.has_expiries()) {
      ASSERT_GE(hash.next_deadline(), 0);
      for (const auto& [name, cell] : model) {
        if (cell.at != Hash::kNoExpiry) {
          ASSERT_GE(cell.at, hash.next_deadline());
        }
      }
    }
  }
  EXPECT_EQ(CellsOf(hash), model);
  const auto copy = hash.Copy();
  EXPECT_EQ(CellsOf(static_cast<const Hash&>(*copy)), model);
  EXPECT_EQ(hash.rdb_type(), 24);
  const auto again = Loaded(24, Saved(hash));
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(CellsOf(static_cast<const Hash&>(*again)), model);
}

TEST(Hash, SmallTimedOnesReadBack) {
  Hash hash;
  for (int i = 0; i < 20; ++i) {
    hash.Set("f" + std::to_string(i), std::to_string(i), kNow, kLimits);
    if (i % 2 == 0) hash.SetExpiry("f" + std::to_string(i), kNow + 100 - i);
  }
  ASSERT_EQ(hash.rdb_type(), 25);
  const std::string bytes = Saved(hash);
  const auto again = Loaded(25, bytes);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(CellsOf(static_cast<const Hash&>(*again)), CellsOf(hash));
  EXPECT_EQ(again->encoding(), "listpackex");
  // Before the release of 7.4 the earliest time did not stand in front.
  const auto early = Loaded(23, bytes.substr(8));
  ASSERT_NE(early, nullptr);
  EXPECT_EQ(CellsOf(static_cast<const Hash&>(*early)), CellsOf(hash));
}

TEST(Hash, ReadsTimesAsTheyAre) {
  std::string bytes;
  {
    Writer out(&bytes);
    out.Length(2);
    out.Length(static_cast<uint64_t>(kNow));
    out.String("a");
    out.String("1");
    out.Length(0);
    out.String("b");
    out.String("2");
  }
  const auto hash = Loaded(22, bytes);
  ASSERT_NE(hash, nullptr);
  EXPECT_EQ(CellsOf(static_cast<const Hash&>(*hash)), (Model{{"a", {"1", kNow}}, {"b", {"2"}}}));
}

TEST(Hash, ReadsRedisForms) {
  // A zipmap: how many, then length, name, length, free bytes, value of each; the end.
  const std::string zipmap(
      "\x02\x01"
      "a\x01\x00"
      "1\x02"
      "bb\x03\x00"
      "two\xff",
      15);
  std::string bytes;
  {
    Writer out(&bytes);
    out.String(zipmap);
  }
  const auto old = Loaded(9, bytes);
  ASSERT_NE(old, nullptr);
  EXPECT_EQ(CellsOf(static_cast<const Hash&>(*old)), (Model{{"a", {"1"}}, {"bb", {"two"}}}));

  // Not in pairs; a field twice; nothing.
  for (const std::vector<const char*>& items :
       {std::vector<const char*>{"a", "1", "b"}, {"a", "1", "a", "2"}, {}}) {
    ListpackWriter pack;
    for (const char* item : items) pack.Add(item);
    std::string body;
    {
      Writer out(&body);
      out.String(pack.Finish());
    }
    EXPECT_EQ(Loaded(16, body), nullptr);
  }
  EXPECT_EQ(Loaded(4, "\x81\xff\xff\xff\xff\xff\xff\xff\xff"), nullptr);
}

TEST(Hash, RefusesWhatIsCutOff) {
  for (const bool timed : {false, true}) {
    for (const int fields : {10, 600}) {
      Hash hash;
      for (int i = 0; i < fields; ++i) hash.Set("f" + std::to_string(i), "v", kNow, kLimits);
      if (timed) hash.SetExpiry("f3", kNow + 5);
      const std::string bytes = Saved(hash);
      for (size_t size = 0; size<bytes.size(); size += fields> 100 ? 17 : 1) {
        EXPECT_EQ(Loaded(hash.rdb_type(), bytes.substr(0, size)), nullptr) << size;
      }
    }
  }
}

TEST(Hash, ACutKeepsItsMoment) {
  for (const bool timed : {false, true}) {
    base::Rng rng(12);
    Hash hash;
    for (int i = 0; i < 6000; ++i) {
      const std::string field = "f" + std::to_string(i);
      hash.Set(field, Text(rng, 40), kNow, kLimits);
      if (timed && i % 3 == 0) hash.SetExpiry(field, kNow + 100 + i);
    }
    ASSERT_TRUE(hash.large());
    const Model model = CellsOf(hash);
    const uint8_t type = hash.rdb_type();
    std::string saved;
    hash.BeginCut([&](std::string_view bytes) { saved.append(bytes); }, false);
    for (bool done = false; !done; done = hash.SavePieces(4096)) {
      for (int i = 0; i < 100; ++i) {
        const std::string field = "f" + std::to_string(rng.Below(15000));
        const uint64_t action = rng.Below(4);
        if (action == 0) {
          hash.Remove(field);
        } else if (action == 1 && hash.Find(field, Hash::kNever, nullptr)) {
          hash.SetExpiry(field, rng.Below(2) == 0 ? Hash::kNoExpiry : kNow + 7);
        } else {
          hash.Set(field, Text(rng, 80), kNow, kLimits, rng.Below(2) == 0);
        }
      }
    }
    const auto read = Loaded(type, saved);
    ASSERT_NE(read, nullptr);
    EXPECT_EQ(CellsOf(static_cast<const Hash&>(*read)), model);
  }
}

}  // namespace
}  // namespace sava::types
