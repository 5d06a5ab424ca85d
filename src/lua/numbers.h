// Numbers as text where Lua's own "%.14g" would lose digits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sava::lua {

inline constexpr size_t kNumberText = 40;

// The shortest text that reads back as `value`: whole numbers within 2^62 without a point, others
// as digits with a point, or with an exponent when they are very large or small. Returns its
// length.
size_t FormatNumber(double value, char* out);

// As a conversion to a 64-bit integer truncates, but defined for every number: what does not fit is
// the smallest one.
int64_t TruncateNumber(double value);

}  // namespace sava::lua
