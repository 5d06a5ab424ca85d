// RL.*, CL.THROTTLE and INCREX on a context that stands still: replies, what is stored and logged.
#include <gtest/gtest.h>

#include "fake_context.h"

namespace sava::commands {
namespace {

constexpr int64_t kNow = 1'700'000'000'000;

struct Limits : testing::Test {
  FakeContext context{{LimitCommands(), StringCommands(), KeyCommands()}};

  std::string Run(std::vector<std::string> words) { return context.Run(std::move(words)); }
  // The integers of a flat reply, apart from its lengths: "1 3 2 0 60001".
  std::string Ints(std::vector<std::string> words) {
    const std::string reply = Run(std::move(words));
    std::string text;
    for (size_t at = 0; at < reply.size();) {
      const size_t end = reply.find("\r\n", at);
      const std::string line = reply.substr(at, end - at);
      at = end + 2;
      if (line[0] == '*') continue;
      if (!text.empty()) text += ' ';
      text += line[0] == ':' ? line.substr(1) : line;
    }
    return text;
  }
};

TEST_F(Limits, TakeStoresTheBucketAndItsTime) {
  EXPECT_EQ(Run({"RL.TAKE", "k", "WINDOW", "3", "60000"}),
            "*5\r\n:1\r\n:3\r\n:2\r\n:0\r\n:60001\r\n");
  EXPECT_EQ(context.StringAt("k"), "1700000000000 2");
  EXPECT_EQ(context.ExpiryAt("k"), kNow + 120'000);
  EXPECT_EQ(context.TakeEffects(), "SET k 1700000000000 2 PXAT 1700000120000");
  EXPECT_EQ(context.TakeChanges(), 1);
  EXPECT_EQ(context.TakeEvents(), "set k");
}

TEST_F(Limits, ARefusalChangesNothing) {
  Run({"RL.TAKE", "k", "window", "3", "60000", "COST", "3"});
  context.TakeEffects();
  context.TakeChanges();
  context.set_now_ms(kNow + 10'000);
  EXPECT_EQ(Ints({"RL.TAKE", "k", "WINDOW", "3", "60000"}), "0 3 0 50001 50001");
  EXPECT_EQ(Ints({"RL.TAKE", "k", "WINDOW", "3", "60000", "COST", "4"}), "0 3 0 -1 50001");
  EXPECT_EQ(context.TakeEffects(), "");
  EXPECT_EQ(context.TakeChanges(), 0);
}

TEST_F(Limits, PeekTakesNothing) {
  EXPECT_EQ(Ints({"RL.PEEK", "k", "WINDOW", "3", "60000"}), "1 3 3 0 0");
  EXPECT_EQ(context.StringAt("k"), "(none)");
  Run({"RL.TAKE", "k", "WINDOW", "3", "60000"});
  EXPECT_EQ(Ints({"RL.PEEK", "k", "WINDOW", "3", "60000", "COST", "3"}), "0 3 2 60001 60001");
  EXPECT_EQ(Ints({"RL.TAKE", "k", "WINDOW", "3", "60000", "COST", "0"}), "1 3 2 0 60001");
  EXPECT_EQ(context.StringAt("k"), "1700000000000 2");
}

TEST_F(Limits, NowReplaysAnotherTime) {
  Run({"SET", "k", "1000000000000 1"});
  EXPECT_EQ(Ints({"RL.TAKE", "k", "WINDOW", "3", "60000", "NOW", "1000000030000"}),
            "1 3 0 0 30001");
  EXPECT_EQ(context.StringAt("k"), "1000000000000 0");
  EXPECT_EQ(Ints({"RL.TAKE", "k", "WINDOW", "3", "60000", "NOW", "1000000060001"}),
            "1 3 2 0 60001");
}

// Document S4, 11:03:00: the bucket is read as it is, although its interval has passed.
TEST_F(Limits, AnElapsedWindowCanBeRead) {
  Run({"RL.TAKE", "k", "WINDOW", "3", "60000"});
  context.set_now_ms(kNow + 115'000);
  EXPECT_EQ(context.StringAt("k"), "1700000000000 2");
  EXPECT_EQ(Ints({"RL.PEEK", "k", "WINDOW", "3", "60000"}), "1 3 3 0 0");
  EXPECT_EQ(Ints({"RL.TAKE", "k", "WINDOW", "3", "60000"}), "1 3 2 0 60001");
  EXPECT_EQ(context.StringAt("k"), "1700000115000 2");
  Run({"RL.TAKE", "k", "WINDOW", "3", "60000"});
  EXPECT_EQ(context.ExpiryAt("k"), kNow + 115'000 + 120'000) << "from the reset on";
}

// However long a replay takes, the times in the buckets decide.
TEST_F(Limits, WithNowTheServersClockDoesNotMatter) {
  for (const char* algorithm : {"WINDOW", "TOKEN", "GCRA", "SLIDING"}) {
    EXPECT_EQ(Ints({"RL.TAKE", "k", algorithm, "2", "100", "COST", "2", "NOW", "1000000000000"})
                  .substr(0, 5),
              "1 2 0");
    context.set_now_ms(context.now_ms() + 3'600'000);
    EXPECT_EQ(Ints({"RL.TAKE", "k", algorithm, "2", "100", "NOW", "1000000000010"}).substr(0, 5),
              "0 2 0")
        << algorithm;
    EXPECT_EQ(
        Ints({"RL.TAKEALL", "1", "k", algorithm, "2", "100", "NOW", "1000000000200"}).substr(0, 4),
        "1 -1")
        << algorithm;
    EXPECT_EQ(context.ExpiryAt("k"), context.now_ms() + 86'400'000) << algorithm;
    Run({"DEL", "k"});
  }
}

TEST_F(Limits, EveryAlgorithmHasItsString) {
  EXPECT_EQ(Ints({"RL.TAKE", "t", "TOKEN", "10", "1000", "BURST", "5", "COST", "2"}),
            "1 5 3 0 200");
  EXPECT_EQ(context.StringAt("t"), "1700000000000 3");
  context.set_now_ms(kNow + 25);
  EXPECT_EQ(Ints({"RL.TAKE", "t", "TOKEN", "10", "1000", "BURST", "5"}), "1 5 2 0 275");
  EXPECT_EQ(context.StringAt("t"), "1700000000025 2.25");
  context.set_now_ms(kNow);
  EXPECT_EQ(Ints({"RL.TAKE", "g", "GCRA", "10", "1000"}), "1 10 9 0 100");
  EXPECT_EQ(context.StringAt("g"), "1700000000100000000");
  EXPECT_EQ(context.FormAt("g"), StringForm::kInt);
  EXPECT_EQ(Ints({"RL.TAKE", "s", "SLIDING", "10", "1000", "COST", "4"}), "1 10 6 0 1000");
  context.set_now_ms(kNow + 30);
  EXPECT_EQ(Ints({"RL.TAKE", "s", "SLIDING", "10", "1000"}), "1 10 5 0 1000");
  EXPECT_EQ(context.StringAt("s"), "1700000000000 4 30 1");
}

TEST_F(Limits, RefundGivesBackUpToTheWhole) {
  EXPECT_EQ(Ints({"RL.REFUND", "k", "WINDOW", "3", "60000"}), "0 3 3 0 0");
  EXPECT_EQ(context.TakeEffects(), "");
  Run({"RL.TAKE", "k", "WINDOW", "3", "60000", "COST", "3"});
  context.TakeEffects();
  EXPECT_EQ(Ints({"RL.REFUND", "k", "WINDOW", "3", "60000", "COST", "2"}), "1 3 2 0 60001");
  EXPECT_EQ(context.TakeEffects(), "SET k 1700000000000 2 PXAT 1700000120000");
  Run({"RL.TAKE", "g", "GCRA", "10", "1000"});
  context.TakeEffects();
  EXPECT_EQ(Ints({"RL.REFUND", "g", "GCRA", "10", "1000", "COST", "5"}), "1 10 10 0 0");
  EXPECT_EQ(context.TakeEffects(), "DEL g") << "nothing is missing: no bucket says the same";
}

TEST_F(Limits, TakeAllIsAllOrNothing) {
  EXPECT_EQ(Ints({"RL.TAKEALL", "2", "a", "WINDOW", "1", "60000", "b", "TOKEN", "5", "1000"}),
            "1 -1 1 1 0 0 60001 1 5 4 0 200");
  context.TakeEffects();
  EXPECT_EQ(Ints({"RL.TAKEALL", "2", "b", "TOKEN", "5", "1000", "a", "WINDOW", "1", "60000"}),
            "0 1 1 5 4 0 200 0 1 0 60001 60001");
  EXPECT_EQ(context.TakeEffects(), "");
  EXPECT_EQ(context.StringAt("b"), "1700000000000 4");
  EXPECT_EQ(Ints({"RL.TAKEALL", "1", "c", "SLIDING", "5", "1000", "COST", "2", "NOW", "1000"}),
            "1 -1 1 5 3 0 1000");
  EXPECT_EQ(context.StringAt("c"), "1000 2");
}

TEST_F(Limits, BadArgumentsAreToldAndChangeNothing) {
  const std::string syntax = "-ERR syntax error\r\n";
  EXPECT_EQ(Run({"RL.TAKE", "k", "LEAKY", "3", "60000"}),
            "-ERR unknown algorithm, use WINDOW, TOKEN, GCRA or SLIDING\r\n");
  EXPECT_EQ(Run({"RL.TAKE", "k", "WINDOW", "x", "60000"}),
            "-ERR value is not an integer or out of range\r\n");
  EXPECT_EQ(Run({"RL.TAKE", "k", "WINDOW", "0", "60000"}),
            "-ERR limit must be between 1 and 1000000000000000\r\n");
  EXPECT_EQ(Run({"RL.TAKE", "k", "WINDOW", "3", "-1"}),
            "-ERR period must be between 1 and 1000000000000 ms\r\n");
  EXPECT_EQ(Run({"RL.TAKE", "k", "WINDOW", "3", "60000", "BURST", "4"}),
            "-ERR BURST is for TOKEN and GCRA\r\n");
  EXPECT_EQ(Run({"RL.TAKE", "k", "WINDOW", "3", "60000", "COST", "-1"}),
            "-ERR COST must be between 0 and 1000000000000000\r\n");
  EXPECT_EQ(Run({"RL.TAKE", "k", "WINDOW", "3", "60000", "NOW", "9000000000000"}),
            "-ERR NOW must be a Unix time in ms, before the year 2128\r\n");
  EXPECT_EQ(Run({"RL.TAKE", "k", "WINDOW", "3", "60000", "COST"}), syntax);
  EXPECT_EQ(Run({"RL.TAKE", "k", "WINDOW", "3", "60000", "FOO", "1"}), syntax);
  EXPECT_EQ(Run({"RL.TAKEALL", "0", "k", "WINDOW", "3", "60000"}),
            "-ERR numkeys should be greater than 0\r\n");
  EXPECT_EQ(Run({"RL.TAKEALL", "2", "k", "WINDOW", "3", "60000"}), syntax);
  EXPECT_EQ(Run({"RL.TAKEALL", "9223372036854775807", "k", "WINDOW", "3", "60000"}), syntax);
  EXPECT_EQ(Run({"RL.TAKEALL", "1", "k", "WINDOW", "3", "60000", "BURST", "1"}), syntax);
  EXPECT_EQ(Run({"RL.TAKEALL", "2", "k", "WINDOW", "3", "60000", "k", "WINDOW", "3", "60000"}),
            "-ERR a key may be named only once\r\n");
  EXPECT_EQ(context.StringAt("k"), "(none)");
  EXPECT_EQ(context.TakeChanges(), 0);
}

TEST_F(Limits, AKeyThatIsNoBucketStaysAsItIs) {
  Run({"SET", "k", "hello"});
  Run({"SET", "n", "42"});
  context.AddObject("list");
  for (const char* key : {"k", "n"}) {
    EXPECT_EQ(Run({"RL.TAKE", key, "WINDOW", "3", "60000"}), "-ERR not a rate limit bucket\r\n");
  }
  EXPECT_EQ(Run({"CL.THROTTLE", "k", "1", "1", "60"}), "-ERR not a rate limit bucket\r\n");
  EXPECT_TRUE(Run({"RL.TAKE", "list", "WINDOW", "3", "60000"}).starts_with("-WRONGTYPE"));
  EXPECT_TRUE(Run({"CL.THROTTLE", "list", "1", "1", "60"}).starts_with("-WRONGTYPE"));
  EXPECT_EQ(Run({"RL.TAKEALL", "2", "new", "WINDOW", "3", "60000", "k", "WINDOW", "3", "60000"}),
            "-ERR not a rate limit bucket\r\n");
  EXPECT_EQ(context.StringAt("new"), "(none)");
  EXPECT_EQ(context.StringAt("k"), "hello");
}

TEST_F(Limits, ThrottleSharesTheBucketOfGcra) {
  EXPECT_EQ(Ints({"CL.THROTTLE", "k", "15", "30", "60"}), "0 16 15 -1 2");
  EXPECT_EQ(context.StringAt("k"), "1700000002000000000");
  EXPECT_EQ(context.ExpiryAt("k"), kNow + 2000);
  EXPECT_EQ(context.TakeEffects(), "SET k 1700000002000000000 PXAT 1700000002000");
  EXPECT_EQ(Ints({"CL.THROTTLE", "k", "15", "30", "60", "+03"}), "0 16 12 -1 8");
  EXPECT_EQ(Ints({"RL.PEEK", "k", "GCRA", "30", "60000", "BURST", "16"}), "1 16 12 0 8000");
  EXPECT_EQ(Run({"CL.THROTTLE", "k", "x", "30", "60"}),
            "-Cell error: Store error: Couldn't parse as integer: x\r\n");
  EXPECT_EQ(Run({"CL.THROTTLE", "k"}),
            "-Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> "
            "<period> [<quantity>]\r\n");
}

TEST_F(Limits, ThrottleWithQuantityZeroWritesTheBucketAgain) {
  Run({"CL.THROTTLE", "k", "4", "1", "10"});
  Run({"PERSIST", "k"});
  context.TakeEffects();
  EXPECT_EQ(Ints({"CL.THROTTLE", "k", "4", "1", "10", "0"}), "0 5 4 -1 10");
  EXPECT_EQ(context.TakeEffects(), "SET k 1700000010000000000 PXAT 1700000010000");
  EXPECT_EQ(context.ExpiryAt("k"), kNow + 10'000);
  Run({"SET", "past", "12345"});
  EXPECT_EQ(Ints({"CL.THROTTLE", "past", "4", "1", "10", "0"}), "0 5 5 -1 0");
  EXPECT_EQ(context.ExpiryAt("past"), kNow + 1) << "as good as no bucket";
  EXPECT_EQ(Ints({"CL.THROTTLE", "fresh", "4", "1", "10", "0"}), "0 5 5 -1 0");
  EXPECT_EQ(context.ExpiryAt("fresh"), kNow + 1);
}

TEST_F(Limits, ThrottleReadsWhatRedisCellReads) {
  Run({"SET", "plus", "+1700000010000000000"});
  EXPECT_EQ(Ints({"CL.THROTTLE", "plus", "4", "1", "10"}), "0 5 3 -1 20");
  EXPECT_EQ(context.StringAt("plus"), "1700000020000000000");
  Run({"SET", "zeros", "0001700000010000000000"});
  EXPECT_EQ(Ints({"CL.THROTTLE", "zeros", "4", "1", "10"}), "0 5 3 -1 20");
  Run({"SET", "past", "007"});
  EXPECT_EQ(Ints({"CL.THROTTLE", "past", "4", "1", "10", "6"}), "1 5 170000004 -1 -1699999999");
  Run({"SET", "none", "-1"});
  EXPECT_EQ(Ints({"CL.THROTTLE", "none", "4", "1", "10", "6"}), "1 5 5 -1 0");
  for (const char* bad : {"", "+", "1 2", " 1", "9223372036854775808", "1.5"}) {
    Run({"SET", "bad", bad});
    EXPECT_EQ(Run({"CL.THROTTLE", "bad", "4", "1", "10"}), "-ERR not a rate limit bucket\r\n")
        << bad;
    EXPECT_EQ(context.StringAt("bad"), bad);
  }
}

TEST_F(Limits, CostZeroIsAlwaysAllowed) {
  Run({"RL.TAKE", "g", "GCRA", "10", "10000", "BURST", "10", "COST", "10"});
  for (const char* command : {"RL.PEEK", "RL.TAKE"}) {
    EXPECT_EQ(Ints({command, "g", "GCRA", "10", "10000", "BURST", "2", "COST", "0"}),
              "1 2 0 0 10000");
  }
}

// ---- INCREX ----

TEST_F(Limits, IncrexCountsWithinBounds) {
  EXPECT_EQ(Ints({"INCREX", "k"}), "1 1");
  EXPECT_EQ(context.TakeEffects(), "SET k 1 KEEPTTL");
  EXPECT_EQ(context.TakeEvents(), "incrby k");
  EXPECT_EQ(Ints({"INCREX", "k", "BYINT", "9", "UBOUND", "10"}), "10 9");
  context.TakeEffects();
  EXPECT_EQ(Ints({"INCREX", "k", "UBOUND", "10", "EX", "5"}), "10 0");
  EXPECT_EQ(context.ExpiryAt("k"), kNoExpiry);
  EXPECT_EQ(context.TakeEffects(), "");
  EXPECT_EQ(Ints({"INCREX", "k", "BYINT", "5", "UBOUND", "12", "SATURATE"}), "12 2");
  EXPECT_EQ(Ints({"INCREX", "k", "BYINT", "5", "UBOUND", "6", "SATURATE"}), "6 -6");
  EXPECT_EQ(Ints({"INCREX", "new", "LBOUND", "5"}), "0 0");
  EXPECT_EQ(context.StringAt("new"), "(none)");
  EXPECT_EQ(Ints({"INCREX", "new", "LBOUND", "5", "SATURATE"}), "5 5");
}

TEST_F(Limits, IncrexAtTheEdgeOf64Bits) {
  Run({"SET", "k", "9223372036854775800"});
  EXPECT_EQ(Ints({"INCREX", "k", "BYINT", "9223372036854775800"}), "9223372036854775800 0");
  EXPECT_EQ(Run({"INCREX", "k", "BYINT", "1", "SATURATE", "UBOUND", "-9223372036854775808"}),
            "-ERR applied increment would overflow\r\n");
  EXPECT_EQ(Ints({"INCREX", "k", "BYINT", "100", "SATURATE"}), "9223372036854775807 7");
}

TEST_F(Limits, IncrexSetsKeepsAndRemovesTheExpiry) {
  EXPECT_EQ(Ints({"INCREX", "k", "EX", "60", "ENX"}), "1 1");
  EXPECT_EQ(context.ExpiryAt("k"), kNow + 60'000);
  EXPECT_EQ(context.TakeEffects(), "SET k 1 PXAT 1700000060000");
  EXPECT_EQ(context.TakeEvents(), "incrby k, expire k");
  EXPECT_EQ(Ints({"INCREX", "k", "EX", "99", "ENX"}), "2 1");
  EXPECT_EQ(context.ExpiryAt("k"), kNow + 60'000);
  EXPECT_EQ(context.TakeEffects(), "SET k 2 KEEPTTL");
  context.TakeEvents();
  EXPECT_EQ(Ints({"INCREX", "k", "PERSIST"}), "3 1");
  EXPECT_EQ(context.ExpiryAt("k"), kNoExpiry);
  EXPECT_EQ(context.TakeEffects(), "SET k 3");
  EXPECT_EQ(context.TakeEvents(), "incrby k, persist k");
  EXPECT_EQ(Ints({"INCREX", "k", "EXAT", "1"}), "4 1");
  EXPECT_EQ(context.StringAt("k"), "(none)");
  EXPECT_EQ(context.TakeEffects(), "DEL k");
  EXPECT_EQ(context.TakeEvents(), "del k");
}

TEST_F(Limits, IncrexByFloatAnswersInBothProtocols) {
  EXPECT_EQ(Run({"INCREX", "f", "BYFLOAT", "2.5"}), "*2\r\n$3\r\n2.5\r\n$3\r\n2.5\r\n");
  EXPECT_EQ(context.TakeEffects(), "SET f 2.5 KEEPTTL");
  EXPECT_EQ(context.TakeEvents(), "incrbyfloat f");
  context.set_resp(3);
  EXPECT_EQ(Run({"INCREX", "f", "BYFLOAT", "100", "UBOUND", "42.5", "SATURATE"}),
            "*2\r\n,42.5\r\n,40\r\n");
  EXPECT_EQ(Run({"INCREX", "f", "BYFLOAT", "1", "UBOUND", "42.5"}), "*2\r\n,42.5\r\n,0\r\n");
  EXPECT_EQ(Run({"INCREX", "f", "BYFLOAT", "inf"}),
            "-ERR BYFLOAT increment cannot be Infinity\r\n");
  Run({"SET", "i", "inf"});
  EXPECT_EQ(Run({"INCREX", "i", "BYFLOAT", "1"}), "-ERR value cannot be Infinity\r\n");
  Run({"SET", "i", "10"});
  EXPECT_EQ(Run({"INCREX", "i", "BYFLOAT", "1", "LBOUND", "inf", "UBOUND", "inf", "SATURATE"}),
            "-ERR applied increment would be Infinity\r\n");
}

TEST_F(Limits, IncrexTellsWhatIsWrong) {
  const std::string syntax = "-ERR syntax error\r\n";
  const std::vector<std::vector<std::string>> wrong = {
      {"FOO"},
      {"BYINT"},
      {"BYINT", "1", "BYFLOAT", "1"},
      {"BYINT", "1", "BYINT", "1"},
      {"SATURATE", "SATURATE"},
      {"EX", "1", "PX", "1"},
      {"EX", "1", "EX", "1"},
      {"EX", "1", "PERSIST"},
      {"PERSIST", "ENX"},
      {"LBOUND", "1", "LBOUND", "1"},
  };
  for (const auto& options : wrong) {
    std::vector<std::string> words = {"INCREX", "k"};
    words.insert(words.end(), options.begin(), options.end());
    EXPECT_EQ(Run(words), syntax) << options[0];
  }
  EXPECT_EQ(Run({"INCREX", "k", "ENX"}), "-ERR ENX flag requires an expiration\r\n");
  EXPECT_EQ(Run({"INCREX", "k", "BYINT", "1.5"}),
            "-ERR Increment is not an integer or out of range\r\n");
  EXPECT_EQ(Run({"INCREX", "k", "BYFLOAT", "x"}), "-ERR Increment is not a valid float\r\n");
  EXPECT_EQ(Run({"INCREX", "k", "UBOUND", "x"}),
            "-ERR UBOUND is not an integer or out of range\r\n");
  EXPECT_EQ(Run({"INCREX", "k", "BYFLOAT", "1", "LBOUND", "x"}),
            "-ERR LBOUND is not a valid float\r\n");
  EXPECT_EQ(Run({"INCREX", "k", "LBOUND", "2", "UBOUND", "1"}),
            "-ERR LBOUND can't be greater than UBOUND\r\n");
  EXPECT_EQ(Run({"INCREX", "k", "EX", "0"}), "-ERR invalid expire time in 'increx' command\r\n");
  Run({"SET", "k", "abc"});
  EXPECT_EQ(Run({"INCREX", "k"}), "-ERR value is not an integer or out of range\r\n");
  EXPECT_EQ(Run({"INCREX", "k", "BYFLOAT", "1"}), "-ERR value is not a valid float\r\n");
  context.AddObject("list");
  EXPECT_TRUE(Run({"INCREX", "list"}).starts_with("-WRONGTYPE"));
}

}  // namespace
}  // namespace sava::commands
