// The entries a List's blocks are made of: those of Redis's listpack (packed_forms.h), each with
// its back length, so that they can be walked both ways and a block goes into a file as it is.
//
// An entry is canonical: a text that is a number in canonical form is kept as the number, in the
// fewest bytes. So two elements are equal exactly when their entries are equal bytes. The bytes
// read here are our own: nothing is checked.
//
// Thread safety: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/text.h"
#include "types/collections/packed_forms.h"

namespace sava::types::list_entry {

inline size_t BackSize(size_t length) {
  if (length <= 127) return 1;
  if (length < 16383) return 2;
  if (length < 2097151) return 3;
  return length < 268435455 ? 4 : 5;
}

template <typename T>
T Fixed(const char* p) {
  T value;
  memcpy(&value, p, sizeof value);
  return value;
}

// Reads the entry at p; returns where the next one begins.
inline const char* Read(const char* p, PackedItem* item) {
  const auto first = static_cast<uint8_t>(*p);
  if (first < 0x80) {
    item->is_number = true;
    item->number = first;
    return p + 2;
  }
  if (first < 0xC0) {
    const size_t length = first & 0x3F;
    item->is_number = false;
    item->text = {p + 1, length};
    return p + length + 2;
  }
  if (first < 0xE0) {
    const int64_t value = (first & 0x1F) << 8 | static_cast<uint8_t>(p[1]);
    item->is_number = true;
    item->number = value >= 4096 ? value - 8192 : value;
    return p + 3;
  }
  if (first <= 0xF0) {
    const size_t head = first < 0xF0 ? 2 : 5;
    const size_t length =
        head == 2 ? (first & 0x0FU) << 8 | static_cast<uint8_t>(p[1]) : Fixed<uint32_t>(p + 1);
    item->is_number = false;
    item->text = {p + head, length};
    return p + head + length + BackSize(head + length);
  }
  item->is_number = true;
  if (first == 0xF1) {
    item->number = Fixed<int16_t>(p + 1);
    return p + 4;
  }
  if (first == 0xF2) {
    // 24 bits with their sign: through the upper bytes of 32.
    const uint32_t bits = static_cast<uint32_t>(Fixed<uint16_t>(p + 1)) << 8 |
                          static_cast<uint32_t>(static_cast<uint8_t>(p[3])) << 24;
    item->number = static_cast<int32_t>(bits) >> 8;
    return p + 5;
  }
  if (first == 0xF3) {
    item->number = Fixed<int32_t>(p + 1);
    return p + 6;
  }
  item->number = Fixed<int64_t>(p + 1);
  return p + 10;
}

// Where the entry after the one at p begins.
inline const char* Next(const char* p) {
  PackedItem ignored;
  return Read(p, &ignored);
}

// Whether the entry at p, in bytes that go up to `end`, is this one.
inline bool Equal(const char* p, const char* end, std::string_view entry) {
  return *p == entry[0] && static_cast<size_t>(end - p) >= entry.size() &&
         memcmp(p, entry.data(), entry.size()) == 0;
}

// Where the entry begins that ends before `end`.
inline const char* Previous(const char* end) {
  size_t length = 0;
  unsigned shift = 0;
  const char* p = end;
  uint8_t byte = 0;
  do {
    byte = static_cast<uint8_t>(*--p);
    length |= static_cast<size_t>(byte & 127) << shift;
    shift += 7;
  } while ((byte & 128) != 0);
  return p - length;
}

// An element on its way into a block: says how large its entry is, then writes it.
class New {
 public:
  explicit New(std::string_view text) : text_(text) {
    is_number_ = base::ParseInt(text, &number_);
    Measure();
  }
  explicit New(const PackedItem& item)
      : text_(item.text), number_(item.number), is_number_(item.is_number) {
    if (!is_number_) is_number_ = base::ParseInt(text_, &number_);
    Measure();
  }

  size_t size() const { return length_ + back_; }
  // Writes size() bytes.
  void Write(char* out) const {
    if (is_number_) {
      WriteNumber(out);
    } else {
      WriteText(out);
    }
    char* const end = out + length_ + back_;
    for (size_t i = 0; i < back_; ++i) {
      const size_t bits = (length_ >> (7 * i)) & 127;
      end[-1 - static_cast<ptrdiff_t>(i)] = static_cast<char>(bits | (i + 1 == back_ ? 0 : 128));
    }
  }

 private:
  void Measure() {
    if (is_number_) {
      length_ = ListpackSizeOfInt(number_) - 1;
      back_ = 1;
    } else {
      length_ = text_.size() + (text_.size() < 64 ? 1 : text_.size() < 4096 ? 2 : 5);
      back_ = BackSize(length_);
    }
  }

  void WriteNumber(char* out) const {
    switch (length_) {
      case 1:
        out[0] = static_cast<char>(number_);
        break;
      case 2:
        out[0] = static_cast<char>(0xC0 | ((number_ >> 8) & 0x1F));
        out[1] = static_cast<char>(number_);
        break;
      case 9:
        out[0] = static_cast<char>(0xF4);
        memcpy(out + 1, &number_, 8);
        break;
      default:
        out[0] = static_cast<char>(0xEE + length_);
        memcpy(out + 1, &number_, length_ - 1);
    }
  }

  void WriteText(char* out) const {
    const size_t n = text_.size();
    char* p = out;
    if (n < 64) {
      *p++ = static_cast<char>(0x80 | n);
    } else if (n < 4096) {
      *p++ = static_cast<char>(0xE0 | n >> 8);
      *p++ = static_cast<char>(n);
    } else {
      const auto size = static_cast<uint32_t>(n);
      *p++ = static_cast<char>(0xF0);
      memcpy(p, &size, 4);
      p += 4;
    }
    if (n != 0) memcpy(p, text_.data(), n);
  }

  std::string_view text_;
  int64_t number_ = 0;
  bool is_number_ = false;
  size_t length_ = 0;  // without the back length
  size_t back_ = 0;
};

}  // namespace sava::types::list_entry
