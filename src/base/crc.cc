#include "base/crc.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sava::base {

namespace {

constexpr uint64_t kPolynomial64 = 0x95ac9329ac4bc9b5ULL;  // 0xad93d23594c935a9 with bits reversed

constexpr std::array<std::array<uint64_t, 256>, 8> MakeTables() {
  std::array<std::array<uint64_t, 256>, 8> tables{};
  for (unsigned i = 0; i < 256; ++i) {
    uint64_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ kPolynomial64 : crc >> 1;
    tables[0][i] = crc;
  }
  for (unsigned i = 0; i < 256; ++i) {
    for (size_t k = 1; k < 8; ++k) {
      const uint64_t previous = tables[k - 1][i];
      tables[k][i] = tables[0][previous & 0xff] ^ (previous >> 8);
    }
  }
  return tables;
}

constexpr std::array<std::array<uint64_t, 256>, 8> kTables64 = MakeTables();

constexpr std::array<uint16_t, 256> MakeTable16() {
  std::array<uint16_t, 256> table{};
  for (unsigned i = 0; i < 256; ++i) {
    unsigned crc = i << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000) != 0 ? (crc << 1) ^ 0x1021 : crc << 1;
    table[i] = static_cast<uint16_t>(crc);
  }
  return table;
}

constexpr std::array<uint16_t, 256> kTable16 = MakeTable16();

uint64_t ByTables(uint64_t crc, std::string_view data) {
  const char* p = data.data();
  size_t n = data.size();
  while (n >= 8) {
    uint64_t word;
    memcpy(&word, p, 8);
    crc ^= word;
    crc = kTables64[7][crc & 0xff] ^ kTables64[6][(crc >> 8) & 0xff] ^
          kTables64[5][(crc >> 16) & 0xff] ^ kTables64[4][(crc >> 24) & 0xff] ^
          kTables64[3][(crc >> 32) & 0xff] ^ kTables64[2][(crc >> 40) & 0xff] ^
          kTables64[1][(crc >> 48) & 0xff] ^ kTables64[0][crc >> 56];
    p += 8;
    n -= 8;
  }
  while (n-- > 0) crc = kTables64[0][(crc ^ static_cast<unsigned char>(*p++)) & 0xff] ^ (crc >> 8);
  return crc;
}

#if defined(__x86_64__)

// x to the power of n modulo the polynomial, bits reversed.
constexpr uint64_t Power(int n) {
  uint64_t power = uint64_t{1} << 63;
  for (; n > 0; --n) power = (power >> 1) ^ ((power & 1) != 0 ? kPolynomial64 : 0);
  return power;
}

// What two 64-bit halves are multiplied with to stand `distance` bits later. A product of reversed
// numbers is one bit short, hence the ones.
struct Shift {
  explicit constexpr Shift(int distance)
      : first(Power(distance + 63)), second(Power(distance - 1)) {}
  uint64_t first;
  uint64_t second;
};

__attribute__((target("pclmul"))) inline __m128i Shifted(__m128i x, const Shift& by) {
  const __m128i factors =
      _mm_set_epi64x(static_cast<int64_t>(by.second), static_cast<int64_t>(by.first));
  return _mm_xor_si128(_mm_clmulepi64_si128(x, factors, 0x00),
                       _mm_clmulepi64_si128(x, factors, 0x11));
}

// Four times 128 bits are carried along, each moved by 512 and added to what stands there: what is
// left has the same remainder (V. Gopal et al., Fast CRC Computation for Generic Polynomials Using
// PCLMULQDQ Instruction, Intel 2009). REQUIRES: 64 bytes or more.
__attribute__((target("pclmul"))) uint64_t ByProducts(uint64_t crc, std::string_view data) {
  static constexpr Shift kFour(512);
  static constexpr Shift kOne(128);
  const auto take = [&data]() __attribute__((target("pclmul"))) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data.data()));
    data.remove_prefix(16);
    return x;
  };
  __m128i a = _mm_xor_si128(take(), _mm_cvtsi64_si128(static_cast<int64_t>(crc)));
  __m128i b = take();
  __m128i c = take();
  __m128i d = take();
  while (data.size() >= 64) {
    a = _mm_xor_si128(Shifted(a, kFour), take());
    b = _mm_xor_si128(Shifted(b, kFour), take());
    c = _mm_xor_si128(Shifted(c, kFour), take());
    d = _mm_xor_si128(Shifted(d, kFour), take());
  }
  b = _mm_xor_si128(Shifted(a, kOne), b);
  c = _mm_xor_si128(Shifted(b, kOne), c);
  d = _mm_xor_si128(Shifted(c, kOne), d);
  while (data.size() >= 16) d = _mm_xor_si128(Shifted(d, kOne), take());
  char rest[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), d);
  return ByTables(ByTables(0, {rest, sizeof(rest)}), data);
}

#endif

}  // namespace

uint64_t Crc64(uint64_t crc, std::string_view data) {
#if defined(__x86_64__)
  static const bool has_products = __builtin_cpu_supports("pclmul") != 0;
  if (data.size() >= 64 && has_products) return ByProducts(crc, data);
#endif
  return ByTables(crc, data);
}

uint16_t Crc16(std::string_view data) {
  uint16_t crc = 0;
  for (const char c : data) {
    crc = static_cast<uint16_t>((crc << 8) ^
                                kTable16[((crc >> 8) ^ static_cast<unsigned char>(c)) & 0xff]);
  }
  return crc;
}

uint16_t KeySlot(std::string_view key) {
  const size_t open = key.find('{');
  if (open != std::string_view::npos) {
    const size_t close = key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1) {
      key = key.substr(open + 1, close - open - 1);
    }
  }
  return Crc16(key) & 16383;
}

}  // namespace sava::base
