// Varints (LEB128): seven bits of a number per byte, the lowest first; the top bit of a byte says
// that another one follows. 10 is 0a, 300 is ac 02, 2^64 - 1 takes ten bytes. Signed numbers are
// folded first (zigzag: 0, -1, 1, -2 … become 0, 1, 2, 3 …), so that small ones stay short.
//
// docs/formats/encodings.md describes the bytes. No state; safe from any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

namespace sava::base {

inline constexpr size_t kMaxVarintBytes = 10;

constexpr size_t VarintSize(uint64_t value) {
  return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7;
}

// Returns how many bytes were written. REQUIRES: room for kMaxVarintBytes at `out`.
inline size_t PutVarint(uint8_t* out, uint64_t value) {
  uint8_t* p = out;
  while (value >= 0x80) {
    *p++ = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  *p++ = static_cast<uint8_t>(value);
  return static_cast<size_t>(p - out);
}

inline void AppendVarint(std::string* out, uint64_t value) {
  uint8_t bytes[kMaxVarintBytes];
  out->append(reinterpret_cast<const char*>(bytes), PutVarint(bytes, value));
}

// Where the number ends, or nullptr if it is cut off at `end`, takes more than ten bytes or does
// not fit 64 bits; *value is then undefined. Needless leading zeros (80 00) are accepted.
inline const uint8_t* GetLongVarint(const uint8_t* p, const uint8_t* end, uint64_t* value) {
  uint64_t result = 0;
  for (unsigned shift = 0; shift < 70 && p != end; shift += 7) {
    const uint64_t byte = *p++;
    if (shift == 63 && byte > 1) return nullptr;
    result |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      *value = result;
      return p;
    }
  }
  return nullptr;
}

inline const uint8_t* GetVarint(const uint8_t* p, const uint8_t* end, uint64_t* value) {
  if (p != end && *p < 0x80) [[likely]] {
    *value = *p;
    return p + 1;
  }
  return GetLongVarint(p, end, value);
}

constexpr uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}

constexpr int64_t UnZigZag(uint64_t value) {
  return static_cast<int64_t>((value >> 1) ^ (0 - (value & 1)));
}

inline void AppendSignedVarint(std::string* out, int64_t value) {
  AppendVarint(out, ZigZag(value));
}

inline const uint8_t* GetSignedVarint(const uint8_t* p, const uint8_t* end, int64_t* value) {
  uint64_t folded = 0;
  p = GetVarint(p, end, &folded);
  if (p != nullptr) *value = UnZigZag(folded);
  return p;
}

}  // namespace sava::base
