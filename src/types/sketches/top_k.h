// TopK: the most frequent items of a stream, by the Space-Saving algorithm.
//
// It keeps counters for at most capacity() = max(10 k, k + width) items. An item without a counter
// takes the one with the lowest count when none is free, and goes on from there: its count is then
// too high by at most what it found, which is kept as its error. With N occurrences in all:
//   count - error <= true count <= count, error <= N / capacity(), and every item that occurred
//   more than N / capacity() times has a counter.
// The list is the k items with the highest counts; an item enters it when its count reaches that of
// the last one, which is expelled. Of equal counts the one that changed longest ago is the lower.
// Nothing is left to chance: the same calls give the same state, here and on a replica.
//
// Thread safety: as every Object.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "types/sketches/text_table.h"
#include "types/value/block_cut.h"
#include "types/value/object.h"

namespace sava::types {

class TopK final : public Object {
 public:
  // Of TOPK.RESERVE; depth and decay are kept for those who ask, and mean nothing here.
  struct Options {
    uint64_t k = 1;
    uint64_t width = 8;
    uint64_t depth = 7;
    double decay = 0.9;
    bool operator==(const Options&) const = default;
  };
  // Of k, width and depth.
  static constexpr uint64_t kMaxOption = UINT32_MAX;
  static constexpr uint64_t kMaxCount = (uint64_t{1} << 63) - 1;

  struct Item {
    std::string_view text;
    uint64_t count;
    uint64_t error;
  };

  // REQUIRES: k, width, depth from 1 to kMaxOption.
  explicit TopK(const Options& options);

  // `n` more occurrences; the item that had to leave the list for it, if any. REQUIRES: n >= 1.
  std::optional<std::string> Add(std::string_view item, uint64_t n);
  // Whether it is in the list.
  bool Listed(std::string_view item) const;
  // 0 when it has no counter.
  uint64_t Count(std::string_view item) const;
  // The list, highest count first, of equal ones the one that changed longest ago.
  std::vector<Item> List() const;

  const Options& options() const { return options_; }
  uint64_t capacity() const { return capacity_; }

  static const TypeInfo& Type();
  const TypeInfo& type() const override { return Type(); }
  std::string_view encoding() const override { return "raw"; }
  size_t size() const override { return nodes_.size(); }
  size_t MemoryUsage(size_t samples) const override;
  std::unique_ptr<Object> Copy() const override;
  uint8_t rdb_type() const override;
  void Save(Writer& out) const override;
  void Digest(const std::function<void(std::string_view)>& add) const override;
  bool large() const override { return nodes_.size() > kLarge; }
  void BeginCut(const PieceSink& sink, bool refer) override;
  bool SavePieces(size_t budget) override { return cut_.SaveSome(budget); }
  void AbortCut() override { cut_.Abort(); }

 private:
  static constexpr size_t kLarge = 1024;  // counters: some 64 KB
  static constexpr size_t kBlock = 256;

  struct Node {
    std::string text;
    uint64_t count = 0;
    uint64_t error = 0;
    uint64_t turn = 0;   // when it changed last, in calls of Add
    uint32_t place = 0;  // in its heap
    bool listed = false;
  };
  using Block = std::vector<Node>;
  // Node numbers, the lowest first.
  using Heap = std::vector<uint32_t>;

  static std::unique_ptr<Object> Load(uint8_t rdb_type, Reader& in);
  uint32_t Find(std::string_view item) const;
  bool Lower(uint32_t a, uint32_t b) const;
  Heap& HeapOf(const Node& node) { return node.listed ? list_ : rest_; }
  void Put(Heap& heap, size_t place, uint32_t node);
  void Push(Heap& heap, uint32_t node);
  void SiftUp(Heap& heap, size_t place);
  void SiftDown(Heap& heap, size_t place);
  void BeforeChange(uint32_t node) { cut_.BeforeChange(node / kBlock); }
  uint32_t NewNode(std::string_view item);
  std::optional<std::string> Promote(uint32_t node);
  size_t blocks() const { return (nodes_.size() + kBlock - 1) / kBlock; }
  void SaveHead(Writer& out) const;
  void SaveBlock(size_t block, size_t end, Writer& out) const;
  bool LoadOptions(Reader& in);
  bool LoadBlock(const std::string& bytes, uint64_t count, std::vector<Block>* all) const;
  bool Assemble();

  Options options_;
  uint64_t capacity_;
  uint64_t turn_ = 0;
  std::deque<Node> nodes_;
  TextTable table_;
  Heap list_;  // at most k
  Heap rest_;  // all others, none above any of the list
  BlockCut cut_;
};

}  // namespace sava::types
