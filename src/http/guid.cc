#include "http/guid.h"

#include <cstddef>

namespace sava::http {

namespace {

constexpr size_t kDigits = 32;
constexpr size_t kWithHyphens = 36;

constexpr bool IsHyphenPlace(size_t i) { return i == 8 || i == 13 || i == 18 || i == 23; }

// The digit in lower case; 0 when it is none.
char HexDigit(char c) {
  if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')) return c;
  return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : '\0';
}

}  // namespace

bool CanonicalGuid(std::string_view text, std::string* out) {
  if (text.size() == kWithHyphens + 2) {
    const bool braces = text.front() == '{' && text.back() == '}';
    const bool parentheses = text.front() == '(' && text.back() == ')';
    if (!braces && !parentheses) return false;
    text = text.substr(1, kWithHyphens);
  }
  const bool hyphens = text.size() == kWithHyphens;
  if (!hyphens && text.size() != kDigits) return false;
  char canonical[kWithHyphens];
  size_t from = 0;
  for (size_t i = 0; i < kWithHyphens; ++i) {
    if (IsHyphenPlace(i)) {
      if (hyphens && text[from++] != '-') return false;
      canonical[i] = '-';
      continue;
    }
    canonical[i] = HexDigit(text[from++]);
    if (canonical[i] == '\0') return false;
  }
  out->assign(canonical, sizeof canonical);
  return true;
}

}  // namespace sava::http
