// The string commands on a FakeContext: replies byte for byte, and what they report.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fake_context.h"

namespace sava::commands {
namespace {

constexpr int64_t kNow = 1'700'000'000'000;
constexpr char kNull[] = "$-1\r\n";
constexpr char kOk[] = "+OK\r\n";

std::string Bulk(std::string_view text) {
  return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}
std::string Int(int64_t value) { return ":" + std::to_string(value) + "\r\n"; }
std::string Err(std::string_view text) { return "-" + std::string(text) + "\r\n"; }

const std::string kWrongType = Err(errors::kWrongType);
const std::string kSyntax = Err(errors::kSyntax);
const std::string kNotInteger = Err(errors::kNotInteger);

class Strings : public testing::Test {
 protected:
  Strings() {
    context_.set_now_ms(kNow);
    context_.AddObject("list");
  }

  std::string Run(std::vector<std::string> words) { return context_.Run(std::move(words)); }
  // Forgets what earlier commands reported.
  void Forget() {
    context_.TakeChanges();
    context_.TakeEvents();
    context_.TakeEffects();
  }
  void ExpectReported(int64_t changes, std::string_view events, std::string_view effects) {
    EXPECT_EQ(context_.TakeChanges(), changes);
    EXPECT_EQ(context_.TakeEvents(), events);
    EXPECT_EQ(context_.TakeEffects(), effects);
  }

  FakeContext context_{{StringCommands()}};
};

TEST_F(Strings, GetTellsTheStringOrNull) {
  EXPECT_EQ(Run({"GET", "k"}), kNull);
  EXPECT_EQ(Run({"SET", "k", "v"}), kOk);
  EXPECT_EQ(Run({"GET", "k"}), Bulk("v"));
  EXPECT_EQ(Run({"GET", "list"}), kWrongType);
  EXPECT_EQ(context_.hits(), 2);
  EXPECT_EQ(context_.misses(), 1);
  context_.set_resp(3);
  EXPECT_EQ(Run({"GET", "missing"}), "_\r\n");
}

TEST_F(Strings, NumbersAndEmptyStringsComeBackAsText) {
  for (const std::string text : {"0", "-1", "9223372036854775807", "-9223372036854775808",
                                 "9223372036854775808", "01", ""}) {
    Run({"SET", "k", text});
    EXPECT_EQ(Run({"GET", "k"}), Bulk(text));
    EXPECT_EQ(Run({"STRLEN", "k"}), Int(static_cast<int64_t>(text.size())));
  }
}

TEST_F(Strings, PlainSetReplacesAnythingAndItsExpiry) {
  Run({"SET", "k", "v", "EX", "10"});
  Forget();
  EXPECT_EQ(Run({"SET", "k", "w"}), kOk);
  EXPECT_EQ(context_.ExpiryAt("k"), kNoExpiry);
  ExpectReported(1, "set k", "");
  EXPECT_EQ(Run({"SET", "list", "now a string"}), kOk);
  EXPECT_EQ(context_.StringAt("list"), "now a string");
}

TEST_F(Strings, SetConditions) {
  EXPECT_EQ(Run({"SET", "k", "v", "XX"}), kNull);
  ExpectReported(0, "", "");
  EXPECT_EQ(Run({"SET", "k", "v", "nx"}), kOk);
  ExpectReported(1, "set k", "");
  EXPECT_EQ(Run({"SET", "k", "w", "NX"}), kNull);
  EXPECT_EQ(Run({"SET", "k", "w", "XX", "xx"}), kOk);
  EXPECT_EQ(Run({"SET", "list", "w", "NX"}), kNull);
  EXPECT_EQ(Run({"SET", "k", "x", "NX", "XX"}), kSyntax);
  EXPECT_EQ(Run({"SET", "k", "x", "XX", "NX"}), kSyntax);
  EXPECT_EQ(context_.StringAt("k"), "w");
}

TEST_F(Strings, SetGetTellsTheFormerString) {
  EXPECT_EQ(Run({"SET", "k", "v", "GET"}), kNull);
  ExpectReported(1, "set k", "SET k v");
  EXPECT_EQ(Run({"SET", "k", "w", "NX", "GET"}), Bulk("v"));
  ExpectReported(0, "", "");
  EXPECT_EQ(Run({"SET", "k", "w", "GET", "XX", "KEEPTTL"}), Bulk("v"));
  ExpectReported(1, "set k", "SET k w KEEPTTL");
  EXPECT_EQ(Run({"SET", "none", "w", "GET", "XX"}), kNull);
  EXPECT_FALSE(context_.Exists("none"));
  EXPECT_EQ(Run({"SET", "list", "w", "GET"}), kWrongType);
  EXPECT_EQ(Run({"SET", "list", "w", "NX", "GET"}), kWrongType);
  EXPECT_EQ(context_.StringAt("list"), "(none)");
}

TEST_F(Strings, SetExpiriesAreLoggedAsAbsoluteTimes) {
  const struct {
    const char* option;
    std::string time;
    int64_t expire_at;
  } cases[] = {{"EX", "10", kNow + 10'000},
               {"px", "10", kNow + 10},
               {"EXAT", "1800000000", 1'800'000'000'000},
               {"PxAt", "1800000000001", 1'800'000'000'001}};
  for (const auto& c : cases) {
    EXPECT_EQ(Run({"SET", "k", "v", c.option, c.time}), kOk);
    EXPECT_EQ(context_.ExpiryAt("k"), c.expire_at);
    ExpectReported(1, "set k, expire k", "SET k v PXAT " + std::to_string(c.expire_at));
  }
  EXPECT_EQ(Run({"SET", "k", "w", "KEEPTTL"}), kOk);
  EXPECT_EQ(context_.ExpiryAt("k"), 1'800'000'000'001);
  ExpectReported(1, "set k", "");
  EXPECT_EQ(Run({"SET", "k", "w", "EX", "1", "EX", "2"}), kOk);
  EXPECT_EQ(context_.ExpiryAt("k"), kNow + 2000);
}

TEST_F(Strings, SetClassesOfNotifications) {
  Run({"SET", "k", "v", "EX", "10"});
  ASSERT_EQ(context_.events().size(), 2U);
  EXPECT_EQ(context_.events()[0].cls, kNotifyString);
  EXPECT_EQ(context_.events()[1].cls, kNotifyGeneric);
}

TEST_F(Strings, SetInThePastLeavesNothing) {
  Run({"SET", "k", "old"});
  Forget();
  EXPECT_EQ(Run({"SET", "k", "v", "PXAT", "1"}), kOk);
  ExpectReported(1, "set k, expire k", "SET k v PXAT 1");
  EXPECT_EQ(Run({"GET", "k"}), kNull);
}

TEST_F(Strings, SetRefusesBadExpiries) {
  const std::string invalid = Err("ERR invalid expire time in 'set' command");
  for (const char* time : {"0", "-1", "9223372036854775807", "9223372036854776"}) {
    EXPECT_EQ(Run({"SET", "k", "v", "EX", time}), invalid) << time;
    EXPECT_EQ(Run({"SET", "k", "v", "EXAT", time}), invalid) << time;
  }
  EXPECT_EQ(Run({"SET", "k", "v", "PX", "9223372036854775807"}), invalid);
  EXPECT_EQ(Run({"SET", "k", "v", "PXAT", "0"}), invalid);
  for (const char* time : {"x", "", "1.5", " 1", "9223372036854775808"}) {
    EXPECT_EQ(Run({"SET", "k", "v", "EX", time}), kNotInteger);
  }
  EXPECT_FALSE(context_.Exists("k"));
  EXPECT_EQ(Run({"SET", "k", "v", "PXAT", "9223372036854775807"}), kOk);
}

TEST_F(Strings, SetRefusesOptionsThatDoNotGoTogether) {
  const std::vector<std::vector<std::string>> bad = {
      {"EX"},
      {"EX", "1", "PX", "1"},
      {"EX", "1", "KEEPTTL"},
      {"KEEPTTL", "PX", "1"},
      {"PERSIST"},
      {"FOO"},
      {"EXAT", "1", "PXAT", "1"},
      {"NX", "GET", "XX"},
      {"EX", "x", "Y"},
      {""},
      {"GET", "PX"},
  };
  for (const std::vector<std::string>& options : bad) {
    std::vector<std::string> words = {"SET", "k", "v"};
    words.insert(words.end(), options.begin(), options.end());
    EXPECT_EQ(Run(words), kSyntax) << options[0];
  }
  // The number is looked at before the key.
  EXPECT_EQ(Run({"SET", "list", "v", "EX", "x", "GET"}), kNotInteger);
  ExpectReported(0, "", "");
}

TEST_F(Strings, SetexAndPsetex) {
  EXPECT_EQ(Run({"SETEX", "k", "10", "v"}), kOk);
  ExpectReported(1, "set k, expire k", "SET k v PXAT 1700000010000");
  EXPECT_EQ(Run({"PSETEX", "list", "10", "v"}), kOk);
  ExpectReported(1, "set list, expire list", "SET list v PXAT 1700000000010");
  EXPECT_EQ(Run({"SETEX", "k", "0", "v"}), Err("ERR invalid expire time in 'setex' command"));
  EXPECT_EQ(Run({"PSETEX", "k", "-5", "v"}), Err("ERR invalid expire time in 'psetex' command"));
  EXPECT_EQ(Run({"SETEX", "k", "x", "v"}), kNotInteger);
}

TEST_F(Strings, Setnx) {
  EXPECT_EQ(Run({"SETNX", "k", "v"}), Int(1));
  ExpectReported(1, "set k", "");
  EXPECT_EQ(Run({"SETNX", "k", "w"}), Int(0));
  EXPECT_EQ(Run({"SETNX", "list", "w"}), Int(0));
  ExpectReported(0, "", "");
}

TEST_F(Strings, GetsetDropsTheExpiry) {
  EXPECT_EQ(Run({"GETSET", "k", "v"}), kNull);
  ExpectReported(1, "set k", "SET k v");
  context_.SetExpiry("k", kNow + 5);
  EXPECT_EQ(Run({"GETSET", "k", "5"}), Bulk("v"));
  EXPECT_EQ(context_.ExpiryAt("k"), kNoExpiry);
  EXPECT_EQ(Run({"GETSET", "k", "6"}), Bulk("5"));
  EXPECT_EQ(Run({"GETSET", "list", "v"}), kWrongType);
}

TEST_F(Strings, GetdelDeletesStringsOnly) {
  EXPECT_EQ(Run({"GETDEL", "k"}), kNull);
  ExpectReported(0, "", "");
  Run({"SET", "k", "v"});
  Forget();
  EXPECT_EQ(Run({"GETDEL", "k"}), Bulk("v"));
  ExpectReported(1, "del k", "DEL k");
  EXPECT_FALSE(context_.Exists("k"));
  EXPECT_EQ(Run({"GETDEL", "list"}), kWrongType);
  EXPECT_TRUE(context_.Exists("list"));
}

TEST_F(Strings, GetexChangesTheExpiry) {
  Run({"SET", "k", "v"});
  Forget();
  EXPECT_EQ(Run({"GETEX", "k"}), Bulk("v"));
  ExpectReported(0, "", "");
  EXPECT_EQ(Run({"GETEX", "k", "PERSIST"}), Bulk("v"));
  ExpectReported(0, "", "");
  EXPECT_EQ(Run({"GETEX", "k", "EX", "10"}), Bulk("v"));
  EXPECT_EQ(context_.ExpiryAt("k"), kNow + 10'000);
  ExpectReported(1, "expire k", "PEXPIREAT k 1700000010000");
  EXPECT_EQ(Run({"GETEX", "k", "persist"}), Bulk("v"));
  EXPECT_EQ(context_.ExpiryAt("k"), kNoExpiry);
  ExpectReported(1, "persist k", "PERSIST k");
  EXPECT_EQ(Run({"GETEX", "k", "PXAT", std::to_string(kNow)}), Bulk("v"));
  ExpectReported(1, "del k", "DEL k");
  EXPECT_FALSE(context_.Exists("k"));
}

TEST_F(Strings, GetexChecksInRedisOrder) {
  EXPECT_EQ(Run({"GETEX", "none", "EX", "0"}), kNull);
  EXPECT_EQ(Run({"GETEX", "none", "EX", "x"}), kNull);
  EXPECT_EQ(Run({"GETEX", "none", "EX"}), kSyntax);
  EXPECT_EQ(Run({"GETEX", "list", "FOO"}), kSyntax);
  EXPECT_EQ(Run({"GETEX", "list", "EX", "x"}), kWrongType);
  Run({"SET", "k", "v"});
  EXPECT_EQ(Run({"GETEX", "k", "EX", "x"}), kNotInteger);
  EXPECT_EQ(Run({"GETEX", "k", "PX", "0"}), Err("ERR invalid expire time in 'getex' command"));
  for (const char* option : {"NX", "XX", "GET", "KEEPTTL"}) {
    EXPECT_EQ(Run({"GETEX", "k", option}), kSyntax);
  }
  EXPECT_EQ(Run({"GETEX", "k", "PERSIST", "EX", "1"}), kSyntax);
  EXPECT_EQ(Run({"GETEX", "k", "EX", "1", "PERSIST"}), kSyntax);
}

TEST_F(Strings, MgetTellsNullForOtherTypes) {
  Run({"MSET", "a", "1", "b", "two"});
  EXPECT_EQ(Run({"MGET", "a", "list", "none", "b", "a"}),
            "*5\r\n" + Bulk("1") + kNull + kNull + Bulk("two") + Bulk("1"));
}

TEST_F(Strings, MsetCountsEveryPair) {
  EXPECT_EQ(Run({"MSET", "a", "1", "list", "2", "a", "3"}), kOk);
  ExpectReported(3, "set a, set list, set a", "");
  EXPECT_EQ(context_.StringAt("a"), "3");
  EXPECT_EQ(context_.StringAt("list"), "2");
  EXPECT_EQ(Run({"MSET", "a", "1", "b"}), Err("ERR wrong number of arguments for 'mset' command"));
  EXPECT_EQ(Run({"MSET", "a"}), Err("ERR wrong number of arguments for 'mset' command"));
}

TEST_F(Strings, MsetnxIsAllOrNothing) {
  EXPECT_EQ(Run({"MSETNX", "a", "1", "list", "2"}), Int(0));
  EXPECT_FALSE(context_.Exists("a"));
  ExpectReported(0, "", "");
  EXPECT_EQ(Run({"MSETNX", "a", "1", "a", "2"}), Int(1));
  ExpectReported(2, "set a, set a", "");
  EXPECT_EQ(context_.StringAt("a"), "2");
  EXPECT_EQ(Run({"MSETNX", "a", "1", "b"}),
            Err("ERR wrong number of arguments for 'msetnx' command"));
}

TEST_F(Strings, AppendKeepsTheExpiryAndMakesRaw) {
  EXPECT_EQ(Run({"APPEND", "k", "12"}), Int(2));
  EXPECT_EQ(context_.FormAt("k"), StringForm::kInt);
  ExpectReported(1, "append k", "");
  context_.SetExpiry("k", kNow + 5);
  EXPECT_EQ(Run({"APPEND", "k", "34"}), Int(4));
  EXPECT_EQ(context_.StringAt("k"), "1234");
  EXPECT_EQ(context_.FormAt("k"), StringForm::kRaw);
  EXPECT_EQ(context_.ExpiryAt("k"), kNow + 5);
  EXPECT_EQ(Run({"APPEND", "k", ""}), Int(4));
  EXPECT_EQ(Run({"APPEND", "empty", ""}), Int(0));
  EXPECT_TRUE(context_.Exists("empty"));
  EXPECT_EQ(Run({"APPEND", "list", "x"}), kWrongType);
}

TEST_F(Strings, SizesAreLimited) {
  context_.set_max_string_size(10);
  Run({"SET", "k", "12345678"});
  EXPECT_EQ(Run({"APPEND", "k", "90"}), Int(10));
  Forget();
  EXPECT_EQ(Run({"APPEND", "k", "x"}), Err(errors::kStringTooLong));
  EXPECT_EQ(Run({"SETRANGE", "k", "10", "x"}), Err(errors::kStringTooLong));
  EXPECT_EQ(Run({"SETRANGE", "new", "9223372036854775807", "x"}), Err(errors::kStringTooLong));
  ExpectReported(0, "", "");
  EXPECT_FALSE(context_.Exists("new"));
  EXPECT_EQ(Run({"SETRANGE", "k", "9", "x"}), Int(10));
}

TEST_F(Strings, StrlenOfAnything) {
  EXPECT_EQ(Run({"STRLEN", "none"}), Int(0));
  EXPECT_EQ(Run({"STRLEN", "list"}), kWrongType);
}

TEST_F(Strings, GetrangeCountsFromBothEnds) {
  Run({"SET", "k", "This is a string"});
  const struct {
    const char* start;
    const char* end;
    const char* part;
  } cases[] = {{"0", "3", "This"},
               {"-3", "-1", "ing"},
               {"0", "-1", "This is a string"},
               {"10", "100", "string"},
               {"-100", "3", "This"},
               {"5", "3", ""},
               {"-1", "-5", ""},
               {"100", "200", ""},
               {"0", "-100", "T"},
               {"-9223372036854775808", "9223372036854775807", "This is a string"}};
  for (const char* command : {"GETRANGE", "SUBSTR"}) {
    for (const auto& c : cases) {
      EXPECT_EQ(Run({command, "k", c.start, c.end}), Bulk(c.part)) << c.start << " " << c.end;
    }
  }
  Run({"SET", "n", "-12345"});
  EXPECT_EQ(Run({"GETRANGE", "n", "0", "2"}), Bulk("-12"));
  EXPECT_EQ(Run({"GETRANGE", "n", "0", "-1"}), Bulk("-12345"));
  EXPECT_EQ(Run({"GETRANGE", "none", "0", "-1"}), Bulk(""));
  EXPECT_EQ(Run({"GETRANGE", "list", "x", "y"}), kNotInteger);
  EXPECT_EQ(Run({"GETRANGE", "list", "0", "1"}), kWrongType);
}

TEST_F(Strings, SetrangeFillsGapsWithZeros) {
  EXPECT_EQ(Run({"SETRANGE", "k", "3", "ab"}), Int(5));
  EXPECT_EQ(context_.StringAt("k"), std::string("\0\0\0ab", 5));
  EXPECT_EQ(context_.FormAt("k"), StringForm::kRaw);
  ExpectReported(1, "setrange k", "");
  EXPECT_EQ(Run({"SETRANGE", "k", "0", "xy"}), Int(5));
  EXPECT_EQ(context_.StringAt("k"), std::string("xy\0ab", 5));
  Run({"SET", "n", "12345"});
  EXPECT_EQ(Run({"SETRANGE", "n", "1", "x"}), Int(5));
  EXPECT_EQ(context_.StringAt("n"), "1x345");
}

TEST_F(Strings, SetrangeOfNothingChangesNothing) {
  EXPECT_EQ(Run({"SETRANGE", "none", "536870911", ""}), Int(0));
  EXPECT_FALSE(context_.Exists("none"));
  Run({"SET", "k", "123"});
  Forget();
  EXPECT_EQ(Run({"SETRANGE", "k", "536870999", ""}), Int(3));
  EXPECT_EQ(context_.FormAt("k"), StringForm::kInt);
  ExpectReported(0, "", "");
  EXPECT_EQ(Run({"SETRANGE", "k", "-1", ""}), Err("ERR offset is out of range"));
  EXPECT_EQ(Run({"SETRANGE", "list", "-1", ""}), Err("ERR offset is out of range"));
  EXPECT_EQ(Run({"SETRANGE", "list", "x", ""}), kNotInteger);
  EXPECT_EQ(Run({"SETRANGE", "list", "0", ""}), kWrongType);
  EXPECT_EQ(Run({"SETRANGE", "k", "536870912", "x"}), Err(errors::kStringTooLong));
}

TEST_F(Strings, Counters) {
  EXPECT_EQ(Run({"INCR", "n"}), Int(1));
  ExpectReported(1, "incrby n", "");
  EXPECT_EQ(Run({"INCRBY", "n", "41"}), Int(42));
  EXPECT_EQ(Run({"DECR", "n"}), Int(41));
  EXPECT_EQ(Run({"DECRBY", "n", "-9"}), Int(50));
  EXPECT_EQ(Run({"DECRBY", "n", "100"}), Int(-50));
  EXPECT_EQ(context_.FormAt("n"), StringForm::kInt);
  context_.SetExpiry("n", kNow + 5);
  Run({"INCR", "n"});
  EXPECT_EQ(context_.ExpiryAt("n"), kNow + 5);
  Run({"APPEND", "n", "0"});
  EXPECT_EQ(Run({"INCR", "n"}), Int(-489));
}

TEST_F(Strings, CountersRefuseWhatIsNoNumber) {
  for (const char* text : {"x", "", "1.0", " 1", "1 ", "+1", "01", "9223372036854775808"}) {
    Run({"SET", "k", text});
    Forget();
    EXPECT_EQ(Run({"INCR", "k"}), kNotInteger) << text;
    EXPECT_EQ(context_.StringAt("k"), text);
    ExpectReported(0, "", "");
  }
  EXPECT_EQ(Run({"INCRBY", "list", "x"}), kNotInteger);
  EXPECT_EQ(Run({"INCRBY", "list", "1"}), kWrongType);
  EXPECT_EQ(Run({"DECRBY", "list", "x"}), kNotInteger);
}

TEST_F(Strings, CountersDoNotOverflow) {
  Run({"SET", "top", "9223372036854775807"});
  EXPECT_EQ(Run({"INCR", "top"}), Err(errors::kOverflow));
  EXPECT_EQ(Run({"DECRBY", "top", "-1"}), Err(errors::kOverflow));
  EXPECT_EQ(Run({"INCRBY", "top", "-9223372036854775808"}), Int(-1));
  Run({"SET", "low", "-9223372036854775808"});
  EXPECT_EQ(Run({"DECR", "low"}), Err(errors::kOverflow));
  EXPECT_EQ(Run({"DECRBY", "low", "-9223372036854775808"}), Err("ERR decrement would overflow"));
  EXPECT_EQ(Run({"DECRBY", "list", "-9223372036854775808"}), Err("ERR decrement would overflow"));
}

TEST_F(Strings, IncrbyfloatIsLoggedAsItsSum) {
  EXPECT_EQ(Run({"INCRBYFLOAT", "f", "10.50"}), Bulk("10.5"));
  ExpectReported(1, "incrbyfloat f", "SET f 10.5 KEEPTTL");
  EXPECT_EQ(Run({"INCRBYFLOAT", "f", "0.1"}), Bulk("10.6"));
  EXPECT_EQ(Run({"INCRBYFLOAT", "f", "-5"}), Bulk("5.6"));
  EXPECT_EQ(Run({"INCRBYFLOAT", "f", "5.0e3"}), Bulk("5005.60000000000000009"));
  Run({"SET", "n", "3"});
  context_.SetExpiry("n", kNow + 5);
  EXPECT_EQ(Run({"INCRBYFLOAT", "n", "1.5"}), Bulk("4.5"));
  EXPECT_EQ(context_.ExpiryAt("n"), kNow + 5);
  EXPECT_EQ(Run({"INCRBYFLOAT", "n", "-4.5"}), Bulk("0"));
  EXPECT_EQ(Run({"INCRBYFLOAT", "huge", "1e400"}).substr(0, 10), "$401\r\n1000");
  EXPECT_EQ(Run({"INCRBYFLOAT", "huge", "1e400"}).substr(0, 10), "$401\r\n2000");
}

TEST_F(Strings, IncrbyfloatRefuses) {
  Run({"SET", "n", "1"});
  Run({"SET", "text", "abc"});
  Forget();
  for (const char* text : {"x", "", " 1", "1 ", "nan", "1e5000"}) {
    EXPECT_EQ(Run({"INCRBYFLOAT", "n", text}), Err(errors::kNotFloat)) << text;
  }
  EXPECT_EQ(Run({"INCRBYFLOAT", "text", "1"}), Err(errors::kNotFloat));
  EXPECT_EQ(Run({"INCRBYFLOAT", "n", "inf"}), Err(errors::kNaN));
  EXPECT_EQ(Run({"INCRBYFLOAT", "list", "x"}), kWrongType);
  ExpectReported(0, "", "");
}

TEST_F(Strings, LcsFindsTheCommonSubsequence) {
  Run({"MSET", "a", "ohmytext", "b", "mynewtext"});
  EXPECT_EQ(Run({"LCS", "a", "b"}), Bulk("mytext"));
  EXPECT_EQ(Run({"LCS", "a", "b", "len"}), Int(6));
  const std::string tail = "*2\r\n*2\r\n:4\r\n:7\r\n*2\r\n:5\r\n:8\r\n";
  const std::string head = "*2\r\n*2\r\n:2\r\n:3\r\n*2\r\n:0\r\n:1\r\n";
  const std::string len = Bulk("len") + Int(6);
  EXPECT_EQ(Run({"LCS", "a", "b", "IDX"}),
            "*4\r\n" + Bulk("matches") + "*2\r\n" + tail + head + len);
  EXPECT_EQ(Run({"LCS", "a", "b", "IDX", "MINMATCHLEN", "4"}),
            "*4\r\n" + Bulk("matches") + "*1\r\n" + tail + len);
  EXPECT_EQ(Run({"LCS", "a", "b", "IDX", "MINMATCHLEN", "4", "WITHMATCHLEN"}),
            "*4\r\n" + Bulk("matches") + "*1\r\n*3\r\n" + tail.substr(4) + Int(4) + len);
  context_.set_resp(3);
  EXPECT_EQ(Run({"LCS", "a", "b", "IDX", "MINMATCHLEN", "9"}),
            "%2\r\n" + Bulk("matches") + "*0\r\n" + len);
}

TEST_F(Strings, LcsOfMissingKeysAndNumbers) {
  EXPECT_EQ(Run({"LCS", "none", "nothing"}), Bulk(""));
  EXPECT_EQ(Run({"LCS", "none", "nothing", "LEN"}), Int(0));
  EXPECT_EQ(Run({"LCS", "none", "nothing", "IDX"}),
            "*4\r\n" + Bulk("matches") + "*0\r\n" + Bulk("len") + Int(0));
  Run({"MSET", "a", "12345", "b", "1a35"});
  EXPECT_EQ(Run({"LCS", "a", "b"}), Bulk("135"));
  EXPECT_EQ(Run({"LCS", "a", "a"}), Bulk("12345"));
}

TEST_F(Strings, LcsRefuses) {
  Run({"MSET", "a", "12345678", "b", "12345678"});
  EXPECT_EQ(Run({"LCS", "list", "a", "FOO"}),
            Err("ERR The specified keys must contain string values"));
  EXPECT_EQ(Run({"LCS", "a", "b", "FOO"}), kSyntax);
  EXPECT_EQ(Run({"LCS", "a", "b", "MINMATCHLEN"}), kSyntax);
  EXPECT_EQ(Run({"LCS", "a", "b", "MINMATCHLEN", "x"}), kNotInteger);
  EXPECT_EQ(Run({"LCS", "a", "b", "LEN", "IDX"}),
            Err("ERR If you want both the length and indexes, please just use IDX."));
  context_.set_max_string_size(9 * 9 * 4);
  EXPECT_EQ(Run({"LCS", "a", "b", "LEN"}), Int(8));
  context_.set_max_string_size(9 * 9 * 4 - 1);
  EXPECT_EQ(Run({"LCS", "a", "b", "LEN"}),
            Err("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"));
}

TEST_F(Strings, RowsAreComplete) {
  ASSERT_EQ(StringCommands().size(), 22U);
  for (const CommandSpec& row : StringCommands()) {
    EXPECT_NE(row.handler, nullptr) << row.name;
    EXPECT_EQ(row.group, "string") << row.name;
    EXPECT_NE(row.acl & kAclString, 0U) << row.name;
    EXPECT_EQ(row.keys.count, 1) << row.name;
    for (const std::string_view text : {row.summary, row.complexity, row.arguments, row.reply}) {
      EXPECT_FALSE(text.empty()) << row.name;
    }
    const bool writes = (row.flags & kWrite) != 0;
    EXPECT_NE(writes, (row.flags & kReadonly) != 0) << row.name;
    EXPECT_EQ((row.keys.items[0].flags & kKeyRo) != 0, !writes) << row.name;
  }
}

TEST_F(Strings, ExamplesRunOnAnEmptyServer) {
  for (const CommandSpec& row : StringCommands()) {
    FakeContext empty({StringCommands()});
    const auto words = base::SplitArgs(row.example);
    ASSERT_TRUE(words.has_value()) << row.name;
    EXPECT_TRUE(base::EqualsNoCase(words->at(0), row.name));
    EXPECT_NE(empty.Run(*words)[0], '-') << row.example;
  }
}

}  // namespace
}  // namespace sava::commands
