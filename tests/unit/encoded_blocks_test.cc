// Dictionary-encoded blocks: the encoding itself, and lists with such blocks against a plain model
// and against lists that have none. Streams: encoded_stream_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "../../fuzz/encoded_blocks_property.h"
#include "../../fuzz/list_load_property.h"
#include "base/rng.h"
#include "types/collections/encoded_entries.h"
#include "types/collections/list.h"

namespace sava::types {
namespace {

using End = List::End;

// ---- the encoding ----

struct Block {
  std::string bytes;
  std::vector<std::string> entries;
};

void Add(Block* block, std::string_view text) {
  const list_entry::New entry(text);
  std::string bytes(entry.size(), '\0');
  entry.Write(bytes.data());
  block->bytes += bytes;
  block->entries.push_back(std::move(bytes));
}

TEST(EncodedEntries, GivesTheBytesOfTheFormatPage) {
  Block block;
  for (int i = 0; i < 40; ++i) Add(&block, i % 4 == 3 ? "blue, long" : "red, longer");
  std::string bytes;
  ASSERT_TRUE(EncodeEntries(block.bytes, block.entries.size(), &bytes));
  std::string expected("\x28\0\0\0\x02\0\x01\0", 8);  // 40 entries, 2 distinct, 1 bit
  expected += std::string("\x0d\0\x19\0", 4);         // their ends: 13, 25
  expected += std::string("\x88\x88\x88\x88\x88");    // every fourth is number 1
  expected +=
      "\x8bred, longer\x0c\x8a"
      "blue, long\x0b";
  EXPECT_EQ(bytes, expected);
}

TEST(EncodedEntries, GivesBackEveryEntry) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    base::Rng rng(seed);
    Block block;
    const uint64_t distinct = 1 + rng.Below(60);
    const size_t length = rng.Below(3) == 0 ? 4 : 10 + rng.Below(100);
    while (block.bytes.size() < 8000) {
      std::string text = std::to_string(rng.Below(distinct));
      text.resize(length, '-');
      Add(&block, rng.Below(10) == 0 ? std::to_string(rng.Below(4)) : text);
    }
    std::string bytes;
    const bool encoded = EncodeEntries(block.bytes, block.entries.size(), &bytes);
    if (distinct < 20 && length > 4) {
      EXPECT_TRUE(encoded) << seed;
    }
    if (!encoded) continue;
    EXPECT_LE(bytes.size() * 4, block.bytes.size() * 3);
    const EncodedEntries entries(bytes);
    ASSERT_EQ(entries.count(), block.entries.size());
    for (size_t i = 0; i < block.entries.size(); ++i) ASSERT_EQ(entries[i], block.entries[i]) << i;
    std::string all(block.bytes.size(), '\0');
    EXPECT_EQ(entries.Expand(0, entries.count(), all.data()), all.data() + all.size());
    EXPECT_EQ(all, block.bytes);
    EXPECT_EQ(entries.Size(0, entries.count()), all.size());
  }
}

TEST(EncodedEntries, RefusesWhatDoesNotRepeat) {
  Block unique;
  Block few;
  for (int i = 0; i < 300; ++i) Add(&unique, "element number " + std::to_string(i));
  for (int i = 0; i < 7; ++i) Add(&few, std::string(1000, 'x'));
  std::string bytes;
  EXPECT_FALSE(EncodeEntries(unique.bytes, unique.entries.size(), &bytes));
  EXPECT_FALSE(EncodeEntries(few.bytes, few.entries.size(), &bytes));
}

// Texts that begin and end alike must be told apart.
TEST(EncodedEntries, TellsSimilarTextsApart) {
  Block block;
  for (int i = 0; i < 120; ++i) {
    Add(&block, std::string(20, 'a') + std::to_string(100 + i % 15) + std::string(20, 'z'));
  }
  std::string bytes;
  ASSERT_TRUE(EncodeEntries(block.bytes, block.entries.size(), &bytes));
  EXPECT_EQ(EncodedEntries(bytes).distinct(), 15U);
}

// ---- lists ----

CollectionLimits Limits(bool encode, int64_t depth = 0) {
  CollectionLimits limits;
  limits.dictionary_encoding = encode;
  limits.list_compress_depth = depth;
  return limits;
}

// One of a few long values, or, for a list that repeats nothing, any.
std::string Element(base::Rng& rng, uint64_t distinct) {
  const uint64_t kind = rng.Below(100);
  if (kind == 0) return std::to_string(rng.Next() >> rng.Below(64));
  if (kind == 1 && rng.Below(20) == 0) return std::string(9000, 'L');
  const uint64_t number = distinct == 0 ? rng.Next() : rng.Below(distinct);
  return "a value of some length that repeats, number " + std::to_string(number);
}

std::deque<std::string> Content(const List& list) {
  std::deque<std::string> content;
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

std::unique_ptr<List> Filled(size_t size, uint64_t distinct, const CollectionLimits& limits) {
  base::Rng rng(size + distinct);
  auto list = std::make_unique<List>();
  for (size_t i = 0; i < size; ++i) {
    const std::string text = Element(rng, distinct);
    list->WillGrow(limits, text.size(), 1);
    list->Push(rng.Below(3) == 0 ? End::kHead : End::kTail, text);
  }
  return list;
}

// The same random change of a list that encodes, of one that does not, and of a model.
class Three {
 public:
  Three(uint64_t seed, int64_t depth, uint64_t distinct)
      : rng_(seed), encoding_(Limits(true, depth)), distinct_(distinct) {}

  void Change(bool growing) {
    const std::string text = Element(rng_, distinct_);
    const size_t size = model_.size();
    switch (rng_.Below(growing ? 10 : 16)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        return Push(End::kTail, text, 1 + rng_.Below(20));
      case 5:
      case 6:
      case 7:
        return Push(End::kHead, text, 1 + rng_.Below(10));
      case 8: {
        if (rng_.Below(8) != 0) return;
        const size_t at = rng_.Below(size + 1);
        model_.insert(model_.begin() + static_cast<ptrdiff_t>(at), text);
        return Both([&](List& list) { list.Insert(at, text); });
      }
      case 9: {
        if (size == 0 || rng_.Below(8) != 0) return;
        const size_t at = rng_.Below(size);
        model_[at] = text;
        return Both([&](List& list) { list.Set(at, text); });
      }
      case 10:
      case 11:
      case 12: {
        const End end = rng_.Below(2) == 0 ? End::kHead : End::kTail;
        const size_t n = std::min<size_t>(size, rng_.Below(rng_.Below(10) == 0 ? 300 : 20));
        for (size_t i = 0; i < n; ++i) end == End::kHead ? model_.pop_front() : model_.pop_back();
        return Both([&](List& list) { list.Drop(end, n); });
      }
      case 13:
        if (rng_.Below(10) == 0) Remove(text, 1 + rng_.Below(3));
        return;
      default:
        const auto at = std::find(model_.begin(), model_.end(), text) - model_.begin();
        Both([&](List& list) { EXPECT_EQ(list.Find(text), static_cast<size_t>(at)); });
    }
  }

  void ExpectEqual() {
    Both([this](List& list) {
      ASSERT_EQ(list.Check(), "");
      ASSERT_EQ(Content(list), model_);
      if (model_.empty()) return;
      EXPECT_EQ(TextOf(list.Peek(End::kHead)), model_.front());
      EXPECT_EQ(TextOf(list.Peek(End::kTail)), model_.back());
      for (int i = 0; i < 20; ++i) {
        const size_t at = rng_.Below(model_.size());
        ASSERT_EQ(TextOf(list.At(at)), model_[at]);
        const size_t count = rng_.Below(at + 2);
        size_t next = at;
        list.ForWhileBack(at, count, [&](const PackedItem& item) {
          EXPECT_EQ(TextOf(item), model_[next--]);
          return true;
        });
      }
    });
    EXPECT_EQ(plain_.encoded_blocks(), 0U);
    EXPECT_EQ(list_.encoding(), plain_.encoding());
    EXPECT_EQ(ListText(list_), ListText(plain_));
    const auto copy = list_.Copy();
    EXPECT_EQ(static_cast<const List&>(*copy).Check(), "");
    EXPECT_EQ(ListText(*copy), ListText(list_));
  }

  List& list() { return list_; }
  List& plain() { return plain_; }
  base::Rng& rng() { return rng_; }

 private:
  template <typename Work>
  void Both(const Work& work) {
    work(list_);
    work(plain_);
  }
  void Push(End end, const std::string& first, uint64_t n) {
    std::string text = first;
    for (; n > 0; --n) {
      end == End::kHead ? model_.push_front(text) : model_.push_back(text);
      list_.WillGrow(encoding_, text.size(), 1);
      plain_.WillGrow(Limits(false), text.size(), 1);
      Both([&](List& list) { list.Push(end, text); });
      text = Element(rng_, distinct_);
    }
  }
  void Remove(const std::string& text, size_t most) {
    const End from = rng_.Below(2) == 0 ? End::kHead : End::kTail;
    size_t removed = 0;
    while (removed < most) {
      if (from == End::kHead) {
        const auto at = std::find(model_.begin(), model_.end(), text);
        if (at == model_.end()) break;
        model_.erase(at);
      } else {
        const auto at = std::find(model_.rbegin(), model_.rend(), text);
        if (at == model_.rend()) break;
        model_.erase(std::next(at).base());
      }
      ++removed;
    }
    Both([&](List& list) { EXPECT_EQ(list.Remove(text, from, most), removed); });
  }

  base::Rng rng_;
  const CollectionLimits encoding_;
  const uint64_t distinct_;
  List list_;
  List plain_;
  std::deque<std::string> model_;
};

TEST(EncodedList, IsTheListItWouldBeWithout) {
  size_t encoded = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    const uint64_t distinct = seed % 4 == 0 ? 0 : seed % 4 == 1 ? 5 : 40;
    Three three(seed, static_cast<int64_t>(seed % 3), distinct);
    for (int step = 0; step < 1500; ++step) {
      three.Change(step < 700);
      if (step % 150 == 149) three.ExpectEqual();
      encoded = std::max(encoded, three.list().encoded_blocks());
      if (::testing::Test::HasFatalFailure()) return;
    }
    while (three.list().size() > 0) {
      const size_t n = std::min<size_t>(three.list().size(), 1 + three.rng().Below(50));
      const End end = three.rng().Below(2) == 0 ? End::kHead : End::kTail;
      three.list().Drop(end, n);
      three.plain().Drop(end, n);
      ASSERT_EQ(ListText(three.list()), ListText(three.plain()));
    }
    EXPECT_EQ(three.list().Check(), "");
  }
  EXPECT_GT(encoded, 5U);
}

TEST(EncodedList, TakesLessMemoryWhereValuesRepeat) {
  const auto encoded = Filled(5000, 20, Limits(true));
  const auto plain = Filled(5000, 20, Limits(false));
  EXPECT_EQ(ListText(*encoded), ListText(*plain));
  EXPECT_GT(encoded->encoded_blocks(), 20U);
  EXPECT_LT(encoded->MemoryUsage(0) * 2, plain->MemoryUsage(0));
  const auto unique = Filled(5000, 0, Limits(true));
  EXPECT_EQ(unique->encoded_blocks(), 0U);
}

TEST(EncodedList, KeepsAsManyBlocksPlainAsItIsTold) {
  const auto encoded = [](int64_t depth) {
    List list;
    list.set_encoding(Limits(true, depth));
    for (int i = 0; i < 5000; ++i) list.Push(End::kTail, std::string(60, "abc"[i % 3]));
    return list.encoded_blocks();
  };
  EXPECT_GT(encoded(0), 30U);
  EXPECT_EQ(encoded(1), encoded(0));
  EXPECT_EQ(encoded(10), encoded(0) - 18);
  EXPECT_EQ(encoded(1'000'000), 0U);
}

TEST(EncodedList, IsSavedAsAnyOther) {
  const auto encoded = Filled(5000, 20, Limits(true));
  const auto plain = Filled(5000, 20, Limits(false));
  EXPECT_EQ(SaveList(*encoded), SaveList(*plain));
  for (const bool encode : {true, false}) {
    const auto loaded = LoadList(18, SaveList(*encoded), Limits(encode));
    ASSERT_NE(loaded, nullptr);
    EXPECT_EQ(loaded->encoded_blocks() > 20, encode);
    EXPECT_EQ(ListText(*loaded), ListText(*plain));
  }
}

TEST(EncodedList, ACutIsTheListOfThatMoment) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Three three(seed, 0, 30);
    for (int step = 0; step < 400; ++step) three.Change(true);
    List& list = three.list();
    ASSERT_TRUE(list.large());
    ASSERT_GT(list.encoded_blocks(), 2U);
    const std::string before = SaveList(list);
    std::string pieces;
    list.BeginCut([&pieces](std::string_view bytes) { pieces.append(bytes); }, false);
    bool done = false;
    while (!done) {
      for (uint64_t i = three.rng().Below(40); i > 0; --i) three.Change(seed % 2 == 0);
      done = list.SavePieces(1 + three.rng().Below(30'000));
    }
    EXPECT_EQ(pieces, before) << seed;
    three.ExpectEqual();
  }
}

// A queue that is read at one end while it is filled at the other holds no more than it has to.
TEST(EncodedList, AQueueGivesItsBlocksBack) {
  List queue;
  for (int i = 0; i < 50'000; ++i) {
    queue.WillGrow(Limits(true), 60, 1);
    queue.Push(End::kTail, "a value that repeats often enough, " + std::to_string(i % 7));
    if (i >= 2000) {
      ASSERT_EQ(TextOf(queue.Peek(End::kHead)),
                "a value that repeats often enough, " + std::to_string((i - 2000) % 7));
      queue.Drop(End::kHead, 1);
    }
  }
  EXPECT_EQ(queue.Check(), "");
  EXPECT_LT(queue.MemoryUsage(0), 30'000U);
}

TEST(EncodedList, TheSeedsOfTheFuzzTargetHold) {
  int seeds = 0;
  const auto folder = std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/encoded_blocks";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    EXPECT_EQ(CheckEncodedBlocks(bytes), "") << entry.path();
    ++seeds;
  }
  EXPECT_GE(seeds, 9);
}

TEST(EncodedList, AnyProgramOfChangesLeavesTheSameList) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    base::Rng rng(seed);
    std::string program;
    for (int i = 0; i < 12; ++i) program += {static_cast<char>(rng.Below(48)), '\x7f', 'v'};
    while (program.size() < 600) program += static_cast<char>(rng.Below(256));
    EXPECT_EQ(CheckEncodedBlocks(program), "") << seed;
  }
}

}  // namespace
}  // namespace sava::types
