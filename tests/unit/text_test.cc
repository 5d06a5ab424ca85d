// Numbers and words in text.
#include "base/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/rng.h"

namespace sava::base {
namespace {

TEST(ParseInt, TakesCanonicalNumbersOnly) {
  int64_t out = 0;
  for (const char* good : {"0", "1", "-1", "9223372036854775807", "-9223372036854775808", "10"}) {
    ASSERT_TRUE(ParseInt(good, &out)) << good;
    EXPECT_EQ(IntText(out), good);
  }
  for (const char* bad : {"", "-", "+1", "01", "-0", "00", " 1", "1 ", "1a", "a", "0x1",
                          "9223372036854775808", "-9223372036854775809", "18446744073709551616",
                          "99999999999999999999", "1.0", "100000000000000000000"}) {
    EXPECT_FALSE(ParseInt(bad, &out)) << bad;
  }
  EXPECT_FALSE(ParseInt(std::string_view("1\0", 2), &out));
}

TEST(ParseInt, ReadsWhatFormatIntWrites) {
  Rng rng(7);
  for (int i = 0; i < 20000; ++i) {
    const auto value = static_cast<int64_t>(rng.Next() >> rng.Below(64));
    for (const int64_t number : {value, -value}) {
      char text[24];
      const size_t size = FormatInt(number, text);
      int64_t back = 0;
      ASSERT_TRUE(ParseInt({text, size}, &back));
      ASSERT_EQ(back, number);
      ASSERT_EQ(std::string(text, size), std::to_string(number));
    }
  }
}

TEST(ParseUint, CoversAll64Bits) {
  uint64_t out = 0;
  ASSERT_TRUE(ParseUint("18446744073709551615", &out));
  EXPECT_EQ(out, UINT64_MAX);
  char text[24];
  EXPECT_EQ(std::string(text, FormatUint(UINT64_MAX, text)), "18446744073709551615");
  for (const char* bad : {"", "-1", "01", "18446744073709551616", "1x", "+1"}) {
    EXPECT_FALSE(ParseUint(bad, &out)) << bad;
  }
}

TEST(ParseDouble, TakesTheWholeTextAndNoNan) {
  double out = 0;
  ASSERT_TRUE(ParseDouble("3.25", &out));
  EXPECT_EQ(out, 3.25);
  ASSERT_TRUE(ParseDouble("-inf", &out));
  EXPECT_TRUE(std::isinf(out));
  ASSERT_TRUE(ParseDouble("1e3", &out));
  EXPECT_EQ(out, 1000);
  for (const char* bad : {"", "nan", " 1", "1 ", "1x", "abc", "1e400"}) {
    EXPECT_FALSE(ParseDouble(bad, &out)) << bad;
  }
}

TEST(ParseLongDouble, TakesTheWholeTextAndNoNan) {
  long double out = 0;
  ASSERT_TRUE(ParseLongDouble("10.5", &out));
  EXPECT_EQ(out, 10.5L);
  for (const char* bad : {"", "nan", " 1", "1 ", "1.2.3"}) {
    EXPECT_FALSE(ParseLongDouble(bad, &out)) << bad;
  }
}

TEST(DoubleText, IsShortForIntegersAndExactForTheRest) {
  EXPECT_EQ(DoubleText(3), "3");
  EXPECT_EQ(DoubleText(-17), "-17");
  EXPECT_EQ(DoubleText(0.1), "0.10000000000000001");
  EXPECT_EQ(DoubleText(-0.0), "-0");
  EXPECT_EQ(DoubleText(INFINITY), "inf");
  EXPECT_EQ(DoubleText(-INFINITY), "-inf");
  Rng rng(11);
  for (int i = 0; i < 5000; ++i) {
    const double value = (rng.Unit() - 0.5) * std::pow(10.0, static_cast<double>(rng.Below(40)));
    double back = 0;
    ASSERT_TRUE(ParseDouble(DoubleText(value), &back));
    ASSERT_EQ(back, value);
  }
}

TEST(LongDoubleText, DropsTrailingZeros) {
  EXPECT_EQ(LongDoubleText(3.0L), "3");
  EXPECT_EQ(LongDoubleText(10.5L), "10.5");
  EXPECT_EQ(LongDoubleText(0.1L), "0.1");
  EXPECT_EQ(LongDoubleText(-0.0L), "0");
  EXPECT_EQ(LongDoubleText(5.0e3L + 200), "5200");
}

TEST(Case, IsThatOfAscii) {
  EXPECT_EQ(ToLower("GeT_9\xc4"), "get_9\xc4");
  EXPECT_EQ(ToUpper("GeT_9\xe4"), "GET_9\xe4");
  EXPECT_TRUE(EqualsNoCase("gEt", "GeT"));
  EXPECT_FALSE(EqualsNoCase("get", "gett"));
  EXPECT_FALSE(EqualsNoCase("[", "{"));
}

TEST(SplitArgs, KnowsBothQuotesAndEscapes) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(SplitArgs("set  a\tb"), (Words{"set", "a", "b"}));
  EXPECT_EQ(SplitArgs(""), Words{});
  EXPECT_EQ(SplitArgs("  "), Words{});
  EXPECT_EQ(SplitArgs(R"(a "b \x41\n\"" 'c\'d \n')"), (Words{"a", "b A\n\"", "c'd \\n"}));
  EXPECT_EQ(SplitArgs(R"("" '')"), (Words{"", ""}));
  EXPECT_EQ(SplitArgs("\"\\xzz\""), Words{"xzz"});
}

TEST(SplitArgs, RefusesUnbalancedQuotes) {
  for (const char* bad : {"\"a", "'a", "\"a\"b", "'a'b", "a \"", "\"a\\\""}) {
    EXPECT_FALSE(SplitArgs(bad).has_value()) << bad;
  }
}

TEST(Quoted, IsReadBackBySplitArgs) {
  EXPECT_EQ(Quoted("a\"b\\\n\x01"), R"("a\"b\\\n\x01")");
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(SplitArgs(Quoted(all)), std::vector<std::string>{all});
}

TEST(HumanBytes, ChangesUnitAtPowersOf1024) {
  EXPECT_EQ(HumanBytes(1023), "1023B");
  EXPECT_EQ(HumanBytes(1536), "1.50K");
  EXPECT_EQ(HumanBytes(2U << 20), "2.00M");
  EXPECT_EQ(HumanBytes(3ULL << 30), "3.00G");
  EXPECT_EQ(HumanBytes(1ULL << 40), "1.00T");
}

}  // namespace
}  // namespace sava::base
