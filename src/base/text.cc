#include "base/text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace sava::base {

bool ParseUint(std::string_view text, uint64_t* out) {
  if (text.empty() || (text[0] == '0' && text.size() > 1)) return false;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

// The largest long double has 4,933 digits before the point.
constexpr size_t kLongDoubleText = 5 * 1024;

bool ParseLongDouble(std::string_view text, long double* out) {
  if (text.empty() || text.size() >= kLongDoubleText ||
      isspace(static_cast<unsigned char>(text[0]))) {
    return false;
  }
  char copy[kLongDoubleText];
  memcpy(copy, text.data(), text.size());
  copy[text.size()] = 0;
  char* end;
  errno = 0;
  const long double value = strtold(copy, &end);
  if (end != copy + text.size() || std::isnan(value)) return false;
  if (errno == ERANGE && (value == HUGE_VALL || value == -HUGE_VALL || value == 0)) return false;
  *out = value;
  return true;
}

bool ParseDouble(std::string_view text, double* out) {
  if (text.empty() || text.size() > 255 || isspace(static_cast<unsigned char>(text[0]))) {
    return false;
  }
  char copy[256];
  memcpy(copy, text.data(), text.size());
  copy[text.size()] = 0;
  char* end;
  errno = 0;
  const double value = strtod(copy, &end);
  if (end != copy + text.size() || std::isnan(value)) return false;
  if (errno == ERANGE && (value == HUGE_VAL || value == -HUGE_VAL || value == 0)) {
    return false;
  }
  *out = value;
  return true;
}

namespace {

// "00" to "99", one behind the other.
constexpr auto kDigitPairs = [] {
  std::array<char, 200> pairs{};
  for (size_t i = 0; i < 100; ++i) {
    pairs[i * 2] = static_cast<char>('0' + i / 10);
    pairs[i * 2 + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();

size_t CountDigits(uint64_t value) {
  size_t digits = 1;
  for (uint64_t limit = 10; value >= limit; limit *= 10) {
    ++digits;
    if (digits == 20) break;
  }
  return digits;
}

}  // namespace

size_t FormatUint(uint64_t value, char* out) {
  const size_t size = CountDigits(value);
  char* p = out + size;
  while (value >= 100) {
    p -= 2;
    memcpy(p, &kDigitPairs[value % 100 * 2], 2);
    value /= 100;
  }
  if (value >= 10) {
    memcpy(p - 2, &kDigitPairs[value * 2], 2);
  } else {
    p[-1] = static_cast<char>('0' + value);
  }
  return size;
}

size_t FormatInt(int64_t value, char* out) {
  if (value >= 0) return FormatUint(static_cast<uint64_t>(value), out);
  *out = '-';
  return 1 + FormatUint(0 - static_cast<uint64_t>(value), out + 1);
}

std::string IntText(int64_t value) {
  char text[24];
  return std::string(text, FormatInt(value, text));
}

std::string DoubleText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (value == 0) return std::signbit(value) ? "-0" : "0";
  if (value > -4503599627370495.0 && value < 4503599627370496.0 &&
      value == static_cast<double>(static_cast<int64_t>(value))) {
    return IntText(static_cast<int64_t>(value));
  }
  return fmt::format("{:.17g}", value);
}

std::string LongDoubleText(long double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[5 * 1024];
  int n = snprintf(text, sizeof text, "%.17Lf", value);
  if (memchr(text, '.', static_cast<size_t>(n)) != nullptr) {
    while (text[n - 1] == '0') --n;
    if (text[n - 1] == '.') --n;
  }
  if (n == 2 && text[0] == '-' && text[1] == '0') return "0";
  return std::string(text, static_cast<size_t>(n));
}

std::string ToLower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = LowerChar(c);
  return out;
}

std::string ToUpper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  }
  return out;
}

namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool IsSpace(char c) { return isspace(static_cast<unsigned char>(c)) != 0; }

char Unescape(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

// Reads one word starting at *pos; false when its quotes do not balance.
bool ReadWord(std::string_view line, size_t* pos, std::string* word) {
  size_t i = *pos;
  bool in_double = false;
  bool in_single = false;
  for (;; ++i) {
    if (i == line.size()) {
      if (in_double || in_single) return false;
      break;
    }
    const char c = line[i];
    if (in_double) {
      if (c == '\\' && i + 3 < line.size() && line[i + 1] == 'x' && HexDigit(line[i + 2]) >= 0 &&
          HexDigit(line[i + 3]) >= 0) {
        word->push_back(static_cast<char>(HexDigit(line[i + 2]) * 16 + HexDigit(line[i + 3])));
        i += 3;
      } else if (c == '\\' && i + 1 < line.size()) {
        word->push_back(Unescape(line[++i]));
      } else if (c == '"') {
        if (i + 1 < line.size() && !IsSpace(line[i + 1])) return false;
        ++i;
        break;
      } else {
        word->push_back(c);
      }
    } else if (in_single) {
      if (c == '\\' && i + 1 < line.size() && line[i + 1] == '\'') {
        word->push_back('\'');
        ++i;
      } else if (c == '\'') {
        if (i + 1 < line.size() && !IsSpace(line[i + 1])) return false;
        ++i;
        break;
      } else {
        word->push_back(c);
      }
    } else if (IsSpace(c) || c == '\0') {
      break;
    } else if (c == '"') {
      in_double = true;
    } else if (c == '\'') {
      in_single = true;
    } else {
      word->push_back(c);
    }
  }
  *pos = i;
  return true;
}

}  // namespace

std::optional<std::vector<std::string>> SplitArgs(std::string_view line) {
  std::vector<std::string> words;
  size_t pos = 0;
  while (true) {
    while (pos < line.size() && IsSpace(line[pos])) ++pos;
    if (pos == line.size() || line[pos] == '\0') return words;
    std::string word;
    if (!ReadWord(line, &pos, &word)) return std::nullopt;
    words.push_back(std::move(word));
  }
}

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '\\':
      case '"':
        out += '\\';
        out += c;
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\a':
        out += "\\a";
        break;
      case '\b':
        out += "\\b";
        break;
      default:
        if (isprint(static_cast<unsigned char>(c)) != 0) {
          out += c;
        } else {
          out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        }
    }
  }
  out += '"';
  return out;
}

std::string HumanBytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{}B", bytes);
  const auto amount = static_cast<double>(bytes);
  if (bytes < 1024ULL * 1024) return fmt::format("{:.2f}K", amount / 1024);
  if (bytes < 1024ULL * 1024 * 1024) return fmt::format("{:.2f}M", amount / (1024.0 * 1024));
  if (bytes < 1024ULL * 1024 * 1024 * 1024) {
    return fmt::format("{:.2f}G", amount / (1024.0 * 1024 * 1024));
  }
  return fmt::format("{:.2f}T", amount / (1024.0 * 1024 * 1024 * 1024));
}

}  // namespace sava::base
