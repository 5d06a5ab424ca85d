#include "types/collections/member_index.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/if_memory.h"

namespace sava::types {

MemberIndex::MemberIndex() {
  directory_.reserve(1);
  directory_.push_back(EntryOf(NewSegment(0, kFirstSlots)));
}

MemberIndex::~MemberIndex() {
  Segment* last = nullptr;
  for (const Entry& entry : directory_) {
    if (entry.segment != last) free(entry.segment);
    last = entry.segment;
  }
}

MemberIndex::Segment* MemberIndex::NewSegment(uint32_t depth, uint32_t capacity) {
  const size_t bytes = SegmentBytes(capacity);
  void* memory = calloc(1, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  auto* segment = static_cast<Segment*>(memory);
  segment->depth = depth;
  segment->capacity = capacity;
  bytes_ += bytes;
  return segment;
}

void MemberIndex::FreeSegment(Segment* segment) {
  bytes_ -= SegmentBytes(segment->capacity);
  free(segment);
}

void MemberIndex::Segment::Place(uint64_t slot) {
  uint32_t at = Home(static_cast<uint32_t>(slot >> 32));
  while (slots[at] != 0) at = Next(at);
  slots[at] = slot;
  ++count;
}

void MemberIndex::Reserve(uint32_t hash) {
  const Segment* segment = directory_[MemberIndex::Place(hash)].segment;
  while ((segment->count + 1) * 10 > segment->capacity * 9) {
    segment->capacity < kMostSlots || segment->depth >= kMostDepth ? Grow(hash) : Split(hash);
    segment = directory_[MemberIndex::Place(hash)].segment;
  }
}

void MemberIndex::Insert(uint32_t hash, uint32_t leaf) {
  Reserve(hash);
  directory_[MemberIndex::Place(hash)].segment->Place(SlotOf(hash, leaf));
}

uint32_t MemberIndex::SlotAt(const Segment& segment, uint64_t slot) const {
  uint32_t at = segment.Home(static_cast<uint32_t>(slot >> 32));
  while (segment.slots[at] != slot) {
    assert(segment.slots[at] != 0);
    at = segment.Next(at);
  }
  return at;
}

void MemberIndex::Change(uint32_t hash, uint32_t from, uint32_t to) {
  Segment& segment = *directory_[MemberIndex::Place(hash)].segment;
  segment.slots[SlotAt(segment, SlotOf(hash, from))] = SlotOf(hash, to);
}

void MemberIndex::Erase(uint32_t hash, uint32_t leaf) {
  Segment& segment = *directory_[MemberIndex::Place(hash)].segment;
  uint32_t gap = SlotAt(segment, SlotOf(hash, leaf));
  // What was pushed on over the gap moves back into it.
  for (uint32_t at = segment.Next(gap); segment.slots[at] != 0; at = segment.Next(at)) {
    const uint32_t home = segment.Home(static_cast<uint32_t>(segment.slots[at] >> 32));
    const bool stays = gap < at ? gap < home && home <= at : gap < home || home <= at;
    if (stays) continue;
    segment.slots[gap] = segment.slots[at];
    gap = at;
  }
  segment.slots[gap] = 0;
  --segment.count;
  // A segment that is nearly empty gives its memory back; merging is not worth the trouble.
  if (segment.capacity > kFirstSlots && segment.count * 4 < segment.capacity) {
    base::IfMemory([&] { Shrink(&segment, hash); });
  }
}

void MemberIndex::Shrink(Segment* segment, uint32_t hash) {
  Segment* smaller =
      NewSegment(segment->depth, std::max<uint32_t>(kFirstSlots, segment->capacity / 2));
  for (uint32_t at = 0; at < segment->capacity; ++at) {
    if (segment->slots[at] != 0) smaller->Place(segment->slots[at]);
  }
  const uint64_t span = uint64_t{1} << (32 - segment->depth);
  const uint64_t from = hash / span * span;
  Replace(segment, smaller, from, from + span);
  FreeSegment(segment);
}

// Puts a segment into the places of the directory that belong to [from_hash, to_hash).
void MemberIndex::Replace(const Segment* old, Segment* with, uint64_t from_hash, uint64_t to_hash) {
  const size_t from = from_hash >> (32 - depth_);
  const size_t to = to_hash >> (32 - depth_);
  for (size_t i = from; i < to; ++i) {
    assert(directory_[i].segment == old);
    static_cast<void>(old);
    directory_[i] = EntryOf(with);
  }
}

void MemberIndex::Grow(uint32_t hash) {
  Segment* old = directory_[MemberIndex::Place(hash)].segment;
  // From 512 on in steps of an eighth of the largest, so that the load stays high.
  const uint32_t step = old->capacity < 512 ? old->capacity : std::max(128U, old->capacity / 8);
  Segment* larger = NewSegment(old->depth, old->capacity + step);
  for (uint32_t at = 0; at < old->capacity; ++at) {
    if (old->slots[at] != 0) larger->Place(old->slots[at]);
  }
  const uint64_t span = uint64_t{1} << (32 - old->depth);
  const uint64_t from = hash / span * span;
  Replace(old, larger, from, from + span);
  FreeSegment(old);
}

void MemberIndex::Split(uint32_t hash) {
  Segment* old = directory_[MemberIndex::Place(hash)].segment;
  if (old->depth == depth_) {
    std::vector<Entry> doubled(directory_.size() * 2);
    for (size_t i = 0; i < doubled.size(); ++i) doubled[i] = directory_[i / 2];
    directory_ = std::move(doubled);
    ++depth_;
  }
  const uint64_t span = uint64_t{1} << (32 - old->depth);
  const uint64_t from = hash / span * span;
  const uint64_t middle = from + span / 2;
  uint32_t low_count = 0;
  for (uint32_t at = 0; at < old->capacity; ++at) {
    if (old->slots[at] != 0 && (old->slots[at] >> 32) < middle) ++low_count;
  }
  const auto room = [](uint32_t count) {
    return std::max<uint32_t>(kFirstSlots, (count * 10 / 8 + 127) / 128 * 128);
  };
  Segment* low = NewSegment(old->depth + 1, room(low_count));
  Segment* high = nullptr;
  if (!base::IfMemory([&] { high = NewSegment(old->depth + 1, room(old->count - low_count)); })) {
    FreeSegment(low);
    throw std::bad_alloc();
  }
  for (uint32_t at = 0; at < old->capacity; ++at) {
    const uint64_t slot = old->slots[at];
    if (slot != 0) ((slot >> 32) < middle ? low : high)->Place(slot);
  }
  Replace(old, low, from, middle);
  Replace(old, high, middle, from + span);
  FreeSegment(old);
}

}  // namespace sava::types
