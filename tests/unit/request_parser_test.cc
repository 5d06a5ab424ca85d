// The RESP request parser: whole, in pieces, malformed.
#include "protocol/request_parser.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace sava::protocol {
namespace {

using Outcome = RequestParser::Outcome;
using Commands = std::vector<std::vector<std::string>>;

// Feeds the bytes in pieces of the given sizes, as a connection would, and collects the commands.
Commands Feed(const std::string& bytes, const std::vector<size_t>& pieces, std::string* error,
              const ParseLimits& limits = {}) {
  RequestParser parser;
  Commands commands;
  std::string kept;
  size_t at = 0;
  size_t turn = 0;
  error->clear();
  while (at < bytes.size()) {
    const size_t n = std::min(pieces[turn++ % pieces.size()], bytes.size() - at);
    kept += bytes.substr(at, n);
    at += n;
    while (true) {
      std::vector<std::string_view> args;
      size_t consumed = 0;
      const Outcome outcome = parser.Next(kept, limits, &args, &consumed);
      if (outcome == Outcome::kError) {
        *error = parser.error();
        return commands;
      }
      if (outcome == Outcome::kMore) break;
      if (outcome == Outcome::kCommand) commands.emplace_back(args.begin(), args.end());
      kept.erase(0, consumed);
    }
  }
  return commands;
}

std::string Encode(const std::vector<std::string>& words) {
  std::string out = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    out += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return out;
}

TEST(RequestParser, ReadsTheSameCommandsHoweverTheBytesArrive) {
  const auto seed = static_cast<unsigned>(std::random_device{}());
  std::mt19937 random(seed);
  for (int round = 0; round < 50; ++round) {
    Commands expected;
    std::string bytes;
    for (int i = 0; i < 20; ++i) {
      std::vector<std::string> words;
      for (unsigned w = 0; w < 1 + random() % 5; ++w) {
        std::string word(random() % 40, '\0');
        for (char& c : word) c = static_cast<char>(random());
        words.push_back(word);
      }
      expected.push_back(words);
      bytes += Encode(words);
    }
    std::string error;
    EXPECT_EQ(Feed(bytes, {1}, &error), expected) << "seed " << seed;
    EXPECT_EQ(Feed(bytes, {bytes.size()}, &error), expected) << "seed " << seed;
    EXPECT_EQ(Feed(bytes, {1 + random() % 7, 1 + random() % 90, 3}, &error), expected)
        << "seed " << seed;
    EXPECT_EQ(error, "");
  }
}

TEST(RequestParser, ReadsInlineCommandsWithQuotes) {
  std::string error;
  const Commands expected = {{"SET", "a b", "c\n\x01"}, {"PING"}};
  EXPECT_EQ(Feed("SET \"a b\" \"c\\n\\x01\"\r\n\r\nPING\n", {3}, &error), expected);
  EXPECT_EQ(error, "");
}

TEST(RequestParser, SkipsEmptyAndNegativeArrays) {
  std::string error;
  EXPECT_EQ(Feed("*0\r\n*-1\r\n*1\r\n$4\r\nPING\r\n", {2}, &error), Commands({{"PING"}}));
}

struct Bad {
  const char* bytes;
  const char* error;
};

TEST(RequestParser, RefusesMalformedFramesWithRedissWords) {
  const Bad cases[] = {
      {"*abc\r\n", "Protocol error: invalid multibulk length"},
      {"*99999999999\r\n", "Protocol error: invalid multibulk length"},
      {"*1\r\nx3\r\n", "Protocol error: expected '$', got 'x'"},
      {"*1\r\n$-1\r\n", "Protocol error: invalid bulk length"},
      {"*1\r\n$abc\r\n", "Protocol error: invalid bulk length"},
      {"*1\r\n$99999999999\r\n", "Protocol error: invalid bulk length"},
      {"SET \"a\r\n", "Protocol error: unbalanced quotes in request"},
  };
  for (const Bad& bad : cases) {
    for (const size_t piece : {1UL, 100UL}) {
      std::string error;
      Feed(bad.bytes, {piece}, &error);
      EXPECT_EQ(error, bad.error) << bad.bytes;
    }
  }
}

TEST(RequestParser, RefusesEndlessLines) {
  std::string error;
  Feed(std::string(70000, 'a'), {1000}, &error);
  EXPECT_EQ(error, "Protocol error: too big inline request");
  Feed("*" + std::string(70000, '1'), {1000}, &error);
  EXPECT_EQ(error, "Protocol error: too big mbulk count string");
  Feed("*1\r\n$" + std::string(70000, '1'), {1000}, &error);
  EXPECT_EQ(error, "Protocol error: too big bulk count string");
}

TEST(RequestParser, HoldsStrangersToSmallRequests) {
  ParseLimits limits;
  limits.authenticated = false;
  std::string error;
  Feed("*11\r\n", {100}, &error, limits);
  EXPECT_EQ(error, "Protocol error: unauthenticated multibulk length");
  Feed("*1\r\n$16385\r\n", {100}, &error, limits);
  EXPECT_EQ(error, "Protocol error: unauthenticated bulk length");
  EXPECT_EQ(Feed(Encode({"AUTH", "x"}), {100}, &error, limits), Commands({{"AUTH", "x"}}));
}

TEST(RequestParser, SaysHowMuchOfALongArgumentIsMissing) {
  RequestParser parser;
  std::vector<std::string_view> args;
  size_t consumed = 0;
  EXPECT_EQ(parser.Next("*2\r\n$3\r\nGET\r\n$1000\r\nabc", {}, &args, &consumed), Outcome::kMore);
  EXPECT_EQ(parser.missing(), 999U);
}

}  // namespace
}  // namespace sava::protocol
