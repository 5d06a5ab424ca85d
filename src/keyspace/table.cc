#include "keyspace/table.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/hash.h"
#include "base/prefetch.h"

namespace sava::keyspace {

namespace {

// Chosen so that a segment with its header fills one of jemalloc's size classes (128 … 8192).
constexpr uint32_t kSteps[] = {1, 3, 7, 15, 31, 47, 62, 78, 94, 110, 125};
constexpr uint32_t kFirstBuckets = 1;
constexpr uint32_t kMaxBuckets = 125;  // a segment splits instead of growing beyond
constexpr uint32_t kHardMaxBuckets = 1023;
constexpr uint32_t kMaxDepth = Table::kOrderBits - 16 - 1;
constexpr uint32_t kProbe = 12;     // buckets looked at for a free slot
constexpr size_t kStaleItems = 64;  // so many may be in a wheel in vain
constexpr uint64_t kPointerMask = (uint64_t{1} << 48) - 1;

Entry* EntryOf(uint64_t slot) { return reinterpret_cast<Entry*>(slot & kPointerMask); }
uint32_t FingerprintOf(uint64_t slot) { return static_cast<uint32_t>(slot >> 48); }
uint64_t MakeSlot(uint32_t fingerprint, const Entry* entry) {
  return (uint64_t{fingerprint} << 48) | reinterpret_cast<uintptr_t>(entry);
}
uint32_t Fingerprint(uint64_t order, uint32_t depth) {
  return static_cast<uint32_t>(order >> (Table::kOrderBits - 16 - depth)) & 0xffff;
}
uint32_t Home(uint32_t fingerprint, uint32_t buckets) { return fingerprint * buckets >> 16; }

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

struct Table::Segment {
  uint32_t count;
  uint32_t reach;  // how far from its home any entry ever stood, in buckets
  // Followed by uint8_t spill[buckets], padding to 64, and the buckets.

  uint8_t* spill() { return reinterpret_cast<uint8_t*>(this + 1); }
  static size_t HeaderBytes(uint32_t buckets) {
    return (sizeof(Segment) + buckets + 63) & ~size_t{63};
  }
  Slot* bucket(uint32_t buckets, uint32_t index) {
    return reinterpret_cast<Slot*>(reinterpret_cast<char*>(this) + HeaderBytes(buckets)) +
           size_t{index} * 8;
  }
};

struct Table::Directory {
  char retired[Epoch::kRetiredBytes];  // others may still read what follows
  uint32_t depth;
  std::atomic<uint64_t> places[1];  // 2^depth

  static size_t Bytes(uint32_t depth) { return offsetof(Directory, places) + (size_t{8} << depth); }
};

uint64_t Table::Pack(Segment* segment, uint32_t buckets, uint32_t depth) {
  return (uint64_t{buckets} << 54) | (uint64_t{depth} << 48) | reinterpret_cast<uintptr_t>(segment);
}

Table::Place Table::Unpack(uint64_t word) {
  return {reinterpret_cast<Segment*>(word & kPointerMask), static_cast<uint32_t>(word >> 54),
          static_cast<uint32_t>(word >> 48) & 63};
}

uint64_t Table::SegmentBytes(uint32_t buckets) {
  return Segment::HeaderBytes(buckets) + size_t{buckets} * 64;
}

Table::Segment* Table::NewSegment(uint32_t buckets) {
  const size_t bytes = SegmentBytes(buckets);
  void* memory = aligned_alloc(64, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  memset(memory, 0, bytes);
  index_bytes_ += bytes;
  return static_cast<Segment*>(memory);
}

void Table::RetireSegment(Segment* segment, uint32_t buckets) {
  index_bytes_ -= SegmentBytes(buckets);
  epoch_->Retire(segment);
}

Table::Table(Epoch* epoch, uint64_t hash_seed, int64_t now_ms, const bool* version)
    : epoch_(epoch), seed_(hash_seed), version_(version), wheel_start_(now_ms) {
  Segment* const segment = NewSegment(kFirstBuckets);
  auto* directory = static_cast<Directory*>(malloc(Directory::Bytes(0)));
  if (directory == nullptr) {
    free(segment);
    throw std::bad_alloc();
  }
  directory->depth = 0;
  new (&directory->places[0]) std::atomic<uint64_t>(Pack(segment, kFirstBuckets, 0));
  index_bytes_ += Directory::Bytes(0);
  SetDirectory(directory);
  Settle();
}

Table::~Table() {
  // Entries in slab pages need no release of their own: only values and blocks outside do.
  if (external_bytes_ > 0 || slab_.large_bytes() > 0) {
    ForEach([this](Entry* entry) {
      Displaced displaced;
      TakeValue(entry, &displaced);
      if (displaced.blob != nullptr) displaced.blob->Unref();
      delete displaced.object;
      const size_t size = entry->BlockSize();
      if (size > base::Slab::kMaxBlock) slab_.Release(entry, size);
    });
  }
  Directory* directory = directory_.load(std::memory_order_relaxed);
  Segment* last = nullptr;
  for (size_t i = 0; i < size_t{1} << directory->depth; ++i) {
    Segment* segment = Unpack(directory->places[i].load(std::memory_order_relaxed)).segment;
    if (segment != last) epoch_->Retire(segment);
    last = segment;
  }
  epoch_->Retire(directory);
}

void* Table::operator new(size_t size) {
  void* memory = malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void Table::operator delete(void* memory) { free(memory); }

void Table::Retire(Table* table) {
  Epoch* epoch = table->epoch_;
  table->~Table();
  epoch->Retire(table);
}

uint64_t Table::HashOf(const Entry* entry) const { return base::HashBytes(entry->key(), seed_); }

size_t Table::DirectoryIndex(uint64_t order) const {
  const uint32_t depth = directory_.load(std::memory_order_relaxed)->depth;
  return static_cast<size_t>(order >> (kOrderBits - depth));
}

const std::atomic<uint64_t>* Table::PlaceAt(uint64_t order) const {
  const uint64_t root = root_.load(std::memory_order_acquire);
  auto* directory = reinterpret_cast<Directory*>(root & kPointerMask);
  return &directory->places[order >> (kOrderBits - (root >> 48))];
}

Table::Place Table::PlaceOf(uint64_t order) const {
  return Unpack(PlaceAt(order)->load(std::memory_order_acquire));
}

void Table::SetDirectory(Directory* directory) {
  directory_.store(directory, std::memory_order_release);
  root_.store((uint64_t{directory->depth} << 48) | reinterpret_cast<uintptr_t>(directory),
              std::memory_order_release);
}

// ---- finding ----

Table::Slot* Table::FindSlot(uint64_t hash, std::string_view key) const {
  const uint64_t order = OrderOf(hash);
  const Place place = PlaceOf(order);
  const uint32_t fingerprint = Fingerprint(order, place.depth);
  const uint32_t home = Home(fingerprint, place.buckets);
  uint32_t index = home;
  uint32_t steps = 0;
  while (true) {
    Slot* bucket = place.segment->bucket(place.buckets, index);
    for (int i = 0; i < 8; ++i) {
      const uint64_t slot = bucket[i].load(std::memory_order_relaxed);
      if (FingerprintOf(slot) == fingerprint && slot != 0 && EntryOf(slot)->KeyIs(key)) {
        return &bucket[i];
      }
    }
    if (steps == 0 && place.segment->spill()[home] == 0) return nullptr;
    if (++steps > place.segment->reach) return nullptr;
    index = index + 1 == place.buckets ? 0 : index + 1;
  }
}

Table::Slot* Table::FindEntrySlot(uint64_t hash, const Entry* entry) const {
  const uint64_t order = OrderOf(hash);
  const Place place = PlaceOf(order);
  const uint64_t wanted = MakeSlot(Fingerprint(order, place.depth), entry);
  uint32_t index = Home(FingerprintOf(wanted), place.buckets);
  for (uint32_t steps = 0; steps <= place.segment->reach; ++steps) {
    Slot* bucket = place.segment->bucket(place.buckets, index);
    for (int i = 0; i < 8; ++i) {
      if (bucket[i].load(std::memory_order_relaxed) == wanted) return &bucket[i];
    }
    index = index + 1 == place.buckets ? 0 : index + 1;
  }
  return nullptr;
}

// The lowest seven bits of an item are not the hash's: a key's stripe has them all alike.
uint64_t Table::WheelItem(uint64_t hash, const Entry* entry) {
  return (hash & ~uint64_t{127}) | entry->wheel_tag();
}

size_t Table::FindByItem(uint64_t item, Entry** out, size_t max) const {
  const uint64_t order = OrderOf(item);
  const Place place = PlaceOf(order);
  const uint32_t fingerprint = Fingerprint(order, place.depth);
  uint32_t index = Home(fingerprint, place.buckets);
  size_t found = 0;
  for (uint32_t steps = 0; steps <= place.segment->reach; ++steps) {
    Slot* bucket = place.segment->bucket(place.buckets, index);
    for (int i = 0; i < 8; ++i) {
      const uint64_t slot = bucket[i].load(std::memory_order_relaxed);
      if (slot == 0 || FingerprintOf(slot) != fingerprint) continue;
      if ((HashOf(EntryOf(slot)) ^ item) >> 7 == 0 && found < max) out[found++] = EntryOf(slot);
    }
    index = index + 1 == place.buckets ? 0 : index + 1;
  }
  return found;
}

Entry* Table::EntryAt(const Slot* slot) {
  return slot == nullptr ? nullptr : EntryOf(slot->load(std::memory_order_relaxed));
}

Entry* Table::Find(uint64_t hash, std::string_view key) const {
  return EntryAt(FindSlot(hash, key));
}

void Table::PrefetchDirectory(uint64_t hash) const { base::Prefetch(PlaceAt(OrderOf(hash))); }

void Table::PrefetchBucket(uint64_t hash) const {
  const uint64_t order = OrderOf(hash);
  const Place place = PlaceOf(order);
  const uint32_t home = Home(Fingerprint(order, place.depth), place.buckets);
  base::Prefetch(place.segment->bucket(place.buckets, home));
}

void Table::PrefetchPlace(uint64_t hash) const {
  const uint64_t order = OrderOf(hash);
  const Place place = PlaceOf(order);
  const uint32_t home = Home(Fingerprint(order, place.depth), place.buckets);
  base::PrefetchForWrite(place.segment->bucket(place.buckets, home));
  base::PrefetchForWrite(place.segment);
  base::Prefetch(place.segment->spill() + home);
}

void Table::PrefetchEntry(uint64_t hash, size_t writes) const {
  const uint64_t order = OrderOf(hash);
  const Place place = PlaceOf(order);
  const uint32_t fingerprint = Fingerprint(order, place.depth);
  Slot* bucket = place.segment->bucket(place.buckets, Home(fingerprint, place.buckets));
  for (int i = 0; i < 8; ++i) {
    const uint64_t slot = bucket[i].load(std::memory_order_relaxed);
    if (FingerprintOf(slot) != fingerprint) continue;
    const auto* entry = reinterpret_cast<const char*>(EntryOf(slot));
    if (writes == 0) {
      base::Prefetch(entry);
      base::Prefetch(entry + 64);
      continue;
    }
    const char* const last = entry + std::min(writes, Entry::kMaxInline) - 1;
    for (const char* p = entry; p < last; p += 64) base::PrefetchForWrite(p);
    base::PrefetchForWrite(last);
  }
}

// ---- placing ----

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

// ---- entries ----

namespace {

size_t PayloadSize(const NewValue& value) {
  if (value.kind == Kind::kObject || value.blob != nullptr || value.form == Form::kInt) return 8;
  return value.bytes.size();
}

uint8_t ValueFlags(const NewValue& value) {
  return value.kind == Kind::kObject || value.blob != nullptr ? kExternal : 0;
}

}  // namespace

void Table::StoreValue(Entry* entry, const NewValue& value) {
  if (value.kind == Kind::kObject) {
    entry->StorePayload(value.object);
  } else if (value.blob != nullptr) {
    entry->StorePayload(value.blob);
    external_bytes_ += value.blob->memory();
  } else if (value.form == Form::kInt) {
    entry->StorePayload(value.integer);
  } else {
    memcpy(entry->mutable_payload(), value.bytes.data(), value.bytes.size());
  }
  if (value.kind == Kind::kObject) external_bytes_ += 1;  // marks the table as having objects
}

Entry* Table::NewEntry(std::string_view key, const NewValue& value, int64_t expire_at) {
  const size_t payload = PayloadSize(value);
  const bool expiry = expire_at >= 0;
  auto* entry = static_cast<Entry*>(slab_.Allocate(Entry::SizeFor(key.size(), expiry, payload)));
  const auto flags = static_cast<uint8_t>(ValueFlags(value) | (expiry ? kHasExpiry : 0) |
                                          (*version_ ? kVersion : 0));
  entry->Init(value.kind, value.form, flags, key, payload, expire_at);
  entry->set_age(0);
  entry->set_wheel_tag(next_tag_++ & 15);
  StoreValue(entry, value);
  return entry;
}

void Table::TakeValue(Entry* entry, Displaced* displaced) {
  if (!entry->has(kExternal)) return;
  if (entry->kind() == Kind::kObject) {
    displaced->object = entry->object();
    external_bytes_ -= 1;
  } else {
    displaced->blob = entry->blob();
    external_bytes_ -= displaced->blob->memory();
  }
}

void Table::FreeEntry(Entry* entry) { slab_.Release(entry, entry->BlockSize()); }

Entry* Table::PutAt(Slot* slot, uint64_t hash, std::string_view key, const NewValue& value,
                    int64_t expire_at, Displaced* displaced) {
  if (slot == nullptr) {
    Entry* entry = NewEntry(key, value, expire_at);
    try {
      Insert(hash, entry);
    } catch (const std::bad_alloc&) {
      Displaced again;
      TakeValue(entry, &again);  // it stays the caller's
      FreeEntry(entry);
      Settle();
      throw;
    }
    if (expire_at >= 0) {
      CountExpiring(1);
      NoteExpiry(hash, entry, -1);
    }
    if (value.kind == Kind::kObject) NoteDeadline(hash, entry);
    Settle();
    return entry;
  }
  const uint64_t word = slot->load(std::memory_order_relaxed);
  Entry* entry = EntryOf(word);
  const int64_t old_expiry = entry->expire_at();
  const size_t payload = PayloadSize(value);
  const size_t old_size = entry->BlockSize();
  const size_t size = Entry::SizeFor(key.size(), expire_at >= 0, payload);
  if ((old_expiry >= 0) == (expire_at >= 0) && size <= base::Slab::kMaxBlock &&
      old_size <= base::Slab::kMaxBlock &&
      base::Slab::ClassOf(size < 24 ? 24 : size) ==
          base::Slab::ClassOf(old_size < 24 ? 24 : old_size)) {
    TakeValue(entry, displaced);
    const uint8_t kept = entry->flags() & (kHasExpiry | kInWheel | kVersion | kWheelTag);
    entry->SetShape(value.kind, value.form, kept | ValueFlags(value), payload);
    if (expire_at >= 0) entry->set_expire_at(expire_at);
    StoreValue(entry, value);
  } else {
    Entry* fresh = NewEntry(key, value, expire_at);
    TakeValue(entry, displaced);
    fresh->set_age(entry->age());
    fresh->set_flag(kInWheel, entry->has(kInWheel) && expire_at >= 0);
    fresh->set_wheel_tag(entry->wheel_tag());
    slot->store(MakeSlot(FingerprintOf(word), fresh), std::memory_order_relaxed);
    FreeEntry(entry);
    entry = fresh;
  }
  if ((old_expiry >= 0) != (expire_at >= 0)) CountExpiring(expire_at >= 0 ? 1 : -1);
  if (expire_at >= 0) NoteExpiry(hash, entry, old_expiry);
  if (value.kind == Kind::kObject) NoteDeadline(hash, entry);
  Settle();
  return entry;
}

bool Table::OverwriteInline(Entry* entry, Form form, std::string_view bytes, int64_t expire_at) {
  if (entry->kind() != Kind::kString || entry->form() != form || form == Form::kInt ||
      entry->has(kExternal) || !entry->has(kHasExpiry) || !entry->has(kInWheel) ||
      expire_at < entry->expire_at()) {
    return false;
  }
  const std::string_view old = entry->inline_bytes();
  if (old.size() != bytes.size()) return false;
  memcpy(const_cast<char*>(old.data()), bytes.data(), bytes.size());
  entry->set_expire_at(expire_at);
  return true;
}

char* Table::Edit(uint64_t hash, std::string_view key, size_t size, Displaced* displaced) {
  Entry* entry = Find(hash, key);
  if (entry != nullptr && entry->has(kExternal)) {
    base::Blob* blob = entry->blob();
    const size_t wanted = std::max(size, blob->size());
    if (!blob->unique()) {
      base::Blob* copy = base::Blob::Extended(blob->view(), wanted);
      external_bytes_ += copy->memory() - blob->memory();
      displaced->blob = blob;
      blob = copy;
    } else if (wanted > blob->size()) {
      const size_t before = blob->memory();
      blob = base::Blob::Resize(blob, wanted);
      external_bytes_ += blob->memory() - before;
    }
    entry->StorePayload(blob);
    entry->SetShape(Kind::kString, Form::kRaw, entry->flags(), 8);
    Settle();
    return blob->data();
  }
  char digits[24];
  std::string_view current;
  int64_t expire_at = -1;
  if (entry != nullptr) {
    expire_at = entry->expire_at();
    if (entry->form() == Form::kInt) {
      const int n =
          snprintf(digits, sizeof digits, "%lld", static_cast<long long>(entry->integer()));
      current = {digits, static_cast<size_t>(n)};
    } else {
      current = entry->inline_bytes();
      if (current.size() >= size) {
        entry->SetShape(Kind::kString, Form::kRaw, entry->flags(), current.size());
        return entry->mutable_payload();
      }
    }
  }
  const size_t wanted = std::max(size, current.size());
  NewValue value;
  value.form = Form::kRaw;
  char small[Entry::kMaxInline];
  if (Entry::SizeFor(key.size(), expire_at >= 0, wanted) <= Entry::kMaxInline) {
    if (!current.empty()) memcpy(small, current.data(), current.size());
    memset(small + current.size(), 0, wanted - current.size());
    value.bytes = {small, wanted};
  } else {
    value.blob = base::Blob::Extended(current, wanted);
  }
  try {
    entry = Put(hash, key, value, expire_at, displaced);
  } catch (const std::bad_alloc&) {
    if (value.blob != nullptr) value.blob->Unref();
    throw;
  }
  return value.blob != nullptr ? value.blob->data() : entry->mutable_payload();
}

bool Table::Remove(uint64_t hash, std::string_view key, Displaced* displaced) {
  Slot* slot = FindSlot(hash, key);
  if (slot == nullptr) return false;
  Entry* entry = EntryOf(slot->load(std::memory_order_relaxed));
  TakeValue(entry, displaced);
  if (entry->has(kHasExpiry)) CountExpiring(-1);
  EraseSlot(hash, slot);
  FreeEntry(entry);
  Settle();
  return true;
}

Entry* Table::SetExpiry(uint64_t hash, Entry* entry, int64_t expire_at) {
  const int64_t old_expiry = entry->expire_at();
  if ((old_expiry >= 0) == (expire_at >= 0)) {
    if (expire_at >= 0) {
      entry->set_expire_at(expire_at);
      NoteExpiry(hash, entry, old_expiry);
      Settle();
    }
    return entry;
  }
  Slot* slot = FindEntrySlot(hash, entry);
  assert(slot != nullptr);
  const std::string_view key = entry->key();
  const size_t payload = entry->payload_size();
  auto* fresh =
      static_cast<Entry*>(slab_.Allocate(Entry::SizeFor(key.size(), expire_at >= 0, payload)));
  auto flags = static_cast<uint8_t>(entry->flags() & ~(kHasExpiry | kInWheel));
  if (expire_at >= 0) flags |= kHasExpiry;
  fresh->Init(entry->kind(), entry->form(), flags, key, payload, expire_at);
  fresh->set_age(entry->age());
  memcpy(fresh->mutable_payload(), entry->mutable_payload(), payload);
  slot->store(MakeSlot(FingerprintOf(slot->load(std::memory_order_relaxed)), fresh),
              std::memory_order_relaxed);
  FreeEntry(entry);
  CountExpiring(expire_at >= 0 ? 1 : -1);
  if (expire_at >= 0) NoteExpiry(hash, fresh, -1);
  Settle();
  return fresh;
}

// ---- expiry ----

// Whether the item was filed for the entry as it is. Items of objects have the tag of the last note
// in the bits above a key's tag, which are zero in items of keys.
bool Table::Wants(const Entry& entry, uint64_t item) {
  if (const uint64_t tag = item >> 4 & 7; tag != 0) {
    return entry.kind() == Kind::kObject && entry.object()->deadline_tag() == tag;
  }
  return entry.has(kHasExpiry) && entry.wheel_tag() == (item & 15);
}

// False when there was no memory.
bool Table::FileItem(uint64_t item, int64_t at) {
  try {
    if (wheel_ == nullptr) wheel_ = std::make_unique<Wheel>(wheel_start_);
    if (wheel_->crowded()) {
      wheel_->LeaveOut([this](uint64_t each) {
        Entry* entries[8];
        const size_t found = FindByItem(each, entries, 8);
        return std::none_of(entries, entries + found,
                            [each](const Entry* entry) { return Wants(*entry, each); });
      });
    }
    wheel_->Add(item, at);
  } catch (const std::bad_alloc&) {
    return false;
  }
  // Many items may be of entries that have gone, or have another time now.
  if (wheel_->size() > 2 * std::max<size_t>(expiring(), swept_size_) + kStaleItems) {
    sweeping_ = true;
  }
  return true;
}

// Files the entry in the wheel unless an item at or before its expiry stands there already. One for
// which there is no memory goes when somebody looks at it, or at its next note.
void Table::NoteExpiry(uint64_t hash, Entry* entry, int64_t old_expiry) {
  const int64_t at = entry->expire_at();
  if (entry->has(kInWheel) && old_expiry >= 0 && at >= old_expiry) return;
  // Items filed for it before carry another tag and are dropped when they are met.
  entry->set_wheel_tag((entry->wheel_tag() + 1) & 15);
  entry->set_flag(kInWheel, FileItem(WheelItem(hash, entry), at));
}

void Table::NoteDeadline(uint64_t hash, Entry* entry) {
  types::Object* object = entry->object();
  const int64_t at = object->next_deadline();
  if (at < 0) return;
  const auto tag = static_cast<uint8_t>(object->deadline_tag() % 7 + 1);
  object->set_deadline_tag(tag);
  FileItem((hash & ~uint64_t{127}) | uint64_t{tag} << 4, at);
  Settle();
}

size_t Table::Expire(int64_t now_ms, size_t budget, const std::function<void(Entry*)>& expire,
                     const std::function<void(Entry*)>& visit) {
  wheel_start_ = now_ms;
  if (wheel_ == nullptr) return 0;
  // A due item's keys expire, or are filed again with their true time, once.
  const auto look = [&](uint64_t item) {
    Entry* entries[8];
    const size_t found = FindByItem(item, entries, 8);
    for (size_t i = 0; i < found; ++i) {
      Entry* entry = entries[i];
      if (!Wants(*entry, item)) continue;
      if ((item >> 4 & 7) != 0) {
        const int64_t at = entry->object()->next_deadline();
        if (at < 0) continue;
        if (at < now_ms && visit) {
          visit(entry);
        } else {
          wheel_->Add(item, at);
        }
        continue;
      }
      if (entry->expire_at() < now_ms) {
        expire(entry);
      } else {
        wheel_->Add(item, entry->expire_at());
      }
    }
  };
  size_t looked = wheel_->Advance(now_ms, budget, look);
  if (sweeping_ && looked < budget) {
    sweeping_ = wheel_->Sweep(budget - looked, look);
    if (!sweeping_) swept_size_ = wheel_->size();
    looked = budget;
  }
  if (wheel_->size() == 0 && expiring() == 0) {
    wheel_.reset();
    swept_size_ = 0;
  }
  Settle();
  return looked;
}

int64_t Table::AverageTtl(int64_t now_ms, base::Rng& rng) const {
  if (expiring() == 0) return 0;
  int64_t sum = 0;
  int64_t seen = 0;
  for (int round = 0; round < 16; ++round) {
    Entry* entries[8];
    const size_t n = Sample(rng, entries, 8);
    for (size_t i = 0; i < n; ++i) {
      const int64_t at = entries[i]->expire_at();
      if (at > now_ms) {
        sum += at - now_ms;
        ++seen;
      }
    }
  }
  return seen == 0 ? 0 : sum / seen;
}

// ---- accounts and upkeep ----

void Table::Settle() {
  const size_t used = sizeof(Table) + slab_.used() + external_bytes_ + index_bytes_ +
                      (wheel_ ? wheel_->bytes() : 0);
  const size_t held = used + slab_.idle();
  // Overwriting in place changes nothing here: then the line is not taken from other threads.
  if (used_.load(std::memory_order_relaxed) != used) used_.store(used, std::memory_order_relaxed);
  if (held_.load(std::memory_order_relaxed) != held) held_.store(held, std::memory_order_relaxed);
}

size_t Table::Compact() {
  base::Slab::Page* page = slab_.BeginEvacuate();
  if (page == nullptr) return 0;
  void* blocks[192];
  const size_t count = base::Slab::Blocks(page, blocks, 192);
  size_t moved = 0;
  for (; moved < count; ++moved) {
    auto* entry = static_cast<Entry*>(blocks[moved]);
    const uint64_t hash = HashOf(entry);
    Slot* slot = FindEntrySlot(hash, entry);
    assert(slot != nullptr);
    const size_t size = entry->BlockSize();
    void* target = nullptr;
    try {
      target = slab_.Allocate(size);
    } catch (const std::bad_alloc&) {  // the rest stays where it is
      break;
    }
    memcpy(target, entry, size);
    slot->store(
        MakeSlot(FingerprintOf(slot->load(std::memory_order_relaxed)), static_cast<Entry*>(target)),
        std::memory_order_relaxed);
    slab_.Release(entry, size);
  }
  slab_.EndEvacuate(page);
  Settle();
  return moved;
}

// ---- walking ----

uint64_t Table::Scan(uint64_t from, size_t count, const std::function<void(Entry*)>& visit) const {
  const uint64_t end = uint64_t{1} << kOrderBits;
  size_t seen = 0;
  uint64_t order = from;
  size_t buckets_seen = 0;
  while (order < end) {
    const Place place = PlaceOf(order);
    const uint32_t home = Home(Fingerprint(order, place.depth), place.buckets);
    // Everything at home in this bucket, wherever it stands.
    const uint64_t segment_first = order >> (kOrderBits - place.depth)
                                                << (kOrderBits - place.depth);
    const int low_bits = kOrderBits - 16 - static_cast<int>(place.depth);
    const uint32_t next_fingerprint =
        static_cast<uint32_t>(((uint64_t{home} + 1) * 65536 + place.buckets - 1) / place.buckets);
    uint32_t index = home;
    for (uint32_t steps = 0; steps <= place.segment->reach; ++steps) {
      Slot* bucket = place.segment->bucket(place.buckets, index);
      for (int i = 0; i < 8; ++i) {
        const uint64_t slot = bucket[i].load(std::memory_order_relaxed);
        if (slot == 0 || Home(FingerprintOf(slot), place.buckets) != home) continue;
        if (from > segment_first && FingerprintOf(slot) < Fingerprint(from, place.depth) &&
            order == from) {
          continue;  // reported by an earlier step
        }
        visit(EntryOf(slot));
        ++seen;
      }
      if (place.segment->spill()[home] == 0) break;
      index = index + 1 == place.buckets ? 0 : index + 1;
    }
    order = segment_first + (uint64_t{next_fingerprint} << low_bits);
    ++buckets_seen;
    if (seen >= count || buckets_seen >= count * 4 + 64) break;
  }
  return order >= end ? 0 : order;
}

void Table::ForEach(const std::function<void(Entry*)>& visit) const {
  Directory* directory = directory_.load(std::memory_order_relaxed);
  Segment* last = nullptr;
  for (size_t d = 0; d < size_t{1} << directory->depth; ++d) {
    const Place place = Unpack(directory->places[d].load(std::memory_order_relaxed));
    if (place.segment == last) continue;
    last = place.segment;
    for (uint32_t b = 0; b < place.buckets; ++b) {
      Slot* bucket = place.segment->bucket(place.buckets, b);
      for (int i = 0; i < 8; ++i) {
        const uint64_t slot = bucket[i].load(std::memory_order_relaxed);
        if (slot != 0) visit(EntryOf(slot));
      }
    }
  }
}

size_t Table::Sample(base::Rng& rng, Entry** out, size_t max) const {
  if (size() == 0) return 0;
  size_t found = 0;
  for (int tries = 0; tries < 256 && found < max; ++tries) {
    const uint64_t order = rng.Next() >> (64 - kOrderBits);
    const Place place = PlaceOf(order);
    if (place.segment->count == 0) continue;
    const auto index = static_cast<uint32_t>(rng.Below(place.buckets));
    Slot* bucket = place.segment->bucket(place.buckets, index);
    for (int i = 0; i < 8 && found < max; ++i) {
      const uint64_t slot = bucket[i].load(std::memory_order_relaxed);
      if (slot != 0) out[found++] = EntryOf(slot);
    }
    if (found > 0) break;
  }
  return found;
}

size_t Table::SampleExpiring(base::Rng& rng, Entry** out, size_t max) const {
  // Where most keys expire any place will do; where few do the wheel knows them.
  if (expiring() * 8 > size()) {
    Entry* some[8];
    const size_t n = Sample(rng, some, 8);
    size_t found = 0;
    for (size_t i = 0; i < n && found < max; ++i) {
      if (some[i]->has(kHasExpiry)) out[found++] = some[i];
    }
    return found;
  }
  uint64_t item;
  if (wheel_ == nullptr || max == 0 || !wheel_->Random(rng, &item)) return 0;
  Entry* some[8];
  const size_t n = FindByItem(item, some, 8);
  for (size_t i = 0; i < n; ++i) {
    if (some[i]->has(kHasExpiry)) {
      out[0] = some[i];
      return 1;
    }
  }
  return 0;
}

Entry* Table::Random(base::Rng& rng) const {
  if (size() == 0) return nullptr;
  for (int tries = 0; tries < 4096; ++tries) {
    const Place place = PlaceOf(rng.Next() >> (64 - kOrderBits));
    const uint64_t pick = rng.Below(uint64_t{place.buckets} * 8);
    const uint64_t slot =
        place.segment->bucket(place.buckets, static_cast<uint32_t>(pick / 8))[pick % 8].load(
            std::memory_order_relaxed);
    if (slot != 0) return EntryOf(slot);
  }
  Entry* any = nullptr;
  ForEach([&any](Entry* entry) { any = entry; });
  return any;
}

void Table::CheckInvariants() const {
  size_t total = 0;
  size_t expiring_total = 0;
  Directory* directory = directory_.load(std::memory_order_relaxed);
  for (size_t d = 0; d < size_t{1} << directory->depth;) {
    const Place place = Unpack(directory->places[d].load(std::memory_order_relaxed));
    const size_t span = size_t{1} << (directory->depth - place.depth);
    if (d % span != 0) abort();
    size_t count = 0;
    std::vector<size_t> spilled(place.buckets);
    for (uint32_t b = 0; b < place.buckets; ++b) {
      Slot* bucket = place.segment->bucket(place.buckets, b);
      for (int i = 0; i < 8; ++i) {
        const uint64_t slot = bucket[i].load(std::memory_order_relaxed);
        if (slot == 0) continue;
        ++count;
        const uint64_t hash = HashOf(EntryOf(slot));
        if (FingerprintOf(slot) != Fingerprint(OrderOf(hash), place.depth)) abort();
        if (OrderOf(hash) >> (kOrderBits - directory->depth) < d ||
            OrderOf(hash) >> (kOrderBits - directory->depth) >= d + span) {
          abort();
        }
        const uint32_t home = Home(FingerprintOf(slot), place.buckets);
        if (home != b) ++spilled[home];
        if (Find(hash, EntryOf(slot)->key()) != EntryOf(slot)) abort();
        if (EntryOf(slot)->has(kHasExpiry)) ++expiring_total;
      }
    }
    for (uint32_t b = 0; b < place.buckets; ++b) {
      if (spilled[b] != place.segment->spill()[b]) abort();
    }
    if (count != place.segment->count) abort();
    total += count;
    d += span;
  }
  if (total != size() || expiring_total != expiring()) abort();
}

}  // namespace sava::keyspace
