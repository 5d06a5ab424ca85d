// HugeBlocks: memory in blocks that all live as long as their owner, for structures in which one
// jumps about. The first 8 MB come block by block; what follows comes in whole regions of the
// shared PagePool, and so in huge pages beyond its first ones: much of the time such structures
// take goes to finding out where their pages are.
//
// Thread safety: none; used under its owner's lock. It may be freed on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "base/large_memory.h"
#include "base/page_pool.h"

namespace sava::base {

class HugeBlocks {
 public:
  HugeBlocks() = default;
  HugeBlocks(const HugeBlocks&) = delete;
  HugeBlocks& operator=(const HugeBlocks&) = delete;
  ~HugeBlocks() { Clear(); }

  // A block that begins with a cache line. Its bytes are not set. REQUIRES: bytes <= kSlab / 16.
  char* Allocate(size_t bytes) {
    const size_t size = (bytes + kLine - 1) / kLine * kLine;
    if (total_ + size > kSmall) return FromSlab(size);
    blocks_.push_back(nullptr);
    blocks_.back() = static_cast<char*>(AlignedMemory(kLine, size));
    if (blocks_.back() == nullptr) throw std::bad_alloc();
    total_ += size;
    return blocks_.back();
  }

  void Clear() {
    for (char* const block : blocks_) FreeAligned(block);
    for (char* const slab : slabs_) {
      if (slab != nullptr) PagePool::Shared().Free(slab, PagePool::kPages);
    }
    blocks_ = {};
    slabs_ = {};
    left_ = total_ = 0;
  }

  // Bytes held that were not given out.
  size_t slack() const { return left_; }

  static constexpr size_t kSlab = PagePool::kRegion;

 private:
  static constexpr size_t kLine = 64;
  static constexpr size_t kSmall = 8 << 20;

  char* FromSlab(size_t size) {
    if (left_ < size) {
      slabs_.push_back(nullptr);  // and stays so when there is no memory
      slabs_.back() = next_ = static_cast<char*>(PagePool::Shared().Allocate(PagePool::kPages));
      left_ = kSlab;
    }
    left_ -= size;
    return std::exchange(next_, next_ + size);
  }

  std::vector<char*> blocks_;
  std::vector<char*> slabs_;
  char* next_ = nullptr;  // left_ bytes of the last slab are free from here on
  size_t left_ = 0;
  size_t total_ = 0;  // given out in blocks
};

}  // namespace sava::base
