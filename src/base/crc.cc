#include "base/crc.h"

#include <array>
#include <cstring>

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

}  // namespace

uint64_t Crc64(uint64_t crc, std::string_view data) {
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
