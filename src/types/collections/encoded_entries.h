// EncodedEntries: a block of packed entries (list_entry.h) in which values repeat,
// dictionary-encoded with bit-packing: every distinct entry once, and one number in the fewest bits
// for each entry. Lists keep their inner blocks so, streams the blocks that take no more entries,
// where that saves a quarter or more. Files never hold this form; docs/formats/encodings.md
// describes the bytes:
//
//   head      count (4 bytes), distinct (2), width in bits (1), 0 (1)
//   ends      distinct times 2 bytes: where each distinct entry ends, from the first one's begin
//   numbers   count times width bits (base/bit_packing.h)
//   entries   the distinct ones, in order of first appearance
//
// Any entry is found at once, so that reading needs no decoding. Never changed: who wants to change
// an entry expands the block first.
//
// Thread safety: reading from any thread; EncodeEntries has scratch memory for each thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/bit_packing.h"

namespace sava::types {

// Encodes `count` well-formed entries to *out; false when that saves less than a quarter, and then
// *out may hold anything. A look at the first entries mostly says no. Throws without memory.
bool EncodeEntries(std::string_view entries, size_t count, std::string* out);

// A view of what EncodeEntries made; more bytes may follow.
class EncodedEntries {
 public:
  explicit EncodedEntries(std::string_view bytes) : bytes_(bytes) {
    memcpy(&head_, bytes.data(), sizeof head_);
  }

  size_t count() const { return head_.count; }
  size_t distinct() const { return head_.distinct; }
  // The bytes of entry `i`. REQUIRES: i < count().
  std::string_view operator[](size_t i) const {
    const size_t number =
        base::PackedAt({reinterpret_cast<const uint8_t*>(bytes_.data()) + numbers_at(),
                        bytes_.size() - numbers_at()},
                       head_.width, i);
    const size_t begin = number == 0 ? 0 : End(number - 1);
    return bytes_.substr(entries_at() + begin, End(number) - begin);
  }
  // Bytes of `n` entries from `first` on.
  size_t Size(size_t first, size_t n) const {
    size_t bytes = 0;
    for (size_t i = first; i < first + n; ++i) bytes += (*this)[i].size();
    return bytes;
  }
  // Writes them as they were; returns what is behind.
  char* Expand(size_t first, size_t n, char* out) const {
    for (size_t i = first; i < first + n; ++i) {
      const std::string_view entry = (*this)[i];
      memcpy(out, entry.data(), entry.size());
      out += entry.size();
    }
    return out;
  }

 private:
  friend bool EncodeEntries(std::string_view entries, size_t count, std::string* out);

  struct Head {
    uint32_t count;
    uint16_t distinct;
    uint8_t width;
    uint8_t zero;
  };
  static_assert(sizeof(Head) == 8);

  size_t numbers_at() const { return sizeof(Head) + size_t{head_.distinct} * 2; }
  size_t entries_at() const { return numbers_at() + base::PackedSize(head_.count, head_.width); }
  size_t End(size_t number) const {
    uint16_t end = 0;
    memcpy(&end, bytes_.data() + sizeof(Head) + number * 2, sizeof end);
    return end;
  }

  std::string_view bytes_;
  Head head_;
};

// How many blocks of a type are encoded, and their bytes, for MEMORY STATS.
struct EncodedTotals {
  std::atomic<size_t> blocks{0};
  std::atomic<size_t> bytes{0};

  void Add(size_t size) {
    blocks.fetch_add(1, std::memory_order_relaxed);
    bytes.fetch_add(size, std::memory_order_relaxed);
  }
  void Remove(size_t size) {
    blocks.fetch_sub(1, std::memory_order_relaxed);
    bytes.fetch_sub(size, std::memory_order_relaxed);
  }
};

}  // namespace sava::types
