// List against a plain deque, its encodings at Redis's thresholds, and its saving: whole, in pieces
// while it changes, from every form Redis writes, from damaged bytes.
#include "types/collections/list.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "../../fuzz/list_load_property.h"
#include "base/rng.h"

namespace sava::types {
namespace {

using End = List::End;
using Model = std::deque<std::string>;

constexpr int64_t kLimit = -2;

CollectionLimits LimitsOf(int64_t list_max_listpack_size) {
  CollectionLimits limits;
  limits.list_max_listpack_size = list_max_listpack_size;
  return limits;
}

Model Content(const List& list) {
  Model content;
  list.ForRange(0, list.size(), [&content](const PackedItem& item) {
    PackedItem::Scratch scratch;
    content.emplace_back(item.Text(scratch));
  });
  return content;
}

std::string TextOf(const PackedItem& item) {
  PackedItem::Scratch scratch;
  return std::string(item.Text(scratch));
}

// Numbers, short texts and now and then a large one.
std::string Element(base::Rng& rng) {
  const uint64_t kind = rng.Below(200);
  if (kind < 60) return std::to_string(static_cast<int64_t>(rng.Next()) >> rng.Below(64));
  if (kind == 60) return std::string(rng.Below(20'000), 'L');
  if (kind == 61) return std::string(4000 + rng.Below(300), 'M');
  if (kind == 62) return "";
  if (kind < 100) return std::string(rng.Below(200), static_cast<char>('a' + rng.Below(26)));
  return "item:" + std::to_string(rng.Below(8));
}

// One random change of both.
void Change(List& list, Model& model, base::Rng& rng, bool growing) {
  const std::string element = Element(rng);
  const End end = rng.Below(2) == 0 ? End::kHead : End::kTail;
  const size_t size = model.size();
  switch (rng.Below(growing ? 8 : 12)) {
    case 0:
    case 1:
    case 2:
    case 3:
      list.Push(end, element);
      end == End::kHead ? model.push_front(element) : model.push_back(element);
      break;
    case 4:
    case 5: {
      const size_t at = rng.Below(size + 1);
      list.Insert(at, element);
      model.insert(model.begin() + static_cast<ptrdiff_t>(at), element);
      break;
    }
    case 6:
      if (size == 0) break;
      {
        const size_t at = rng.Below(size);
        list.Set(at, element);
        model[at] = element;
      }
      break;
    case 7:
    case 8: {
      const size_t n = std::min<size_t>(size, rng.Below(4));
      list.Drop(end, n);
      for (size_t i = 0; i < n; ++i) end == End::kHead ? model.pop_front() : model.pop_back();
      break;
    }
    case 9: {
      const std::string value = size > 0 && rng.Below(2) == 0 ? model[rng.Below(size)] : element;
      const size_t most = rng.Below(3) == 0 ? SIZE_MAX : 1 + rng.Below(3);
      size_t removed = 0;
      for (size_t i = 0; i < model.size() && removed < most;) {
        const size_t at = end == End::kHead ? i : model.size() - 1 - i;
        if (model[at] == value) {
          model.erase(model.begin() + static_cast<ptrdiff_t>(at));
          ++removed;
        } else {
          ++i;
        }
      }
      EXPECT_EQ(list.Remove(value, end, most), removed);
      break;
    }
    case 10:
      if (rng.Below(20) == 0) {
        const size_t start = rng.Below(size + 1);
        const size_t count = rng.Below(size - start + 1);
        list.Trim(start, count);
        model.erase(model.begin() + static_cast<ptrdiff_t>(start + count), model.end());
        model.erase(model.begin(), model.begin() + static_cast<ptrdiff_t>(start));
      }
      break;
    default: {
      const auto found = std::find(model.begin(), model.end(), element);
      EXPECT_EQ(list.Find(element), static_cast<size_t>(found - model.begin()));
    }
  }
}

void ExpectEqual(const List& list, const Model& model) {
  ASSERT_EQ(list.Check(), "");
  ASSERT_EQ(list.size(), model.size());
  ASSERT_EQ(Content(list), model);
  if (model.empty()) return;
  EXPECT_EQ(TextOf(list.Peek(End::kHead)), model.front());
  EXPECT_EQ(TextOf(list.Peek(End::kTail)), model.back());
  Model backwards;
  list.ForWhileBack(model.size() - 1, model.size(), [&backwards](const PackedItem& item) {
    backwards.push_front(TextOf(item));
    return true;
  });
  EXPECT_EQ(backwards, model);
}

TEST(List, BehavesLikeADeque) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    base::Rng rng(seed);
    List list;
    Model model;
    for (int i = 0; i < 3000; ++i) {
      // Grows first, then shrinks.
      Change(list, model, rng, i < 1000 + static_cast<int>(seed) * 100);
      ASSERT_EQ(list.size(), model.size()) << seed << " " << i;
      if (i % 250 == 0) ExpectEqual(list, model);
      if (!model.empty()) {
        const size_t at = rng.Below(model.size());
        ASSERT_EQ(TextOf(list.At(at)), model[at]) << seed << " " << i;
      }
    }
    ExpectEqual(list, model);
    const auto copy = list.Copy();
    ExpectEqual(static_cast<const List&>(*copy), model);
  }
}

TEST(List, SmallOnesBehaveLikeADeque) {
  EXPECT_TRUE(rc::check([](uint64_t seed, std::vector<bool> growing) {
    base::Rng rng(seed + 1);
    List list;
    Model model;
    for (const bool grow : growing) Change(list, model, rng, grow);
    RC_ASSERT(list.Check() == "");
    RC_ASSERT(Content(list) == model);
  }));
}

// Both ends in turn, a queue, a stack: none of them may grow without bound.
TEST(List, AnElementThatGrowsPastItsPieceLeavesNoEmptyOne) {
  for (size_t index = 0; index < 3; ++index) {
    List list;
    for (const char* text : {"a", "b", "c"}) {
      list.WillGrow(LimitsOf(kLimit), 1, 1);
      list.Push(End::kTail, text);
    }
    const std::string large(14'000, 'L');
    list.Set(index, large);
    EXPECT_EQ(list.Check(), "");
    EXPECT_EQ(TextOf(list.Peek(End::kTail)), index == 2 ? large : "c");
    list.Set(index, "small");
    EXPECT_LT(list.MemoryUsage(0), large.size());
    EXPECT_EQ(Content(list)[index], "small");
  }
}

TEST(List, KeepsItsMemoryInBounds) {
  List queue;
  for (int i = 0; i < 100'000; ++i) {
    queue.Push(End::kTail, "element " + std::to_string(i));
    if (i >= 20) queue.Drop(End::kHead, 1);
  }
  EXPECT_EQ(queue.Check(), "");
  EXPECT_LT(queue.MemoryUsage(0), 2000U);
  List both;
  for (int i = 0; i < 20'000; ++i) both.Push(i % 2 == 0 ? End::kHead : End::kTail, "0123456789ab");
  EXPECT_EQ(both.Check(), "");
  EXPECT_LT(both.MemoryUsage(0), 20'000U * 14 * 5 / 4 + 2 * 8192);
  both.Drop(End::kTail, 19'990);
  EXPECT_EQ(both.Check(), "");
  EXPECT_LT(both.MemoryUsage(0), 2U * 8192 + 200);
}

TEST(List, NumbersAreKeptAsNumbers) {
  List list;
  for (const char* text : {"0", "-1", "007", "+1", "9223372036854775807", "9223372036854775808"}) {
    list.Push(End::kTail, text);
  }
  std::vector<bool> numbers;
  list.ForRange(0, 6, [&numbers](const PackedItem& item) { numbers.push_back(item.is_number); });
  EXPECT_EQ(numbers, (std::vector<bool>{true, true, false, false, true, false}));
  EXPECT_EQ(Content(list),
            (Model{"0", "-1", "007", "+1", "9223372036854775807", "9223372036854775808"}));
  EXPECT_EQ(list.Find("007"), 2U);
  EXPECT_EQ(list.Find("7"), 6U);
}

// ---- encodings ----

void Grow(List& list, const std::string& text, int64_t limit = kLimit) {
  list.WillGrow(LimitsOf(limit), text.size(), 1);
  list.Push(End::kTail, text);
}

TEST(List, IsAListpackUpToTheLimitOfBytes) {
  List list;
  const std::string text(100, 'x');  // 103 bytes packed
  while (list.listpack_bytes() + 100 <= 8192) {
    Grow(list, text);
    EXPECT_EQ(list.encoding(), "listpack");
  }
  Grow(list, text);
  EXPECT_EQ(list.encoding(), "quicklist");
  while (list.listpack_bytes() > 4096) {
    list.Shrunk(kLimit);
    EXPECT_EQ(list.encoding(), "quicklist");
    list.Drop(End::kTail, 1);
  }
  list.Shrunk(kLimit);
  EXPECT_EQ(list.encoding(), "listpack");
}

TEST(List, IsAListpackUpToTheLimitOfElements) {
  List list;
  for (int i = 0; i < 5; ++i) Grow(list, "a", 5);
  EXPECT_EQ(list.encoding(), "listpack");
  Grow(list, "a", 5);
  EXPECT_EQ(list.encoding(), "quicklist");
  list.Drop(End::kHead, 3);
  list.Shrunk(5);
  EXPECT_EQ(list.encoding(), "quicklist");
  list.Drop(End::kHead, 1);
  list.Shrunk(5);
  EXPECT_EQ(list.encoding(), "listpack");
  Grow(list, std::string(8192, 'a'), 5);
  EXPECT_EQ(list.encoding(), "quicklist");
}

// ---- saving ----

std::unique_ptr<List> RandomList(uint64_t seed, int changes, Model* model) {
  base::Rng rng(seed);
  auto list = std::make_unique<List>();
  for (int i = 0; i < changes || model->empty(); ++i) Change(*list, *model, rng, true);
  size_t bytes = 0;
  for (const std::string& text : *model) bytes += text.size();
  list->WillGrow(LimitsOf(kLimit), bytes, model->size());
  return list;
}

TEST(ListSave, ReadsBackEqual) {
  for (const int changes : {1, 20, 300, 5000}) {
    Model model;
    const auto list = RandomList(static_cast<uint64_t>(changes), changes, &model);
    EXPECT_EQ(list->rdb_type(), 18);
    const auto again = LoadList(18, SaveList(*list));
    ASSERT_NE(again, nullptr);
    ExpectEqual(static_cast<const List&>(*again), model);
    EXPECT_EQ(again->encoding(), list->encoding());
  }
}

// The pieces of a cut are the list as it was, whatever happens meanwhile.
TEST(ListSave, ACutIsTheListOfThatMoment) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    base::Rng rng(seed);
    Model model;
    const auto list = RandomList(seed, 4000, &model);
    ASSERT_TRUE(list->large());
    const std::string before = SaveList(*list);
    std::string pieces;
    list->BeginCut([&pieces](std::string_view bytes) { pieces.append(bytes); }, false);
    bool done = false;
    while (!done) {
      for (uint64_t i = rng.Below(200); i > 0; --i) Change(*list, model, rng, seed % 2 == 0);
      done = list->SavePieces(1 + rng.Below(30'000));
    }
    EXPECT_EQ(pieces, before) << seed;
    ExpectEqual(*list, model);
    EXPECT_TRUE(list->SavePieces(1));
  }
}

TEST(ListSave, ACutMayBeGivenUp) {
  Model model;
  const auto list = RandomList(5, 4000, &model);
  list->BeginCut([](std::string_view) {}, false);
  EXPECT_FALSE(list->SavePieces(1));
  list->AbortCut();
  base::Rng rng(6);
  for (int i = 0; i < 500; ++i) Change(*list, model, rng, false);
  ExpectEqual(*list, model);
  // And a list may go with its cut.
  list->BeginCut([](std::string_view) {}, false);
}

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

TEST(ListSave, WritesWhatRedisWrites) {
  // DUMP of RPUSH l a 1 by Redis 7.0.15, without type, version and checksum.
  const std::string golden = FromHex("01020c0c00000002008161020101ff");
  List list;
  list.Push(End::kTail, "a");
  list.Push(End::kTail, "1");
  EXPECT_EQ(SaveList(list), golden);
}

TEST(ListSave, ReadsEveryFormOfRedis) {
  const struct {
    uint8_t type;
    const char* hex;
    Model content;
  } forms[] = {
      {1, "03016101620131", {"a", "b", "1"}},
      // A ziplist of a, 2, 513, alone and as the only node; then two nodes.
      {10, "140000001400000010000000", {}},
      {10,
       "14"
       "14000000"
       "0f000000"
       "0300"
       "000161"
       "03f3"
       "02c00102"
       "ff",
       {"a", "2", "513"}},
      {14,
       "01"
       "14"
       "14000000"
       "0f000000"
       "0300"
       "000161"
       "03f3"
       "02c00102"
       "ff",
       {"a", "2", "513"}},
      {14,
       "02"
       "0e"
       "0e000000"
       "0a000000"
       "0100"
       "000161"
       "ff"
       "0d"
       "0d000000"
       "0a000000"
       "0100"
       "00f3"
       "ff",
       {"a", "2"}},
      {18,
       "02"
       "02"
       "0c"
       "0c0000000200"
       "816102"
       "0101"
       "ff"
       "01"
       "03"
       "78797a",
       {"a", "1", "xyz"}},
      // An empty node is passed over.
      {18,
       "02"
       "02"
       "07"
       "070000000000"
       "ff"
       "01"
       "0131",
       {"1"}},
  };
  for (const auto& form : forms) {
    const auto list = LoadList(form.type, FromHex(form.hex));
    if (form.content.empty()) {
      EXPECT_EQ(list, nullptr) << form.hex;
      continue;
    }
    ASSERT_NE(list, nullptr) << form.hex;
    ExpectEqual(static_cast<const List&>(*list), form.content);
  }
  // More than one node: a quicklist, as in Redis.
  EXPECT_EQ(LoadList(14, FromHex(forms[3].hex))->encoding(), "listpack");
  EXPECT_EQ(LoadList(14, FromHex(forms[4].hex))->encoding(), "quicklist");
}

TEST(ListSave, RefusesDamage) {
  Model model;
  const auto list = RandomList(3, 200, &model);
  const std::string good = SaveList(*list);
  for (size_t i = 0; i < good.size(); i += 1 + i / 50) {
    EXPECT_EQ(LoadList(18, good.substr(0, i)), nullptr) << i;
  }
  base::Rng rng(1);
  for (int i = 0; i < 3000; ++i) {
    std::string other = good;
    other[rng.Below(other.size())] ^= static_cast<char>(1U << rng.Below(8));
    EXPECT_EQ(CheckListLoad(std::string(1, '\0') + other), "");
  }
  for (const char* hex :
       {"00", "81ffffffffffffffff", "01030161", "0102070700000000", "8000ffffff"}) {
    EXPECT_EQ(LoadList(18, FromHex(hex)), nullptr) << hex;
  }
  EXPECT_EQ(LoadList(1, FromHex("00")), nullptr);
}

TEST(ListSave, TheSeedsOfTheFuzzTargetHold) {
  int seeds = 0;
  const auto folder = std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/list_load";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    EXPECT_EQ(CheckListLoad(bytes), "") << entry.path();
    ++seeds;
  }
  EXPECT_GE(seeds, 5);
}

}  // namespace
}  // namespace sava::types
