// Numbers and words in text: strict parsing and formatting with the rules Redis clients rely on.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sava::base {

// A decimal 64-bit integer in canonical form: no sign but '-', no leading zeros, no spaces.
inline bool ParseInt(std::string_view text, int64_t* out) {
  const size_t n = text.size();
  if (n == 0 || n > 20) return false;
  const char* p = text.data();
  const char* end = p + n;
  bool negative = false;
  if (*p == '-') {
    negative = true;
    if (++p == end) return false;
  }
  if (*p == '0') {
    if (n != 1) return false;
    *out = 0;
    return true;
  }
  uint64_t value = 0;
  for (; p != end; ++p) {
    const unsigned digit = static_cast<unsigned char>(*p) - '0';
    if (digit > 9) return false;
    if (value > UINT64_MAX / 10) return false;
    value *= 10;
    if (value > UINT64_MAX - digit) return false;
    value += digit;
  }
  if (negative) {
    if (value > static_cast<uint64_t>(INT64_MAX) + 1) return false;
    *out = static_cast<int64_t>(0 - value);
  } else {
    if (value > static_cast<uint64_t>(INT64_MAX)) return false;
    *out = static_cast<int64_t>(value);
  }
  return true;
}

// Unsigned variant with the same canonical rules.
bool ParseUint(std::string_view text, uint64_t* out);

// A long double as strtold reads it, whole text, no surrounding space, not NaN.
bool ParseLongDouble(std::string_view text, long double* out);
// A double, same rules; accepts "inf", "+inf", "-inf".
bool ParseDouble(std::string_view text, double* out);

// Writes the decimal form at `out` (room for 20 bytes) and returns its length.
size_t FormatInt(int64_t value, char* out);
size_t FormatUint(uint64_t value, char* out);
std::string IntText(int64_t value);

// Shortest-looking form of a double: integers without a fraction, %.17g otherwise.
std::string DoubleText(double value);
// INCRBYFLOAT's form: 17 fractional digits with trailing zeros removed.
std::string LongDoubleText(long double value);

inline char LowerChar(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
inline bool EqualsNoCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (LowerChar(a[i]) != LowerChar(b[i])) return false;
  }
  return true;
}
std::string ToLower(std::string_view text);
std::string ToUpper(std::string_view text);

// Splits like a shell line: "..." with \n \r \t \b \a \xNN \" \\ escapes, '...' with \'.
// Empty when the quotes do not balance.
std::optional<std::vector<std::string>> SplitArgs(std::string_view line);

// The text in double quotes with \xNN escapes for what cannot be printed.
std::string Quoted(std::string_view text);

// "1023B", "1.50K", "2.00M": the form INFO's *_human fields use.
std::string HumanBytes(uint64_t bytes);

}  // namespace sava::base
