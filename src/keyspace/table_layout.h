// What the sources of Table share: how a segment and the directory lie in memory, and what a slot
// holds. Only they include this.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "keyspace/table.h"

namespace sava::keyspace {

constexpr uint32_t kFirstBuckets = 1;
constexpr uint64_t kPointerMask = (uint64_t{1} << 48) - 1;

inline Entry* EntryOf(uint64_t slot) { return reinterpret_cast<Entry*>(slot & kPointerMask); }
inline uint32_t FingerprintOf(uint64_t slot) { return static_cast<uint32_t>(slot >> 48); }
inline uint64_t MakeSlot(uint32_t fingerprint, const Entry* entry) {
  return (uint64_t{fingerprint} << 48) | reinterpret_cast<uintptr_t>(entry);
}
inline uint32_t Fingerprint(uint64_t order, uint32_t depth) {
  return static_cast<uint32_t>(order >> (Table::kOrderBits - 16 - depth)) & 0xffff;
}
inline uint32_t Home(uint32_t fingerprint, uint32_t buckets) { return fingerprint * buckets >> 16; }

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

inline uint64_t Table::Pack(Segment* segment, uint32_t buckets, uint32_t depth) {
  return (uint64_t{buckets} << 54) | (uint64_t{depth} << 48) | reinterpret_cast<uintptr_t>(segment);
}

inline Table::Place Table::Unpack(uint64_t word) {
  return {reinterpret_cast<Segment*>(word & kPointerMask), static_cast<uint32_t>(word >> 54),
          static_cast<uint32_t>(word >> 48) & 63};
}

inline uint64_t Table::SegmentBytes(uint32_t buckets) {
  return Segment::HeaderBytes(buckets) + size_t{buckets} * 64;
}

inline const std::atomic<uint64_t>* Table::PlaceAt(uint64_t order) const {
  const uint64_t root = root_.load(std::memory_order_acquire);
  auto* directory = reinterpret_cast<Directory*>(root & kPointerMask);
  return &directory->places[order >> (kOrderBits - (root >> 48))];
}

inline Table::Place Table::PlaceOf(uint64_t order) const {
  return Unpack(PlaceAt(order)->load(std::memory_order_acquire));
}

}  // namespace sava::keyspace
