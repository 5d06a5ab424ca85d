// The bits of a page of a FingerprintTable, in memory and saved. Only fingerprint_table.cc and
// fingerprint_page.cc need it.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "types/filters/fingerprint_table.h"

namespace sava::types {

// ---- bit arrays: words, the lowest bit first ----

inline size_t WordsFor(size_t bits) { return (bits + 63) / 64; }
inline bool HasBit(const uint64_t* words, size_t at) {
  return (words[at / 64] >> (at % 64) & 1) != 0;
}
inline void SetBit(uint64_t* words, size_t at) { words[at / 64] |= uint64_t{1} << (at % 64); }
inline uint64_t LowBits(unsigned count) { return (uint64_t{1} << count) - 1; }

// REQUIRES: width <= 56 and eight readable bytes from the first one on.
inline uint64_t GetBits(const uint64_t* words, size_t at, unsigned width) {
  uint64_t word = 0;
  memcpy(&word, reinterpret_cast<const char*>(words) + at / 8, sizeof word);
  return word >> (at % 8) & LowBits(width);
}

// REQUIRES: the bits there are zero.
inline void PutBits(uint64_t* words, size_t at, unsigned width, uint64_t value) {
  if (width == 0) return;
  words[at / 64] |= value << (at % 64);
  if (at % 64 + width > 64) words[at / 64 + 1] |= value >> (64 - at % 64);
}

// Makes room for `width` bits at `at` and puts a value there; what is behind moves up.
inline void InsertBits(uint64_t* words, size_t count, size_t at, unsigned width, uint64_t value) {
  if (width == 0) return;
  const size_t first = at / 64;
  const uint64_t below = LowBits(at % 64);
  for (size_t i = count - 1; i > first; --i) {
    const uint64_t from = i - 1 == first ? words[first] & ~below : words[i - 1];
    words[i] = words[i] << width | from >> (64 - width);
  }
  words[first] = (words[first] & below) | (words[first] & ~below) << width;
  PutBits(words, at, width, value);
}

inline void EraseBits(uint64_t* words, size_t count, size_t at, unsigned width) {
  if (width == 0) return;
  const size_t first = at / 64;
  const uint64_t below = LowBits(at % 64);
  for (size_t i = first; i < count; ++i) {
    const uint64_t from = i + 1 < count ? words[i + 1] : 0;
    const uint64_t moved = words[i] >> width | from << (64 - width);
    words[i] = i == first ? (words[i] & below) | (moved & ~below) : moved;
  }
}

// The place of zero number `rank`. REQUIRES: there is one.
inline size_t SelectZero(const uint64_t* words, size_t rank) {
  size_t at = 0;
  uint64_t zeros = ~words[0];
  for (size_t here = static_cast<size_t>(std::popcount(zeros)); here <= rank;
       here = static_cast<size_t>(std::popcount(zeros))) {
    rank -= here;
    zeros = ~words[++at];
  }
  size_t bit = 0;
  for (unsigned step = 32; step != 0; step /= 2) {
    const auto low = static_cast<size_t>(std::popcount(zeros & LowBits(step)));
    if (low > rank) continue;
    rank -= low;
    zeros >>= step;
    bit += step;
  }
  return at * 64 + bit;
}

// ---- the parts of a fingerprint in a page of some depth ----

inline uint64_t QuotientOf(uint64_t hash, unsigned depth) { return hash << depth >> 56; }
inline uint64_t RemainderOf(uint64_t hash, unsigned depth, unsigned width) {
  return width == 0 ? 0 : hash << (depth + 8) >> (64 - width);
}
inline uint64_t HashOf(uint64_t quotient, uint64_t remainder, unsigned depth, unsigned width) {
  const uint64_t high = quotient << 56 >> depth;
  return width == 0 ? high : high | remainder << (64 - width) >> (depth + 8);
}

struct FingerprintTable::Page {
  uint32_t count;
  uint8_t depth;
  uint8_t epoch;
  uint8_t counted;  // whether there are counts
  uint8_t unused;

  static size_t BitmapWords(size_t count) { return WordsFor(256 + count); }
  // With eight bytes at the end that GetBits may read.
  static size_t Bytes(size_t count, unsigned width, bool counted) {
    return sizeof(Page) + (BitmapWords(count) + WordsFor(count * width) + 1) * sizeof(uint64_t) +
           (counted ? count : 0);
  }
  uint64_t* words() { return reinterpret_cast<uint64_t*>(this + 1); }
  const uint64_t* words() const { return reinterpret_cast<const uint64_t*>(this + 1); }
  uint64_t* remainders() { return words() + BitmapWords(count); }
  const uint64_t* remainders() const { return words() + BitmapWords(count); }
  uint8_t* counts(unsigned width) {
    return reinterpret_cast<uint8_t*>(remainders() + WordsFor(count * width));
  }
  const uint8_t* counts(unsigned width) const {
    return reinterpret_cast<const uint8_t*>(remainders() + WordsFor(count * width));
  }
  void Append(uint64_t prefix, unsigned width, std::string* out) const;
};

// Reads saved pages one by one and checks them.
class PageReader {
 public:
  PageReader(std::string_view piece, unsigned bits)
      : at_(reinterpret_cast<const uint8_t*>(piece.data())),
        end_(at_ + piece.size()),
        bits_(bits) {}

  // False at the end, and when what follows is no page.
  bool Next();
  bool ok() const { return ok_; }
  uint64_t prefix() const { return prefix_; }
  unsigned depth() const { return depth_; }
  const std::vector<uint64_t>& hashes() const { return hashes_; }
  const std::vector<uint8_t>& counts() const { return counts_; }

 private:
  bool Read();
  // Copies whole bytes behind each other into words that GetBits may read.
  const uint64_t* Take(size_t bits, std::vector<uint64_t>* words);

  const uint8_t* at_;
  const uint8_t* end_;
  unsigned bits_;
  bool ok_ = true;
  uint64_t prefix_ = 0;
  unsigned depth_ = 0;
  std::vector<uint64_t> hashes_;
  std::vector<uint8_t> counts_;
  std::vector<uint64_t> bitmap_;
  std::vector<uint64_t> remainders_;
};

}  // namespace sava::types
