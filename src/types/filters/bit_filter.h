// BitFilter: Bloom's filter of a fixed size, in one of two layouts.
//
//   classic  the document's: m bits, k of them per item by double hashing (h1 + i h2 + i (i-1)/2
//   c);
//            its rate is that of formula 5
//   blocked  the k bits of an item stand in one cache line, one or two in each word of 64 bits: an
//            item costs one miss of the cache instead of k, for 5 to 10 % more bits
//
// Items come as hashes of 64 bits. Thread safety: none; used under its owner's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/prefetch.h"
#include "types/filters/bit_store.h"
#include "types/filters/bloom_formulas.h"

namespace sava::types {

enum class BloomLayout : uint8_t { kBlocked, kClassic };

// A second hash from a first one.
inline uint64_t MixHash(uint64_t hash) {
  hash ^= hash >> 32;
  hash *= 0xe9846af9b1a615dULL;
  hash ^= hash >> 32;
  hash *= 0xe9846af9b1a615dULL;
  return hash ^ hash >> 28;
}
// [0, 2^64) to [0, range).
inline uint64_t ScaleHash(uint64_t hash, uint64_t range) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * range) >> 64);
}

class BitFilter {
 public:
  struct Geometry {
    BloomLayout layout = BloomLayout::kBlocked;
    uint64_t bits = 0;      // m
    uint32_t hashes = 0;    // k
    uint64_t capacity = 0;  // how many items it is made for
    bool operator==(const Geometry&) const = default;
  };
  static constexpr uint32_t kMaxHashes = 255;

  // For n items at rate p.
  static Geometry Fit(BloomLayout layout, uint64_t n, double p);
  // Whether there may be such a filter.
  static bool Valid(const Geometry& geometry);
  // nullptr when there is no memory for it. REQUIRES: Valid(geometry).
  static std::unique_ptr<BitFilter> Make(const Geometry& geometry);
  std::unique_ptr<BitFilter> Clone() const;

  const Geometry& geometry() const { return geometry_; }
  BitStore& store() { return *store_; }
  const BitStore& store() const { return *store_; }
  size_t memory() const { return sizeof(*this) + sizeof(BitStore) + store_->size() + 64; }

  bool Has(uint64_t hash) const {
    return geometry_.layout == BloomLayout::kBlocked ? HasBlocked(hash) : HasClassic(hash);
  }
  // True when a bit was not set before: then the item is new.
  bool Add(uint64_t hash) {
    return geometry_.layout == BloomLayout::kBlocked ? AddBlocked(hash) : AddClassic(hash);
  }
  // Asks for the memory that Has and Add will look at.
  void Prefetch(uint64_t hash) const {
    if (geometry_.layout == BloomLayout::kBlocked) {
      base::Prefetch(BlockOf(hash));
    } else {
      PrefetchClassic(hash);
    }
  }
  // All items of another one of the same geometry.
  void Merge(const BitFilter& other);

  // What the formula says of n items.
  double Rate(uint64_t n) const;
  struct Observed {
    double fill;  // the share of bits that are set
    double rate;  // the share of other items it answers for
  };
  // As the bits say, looking at some 4 MB of them at most.
  Observed Observe() const;

 private:
  explicit BitFilter(const Geometry& geometry);

  const uint64_t* BlockOf(uint64_t hash) const {
    return reinterpret_cast<const uint64_t*>(store_->data()) +
           ScaleHash(hash, blocks_) * shape_.words;
  }
  bool HasBlocked(uint64_t hash) const;
  bool AddBlocked(uint64_t hash);
  bool HasClassic(uint64_t hash) const;
  bool AddClassic(uint64_t hash);
  void PrefetchClassic(uint64_t hash) const;
  Observed ObserveBlocked() const;

  Geometry geometry_;
  BlockShape shape_{};
  uint64_t blocks_ = 0;
  std::unique_ptr<BitStore> store_;
};

}  // namespace sava::types
