// Unsigned integers in as few bits as the largest of them needs, and the hybrid of runs and packed
// groups that Parquet made popular. docs/formats/encodings.md describes the bytes.
//
//   packed   value i occupies the bits [i * width, (i + 1) * width), bit 0 being the lowest bit of
//            byte 0; the bits left over in the last byte are zero
//   hybrid   segments until `count` values are there, each behind a varint header h:
//            h even: a run: h / 2 times the value that follows in (width + 7) / 8 bytes
//            h odd:  h / 2 groups of 8 values, packed; the last group of all may have fewer
//
// Neither says how many values there are nor how wide they are: the caller keeps that. The hybrid
// is never longer than its header and everything packed; a decoder takes any sequence of segments
// that gives exactly `count` values. For uint32_t (widths 0 to 32) and uint64_t (0 to 64).
// No state; safe from any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sava::base {

// The fewest bits that hold `value`: 0 for 0, 64 at most.
constexpr unsigned BitsFor(uint64_t value) { return static_cast<unsigned>(std::bit_width(value)); }

// REQUIRES: count * width fits 64 bits.
constexpr size_t PackedSize(size_t count, unsigned width) {
  return static_cast<size_t>((static_cast<uint64_t>(count) * width + 7) / 8);
}

// Appends PackedSize(values.size(), width) bytes. REQUIRES: every value fits `width` bits.
template <typename Value>
void PackBits(std::span<const Value> values, unsigned width, std::string* out);

// Value `index` of packed bytes. REQUIRES: bytes.size() >= PackedSize(index + 1, width).
uint64_t PackedAt(std::span<const uint8_t> bytes, unsigned width, size_t index);

// Fills `out` from the first PackedSize(out.size(), width) of `bytes`; false, and nothing written,
// when there are fewer or the width is too large for Value.
template <typename Value>
bool UnpackBits(std::span<const uint8_t> bytes, unsigned width, std::span<Value> out);

// Appends. REQUIRES: every value fits `width` bits.
template <typename Value>
void EncodeHybrid(std::span<const Value> values, unsigned width, std::string* out);

// Reads exactly out.size() values and returns where they end; nullptr when the bytes are cut off,
// a segment is empty or gives more values than are left, or bits beyond a value are set.
// A few bytes may stand for any number of values: choose out.size() with a limit of your own.
template <typename Value>
const uint8_t* DecodeHybrid(const uint8_t* p, const uint8_t* end, unsigned width,
                            std::span<Value> out);

extern template void PackBits(std::span<const uint32_t>, unsigned, std::string*);
extern template void PackBits(std::span<const uint64_t>, unsigned, std::string*);
extern template bool UnpackBits(std::span<const uint8_t>, unsigned, std::span<uint32_t>);
extern template bool UnpackBits(std::span<const uint8_t>, unsigned, std::span<uint64_t>);
extern template void EncodeHybrid(std::span<const uint32_t>, unsigned, std::string*);
extern template void EncodeHybrid(std::span<const uint64_t>, unsigned, std::string*);
extern template const uint8_t* DecodeHybrid(const uint8_t*, const uint8_t*, unsigned,
                                            std::span<uint32_t>);
extern template const uint8_t* DecodeHybrid(const uint8_t*, const uint8_t*, unsigned,
                                            std::span<uint64_t>);

}  // namespace sava::base
