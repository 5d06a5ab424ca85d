#include "base/glob.h"

#include "base/text.h"

namespace sava::base {

namespace {

char Fold(char c, bool ignore_case) { return ignore_case ? LowerChar(c) : c; }

// Matches one character class at pattern[*p] == '['; leaves *p on its last character.
bool MatchClass(std::string_view pattern, size_t* p, char c, bool ignore_case) {
  size_t i = *p + 1;
  const bool negate = i < pattern.size() && pattern[i] == '^';
  if (negate) ++i;
  const auto folded = static_cast<unsigned char>(Fold(c, ignore_case));
  bool match = false;
  while (true) {
    if (i >= pattern.size()) {
      --i;
      break;
    }
    if (pattern[i] == '\\' && i + 1 < pattern.size()) {
      ++i;
      if (static_cast<unsigned char>(pattern[i]) == static_cast<unsigned char>(c)) match = true;
    } else if (pattern[i] == ']') {
      break;
    } else if (i + 2 < pattern.size() && pattern[i + 1] == '-') {
      auto low = static_cast<unsigned char>(Fold(pattern[i], ignore_case));
      auto high = static_cast<unsigned char>(Fold(pattern[i + 2], ignore_case));
      if (low > high) std::swap(low, high);
      if (folded >= low && folded <= high) match = true;
      i += 2;
    } else if (static_cast<unsigned char>(Fold(pattern[i], ignore_case)) == folded) {
      match = true;
    }
    ++i;
  }
  *p = i;
  return match != negate;
}

}  // namespace

bool GlobMatch(std::string_view pattern, std::string_view text, bool ignore_case) {
  // Only the last star needs to be retried: an earlier one that matched less can never help.
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;
  size_t star_text = 0;
  while (true) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
      continue;
    }
    if (t == text.size()) return p == pattern.size();
    bool match = false;
    size_t next = p;
    if (p < pattern.size()) {
      switch (pattern[p]) {
        case '?':
          match = true;
          break;
        case '[':
          match = MatchClass(pattern, &next, text[t], ignore_case);
          break;
        case '\\':
          if (p + 1 < pattern.size()) ++next;
          [[fallthrough]];
        default:
          match = Fold(pattern[next], ignore_case) == Fold(text[t], ignore_case);
      }
    }
    if (match) {
      p = next + 1;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
}

}  // namespace sava::base
