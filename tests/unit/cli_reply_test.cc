// The client's reply parser: every type, any cut of the bytes, and refusal of what is no RESP.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>

#include "cli/client_format.h"
#include "cli/client_reply.h"

namespace sava::cli {
namespace {

Reply ParseOne(std::string_view bytes) {
  ReplyParser parser;
  parser.Feed(bytes);
  Reply reply;
  EXPECT_EQ(parser.Next(&reply), ReplyParser::Status::kReply) << bytes;
  EXPECT_TRUE(parser.idle()) << bytes;
  return reply;
}

std::string ParseError(std::string_view bytes) {
  ReplyParser parser;
  parser.Feed(bytes);
  Reply reply;
  EXPECT_EQ(parser.Next(&reply), ReplyParser::Status::kError) << bytes;
  return parser.error();
}

TEST(CliReply, ReadsEveryScalarType) {
  EXPECT_TRUE(ParseOne("+OK\r\n").is_status("OK"));
  EXPECT_EQ(ParseOne("-ERR no\r\n").type, ReplyType::kError);
  EXPECT_EQ(ParseOne("-ERR no\r\n").text, "ERR no");
  EXPECT_EQ(ParseOne(":-42\r\n").integer, -42);
  EXPECT_EQ(ParseOne("$5\r\na\r\nbc\r\n").text, "a\r\nbc");
  EXPECT_EQ(ParseOne("$0\r\n\r\n").type, ReplyType::kString);
  EXPECT_EQ(ParseOne("$-1\r\n").type, ReplyType::kNil);
  EXPECT_EQ(ParseOne("*-1\r\n").type, ReplyType::kNil);
  EXPECT_EQ(ParseOne("_\r\n").type, ReplyType::kNil);
  EXPECT_EQ(ParseOne(",3.25\r\n").text, "3.25");
  EXPECT_EQ(ParseOne(",-inf\r\n").type, ReplyType::kDouble);
  EXPECT_EQ(ParseOne("#t\r\n").integer, 1);
  EXPECT_EQ(ParseOne("#f\r\n").integer, 0);
  EXPECT_EQ(ParseOne("(12345678901234567890\r\n").type, ReplyType::kBigNumber);
  EXPECT_EQ(ParseOne("!6\r\nERR xy\r\n").type, ReplyType::kError);
  EXPECT_EQ(ParseOne("=7\r\ntxt:abc\r\n").text, "abc");
}

TEST(CliReply, ReadsNestedAggregates) {
  const Reply reply = ParseOne("*3\r\n%1\r\n+k\r\n~2\r\n:1\r\n:2\r\n*0\r\n>1\r\n$1\r\nx\r\n");
  ASSERT_EQ(reply.elements.size(), 3U);
  EXPECT_EQ(reply.elements[0].type, ReplyType::kMap);
  ASSERT_EQ(reply.elements[0].elements.size(), 2U);
  EXPECT_EQ(reply.elements[0].elements[1].type, ReplyType::kSet);
  EXPECT_EQ(reply.elements[0].elements[1].elements[1].integer, 2);
  EXPECT_EQ(reply.elements[1].type, ReplyType::kArray);
  EXPECT_TRUE(reply.elements[1].elements.empty());
  EXPECT_EQ(reply.elements[2].type, ReplyType::kPush);
}

TEST(CliReply, AttributesBelongToTheReplyThatFollows) {
  const Reply reply = ParseOne("|1\r\n+ttl\r\n:5\r\n*2\r\n|1\r\n+a\r\n+b\r\n$1\r\nx\r\n:2\r\n");
  ASSERT_NE(reply.attributes, nullptr);
  EXPECT_EQ(reply.attributes->elements[0].text, "ttl");
  ASSERT_EQ(reply.elements.size(), 2U);
  ASSERT_NE(reply.elements[0].attributes, nullptr);
  EXPECT_EQ(reply.elements[0].attributes->elements[1].text, "b");
  EXPECT_EQ(reply.elements[0].text, "x");
  EXPECT_EQ(reply.elements[1].attributes, nullptr);
  EXPECT_EQ(ParseOne("|0\r\n:1\r\n").integer, 1);
}

TEST(CliReply, HandsOutRepliesOneAfterAnother) {
  ReplyParser parser;
  parser.Feed("+A\r\n:2\r\n$3\r\nab");
  Reply reply;
  ASSERT_EQ(parser.Next(&reply), ReplyParser::Status::kReply);
  EXPECT_EQ(reply.text, "A");
  ASSERT_EQ(parser.Next(&reply), ReplyParser::Status::kReply);
  EXPECT_EQ(reply.integer, 2);
  EXPECT_EQ(parser.Next(&reply), ReplyParser::Status::kNeedMore);
  EXPECT_FALSE(parser.idle());
  parser.Feed("c\r\n");
  ASSERT_EQ(parser.Next(&reply), ReplyParser::Status::kReply);
  EXPECT_EQ(reply.text, "abc");
  EXPECT_TRUE(parser.idle());
}

TEST(CliReply, RefusesWhatIsNoReply) {
  EXPECT_NE(ParseError("hello\r\n").find("0x68"), std::string::npos);
  ParseError("\r\n");
  ParseError(":12x\r\n");
  ParseError(":\r\n");
  ParseError("#x\r\n");
  ParseError("$-2\r\n");
  ParseError("$x\r\n");
  ParseError("*-2\r\n");
  ParseError("*99999999999999999999\r\n");
  ParseError("$9999999999999\r\n");
  ParseError("$2\r\nabcd");
}

TEST(CliReply, StaysInErrorState) {
  ReplyParser parser;
  parser.Feed("?\r\n+OK\r\n");
  Reply reply;
  EXPECT_EQ(parser.Next(&reply), ReplyParser::Status::kError);
  EXPECT_EQ(parser.Next(&reply), ReplyParser::Status::kError);
}

TEST(CliReply, LimitsNesting) {
  std::string deep;
  for (size_t i = 0; i < ReplyParser::kMaxDepth; ++i) deep += "*1\r\n";
  const Reply reply = ParseOne(deep + ":1\r\n");
  EXPECT_EQ(reply.elements.size(), 1U);
  EXPECT_NE(ParseError(deep + "*1\r\n").find("deeply"), std::string::npos);
}

TEST(CliReply, PromisedLengthsCostNothing) {
  ReplyParser parser;
  parser.Feed("*2147483648\r\n$4294967296\r\nabc");
  Reply reply;
  EXPECT_EQ(parser.Next(&reply), ReplyParser::Status::kNeedMore);
}

std::string RandomReply(std::mt19937_64* random, int depth) {
  const auto pick = [&](uint64_t bound) { return (*random)() % bound; };
  const auto bytes = [&](uint64_t longest) {
    std::string out(pick(longest + 1), ' ');
    for (char& c : out) c = static_cast<char>(pick(256));
    return out;
  };
  const auto aggregate = [&](char marker, bool pairs) {
    const uint64_t count = pick(5);
    std::string out = marker + std::to_string(count) + "\r\n";
    for (uint64_t i = 0; i < count * (pairs ? 2 : 1); ++i) out += RandomReply(random, depth - 1);
    return out;
  };
  switch (pick(depth > 0 ? 12 : 8)) {
    case 0:
      return "+status " + std::to_string(pick(100)) + "\r\n";
    case 1:
      return ":" + std::to_string(static_cast<int64_t>((*random)())) + "\r\n";
    case 2:
      return "_\r\n";
    case 3:
      return "#t\r\n";
    case 4:
      return ",0.5\r\n";
    case 5:
      return "-ERR some\r\n";
    case 6:
    case 7: {
      const std::string text = bytes(40);
      return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
    }
    case 8:
      return aggregate('*', false);
    case 9:
      return aggregate('%', true);
    case 10:
      return aggregate('~', false);
    default:
      return aggregate('|', true) + RandomReply(random, depth - 1);
  }
}

TEST(CliReply, CutsMakeNoDifference) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    std::string bytes;
    for (int i = 0; i < 3; ++i) bytes += RandomReply(&random, 4);
    std::string whole;
    ReplyParser at_once;
    at_once.Feed(bytes);
    Reply reply;
    while (at_once.Next(&reply) == ReplyParser::Status::kReply) whole += FormatTerminal(reply);
    ASSERT_TRUE(at_once.idle());

    std::string pieces;
    ReplyParser in_pieces;
    const size_t longest = round % 2 == 0 ? 1 : 17;
    for (size_t pos = 0; pos < bytes.size();) {
      const size_t length = std::min<size_t>(1 + random() % longest, bytes.size() - pos);
      in_pieces.Feed(std::string_view(bytes).substr(pos, length));
      pos += length;
      while (in_pieces.Next(&reply) == ReplyParser::Status::kReply) pieces += FormatTerminal(reply);
    }
    ASSERT_EQ(whole, pieces);
    ASSERT_TRUE(in_pieces.idle());
  }
}

}  // namespace
}  // namespace sava::cli
