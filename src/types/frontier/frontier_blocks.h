// What a frontier keeps its hosts, items and names in: blocks that a snapshot can save one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/huge_blocks.h"
#include "types/frontier/frontier_arena.h"
#include "types/value/block_cut.h"

namespace sava::types {

// A FIFO of one host: its URLs of one depth and priority.
struct FrontierQueue {
  uint16_t depth = 0;
  int16_t priority = 0;
  FrontierArena::Ref head = FrontierArena::kNone;
  FrontierArena::Ref tail = FrontierArena::kNone;
  uint32_t count = 0;
  uint16_t head_at = 0;  // where the first record begins in its chunk
  uint16_t tail_at = 0;  // where the last one ends in its chunk
};

struct FrontierHost {
  static constexpr uint32_t kDefaultLimit = UINT32_MAX;

  int64_t next_at = 0;
  int64_t blocked_until = 0;
  int32_t delay = -1;  // as the options say
  uint32_t limit = kDefaultLimit;
  uint32_t queued = 0;
  uint32_t delayed = 0;
  uint32_t leased = 0;
  uint32_t name = 0;
  FrontierArena::Ref more =
      FrontierArena::kNone;  // chunks of up to kQueuesPerChunk FIFOs; all but the first are full
  uint32_t more_count = 0;
  FrontierQueue first;
  int64_t ready_at() const { return next_at > blocked_until ? next_at : blocked_until; }
};

// A URL that stands in no FIFO: delayed, leased or dead.
struct FrontierItem {
  enum class State : uint8_t { kFree, kDelayed, kLeased, kDead };

  int64_t time = 0;  // when it comes, or the lease ends, or it died
  uint64_t id = 0;
  uint32_t host = 0;
  FrontierArena::Ref text = FrontierArena::kNone;
  uint16_t depth = 0;
  int16_t priority = 0;
  State state = State::kFree;
};

// An array in blocks; a change asks for its element by Edit, which saves its block first
// if a cut is under way.
template <typename T, size_t kCount>
class FrontierArray {
 public:
  static constexpr size_t kPerBlock = kCount;

  size_t size() const { return size_; }
  const T& operator[](size_t i) const { return blocks_[i / kCount][i % kCount]; }
  T& Edit(size_t i) {
    cut_.BeforeChange(i / kCount);
    return blocks_[i / kCount][i % kCount];
  }
  T& Append() {
    Reserve();
    return Edit(size_++);
  }
  // Takes the memory that the next Append needs.
  void Reserve() {
    if (size_ % kCount == 0 && size_ / kCount == blocks_.size()) {
      T* const block = reinterpret_cast<T*>(memory_.Allocate(kCount * sizeof(T)));
      std::uninitialized_value_construct_n(block, kCount);
      blocks_.push_back(block);
    }
  }
  void Clear() {
    blocks_.clear();
    blocks_.shrink_to_fit();
    memory_.Clear();
    size_ = 0;
  }
  size_t blocks() const { return (size_ + kCount - 1) / kCount; }
  size_t bytes() const {
    return blocks_.size() * kCount * sizeof(T) + memory_.slack() +
           blocks_.capacity() * sizeof(void*);
  }
  BlockCut& cut() { return cut_; }

 private:
  static_assert(std::is_trivially_destructible_v<T>);
  base::HugeBlocks memory_;
  std::vector<T*> blocks_;
  size_t size_ = 0;
  BlockCut cut_;
};

// Host names behind each other; they stay for good.
class FrontierNames {
 public:
  uint32_t Add(std::string_view name);
  std::string_view Get(uint32_t name) const {
    const char* const at = blocks_[name >> 12].get() + (name & 0xfff) * 4;
    uint16_t size = 0;
    memcpy(&size, at, sizeof size);
    return {at + sizeof size, size};
  }
  const char* Address(uint32_t name) const {
    return blocks_[name >> 12].get() + (name & 0xfff) * 4;
  }
  bool full() const { return blocks_.size() >= (size_t{1} << 20) - 1; }
  void Clear();
  size_t bytes() const;

 private:
  static constexpr size_t kBlock = 16 << 10;
  std::vector<std::unique_ptr<char[]>> blocks_;
  size_t used_ = kBlock;  // of the last one
};

}  // namespace sava::types
