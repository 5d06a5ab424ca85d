// The usage grammar: each notation, the shapes COMMAND DOCS needs, and every row of the house.
#include "commands/grammar.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "all_families.h"
#include "commands/registry.h"

namespace sava::commands {
namespace {

// "name:type{TOKEN}?+(parts)": ? optional, + multiple, ++ with its token, #n key specification.
std::string Shape(const Argument& argument) {
  std::string text = argument.name + ':' + argument.type;
  if (!argument.token.empty()) text += '{' + argument.token + '}';
  if (argument.key_spec_index >= 0) text += '#' + std::to_string(argument.key_spec_index);
  if (argument.optional) text += '?';
  if (argument.multiple) text += '+';
  if (argument.multiple_token) text += '+';
  if (argument.is_group()) {
    text += '(';
    for (const Argument& part : argument.arguments) {
      if (text.back() != '(') text += ' ';
      text += Shape(part);
    }
    text += ')';
  }
  return text;
}

std::string Parsed(std::string_view grammar, int key_specs = 1) {
  const auto arguments = ParseGrammar(grammar, key_specs);
  if (!arguments) return "error";
  std::string text;
  for (const Argument& argument : arguments.value()) {
    if (!text.empty()) text += ' ';
    text += Shape(argument);
  }
  return text;
}

TEST(Grammar, NamesGiveTypes) {
  EXPECT_EQ(Parsed(""), "");
  EXPECT_EQ(Parsed("key value seconds pattern unix-time-seconds"),
            "key:key#0 value:string seconds:integer pattern:pattern "
            "unix-time-seconds:unix-time");
  EXPECT_EQ(Parsed("source:key increment:double index1:integer", 1),
            "source:key#0 increment:double index1:integer");
}

TEST(Grammar, KeysBelongToSpecificationsInOrder) {
  EXPECT_EQ(Parsed("key newkey", 2), "key:key#0 newkey:key#1");
  EXPECT_EQ(Parsed("key1 key2", 1), "key1:key#0 key2:key#0");
  EXPECT_EQ(Parsed("key", 0), "key:key");
}

TEST(Grammar, OptionsAndTokens) {
  EXPECT_EQ(Parsed("[REPLACE]"), "replace:pure-token{REPLACE}?");
  EXPECT_EQ(Parsed("[MATCH pattern]"), "pattern:pattern{MATCH}?");
  EXPECT_EQ(Parsed("[LIMIT offset count]"), "limit:block{LIMIT}?(offset:integer count:integer)");
  EXPECT_EQ(Parsed("[start:integer end [BYTE|BIT]]"),
            "start-end-byte-bit:block?(start:integer end:integer "
            "byte-bit:oneof?(byte:pure-token{BYTE} bit:pure-token{BIT}))");
  EXPECT_EQ(Parsed("FIRST SECOND value"), "first:pure-token{FIRST} value:string{SECOND}");
}

TEST(Grammar, Alternatives) {
  EXPECT_EQ(Parsed("[condition: NX | XX]"),
            "condition:oneof?(nx:pure-token{NX} xx:pure-token{XX})");
  EXPECT_EQ(Parsed("[EX seconds | KEEPTTL]"),
            "seconds-keepttl:oneof?(seconds:integer{EX} keepttl:pure-token{KEEPTTL})");
  EXPECT_EQ(Parsed("(AND|OR) destkey"),
            "and-or:oneof(and:pure-token{AND} or:pure-token{OR}) destkey:key#0");
  EXPECT_EQ(Parsed("<A | B>"), "a-b:oneof(a:pure-token{A} b:pure-token{B})");
  EXPECT_EQ(Parsed("[AGGREGATE (SUM|MIN)]"),
            "sum-min:oneof{AGGREGATE}?(sum:pure-token{SUM} min:pure-token{MIN})");
  EXPECT_EQ(Parsed("(a | b c)"), "a-b-c:oneof(a:string b-c:block(b:string c:string))");
}

TEST(Grammar, Repetition) {
  EXPECT_EQ(Parsed("key ..."), "key:key#0+");
  EXPECT_EQ(Parsed("key..."), "key:key#0+");
  EXPECT_EQ(Parsed("key [key ...]"), "key:key#0+");
  EXPECT_EQ(Parsed("[name ...]"), "name:string?+");
  EXPECT_EQ(Parsed("[name [name ...]]"), "name:string?+");
  EXPECT_EQ(Parsed("(key value) ..."), "key-value:block+(key:key#0 value:string)");
  EXPECT_EQ(Parsed("key value [key value ...]"), "key-value:block+(key:key#0 value:string)");
  EXPECT_EQ(Parsed("[field value ...]"), "field-value:block?+(field:string value:string)");
  EXPECT_EQ(Parsed("[A | B]..."), "a-b:oneof?+(a:pure-token{A} b:pure-token{B})");
}

TEST(Grammar, RepetitionOfTokens) {
  EXPECT_EQ(Parsed("[WEIGHTS weight [weight ...]]"), "weight:string{WEIGHTS}?+");
  EXPECT_EQ(Parsed("[GET pattern [GET pattern ...]]"), "pattern:pattern{GET}?++");
  EXPECT_EQ(Parsed("[(GET encoding offset) ...]"),
            "get:block{GET}?++(encoding:string offset:integer)");
}

TEST(Grammar, MistakesAreErrors) {
  for (const char* bad : {"[key", "key]", "(a", "a)", "[a)", "[]", "a |", "| a", "...", "key:blob",
                          "[a ... b]", "(a | )", "a | b c", "key LEFT|RIGHT"}) {
    EXPECT_EQ(Parsed(bad), "error") << bad;
  }
}

TEST(Usage, IsWrittenAsInRedisDocumentation) {
  const auto usage = [](std::string_view grammar, NameStyle style = NameStyle::kPlain) {
    return UsageText(ParseGrammar(grammar, 1).value(), style);
  };
  EXPECT_EQ(usage("key value [condition: NX|XX] [GET]"), "key value [NX | XX] [GET]");
  EXPECT_EQ(usage("source:key ..."), "source [source ...]");
  EXPECT_EQ(usage("(AND|OR) destkey key..."), "<AND | OR> destkey key [key ...]");
  EXPECT_EQ(usage("[GET pattern [GET pattern ...]]"), "[GET pattern [GET pattern ...]]");
  EXPECT_EQ(usage("[AGGREGATE (SUM|MIN)]"), "[AGGREGATE <SUM | MIN>]");
  EXPECT_EQ(usage("[STORE storekey=key]"), "[STORE key]");
  EXPECT_EQ(usage("(key value) ..."), "key value [key value ...]");
  EXPECT_EQ(usage("key [COUNT count]", NameStyle::kAngles), "<key> [COUNT <count>]");
}

TEST(Grammar, OfEveryRowIsValid) {
  CommandTable table;
  for (const auto family : DataFamilies()) table.Add(family);
  for (const auto& command : table.by_id()) {
    const CommandSpec& spec = *command->spec;
    const auto arguments = ParseGrammar(spec.arguments, spec.keys.count);
    ASSERT_TRUE(arguments.ok()) << command->full_name << ": " << arguments.error();
    EXPECT_FALSE(UsageText(arguments.value()).empty() && !spec.arguments.empty());
  }
}

}  // namespace
}  // namespace sava::commands
