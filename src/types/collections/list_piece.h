// What a List is made of: blocks of memory with entries in them, and the pieces of its directory,
// each the part of a block that is in use.
//
// Thread safety: as their list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "types/collections/encoded_entries.h"
#include "types/collections/list_entry.h"
#include "types/collections/packed_forms.h"

namespace sava::types {

enum class ListEnd : uint8_t { kHead, kTail };

// Memory of a block; `capacity` bytes follow it.
struct ListBlock {
  uint32_t capacity;
  uint32_t refs : 31;    // the list's own, and the cut's
  uint32_t encoded : 1;  // it holds EncodedEntries
  char* data() { return reinterpret_cast<char*>(this + 1); }
};
// The capacity of an ordinary one.
inline constexpr size_t kListBlock = 8192 - sizeof(ListBlock);

// The part of a block that is in use, and its elements. Of an encoded block `end` says how many
// bytes they would take, and first() and last() are not to be asked for.
struct ListPiece {
  ListBlock* block = nullptr;
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t count = 0;
  uint32_t skipped = 0;  // elements of an encoded block before those in use

  bool encoded() const { return block->encoded != 0; }
  EncodedEntries entries() const {
    return EncodedEntries(std::string_view(block->data(), block->capacity));
  }
  // Element `number` of an encoded one.
  PackedItem item(size_t number) const {
    PackedItem item;
    list_entry::Read(entries()[skipped + number].data(), &item);
    return item;
  }
  size_t bytes() const { return end - begin; }
  char* first() const { return block->data() + begin; }
  char* last() const { return block->data() + end; }
  bool shared() const { return block->refs > 1; }
  // Bytes free at a side; none beside a large element, which stays alone.
  size_t room(ListEnd side) const {
    if (block->capacity > kListBlock || encoded()) return 0;
    return side == ListEnd::kHead ? begin : block->capacity - end;
  }
};

}  // namespace sava::types
