#include "types/collections/record_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/if_memory.h"
#include "base/page_pool.h"
#include "base/prefetch.h"
#include "base/rng.h"
#include "types/collections/byte_matches.h"

namespace sava::types {

namespace {

constexpr size_t kOutsideSize = 2 + sizeof(char*);
constexpr size_t kOutsideHead = 2 * sizeof(size_t);
constexpr size_t kMinPage = 64;
// Tables below this are better off without chunks.
constexpr size_t kChunked = 512 * 1024;
constexpr size_t kMinChunked = 1024;

size_t LengthSize(size_t length) { return length < 0x80 ? 1 : 2; }

char* PutLength(char* p, size_t length) {
  if (length < 0x80) {
    *p++ = static_cast<char>(length);
  } else {
    *p++ = static_cast<char>(length | 0x80);
    *p++ = static_cast<char>(length >> 7);
  }
  return p;
}

const char* GetLength(const char* p, size_t* length) {
  const auto first = static_cast<uint8_t>(*p++);
  *length = first;
  if (first >= 0x80) *length = (first & 0x7fU) | size_t{static_cast<uint8_t>(*p++)} << 7;
  return p;
}

// What the allocator would hand out anyway: four sizes to each doubling.
size_t BlockSizeFor(size_t bytes) {
  if (bytes <= kMinPage) return kMinPage;
  const size_t step = bytes <= 128 ? 16 : size_t{1} << (std::bit_width(bytes - 1) - 3);
  return (bytes + step - 1) & ~(step - 1);
}

// The number of a page size of BlockSizeFor from kMinChunked on.
size_t SizeNumber(size_t capacity) {
  const auto width = static_cast<size_t>(std::bit_width(capacity));
  return 4 * (width - 11) + ((capacity >> (width - 3)) & 3);
}

// All of one size, so that any can follow any in the pool.
constexpr size_t kChunk = 16 * base::PagePool::kPage;

char* NewChunk() {
  return static_cast<char*>(base::PagePool::Shared().Allocate(kChunk / base::PagePool::kPage));
}

void FreeChunk(char* chunk) {
  base::PagePool::Shared().Free(chunk, kChunk / base::PagePool::kPage);
}

void* Allocate(size_t bytes) {
  void* block = malloc(bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

uint64_t RecordTable::Seed() {
  static const uint64_t seed = base::SecureRandom64();
  return seed;
}

RecordTable::RecordTable(Payload payload) : payload_(payload) {
  directory_.resize(1);
  pages_.reserve(1);
  Page* page = NewPage(kMinPage, 1, 0);
  TakeId(page);
  directory_[0] = page->id;
  deepest_ = 1;
}

RecordTable::~RecordTable() {
  cut_.Abort();
  for (Page* page : pages_) {
    if (page == nullptr) continue;
    for (size_t i = 0; i < page->count; ++i) {
      const Parsed parsed = Parse(page->at(page->offset(i)));
      if (parsed.outside != nullptr) free(parsed.outside);
    }
    if (page->region == kPlain) free(page);
  }
  for (const Chunks& chunks : chunks_) {
    for (char* chunk : chunks.blocks) FreeChunk(chunk);
  }
}

// ---- records ----

RecordTable::Parsed RecordTable::Parse(const char* p) const {
  Parsed parsed;
  const char* const begin = p;
  if (static_cast<uint8_t>(p[0]) == 0x80 && p[1] == 0) [[unlikely]] {
    memcpy(&parsed.outside, p + 2, sizeof(char*));
    size_t lengths[2];
    memcpy(lengths, parsed.outside, sizeof lengths);
    parsed.record.key = {parsed.outside + kOutsideHead, lengths[0]};
    parsed.record.payload = {parsed.outside + kOutsideHead + lengths[0], lengths[1]};
    parsed.size = kOutsideSize;
    return parsed;
  }
  size_t key_length = 0;
  size_t payload_length = payload_ == Payload::kFixed8 ? 8 : 0;
  p = GetLength(p, &key_length);
  if (payload_ == Payload::kVariable) p = GetLength(p, &payload_length);
  parsed.record.key = {p, key_length};
  parsed.record.payload = {p + key_length, payload_length};
  parsed.size = static_cast<size_t>(p - begin) + key_length + payload_length;
  return parsed;
}

size_t RecordTable::InlineSize(size_t key, size_t payload) const {
  return LengthSize(key) + (payload_ == Payload::kVariable ? LengthSize(payload) : 0) + key +
         payload;
}

size_t RecordTable::SizeInPage(size_t key, size_t payload) const {
  if (key > kMaxInline || payload > kMaxInline) return kOutsideSize;
  const size_t size = InlineSize(key, payload);
  return size <= kMaxInline ? size : kOutsideSize;
}

char* RecordTable::NewOutside(std::string_view key, std::string_view payload) {
  const size_t bytes = kOutsideHead + key.size() + payload.size();
  char* block = static_cast<char*>(Allocate(bytes));
  const size_t lengths[2] = {key.size(), payload.size()};
  memcpy(block, lengths, sizeof lengths);
  if (!key.empty()) memcpy(block + kOutsideHead, key.data(), key.size());
  if (!payload.empty()) memcpy(block + kOutsideHead + key.size(), payload.data(), payload.size());
  memory_ += bytes;
  return block;
}

void RecordTable::FreeOutside(char* block) {
  size_t lengths[2];
  memcpy(lengths, block, sizeof lengths);
  memory_ -= kOutsideHead + lengths[0] + lengths[1];
  free(block);
}

void RecordTable::WriteRecord(char* p, std::string_view key, std::string_view payload) {
  if (key.size() > kMaxInline || payload.size() > kMaxInline ||
      InlineSize(key.size(), payload.size()) > kMaxInline) {
    char* block = NewOutside(key, payload);
    p[0] = static_cast<char>(0x80);
    p[1] = 0;
    memcpy(p + 2, &block, sizeof block);
    return;
  }
  p = PutLength(p, key.size());
  if (payload_ == Payload::kVariable) p = PutLength(p, payload.size());
  if (!key.empty()) memcpy(p, key.data(), key.size());
  if (!payload.empty()) memcpy(p + key.size(), payload.data(), payload.size());
}

// ---- pages ----

RecordTable::Page* RecordTable::Chunks::At(uint32_t region, size_t capacity) const {
  const size_t in_chunk = kChunk / capacity;
  return reinterpret_cast<Page*>(blocks[region / in_chunk] + region % in_chunk * capacity);
}

RecordTable::Page* RecordTable::NewPage(size_t capacity, size_t slots, unsigned depth) {
  Page* page;
  uint32_t region = kPlain;
  if (memory_ < kChunked || capacity < kMinChunked) {
    page = static_cast<Page*>(Allocate(capacity));
  } else {
    Chunks& chunks = chunks_[SizeNumber(capacity)];
    if (chunks.count == chunks.blocks.size() * (kChunk / capacity)) {
      chunks.blocks.push_back(NewChunk());
    }
    region = chunks.count++;
    page = chunks.At(region, capacity);
  }
  page->id = 0;
  page->region = region;
  page->capacity = static_cast<uint16_t>(capacity);
  page->dead = 0;
  page->count = 0;
  page->slots = static_cast<uint8_t>(slots);
  page->depth = static_cast<uint8_t>(depth);
  page->used = static_cast<uint16_t>(page->start());
  memory_ += capacity;
  return page;
}

void RecordTable::FreePage(Page* page) {
  memory_ -= page->capacity;
  if (page->region == kPlain) {
    free(page);
    return;
  }
  const size_t capacity = page->capacity;
  Chunks& chunks = chunks_[SizeNumber(capacity)];
  const uint32_t region = page->region;
  const uint32_t last = --chunks.count;
  if (region != last) {
    const Page* from = chunks.At(last, capacity);
    memcpy(static_cast<void*>(page), static_cast<const void*>(from), from->used);
    page->region = region;
    pages_[page->id] = page;
  }
  if (last % (kChunk / capacity) == 0) {
    FreeChunk(chunks.blocks.back());
    chunks.blocks.pop_back();
  }
}

// A page that was made last and has no number: none moves to its place.
void RecordTable::FreeUnused(Page* page) {
  memory_ -= page->capacity;
  if (page->region == kPlain) {
    free(page);
    return;
  }
  Chunks& chunks = chunks_[SizeNumber(page->capacity)];
  const size_t in_chunk = kChunk / page->capacity;
  if (--chunks.count % in_chunk != 0) return;
  FreeChunk(chunks.blocks.back());
  chunks.blocks.pop_back();
}

void RecordTable::TakeId(Page* page) {
  if (free_ids_.empty()) {
    page->id = static_cast<uint32_t>(pages_.size());
    pages_.push_back(page);
    return;
  }
  page->id = free_ids_.back();
  free_ids_.pop_back();
  // A number that was free when a cut began counts as saved from now on (nothing stands there yet).
  cut_.BeforeChange(page->id);
  pages_[page->id] = page;
}

void RecordTable::DropId(Page* page) {
  pages_[page->id] = nullptr;
  base::IfMemory([&] { free_ids_.push_back(page->id); });  // else it is not used again
}

void RecordTable::Publish(const Page* page, uint64_t hash) {
  const size_t below = depth_ - page->depth;
  const size_t prefix = page->depth == 0 ? 0 : hash >> (64 - page->depth);
  std::fill_n(directory_.begin() + static_cast<ptrdiff_t>(prefix << below), size_t{1} << below,
              page->id);
}

size_t RecordTable::PlaceIn(const Page* page, uint64_t hash, std::string_view key,
                            Parsed* parsed) const {
  const auto fingerprint = static_cast<uint8_t>(hash);
  for (size_t from = 0; from < page->count; from += 16) {
    unsigned mask = Matches(page->fingerprints(), from, page->count, fingerprint);
    for (; mask != 0; mask &= mask - 1) {
      const size_t i = from + static_cast<size_t>(std::countr_zero(mask));
      *parsed = Parse(page->at(page->offset(i)));
      if (parsed->record.key == key) return i;
    }
  }
  return kNowhere;
}

void RecordTable::Prefetch(std::string_view key, int step) const {
  const uint64_t hash = HashOf(key);
  const Page* const page = PageOf(hash);
  if (step == 0) {
    constexpr size_t kArrays = sizeof(Page) + 3 * kMaxRecords;
    for (size_t at = 0; at < kArrays; at += 64) base::PrefetchForWrite(page->at(at));
    return;
  }
  for (size_t from = 0; from < page->count; from += 16) {
    const unsigned mask =
        Matches(page->fingerprints(), from, page->count, static_cast<uint8_t>(hash));
    if (mask == 0) continue;
    base::PrefetchForWrite(
        page->at(page->offset(from + static_cast<size_t>(std::countr_zero(mask)))));
    return;
  }
  base::PrefetchForWrite(page->at(page->used));
}

void RecordTable::Append(Page* page, uint8_t fingerprint, size_t size, const char* record) {
  page->fingerprints()[page->count] = fingerprint;
  page->set_offset(page->count, page->used);
  memcpy(page->at(page->used), record, size);
  page->used = static_cast<uint16_t>(page->used + size);
  ++page->count;
}

RecordTable::Page* RecordTable::Rebuild(Page* page, size_t capacity, size_t slots) {
  Page* fresh = NewPage(capacity, slots, page->depth);
  fresh->id = page->id;
  if (page->dead == 0) {
    const size_t from = page->start();
    const size_t to = fresh->start();
    memcpy(fresh->fingerprints(), page->fingerprints(), page->count);
    memcpy(fresh->at(to), page->at(from), page->used - from);
    fresh->count = page->count;
    fresh->used = static_cast<uint16_t>(page->used - from + to);
    for (size_t i = 0; i < page->count; ++i) {
      fresh->set_offset(i, static_cast<uint16_t>(page->offset(i) - from + to));
    }
  } else {
    for (size_t i = 0; i < page->count; ++i) {
      const char* record = page->at(page->offset(i));
      Append(fresh, page->fingerprints()[i], Parse(record).size, record);
    }
  }
  const uint32_t id = page->id;
  pages_[id] = fresh;
  FreePage(page);
  return pages_[id];
}

RecordTable::Page* RecordTable::MakeRoom(Page* page, uint64_t hash, size_t size) {
  while (page->count >= page->slots || page->used + size > page->capacity) {
    const size_t count = size_t{page->count} + 1;
    const size_t records = page->live() + size;
    const size_t needed = sizeof(Page) + 3 * count + records;
    if (count <= kMaxRecords && needed + needed / 16 <= kMaxPage) {
      const size_t capacity = BlockSizeFor(needed + needed / 16);
      const size_t slots = count + (capacity - needed) / (records / count + 3);
      return Rebuild(page, capacity, std::min(slots, kMaxRecords));
    }
    Split(page, hash);
    page = PageOf(hash);
  }
  return page;
}

// Sixteen records at least are in a page that splits, so hashes with a secret seed keep the depth
// near the logarithm of the number of pages.
void RecordTable::Split(Page* page, uint64_t hash) {
  cut_.BeforeChange(page->id);
  if (page->depth == depth_) DoubleDirectory();
  const unsigned depth = page->depth + 1U;
  const uint64_t bit = uint64_t{1} << (64 - depth);
  std::array<uint16_t, kMaxRecords> sizes;
  std::array<bool, kMaxRecords> upper;
  size_t bytes[2] = {0, 0};
  size_t counts[2] = {0, 0};
  for (size_t i = 0; i < page->count; ++i) {
    const Parsed parsed = Parse(page->at(page->offset(i)));
    sizes[i] = static_cast<uint16_t>(parsed.size);
    upper[i] = (HashOf(parsed.record.key) & bit) != 0;
    bytes[upper[i] ? 1 : 0] += parsed.size;
    ++counts[upper[i] ? 1 : 0];
  }
  // All memory first: without it nothing has changed.
  if (pages_.size() == pages_.capacity()) pages_.reserve(2 * pages_.size());
  Page* halves[2] = {nullptr, nullptr};
  const auto make = [&](size_t side) {
    const size_t needed = sizeof(Page) + 3 * counts[side] + bytes[side];
    const size_t capacity = std::min(BlockSizeFor(needed + needed / 16), kMaxPage);
    const size_t average = counts[side] == 0 ? 16 : bytes[side] / counts[side];
    const size_t slots = counts[side] + (capacity - needed) / (average + 3);
    halves[side] = NewPage(capacity, std::min(slots, kMaxRecords), depth);
  };
  make(0);
  if (!base::IfMemory([&] { make(1); })) {
    FreeUnused(halves[0]);
    throw std::bad_alloc();
  }
  for (size_t i = 0; i < page->count; ++i) {
    Append(halves[upper[i] ? 1 : 0], page->fingerprints()[i], sizes[i], page->at(page->offset(i)));
  }
  halves[0]->id = page->id;
  pages_[page->id] = halves[0];
  TakeId(halves[1]);
  Publish(halves[0], hash & ~bit);
  Publish(halves[1], hash | bit);
  if (depth == depth_) deepest_ += 2;
  FreePage(page);
}

void RecordTable::DoubleDirectory() {
  std::vector<uint32_t> wider(directory_.size() * 2);
  for (size_t i = 0; i < directory_.size(); ++i) wider[2 * i] = wider[2 * i + 1] = directory_[i];
  directory_ = std::move(wider);
  ++depth_;
  deepest_ = 0;
}

void RecordTable::HalveDirectory() {
  std::vector<uint32_t> narrower(directory_.size() / 2);
  for (size_t i = 0; i < narrower.size(); ++i) narrower[i] = directory_[2 * i];
  directory_ = std::move(narrower);
  --depth_;
  deepest_ = 0;
  for (const Page* page : pages_) deepest_ += page != nullptr && page->depth == depth_ ? 1 : 0;
}

void RecordTable::MaybeShrink(Page* page, uint64_t hash) {
  const size_t needed = sizeof(Page) + 3 * size_t{page->count} + page->live();
  if (page->capacity <= 2 * kMinPage || needed * 2 >= page->capacity) return;
  if (TryMerge(page, hash)) return;
  const size_t capacity = BlockSizeFor(needed + needed / 4);
  const size_t average = page->count == 0 ? 16 : page->live() / page->count;
  const size_t slots = page->count + (capacity - needed) / (average + 3);
  Rebuild(page, capacity, std::clamp<size_t>(slots, 1, kMaxRecords));
}

// Closes the gaps among the numbers of the pages. While a cut is under way numbers must stay.
void RecordTable::Renumber() {
  if (cut_.active()) return;
  std::vector<uint32_t> fresh(pages_.size());
  std::vector<Page*> kept;
  kept.reserve(pages());
  for (Page* page : pages_) {
    if (page == nullptr) continue;
    fresh[page->id] = static_cast<uint32_t>(kept.size());
    page->id = fresh[page->id];
    kept.push_back(page);
  }
  pages_ = std::move(kept);
  free_ids_ = {};
  for (uint32_t& id : directory_) id = fresh[id];
}

bool RecordTable::TryMerge(Page* page, uint64_t hash) {
  if (page->depth == 0) return false;
  const uint64_t bit = uint64_t{1} << (64 - page->depth);
  Page* other = PageOf(hash ^ bit);
  if (other->depth != page->depth) return false;
  const size_t count = size_t{page->count} + other->count;
  const size_t needed = sizeof(Page) + 3 * count + page->live() + other->live();
  if (count > kMaxRecords / 2 || needed > kMaxPage / 2) return false;
  cut_.BeforeChange(page->id);
  cut_.BeforeChange(other->id);
  const bool deepest = page->depth == depth_;
  Page* merged =
      NewPage(BlockSizeFor(needed + needed / 4), std::max<size_t>(count + 1, 2), page->depth - 1U);
  merged->id = page->id;
  for (Page* source : {page, other}) {
    for (size_t i = 0; i < source->count; ++i) {
      const char* record = source->at(source->offset(i));
      Append(merged, source->fingerprints()[i], Parse(record).size, record);
    }
  }
  const uint32_t other_id = other->id;
  pages_[page->id] = merged;
  Publish(merged, hash);
  FreePage(page);
  other = pages_[other_id];
  DropId(other);
  FreePage(other);
  if (pages_.size() > 64 && pages() < pages_.size() / 4) Renumber();
  if (deepest) {
    deepest_ -= 2;
    while (deepest_ == 0 && depth_ > 0) HalveDirectory();
  }
  return true;
}

// ---- calls ----

bool RecordTable::Find(std::string_view key, uint64_t hash, std::string_view* payload) const {
  Parsed parsed;
  if (PlaceIn(PageOf(hash), hash, key, &parsed) == kNowhere) return false;
  if (payload != nullptr) *payload = parsed.record.payload;
  return true;
}

void RecordTable::ForHash(uint64_t hash, const std::function<void(const Record&)>& visit) const {
  const Page* page = PageOf(hash);
  for (size_t i = 0; i < page->count; ++i) {
    if (page->fingerprints()[i] != static_cast<uint8_t>(hash)) continue;
    const Record record = Parse(page->at(page->offset(i))).record;
    if (HashOf(record.key) == hash) visit(record);
  }
}

bool RecordTable::Insert(std::string_view key, uint64_t hash, std::string_view payload) {
  Page* page = PageOf(hash);
  Parsed parsed;
  if (PlaceIn(page, hash, key, &parsed) != kNowhere) return false;
  InsertNew(page, key, hash, payload);
  return true;
}

void RecordTable::InsertNew(Page* page, std::string_view key, uint64_t hash,
                            std::string_view payload) {
  cut_.BeforeChange(page->id);
  const size_t size = SizeInPage(key.size(), payload.size());
  page = MakeRoom(page, hash, size);
  WriteRecord(page->at(page->used), key, payload);
  page->fingerprints()[page->count] = static_cast<uint8_t>(hash);
  page->set_offset(page->count, page->used);
  page->used = static_cast<uint16_t>(page->used + size);
  ++page->count;
  fullest_ = std::max<size_t>(fullest_, page->count);
  ++size_;
}

bool RecordTable::Put(std::string_view key, std::string_view payload) {
  const uint64_t hash = HashOf(key);
  Page* page = PageOf(hash);
  Parsed parsed;
  const size_t place = PlaceIn(page, hash, key, &parsed);
  if (place == kNowhere) {
    InsertNew(page, key, hash, payload);
    return true;
  }
  cut_.BeforeChange(page->id);
  if (payload.size() == parsed.record.payload.size()) {
    if (!payload.empty()) {
      memcpy(const_cast<char*>(parsed.record.payload.data()), payload.data(), payload.size());
    }
    return false;
  }
  const size_t size = SizeInPage(key.size(), payload.size());
  const bool fits = size != kOutsideSize && page->used + size <= page->capacity;
  if (fits) {
    RemoveAt(page, place, parsed);
    --size_;
    InsertNew(page, key, hash, payload);
    return false;
  }
  // The new record comes first, behind the old one: without memory that is still there.
  InsertNew(page, key, hash, payload);
  page = PageOf(hash);
  RemoveAt(page, PlaceIn(page, hash, key, &parsed), parsed);
  --size_;
  return false;
}

char* RecordTable::Open(std::string_view key, size_t* size) {
  const uint64_t hash = HashOf(key);
  Page* page = PageOf(hash);
  Parsed parsed;
  if (PlaceIn(page, hash, key, &parsed) == kNowhere) return nullptr;
  cut_.BeforeChange(page->id);
  *size = parsed.record.payload.size();
  return const_cast<char*>(parsed.record.payload.data());
}

void RecordTable::RemoveAt(Page* page, size_t place, const Parsed& parsed) {
  const size_t offset = page->offset(place);
  if (offset + parsed.size == page->used) {
    page->used = static_cast<uint16_t>(offset);
  } else {
    page->dead = static_cast<uint16_t>(page->dead + parsed.size);
  }
  const size_t last = page->count - 1U;
  page->fingerprints()[place] = page->fingerprints()[last];
  page->set_offset(place, page->offset(last));
  --page->count;
  if (parsed.outside != nullptr) FreeOutside(parsed.outside);
}

bool RecordTable::Erase(std::string_view key) {
  const uint64_t hash = HashOf(key);
  Page* page = PageOf(hash);
  Parsed parsed;
  const size_t place = PlaceIn(page, hash, key, &parsed);
  if (place == kNowhere) return false;
  cut_.BeforeChange(page->id);
  RemoveAt(page, place, parsed);
  --size_;
  base::IfMemory([&] { MaybeShrink(page, hash); });
  return true;
}

}  // namespace sava::types
