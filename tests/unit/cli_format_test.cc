// Replies as text. The expected texts are what redis-cli 7.0.15 prints for the same replies.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "cli/client_format.h"
#include "cli/client_json.h"

namespace sava::cli {
namespace {

Reply Parse(std::string_view bytes) {
  ReplyParser parser;
  parser.Feed(bytes);
  Reply reply;
  EXPECT_EQ(parser.Next(&reply), ReplyParser::Status::kReply) << bytes;
  return reply;
}

std::string Terminal(std::string_view bytes) { return FormatTerminal(Parse(bytes)); }
std::string Raw(std::string_view bytes) { return FormatRaw(Parse(bytes)); }
std::string Json(std::string_view bytes) { return FormatJson(Parse(bytes)); }

std::string Bulk(std::string_view text) {
  return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

TEST(CliFormat, TerminalTellsScalarTypes) {
  EXPECT_EQ(Terminal("+OK\r\n"), "OK\n");
  EXPECT_EQ(Terminal("-ERR no\r\n"), "(error) ERR no\n");
  EXPECT_EQ(Terminal(":7\r\n"), "(integer) 7\n");
  EXPECT_EQ(Terminal("_\r\n"), "(nil)\n");
  EXPECT_EQ(Terminal(",3.141\r\n"), "(double) 3.141\n");
  EXPECT_EQ(Terminal("#t\r\n"), "(true)\n");
  EXPECT_EQ(Terminal("#f\r\n"), "(false)\n");
  EXPECT_EQ(Terminal(Bulk("a\xff\x01\"\n\\")), "\"a\\xff\\x01\\\"\\n\\\\\"\n");
  EXPECT_EQ(Terminal("=9\r\ntxt:a\nb c\r\n"), "a\nb c\n");
}

TEST(CliFormat, TerminalNumbersNestedArrays) {
  EXPECT_EQ(Terminal("*5\r\n:1\r\n*4\r\n:2\r\n:3\r\n*0\r\n*2\r\n+a\r\n+b\r\n_\r\n+x\r\n-E y\r\n"),
            "1) (integer) 1\n"
            "2) 1) (integer) 2\n"
            "   2) (integer) 3\n"
            "   3) (empty array)\n"
            "   4) 1) a\n"
            "      2) b\n"
            "3) (nil)\n"
            "4) x\n"
            "5) (error) E y\n");
}

TEST(CliFormat, TerminalAlignsLongArrays) {
  std::string bytes = "*10\r\n";
  for (int i = 0; i < 10; ++i) bytes += i == 9 ? "*2\r\n:1\r\n:2\r\n" : "+v\r\n";
  const std::string text = Terminal(bytes);
  EXPECT_TRUE(text.starts_with(" 1) v\n 2) v\n")) << text;
  EXPECT_TRUE(text.ends_with("\n10) 1) (integer) 1\n    2) (integer) 2\n")) << text;
}

TEST(CliFormat, TerminalShowsMapsAndSets) {
  EXPECT_EQ(Terminal("%2\r\n$1\r\na\r\n*2\r\n:1\r\n:2\r\n$1\r\nb\r\n%1\r\n$1\r\nx\r\n:1\r\n"),
            "1# \"a\" => \n"
            "   1) (integer) 1\n"
            "   2) (integer) 2\n"
            "2# \"b\" => 1# \"x\" => (integer) 1\n");
  EXPECT_EQ(Terminal("%1\r\n$1\r\nh\r\n~1\r\n*2\r\n$1\r\nv\r\n$1\r\nw\r\n"),
            "1# \"h\" => \n"
            "   1~ 1) \"v\"\n"
            "      2) \"w\"\n");
  EXPECT_EQ(Terminal("~2\r\n:0\r\n:1\r\n"), "1~ (integer) 0\n2~ (integer) 1\n");
  EXPECT_EQ(Terminal("%0\r\n"), "(empty hash)\n");
  EXPECT_EQ(Terminal("~0\r\n"), "(empty set)\n");
}

TEST(CliFormat, TerminalShowsAttributesFirst) {
  EXPECT_EQ(Terminal("|1\r\n+k\r\n:1\r\n+OK\r\n"), "(attributes)\n1# k => (integer) 1\nOK\n");
}

TEST(CliFormat, RawIsBare) {
  EXPECT_EQ(Raw(Bulk("a\n\xff")), "a\n\xff\n");
  EXPECT_EQ(Raw("_\r\n"), "\n");
  EXPECT_EQ(Raw("-ERR no\r\n"), "ERR no\n");
  EXPECT_EQ(Raw("#t\r\n"), "(true)\n");
  EXPECT_EQ(Raw("*4\r\n:1\r\n*2\r\n:2\r\n:3\r\n_\r\n+x\r\n"), "1\n2\n3\n\nx\n");
  EXPECT_EQ(Raw("%2\r\n+a\r\n*2\r\n:1\r\n:2\r\n+b\r\n%1\r\n+x\r\n:1\r\n"), "a 1\n2\nb x 1\n");
}

TEST(CliFormat, PagesGetNoSecondLineFeed) {
  EXPECT_EQ(FormatPage(Parse(Bulk("# Server\r\n"))), "# Server\r\n");
  EXPECT_EQ(FormatPage(Parse(Bulk("a"))), "a\n");
  EXPECT_EQ(FormatPage(Parse(Bulk(""))), "");
}

TEST(CliFormat, InvalidationsAreOneLine) {
  const Reply push = Parse(">2\r\n+invalidate\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n");
  EXPECT_EQ(FormatPush(push, OutputMode::kTerminal), "-> invalidate: \"a\", \"b\"\n");
  EXPECT_EQ(FormatPush(push, OutputMode::kJson), "[\"invalidate\",[\"a\",\"b\"]]\n");
  EXPECT_EQ(FormatPush(Parse(">2\r\n+invalidate\r\n_\r\n"), OutputMode::kTerminal),
            "-> invalidate: all keys\n");
  EXPECT_EQ(FormatPush(Parse(">2\r\n$7\r\nmessage\r\n:1\r\n"), OutputMode::kTerminal),
            "1) \"message\"\n2) (integer) 1\n");
}

TEST(CliJson, Scalars) {
  EXPECT_EQ(Json("+OK\r\n"), "\"OK\"");
  EXPECT_EQ(Json(":-9223372036854775808\r\n"), "-9223372036854775808");
  EXPECT_EQ(Json("_\r\n"), "null");
  EXPECT_EQ(Json("#t\r\n"), "true");
  EXPECT_EQ(Json("#f\r\n"), "false");
  EXPECT_EQ(Json("(123456789012345678901\r\n"), "\"123456789012345678901\"");
  EXPECT_EQ(Json("-ERR \"no\"\r\n"), "{\"error\":\"ERR \\\"no\\\"\"}");
}

TEST(CliJson, DoublesAreNumbersWhereJsonHasThem) {
  EXPECT_EQ(Json(",3.141\r\n"), "3.141");
  EXPECT_EQ(Json(",10\r\n"), "10");
  EXPECT_EQ(Json(",.5\r\n"), "0.5");
  EXPECT_EQ(Json(",1e+25\r\n"), "1e+25");
  EXPECT_EQ(Json(",inf\r\n"), "\"inf\"");
  EXPECT_EQ(Json(",-inf\r\n"), "\"-inf\"");
  EXPECT_EQ(Json(",nan\r\n"), "\"nan\"");
}

TEST(CliJson, AggregatesNest) {
  EXPECT_EQ(Json("*3\r\n:1\r\n~1\r\n+a\r\n*0\r\n"), "[1,[\"a\"],[]]");
  EXPECT_EQ(Json("%2\r\n+k\r\n*1\r\n_\r\n$1\r\nq\r\n%0\r\n"), "{\"k\":[null],\"q\":{}}");
}

TEST(CliJson, KeysThatAreNoStrings) {
  EXPECT_EQ(Json("%5\r\n:1\r\n:2\r\n#t\r\n:3\r\n_\r\n:4\r\n*1\r\n+a\r\n:5\r\n,inf\r\n:6\r\n"),
            "{\"1\":2,\"true\":3,\"null\":4,\"[\\\"a\\\"]\":5,\"inf\":6}");
}

TEST(CliJson, StringsAreEscaped) {
  EXPECT_EQ(JsonString("a\"\\\n\r\t\b\f/"), "\"a\\\"\\\\\\n\\r\\t\\b\\f/\"");
  EXPECT_EQ(JsonString(std::string_view("\0\x1f\x7f", 3)), "\"\\u0000\\u001f\\u007f\"");
  EXPECT_EQ(JsonString("z\xc3\xb3\xe6\x97\xa5\xf0\x9f\x98\x80"),
            "\"z\xc3\xb3\xe6\x97\xa5\xf0\x9f\x98\x80\"");
}

TEST(CliJson, BinaryIsWrittenByteByByte) {
  EXPECT_EQ(JsonString("a\xff"), "\"a\\u00ff\"");
  // Also the parts that would be valid by themselves, so that Latin-1 gives the bytes back.
  EXPECT_EQ(JsonString("\xc3\xb3\xff"), "\"\\u00c3\\u00b3\\u00ff\"");
}

TEST(CliJson, KnowsUtf8) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("\xf4\x8f\xbf\xbf"));
  EXPECT_TRUE(IsUtf8("\xed\x9f\xbf"));
  for (const std::string_view bad :
       {"\x80", "\xc3", "\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe6\x97", "\xf0\x9f\x98", "a\xc3\x28"}) {
    EXPECT_FALSE(IsUtf8(bad)) << JsonString(bad);
  }
}

}  // namespace
}  // namespace sava::cli
