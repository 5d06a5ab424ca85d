// RecordTable as a whole: copies, choices at random, walks, cuts.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "types/collections/record_table.h"

namespace sava::types {

void RecordTable::CopyFrom(const RecordTable& other) {
  FreePage(pages_[0]);
  depth_ = other.depth_;
  size_ = other.size_;
  deepest_ = other.deepest_;
  fullest_ = other.fullest_;
  free_ids_ = other.free_ids_;
  directory_ = other.directory_;
  pages_.assign(other.pages_.size(), nullptr);
  for (const Page* page : other.pages_) {
    if (page == nullptr) continue;
    Page* twin = NewPage(page->capacity, page->slots, page->depth);
    const uint32_t region = twin->region;
    memcpy(static_cast<void*>(twin), page, page->used);
    twin->region = region;
    pages_[page->id] = twin;
    for (size_t i = 0; i < twin->count; ++i) {
      char* p = twin->at(twin->offset(i));
      const Parsed parsed = Parse(p);
      if (parsed.outside == nullptr) continue;
      char* block = NewOutside(parsed.record.key, parsed.record.payload);
      memcpy(p + 2, &block, sizeof block);
    }
  }
}

bool RecordTable::Random(const std::function<uint64_t()>& random, Record* record) const {
  if (size_ == 0) return false;
  // Pages are taken in proportion to their records by refusing those with fewer than drawn.
  constexpr int kTries = 64;
  for (int i = 0; i < kTries; ++i) {
    const uint64_t bits = random();
    const Page* page = pages_[(bits >> 32) * pages_.size() >> 32];
    const size_t place = (bits & UINT32_MAX) * fullest_ >> 32;
    if (page == nullptr || place >= page->count) continue;
    *record = Parse(page->at(page->offset(place))).record;
    return true;
  }
  uint64_t rank = random() % size_;
  for (const Page* page : pages_) {
    if (page == nullptr) continue;
    if (rank < page->count) {
      *record = Parse(page->at(page->offset(rank))).record;
      return true;
    }
    rank -= page->count;
  }
  return false;
}

uint64_t RecordTable::Scan(uint64_t from, size_t count,
                           const std::function<void(const Record&)>& visit) const {
  constexpr unsigned kShift = 64 - kOrderBits;
  constexpr uint64_t kEnd = uint64_t{1} << kOrderBits;
  if (from >= kEnd) return 0;
  count = std::max<size_t>(count, 1);
  size_t visited = 0;
  std::vector<std::pair<uint64_t, size_t>> due;
  while (true) {
    const uint64_t hash = from << kShift;
    const Page* page = PageOf(hash);
    due.clear();
    for (size_t i = 0; i < page->count; ++i) {
      const Record record = Parse(page->at(page->offset(i))).record;
      const uint64_t order = HashOf(record.key) >> kShift;
      if (order >= from) due.emplace_back(order, i);
    }
    std::sort(due.begin(), due.end());
    for (size_t i = 0; i < due.size(); ++i) {
      if (visited >= count && due[i].first != due[i - 1].first) return due[i].first;
      visit(Parse(page->at(page->offset(due[i].second))).record);
      ++visited;
    }
    if (page->depth == 0) return 0;
    const uint64_t prefix = (hash >> (64 - page->depth)) + 1;
    if (prefix >> page->depth != 0) return 0;
    from = prefix << (64 - page->depth) >> kShift;
    if (visited >= count) return from;
  }
}

void RecordTable::BeginCut(const Object::PieceSink& sink, std::string_view head, SaveRecord save) {
  cut_.Begin(
      sink, head, pages_.size(),
      [this, save = std::move(save)](size_t block, Writer& out) {
        const Page* page = pages_[block];
        if (page != nullptr) ForEachIn(page, [&](const Record& record) { save(record, out); });
      },
      /*module=*/false);
}

void RecordTable::CheckInvariants() const {
  const auto check = [](bool ok) {
    if (!ok) abort();
  };
  check(directory_.size() == size_t{1} << depth_);
  size_t records = 0;
  size_t live_pages = 0;
  size_t deepest = 0;
  for (size_t id = 0; id < pages_.size(); ++id) {
    const Page* page = pages_[id];
    if (page == nullptr) continue;
    ++live_pages;
    check(page->id == id && page->depth <= depth_ && page->count <= page->slots);
    check(page->used <= page->capacity && page->count <= fullest_);
    deepest += page->depth == depth_ ? 1 : 0;
    size_t bytes = 0;
    for (size_t i = 0; i < page->count; ++i) {
      const Parsed parsed = Parse(page->at(page->offset(i)));
      const uint64_t hash = HashOf(parsed.record.key);
      check(PageOf(hash) == page && page->fingerprints()[i] == static_cast<uint8_t>(hash));
      bytes += parsed.size;
    }
    check(bytes == page->live());
    records += page->count;
  }
  check(records == size_ && deepest == deepest_ && live_pages == pages());
  for (size_t i = 0; i < directory_.size();) {
    const Page* page = pages_[directory_[i]];
    check(page != nullptr && page->id == directory_[i]);
    const size_t width = size_t{1} << (depth_ - page->depth);
    check(i % width == 0);
    for (size_t k = 0; k < width; ++k) check(directory_[i + k] == page->id);
    i += width;
  }
}

}  // namespace sava::types
