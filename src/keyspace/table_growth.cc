// How a table's index grows and shrinks: placing entries, segments that grow, split and merge.

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <new>

#include "keyspace/table.h"
#include "keyspace/table_layout.h"

namespace sava::keyspace {

namespace {

// Chosen so that a segment with its header fills one of jemalloc's size classes (128 … 8192).
constexpr uint32_t kSteps[] = {1, 3, 7, 15, 31, 47, 62, 78, 94, 110, 125};
constexpr uint32_t kMaxBuckets = 125;  // a segment splits instead of growing beyond
constexpr uint32_t kHardMaxBuckets = 1023;
constexpr uint32_t kMaxDepth = Table::kOrderBits - 16 - 1;
constexpr uint32_t kProbe = 12;  // buckets looked at for a free slot

// The smallest step whose load would be at most 7/8.
uint32_t BucketsFor(size_t count) {
  for (const uint32_t step : kSteps) {
    if (count <= step * 7) return step;
  }
  return kMaxBuckets;
}

uint32_t NextStep(uint32_t buckets) {
  for (const uint32_t step : kSteps) {
    if (step > buckets) return step;
  }
  return buckets * 2;
}

}  // namespace
bool Table::TryPlace(const Place& place, uint32_t fingerprint, Entry* entry) {
  const uint32_t home = Home(fingerprint, place.buckets);
  uint32_t index = home;
  const uint32_t limit = std::min(kProbe, place.buckets);
  for (uint32_t steps = 0; steps < limit; ++steps) {
    Slot* bucket = place.segment->bucket(place.buckets, index);
    for (int i = 0; i < 8; ++i) {
      if (bucket[i].load(std::memory_order_relaxed) != 0) continue;
      bucket[i].store(MakeSlot(fingerprint, entry), std::memory_order_relaxed);
      ++place.segment->count;
      if (steps > 0) {
        ++place.segment->spill()[home];
        place.segment->reach = std::max(place.segment->reach, steps);
      }
      return true;
    }
    index = index + 1 == place.buckets ? 0 : index + 1;
  }
  return false;
}

void Table::Insert(uint64_t hash, Entry* entry) {
  const uint64_t order = OrderOf(hash);
  while (true) {
    const Place place = PlaceOf(order);
    // Loads up to 29/32: above that probing gets long, and the next step is at most a third away.
    if (place.segment->count * 32ULL < place.buckets * 8ULL * 29 &&
        TryPlace(place, Fingerprint(order, place.depth), entry)) {
      break;
    }
    Grow(order);
  }
  count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void Table::Grow(uint64_t order) {
  const Place place = PlaceOf(order);
  if (place.buckets < kMaxBuckets) {
    Resize(order, NextStep(place.buckets));
  } else if (place.depth < kMaxDepth) {
    Split(order);
  } else {
    // 2^29 directory slots cannot tell these keys apart: the hash is broken. Grow while we can.
    const uint32_t next = std::min(NextStep(place.buckets), kHardMaxBuckets);
    if (next == place.buckets) {
      fprintf(stderr, "sava: key hashes are not random\n");
      abort();
    }
    Resize(order, next);
  }
}

// Points every directory slot of the segment that covers `order` at `depth` to the given segment.
void Table::Publish(uint64_t order, uint32_t depth, Segment* segment, uint32_t buckets) {
  Directory* directory = directory_.load(std::memory_order_relaxed);
  const uint32_t shift = directory->depth - depth;
  const size_t first = static_cast<size_t>(order >> (kOrderBits - depth)) << shift;
  const uint64_t word = Pack(segment, buckets, depth);
  for (size_t i = 0; i < size_t{1} << shift; ++i) {
    directory->places[first + i].store(word, std::memory_order_release);
  }
}

void Table::Resize(uint64_t order, uint32_t buckets) {
  const Place old = PlaceOf(order);
  while (true) {
    Segment* segment = NewSegment(buckets);
    const Place place{segment, buckets, old.depth};
    bool fits = true;
    for (uint32_t b = 0; b < old.buckets && fits; ++b) {
      Slot* bucket = old.segment->bucket(old.buckets, b);
      for (int i = 0; i < 8 && fits; ++i) {
        const uint64_t slot = bucket[i].load(std::memory_order_relaxed);
        if (slot != 0) fits = TryPlace(place, FingerprintOf(slot), EntryOf(slot));
      }
    }
    if (fits) {
      Publish(order, old.depth, segment, buckets);
      RetireSegment(old.segment, old.buckets);
      return;
    }
    index_bytes_ -= SegmentBytes(buckets);
    free(segment);
    buckets = NextStep(buckets);
  }
}

void Table::Split(uint64_t order) {
  Directory* directory = directory_.load(std::memory_order_relaxed);
  const Place old = PlaceOf(order);
  if (old.depth == directory->depth) {
    auto* larger = static_cast<Directory*>(malloc(Directory::Bytes(directory->depth + 1)));
    if (larger == nullptr) throw std::bad_alloc();
    larger->depth = directory->depth + 1;
    for (size_t i = 0; i < size_t{1} << larger->depth; ++i) {
      new (&larger->places[i])
          std::atomic<uint64_t>(directory->places[i / 2].load(std::memory_order_relaxed));
    }
    index_bytes_ += Directory::Bytes(larger->depth) - Directory::Bytes(directory->depth);
    SetDirectory(larger);
    epoch_->Retire(directory);
  }
  // The halves need one more bit of each hash than the fingerprints hold.
  const uint32_t depth = old.depth + 1;
  struct Item {
    Entry* entry;
    uint64_t order;
  };
  std::vector<Item> items;
  items.reserve(old.segment->count);
  for (uint32_t b = 0; b < old.buckets; ++b) {
    Slot* bucket = old.segment->bucket(old.buckets, b);
    for (int i = 0; i < 8; ++i) {
      const uint64_t slot = bucket[i].load(std::memory_order_relaxed);
      if (slot != 0) items.push_back({EntryOf(slot), 0});
    }
  }
  for (size_t i = 0; i < items.size(); ++i) {
    if (i + 12 < items.size()) base::Prefetch(items[i + 12].entry);
    items[i].order = OrderOf(HashOf(items[i].entry));
  }
  const uint64_t bit = uint64_t{1} << (kOrderBits - depth);
  // Both halves are made before either is published: without memory nothing has changed.
  struct Half {
    Segment* segment;
    uint32_t buckets;
  };
  const auto make = [&](bool upper) -> Half {
    size_t count = 0;
    for (const Item& item : items) count += ((item.order & bit) != 0) == upper ? 1 : 0;
    uint32_t buckets = BucketsFor(count + count / 16);
    while (true) {
      Segment* segment = NewSegment(buckets);
      const Place place{segment, buckets, depth};
      bool fits = true;
      for (const Item& item : items) {
        if (((item.order & bit) != 0) != upper) continue;
        if (!TryPlace(place, Fingerprint(item.order, depth), item.entry)) {
          fits = false;
          break;
        }
      }
      if (fits) return {segment, buckets};
      index_bytes_ -= SegmentBytes(buckets);
      free(segment);
      buckets = NextStep(buckets);
    }
  };
  const Half lower = make(false);
  Half upper{};
  try {
    upper = make(true);
  } catch (const std::bad_alloc&) {
    index_bytes_ -= SegmentBytes(lower.buckets);
    free(lower.segment);
    throw;
  }
  Publish(order & ~bit, depth, lower.segment, lower.buckets);
  Publish(order | bit, depth, upper.segment, upper.buckets);
  RetireSegment(old.segment, old.buckets);
}

void Table::Reserve(size_t keys) {
  Directory* old = directory_.load(std::memory_order_relaxed);
  if (size() != 0 || old->depth != 0) return;
  uint32_t depth = 0;
  while (depth < kMaxDepth && keys >> depth > kMaxBuckets * 6) ++depth;
  const size_t each = keys >> depth;
  const uint32_t buckets = BucketsFor(each + each / 16);
  const Place first = Unpack(old->places[0].load(std::memory_order_relaxed));
  if (depth == 0 && buckets <= first.buckets) return;
  auto* larger = static_cast<Directory*>(malloc(Directory::Bytes(depth)));
  if (larger == nullptr) throw std::bad_alloc();
  larger->depth = depth;
  for (size_t i = 0; i < size_t{1} << depth; ++i) {
    new (&larger->places[i]) std::atomic<uint64_t>(Pack(NewSegment(buckets), buckets, depth));
  }
  index_bytes_ += Directory::Bytes(depth) - Directory::Bytes(old->depth);
  SetDirectory(larger);
  RetireSegment(first.segment, first.buckets);
  epoch_->Retire(old);
  Settle();
}

void Table::EraseSlot(uint64_t hash, Slot* slot) {
  const uint64_t order = OrderOf(hash);
  const Place place = PlaceOf(order);
  const uint32_t home = Home(FingerprintOf(slot->load(std::memory_order_relaxed)), place.buckets);
  const Slot* bucket = place.segment->bucket(place.buckets, home);
  if (slot < bucket || slot >= bucket + 8) --place.segment->spill()[home];
  slot->store(0, std::memory_order_relaxed);
  --place.segment->count;
  count_.store(count_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  if (place.buckets > kFirstBuckets && place.segment->count * 4ULL < place.buckets * 8ULL) {
    MaybeShrink(order);
  }
}

// Without memory for a smaller one the index stays as it is: removing a key never fails.
void Table::MaybeShrink(uint64_t order) {
  try {
    while (TryMerge(order)) {
    }
    const Place place = PlaceOf(order);
    const uint32_t wanted = BucketsFor(place.segment->count * 3 / 2);
    if (wanted < place.buckets) Resize(order, wanted);
  } catch (const std::bad_alloc&) {
  }
}

bool Table::TryMerge(uint64_t order) {
  const Place mine = PlaceOf(order);
  if (mine.depth == 0) return false;
  const uint64_t bit = uint64_t{1} << (kOrderBits - mine.depth);
  const Place other = PlaceOf(order ^ bit);
  const size_t total = mine.segment->count + other.segment->count;
  if (other.depth != mine.depth || total > kMaxBuckets * 8 / 3) return false;
  const uint32_t depth = mine.depth - 1;
  uint32_t buckets = BucketsFor(total * 3 / 2);
  Segment* segment = nullptr;
  while (true) {
    segment = NewSegment(buckets);
    const Place place{segment, buckets, depth};
    bool fits = true;
    for (const Place& from : {mine, other}) {
      // One bit less of prefix is one bit more of fingerprint, known from which half it is.
      const uint64_t half = from.segment == mine.segment ? order : order ^ bit;
      const uint32_t top = (half & bit) != 0 ? 0x8000U : 0U;
      for (uint32_t b = 0; b < from.buckets && fits; ++b) {
        Slot* bucket = from.segment->bucket(from.buckets, b);
        for (int i = 0; i < 8 && fits; ++i) {
          const uint64_t slot = bucket[i].load(std::memory_order_relaxed);
          if (slot != 0) {
            fits = TryPlace(place, top | (FingerprintOf(slot) >> 1), EntryOf(slot));
          }
        }
      }
    }
    if (fits) break;
    index_bytes_ -= SegmentBytes(buckets);
    free(segment);
    buckets = NextStep(buckets);
  }
  Publish(order, depth, segment, buckets);
  RetireSegment(mine.segment, mine.buckets);
  RetireSegment(other.segment, other.buckets);
  // The directory halves when no segment needs its last bit: looked at only when it is large.
  Directory* directory = directory_.load(std::memory_order_relaxed);
  if (directory->depth > 0 && size() < (size_t{64} << (directory->depth - 1))) {
    const size_t half = size_t{1} << (directory->depth - 1);
    for (size_t i = 0; i < half; ++i) {
      if (Unpack(directory->places[2 * i].load(std::memory_order_relaxed)).depth ==
          directory->depth) {
        return true;
      }
    }
    auto* smaller = static_cast<Directory*>(malloc(Directory::Bytes(directory->depth - 1)));
    if (smaller == nullptr) return true;
    smaller->depth = directory->depth - 1;
    for (size_t i = 0; i < half; ++i) {
      new (&smaller->places[i])
          std::atomic<uint64_t>(directory->places[2 * i].load(std::memory_order_relaxed));
    }
    index_bytes_ -= Directory::Bytes(directory->depth) - Directory::Bytes(smaller->depth);
    SetDirectory(smaller);
    epoch_->Retire(directory);
  }
  return true;
}

}  // namespace sava::keyspace
