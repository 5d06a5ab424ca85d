#include "types/counters/member.h"

#include <array>

namespace sava::types {

namespace {

// Where the 16 bytes stand in the text, and where the hyphens do.
constexpr std::array<uint8_t, kUuidBytes> kPlaces = {0,  2,  4,  6,  9,  11, 14, 16,
                                                     19, 21, 24, 26, 28, 30, 32, 34};
constexpr std::array<uint8_t, 4> kHyphens = {8, 13, 18, 23};

constexpr std::array<uint8_t, 256> MakeNibbles() {
  std::array<uint8_t, 256> table{};
  table.fill(0xff);
  for (uint8_t i = 0; i < 10; ++i) table['0' + i] = i;
  for (uint8_t i = 0; i < 6; ++i) table['a' + i] = static_cast<uint8_t>(10 + i);
  return table;
}

constexpr std::array<char, 512> MakePairs() {
  std::array<char, 512> table{};
  constexpr char kDigits[] = "0123456789abcdef";
  for (size_t i = 0; i < 256; ++i) {
    table[2 * i] = kDigits[i >> 4];
    table[2 * i + 1] = kDigits[i & 15];
  }
  return table;
}

constexpr std::array<uint8_t, 256> kNibbles = MakeNibbles();
constexpr std::array<char, 512> kPairs = MakePairs();

}  // namespace

bool PackUuid(std::string_view text, char* out) {
  for (const uint8_t at : kHyphens) {
    if (text[at] != '-') return false;
  }
  uint8_t bad = 0;
  for (size_t i = 0; i < kUuidBytes; ++i) {
    const uint8_t high = kNibbles[static_cast<uint8_t>(text[kPlaces[i]])];
    const uint8_t low = kNibbles[static_cast<uint8_t>(text[kPlaces[i] + 1U])];
    bad = static_cast<uint8_t>(bad | high | low);
    out[i] = static_cast<char>((high << 4) | low);
  }
  return bad < 16;
}

void UnpackUuid(const char* bytes, char* text) {
  for (const uint8_t at : kHyphens) text[at] = '-';
  for (size_t i = 0; i < kUuidBytes; ++i) {
    memcpy(text + kPlaces[i],
           kPairs.data() + 2 * static_cast<size_t>(static_cast<uint8_t>(bytes[i])), 2);
  }
}

}  // namespace sava::types
