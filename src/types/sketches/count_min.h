// CountMin: the count-min sketch with conservative update. It tells about how often an item
// occurred, in a table of `depth` rows of `width` counters whatever the number of items.
//
// An item has one counter in each row; its estimate is the smallest of them. An increment raises
// only those counters that are below estimate + increment (conservative update). So an estimate is
// never too low, and never more than what plain count-min would answer: with N = total() it exceeds
// the truth by more than 2N/width with a probability of at most 2^-depth.
//
// Counters stop at 2^32 - 1. The places of an item follow from XXH3-128 of its bytes alone, so that
// sketches of different machines can be merged. Thread safety: as every Object.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>

#include "types/value/block_cut.h"
#include "types/value/object.h"

namespace sava::types {

class CountMin final : public Object {
 public:
  static constexpr uint64_t kMost = UINT32_MAX;
  static constexpr uint64_t kMaxTotal = (uint64_t{1} << 63) - 1;
  // 16 GiB.
  static constexpr uint64_t kMaxCells = uint64_t{1} << 32;
  // An item has a counter in every row: with more rows one command would take milliseconds.
  static constexpr uint64_t kMaxNewDepth = 65536;
  // What a new one takes; UINT64_MAX: it is not to be made.
  static uint64_t BytesFor(uint64_t width, uint64_t depth) {
    if (depth > kMaxNewDepth || width > kMaxCells / depth) return UINT64_MAX;
    return width * depth * sizeof(uint32_t);
  }

  // A source of Merge.
  struct Weighted {
    const CountMin* sketch;
    int64_t weight;
  };

  // nullptr when it is too large or there is no memory. REQUIRES: both at least 1.
  static std::unique_ptr<CountMin> Make(uint64_t width, uint64_t depth);

  // The estimate after `n` more occurrences; kMost when it has reached that and counts no further.
  uint64_t Add(std::string_view item, uint64_t n);
  uint64_t Estimate(std::string_view item) const;
  // Becomes the weighted sum of the sources, which may include itself. False, with nothing changed,
  // when a counter would be negative or above kMost, or the total above kMaxTotal.
  // REQUIRES: width and depth of all are the same.
  bool Merge(std::span<const Weighted> sources);

  uint64_t width() const { return width_; }
  uint64_t depth() const { return depth_; }
  // All that was added, kMaxTotal at most.
  uint64_t total() const { return total_; }

  static const TypeInfo& Type();
  const TypeInfo& type() const override { return Type(); }
  std::string_view encoding() const override { return "raw"; }
  // Blocks: what there is to free.
  size_t size() const override { return blocks(); }
  size_t MemoryUsage(size_t samples) const override;
  std::unique_ptr<Object> Copy() const override;
  uint8_t rdb_type() const override;
  void Save(Writer& out) const override;
  void Digest(const std::function<void(std::string_view)>& add) const override;
  bool large() const override { return cells() * sizeof(uint32_t) > kLarge; }
  void BeginCut(const PieceSink& sink, bool refer) override;
  bool SavePieces(size_t budget) override { return cut_.SaveSome(budget); }
  void AbortCut() override { cut_.Abort(); }

 private:
  static constexpr size_t kLarge = 64 * 1024;
  static constexpr size_t kBlock = 4096;  // counters: 16 KB

  struct Free {
    void operator()(uint32_t* p) const { free(p); }
  };
  using Cells = std::unique_ptr<uint32_t[], Free>;

  CountMin(uint64_t width, uint64_t depth, Cells table)
      : width_(width), depth_(depth), table_(std::move(table)) {}

  static std::unique_ptr<Object> Load(uint8_t rdb_type, Reader& in);
  size_t cells() const { return width_ * depth_; }
  size_t blocks() const { return (cells() + kBlock - 1) / kBlock; }
  size_t BlockSize(size_t block) const;
  bool SumOf(std::span<const Weighted> sources, size_t cell, uint32_t* sum) const;
  void SaveHead(Writer& out) const;
  void SaveBlock(size_t block, Writer& out) const;

  uint64_t width_;
  uint64_t depth_;
  uint64_t total_ = 0;
  Cells table_;  // row by row
  BlockCut cut_;
};

}  // namespace sava::types
