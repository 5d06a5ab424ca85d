// Matcher: Lua 5.1's string patterns, with bounds: recursion ends at a depth of 200 ("pattern too
// complex"), and long searches ask the host whether to go on.
#pragma once

#include <lua.hpp>
#include <string_view>

namespace sava::lua {

class Matcher {
 public:
  Matcher(lua_State* lua, std::string_view subject, std::string_view pattern)
      : lua_(lua),
        begin_(subject.data()),
        end_(subject.data() + subject.size()),
        pattern_end_(pattern.data() + pattern.size()) {}

  // Where a match of the pattern from `pattern` on that begins at `at` ends; null: there is none.
  const char* MatchAt(const char* at, const char* pattern);

  int captures() const { return count_; }
  // Pushes capture `index`; without any, index 0 is the whole match.
  void PushCapture(int index, const char* start, const char* stop);
  // Pushes all captures, or the whole match if there are none and `start` is not null.
  int PushCaptures(const char* start, const char* stop);

 private:
  const char* Match(const char* at, const char* pattern);
  const char* MatchCapture(const char* at, const char* pattern, bool position);
  const char* CloseCapture(const char* at, const char* pattern);
  const char* MatchBalanced(const char* at, const char* pattern);
  const char* MatchBack(const char* at, int digit);
  const char* MatchMost(const char* at, const char* pattern, const char* after);
  const char* MatchLeast(const char* at, const char* pattern, const char* after);
  bool AtFrontier(const char* at, const char* set, const char* after) const;
  // The end of the single-character class at `pattern`.
  const char* ClassEnd(const char* pattern);
  bool MatchesOne(unsigned char c, const char* pattern, const char* after) const;
  void Step();

  static constexpr int kMostDepth = 200;
  static constexpr ptrdiff_t kOpen = -1;
  static constexpr ptrdiff_t kPosition = -2;

  lua_State* lua_;
  const char* begin_;
  const char* end_;
  const char* pattern_end_;
  int depth_ = 0;
  int steps_ = 0;
  int count_ = 0;
  struct {
    const char* start;
    ptrdiff_t size;
  } captures_[LUA_MAXCAPTURES];
};

}  // namespace sava::lua
