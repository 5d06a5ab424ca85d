// RecordTable against a plain map: random calls with records of all sizes, what a walk promises
// while the table changes, choices at random, and cuts under changes.
#include "types/collections/record_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "types/value/save.h"

namespace sava::types {
namespace {

using Model = std::unordered_map<std::string, std::string>;
using Record = RecordTable::Record;

std::string Name(uint64_t i) { return "member:" + std::to_string(i); }

std::string Bytes(base::Rng& rng) {
  const uint64_t kind = rng.Below(20);
  const size_t size = kind == 0 ? rng.Below(3000) : kind < 4 ? rng.Below(300) : rng.Below(24);
  return std::string(size, static_cast<char>('a' + rng.Below(26)));
}

// Sometimes long, always the same for a number.
std::string Key(uint64_t i) {
  return i % 50 == 0 ? Name(i) + std::string(100 + i % 700, 'x') : Name(i);
}

void ExpectEqual(const RecordTable& table, const Model& model) {
  ASSERT_EQ(table.size(), model.size());
  size_t seen = 0;
  table.ForEach([&](const Record& record) {
    const auto found = model.find(std::string(record.key));
    ASSERT_NE(found, model.end()) << record.key;
    EXPECT_EQ(found->second, record.payload);
    ++seen;
  });
  EXPECT_EQ(seen, model.size());
}

TEST(RecordTable, BehavesAsAMap) {
  base::Rng rng(1);
  RecordTable table(RecordTable::Payload::kVariable);
  Model model;
  for (const uint64_t keys : {50, 3000, 400, 20000, 30}) {
    for (uint64_t i = 0; i < 2 * keys + 5000; ++i) {
      const std::string key = Key(rng.Below(keys));
      switch (rng.Below(keys < 1000 ? 4 : 3)) {
        case 0: {
          const std::string payload = Bytes(rng);
          EXPECT_EQ(table.Insert(key, payload), model.emplace(key, payload).second);
          break;
        }
        case 1: {
          const std::string payload = Bytes(rng);
          EXPECT_EQ(table.Put(key, payload), model.insert_or_assign(key, payload).second);
          break;
        }
        case 2: {
          std::string_view payload;
          const auto found = model.find(key);
          ASSERT_EQ(table.Find(key, &payload), found != model.end());
          if (found != model.end()) {
            EXPECT_EQ(payload, found->second);
          }
          break;
        }
        default:
          EXPECT_EQ(table.Erase(key), model.erase(key) == 1);
      }
    }
    table.CheckInvariants();
    ExpectEqual(table, model);
    // Nearly everything goes before the next round.
    for (auto it = model.begin(); it != model.end();) {
      if (rng.Below(10) == 0) {
        ++it;
        continue;
      }
      EXPECT_TRUE(table.Erase(it->first));
      it = model.erase(it);
    }
    table.CheckInvariants();
  }
  RecordTable copy(RecordTable::Payload::kVariable);
  copy.CopyFrom(table);
  copy.CheckInvariants();
  ExpectEqual(copy, model);
}

TEST(RecordTable, GivesMemoryBack) {
  RecordTable table(RecordTable::Payload::kNone);
  for (uint64_t i = 0; i < 50000; ++i) table.Insert(Name(i));
  const size_t full = table.memory();
  EXPECT_LT(full, 50000 * 24U);
  for (uint64_t i = 0; i < 50000; ++i) {
    if (i % 100 != 0) {
      EXPECT_TRUE(table.Erase(Name(i)));
    }
  }
  table.CheckInvariants();
  EXPECT_LT(table.memory(), full / 10);
  for (uint64_t i = 0; i < 50000; i += 100) EXPECT_TRUE(table.Contains(Name(i)));
}

TEST(RecordTable, PayloadsOfFixedSizeChangeInPlace) {
  RecordTable table(RecordTable::Payload::kFixed8);
  for (uint64_t i = 0; i < 3000; ++i) {
    EXPECT_TRUE(table.Insert(Name(i), "00000000"));
  }
  for (uint64_t i = 0; i < 3000; i += 3) {
    size_t size = 0;
    char* payload = table.Open(Name(i), &size);
    ASSERT_NE(payload, nullptr);
    ASSERT_EQ(size, 8U);
    payload[0] = 'x';
  }
  size_t size = 0;
  EXPECT_EQ(table.Open("nobody", &size), nullptr);
  std::string_view payload;
  for (uint64_t i = 0; i < 3000; ++i) {
    ASSERT_TRUE(table.Find(Name(i), &payload));
    EXPECT_EQ(payload, i % 3 == 0 ? "x0000000" : "00000000");
  }
}

TEST(RecordTable, FindsByHash) {
  RecordTable table(RecordTable::Payload::kNone);
  for (uint64_t i = 0; i < 5000; ++i) table.Insert(Name(i));
  size_t found = 0;
  table.ForHash(RecordTable::HashOf(Name(77)), [&](const Record& record) {
    EXPECT_EQ(record.key, Name(77));
    ++found;
  });
  EXPECT_EQ(found, 1U);
}

// Whatever is there from the beginning of a walk to its end is reported, however the table grows or
// shrinks meanwhile; nothing is reported twice while it is not removed and added again.
TEST(RecordTable, AWalkMissesNothing) {
  for (const bool grow : {true, false}) {
    base::Rng rng(7);
    RecordTable table(RecordTable::Payload::kNone);
    const uint64_t begin = grow ? 500 : 30000;
    for (uint64_t i = 0; i < begin; ++i) table.Insert(Name(i));
    std::set<std::string> reported;
    uint64_t next = begin;
    uint64_t cursor = 0;
    do {
      cursor = table.Scan(cursor, 1 + rng.Below(30), [&](const Record& record) {
        EXPECT_TRUE(reported.insert(std::string(record.key)).second) << record.key;
      });
      ASSERT_LT(cursor, uint64_t{1} << RecordTable::kOrderBits);
      for (uint64_t i = 0; i < 400; ++i) {
        if (grow && next < 40000) {
          table.Insert(Name(next++));
        } else if (!grow && next > 300) {
          table.Erase(Name(--next));
        }
      }
    } while (cursor != 0);
    for (uint64_t i = 0; i < (grow ? begin : next); ++i) EXPECT_EQ(reported.count(Name(i)), 1U);
  }
}

TEST(RecordTable, AStepIsAboutAsLargeAsAsked) {
  RecordTable table(RecordTable::Payload::kNone);
  for (uint64_t i = 0; i < 10000; ++i) table.Insert(Name(i));
  uint64_t cursor = 0;
  size_t steps = 0;
  do {
    size_t seen = 0;
    cursor = table.Scan(cursor, 10, [&](const Record&) { ++seen; });
    EXPECT_LE(seen, 12U);
    ++steps;
  } while (cursor != 0);
  EXPECT_LE(steps, 1100U);
}

TEST(RecordTable, ChoosesEvenly) {
  base::Rng rng(3);
  RecordTable table(RecordTable::Payload::kNone);
  Record record;
  EXPECT_FALSE(table.Random([&] { return rng.Next(); }, &record));
  constexpr uint64_t kMembers = 1000;
  constexpr int kDraws = 100'000;
  for (uint64_t i = 0; i < kMembers; ++i) table.Insert(Name(i));
  std::map<std::string, int> drawn;
  for (int i = 0; i < kDraws; ++i) {
    ASSERT_TRUE(table.Random([&] { return rng.Next(); }, &record));
    ++drawn[std::string(record.key)];
  }
  EXPECT_EQ(drawn.size(), kMembers);
  for (const auto& [name, times] : drawn) {
    EXPECT_GT(times, 40) << name;
    EXPECT_LT(times, 180) << name;
  }
}

// A cut has the records of its moment, each once, whatever changes meanwhile.
TEST(RecordTable, ACutKeepsItsMoment) {
  for (const uint64_t seed : {1, 2, 3}) {
    base::Rng rng(seed);
    RecordTable table(RecordTable::Payload::kVariable);
    Model model;
    for (uint64_t i = 0; i < 4000; ++i) {
      const std::string key = Key(rng.Below(4000));
      const std::string payload = Bytes(rng);
      table.Put(key, payload);
      model[key] = payload;
    }
    // Pages that went before the cut leave numbers that others take during it.
    for (int i = 0; i < 2500; ++i) {
      const std::string key = Key(rng.Below(4000));
      table.Erase(key);
      model.erase(key);
    }
    std::string saved;
    table.BeginCut([&](std::string_view bytes) { saved.append(bytes); }, "head",
                   [](const Record& record, Writer& out) {
                     out.String(record.key);
                     out.String(record.payload);
                   });
    const bool shrink = seed == 2;
    for (bool done = false; !done;) {
      for (int i = 0; i < 60; ++i) {
        const std::string key = Key(rng.Below(shrink ? 4000 : 12000));
        if (shrink || rng.Below(3) == 0) {
          table.Erase(key);
        } else {
          table.Put(key, Bytes(rng));
        }
      }
      done = table.SavePieces(2000);
    }
    table.CheckInvariants();
    ASSERT_EQ(saved.substr(0, 4), "head");
    Reader in(std::string_view(saved).substr(4));
    Model read;
    while (in.ok() && in.remaining() > 0) {
      const std::string key = in.String();
      EXPECT_TRUE(read.emplace(key, in.String()).second) << key;
    }
    EXPECT_TRUE(in.ok());
    EXPECT_EQ(read, model);
  }
}

}  // namespace
}  // namespace sava::types
