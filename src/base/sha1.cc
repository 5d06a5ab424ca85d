#include "base/sha1.h"

#include <bit>
#include <cstddef>
#include <cstring>

namespace sava::base {

namespace {

using Sha1State = std::array<uint32_t, 5>;

constexpr size_t kSha1Block = 64;

void AddBlock(const uint8_t* block, Sha1State* state) {
  std::array<uint32_t, 80> w;
  for (size_t i = 0; i < 16; ++i) {
    w[i] = static_cast<uint32_t>(block[4 * i]) << 24 |
           static_cast<uint32_t>(block[4 * i + 1]) << 16 |
           static_cast<uint32_t>(block[4 * i + 2]) << 8 | block[4 * i + 3];
  }
  for (size_t i = 16; i < 80; ++i) {
    w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  }
  auto [a, b, c, d, e] = *state;
  for (size_t i = 0; i < 80; ++i) {
    uint32_t f = 0;
    uint32_t k = 0;
    if (i < 20) {
      f = (b & c) | (~b & d);
      k = 0x5a827999;
    } else if (i < 40) {
      f = b ^ c ^ d;
      k = 0x6ed9eba1;
    } else if (i < 60) {
      f = (b & c) | (b & d) | (c & d);
      k = 0x8f1bbcdc;
    } else {
      f = b ^ c ^ d;
      k = 0xca62c1d6;
    }
    const uint32_t next = std::rotl(a, 5) + f + e + k + w[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  (*state)[0] += a;
  (*state)[1] += b;
  (*state)[2] += c;
  (*state)[3] += d;
  (*state)[4] += e;
}

}  // namespace

Sha1Digest Sha1(std::string_view bytes) {
  Sha1State state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t rest = bytes.size();
  for (; rest >= kSha1Block; rest -= kSha1Block, data += kSha1Block) AddBlock(data, &state);
  // The end: a one bit, zeros, the length in bits.
  std::array<uint8_t, 2 * kSha1Block> last{};
  if (rest > 0) memcpy(last.data(), data, rest);
  last[rest] = 0x80;
  const size_t size = rest + 9 <= kSha1Block ? kSha1Block : 2 * kSha1Block;
  const uint64_t bits = static_cast<uint64_t>(bytes.size()) * 8;
  for (size_t i = 0; i < 8; ++i) last[size - 1 - i] = static_cast<uint8_t>(bits >> (8 * i));
  for (size_t at = 0; at < size; at += kSha1Block) AddBlock(last.data() + at, &state);
  Sha1Digest digest;
  for (size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  }
  return digest;
}

}  // namespace sava::base
