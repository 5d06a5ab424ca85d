// Streams against a plain model: entries, trimming, groups; saved whole, in pieces while they
// change, cut off and damaged.
#include "types/collections/stream.h"

#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../../fuzz/stream_load_property.h"
#include "base/rng.h"

namespace sava::types {
namespace {

using Pairs = std::vector<std::string>;

// What a stream is, in the simplest words.
struct Model {
  std::map<StreamId, Pairs> entries;
  StreamId last;
  uint64_t added = 0;
};

CollectionLimits Limits(uint64_t bytes, int64_t entries) {
  CollectionLimits limits;
  limits.stream_node_max_bytes = bytes;
  limits.stream_node_max_entries = entries;
  return limits;
}

std::vector<std::string_view> Views(const Pairs& pairs) { return {pairs.begin(), pairs.end()}; }

Pairs RandomPairs(base::Rng& rng) {
  Pairs pairs;
  const uint64_t shape = rng.Below(10);
  const size_t count = shape < 6 ? 2 : 1 + rng.Below(5);
  for (size_t i = 0; i < count; ++i) {
    pairs.push_back((shape < 6 ? "field" : "other") + std::to_string(i));
    switch (rng.Below(5)) {
      case 0:
        pairs.push_back(std::to_string(static_cast<int64_t>(rng.Next() >> rng.Below(64))));
        break;
      case 1:
        pairs.push_back("-" + std::to_string(rng.Below(1 << 14)));
        break;
      case 2:
        pairs.emplace_back(rng.Below(200), 'v');
        break;
      case 3:
        pairs.emplace_back(rng.Below(20) == 0 ? 5000 + rng.Below(20000) : 3, 'w');
        break;
      default:
        pairs.emplace_back("007");
    }
  }
  return pairs;
}

Pairs FieldsOf(const StreamEntry& entry) {
  Pairs pairs;
  entry.ForEachField([&pairs](std::string_view field, std::string_view value) {
    pairs.emplace_back(field);
    pairs.emplace_back(value);
  });
  return pairs;
}

std::map<StreamId, Pairs> EntriesOf(const Stream& stream) {
  std::map<StreamId, Pairs> entries;
  stream.Range(kLeastStreamId, kGreatestStreamId, [&entries](const StreamEntry& entry) {
    entries.emplace(entry.id, FieldsOf(entry));
    return true;
  });
  return entries;
}

StreamId SomeId(const Model& model, base::Rng& rng) {
  if (model.entries.empty() || rng.Below(5) == 0) return {rng.Below(model.last.ms + 2), 0};
  auto it = model.entries.begin();
  std::advance(it, static_cast<ptrdiff_t>(rng.Below(model.entries.size())));
  return it->first;
}

void AddOne(Stream& stream, Model& model, base::Rng& rng, const CollectionLimits& limits) {
  StreamId id = model.last;
  if (rng.Below(3) == 0) {
    id.seq += 1 + rng.Below(3);
  } else {
    id = {id.ms + 1 + rng.Below(1000), rng.Below(3)};
  }
  const Pairs pairs = RandomPairs(rng);
  ASSERT_EQ(stream.Add(id, Views(pairs), limits), Stream::AddResult::kAdded);
  model.entries.emplace(id, pairs);
  model.last = id;
  ++model.added;
}

void TrimOne(Stream& stream, Model& model, base::Rng& rng) {
  uint64_t expected = 0;
  if (rng.Below(2) == 0) {
    const uint64_t length = rng.Below(model.entries.size() + 2);
    while (model.entries.size() > length) {
      model.entries.erase(model.entries.begin());
      ++expected;
    }
    EXPECT_EQ(stream.TrimToLength(length, false, 0), expected);
    return;
  }
  const StreamId id = SomeId(model, rng);
  while (!model.entries.empty() && model.entries.begin()->first < id) {
    model.entries.erase(model.entries.begin());
    ++expected;
  }
  EXPECT_EQ(stream.TrimBefore(id, false, 0), expected);
}

void Compare(const Stream& stream, const Model& model) {
  ASSERT_EQ(stream.length(), model.entries.size());
  ASSERT_EQ(EntriesOf(stream), model.entries);
  EXPECT_EQ(stream.last_id(), model.last);
  EXPECT_EQ(stream.entries_added(), model.added);
  EXPECT_EQ(stream.first_id(), model.entries.empty() ? StreamId{} : model.entries.begin()->first);
  std::vector<StreamId> backward;
  stream.RangeReverse(kLeastStreamId, kGreatestStreamId, [&backward](const StreamEntry& entry) {
    backward.push_back(entry.id);
    return true;
  });
  ASSERT_EQ(backward.size(), model.entries.size());
  auto expected = model.entries.rbegin();
  for (const StreamId& id : backward) EXPECT_EQ(id, (expected++)->first);
}

TEST(Stream, EntriesAreThoseOfTheModel) {
  for (const uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    SCOPED_TRACE(seed);
    base::Rng rng(seed);
    const CollectionLimits limits = Limits(seed % 2 == 0 ? 4096 : 300, seed % 3 == 0 ? 0 : 20);
    Stream stream;
    Model model;
    for (int step = 0; step < 2000; ++step) {
      const uint64_t roll = rng.Below(100);
      if (roll < 70) {
        AddOne(stream, model, rng, limits);
      } else if (roll < 97) {
        const StreamId id = SomeId(model, rng);
        EXPECT_EQ(stream.Contains(id), model.entries.contains(id));
        EXPECT_EQ(stream.Delete(id), model.entries.erase(id) == 1);
      } else if (step % 10 == 0) {
        TrimOne(stream, model, rng);
      }
      if (step % 100 == 0) Compare(stream, model);
    }
    Compare(stream, model);
    const StreamId from = SomeId(model, rng);
    const StreamId to = SomeId(model, rng);
    std::map<StreamId, Pairs> part;
    stream.Range(from, to, [&part](const StreamEntry& entry) {
      part.emplace(entry.id, FieldsOf(entry));
      return true;
    });
    std::map<StreamId, Pairs> expected;
    if (from <= to) {
      expected.insert(model.entries.lower_bound(from), model.entries.upper_bound(to));
    }
    EXPECT_EQ(part, expected);
  }
}

TEST(Stream, RefusesIdsThatDoNotAscend) {
  Stream stream;
  const std::string_view pair[] = {"f", "v"};
  EXPECT_EQ(stream.Add({5, 1}, pair, {}), Stream::AddResult::kAdded);
  EXPECT_EQ(stream.Add({5, 1}, pair, {}), Stream::AddResult::kIdTooSmall);
  EXPECT_EQ(stream.Add({4, 9}, pair, {}), Stream::AddResult::kIdTooSmall);
  EXPECT_EQ(stream.NextId(9), (StreamId{9, 0}));
  EXPECT_EQ(stream.NextId(3), (StreamId{5, 2}));
  stream.SetLastId(kGreatestStreamId);
  EXPECT_EQ(stream.NextId(3), std::nullopt);
}

TEST(Stream, TrimsWholeBlocksWhenThatIsEnough) {
  Stream stream;
  const std::string_view pair[] = {"f", "v"};
  for (uint64_t i = 1; i <= 100; ++i) {
    stream.Add({i, 0}, pair, Limits(4096, 10));
  }
  EXPECT_EQ(stream.blocks(), 10U);
  EXPECT_EQ(stream.TrimToLength(55, true, 0), 40U);
  EXPECT_EQ(stream.TrimToLength(10, true, 25), 20U);
  EXPECT_EQ(stream.first_id(), (StreamId{61, 0}));
  EXPECT_EQ(stream.TrimBefore({75, 0}, true, 0), 10U);
  EXPECT_EQ(stream.TrimBefore({75, 0}, false, 0), 4U);
  EXPECT_EQ(stream.length(), 26U);
}

// ---- groups ----

// A group with deliveries, acknowledgements and changes of owner.
void UseGroups(Stream& stream, Model& model, base::Rng& rng) {
  const std::string names[] = {"alice", "bob", "carol"};
  StreamGroup* group = stream.FindGroup("group");
  if (group == nullptr) {
    stream.AddGroup("group", {}, StreamGroup::kUnknownRead);
    group = stream.FindGroup("group");
  }
  const std::string& name = names[rng.Below(3)];
  StreamConsumer* consumer = group->FindConsumer(name);
  if (consumer == nullptr) consumer = group->AddConsumer(name, 1000);
  const StreamId id = SomeId(model, rng);
  const uint64_t roll = rng.Below(100);
  if (roll < 60) {
    group->Assign({id, static_cast<int64_t>(rng.Below(1'000'000)), 1 + rng.Below(5), consumer});
  } else if (roll < 98) {
    if (const PendingEntry* some = group->pending().FindFrom(id))
      group->Acknowledge(StreamId(some->id));
  } else if (roll == 98) {
    group->RemoveConsumer(name);
  } else {
    stream.AddGroup("other" + std::to_string(rng.Below(3)), id, 5);
  }
}

void CheckGroups(const Stream& stream) {
  for (const auto& [name, group] : stream.groups()) {
    size_t of_consumers = 0;
    for (const auto& [consumer_name, consumer] : group->consumers()) {
      StreamId last;
      consumer->pending.ForEachFrom(kLeastStreamId,
                                    [&, owner = consumer.get()](const PendingId& id) {
                                      EXPECT_TRUE(of_consumers == 0 || id.id > last || last.zero());
                                      const PendingEntry* entry = group->pending().Find(id.id);
                                      EXPECT_TRUE(entry != nullptr && entry->consumer == owner);
                                      last = id.id;
                                      ++of_consumers;
                                      return true;
                                    });
    }
    EXPECT_EQ(of_consumers, group->pending().size());
  }
}

TEST(PendingList, IsAnOrderedSet) {
  base::Rng rng(11);
  PendingList<PendingId> list;
  std::map<StreamId, int> model;
  for (int step = 0; step < 20000; ++step) {
    const StreamId id{rng.Below(3000), 0};
    const bool grows = step < 10000;
    if ((rng.Below(4) > 0) == grows) {
      EXPECT_EQ(list.Insert({id}), model.emplace(id, 0).second);
    } else {
      EXPECT_EQ(list.Erase(id), model.erase(id) == 1);
    }
    const auto from = model.lower_bound(id);
    const PendingId* found = list.FindFrom(id);
    ASSERT_EQ(found == nullptr, from == model.end());
    if (found != nullptr) {
      EXPECT_EQ(found->id, from->first);
    }
    ASSERT_EQ(list.size(), model.size());
  }
  auto expected = model.begin();
  list.ForEachFrom(kLeastStreamId, [&expected](const PendingId& item) {
    EXPECT_EQ(item.id, (expected++)->first);
    return true;
  });
  EXPECT_EQ(expected, model.end());
}

TEST(PendingList, WhatWasTakenStays) {
  PendingList<PendingId> list;
  for (uint64_t i = 0; i < 2000; ++i) list.Insert({{i, 0}});
  const auto taken = list.Blocks();
  for (uint64_t i = 0; i < 2000; i += 2) list.Erase({i, 0});
  for (uint64_t i = 0; i < 2000; i += 3) list.Insert({{i, 1}});
  uint64_t next = 0;
  for (const auto& block : taken) {
    for (const PendingId& item : *block) EXPECT_EQ(item.id, (StreamId{next++, 0}));
  }
  EXPECT_EQ(next, 2000U);
}

TEST(Stream, LagIsKnownUnlessEntriesWereDeleted) {
  Stream stream;
  const std::string_view pair[] = {"f", "v"};
  stream.AddGroup("g", {}, 0);
  StreamGroup& group = *stream.FindGroup("g");
  EXPECT_EQ(stream.Lag(group), 0);
  for (uint64_t i = 1; i <= 5; ++i) stream.Add({i, 0}, pair, {});
  EXPECT_EQ(stream.Lag(group), 5);
  stream.Advance(group, {1, 0});
  EXPECT_EQ(group.entries_read, 1);
  EXPECT_EQ(stream.Lag(group), 4);
  stream.Delete({3, 0});
  EXPECT_EQ(stream.Lag(group), std::nullopt);
  stream.Advance(group, {2, 0});
  EXPECT_EQ(group.entries_read, StreamGroup::kUnknownRead);
  stream.Advance(group, {4, 0});
  stream.Advance(group, {5, 0});
  EXPECT_EQ(group.entries_read, 5);
  EXPECT_EQ(stream.Lag(group), 0);
}

// The nodes that Redis 7.0 reports for such ids.
TEST(Stream, CountsTheNodesOfARadixTree) {
  Stream stream;
  EXPECT_EQ(stream.RadixTreeNodes(), 1U);
  const std::string_view pair[] = {"f", "v"};
  stream.Add({1, 1}, pair, Limits(4096, 1));
  EXPECT_EQ(stream.RadixTreeNodes(), 2U);
  stream.Add({1, 2}, pair, Limits(4096, 1));
  EXPECT_EQ(stream.blocks(), 2U);
  EXPECT_EQ(stream.RadixTreeNodes(), 4U);
}

// ---- saving ----

std::unique_ptr<Stream> RandomStream(uint64_t seed, size_t steps, Model* model) {
  base::Rng rng(seed);
  auto stream = std::make_unique<Stream>();
  for (size_t step = 0; step < steps; ++step) {
    const uint64_t roll = rng.Below(100);
    if (roll < 60) {
      AddOne(*stream, *model, rng, Limits(4096, 100));
    } else if (roll < 65) {
      const StreamId id = SomeId(*model, rng);
      stream->Delete(id);
      model->entries.erase(id);
    } else {
      UseGroups(*stream, *model, rng);
    }
  }
  CheckGroups(*stream);
  return stream;
}

std::string WithType(const std::string& saved) { return '\1' + saved; }

TEST(StreamSave, ReadsBackEqual) {
  for (const uint64_t seed : {1, 2, 3}) {
    Model model;
    const auto stream = RandomStream(seed, 800, &model);
    EXPECT_EQ(CheckStreamLoad(WithType(SaveStream(*stream))), "");
    const auto again = LoadStream(19, SaveStream(*stream));
    ASSERT_NE(again, nullptr);
    EXPECT_EQ(EntriesOf(*again), model.entries);
    EXPECT_EQ(again->max_deleted_id(), stream->max_deleted_id());
    EXPECT_EQ(again->blocks(), stream->blocks());
  }
}

TEST(StreamSave, RefusesWhatIsCutOff) {
  Model model;
  const std::string bytes = SaveStream(*RandomStream(7, 300, &model));
  const size_t step = 1 + bytes.size() / 1000;
  for (size_t size = 0; size < bytes.size(); size += step) {
    EXPECT_EQ(LoadStream(19, std::string_view(bytes).substr(0, size)), nullptr) << size;
  }
}

TEST(StreamSave, SurvivesFlippedBits) {
  Model model;
  // Without compression, so that damage meets the listpacks.
  std::string bytes = "\1";
  {
    std::string body;
    {
      Writer out(&body, false);
      RandomStream(8, 60, &model)->Save(out);
    }
    bytes += body;
  }
  for (size_t at = 1; at < bytes.size(); at += 1 + bytes.size() / 150) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      EXPECT_EQ(CheckStreamLoad(damaged), "") << "byte " << at << " bit " << bit;
    }
  }
}

// A snapshot in pieces while the stream changes: what comes out is the stream at the cut.
TEST(StreamSave, SavesInPiecesWhileItChanges) {
  for (const size_t budget : {size_t{1}, size_t{1000}, size_t{100'000}}) {
    for (const int changes : {0, 30, 400}) {
      Model model;
      const auto stream = RandomStream(21, 4000, &model);
      ASSERT_TRUE(stream->large());
      const std::string at_cut = StreamDigest(*stream);
      std::string bytes;
      stream->BeginCut([&bytes](std::string_view piece) { bytes += piece; }, false);
      base::Rng rng(5);
      do {
        for (int i = 0; i < changes; ++i) {
          const uint64_t roll = rng.Below(100);
          if (roll < 30) {
            AddOne(*stream, model, rng, Limits(4096, 100));
          } else if (roll < 50) {
            const StreamId id = SomeId(model, rng);
            stream->Delete(id);
            model.entries.erase(id);
          } else if (roll == 50 && rng.Below(40) == 0) {
            TrimOne(*stream, model, rng);
          } else if (roll == 51 && rng.Below(40) == 0) {
            stream->RemoveGroup("group");
          } else {
            UseGroups(*stream, model, rng);
          }
        }
      } while (!stream->SavePieces(budget));
      const auto again = LoadStream(19, bytes);
      ASSERT_NE(again, nullptr) << budget << " " << changes;
      EXPECT_EQ(StreamDigest(*again), at_cut) << budget << " " << changes;
      EXPECT_TRUE(stream->SavePieces(1));
    }
  }
}

TEST(StreamSave, ReadsTheSeedsOfTheFuzzTarget) {
  const std::filesystem::path folder =
      std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/stream_load";
  size_t seen = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(file.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    EXPECT_EQ(CheckStreamLoad(bytes), "") << file.path();
    ++seen;
  }
  EXPECT_GT(seen, 0U);
}

}  // namespace
}  // namespace sava::types
