#include "lua/numbers.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "base/text.h"

namespace sava::lua {
namespace {

// Digits and the power of ten of the last one.
struct Decimal {
  char digits[24];
  int count = 0;
  int exponent = 0;
};

// Of a positive number.
Decimal ShortestDigits(double value) {
  char text[48];
  const char* end =
      std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr;
  Decimal decimal;
  const char* at = text;
  for (; at != end && *at != 'e'; ++at) {
    if (*at != '.') decimal.digits[decimal.count++] = *at;
  }
  int exponent = 0;
  if (at != end) {
    ++at;
    if (at != end && *at == '+') ++at;
    std::from_chars(at, end, exponent);
  }
  decimal.exponent = exponent - (decimal.count - 1);
  return decimal;
}

char* WriteExponent(int exponent, char* out) {
  *out++ = 'e';
  *out++ = exponent < 0 ? '-' : '+';
  return std::to_chars(out, out + 4, exponent < 0 ? -exponent : exponent).ptr;
}

char* WriteDecimal(const Decimal& decimal, char* out) {
  const int power = decimal.exponent + decimal.count - 1;
  const int distance = power < 0 ? -power : power;
  if (decimal.exponent >= 0 && distance < decimal.count + 7) {
    out = static_cast<char*>(std::memcpy(out, decimal.digits, decimal.count)) + decimal.count;
    std::memset(out, '0', decimal.exponent);
    return out + decimal.exponent;
  }
  if (decimal.exponent < 0 && (decimal.exponent > -7 || distance < 4)) {
    const int before = decimal.count + decimal.exponent;
    if (before <= 0) {
      *out++ = '0';
      *out++ = '.';
      std::memset(out, '0', -before);
      out += -before;
      std::memcpy(out, decimal.digits, decimal.count);
      return out + decimal.count;
    }
    std::memcpy(out, decimal.digits, before);
    out[before] = '.';
    std::memcpy(out + before + 1, decimal.digits + before, decimal.count - before);
    return out + decimal.count + 1;
  }
  *out++ = decimal.digits[0];
  if (decimal.count > 1) {
    *out++ = '.';
    std::memcpy(out, decimal.digits + 1, decimal.count - 1);
    out += decimal.count - 1;
  }
  return WriteExponent(power, out);
}

}  // namespace

size_t FormatNumber(double value, char* out) {
  constexpr double kWhole = 4611686018427387904.0;  // 2^62
  if (value >= -kWhole && value <= kWhole) {
    const auto whole = static_cast<int64_t>(value);
    if (static_cast<double>(whole) == value && (whole != 0 || !std::signbit(value))) {
      return base::FormatInt(whole, out);
    }
  }
  char* at = out;
  if (std::isnan(value)) {
    std::memcpy(at, "nan", 3);
    return 3;
  }
  if (std::signbit(value)) *at++ = '-';
  if (std::isinf(value)) {
    std::memcpy(at, "inf", 3);
    return at + 3 - out;
  }
  if (value == 0) {
    *at++ = '0';
    return at - out;
  }
  return WriteDecimal(ShortestDigits(std::fabs(value)), at) - out;
}

int64_t TruncateNumber(double value) {
  if (value >= -9223372036854775808.0 && value < 9223372036854775808.0) {
    return static_cast<int64_t>(value);
  }
  return INT64_MIN;
}

}  // namespace sava::lua
