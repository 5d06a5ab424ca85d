// MemberIndex: finds the leaf that a member of a large sorted set is in. It keeps no members: a
// slot holds 32 bits of the member's hash and the leaf's id, and a lookup compares in the
// leaf.
//
// Extendible hashing: the top bits of a hash choose a segment in the directory. A segment is an
// open-addressed table that grows in steps from 64 to 1,024 slots and then splits in two; its load
// stays between 0.7 and 0.9, and no insertion moves more than one segment. Slots need not be
// hashed again for that: they hold the bits that decide.
//
// Two members with equal 32 bits in one leaf have equal slots, which may stand for each other.
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/prefetch.h"

namespace sava::types {

class MemberIndex {
 public:
  MemberIndex();
  ~MemberIndex();
  MemberIndex(const MemberIndex&) = delete;
  MemberIndex& operator=(const MemberIndex&) = delete;

  // Calls `is_it(leaf)` for the leaves a member with this hash may be in, until it says true.
  template <typename IsIt>
  bool Find(uint32_t hash, const IsIt& is_it) const {
    const Entry& entry = directory_[Place(hash)];
    const uint64_t* const slots = entry.segment->slots;
    for (uint32_t at = entry.Home(hash); slots[at] != 0;) {
      if (static_cast<uint32_t>(slots[at] >> 32) == hash && is_it(LeafOf(slots[at]))) return true;
      if (++at == entry.capacity) at = 0;
    }
    return false;
  }
  void Prefetch(uint32_t hash) const {
    const Entry& entry = directory_[Place(hash)];
    base::Prefetch(&entry.segment->slots[entry.Home(hash)]);
  }

  // Takes the memory that Insert of this hash needs.
  void Reserve(uint32_t hash);
  void Insert(uint32_t hash, uint32_t leaf);
  // Needs no memory. REQUIRES: there is such a slot.
  void Erase(uint32_t hash, uint32_t leaf);
  void Change(uint32_t hash, uint32_t from, uint32_t to);

  // Calls visit(hash, leaf) for the slots of the segment that `hash` belongs to, in no order, and
  // returns the lowest hash of the next one; 2^32 at the end.
  template <typename Visit>
  uint64_t VisitSegment(uint32_t hash, const Visit& visit) const {
    const size_t place = Place(hash);
    const Segment& segment = *directory_[place].segment;
    for (uint32_t at = 0; at < segment.capacity; ++at) {
      const uint64_t slot = segment.slots[at];
      if (slot != 0) visit(static_cast<uint32_t>(slot >> 32), LeafOf(slot));
    }
    const uint64_t span = uint64_t{1} << (32 - segment.depth);
    return (hash / span + 1) * span;
  }

  size_t bytes() const { return bytes_ + directory_.capacity() * sizeof(Entry); }

 private:
  // Slots are in the order of their hashes, but for those that were pushed on.
  static uint32_t HomeIn(uint32_t hash, uint32_t depth, uint32_t capacity) {
    return static_cast<uint32_t>((uint64_t{hash << depth} * capacity) >> 32);
  }
  struct Segment {
    uint32_t depth;
    uint32_t capacity;
    uint32_t count;
    uint64_t slots[];  // hash << 32 | leaf + 1; 0: empty

    uint32_t Home(uint32_t hash) const { return HomeIn(hash, depth, capacity); }
    uint32_t Next(uint32_t at) const { return at + 1 == capacity ? 0 : at + 1; }
    void Place(uint64_t slot);
  };

  // A place of the directory, with what a lookup needs to know of the segment.
  struct Entry {
    Segment* segment;
    uint32_t depth;
    uint32_t capacity;
    uint32_t Home(uint32_t hash) const { return HomeIn(hash, depth, capacity); }
  };

  static constexpr uint32_t kFirstSlots = 64;
  static constexpr uint32_t kMostSlots = 1024;
  // A segment of that many equal bits does not split any more; it grows instead.
  static constexpr uint32_t kMostDepth = 24;

  static uint32_t LeafOf(uint64_t slot) { return static_cast<uint32_t>(slot) - 1; }
  static uint64_t SlotOf(uint32_t hash, uint32_t leaf) {
    return uint64_t{hash} << 32 | (uint64_t{leaf} + 1);
  }
  size_t Place(uint32_t hash) const {
    return static_cast<size_t>((uint64_t{hash} << depth_) >> 32);
  }
  static size_t SegmentBytes(uint32_t capacity) {
    return sizeof(Segment) + capacity * sizeof(uint64_t);
  }
  static Entry EntryOf(Segment* segment) { return {segment, segment->depth, segment->capacity}; }
  Segment* NewSegment(uint32_t depth, uint32_t capacity);
  void FreeSegment(Segment* segment);
  uint32_t SlotAt(const Segment& segment, uint64_t slot) const;
  void Grow(uint32_t hash);
  void Split(uint32_t hash);
  void Shrink(Segment* segment, uint32_t hash);
  void Replace(const Segment* old, Segment* with, uint64_t from_hash, uint64_t to_hash);

  uint32_t depth_ = 0;
  std::vector<Entry> directory_;
  size_t bytes_ = 0;
};

}  // namespace sava::types
