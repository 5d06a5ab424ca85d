// SHA-256 (FIPS 180-4): passwords are shown as their hash, and DEBUG DIGEST is made of it.
// Not for bulk data: a plain loop, about 200 MB/s.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sava::base {

class Sha256 {
 public:
  using Digest = std::array<uint8_t, 32>;

  void Add(std::string_view bytes);
  // The hash of all that was added. REQUIRES: called once, last.
  Digest Finish();

 private:
  void Block(const uint8_t* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_{};
  uint64_t length_ = 0;
};

// 64 lower-case hexadecimal digits.
std::string Sha256Hex(std::string_view bytes);

// Lower-case hexadecimal digits of the bytes.
std::string HexText(const uint8_t* bytes, size_t size);

}  // namespace sava::base
