// Walks over a table: SCAN, all entries, random ones, and the check of its invariants.

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "keyspace/table.h"
#include "keyspace/table_layout.h"

namespace sava::keyspace {
uint64_t Table::Scan(uint64_t from, size_t count, const std::function<void(Entry*)>& visit) const {
  const uint64_t end = uint64_t{1} << kOrderBits;
  size_t seen = 0;
  uint64_t order = from;
  size_t buckets_seen = 0;
  while (order < end) {
    const Place place = PlaceOf(order);
    const uint32_t home = Home(Fingerprint(order, place.depth), place.buckets);
    // Everything at home in this bucket, wherever it is.
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
