// Streams with dictionary-encoded blocks against streams that have none.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "../../fuzz/stream_load_property.h"
#include "base/rng.h"
#include "types/collections/stream.h"

namespace sava::types {
namespace {

using Pairs = std::vector<std::string>;

CollectionLimits Limits(bool encode) {
  CollectionLimits limits;
  limits.dictionary_encoding = encode;
  return limits;
}

// An event like others: few kinds, few machines, now and then other fields.
Pairs Event(base::Rng& rng, bool unique) {
  if (rng.Below(30) == 0) return {"something", std::to_string(rng.Next()), "else", "entirely"};
  if (unique) return {"id", std::to_string(rng.Next()) + "-" + std::to_string(rng.Next())};
  return {"kind", "page viewed by a visitor " + std::to_string(rng.Below(4)), "machine",
          "server-" + std::to_string(rng.Below(6)) + ".example.com"};
}

// The same random changes of a stream that encodes its blocks and of one that does not.
class Two {
 public:
  Two(uint64_t seed, bool unique) : rng_(seed), unique_(unique) {}

  void Change(bool growing) {
    const uint64_t roll = rng_.Below(1000);
    if (roll < (growing ? 990U : 600U)) {
      const bool same = rng_.Below(3) == 0;
      id_ = same ? StreamId{id_.ms, id_.seq + 1} : StreamId{id_.ms + 1 + rng_.Below(50), 0};
      const Pairs pairs = Event(rng_, unique_);
      const std::vector<std::string_view> views(pairs.begin(), pairs.end());
      EXPECT_EQ(encoding_.Add(id_, views, Limits(true)), Stream::AddResult::kAdded);
      EXPECT_EQ(plain_.Add(id_, views, Limits(false)), Stream::AddResult::kAdded);
    } else if (roll < 994) {
      const StreamId id = SomeId();
      EXPECT_EQ(encoding_.Contains(id), plain_.Contains(id));
      EXPECT_EQ(encoding_.Delete(id), plain_.Delete(id));
    } else if (rng_.Below(2) == 0) {
      const uint64_t length = plain_.length() - std::min(plain_.length(), rng_.Below(150));
      const bool approximate = rng_.Below(2) == 0;
      EXPECT_EQ(encoding_.TrimToLength(length, approximate, 0),
                plain_.TrimToLength(length, approximate, 0));
    } else {
      StreamId id = plain_.first_id();
      id.ms += rng_.Below(2000);
      EXPECT_EQ(encoding_.TrimBefore(id, false, 0), plain_.TrimBefore(id, false, 0));
    }
  }

  void ExpectEqual() {
    EXPECT_EQ(plain_.encoded_blocks(), 0U);
    ASSERT_EQ(StreamDigest(encoding_), StreamDigest(plain_));
    ASSERT_EQ(Backwards(encoding_), Backwards(plain_));
    ASSERT_EQ(SaveStream(encoding_), SaveStream(plain_));
    const auto copy = encoding_.Copy();
    EXPECT_EQ(StreamDigest(*copy), StreamDigest(plain_));
    EXPECT_EQ(encoding_.First(), plain_.First());
    EXPECT_EQ(encoding_.Last(), plain_.Last());
  }

  Stream& stream() { return encoding_; }
  Stream& plain() { return plain_; }
  base::Rng& rng() { return rng_; }

 private:
  // One that is there, mostly.
  StreamId SomeId() {
    StreamId found{rng_.Below(id_.ms + 2), rng_.Below(2)};
    if (rng_.Below(5) == 0) return found;
    const StreamId from = found;
    plain_.Range(from, kGreatestStreamId, [&found](const StreamEntry& entry) {
      found = entry.id;
      return false;
    });
    return found;
  }
  static std::string Backwards(const Stream& stream) {
    std::string all;
    stream.RangeReverse(kLeastStreamId, kGreatestStreamId, [&all](const StreamEntry& entry) {
      all += entry.id.Text();
      entry.ForEachField([&all](std::string_view field, std::string_view value) {
        all.append(field).append("=").append(value).append(" ");
      });
      return true;
    });
    return all;
  }

  base::Rng rng_;
  const bool unique_;
  StreamId id_{1, 0};
  Stream encoding_;
  Stream plain_;
};

TEST(EncodedStream, IsTheStreamItWouldBeWithout) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    Two two(seed, seed == 8);
    size_t encoded = 0;
    for (int step = 0; step < 4000; ++step) {
      two.Change(step < 2000);
      encoded = std::max(encoded, two.stream().encoded_blocks());
      if (step % 400 == 399) two.ExpectEqual();
      if (::testing::Test::HasFatalFailure()) return;
    }
    EXPECT_EQ(encoded > 2, seed != 8) << encoded;
    EXPECT_EQ(UseStream(two.stream()), "");
  }
}

TEST(EncodedStream, TakesLessMemoryWhereValuesRepeat) {
  base::Rng rng(1);
  Stream encoding;
  Stream plain;
  for (uint64_t ms = 1; ms <= 5000; ++ms) {
    const Pairs pairs = Event(rng, false);
    const std::vector<std::string_view> views(pairs.begin(), pairs.end());
    encoding.Add({ms, 0}, views, Limits(true));
    plain.Add({ms, 0}, views, Limits(false));
  }
  EXPECT_EQ(encoding.encoded_blocks(), encoding.blocks() - 1);
  EXPECT_LT(encoding.MemoryUsage(0) * 2, plain.MemoryUsage(0));
}

TEST(EncodedStream, IsEncodedWhenItIsLoaded) {
  Two two(2, false);
  for (int step = 0; step < 3000; ++step) two.Change(true);
  const auto loaded = LoadStream(19, SaveStream(two.plain()));
  ASSERT_NE(loaded, nullptr);
  EXPECT_GT(loaded->encoded_blocks(), 10U);
  EXPECT_EQ(StreamDigest(*loaded), StreamDigest(two.plain()));
}

TEST(EncodedStream, ACutIsTheStreamOfThatMoment) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Two two(seed, false);
    for (int step = 0; step < 5000; ++step) two.Change(true);
    Stream& stream = two.stream();
    ASSERT_TRUE(stream.large());
    const std::string before = StreamDigest(stream);
    std::string pieces;
    stream.BeginCut([&pieces](std::string_view bytes) { pieces.append(bytes); }, false);
    bool done = false;
    while (!done) {
      for (uint64_t i = two.rng().Below(40); i > 0; --i) two.Change(false);
      done = stream.SavePieces(1 + two.rng().Below(10'000));
    }
    const auto loaded = LoadStream(19, pieces);
    ASSERT_NE(loaded, nullptr);
    EXPECT_EQ(StreamDigest(*loaded), before);
    two.ExpectEqual();
  }
}

// The last block may become the last again that took no more entries: it is left as it is.
TEST(EncodedStream, AnEncodedBlockTakesNoEntries) {
  Two two(3, false);
  for (int step = 0; step < 1000; ++step) two.Change(true);
  Stream& stream = two.stream();
  while (stream.encoded_blocks() < stream.blocks()) {
    const auto last = stream.Last();
    ASSERT_TRUE(last);
    ASSERT_TRUE(stream.Delete(*last));
  }
  const uint64_t length = stream.length();
  const std::string_view pair[] = {"field", "value"};
  CollectionLimits roomy = Limits(true);
  roomy.stream_node_max_bytes = 1 << 20;
  roomy.stream_node_max_entries = 0;
  ASSERT_EQ(stream.Add(*stream.NextId(0), pair, roomy), Stream::AddResult::kAdded);
  EXPECT_EQ(stream.blocks(), stream.encoded_blocks() + 1);
  EXPECT_EQ(stream.length(), length + 1);
  EXPECT_EQ(UseStream(stream), "");
}

}  // namespace
}  // namespace sava::types
