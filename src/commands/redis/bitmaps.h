// What the bitmap family is made of: plain functions on bytes, and the handlers that the rows in
// bitmaps.cc name.
//
// Bit 0 is the most significant bit of the first byte, as everywhere in the protocol's bitmaps. The
// functions work on 64-bit words wherever a whole word is at hand. They keep no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "commands/context.h"

namespace sava::commands {

namespace bits {

// How many bits of the whole string are set.
uint64_t Count(std::string_view bytes);
// The same for the bits `first` to `last`, both included.
// REQUIRES: 0 <= first <= last < 8 * bytes.size().
uint64_t Count(std::string_view bytes, int64_t first, int64_t last);

// The first bit with the given value from `first` to `last`, both included; -1 when there is none.
// REQUIRES: as for Count.
int64_t Find(std::string_view bytes, bool bit, int64_t first, int64_t last);

enum class Operation : uint8_t { kAnd, kOr, kXor, kNot };

// Writes `size` bytes to `out`: the operation over all sources, each taken as if zeros followed it.
// kNot inverts the one source. REQUIRES: at least one source; none overlaps `out`; `size` is the
// length of the longest.
void Combine(Operation operation, std::span<const std::string_view> sources, char* out,
             size_t size);

// The unsigned number of `width` bits (1 to 64) at a bit offset; what is behind the end is zero.
uint64_t GetField(std::string_view bytes, uint64_t offset, int width);
// Writes the low `width` bits of `value`. REQUIRES: the bits lie within the bytes.
void SetField(char* bytes, uint64_t offset, int width, uint64_t value);

}  // namespace bits

namespace bitmaps {

// A bit offset argument. With `width` > 0 the form #N stands for N * width. Replies the error and
// returns false when it is no number, negative, or beyond proto-max-bulk-len.
bool OffsetArg(Context& context, size_t arg, int width, uint64_t* offset);

// bitmaps.cc
void Setbit(Context& context);
void Getbit(Context& context);
void Bitcount(Context& context);
void Bitpos(Context& context);
void Bitop(Context& context);

// bitmaps_field.cc
void Bitfield(Context& context);
uint16_t BitfieldKeyFlags(Args args);
void BitfieldRo(Context& context);

}  // namespace bitmaps
}  // namespace sava::commands
