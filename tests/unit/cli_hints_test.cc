// Hints, completion and help from a small COMMAND DOCS reply.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/client_hints.h"

namespace sava::cli {
namespace {

using Words = std::vector<std::string>;

Reply Text(std::string_view text) {
  Reply reply;
  reply.type = ReplyType::kString;
  reply.text = text;
  return reply;
}

// A flat RESP2 array or a RESP3 map of name and value.
struct Shape {
  ReplyType map;

  template <typename... Pairs>
  Reply Map(Pairs... pairs) const {
    Reply reply;
    reply.type = map;
    (Add(&reply, std::move(pairs)), ...);
    return reply;
  }
  static void Add(Reply* reply, std::pair<std::string_view, Reply> pair) {
    reply->elements.push_back(Text(pair.first));
    reply->elements.push_back(std::move(pair.second));
  }
};

template <typename... Elements>
Reply List(Elements... elements) {
  Reply reply;
  reply.type = ReplyType::kArray;
  (reply.elements.push_back(std::move(elements)), ...);
  return reply;
}

using Pair = std::pair<std::string_view, Reply>;

class CliHints : public testing::TestWithParam<ReplyType> {
 protected:
  CliHints() : docs_(CommandDocs::FromReply(Docs())) {}

  Reply Value(std::string_view name, std::string_view type, std::string_view flags = "",
              std::string_view token = "") const {
    Reply reply = shape_.Map(Pair{"name", Text(name)}, Pair{"type", Text(type)});
    if (!token.empty()) Shape::Add(&reply, {"token", Text(token)});
    Reply set = List();
    if (flags.find('?') != std::string_view::npos) set.elements.push_back(Text("optional"));
    if (flags.find('*') != std::string_view::npos) set.elements.push_back(Text("multiple"));
    if (flags.find('+') != std::string_view::npos) set.elements.push_back(Text("multiple_token"));
    Shape::Add(&reply, {"flags", std::move(set)});
    return reply;
  }
  Reply Token(std::string_view token, std::string_view flags = "") const {
    return Value(token, "pure-token", flags, token);
  }
  Reply Group(Reply head, Reply inner) const {
    Shape::Add(&head, {"arguments", std::move(inner)});
    return head;
  }

  Reply Set() const {
    return List(Value("key", "key"), Value("value", "string"),
                Group(Value("condition", "oneof", "?"), List(Token("NX"), Token("XX"))),
                Token("GET", "?"),
                Group(Value("expiration", "oneof", "?"),
                      List(Value("seconds", "integer", "", "EX"), Value("ms", "integer", "", "PX"),
                           Token("KEEPTTL"))));
  }
  Reply Zadd() const {
    return List(Value("key", "key"),
                Group(Value("condition", "oneof", "?"), List(Token("NX"), Token("XX"))),
                Token("CH", "?"),
                Group(Value("data", "block", "*"),
                      List(Value("score", "double"), Value("member", "string"))));
  }
  Reply Sort() const {
    return List(Value("key", "key"),
                Group(Value("limit", "block", "?", "LIMIT"),
                      List(Value("offset", "integer"), Value("count", "integer"))),
                Value("pattern", "pattern", "?*+", "GET"),
                Group(Value("order", "oneof", "?"), List(Token("ASC"), Token("DESC"))));
  }
  Reply Union() const {
    return List(Value("numkeys", "integer"), Value("key", "key", "*"),
                Group(Value("aggregate", "oneof", "?", "AGGREGATE"),
                      List(Token("SUM"), Token("MIN"), Token("MAX"))),
                Token("WITHSCORES", "?"));
  }
  Reply Docs() const {
    return shape_.Map(
        Pair{"set", shape_.Map(Pair{"summary", Text("Sets a string.")},
                               Pair{"since", Text("1.0.0")}, Pair{"group", Text("string")},
                               Pair{"complexity", Text("O(1)")}, Pair{"arguments", Set()})},
        Pair{"get", shape_.Map(Pair{"group", Text("string")},
                               Pair{"arguments", List(Value("key", "key"))})},
        Pair{"zadd", shape_.Map(Pair{"arguments", Zadd()})},
        Pair{"sort", shape_.Map(Pair{"arguments", Sort()})},
        Pair{"zunion", shape_.Map(Pair{"arguments", Union()})},
        Pair{"ping", shape_.Map(Pair{"arguments", List(Value("message", "string", "?"))})},
        Pair{"config",
             shape_.Map(Pair{
                 "subcommands",
                 shape_.Map(
                     Pair{"config|get",
                          shape_.Map(Pair{"arguments", List(Value("parameter", "string", "*"))})},
                     Pair{"config|rewrite", shape_.Map()})})});
  }

  std::string Hint(std::string_view line) const { return HintFor(docs_, line); }
  Words Complete(std::string_view line) const {
    return CompletionsFor(docs_, {"help", "quit"}, line).words;
  }

  Shape shape_{GetParam()};
  CommandDocs docs_;
};

INSTANTIATE_TEST_SUITE_P(Protocols, CliHints, testing::Values(ReplyType::kArray, ReplyType::kMap),
                         [](const auto& param) {
                           return param.param == ReplyType::kArray ? "Resp2" : "Resp3";
                         });

TEST_P(CliHints, ShowsTheWholeSyntaxAfterTheName) {
  EXPECT_EQ(Hint("SET"), " key value [NX | XX] [GET] [EX seconds | PX ms | KEEPTTL]");
  EXPECT_EQ(Hint("set "), "key value [NX | XX] [GET] [EX seconds | PX ms | KEEPTTL]");
  EXPECT_EQ(Hint("zadd "), "key [NX | XX] [CH] score member [score member ...]");
  EXPECT_EQ(Hint("sort "), "key [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC]");
  EXPECT_EQ(Hint("zunion "), "numkeys key [key ...] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]");
  EXPECT_EQ(Hint("config "), "<GET | REWRITE>");
  EXPECT_EQ(Hint("config get"), " parameter [parameter ...]");
}

TEST_P(CliHints, SaysNothingWithoutKnowledge) {
  EXPECT_EQ(Hint(""), "");
  EXPECT_EQ(Hint("  "), "");
  EXPECT_EQ(Hint("se"), "");
  EXPECT_EQ(Hint("nosuch "), "");
  EXPECT_EQ(Hint("config nosuch "), "");
  EXPECT_EQ(Hint("config rewrite "), "");
  EXPECT_EQ(Hint("get k extra "), "");
}

TEST_P(CliHints, DropsWhatIsGiven) {
  EXPECT_EQ(Hint("set k"), " value [NX | XX] [GET] [EX seconds | PX ms | KEEPTTL]");
  EXPECT_EQ(Hint("set k v "), "[NX | XX] [GET] [EX seconds | PX ms | KEEPTTL]");
  EXPECT_EQ(Hint("set k v nx "), "[GET] [EX seconds | PX ms | KEEPTTL]");
  EXPECT_EQ(Hint("set k v keepttl xx "), "[GET]");
  EXPECT_EQ(Hint("set k v ex 5 get nx"), "");
  EXPECT_EQ(Hint("get k"), "");
}

TEST_P(CliHints, AsksForTheValueOfAnOption) {
  EXPECT_EQ(Hint("set k v EX "), "seconds [NX | XX] [GET]");
  EXPECT_EQ(Hint("sort k limit "), "offset count [GET pattern [GET pattern ...]] [ASC | DESC]");
  EXPECT_EQ(Hint("sort k limit 0 "), "count [GET pattern [GET pattern ...]] [ASC | DESC]");
  EXPECT_EQ(Hint("zunion 1 k aggregate "), "<SUM | MIN | MAX> [WITHSCORES]");
}

TEST_P(CliHints, KnowsRepetitions) {
  EXPECT_EQ(Hint("zadd k 1 "), "member [score member ...]");
  EXPECT_EQ(Hint("zadd k 1 a "), "[score member ...]");
  EXPECT_EQ(Hint("zadd k 1 a 2 "), "member [score member ...]");
  EXPECT_EQ(Hint("zadd k ch 1 a "), "[score member ...]");
  EXPECT_EQ(Hint("zunion 2 a b "), "[key ...] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]");
  EXPECT_EQ(Hint("zunion 2 a b aggregate sum "), "[WITHSCORES]");
  EXPECT_EQ(Hint("sort k get p "), "[GET pattern ...] [LIMIT offset count] [ASC | DESC]");
  EXPECT_EQ(Hint("sort k get p get q desc "), "[LIMIT offset count]");
}

TEST_P(CliHints, KeepsSilentAboutMistakes) {
  EXPECT_EQ(Hint("set k v bogus "), "");
  EXPECT_EQ(Hint("set k v nx nx "), "");
  EXPECT_EQ(Hint("set k v bog"), "");
  // Half a token is no mistake yet.
  EXPECT_EQ(Hint("set k v KEEP"), "  [NX | XX] [GET] [EX seconds | PX ms | KEEPTTL]");
}

TEST_P(CliHints, UnderstandsQuotesAndCounts) {
  EXPECT_EQ(Hint("set \"a b\" 'c"), " [NX | XX] [GET] [EX seconds | PX ms | KEEPTTL]");
  EXPECT_EQ(Hint("set \"a b"), " value [NX | XX] [GET] [EX seconds | PX ms | KEEPTTL]");
  EXPECT_EQ(Hint("set \"a\"b"), "");
  EXPECT_EQ(Hint("5 get "), "key");
}

TEST_P(CliHints, CompletesNames) {
  EXPECT_EQ(Complete("SE"), (Words{"SET"}));
  EXPECT_EQ(Complete("s"), (Words{"set", "sort"}));
  EXPECT_EQ(Complete("q"), (Words{"quit"}));
  EXPECT_EQ(Complete("").size(), 9U);
  EXPECT_EQ(Complete("config "), (Words{"GET", "REWRITE"}));
  EXPECT_EQ(Complete("config g"), (Words{"get"}));
  EXPECT_EQ(Complete("help zu"), (Words{"zunion"}));
  EXPECT_EQ(Complete("help config r"), (Words{"rewrite"}));
  EXPECT_EQ(Complete("2 pi"), (Words{"ping"}));
  EXPECT_EQ(Complete("nosuch x"), Words{});
}

TEST_P(CliHints, CompletesTokens) {
  EXPECT_EQ(Complete("SET k v "), (Words{"EX", "GET", "KEEPTTL", "NX", "PX", "XX"}));
  EXPECT_EQ(Complete("set k v k"), (Words{"keepttl"}));
  EXPECT_EQ(Complete("set k v nx "), (Words{"ex", "get", "keepttl", "px"}));
  EXPECT_EQ(Complete("set k v ex "), Words{});
  EXPECT_EQ(Complete("set k "), Words{});
  EXPECT_EQ(Complete("ZUNION 1 k AGGREGATE M"), (Words{"MAX", "MIN"}));
  EXPECT_EQ(Complete("set k v \"n"), Words{});
}

TEST_P(CliHints, CompletionSaysWhatItReplaces) {
  EXPECT_EQ(CompletionsFor(docs_, {}, "  config re").word_start, 9U);
  EXPECT_EQ(CompletionsFor(docs_, {}, "config ").word_start, 7U);
}

TEST_P(CliHints, Helps) {
  EXPECT_EQ(HelpText(docs_, {"set"}),
            "\n  SET key value [NX | XX] [GET] [EX seconds | PX ms | KEEPTTL]\n"
            "  summary: Sets a string.\n  since: 1.0.0\n  group: string\n  complexity: O(1)\n\n");
  EXPECT_EQ(HelpText(docs_, {"config", "get"}), "\n  CONFIG GET parameter [parameter ...]\n\n");
  EXPECT_NE(HelpText(docs_, {"@STRING"}).find("  GET key\n"), std::string::npos);
  EXPECT_NE(HelpText(docs_, {"@none"}).find("Groups: string"), std::string::npos);
  EXPECT_NE(HelpText(docs_, {"nosuch"}).find("No command 'nosuch'"), std::string::npos);
  EXPECT_NE(HelpText(docs_, {"config", "nosuch"}).find("No command"), std::string::npos);
}

TEST(CliDocs, OldServersGiveNamesOnly) {
  const CommandDocs docs =
      CommandDocs::FromReply(List(List(Text("get"), Text("x")), List(Text("set")), List()));
  EXPECT_EQ(CompletionsFor(docs, {}, "g").words, (Words{"get"}));
  EXPECT_EQ(HintFor(docs, "get "), "");
  EXPECT_TRUE(CommandDocs::FromReply(Text("odd")).empty());
}

TEST(CliPartialLine, Splits) {
  EXPECT_EQ(SplitPartial("a  \"b c\" 'd").words, (Words{"a", "b c", "d"}));
  EXPECT_TRUE(SplitPartial("a b").in_word);
  EXPECT_FALSE(SplitPartial("a b ").in_word);
  EXPECT_TRUE(SplitPartial("a \"b ").in_word);
  EXPECT_FALSE(SplitPartial("").in_word);
  EXPECT_FALSE(SplitPartial("\"a\"b c").valid);
  EXPECT_EQ(SplitPartial("\"\\x41\\n\\\"\"").words, (Words{"A\n\""}));
}

}  // namespace
}  // namespace sava::cli
