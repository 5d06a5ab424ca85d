#include "base/bit_packing.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/varint.h"

namespace sava::base {
namespace {

constexpr size_t kGroup = 8;

constexpr uint64_t Mask(unsigned width) { return width == 0 ? 0 : ~uint64_t{0} >> (64 - width); }

constexpr size_t ValueBytes(unsigned width) { return (width + 7) / 8; }

// How many values, from the first on, are equal.
template <typename Value>
size_t RunLength(std::span<const Value> values) {
  size_t length = 1;
  while (length < values.size() && values[length] == values[0]) ++length;
  return length;
}

uint64_t GroupsHeader(size_t count) {
  return (static_cast<uint64_t>((count + kGroup - 1) / kGroup) << 1) | 1;
}

// A run ends a packed segment, so it also pays for the header of the one after it.
bool RunPays(size_t run, size_t values_left, unsigned width) {
  const size_t after = values_left - run;
  const size_t bytes = VarintSize(static_cast<uint64_t>(run) << 1) + ValueBytes(width) +
                       (after > 0 ? VarintSize(GroupsHeader(after)) : 0);
  return bytes * 8 <= static_cast<uint64_t>(run) * width;
}

template <typename Value>
void AppendGroups(std::span<const Value> values, unsigned width, std::string* out) {
  if (values.empty()) return;
  AppendVarint(out, GroupsHeader(values.size()));
  PackBits(values, width, out);
}

bool SpareBitsAreZero(const uint8_t* packed, size_t count, unsigned width) {
  const unsigned used = static_cast<unsigned>((static_cast<uint64_t>(count) * width) % 8);
  return used == 0 || (packed[PackedSize(count, width) - 1] >> used) == 0;
}

}  // namespace

template <typename Value>
void PackBits(std::span<const Value> values, unsigned width, std::string* out) {
  assert(width <= sizeof(Value) * 8);
  if (width == 0) return;
  const size_t start = out->size();
  out->resize(start + PackedSize(values.size(), width));
  char* p = out->data() + start;
  unsigned __int128 waiting = 0;
  unsigned bits = 0;
  for (const Value value : values) {
    assert((value & ~Mask(width)) == 0);
    waiting |= static_cast<unsigned __int128>(value & Mask(width)) << bits;
    for (bits += width; bits >= 8; bits -= 8) {
      *p++ = static_cast<char>(waiting);
      waiting >>= 8;
    }
  }
  if (bits > 0) *p = static_cast<char>(waiting);
}

uint64_t PackedAt(std::span<const uint8_t> bytes, unsigned width, size_t index) {
  const uint64_t bit = static_cast<uint64_t>(index) * width;
  const size_t first = static_cast<size_t>(bit / 8);
  const unsigned shift = bit % 8;
  if constexpr (std::endian::native == std::endian::little) {
    if (width + shift <= 64 && first + 8 <= bytes.size()) {
      uint64_t word = 0;
      memcpy(&word, bytes.data() + first, 8);
      return (word >> shift) & Mask(width);
    }
  }
  unsigned __int128 word = 0;
  for (size_t i = 0; i < ValueBytes(width + shift); ++i) {
    word |= static_cast<unsigned __int128>(bytes[first + i]) << (8 * i);
  }
  return static_cast<uint64_t>(word >> shift) & Mask(width);
}

template <typename Value>
bool UnpackBits(std::span<const uint8_t> bytes, unsigned width, std::span<Value> out) {
  if (width > sizeof(Value) * 8) return false;
  if (width > 0 && out.size() > bytes.size() * 8 / width) return false;
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<Value>(PackedAt(bytes, width, i));
  return true;
}

template <typename Value>
void EncodeHybrid(std::span<const Value> values, unsigned width, std::string* out) {
  if (width == 0) return AppendGroups(values, width, out);
  size_t packed_from = 0;
  size_t at = 0;
  while (at < values.size()) {
    const size_t run = RunLength(values.subspan(at));
    if (!RunPays(run, values.size() - at, width)) {
      at = std::min(at + kGroup, values.size());
      continue;
    }
    AppendGroups(values.subspan(packed_from, at - packed_from), width, out);
    AppendVarint(out, static_cast<uint64_t>(run) << 1);
    PackBits(values.subspan(at, 1), width, out);
    at += run;
    packed_from = at;
  }
  AppendGroups(values.subspan(packed_from), width, out);
}

template <typename Value>
const uint8_t* DecodeHybrid(const uint8_t* p, const uint8_t* end, unsigned width,
                            std::span<Value> out) {
  if (width > sizeof(Value) * 8) return nullptr;
  while (!out.empty()) {
    uint64_t header = 0;
    p = GetVarint(p, end, &header);
    if (p == nullptr || header < 2) return nullptr;
    const std::span<const uint8_t> rest(p, end);
    size_t count = out.size();
    if ((header & 1) == 0) {
      if ((header >> 1) > count) return nullptr;
      count = static_cast<size_t>(header >> 1);
      Value value = 0;
      if (!UnpackBits(rest, width, std::span<Value>(&value, 1))) return nullptr;
      if (!SpareBitsAreZero(p, 1, width)) return nullptr;
      std::fill_n(out.begin(), count, value);
      p += ValueBytes(width);
    } else {
      const uint64_t groups = header >> 1;
      if (groups > (count + kGroup - 1) / kGroup) return nullptr;
      count = std::min(count, static_cast<size_t>(groups) * kGroup);
      if (!UnpackBits(rest, width, out.first(count))) return nullptr;
      if (!SpareBitsAreZero(p, count, width)) return nullptr;
      p += PackedSize(count, width);
    }
    out = out.subspan(count);
  }
  return p;
}

template void PackBits(std::span<const uint32_t>, unsigned, std::string*);
template void PackBits(std::span<const uint64_t>, unsigned, std::string*);
template bool UnpackBits(std::span<const uint8_t>, unsigned, std::span<uint32_t>);
template bool UnpackBits(std::span<const uint8_t>, unsigned, std::span<uint64_t>);
template void EncodeHybrid(std::span<const uint32_t>, unsigned, std::string*);
template void EncodeHybrid(std::span<const uint64_t>, unsigned, std::string*);
template const uint8_t* DecodeHybrid(const uint8_t*, const uint8_t*, unsigned, std::span<uint32_t>);
template const uint8_t* DecodeHybrid(const uint8_t*, const uint8_t*, unsigned, std::span<uint64_t>);

}  // namespace sava::base
