// Glob patterns: recorded answers, and a random comparison with a plain recursive matcher.
#include "base/glob.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/rng.h"

namespace sava::base {
namespace {

struct Case {
  std::string_view pattern;
  std::string_view text;
  bool match;
};

TEST(GlobMatch, AnswersAsRedisDoes) {
  const Case cases[] = {
      {"*", "", true},
      {"", "", true},
      {"", "a", false},
      {"a", "", false},
      {"?", "", false},
      {"?", "a", true},
      {"h?llo", "hello", true},
      {"h?llo", "hllo", false},
      {"h*llo", "hllo", true},
      {"h*llo", "heeeello", true},
      {"h[ae]llo", "hallo", true},
      {"h[ae]llo", "hillo", false},
      {"h[^e]llo", "hallo", true},
      {"h[^e]llo", "hello", false},
      {"h[a-b]llo", "hbllo", true},
      {"h[b-a]llo", "hbllo", true},
      {"h[a-b]llo", "hcllo", false},
      {"**a**", "bab", true},
      {"a*b*c", "aXbYbZc", true},
      {"a*b*c", "aXbYbZ", false},
      {"\\*", "*", true},
      {"\\*", "a", false},
      {"a\\", "a\\", true},
      {"\\a", "a", true},
      {"[\\]]", "]", true},
      {"[a\\-z]", "-", true},
      {"[a\\-z]", "b", false},
      {"[abc", "c", true},
      {"[abc", "d", false},
      {"[", "a", false},
      {"[]", "a", false},
      {"[]a]", "a]", false},
      {"[^]", "a", true},
      {"a*", "A", false},
      {"\xff*", "\xff\xfe", true},
      {"[\x80-\xff]", "\xc0", true},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(GlobMatch(c.pattern, c.text), c.match) << c.pattern << " on " << c.text;
  }
}

TEST(GlobMatch, IgnoresCaseWhenAsked) {
  EXPECT_TRUE(GlobMatch("MAX*", "maxmemory", true));
  EXPECT_TRUE(GlobMatch("[A-C]x", "bX", true));
  EXPECT_FALSE(GlobMatch("MAX*", "maxmemory"));
}

TEST(GlobMatch, IsNotExponentialInStars) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "a*";
  pattern += "b";
  EXPECT_FALSE(GlobMatch(pattern, std::string(5000, 'a')));
}

// Stars and question marks only, by trying everything.
bool Simple(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    for (size_t skip = 0; skip <= text.size(); ++skip) {
      if (Simple(pattern.substr(1), text.substr(skip))) return true;
    }
    return false;
  }
  if (text.empty() || (pattern[0] != '?' && pattern[0] != text[0])) return false;
  return Simple(pattern.substr(1), text.substr(1));
}

TEST(GlobMatch, AgreesWithAPlainMatcher) {
  constexpr uint64_t kSeed = 20240117;
  Rng rng(kSeed);
  for (int round = 0; round < 20000; ++round) {
    std::string pattern;
    std::string text;
    for (uint64_t i = rng.Below(7); i > 0; --i) pattern += "ab*?"[rng.Below(4)];
    for (uint64_t i = rng.Below(7); i > 0; --i) text += "ab"[rng.Below(2)];
    ASSERT_EQ(GlobMatch(pattern, text), Simple(pattern, text))
        << pattern << " on " << text << ", seed " << kSeed;
  }
}

}  // namespace
}  // namespace sava::base
