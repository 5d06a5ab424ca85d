// SmallBlock: one block of memory that a small collection is packed into: a head, then bytes. Large
// collections begin with the same head, so that a pointer to it is all their objects hold.
//
// A block is as large as the allocator's size for the bytes in use; so its capacity is not stored.
// Thread safety: as the object it belongs to.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

namespace sava::types {

struct SmallBlock {
  uint8_t form;
  uint8_t encoding;
  uint8_t detail;  // the owner's
  uint8_t more;    // the owner's
  uint32_t count;
  uint32_t used;  // bytes behind the head

  char* data() { return reinterpret_cast<char*>(this + 1); }
  const char* data() const { return reinterpret_cast<const char*>(this + 1); }
  std::string_view bytes() const { return {data(), used}; }

  // The size of the block that holds that many bytes.
  static size_t BlockFor(size_t used) {
    const size_t bytes = sizeof(SmallBlock) + used;
    if (bytes <= 16) return 16;
    const size_t step = bytes <= 128 ? 16 : size_t{1} << (std::bit_width(bytes - 1) - 3);
    return (bytes + step - 1) & ~(step - 1);
  }
  static SmallBlock* New(uint8_t form, uint8_t encoding) {
    auto* block = static_cast<SmallBlock*>(malloc(BlockFor(0)));
    if (block == nullptr) throw std::bad_alloc();
    *block = {.form = form, .encoding = encoding, .detail = 0, .more = 0, .count = 0, .used = 0};
    return block;
  }
  static SmallBlock* Copy(const SmallBlock* from) {
    auto* block = static_cast<SmallBlock*>(malloc(BlockFor(from->used)));
    if (block == nullptr) throw std::bad_alloc();
    memcpy(block, from, sizeof(SmallBlock) + from->used);
    return block;
  }
  // The block with that many bytes in use; what it held stays. Less never needs memory.
  static SmallBlock* Resize(SmallBlock* block, size_t used) {
    if (BlockFor(used) != BlockFor(block->used)) {
      auto* moved = static_cast<SmallBlock*>(realloc(block, BlockFor(used)));
      if (moved == nullptr && used > block->used) throw std::bad_alloc();
      if (moved != nullptr) block = moved;
    }
    block->used = static_cast<uint32_t>(used);
    return block;
  }
  // The block with `removed` bytes at `at` replaced by `inserted` bytes, which are not set yet.
  static SmallBlock* Splice(SmallBlock* block, size_t at, size_t removed, size_t inserted) {
    const size_t tail = block->used - at - removed;
    if (inserted > removed) {
      block = Resize(block, block->used + inserted - removed);
      memmove(block->data() + at + inserted, block->data() + at + removed, tail);
    } else if (inserted < removed) {
      memmove(block->data() + at + inserted, block->data() + at + removed, tail);
      block = Resize(block, block->used - (removed - inserted));
    }
    return block;
  }
};
static_assert(sizeof(SmallBlock) == 12);

}  // namespace sava::types
