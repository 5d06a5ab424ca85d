// Replies as values: every kind of RESP2 and RESP3, how they nest, and bytes that are no reply.
#include "protocol/reply_value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "protocol/reply.h"

namespace sava::protocol {
namespace {

// A value as a text of its own: letter of the kind, contents.
std::string Told(ReplyValue value) {
  static constexpr std::string_view kLetters = "nbidBstvearmp";
  std::string text(1, kLetters[static_cast<size_t>(value.kind())]);
  if (value.is_container()) {
    text += '(';
    for (const ReplyValue part : value) text += Told(part) + ' ';
    text += ')';
    return text;
  }
  if (value.is_int() || value.kind() == ReplyKind::kBool) {
    return text + std::to_string(value.integer());
  }
  return text.append(value.text());
}

std::string Parsed(std::string_view bytes) {
  ParsedReply reply;
  if (!reply.Parse(bytes)) return reply.root().is_null() ? "bad" : "bad but not null";
  return Told(reply.root());
}

TEST(ReplyValue, ScalarsOfBothProtocols) {
  const std::pair<const char*, const char*> rows[] = {
      {"+OK\r\n", "sOK"},
      {"-WRONGTYPE Operation against\r\n", "eWRONGTYPE Operation against"},
      {"!7\r\nERR a\nb\r\n", "eERR a\nb"},
      {":-12\r\n", "i-12"},
      {"$5\r\na\r\nbc\r\n", "ta\r\nbc"},
      {"$0\r\n\r\n", "t"},
      {"$-1\r\n", "n"},
      {"*-1\r\n", "n"},
      {"_\r\n", "n"},
      {"#t\r\n", "b1"},
      {"#f\r\n", "b0"},
      {",1.5\r\n", "d1.5"},
      {"(123456789012345678901234567890\r\n", "B123456789012345678901234567890"},
      {"=7\r\ntxt:abc\r\n", "vabc"},
  };
  for (const auto& [bytes, told] : rows) EXPECT_EQ(Parsed(bytes), told) << bytes;
}

TEST(ReplyValue, DoublesAreNumbers) {
  const auto number = [](std::string_view bytes) {
    ParsedReply reply;
    EXPECT_TRUE(reply.Parse(bytes)) << bytes;
    return reply.root().number();
  };
  EXPECT_EQ(number(",-2.25\r\n"), -2.25);
  EXPECT_EQ(number(",1e300\r\n"), 1e300);
  EXPECT_EQ(number(",inf\r\n"), INFINITY);
  EXPECT_EQ(number(",-inf\r\n"), -INFINITY);
  EXPECT_TRUE(std::isnan(number(",nan\r\n")));
  EXPECT_EQ(number(":7\r\n"), 7);
  EXPECT_EQ(number("+7\r\n"), 0) << "a text is no number";
}

TEST(ReplyValue, ContainersHoldTheirValuesInOrder) {
  EXPECT_EQ(Parsed("*0\r\n"), "a()");
  EXPECT_EQ(Parsed("*2\r\n*1\r\n:1\r\n*2\r\n:2\r\n*0\r\n"), "a(a(i1 ) a(i2 a() ) )");
  EXPECT_EQ(Parsed("%2\r\n+a\r\n:1\r\n+b\r\n~1\r\n:2\r\n"), "m(sa i1 sb r(i2 ) )");
  EXPECT_EQ(Parsed(">2\r\n+message\r\n$1\r\nx\r\n"), "p(smessage tx )");
  ParsedReply reply;
  ASSERT_TRUE(reply.Parse("%1\r\n+a\r\n*2\r\n:1\r\n:2\r\n"));
  EXPECT_EQ(reply.root().size(), 2U) << "a pair counts twice";
}

TEST(ReplyValue, AttributesAreLeftOut) {
  EXPECT_EQ(Parsed("|1\r\n+ttl\r\n*1\r\n:3\r\n:5\r\n"), "i5");
  EXPECT_EQ(Parsed("*2\r\n:1\r\n|1\r\n+a\r\n+b\r\n:2\r\n"), "a(i1 i2 )");
  EXPECT_EQ(Parsed("|0\r\n:5\r\n"), "i5");
  EXPECT_EQ(Parsed("|1\r\n+a\r\n+b\r\n"), "bad") << "nothing follows";
}

TEST(ReplyValue, WhatTheServerWritesIsRead) {
  for (const int resp : {2, 3}) {
    OutBuffer out;
    Reply writer(&out, resp);
    writer.Array(7);
    writer.Map(1);
    writer.Bulk("key");
    writer.Double(0.5);
    writer.Set(1);
    writer.BulkInt(-3);
    writer.Null();
    writer.Bool(true);
    writer.Verbatim("txt", "a b");
    writer.BigNumber("99");
    writer.Ints({1, 2});
    EXPECT_EQ(Parsed(out.Since(0)), resp == 3
                                        ? "a(m(tkey d0.5 ) r(t-3 ) n b1 va b B99 a(i1 i2 ) )"
                                        : "a(a(tkey t0.5 ) a(t-3 ) n i1 ta b t99 a(i1 i2 ) )");
  }
}

TEST(ReplyValue, OtherBytesAreNoReply) {
  for (const char* bytes : {"",
                            "\r\n",
                            "+OK",
                            "+OK\r\n+OK\r\n",
                            ":\r\n",
                            ":x\r\n",
                            ":1 \r\n",
                            "$3\r\nab\r\n",
                            "$3\r\nabcde",
                            "$-2\r\n",
                            "$99999999999999999999\r\n",
                            "=3\r\nabc\r\n",
                            "=4\r\nabcd\r\n",
                            "=-1\r\n",
                            "#x\r\n",
                            "_x\r\n",
                            ",\r\n",
                            "(\r\n",
                            "*1\r\n",
                            "*-2\r\n",
                            "%1\r\n:1\r\n",
                            "*9223372036854775807\r\n",
                            "*1000000\r\n:1\r\n",
                            "~-1\r\n",
                            "?\r\n",
                            "hello\r\n"}) {
    EXPECT_EQ(Parsed(bytes), "bad") << bytes;
  }
}

TEST(ReplyValue, NestingIsBounded) {
  const auto nested = [](size_t depth) {
    std::string bytes;
    for (size_t i = 0; i < depth; ++i) bytes += "*1\r\n";
    return bytes + ":1\r\n";
  };
  ParsedReply reply;
  EXPECT_TRUE(reply.Parse(nested(ParsedReply::kMaxDepth)));
  EXPECT_FALSE(reply.Parse(nested(ParsedReply::kMaxDepth + 1)));
  EXPECT_TRUE(reply.Parse(nested(2))) << "it can be used again";
}

}  // namespace
}  // namespace sava::protocol
