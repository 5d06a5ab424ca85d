// JSON: which texts are objects, what their members are, where a text goes wrong, and how strings
// are written.
#include "http/json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sava::http {
namespace {

// The members as name=value with a letter for the kind and ' when the value is a copy; what was
// wrong after '!'.
std::string Told(std::string_view text, size_t position = 0) {
  JsonReader reader(text, position);
  std::string told;
  const bool good = reader.Object([&](const JsonMember& member) {
    told.append(member.name) += '=';
    told += "sno"[static_cast<size_t>(member.kind)];
    told.append(member.value).append(member.in_text || member.kind == JsonKind::kOther ? "" : "'");
    told += ' ';
    return true;
  });
  EXPECT_NE(good, reader.error().size() > 0) << text;
  if (!good) return told + "!" + reader.error();
  return reader.AtEnd() ? told : told + "and more";
}

bool IsValue(std::string_view text) {
  return Told("{\"v\":" + std::string(text) + "}").find_first_of("!&") == std::string::npos;
}

TEST(Json, MembersAreStringsNumbersAndOthers) {
  EXPECT_EQ(Told(R"({"a":"x","b":-1.50e3,"c":null,"d":[1,{"a":2}],"e":{},"":""})"),
            "a=sx b=n-1.50e3 c=o d=o e=o =s ");
  EXPECT_EQ(Told(" \t\r\n{ \"a\" : 1 , \"a\" : 2 } \n"), "a=n1 a=n2 ") << "twice is the caller's";
  EXPECT_EQ(Told("{}"), "");
  EXPECT_EQ(Told("{} x"), "and more");
  EXPECT_EQ(Told(R"([{"a":1}])", 1), "a=n1 and more") << "from a position on";
}

TEST(Json, NumbersStayAsTheyAreWritten) {
  for (const char* number :
       {"0", "-0", "-0.0", "1e400", "-1E-400", "12345678901234567890123", "18446744073709551616",
        "0.10", "1e2147483647", "0.000000000000000000000000000000000000000001"}) {
    EXPECT_EQ(Told("{\"n\":" + std::string(number) + "}"), "n=n" + std::string(number) + " ");
  }
  EXPECT_EQ(Told(R"({"n":1e2147483648})"), "!the exponent of a number is too large");
}

TEST(Json, StringsWithEscapesAreCopies) {
  EXPECT_EQ(Told(R"({"\u006bey":"\u010d\ud83d\ude00 \"\/\\\b\f\n\r\t"})"),
            "key=sč😀 \"/\\\b\f\n\r\t' ");
  EXPECT_EQ(Told(R"({"a\u0062c":"abc\u0064"})"), "abc=sabcd' ");
  EXPECT_EQ(Told(R"({"a":"\u0000"})"), std::string("a=s\0' ", 6));
  for (const size_t size : {15, 16, 17, 4095, 4096, 4097, 20000}) {
    const std::string plain(size, 'x');
    EXPECT_EQ(Told("{\"a\":\"" + plain + "\"}"), "a=s" + plain + " ");
    EXPECT_EQ(Told("{\"a\":\"" + plain + "\\n" + plain + "\"}"),
              "a=s" + plain + "\n" + plain + "' ");
    std::string escapes;
    for (size_t i = 0; i < size; ++i) escapes += "\\u00e9";
    std::string letters;
    for (size_t i = 0; i < size; ++i) letters += "\xc3\xa9";
    EXPECT_EQ(Told("{\"a\":\"" + escapes + "\"}"), "a=s" + letters + "' ");
  }
}

TEST(Json, AValueIsAnyJsonButNothingElse) {
  for (const char* text : {"1", "-0.5E+3", "\"a\"", "true", "false", "null", "[]", "{}",
                           "[1,[2,{}]]", R"({"a":[1,{"b":null}],"c":"d"})", " [ 1 , 2 ] ",
                           "\"\x7f\"", "\"\xed\x9f\xbf\xf4\x8f\xbf\xbf\""}) {
    EXPECT_TRUE(IsValue(text)) << text;
  }
  for (const char* text : {"",
                           "[",
                           "[1",
                           "[1,]",
                           "[,]",
                           "{1:2}",
                           R"({"a"})",
                           R"({"a":})",
                           R"({"a":1,})",
                           "tru",
                           "nul",
                           "[}",
                           R"({"a":1])",
                           "1 2",
                           "-",
                           "01",
                           "1e",
                           "1.",
                           ".5",
                           "+1",
                           "NaN",
                           "0x1",
                           "'a'",
                           "// a\n1",
                           "/**/1",
                           "\"\x1f\"",
                           "\"\n\"",
                           R"("\x")",
                           R"("\u12g4")",
                           R"("\ud800")",
                           R"("\ud800\u0041")",
                           R"("\udc00")",
                           "\"\xff\"",
                           "\"\xc0\x80\"",
                           "\"\xed\xa0\x80\"",
                           "\"\xf4\x90\x80\x80\"",
                           "\"\xc4\"",
                           "\"a"}) {
    EXPECT_FALSE(IsValue(text)) << text;
  }
}

TEST(Json, AnErrorSaysWhatIsWrongOrWhere) {
  EXPECT_EQ(Told("[]"), "!an object is expected");
  EXPECT_EQ(Told(""), "!an object is expected");
  EXPECT_EQ(Told("{"), "!the text ends within the object");
  EXPECT_EQ(Told(R"({"a":1)"), "a=n1 !the text ends within the object");
  EXPECT_EQ(Told(R"({"a";1})"), "!not valid JSON at byte 4");
  EXPECT_EQ(Told(R"({"a":1,})"), "a=n1 !not valid JSON at byte 7");
  EXPECT_EQ(Told(R"([{},{"a":x}])", 4), "!not valid JSON at byte 9") << "of the whole text";
  EXPECT_EQ(Told(R"({"a":"\udc00"})"), "!a surrogate stands alone");
  EXPECT_EQ(Told(R"({"a":"\uzzzz"})"), "!an escape is not four hexadecimal digits");
}

TEST(Json, ACallerMayStop) {
  const std::string_view text = R"({"a":1,"b":2,"c":3})";
  JsonReader reader(text);
  std::vector<std::string> seen;
  EXPECT_FALSE(reader.Object([&](const JsonMember& member) {
    seen.emplace_back(member.name);
    return seen.size() < 2 || reader.Fail("b is not wanted");
  }));
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(reader.error(), "b is not wanted");
}

TEST(Json, NestingIsBounded) {
  const auto nested = [](size_t depth) {
    std::string text = "{\"a\":";
    for (size_t i = 0; i < depth; ++i) text += i % 2 == 0 ? "[" : "{\"b\":";
    text += "1";
    for (size_t i = depth; i > 0; --i) text += i % 2 == 1 ? "]" : "}";
    return text + "}";
  };
  EXPECT_EQ(Told(nested(64)), "a=o ");
  EXPECT_EQ(Told(nested(65)), "a=o !the nesting is too deep");
  EXPECT_EQ(Told("{\"a\":" + std::string(1 << 20, '[')), "a=o !the nesting is too deep");
}

TEST(Json, Utf8IsToldFromOtherBytes) {
  for (const char* text : {"a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                           "\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(Utf8Length(text), std::string_view(text).size()) << text;
  }
  for (const char* text :
       {"", "\x80", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x41", "\xe0\x9f\xbf", "\xed\xa0\x80",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf0\x90\x80", "\xff"}) {
    EXPECT_EQ(Utf8Length(text), 0U) << text;
  }
}

TEST(Json, StringsAreWrittenSoThatTheyReadBack) {
  const auto written = [](std::string_view text) {
    std::string out;
    AppendJson(&out, text);
    return out;
  };
  EXPECT_EQ(written("a\"\\/\n\t\x7fč"), R"("a\"\\/\n\u0009)"
                                        "\x7f"
                                        R"(č")");
  EXPECT_EQ(written("\xff\xc4z"), "\"\xef\xbf\xbd\xef\xbf\xbdz\"");
  EXPECT_EQ(Told("{\"a\":" + written(std::string_view("\0\x1f\n\r", 4)) + "}"),
            std::string("a=s\0\x1f\n\r' ", 9));
}

// Characters that need escapes, at every place among those that do not.
TEST(Json, NoCharacterIsTakenForAnother) {
  for (int c = 0; c < 0x80; ++c) {
    for (size_t at = 0; at < 20; ++at) {
      std::string text(20, c == 'x' ? 'y' : 'x');
      text[at] = static_cast<char>(c);
      std::string out;
      AppendJson(&out, text);
      const bool plain = c >= 0x20 && c != '"' && c != '\\';
      EXPECT_EQ(out == '"' + text + '"', plain) << c << " at " << at;
      EXPECT_NE(Told("{\"a\":" + out + "}").find("a=s" + text), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace sava::http
