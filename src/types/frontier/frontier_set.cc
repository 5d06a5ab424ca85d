#include "types/frontier/frontier_set.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "base/if_memory.h"
#include "base/prefetch.h"
#include "types/filters/filter_pieces.h"

namespace sava::types {

namespace {

// Slots are read eight bytes at a time.
constexpr size_t kPadding = 8;
// Bits of a hash that a page never gives to the directory.
constexpr unsigned kLeastValueBits = 16;
constexpr size_t kLeastPage = 64;
constexpr size_t kPieceBytes = 16 << 10;
constexpr ptrdiff_t kPrefetchBefore = 64;
constexpr ptrdiff_t kPrefetchBehind = 768;  // what a page has before it is split

// The sizes that allocators hand out without waste; beyond the slab four to each power of two.
size_t RoundedSize(size_t bytes) {
  if (bytes <= kLeastPage) return kLeastPage;
  if (bytes <= base::Slab::kMaxBlock) return base::Slab::Rounded(bytes);
  const size_t step = std::max<size_t>(16, std::bit_ceil(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

size_t PageBytes(size_t count, size_t width, size_t head) {
  return RoundedSize(head + kPadding + count * width);
}

// A page that is full gets room for such a part of what it has.
constexpr uint32_t kGrowth = 16;

// Slots that are looked at one by one before the search takes larger steps.
constexpr size_t kWalk = 24;

}  // namespace

uint64_t FrontierSet::Page::Get(size_t slot) const {
  uint64_t value = 0;
  memcpy(&value, data() + slot * width, sizeof value);
  return width == 8 ? value : value & ((uint64_t{1} << (width * 8)) - 1);
}

void FrontierSet::Page::Put(size_t slot, uint64_t value) {
  memcpy(data() + slot * width, &value, width);
}

FrontierSet::FrontierSet(unsigned bits)
    : bits_(static_cast<uint8_t>(bits)), shift_(static_cast<uint8_t>(64 - bits)) {
  segments_.resize(1);
  segments_[0].pages.push_back(NewPage(0, 0));
  directory_bytes_ = sizeof(void*);
}

FrontierSet::~FrontierSet() {
  cut_.reset();
  ForEachPage([this](uint64_t /*prefix*/, Page* page) { FreePage(page); });
}

// ---- pages ----

FrontierSet::Page* FrontierSet::NewPage(unsigned depth, uint32_t count) {
  const size_t width = (bits_ - depth + 7) / 8;
  const size_t bytes = PageBytes(count, width, sizeof(Page));
  auto* page = static_cast<Page*>(slab_.Allocate(bytes));
  page->slots = static_cast<uint32_t>((bytes - sizeof(Page) - kPadding) / width);
  page->count = 0;
  page->depth = static_cast<uint8_t>(depth);
  page->width = static_cast<uint8_t>(width);
  page->epoch = epoch_;
  ++pages_;
  return page;
}

void FrontierSet::FreePage(Page* page) {
  --pages_;
  slab_.Release(page, RoundedSize(sizeof(Page) + kPadding + size_t{page->slots} * page->width));
}

uint64_t FrontierSet::ValueOf(const Page& page, uint64_t hash) const {
  return hash << page.depth >> page.depth >> shift_;
}

uint64_t FrontierSet::HashOf(uint64_t prefix, uint64_t value) const {
  return prefix | value << shift_;
}

uint64_t FrontierSet::PrefixOf(const Page& page, uint64_t hash) {
  return page.depth == 0 ? 0 : hash & (~uint64_t{0} << (64 - page.depth));
}

size_t FrontierSet::Find(const Page& page, uint64_t hash, bool* found) const {
  const uint64_t wanted = ValueOf(page, hash);
  size_t low = 0;
  size_t high = page.count;  // what is wanted is in [low, high)
  size_t guess = Guess(page, hash);
  *found = false;
  for (size_t step = 0; low < high; ++step) {
    const uint64_t there = page.Get(guess);
    *found = there == wanted;
    if (*found) return guess;
    if (there < wanted) {
      low = guess + 1;
      guess = step < kWalk ? low : low + (high - low) / 2;
    } else {
      high = guess;
      guess = step < kWalk ? high - 1 : low + (high - low) / 2;
    }
  }
  return low;
}

void FrontierSet::PrefetchPage(uint64_t hash) const { base::PrefetchForWrite(PageOf(hash)); }

// What stands behind the place will have to move.
void FrontierSet::PrefetchSlot(uint64_t hash) const {
  const Page* const page = PageOf(hash);
  const char* const place =
      reinterpret_cast<const char*>(page->data() + Guess(*page, hash) * page->width);
  const char* const end =
      std::min(reinterpret_cast<const char*>(page->data() + (page->count + 1) * page->width),
               place + kPrefetchBehind);
  for (const char* at = place - kPrefetchBefore; at < end; at += 64) base::PrefetchForWrite(at);
}

void FrontierSet::Point(uint64_t hash, Page* page) {
  Segment& segment = SegmentOf(hash);
  const unsigned spare = segment_bits_ + segment.depth - page->depth;
  const size_t at = segment.depth == 0 ? 0 : (hash << segment_bits_) >> (64 - segment.depth);
  std::fill_n(segment.pages.begin() + static_cast<ptrdiff_t>(at >> spare << spare),
              size_t{1} << spare, page);
}

void FrontierSet::Resize(uint64_t hash, uint32_t count) {
  Page* const old = PageOf(hash);
  Page* const page = NewPage(old->depth, count);
  memcpy(page->data(), old->data(), size_t{old->count} * old->width);
  page->count = old->count;
  FreePage(old);
  Point(hash, page);
}

// ---- the set ----

bool FrontierSet::Has(uint64_t hash) const {
  bool found = false;
  hash = Fold(hash);
  Find(*PageOf(hash), hash, &found);
  return found;
}

bool FrontierSet::Insert(uint64_t hash) {
  hash = Fold(hash);
  bool found = false;
  Page* page = PageOf(hash);
  size_t slot = Find(*page, hash, &found);
  if (found) return false;
  SaveFirst(hash);
  if (page->count >= kSplit && Split(hash)) {
    page = PageOf(hash);
    slot = Find(*page, hash, &found);
  }
  if (page->count == page->slots) {
    Resize(hash, page->count + 1 + page->count / kGrowth);
    page = PageOf(hash);
  }
  uint8_t* const at = page->data() + slot * page->width;
  memmove(at + page->width, at, (page->count - slot) * page->width);
  page->Put(slot, ValueOf(*page, hash));
  ++page->count;
  ++size_;
  return true;
}

bool FrontierSet::Erase(uint64_t hash) {
  hash = Fold(hash);
  bool found = false;
  Page* const page = PageOf(hash);
  const size_t slot = Find(*page, hash, &found);
  if (!found) return false;
  SaveFirst(hash);
  --page->count;
  uint8_t* const at = page->data() + slot * page->width;
  memmove(at, at + page->width, (page->count - slot) * page->width);
  if (--size_ == 0 && cut_ == nullptr) {
    base::IfMemory([this] { Clear(); });
  } else if (page->count * 2 < page->slots && page->slots * page->width > 2 * kLeastPage) {
    base::IfMemory([&] { Resize(hash, page->count + page->count / 4); });
  }
  return true;
}

void FrontierSet::Clear() {
  while (!SavePieces(SIZE_MAX)) continue;
  // What it has afterwards is made first: without memory nothing has changed.
  std::vector<Segment> fresh(1);
  fresh[0].pages.reserve(1);
  fresh[0].pages.push_back(NewPage(0, 0));
  ForEachPage([this](uint64_t /*prefix*/, Page* page) { FreePage(page); });
  segment_bits_ = 0;
  size_ = 0;
  segments_.swap(fresh);
  directory_bytes_ = sizeof(void*);
}

// ---- growing ----

// Hashes that share a long prefix must not make a directory of mostly equal pointers.
bool FrontierSet::MayDouble(const Segment& segment) const {
  return segment_bits_ + segment.depth + 1U + kLeastValueBits <= bits_ &&
         (uint64_t{2} << (segment_bits_ + segment.depth)) <= 16 * (uint64_t{pages_} + 64);
}

// One segment becomes 256, if none of its pages has a shorter prefix.
void FrontierSet::MakeSegments() {
  const Segment& all = segments_[0];
  const bool ready = std::all_of(all.pages.begin(), all.pages.end(),
                                 [](const Page* page) { return page->depth >= kSegmentBits; });
  if (!ready) return;
  std::vector<Segment> many(size_t{1} << kSegmentBits);
  const size_t share = all.pages.size() / many.size();
  for (size_t i = 0; i < many.size(); ++i) {
    const auto from = all.pages.begin() + static_cast<ptrdiff_t>(i * share);
    many[i].pages.assign(from, from + static_cast<ptrdiff_t>(share));
    many[i].depth = static_cast<uint8_t>(all.depth - kSegmentBits);
  }
  segments_ = std::move(many);
  segment_bits_ = kSegmentBits;
  directory_bytes_ += segments_.size() * sizeof(Segment);
}

bool FrontierSet::Split(uint64_t hash) {
  Page* const old = PageOf(hash);
  if (segment_bits_ == 0 && segments_[0].depth >= kSegmentFrom) MakeSegments();
  Segment& segment = SegmentOf(hash);
  if (old->depth == segment_bits_ + segment.depth) {
    if (!MayDouble(segment)) return false;
    std::vector<Page*> twice(segment.pages.size() * 2);
    for (size_t i = 0; i < twice.size(); ++i) twice[i] = segment.pages[i / 2];
    directory_bytes_ += segment.pages.size() * sizeof(void*);
    segment.pages = std::move(twice);
    ++segment.depth;
  }
  const uint64_t prefix = PrefixOf(*old, hash);
  const uint64_t half = uint64_t{1} << (63 - old->depth);
  bool found = false;
  const size_t middle = Find(*old, prefix | half, &found);
  Page* const low = NewPage(old->depth + 1U, static_cast<uint32_t>(middle + 1));
  Page* high = nullptr;
  const auto above = static_cast<uint32_t>(old->count - middle + 1);
  if (!base::IfMemory([&] { high = NewPage(old->depth + 1U, above); })) {
    FreePage(low);
    throw std::bad_alloc();
  }
  for (size_t slot = 0; slot < old->count; ++slot) {
    Page* const page = slot < middle ? low : high;
    page->Put(page->count++, ValueOf(*page, HashOf(prefix, old->Get(slot))));
  }
  FreePage(old);
  Point(prefix, low);
  Point(prefix | half, high);
  return true;
}

template <typename Work>
void FrontierSet::ForEachPage(const Work& work) const {
  for (size_t i = 0; i < segments_.size(); ++i) {
    const Segment& segment = segments_[i];
    const uint64_t first = segment_bits_ == 0 ? 0 : uint64_t{i} << (64 - segment_bits_);
    for (size_t at = 0; at < segment.pages.size();) {
      Page* const page = segment.pages[at];
      const unsigned spare = segment_bits_ + segment.depth - page->depth;
      const uint64_t behind =
          segment.depth == 0 ? 0 : uint64_t{at} << (64 - segment.depth) >> segment_bits_;
      work(first | behind, page);
      at += size_t{1} << spare;
    }
  }
}

void FrontierSet::ForEach(const std::function<void(uint64_t hash)>& visit) const {
  ForEachPage([&](uint64_t prefix, const Page* page) {
    for (size_t slot = 0; slot < page->count; ++slot) visit(HashOf(prefix, page->Get(slot)));
  });
}

// ---- saving ----

// Varint depth, varint of the prefix's bits, varint count, then the values in order, each in as
// many whole bytes as bits - depth take.
void FrontierSet::AppendPage(const Page& page, uint64_t prefix, std::string* out) const {
  base::AppendVarint(out, page.depth);
  base::AppendVarint(out, page.depth == 0 ? 0 : prefix >> (64 - page.depth));
  base::AppendVarint(out, page.count);
  out->append(reinterpret_cast<const char*>(page.data()), size_t{page.count} * page.width);
}

void FrontierSet::SaveAll(const PieceSink& sink) const {
  std::string piece;
  ForEachPage([&](uint64_t prefix, const Page* page) {
    AppendPage(*page, prefix, &piece);
    if (piece.size() < kPieceBytes) return;
    sink(piece);
    piece.clear();
  });
  if (!piece.empty()) sink(piece);
}

bool FrontierSet::Load(std::string_view piece) {
  while (!piece.empty()) {
    FieldReader in(piece);
    const uint64_t depth = in.Number(bits_ - kLeastValueBits);
    const uint64_t first = in.Number();
    const uint64_t count = in.Number();
    if (!in.ok() || (depth == 0 ? first != 0 : first >> depth != 0)) return false;
    const uint64_t prefix = depth == 0 ? 0 : first << (64 - depth);
    const size_t width = (bits_ - depth + 7) / 8;
    std::string_view values = in.Rest();
    if (count > values.size() / width) return false;
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t value = 0;
      memcpy(&value, values.data() + i * width, width);
      const uint64_t hash = prefix | value << shift_;
      const bool fits = bits_ - depth == 64 || value >> (bits_ - depth) == 0;
      if (!fits || Fold(hash) != hash || !Insert(hash)) return false;
    }
    piece = values.substr(count * width);
  }
  return true;
}

void FrontierSet::BeginCut(PieceSink sink) {
  AbortCut();
  epoch_ ^= 1;
  cut_ = std::make_unique<Cut>();
  cut_->sink = std::move(sink);
}

void FrontierSet::SaveFirst(uint64_t hash) {
  if (cut_ == nullptr) return;
  Page* const page = PageOf(hash);
  if (page->epoch == epoch_) return;
  page->epoch = epoch_;
  std::string piece;
  AppendPage(*page, PrefixOf(*page, hash), &piece);
  cut_->sink(piece);
}

bool FrontierSet::SavePieces(size_t budget) {
  if (cut_ == nullptr) return true;
  std::string piece;
  size_t handed_on = 0;
  while (!cut_->at_end && handed_on < budget) {
    Page* const page = PageOf(cut_->next);
    if (page->epoch != epoch_) {
      page->epoch = epoch_;
      const size_t before = piece.size();
      AppendPage(*page, cut_->next, &piece);
      handed_on += piece.size() - before;
    }
    cut_->next += page->depth == 0 ? 0 : uint64_t{1} << (64 - page->depth);
    cut_->at_end = cut_->next == 0;
    if (piece.size() >= kPieceBytes) {
      cut_->sink(piece);
      piece.clear();
    }
  }
  if (!piece.empty()) cut_->sink(piece);
  if (!cut_->at_end) return false;
  cut_.reset();
  return true;
}

void FrontierSet::AbortCut() {
  if (cut_ == nullptr) return;
  cut_.reset();
  ForEachPage([this](uint64_t /*prefix*/, Page* page) { page->epoch = epoch_; });
}

}  // namespace sava::types
