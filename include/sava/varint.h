// Varints (LEB128): seven bits of a number in each byte, the lowest first; the top bit of a byte
// says that another one follows. Signed numbers are folded first, so that small ones stay short.
//
//   std::string bytes;
//   sava::AppendVarint(&bytes, 300);                       // ac 02
//   std::string_view rest = bytes;
//   std::optional<std::uint64_t> n = sava::TakeVarint(&rest);   // 300
//
// Header only. No state; safe from any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sava {

// How many bytes a number takes: 1 to 10.
constexpr std::size_t VarintSize(std::uint64_t value) {
  return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
}

inline void AppendVarint(std::string* out, std::uint64_t value) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(static_cast<unsigned char>(value | 0x80)));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

// The number at the front of *bytes, which then begins behind it. Nothing, with *bytes as it was,
// when the number is cut off or does not fit 64 bits.
inline std::optional<std::uint64_t> TakeVarint(std::string_view* bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes->size() && i < 10; ++i) {
    const auto byte = static_cast<unsigned char>((*bytes)[i]);
    if (i == 9 && byte > 1) return std::nullopt;
    value |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      bytes->remove_prefix(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

// 0, -1, 1, -2 … become 0, 1, 2, 3 …
constexpr std::uint64_t ZigZag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
constexpr std::int64_t UnZigZag(std::uint64_t value) {
  return static_cast<std::int64_t>((value >> 1) ^ (0 - (value & 1)));
}

inline void AppendSignedVarint(std::string* out, std::int64_t value) {
  AppendVarint(out, ZigZag(value));
}
inline std::optional<std::int64_t> TakeSignedVarint(std::string_view* bytes) {
  const std::optional<std::uint64_t> folded = TakeVarint(bytes);
  if (!folded) return std::nullopt;
  return UnZigZag(*folded);
}

}  // namespace sava
