#include "lua/patterns.h"

#include <cctype>
#include <cstring>

#include "lua/vm.h"

namespace sava::lua {
namespace {

bool InClass(unsigned char c, unsigned char name) {
  bool in = false;
  switch (std::tolower(name)) {
    case 'a':
      in = std::isalpha(c) != 0;
      break;
    case 'c':
      in = std::iscntrl(c) != 0;
      break;
    case 'd':
      in = std::isdigit(c) != 0;
      break;
    case 'l':
      in = std::islower(c) != 0;
      break;
    case 'p':
      in = std::ispunct(c) != 0;
      break;
    case 's':
      in = std::isspace(c) != 0;
      break;
    case 'u':
      in = std::isupper(c) != 0;
      break;
    case 'w':
      in = std::isalnum(c) != 0;
      break;
    case 'x':
      in = std::isxdigit(c) != 0;
      break;
    case 'z':
      in = c == 0;
      break;
    default:
      return name == c;
  }
  return std::isupper(name) != 0 ? !in : in;
}

unsigned char Byte(const char* at) { return static_cast<unsigned char>(*at); }

// Whether the set from `set` ('[') to `last` (']') has `c`.
bool InSet(unsigned char c, const char* set, const char* last) {
  bool wanted = true;
  if (set + 1 < last && set[1] == '^') {
    wanted = false;
    ++set;
  }
  while (++set < last) {
    if (*set == '%') {
      ++set;
      if (InClass(c, Byte(set))) return wanted;
    } else if (set + 2 < last && set[1] == '-') {
      set += 2;
      if (Byte(set - 2) <= c && c <= Byte(set)) return wanted;
    } else if (Byte(set) == c) {
      return wanted;
    }
  }
  return !wanted;
}

}  // namespace

void Matcher::Step() {
  if (++steps_ < 4096) return;
  Vm::Tick(lua_, steps_);
  steps_ = 0;
}

const char* Matcher::MatchAt(const char* at, const char* pattern) {
  count_ = 0;
  depth_ = 0;
  return Match(at, pattern);
}

const char* Matcher::ClassEnd(const char* pattern) {
  const char first = *pattern++;
  if (first == '%') {
    if (pattern == pattern_end_) luaL_error(lua_, "malformed pattern (ends with " LUA_QL("%%") ")");
    return pattern + 1;
  }
  if (first != '[') return pattern;
  if (pattern != pattern_end_ && *pattern == '^') ++pattern;
  // A ']' that comes first is one of the set.
  do {
    if (pattern == pattern_end_) {
      luaL_error(lua_, "malformed pattern (missing " LUA_QL("]") ")");
    }
    if (*pattern++ == '%' && pattern != pattern_end_) ++pattern;
  } while (pattern == pattern_end_ || *pattern != ']');
  return pattern + 1;
}

bool Matcher::MatchesOne(unsigned char c, const char* pattern, const char* after) const {
  switch (*pattern) {
    case '.':
      return true;
    case '%':
      return InClass(c, Byte(pattern + 1));
    case '[':
      return InSet(c, pattern, after - 1);
    default:
      return Byte(pattern) == c;
  }
}

const char* Matcher::MatchMost(const char* at, const char* pattern, const char* after) {
  ptrdiff_t count = 0;
  while (at + count < end_ && MatchesOne(Byte(at + count), pattern, after)) {
    ++count;
    Step();
  }
  for (; count >= 0; --count) {
    if (const char* stop = Match(at + count, after + 1); stop != nullptr) return stop;
  }
  return nullptr;
}

const char* Matcher::MatchLeast(const char* at, const char* pattern, const char* after) {
  for (;;) {
    if (const char* stop = Match(at, after + 1); stop != nullptr) return stop;
    if (at == end_ || !MatchesOne(Byte(at), pattern, after)) return nullptr;
    ++at;
  }
}

const char* Matcher::MatchCapture(const char* at, const char* pattern, bool position) {
  if (count_ >= LUA_MAXCAPTURES) luaL_error(lua_, "too many captures");
  captures_[count_] = {at, position ? kPosition : kOpen};
  ++count_;
  const char* stop = Match(at, pattern);
  if (stop == nullptr) --count_;
  return stop;
}

const char* Matcher::CloseCapture(const char* at, const char* pattern) {
  int open = count_ - 1;
  while (open >= 0 && captures_[open].size != kOpen) --open;
  if (open < 0) luaL_error(lua_, "invalid pattern capture");
  captures_[open].size = at - captures_[open].start;
  const char* stop = Match(at, pattern);
  if (stop == nullptr) captures_[open].size = kOpen;
  return stop;
}

const char* Matcher::MatchBalanced(const char* at, const char* pattern) {
  if (pattern_end_ - pattern < 2) luaL_error(lua_, "unbalanced pattern");
  if (at == end_ || *at != pattern[0]) return nullptr;
  ptrdiff_t open = 1;
  while (++at < end_) {
    Step();
    if (*at == pattern[1]) {
      if (--open == 0) return at + 1;
    } else if (*at == pattern[0]) {
      ++open;
    }
  }
  return nullptr;
}

const char* Matcher::MatchBack(const char* at, int digit) {
  const int index = digit - '1';
  if (index < 0 || index >= count_ || captures_[index].size == kOpen) {
    luaL_error(lua_, "invalid capture index");
  }
  // A position capture has no text; it matches nothing that is there.
  if (captures_[index].size < 0) return nullptr;
  const auto size = static_cast<size_t>(captures_[index].size);
  if (static_cast<size_t>(end_ - at) < size) return nullptr;
  return std::memcmp(captures_[index].start, at, size) == 0 ? at + size : nullptr;
}

bool Matcher::AtFrontier(const char* at, const char* set, const char* after) const {
  const unsigned char before = at == begin_ ? 0 : Byte(at - 1);
  const unsigned char here = at == end_ ? 0 : Byte(at);
  return !InSet(before, set, after - 1) && InSet(here, set, after - 1);
}

const char* Matcher::Match(const char* at, const char* pattern) {
  if (++depth_ > kMostDepth) luaL_error(lua_, "pattern too complex");
  const char* found = nullptr;
  for (;;) {
    Step();
    if (pattern == pattern_end_) {
      found = at;
      break;
    }
    const char first = *pattern;
    const char second = pattern + 1 < pattern_end_ ? pattern[1] : '\0';
    if (first == '(') {
      const bool position = second == ')';
      found = MatchCapture(at, pattern + (position ? 2 : 1), position);
      break;
    }
    if (first == ')') {
      found = CloseCapture(at, pattern + 1);
      break;
    }
    if (first == '$' && pattern + 1 == pattern_end_) {
      found = at == end_ ? at : nullptr;
      break;
    }
    if (first == '%' && second == 'b') {
      at = MatchBalanced(at, pattern + 2);
      if (at == nullptr) break;
      pattern += 4;
      continue;
    }
    if (first == '%' && second == 'f') {
      const char* set = pattern + 2;
      if (set == pattern_end_ || *set != '[') {
        luaL_error(lua_, "missing " LUA_QL("[") " after " LUA_QL("%%f") " in pattern");
      }
      const char* after = ClassEnd(set);
      if (!AtFrontier(at, set, after)) break;
      pattern = after;
      continue;
    }
    if (first == '%' && std::isdigit(static_cast<unsigned char>(second)) != 0) {
      at = MatchBack(at, second);
      if (at == nullptr) break;
      pattern += 2;
      continue;
    }
    const char* after = ClassEnd(pattern);
    const char suffix = after < pattern_end_ ? *after : '\0';
    const bool one = at < end_ && MatchesOne(Byte(at), pattern, after);
    if (suffix == '?') {
      if (one) {
        found = Match(at + 1, after + 1);
        if (found != nullptr) break;
      }
      pattern = after + 1;
      continue;
    }
    if (suffix == '*' || suffix == '+') {
      found = suffix == '*' ? MatchMost(at, pattern, after)
              : one         ? MatchMost(at + 1, pattern, after)
                            : nullptr;
      break;
    }
    if (suffix == '-') {
      found = MatchLeast(at, pattern, after);
      break;
    }
    if (!one) break;
    ++at;
    pattern = after;
  }
  --depth_;
  return found;
}

void Matcher::PushCapture(int index, const char* start, const char* stop) {
  if (index >= count_) {
    if (index != 0) luaL_error(lua_, "invalid capture index");
    lua_pushlstring(lua_, start, stop - start);
    return;
  }
  const auto& capture = captures_[index];
  if (capture.size == kOpen) luaL_error(lua_, "unfinished capture");
  if (capture.size == kPosition) {
    lua_pushnumber(lua_, static_cast<double>(capture.start - begin_ + 1));
  } else {
    lua_pushlstring(lua_, capture.start, capture.size);
  }
}

int Matcher::PushCaptures(const char* start, const char* stop) {
  const int count = count_ == 0 && start != nullptr ? 1 : count_;
  luaL_checkstack(lua_, count, "too many captures");
  for (int i = 0; i < count; ++i) PushCapture(i, start, stop);
  return count;
}

}  // namespace sava::lua
