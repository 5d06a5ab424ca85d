// FrontierSet: a set of 64-bit hashes, cut to `bits` bits: which URLs a Frontier knows. Exact but
// for hashes that agree in those bits: of n different ones n * n / 2^(bits + 1) are taken for
// another one.
//
// The hashes of one prefix stand in a page, in order: each at its home, a place in proportion to
// its value, or as near behind it as those before it let it. A slot has as many whole bytes as what
// follows the prefix takes (six from 2^(bits - 48) pages on). Pages grow in small steps and split
// when they hold kSplit; a directory finds them. So a large set is filled to 75 % or more, and no
// insertion moves more than a page and a part of the directory.
//
// Thread safety: none; used under its owner's lock. It may be freed on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/prefetch.h"
#include "base/slab.h"

namespace sava::types {

class FrontierSet {
 public:
  // REQUIRES: 40 <= bits <= 64.
  explicit FrontierSet(unsigned bits);
  FrontierSet(const FrontierSet&) = delete;
  FrontierSet& operator=(const FrontierSet&) = delete;
  ~FrontierSet();

  uint64_t size() const { return size_; }
  unsigned bits() const { return bits_; }
  size_t bytes() const { return slab_.used() + directory_bytes_ + sizeof(*this); }

  bool Has(uint64_t hash) const;
  // True when it was not there.
  bool Insert(uint64_t hash);
  // True when it was there.
  bool Erase(uint64_t hash);
  void Clear();
  // Ask for the memory that the calls above will look at; each reads what the one before asked for.
  void PrefetchDirectory(uint64_t hash) const { base::Prefetch(Entry(hash)); }
  void PrefetchPage(uint64_t hash) const;
  void PrefetchSlot(uint64_t hash) const;

  // All of them in order of their prefixes, with zeros behind the bits that are kept.
  void ForEach(const std::function<void(uint64_t hash)>& visit) const;

  // ---- saving: docs/formats/frontier.md describes the bytes ----
  using PieceSink = std::function<void(std::string_view bytes)>;
  void SaveAll(const PieceSink& sink) const;
  // Adds what a piece holds; false when it is damaged.
  bool Load(std::string_view piece);
  // As it is now: pages go to the sink when SavePieces comes to them, or before they change.
  void BeginCut(PieceSink sink);
  bool SavePieces(size_t budget);
  void AbortCut();

 private:
  struct Page {
    uint32_t count;
    uint32_t slots;
    uint8_t depth;
    uint8_t width;  // bytes of a slot
    uint8_t epoch;
    uint8_t unused[5];
    uint8_t* data() { return reinterpret_cast<uint8_t*>(this + 1); }
    const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(this + 1); }
    uint64_t Get(size_t slot) const;
    void Put(size_t slot, uint64_t value);
  };
  // Pages of hashes with the same first bits.
  struct Segment {
    std::vector<Page*> pages;
    uint8_t depth = 0;  // pages.size() is 2^depth
  };
  struct Cut {
    PieceSink sink;
    uint64_t next = 0;
    bool at_end = false;
  };

  static constexpr uint32_t kSplit = 96;
  static constexpr unsigned kSegmentBits = 8;
  static constexpr unsigned kSegmentFrom = 12;  // depth of one segment from which there are many

  uint64_t Fold(uint64_t hash) const { return hash >> shift_ << shift_; }
  Segment& SegmentOf(uint64_t hash) {
    return segments_[segment_bits_ == 0 ? 0 : hash >> (64 - segment_bits_)];
  }
  const Segment& SegmentOf(uint64_t hash) const {
    return segments_[segment_bits_ == 0 ? 0 : hash >> (64 - segment_bits_)];
  }
  Page* const* Entry(uint64_t hash) const {
    const Segment& segment = SegmentOf(hash);
    return &segment.pages[segment.depth == 0 ? 0 : (hash << segment_bits_) >> (64 - segment.depth)];
  }
  Page* PageOf(uint64_t hash) const { return *Entry(hash); }
  uint64_t ValueOf(const Page& page, uint64_t hash) const;
  uint64_t HashOf(uint64_t prefix, uint64_t value) const;
  static uint64_t PrefixOf(const Page& page, uint64_t hash);
  // Hashes are spread evenly, so a value stands near the place in proportion to it.
  static size_t Guess(const Page& page, uint64_t hash) {
    return static_cast<size_t>((static_cast<unsigned __int128>(hash << page.depth) * page.count) >>
                               64);
  }
  // The slot of a hash, or the one where it would be.
  size_t Find(const Page& page, uint64_t hash, bool* found) const;
  Page* NewPage(unsigned depth, uint32_t count);
  void FreePage(Page* page);
  // Puts the page wherever the directory has the prefix of the hash.
  void Point(uint64_t hash, Page* page);
  // The page of the hash anew, with room for `count`.
  void Resize(uint64_t hash, uint32_t count);
  bool Split(uint64_t hash);
  bool MayDouble(const Segment& segment) const;
  void MakeSegments();
  template <typename Work>
  void ForEachPage(const Work& work) const;
  void AppendPage(const Page& page, uint64_t prefix, std::string* out) const;
  void SaveFirst(uint64_t hash);

  std::vector<Segment> segments_;
  uint64_t size_ = 0;
  base::Slab slab_{false};  // growing, a small set visits many classes
  size_t directory_bytes_ = 0;
  size_t pages_ = 0;
  std::unique_ptr<Cut> cut_;
  uint8_t bits_;
  uint8_t shift_;  // 64 - bits
  uint8_t segment_bits_ = 0;
  uint8_t epoch_ = 0;  // outside a cut every page has it; within one, those that are saved
};

}  // namespace sava::types
