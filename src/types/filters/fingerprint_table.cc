#include "types/filters/fingerprint_table.h"

#include <malloc.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "types/filters/fingerprint_page.h"

namespace sava::types {

FingerprintTable::FingerprintTable(unsigned bits) : bits_(static_cast<uint8_t>(bits)) {
  directory_.resize(1);
  directory_[0] = NewPage({}, {}, 0);
}

FingerprintTable::~FingerprintTable() {
  cut_.reset();
  ForEachPage([this](uint64_t /*prefix*/, Page* page) { FreePage(page); });
}

// ---- pages ----

unsigned FingerprintTable::RemainderBits(const Page& page) const {
  return bits_ - page.depth - kQuotientBits;
}

FingerprintTable::Page* FingerprintTable::NewPage(const std::vector<uint64_t>& hashes,
                                                  const std::vector<uint8_t>& counts,
                                                  unsigned depth) {
  const auto count = static_cast<uint32_t>(hashes.size());
  const unsigned width = bits_ - depth - kQuotientBits;
  const bool counted =
      std::any_of(counts.begin(), counts.end(), [](uint8_t copies) { return copies != 1; });
  const size_t bytes = Page::Bytes(count, width, counted);
  auto* page = static_cast<Page*>(malloc(bytes));
  if (page == nullptr) throw std::bad_alloc();
  memset(static_cast<void*>(page), 0, bytes);
  memory_ += malloc_usable_size(page);
  ++pages_;
  page->count = count;
  page->depth = static_cast<uint8_t>(depth);
  page->epoch = epoch_;
  page->counted = counted ? 1 : 0;
  uint64_t* const remainders = page->remainders();
  for (size_t i = 0; i < count; ++i) {
    SetBit(page->words(), QuotientOf(hashes[i], depth) + i);
    PutBits(remainders, i * width, width, RemainderOf(hashes[i], depth, width));
  }
  if (counted) memcpy(page->counts(width), counts.data(), count);
  return page;
}

void FingerprintTable::FreePage(Page* page) {
  memory_ -= malloc_usable_size(page);
  --pages_;
  free(page);
}

FingerprintTable::Page* FingerprintTable::Resize(Page* page, uint64_t hash, size_t bytes) {
  const size_t held = malloc_usable_size(page);
  if (held >= bytes && held - bytes <= bytes / 4 + 64) return page;
  auto* moved = static_cast<Page*>(realloc(page, bytes));
  if (moved == nullptr) throw std::bad_alloc();
  memory_ += malloc_usable_size(moved) - held;
  if (moved != page) SetDirectory(hash, moved);
  return moved;
}

void FingerprintTable::SetDirectory(uint64_t hash, Page* page) {
  const unsigned spare = global_depth_ - page->depth;
  const size_t at = global_depth_ == 0 ? 0 : (hash >> (64 - global_depth_)) >> spare << spare;
  std::fill_n(directory_.begin() + static_cast<ptrdiff_t>(at), size_t{1} << spare, page);
}

template <typename Work>
void FingerprintTable::ForEachPage(const Work& work) const {
  for (size_t at = 0; at < directory_.size();) {
    Page* const page = directory_[at];
    const size_t next = at + (size_t{1} << (global_depth_ - page->depth));
    work(global_depth_ == 0 ? 0 : uint64_t{at} << (64 - global_depth_), page);
    at = next;
  }
}

void FingerprintTable::Decode(const Page& page, uint64_t prefix, std::vector<uint64_t>* hashes,
                              std::vector<uint8_t>* counts) const {
  const unsigned width = RemainderBits(page);
  const uint64_t* const remainders = page.remainders();
  uint64_t quotient = 0;
  for (size_t i = 0; i < page.count; ++i) {
    while (!HasBit(page.words(), quotient + i)) ++quotient;
    hashes->push_back(prefix |
                      HashOf(quotient, GetBits(remainders, i * width, width), page.depth, width));
    counts->push_back(page.counted != 0 ? page.counts(width)[i] : 1);
  }
}

// ---- looking and changing ----

bool FingerprintTable::Find(const Page& page, uint64_t hash, size_t* at, size_t* index) const {
  const unsigned width = RemainderBits(page);
  const uint64_t quotient = QuotientOf(hash, page.depth);
  const uint64_t wanted = RemainderOf(hash, page.depth, width);
  const uint64_t* const remainders = page.remainders();
  size_t place = quotient == 0 ? 0 : SelectZero(page.words(), quotient - 1) + 1;
  bool found = false;
  for (; HasBit(page.words(), place); ++place) {
    const uint64_t there = GetBits(remainders, (place - quotient) * width, width);
    if (there < wanted) continue;
    found = there == wanted;
    break;
  }
  *at = place;
  *index = place - quotient;
  return found;
}

unsigned FingerprintTable::Count(uint64_t hash) const {
  const Page& page = *PageOf(hash);
  size_t at = 0;
  size_t index = 0;
  if (!Find(page, hash, &at, &index)) return 0;
  return page.counted != 0 ? page.counts(RemainderBits(page))[index] : 1;
}

bool FingerprintTable::AddOnce(uint64_t hash) {
  size_t at = 0;
  size_t index = 0;
  if (Find(*PageOf(hash), hash, &at, &index)) return false;
  Insert(hash, at, index, 1);
  return true;
}

bool FingerprintTable::Add(uint64_t hash, unsigned copies) {
  size_t at = 0;
  size_t index = 0;
  if (!Find(*PageOf(hash), hash, &at, &index)) {
    Insert(hash, at, index, std::min<unsigned>(copies, kMaxCopies));
    return true;
  }
  SaveFirst(hash);
  if (PageOf(hash)->counted == 0) AddCounts(hash);
  Page& page = *PageOf(hash);
  uint8_t& count = page.counts(RemainderBits(page))[index];
  const unsigned more = std::min<unsigned>(copies, kMaxCopies - count);
  count = static_cast<uint8_t>(count + more);
  copies_ += more;
  return false;
}

bool FingerprintTable::Remove(uint64_t hash) {
  size_t at = 0;
  size_t index = 0;
  if (!Find(*PageOf(hash), hash, &at, &index)) return false;
  SaveFirst(hash);
  Page& page = *PageOf(hash);
  if (page.counted != 0) {
    uint8_t& count = page.counts(RemainderBits(page))[index];
    if (count == kMaxCopies) return true;
    if (count > 1) {
      --count;
      --copies_;
      return true;
    }
  }
  Erase(hash, at, index);
  --copies_;
  if (--distinct_ == 0 && global_depth_ != 0) Clear();
  return true;
}

void FingerprintTable::Clear() {
  while (!SavePieces(SIZE_MAX)) continue;
  ForEachPage([this](uint64_t /*prefix*/, Page* page) { FreePage(page); });
  global_depth_ = 0;
  distinct_ = copies_ = 0;
  std::vector<Page*>(1, NewPage({}, {}, 0)).swap(directory_);
}

// The bits of a new fingerprint at place `at` of the bitmap, as number `index` of its page.
void FingerprintTable::Insert(uint64_t hash, size_t at, size_t index, unsigned copies) {
  SaveFirst(hash);
  if (PageOf(hash)->count >= kPageSplit && Split(hash)) {
    Find(*PageOf(hash), hash, &at, &index);
  }
  if (copies > 1 && PageOf(hash)->counted == 0) AddCounts(hash);
  Page* page = PageOf(hash);
  const unsigned width = RemainderBits(*page);
  const size_t count = page->count;
  const bool counted = page->counted != 0;
  page = Resize(page, hash, Page::Bytes(count + 1, width, counted));
  const uint64_t* const old_remainders = page->remainders();
  const uint8_t* const old_counts = page->counts(width);
  page->count = static_cast<uint32_t>(count + 1);
  uint64_t* const remainders = page->remainders();
  if (counted) {
    uint8_t* const counts = page->counts(width);
    memmove(counts, old_counts, count);
    memmove(counts + index + 1, counts + index, count - index);
    counts[index] = static_cast<uint8_t>(copies);
  }
  const size_t old_words = WordsFor(count * width);
  const size_t new_words = WordsFor((count + 1) * width);
  memmove(remainders, old_remainders, old_words * sizeof(uint64_t));
  if (new_words != old_words) remainders[new_words - 1] = 0;
  InsertBits(remainders, new_words, index * width, width, RemainderOf(hash, page->depth, width));
  const size_t bitmap_words = Page::BitmapWords(count + 1);
  if (bitmap_words != Page::BitmapWords(count)) page->words()[bitmap_words - 1] = 0;
  InsertBits(page->words(), bitmap_words, at, 1, 1);
  ++distinct_;
  copies_ += copies;
}

void FingerprintTable::Erase(uint64_t hash, size_t at, size_t index) {
  Page* page = PageOf(hash);
  const unsigned width = RemainderBits(*page);
  const size_t count = page->count;
  uint64_t* const old_remainders = page->remainders();
  const uint8_t* const old_counts = page->counts(width);
  EraseBits(page->words(), Page::BitmapWords(count), at, 1);
  EraseBits(old_remainders, WordsFor(count * width), index * width, width);
  page->count = static_cast<uint32_t>(count - 1);
  memmove(page->remainders(), old_remainders, WordsFor((count - 1) * width) * sizeof(uint64_t));
  if (page->counted != 0) {
    uint8_t* const counts = page->counts(width);
    // Forward: the new place is never behind the old one.
    memmove(counts, old_counts, index);
    memmove(counts + index, old_counts + index + 1, count - index - 1);
  }
  Resize(page, hash, Page::Bytes(count - 1, width, page->counted != 0));
}

void FingerprintTable::AddCounts(uint64_t hash) {
  Page* page = PageOf(hash);
  const unsigned width = RemainderBits(*page);
  page = Resize(page, hash, Page::Bytes(page->count, width, true));
  page->counted = 1;
  memset(page->counts(width), 1, page->count);
}

// ---- growing ----

// Hashes that share a long prefix must not make a directory of mostly equal pointers.
bool FingerprintTable::MayDouble(unsigned depth, size_t pages) {
  return depth < 48 && (uint64_t{1} << depth) <= 16 * (uint64_t{pages} + 64);
}

bool FingerprintTable::Split(uint64_t hash) {
  std::vector<uint64_t> hashes;
  std::vector<uint8_t> counts;
  bool split = false;
  for (Page* page = PageOf(hash); page->count >= kPageSplit; page = PageOf(hash)) {
    const unsigned depth = page->depth;
    if (depth + kQuotientBits >= bits_) break;
    if (depth == global_depth_) {
      if (!MayDouble(depth + 1U, pages_)) break;
      directory_.resize(directory_.size() * 2);
      for (size_t i = directory_.size(); i-- > 0;) directory_[i] = directory_[i / 2];
      ++global_depth_;
    }
    const uint64_t half = uint64_t{1} << (63 - depth);
    const uint64_t prefix = depth == 0 ? 0 : hash & (~uint64_t{0} << (64 - depth));
    hashes.clear();
    counts.clear();
    Decode(*page, prefix, &hashes, &counts);
    const auto middle = std::lower_bound(hashes.begin(), hashes.end(), prefix | half);
    const auto left = middle - hashes.begin();
    Page* const high =
        NewPage({middle, hashes.end()}, {counts.begin() + left, counts.end()}, depth + 1);
    hashes.resize(static_cast<size_t>(left));
    counts.resize(static_cast<size_t>(left));
    Page* const low = NewPage(hashes, counts, depth + 1);
    FreePage(page);
    SetDirectory(prefix, low);
    SetDirectory(prefix | half, high);
    split = true;
  }
  return split;
}

void FingerprintTable::ForEach(const Visit& visit) const {
  std::vector<uint64_t> hashes;
  std::vector<uint8_t> counts;
  ForEachPage([&](uint64_t prefix, const Page* page) {
    hashes.clear();
    counts.clear();
    Decode(*page, prefix, &hashes, &counts);
    for (size_t i = 0; i < hashes.size(); ++i) visit(hashes[i], counts[i]);
  });
}

std::unique_ptr<FingerprintTable> FingerprintTable::Narrowed(unsigned bits) const {
  auto table = std::make_unique<FingerprintTable>(bits);
  ForEach([&](uint64_t hash, unsigned copies) { table->Add(hash, copies); });
  return table;
}

// ---- saving ----

void FingerprintTable::Encode(const Page& page, uint64_t prefix, std::string* out) const {
  page.Append(prefix, RemainderBits(page), out);
}

bool FingerprintTable::AppendPages(uint64_t* prefix, size_t budget, std::string* out) const {
  const size_t start = out->size();
  while (true) {
    const Page& page = *PageOf(*prefix);
    *prefix = page.depth == 0 ? 0 : *prefix & (~uint64_t{0} << (64 - page.depth));
    Encode(page, *prefix, out);
    if (page.depth == 0) return false;
    *prefix += uint64_t{1} << (64 - page.depth);
    if (*prefix == 0) return false;
    if (out->size() - start >= budget) return true;
  }
}

bool FingerprintTable::AddPages(std::string_view piece) {
  PageReader in(piece, bits_);
  while (in.Next()) {
    for (size_t i = 0; i < in.hashes().size(); ++i) Add(in.hashes()[i], in.counts()[i]);
  }
  return in.ok();
}

void FingerprintTable::BeginCut(PieceSink sink) {
  AbortCut();
  epoch_ ^= 1;
  cut_ = std::make_unique<Cut>();
  cut_->sink = std::move(sink);
}

void FingerprintTable::SaveFirst(uint64_t hash) {
  if (cut_ == nullptr) return;
  Page* const page = PageOf(hash);
  if (page->epoch == epoch_) return;
  page->epoch = epoch_;
  std::string piece;
  Encode(*page, page->depth == 0 ? 0 : hash & (~uint64_t{0} << (64 - page->depth)), &piece);
  cut_->sink(piece);
}

bool FingerprintTable::SavePieces(size_t budget) {
  constexpr size_t kPiece = 16 << 10;
  if (cut_ == nullptr) return true;
  std::string piece;
  size_t handed_on = 0;
  while (!cut_->at_end && handed_on < budget) {
    Page* const page = PageOf(cut_->next);
    if (page->epoch != epoch_) {
      page->epoch = epoch_;
      const size_t before = piece.size();
      Encode(*page, cut_->next, &piece);
      handed_on += piece.size() - before;
    }
    cut_->next += page->depth == 0 ? 0 : uint64_t{1} << (64 - page->depth);
    cut_->at_end = cut_->next == 0;
    if (piece.size() >= kPiece) {
      cut_->sink(piece);
      piece.clear();
    }
  }
  if (!piece.empty()) cut_->sink(piece);
  if (!cut_->at_end) return false;
  cut_.reset();
  return true;
}

void FingerprintTable::AbortCut() {
  if (cut_ == nullptr) return;
  cut_.reset();
  ForEachPage([this](uint64_t /*prefix*/, Page* page) { page->epoch = epoch_; });
}

FingerprintTable::Loader::~Loader() {
  for (const Loaded& loaded : pages_) table_->FreePage(loaded.page);
}

bool FingerprintTable::Loader::Take(std::string_view piece) {
  PageReader in(piece, table_->bits_);
  while (in.Next()) {
    pages_.push_back({in.prefix(), table_->NewPage(in.hashes(), in.counts(), in.depth())});
    distinct_ += in.hashes().size();
    for (const uint8_t copies : in.counts()) copies_ += copies;
  }
  return in.ok();
}

bool FingerprintTable::Loader::Finish(uint64_t distinct) {
  std::sort(pages_.begin(), pages_.end(),
            [](const Loaded& a, const Loaded& b) { return a.prefix < b.prefix; });
  if (pages_.empty() || distinct != distinct_) return false;
  unsigned deepest = 0;
  uint64_t expected = 0;
  for (size_t i = 0; i < pages_.size(); ++i) {
    const unsigned depth = pages_[i].page->depth;
    if (pages_[i].prefix != expected || (i != 0 && expected == 0)) return false;
    expected += depth == 0 ? 0 : uint64_t{1} << (64 - depth);
    deepest = std::max(deepest, depth);
  }
  if (expected != 0 || !MayDouble(deepest, pages_.size())) return false;
  table_->FreePage(table_->directory_[0]);
  table_->global_depth_ = static_cast<uint8_t>(deepest);
  table_->directory_.assign(size_t{1} << deepest, nullptr);
  for (const Loaded& loaded : pages_) table_->SetDirectory(loaded.prefix, loaded.page);
  pages_.clear();
  table_->distinct_ = distinct_;
  table_->copies_ = copies_;
  return true;
}

}  // namespace sava::types
