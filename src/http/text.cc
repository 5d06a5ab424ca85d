#include "http/text.h"

#include <algorithm>

#include "base/text.h"

namespace sava::http {

namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = base::LowerChar(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

int Base64Digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

bool PercentDecode(std::string_view text, bool plus_is_blank, std::string* scratch,
                   std::string_view* value) {
  if (text.find_first_of(plus_is_blank ? "%+" : "%") == std::string_view::npos) {
    *value = text;
    return true;
  }
  scratch->clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (text.size() - i < 3) return false;
      const int high = HexDigit(text[i + 1]);
      const int low = HexDigit(text[i + 2]);
      if (high < 0 || low < 0) return false;
      scratch->push_back(static_cast<char>(high * 16 + low));
      i += 2;
    } else {
      scratch->push_back(text[i] == '+' && plus_is_blank ? ' ' : text[i]);
    }
  }
  *value = *scratch;
  return true;
}

QueryReader::Outcome QueryReader::Next(std::string_view* name, std::string_view* value) {
  while (!rest_.empty()) {
    const std::string_view pair = rest_.substr(0, rest_.find('&'));
    rest_.remove_prefix(std::min(pair.size() + 1, rest_.size()));
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view right = equals < pair.size() ? pair.substr(equals + 1) : "";
    if (!PercentDecode(pair.substr(0, equals), true, &name_, name) ||
        !PercentDecode(right, true, &value_, value)) {
      return Outcome::kBad;
    }
    return Outcome::kPair;
  }
  return Outcome::kEnd;
}

bool Base64Decode(std::string_view text, std::string* out) {
  out->clear();
  if (text.size() % 4 == 0 && text.ends_with('=')) {
    text.remove_suffix(text.ends_with("==") ? 2 : 1);
  }
  if (text.size() % 4 == 1) return false;
  unsigned bits = 0;
  int have = 0;
  for (const char c : text) {
    const int digit = Base64Digit(c);
    if (digit < 0) return false;
    bits = (bits << 6 | static_cast<unsigned>(digit)) & 0xffffff;
    have += 6;
    if (have >= 8) {
      have -= 8;
      out->push_back(static_cast<char>(bits >> have & 0xff));
    }
  }
  return true;
}

}  // namespace sava::http
