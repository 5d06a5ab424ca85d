// The bit functions behind the bitmap commands; see bitmaps.h.
#include <algorithm>
#include <bit>
#include <cstring>

#include "commands/redis/bitmaps.h"

namespace sava::commands::bits {

namespace {

constexpr size_t kWord = sizeof(uint64_t);
// BITOP goes through all sources block by block, so that the result stays in the first-level cache.
constexpr size_t kBlock = 8 * 1024;

uint64_t LoadWord(const char* p) {
  uint64_t word;
  memcpy(&word, p, kWord);
  return word;
}

// The word whose most significant bit is the first of the eight bytes.
uint64_t LoadOrdered(const char* p) {
  const uint64_t word = LoadWord(p);
  return std::endian::native == std::endian::little ? __builtin_bswap64(word) : word;
}

uint8_t Byte(std::string_view bytes, size_t i) { return static_cast<uint8_t>(bytes[i]); }

// Bits of a range's first byte that belong to it, and of its last.
uint8_t HeadMask(int64_t first) { return static_cast<uint8_t>(0xff >> (first & 7)); }
uint8_t TailMask(int64_t last) { return static_cast<uint8_t>(0xff << (7 - (last & 7))); }

template <typename Operate>
void Fold(char* out, const char* source, size_t size, const Operate& operate) {
  size_t i = 0;
  for (; i + kWord <= size; i += kWord) {
    const uint64_t word = operate(LoadWord(out + i), LoadWord(source + i));
    memcpy(out + i, &word, kWord);
  }
  for (; i < size; ++i) {
    out[i] =
        static_cast<char>(operate(static_cast<uint8_t>(out[i]), static_cast<uint8_t>(source[i])));
  }
}

// Folds the part of a source that is there into a block of the result.
void FoldBlock(Operation operation, std::string_view source, char* out, size_t size) {
  const size_t common = std::min(source.size(), size);
  switch (operation) {
    case Operation::kAnd:
      Fold(out, source.data(), common, [](uint64_t a, uint64_t b) { return a & b; });
      memset(out + common, 0, size - common);
      break;
    case Operation::kOr:
      Fold(out, source.data(), common, [](uint64_t a, uint64_t b) { return a | b; });
      break;
    case Operation::kXor:
      Fold(out, source.data(), common, [](uint64_t a, uint64_t b) { return a ^ b; });
      break;
    case Operation::kNot:
      Fold(out, source.data(), common, [](uint64_t, uint64_t b) { return ~b; });
      break;
  }
}

// Up to nine bytes from the byte in which a field starts, as one number of 72 bits.
unsigned __int128 LoadSpan(std::string_view bytes, uint64_t first) {
  unsigned __int128 span = 0;
  for (uint64_t i = first; i < first + 9; ++i) {
    span = span << 8 | (i < bytes.size() ? Byte(bytes, i) : 0U);
  }
  return span;
}

uint64_t FieldMask(int width) { return ~uint64_t{0} >> (64 - width); }

}  // namespace

uint64_t Count(std::string_view bytes) {
  const char* p = bytes.data();
  const char* end = p + bytes.size();
  // Four sums, so that one popcount need not wait for another.
  uint64_t sums[4] = {};
  for (; end - p >= static_cast<ptrdiff_t>(4 * kWord); p += 4 * kWord) {
    for (size_t i = 0; i < 4; ++i) {
      sums[i] += static_cast<uint64_t>(std::popcount(LoadWord(p + i * kWord)));
    }
  }
  for (; end - p >= static_cast<ptrdiff_t>(kWord); p += kWord) {
    sums[0] += static_cast<uint64_t>(std::popcount(LoadWord(p)));
  }
  for (; p != end; ++p) sums[1] += static_cast<uint64_t>(std::popcount(static_cast<uint8_t>(*p)));
  return sums[0] + sums[1] + sums[2] + sums[3];
}

uint64_t Count(std::string_view bytes, int64_t first, int64_t last) {
  const auto head = static_cast<size_t>(first >> 3);
  const auto tail = static_cast<size_t>(last >> 3);
  const auto before = static_cast<uint8_t>(~HeadMask(first) & Byte(bytes, head));
  const auto behind = static_cast<uint8_t>(~TailMask(last) & Byte(bytes, tail));
  return Count(bytes.substr(head, tail - head + 1)) - static_cast<uint64_t>(std::popcount(before)) -
         static_cast<uint64_t>(std::popcount(behind));
}

int64_t Find(std::string_view bytes, bool bit, int64_t first, int64_t last) {
  const uint64_t flip = bit ? 0 : ~uint64_t{0};
  const auto tail = static_cast<size_t>(last >> 3);
  auto i = static_cast<size_t>(first >> 3);
  uint8_t mask = HeadMask(first);
  while (true) {
    if (i == tail) mask &= TailMask(last);
    const auto byte = static_cast<uint8_t>((Byte(bytes, i) ^ flip) & mask);
    if (byte != 0) return static_cast<int64_t>(i) * 8 + std::countl_zero(byte);
    if (i == tail) return -1;
    ++i;
    mask = 0xff;
    for (; i + kWord <= tail; i += kWord) {
      const uint64_t word = LoadOrdered(bytes.data() + i) ^ flip;
      if (word != 0) return static_cast<int64_t>(i) * 8 + std::countl_zero(word);
    }
  }
}

void Combine(Operation operation, std::span<const std::string_view> sources, char* out,
             size_t size) {
  for (size_t at = 0; at < size; at += kBlock) {
    const size_t block = std::min(kBlock, size - at);
    const auto rest = [at](std::string_view source) {
      return source.substr(std::min(at, source.size()));
    };
    const std::string_view first = rest(sources[0]);
    const size_t common = std::min(first.size(), block);
    if (common != 0) memcpy(out + at, first.data(), common);
    memset(out + at + common, 0, block - common);
    if (operation == Operation::kNot) FoldBlock(operation, first, out + at, block);
    for (const std::string_view source : sources.subspan(1)) {
      FoldBlock(operation, rest(source), out + at, block);
    }
  }
}

uint64_t GetField(std::string_view bytes, uint64_t offset, int width) {
  const int behind = 72 - static_cast<int>(offset & 7) - width;
  return static_cast<uint64_t>(LoadSpan(bytes, offset >> 3) >> behind) & FieldMask(width);
}

void SetField(char* bytes, uint64_t offset, int width, uint64_t value) {
  const uint64_t first = offset >> 3;
  const uint64_t last = (offset + static_cast<uint64_t>(width) - 1) >> 3;
  const int behind = 72 - static_cast<int>(offset & 7) - width;
  const auto mask = static_cast<unsigned __int128>(FieldMask(width)) << behind;
  const auto placed = static_cast<unsigned __int128>(value & FieldMask(width)) << behind;
  const unsigned __int128 span = (LoadSpan({bytes, last + 1}, first) & ~mask) | placed;
  for (uint64_t i = first; i <= last; ++i) {
    bytes[i] = static_cast<char>(static_cast<uint8_t>(span >> (8 * (8 - (i - first)))));
  }
}

}  // namespace sava::commands::bits
