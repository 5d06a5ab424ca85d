// HugeBlocks: memory in blocks that all live as long as their owner, for structures in which one
// jumps about. The first 8 MB come block by block; what follows comes in slabs of the size of a
// huge page, which the system is asked to use: much of the time such structures take goes to
// finding out where their pages are.
//
// Thread safety: none; used under its owner's lock. It may be freed on any thread.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

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
    total_ += size;
    if (total_ <= kSmall) return static_cast<char*>(Own(kLine, size));
    if (left_ < size) {
      next_ = static_cast<char*>(Own(kSlab, kSlab));
      left_ = kSlab;
      slabs_from_ = std::min(slabs_from_, owned_.size() - 1);
      // A wish: without huge pages everything works as well, only slower.
      static_cast<void>(madvise(next_, kSlab, MADV_HUGEPAGE));
    }
    left_ -= size;
    return std::exchange(next_, next_ + size);
  }

  void Clear() {
    for (size_t i = 0; i < owned_.size(); ++i) {
      // Who gets these addresses next did not ask for huge pages.
      if (i >= slabs_from_) static_cast<void>(madvise(owned_[i], kSlab, MADV_NOHUGEPAGE));
      std::free(owned_[i]);
    }
    owned_ = {};
    slabs_from_ = SIZE_MAX;
    left_ = total_ = 0;
  }

  // Bytes held that were not given out.
  size_t slack() const { return left_; }

  static constexpr size_t kSlab = 2 << 20;

 private:
  static constexpr size_t kLine = 64;
  static constexpr size_t kSmall = 8 << 20;

  void* Own(size_t alignment, size_t size) {
    owned_.push_back(nullptr);
    owned_.back() = std::aligned_alloc(alignment, size);
    if (owned_.back() == nullptr) throw std::bad_alloc();
    return owned_.back();
  }

  std::vector<void*> owned_;
  size_t slabs_from_ = SIZE_MAX;  // which of them are slabs: those from here on
  char* next_ = nullptr;          // left_ bytes of the last slab are free from here on
  size_t left_ = 0;
  size_t total_ = 0;  // given out
};

}  // namespace sava::base
