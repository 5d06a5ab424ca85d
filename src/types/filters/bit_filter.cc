#include "types/filters/bit_filter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/prefetch.h"

namespace sava::types {

namespace {

const BlockShape* ShapeOf(uint32_t hashes) {
  for (const BlockShape& shape : kBlockShapes) {
    if (shape.hashes() == hashes) return &shape;
  }
  return nullptr;
}

// The bits of a classic filter, one after the other: double hashing whose step grows, which keeps
// small filters at the rate of the formula too.
class Places {
 public:
  explicit Places(uint64_t hash) : at_(hash), step_(MixHash(hash) | 1) {}
  uint64_t Next(uint64_t bits) {
    const uint64_t place = ScaleHash(at_, bits);
    at_ += step_;
    step_ += 0x9e3779b97f4a7c15ULL;
    return place;
  }

 private:
  uint64_t at_;
  uint64_t step_;
};

// The bits of word `i` of a block: six bits of one hash, or of two, say which.
struct Picks {
  explicit Picks(uint64_t hash) : first(MixHash(hash)) {}
  uint64_t Mask(unsigned i) const { return uint64_t{1} << (first >> (6 * i) & 63); }

  uint64_t first;
};

struct PairPicks : Picks {
  explicit PairPicks(uint64_t hash) : Picks(hash), second(MixHash(~first)) {}
  uint64_t Mask(unsigned i) const {
    return Picks::Mask(i) | uint64_t{1} << (second >> (6 * i) & 63);
  }

  uint64_t second;
};

template <unsigned kWords, typename Pick>
bool AllSet(const uint64_t* block, uint64_t hash) {
  const Pick picks(hash);
  uint64_t missing = 0;
  for (unsigned i = 0; i < kWords; ++i) missing |= ~block[i] & picks.Mask(i);
  return missing == 0;
}

template <unsigned kWords, typename Pick>
void SetAll(uint64_t* block, uint64_t hash) {
  const Pick picks(hash);
  for (unsigned i = 0; i < kWords; ++i) block[i] |= picks.Mask(i);
}

// The share of blocks or bytes to look at, so that a look takes bounded time.
size_t StrideFor(size_t bytes) { return std::max<size_t>(1, bytes / (4 << 20)); }

}  // namespace

BitFilter::Geometry BitFilter::Fit(BloomLayout layout, uint64_t n, double p) {
  const auto items = static_cast<double>(n);
  if (layout == BloomLayout::kClassic) {
    const double bits = std::max(8.0, ClassicBits(items, p));
    const auto m = bits < 0x1p62 ? static_cast<uint64_t>(bits) : uint64_t{1} << 62;
    return {layout, m, ClassicHashes(bits, items), n};
  }
  const BlockedSize size = SizeBlocked(items, p);
  return {layout, size.bits(), size.shape.hashes(), n};
}

bool BitFilter::Valid(const Geometry& geometry) {
  if (geometry.bits == 0 || geometry.bits / 8 >= BitStore::kMaxBytes) return false;
  if (geometry.capacity == 0) return false;
  if (geometry.layout == BloomLayout::kClassic) {
    return geometry.hashes >= 1 && geometry.hashes <= kMaxHashes;
  }
  const BlockShape* const shape = ShapeOf(geometry.hashes);
  return shape != nullptr && geometry.bits % (shape->words * 64) == 0;
}

BitFilter::BitFilter(const Geometry& geometry) : geometry_(geometry) {
  if (geometry.layout == BloomLayout::kClassic) return;
  shape_ = *ShapeOf(geometry.hashes);
  blocks_ = geometry.bits / (shape_.words * 64);
}

std::unique_ptr<BitFilter> BitFilter::Make(const Geometry& geometry) {
  std::unique_ptr<BitFilter> filter(new BitFilter(geometry));
  filter->store_ = BitStore::Make((geometry.bits + 7) / 8);
  return filter->store_ == nullptr ? nullptr : std::move(filter);
}

std::unique_ptr<BitFilter> BitFilter::Clone() const {
  std::unique_ptr<BitFilter> copy = Make(geometry_);
  if (copy != nullptr) memcpy(copy->store_->data(), store_->data(), store_->size());
  return copy;
}

// ---- blocked ----

bool BitFilter::HasBlocked(uint64_t hash) const {
  const uint64_t* const block = BlockOf(hash);
  if (geometry_.hashes == 8) return AllSet<8, Picks>(block, hash);
  if (geometry_.hashes == 4) return AllSet<4, Picks>(block, hash);
  return AllSet<8, PairPicks>(block, hash);
}

bool BitFilter::AddBlocked(uint64_t hash) {
  if (HasBlocked(hash)) return false;
  auto* const block = const_cast<uint64_t*>(BlockOf(hash));
  store_->Touch(static_cast<size_t>(reinterpret_cast<uint8_t*>(block) - store_->data()));
  if (geometry_.hashes == 8) {
    SetAll<8, Picks>(block, hash);
  } else if (geometry_.hashes == 4) {
    SetAll<4, Picks>(block, hash);
  } else {
    SetAll<8, PairPicks>(block, hash);
  }
  return true;
}

// ---- classic ----

bool BitFilter::HasClassic(uint64_t hash) const {
  Places places(hash);
  const uint8_t* const bytes = store_->data();
  for (uint32_t i = 0; i < geometry_.hashes; ++i) {
    const uint64_t at = places.Next(geometry_.bits);
    if ((bytes[at / 8] >> (at % 8) & 1) == 0) return false;
  }
  return true;
}

bool BitFilter::AddClassic(uint64_t hash) {
  Places places(hash);
  uint8_t* const bytes = store_->data();
  bool changed = false;
  for (uint32_t i = 0; i < geometry_.hashes; ++i) {
    const uint64_t at = places.Next(geometry_.bits);
    const auto bit = static_cast<uint8_t>(1U << (at % 8));
    if ((bytes[at / 8] & bit) != 0) continue;
    store_->Touch(at / 8);
    bytes[at / 8] |= bit;
    changed = true;
  }
  return changed;
}

void BitFilter::PrefetchClassic(uint64_t hash) const {
  Places places(hash);
  for (uint32_t i = 0; i < geometry_.hashes; ++i) {
    base::Prefetch(store_->data() + places.Next(geometry_.bits) / 8);
  }
}

// ---- both ----

void BitFilter::Merge(const BitFilter& other) {
  uint8_t* const bytes = store_->data();
  const uint8_t* const more = other.store_->data();
  for (size_t from = 0; from < store_->size(); from += BitStore::kBlock) {
    store_->Touch(from);
    const size_t end = std::min(from + BitStore::kBlock, store_->size());
    for (size_t i = from; i < end; ++i) bytes[i] |= more[i];
  }
}

double BitFilter::Rate(uint64_t n) const {
  if (n == 0) return 0;
  const auto items = static_cast<double>(n);
  if (geometry_.layout == BloomLayout::kBlocked) {
    return BlockedRate(shape_, static_cast<double>(blocks_), items);
  }
  return ClassicRate(static_cast<double>(geometry_.bits), items, geometry_.hashes);
}

BitFilter::Observed BitFilter::Observe() const {
  if (geometry_.layout == BloomLayout::kBlocked) return ObserveBlocked();
  const size_t stride = StrideFor(store_->size());
  uint64_t set = 0;
  uint64_t seen = 0;
  for (size_t i = 0; i < store_->size(); i += stride) {
    set += static_cast<uint64_t>(std::popcount(store_->data()[i]));
    seen += std::min<uint64_t>(8, geometry_.bits - i * 8);
  }
  const double fill = static_cast<double>(set) / static_cast<double>(seen);
  return {fill, std::pow(fill, geometry_.hashes)};
}

// An item answers for the product of how full the words of its block are.
BitFilter::Observed BitFilter::ObserveBlocked() const {
  const auto* words = reinterpret_cast<const uint64_t*>(store_->data());
  const size_t stride = StrideFor(store_->size());
  double fill = 0;
  double rate = 0;
  double seen = 0;
  for (uint64_t block = 0; block < blocks_; block += stride) {
    double answers = 1;
    for (uint32_t i = 0; i < shape_.words; ++i) {
      const double full = std::popcount(words[block * shape_.words + i]) / 64.0;
      fill += full / shape_.words;
      answers *= shape_.per_word == 1 ? full : full * full;
    }
    rate += answers;
    ++seen;
  }
  return {fill / seen, rate / seen};
}

}  // namespace sava::types
