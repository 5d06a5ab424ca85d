// The FR.* and URL.* families: replies, errors, events, and that the log gives the same frontier.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/text.h"
#include "commands/registry.h"
#include "fake_context.h"
#include "types/frontier/frontier.h"

namespace sava::commands {
namespace {

// RESP as a person writes it: [1, "a", null], errors with their dash.
class ReplyText {
 public:
  explicit ReplyText(std::string_view bytes) : rest_(bytes) {}

  std::string Read() {
    const char kind = rest_[0];
    std::string line(rest_.substr(1, rest_.find('\r') - 1));
    rest_.remove_prefix(line.size() + 3);
    if (kind == ':' || kind == '+') return line;
    if (kind == '-') return "-" + line;
    if (kind == '_' || line == "-1") return "null";
    const size_t count = std::stoul(line);
    if (kind == '$') {
      std::string text(rest_.substr(0, count));
      rest_.remove_prefix(count + 2);
      return text;
    }
    std::string text = "[";
    for (size_t i = 0; i < (kind == '%' ? 2 * count : count); ++i) {
      if (i > 0) text += ", ";
      text += Read();
    }
    return text + "]";
  }

 private:
  std::string_view rest_;
};

// Words with blanks between them.
std::string Line(std::initializer_list<std::string_view> words) {
  std::string line;
  for (const std::string_view word : words) {
    if (!line.empty()) line += ' ';
    line += word;
  }
  return line;
}

class FrontierCommandsTest : public testing::Test {
 protected:
  std::string Run(std::string_view line) { return RunOn(context_, line); }

  static std::string RunOn(FakeContext& context, std::string_view line) {
    const auto words = base::SplitArgs(line);
    if (!words.has_value()) return "unbalanced";
    return ReplyText(context.Run(*words)).Read();
  }

  void Wait(int64_t millis) { context_.set_now_ms(context_.now_ms() + millis); }

  // The field of a map.
  std::string Field(const std::string& reply, const std::string& name) {
    const size_t at = reply.find(name + ", ");
    if (at == std::string::npos) return "(none)";
    const size_t from = at + name.size() + 2;
    return reply.substr(from, reply.find_first_of(",]", from) - from);
  }

  FakeContext context_{{FrontierCommands(), UrlCommands(), StringCommands()}};
};

std::string DigestOf(FakeContext& context, const std::string& key) {
  const Value value = context.Find(key, Access::kPeek);
  if (value.kind != Value::Kind::kObject) return "(none)";
  std::string digest;
  value.object->Digest([&digest](std::string_view part) {
    digest += part;
    digest += '\n';
  });
  return digest;
}

// ---- adding and serving ----

TEST_F(FrontierCommandsTest, AddTellsOfEachUrl) {
  EXPECT_EQ(Run("FR.ADD f http://a/1 http://a/1 HTTP://A/x/../1 ftp://a/ nothing http://b/"),
            "[1, 0, 0, -1, -1, 1]");
  EXPECT_EQ(context_.TakeEvents(), "fr.add f");
  EXPECT_EQ(context_.TakeChanges(), 2);
  EXPECT_EQ(context_.TakeEffects(), "FR.ADD f NOW 1700000000000 http://a/1 http://b/");
  EXPECT_EQ(Run("FR.HOSTS f"), "[a, b]");
}

TEST_F(FrontierCommandsTest, NothingAddedMakesNoKey) {
  EXPECT_EQ(Run("FR.ADD f ftp://a/"), "[-1]");
  EXPECT_FALSE(context_.Exists("f"));
  EXPECT_EQ(context_.TakeChanges(), 0);
}

TEST_F(FrontierCommandsTest, DefaultsAreThoseOfTheDocs) {
  Run("FR.ADD f http://a/");
  const std::string stats = Run("FR.STATS f");
  EXPECT_EQ(Field(stats, "strategy"), "depth");
  EXPECT_EQ(Field(stats, "dedup"), "pending");
  EXPECT_EQ(Field(stats, "norm"), "rfc3986");
  EXPECT_EQ(Field(stats, "delay"), "0");
  EXPECT_EQ(Field(stats, "lease"), "0");
}

TEST_F(FrontierCommandsTest, StrategiesChooseTheHost) {
  const std::string urls = "http://a/1 http://a/x/2 http://b/3 http://c/4 http://c/5 http://c/6";
  for (const auto& [strategy, expected] : std::vector<std::pair<std::string, std::string>>{
           {"depth", "[http://a/1, http://a/x/2, http://b/3]"},
           {"breadth", "[http://a/1, http://b/3, http://c/4]"},
           {"best", "[http://c/4, http://a/1, http://c/5]"}}) {
    Run(Line({"FR.ADD", strategy, urls}));
    EXPECT_EQ(Run(Line({"FR.NEXT", strategy, "3 STRATEGY", strategy})), expected);
  }
  Run("FR.CREATE p STRATEGY priority");
  Run("FR.ADD p PRIO 1 http://a/low");
  Run("FR.ADD p PRIO 7 http://b/high");
  EXPECT_EQ(Run("FR.NEXT p 5"), "[http://b/high, http://a/low]");
}

TEST_F(FrontierCommandsTest, NextOfOneHostAndPerHost) {
  Run("FR.ADD f http://a/1 http://a/2 http://a/3 https://b/1 http://b/2");
  EXPECT_EQ(Run("FR.NEXT f 9 HOST B"), "[https://b/1, http://b/2]");
  EXPECT_EQ(Run("FR.NEXT f 9 HOST unknown"), "[]");
  EXPECT_EQ(Run("FR.NEXT f 9 PERHOST 2"), "[http://a/1, http://a/2]");
  EXPECT_EQ(Run("FR.NEXT f 9"), "[http://a/3]");
  EXPECT_EQ(Run("FR.NEXT f 9"), "[]");
  EXPECT_EQ(Run("FR.NEXT missing 1"), "[]");
}

TEST_F(FrontierCommandsTest, NextIsLoggedWithItsTime) {
  Run("FR.ADD f http://a/1 http://a/2");
  context_.TakeEffects();
  EXPECT_EQ(Run("fr.next f 7 BLOCK 10 HOST A LEASE 500"), "[[1, http://a/1], [2, http://a/2]]");
  EXPECT_EQ(context_.TakeEffects(), "FR.NEXT f 2 HOST A LEASE 500 NOW 1700000000000");
  context_.TakeChanges();
  EXPECT_EQ(Run("FR.NEXT f 1"), "[]");
  EXPECT_EQ(context_.TakeChanges(), 0);
  EXPECT_EQ(context_.TakeEffects(), "");
}

TEST_F(FrontierCommandsTest, MetaComesWithItsUrl) {
  Run("FR.ADD f META \"from=x\" http://a/1");
  Run("FR.ADD f http://a/2");
  EXPECT_EQ(Run("FR.NEXT f 1 WITHMETA"), "[[http://a/1, from=x]]");
  EXPECT_EQ(Run("FR.NEXT f 1 WITHMETA LEASE 10"), "[[1, http://a/2, ]]");
}

TEST_F(FrontierCommandsTest, ADelayedUrlComesInItsTime) {
  EXPECT_EQ(Run("FR.ADD f AT 1700000005000 http://a/1"), "[1]");
  EXPECT_EQ(Run("FR.NEXT f 1"), "[]");
  Wait(5000);
  EXPECT_EQ(Run("FR.NEXT f 1"), "[http://a/1]");
}

TEST_F(FrontierCommandsTest, AHostWaitsBetweenItsUrls) {
  Run("FR.CREATE f DELAY 1000");
  Run("FR.ADD f http://a/1 http://a/2 http://b/1");
  EXPECT_EQ(Run("FR.NEXT f 9"), "[http://a/1, http://b/1]");
  Wait(999);
  EXPECT_EQ(Run("FR.NEXT f 9"), "[]");
  Wait(1);
  EXPECT_EQ(Run("FR.NEXT f 9"), "[http://a/2]");
}

// ---- leases ----

TEST_F(FrontierCommandsTest, LeasesEndByAckAndNackAndTime) {
  Run("FR.CREATE f LEASE 1000 RETRIES 1");
  Run("FR.ADD f http://a/1 http://a/2 http://a/3");
  EXPECT_EQ(Run("FR.NEXT f 3"), "[[1, http://a/1], [2, http://a/2], [3, http://a/3]]");
  context_.TakeEffects();
  context_.TakeEvents();
  EXPECT_EQ(Run("FR.ACK f 1 1 99"), "1");
  EXPECT_EQ(context_.TakeEvents(), "fr.ack f");
  EXPECT_EQ(context_.TakeEffects(), "FR.ACK f NOW 1700000000000 1 1 99");
  EXPECT_EQ(Run("FR.NACK f 2 RETRY 10"), "1");
  EXPECT_EQ(Run("FR.NEXT f 9"), "[]");
  Wait(10);
  EXPECT_EQ(Run("FR.NEXT f 9"), "[[5, http://a/2]]");
  Wait(990);
  EXPECT_EQ(Run("FR.NEXT f 9"), "[[6, http://a/3]]");  // its lease ended
  EXPECT_EQ(Run("FR.NACK f 5 6 77"), "2");             // each failed twice: dead
  EXPECT_EQ(Run("FR.DEAD f"), "[http://a/2, http://a/3]");
  EXPECT_EQ(Run("FR.DEAD f START 1 COUNT 1"), "[http://a/3]");
  EXPECT_EQ(Run("FR.DEAD f FORGET"), "2");
  EXPECT_EQ(Run("FR.DEAD f"), "[]");
}

TEST_F(FrontierCommandsTest, ALeaseMayBeExtended) {
  Run("FR.ADD f http://a/1");
  EXPECT_EQ(Run("FR.NEXT f 1 LEASE 1000"), "[[1, http://a/1]]");
  EXPECT_EQ(Run("FR.EXTEND f 1"), "-ERR say LEASE: the frontier was made without one");
  Wait(900);
  EXPECT_EQ(Run("FR.EXTEND f 1 LEASE 1000"), "1");
  EXPECT_EQ(Run("FR.EXTEND f 8 LEASE 1000"), "0");
  Wait(999);
  EXPECT_EQ(Run("FR.NEXT f 1"), "[]");
  Wait(1);
  EXPECT_EQ(Run("FR.NEXT f 1"), "[http://a/1]");
}

TEST_F(FrontierCommandsTest, AUrlMayBeFetchedAgainAndAgain) {
  Run("FR.CREATE f DEDUP seen LEASE 60000");
  Run("FR.ADD f http://a/");
  EXPECT_EQ(Run("FR.NEXT f 1"), "[[1, http://a/]]");
  EXPECT_EQ(Run("FR.ACK f 1 REFETCH 3600000"), "1");
  EXPECT_EQ(Run("FR.ADD f http://a/"), "[0]");
  Wait(3600000);
  EXPECT_EQ(Run("FR.NEXT f 1"), "[[3, http://a/]]");
}

TEST_F(FrontierCommandsTest, LeasesOfAMissingKeyAreUnknown) {
  EXPECT_EQ(Run("FR.ACK none 1"), "0");
  EXPECT_EQ(Run("FR.NACK none 1 2"), "0");
  EXPECT_EQ(Run("FR.EXTEND none 1"), "0");
}

// ---- hosts ----

TEST_F(FrontierCommandsTest, PeekShowsAHostInOrder) {
  Run("FR.ADD f http://a/x/2 http://a/1 http://a/3 http://a/y/z/4");
  EXPECT_EQ(Run("FR.PEEK f a"), "[http://a/1, http://a/3, http://a/x/2, http://a/y/z/4]");
  EXPECT_EQ(Run("FR.PEEK f a 2"), "[http://a/1, http://a/3]");
  EXPECT_EQ(Run("FR.PEEK f a START 1 COUNT 2"), "[http://a/3, http://a/x/2]");
  EXPECT_EQ(Run("FR.PEEK f http://A:80/"), Run("FR.PEEK f a"));
  EXPECT_EQ(Run("FR.PEEK f a START 9"), "-ERR invalid position 9, valid 0..3");
  EXPECT_EQ(Run("FR.PEEK f a START 4"), "-ERR invalid position 4, valid 0..3");
  EXPECT_EQ(Run("FR.PEEK f a START -1"), "-ERR invalid position -1, valid 0..3");
  EXPECT_EQ(Run("FR.PEEK f a COUNT 2 START -9223372036854775808"),
            "-ERR invalid position -9223372036854775808, valid 0..3");
  EXPECT_EQ(Run("FR.PEEK f unknown START -1"), Run("FR.PEEK f unknown START 9"));
  EXPECT_EQ(Run("FR.PEEK f unknown"), "[]");
  EXPECT_EQ(Run("FR.PEEK none a"), "[]");
  Run("FR.NEXT f 9");
  EXPECT_EQ(Run("FR.PEEK f a"), "[]");
  EXPECT_EQ(Run("FR.PEEK f a START 0"), "-ERR the host has no URLs");
}

TEST_F(FrontierCommandsTest, HostsInOrderOfDiscovery) {
  Run("FR.ADD f http://c/ http://a/ http://b:8080/ https://a/");
  Run("FR.NEXT f 99");
  EXPECT_EQ(Run("FR.HOSTS f"), "[c, a, b:8080]");
  EXPECT_EQ(Run("FR.HOSTS f START 1 COUNT 1"), "[a]");
  EXPECT_EQ(Run("FR.HOSTS f START 7"), "[]");
  EXPECT_EQ(Run("FR.HOSTS none"), "[]");
}

TEST_F(FrontierCommandsTest, AHostHasItsOwnRules) {
  Run("FR.ADD f http://a/1 http://a/2");
  const std::string told = Run("FR.HOST f a DELAY 5000 LIMIT 3");
  EXPECT_EQ(Field(told, "host"), "a");
  EXPECT_EQ(Field(told, "queued"), "2");
  EXPECT_EQ(Field(told, "delay"), "5000");
  EXPECT_EQ(Field(told, "limit"), "3");
  EXPECT_EQ(Run("FR.ADD f http://a/3 http://a/4"), "[1, -2]");
  EXPECT_EQ(Run("FR.NEXT f 9"), "[http://a/1]");
  EXPECT_EQ(Field(Run("FR.HOST f a"), "next-at"), "1700000005000");
  context_.TakeEffects();
  Run("FR.HOST f a BLOCKUNTIL 1700000060000");
  EXPECT_EQ(context_.TakeEffects(), "FR.HOST f a NOW 1700000000000 BLOCKUNTIL 1700000060000");
  Wait(59999);
  EXPECT_EQ(Run("FR.NEXT f 9"), "[]");
  Wait(1);
  EXPECT_EQ(Run("FR.NEXT f 9"), "[http://a/2]");
  EXPECT_EQ(Run("FR.HOST f unknown"), "null");
  EXPECT_EQ(Field(Run("FR.HOST f new.example DELAY 9"), "delay"), "9");
  EXPECT_EQ(Run("FR.HOSTS f"), "[a, new.example]");
  EXPECT_EQ(Field(Run("FR.HOST f a DELAY -1"), "delay"), "0");
}

TEST_F(FrontierCommandsTest, PurgeAndClear) {
  Run("FR.CREATE f DEDUP seen DELAY 7");
  Run("FR.ADD f http://a/1 http://a/2 http://b/1");
  context_.TakeEvents();
  EXPECT_EQ(Run("FR.PURGE f a"), "2");
  EXPECT_EQ(Run("FR.PURGE f a"), "0");
  EXPECT_EQ(Run("FR.PURGE f unknown"), "0");
  EXPECT_EQ(Run("FR.PURGE none a"), "0");
  EXPECT_EQ(Run("FR.HOSTS f"), "[a, b]");
  EXPECT_EQ(Run("FR.ADD f http://a/1"), "[0]");
  EXPECT_EQ(Run("FR.CLEAR f"), "OK");
  EXPECT_EQ(context_.TakeEvents(), "fr.purge f, fr.clear f");
  EXPECT_EQ(Run("FR.HOSTS f"), "[]");
  EXPECT_EQ(Field(Run("FR.STATS f"), "delay"), "7");
  EXPECT_EQ(Run("FR.ADD f http://a/1"), "[1]");
  EXPECT_EQ(Run("FR.CLEAR none"), "OK");
}

// ---- looking and carrying ----

TEST_F(FrontierCommandsTest, Seen) {
  Run("FR.ADD f http://a/1");
  EXPECT_EQ(Run("FR.SEEN f http://A/1 http://a/2 x"), "[1, 0, -1]");
  EXPECT_EQ(Run("FR.SEEN none http://a/1 x"), "[0, -1]");
  Run("FR.NEXT f 1");
  EXPECT_EQ(Run("FR.SEEN f http://a/1"), "[0]");
}

TEST_F(FrontierCommandsTest, WhatIsExportedCanBeImported) {
  Run("FR.CREATE f LEASE 1000 RETRIES 0");
  Run("FR.ADD f PRIO 3 META m http://a/1 https://b/2 http://a/x/3");
  Run("FR.ADD f AT 1700000009000 http://c/later");
  Run("FR.NEXT f 1 HOST b");
  Run("FR.NEXT f 1 STRATEGY depth");
  Run("FR.NACK f 3");
  const std::string entries =
      "[http://a/x/3, queued, 0, 3, 0, m], [http://c/later, delayed, 1700000009000, 0, 0, ], "
      "[https://b/2, leased, 1700000001000, 3, 0, m], [http://a/1, dead, 0, 3, 1, m]";
  std::string cursor = "0";
  std::string all;
  do {
    const std::string bytes = context_.Run({"FR.EXPORT", "f", cursor, "COUNT", "1"});
    const std::string text = ReplyText(bytes).Read();
    ASSERT_EQ(text[0], '[') << text;
    cursor = text.substr(1, text.find(',') - 1);
    const std::string part = text.substr(text.find('[', 1) + 1);
    if (part != "]]") all += (all.empty() ? "" : ", ") + part.substr(0, part.size() - 2);
  } while (cursor != "0");
  std::vector<std::string> expected;
  for (const std::string& text : {entries, all}) {
    std::vector<std::string> parts;
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find(']', at) + 1;
      parts.push_back(text.substr(at, end - at));
      at = end + 2;
    }
    std::sort(parts.begin(), parts.end());
    if (expected.empty()) {
      expected = parts;
    } else {
      EXPECT_EQ(parts, expected);
    }
  }
  EXPECT_EQ(Run("FR.IMPORT g http://a/x/3 queued 0 3 0 m http://c/later delayed 1700000009000 0 0 "
                "\"\" http://a/1 dead 0 3 1 m http://a/x/3 queued 0 0 0 \"\" x queued 0 0 0 \"\""),
            "[1, 1, 1, 0, -1]");
  EXPECT_EQ(Run("FR.DEAD g"), "[http://a/1]");
  EXPECT_EQ(Run("FR.NEXT g 9 WITHMETA"), "[[http://a/x/3, m]]");
  EXPECT_EQ(Run("FR.EXPORT none 0"), "[0, []]");
}

// ---- errors ----

TEST_F(FrontierCommandsTest, Errors) {
  Run("SET s x");
  Run("FR.ADD f http://a/1");
  const std::string wrong_type =
      "-WRONGTYPE Operation against a key holding the wrong kind of value";
  for (const char* call :
       {"FR.ADD s http://a/", "FR.NEXT s 1", "FR.ACK s 1", "FR.NACK s 1", "FR.EXTEND s 1 LEASE 5",
        "FR.PEEK s a", "FR.HOSTS s", "FR.HOST s a", "FR.PURGE s a", "FR.CLEAR s",
        "FR.SEEN s http://a/", "FR.STATS s", "FR.DEAD s", "FR.DEAD s FORGET", "FR.EXPORT s 0",
        "FR.IMPORT s http://a/ queued 0 0 0 m"}) {
    EXPECT_EQ(Run(call), wrong_type) << call;
  }
  const std::string not_integer = "-ERR value is not an integer or out of range";
  const std::string range = "-ERR value is out of range";
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"FR.CREATE f", "-ERR key already exists"},
      {"FR.CREATE s", "-ERR key already exists"},
      {"FR.CREATE n STRATEGY random",
       "-ERR unknown STRATEGY, use depth, breadth, best or priority"},
      {"FR.CREATE n DEDUP never",
       "-ERR unknown DEDUP, use pending, seen or bloom with an error rate"},
      {"FR.CREATE n DEDUP bloom", "-ERR syntax error"},
      {"FR.CREATE n DEDUP bloom 1", "-ERR bad error rate"},
      {"FR.CREATE n DEDUP bloom nan", "-ERR bad error rate"},
      {"FR.CREATE n NORM whatwg", "-ERR unknown NORM, use ufmg or rfc3986"},
      {"FR.CREATE n DELAY -1", "-ERR time is out of range"},
      {"FR.CREATE n LEASE 9223372036854775807", "-ERR time is out of range"},
      {"FR.CREATE n DELAY x", not_integer},
      {"FR.CREATE n RETRIES -1", range},
      {"FR.CREATE n MAXHOST -1", range},
      {"FR.CREATE n FASTER 1", "-ERR syntax error"},
      {"FR.CREATE n DELAY", "-ERR syntax error"},
      {"FR.ADD f PRIO 40000 http://a/2", range},
      {"FR.ADD f PRIO x http://a/2", not_integer},
      {"FR.ADD f AT -1 http://a/2", "-ERR time is out of range"},
      {"FR.ADD f PRIO 1", "-ERR wrong number of arguments for 'fr.add' command"},
      {"FR.NEXT f 0", "-ERR value is out of range, must be positive"},
      {"FR.NEXT f x", not_integer},
      {"FR.NEXT f 1 HOST", "-ERR syntax error"},
      {"FR.NEXT f 1 PERHOST 0", "-ERR value is out of range, must be positive"},
      {"FR.NEXT f 1 LEASE -5", "-ERR time is out of range"},
      {"FR.NEXT f 1 BLOCK -1", "-ERR timeout is negative"},
      {"FR.NEXT f 1 BLOCK x", "-ERR timeout is not an integer or out of range"},
      {"FR.NEXT f 1 SOON 1", "-ERR syntax error"},
      {"FR.ACK f x", not_integer},
      {"FR.ACK f 1 REFETCH", "-ERR syntax error"},
      {"FR.ACK f REFETCH 5", "-ERR wrong number of arguments for 'fr.ack' command"},
      {"FR.NACK f 1 RETRY -1", "-ERR time is out of range"},
      {"FR.PEEK f a START -1", "-ERR invalid position -1, valid 0..0"},
      {"FR.HOSTS f START -1", range},
      {"FR.PEEK f a -1", range},
      {"FR.PEEK f a LAST 1", "-ERR syntax error"},
      {"FR.HOST f a DELAY", "-ERR syntax error"},
      {"FR.HOST f a DELAY -2", "-ERR time is out of range"},
      {"FR.HOST f \"a b\" DELAY 1", "-ERR invalid host"},
      {"FR.HOST none a", "-ERR no such key"},
      {"FR.STATS none", "-ERR no such key"},
      {"FR.PURGE f a b", "-ERR syntax error"},
      {"FR.DEAD f FORGET 1", "-ERR syntax error"},
      {"FR.EXPORT f -1", "-ERR invalid cursor"},
      {"FR.EXPORT f 0 COUNT 0", "-ERR value is out of range, must be positive"},
      {"FR.IMPORT f http://a/ lost 0 0 0 m",
       "-ERR unknown state, use queued, delayed, leased or dead"},
      {"FR.IMPORT f http://a/ queued 0 0 0 m x",
       "-ERR wrong number of arguments for 'fr.import' command"},
  };
  const std::string before = DigestOf(context_, "f");
  context_.TakeChanges();
  for (const auto& [call, error] : bad) EXPECT_EQ(Run(call), error) << call;
  EXPECT_EQ(DigestOf(context_, "f"), before);
  EXPECT_EQ(context_.TakeChanges(), 0);
  EXPECT_FALSE(context_.Exists("n"));
}

// ---- URL.* ----

TEST_F(FrontierCommandsTest, UrlHelpers) {
  EXPECT_EQ(Run("URL.NORM HTTP://A.com:80/x/../y#z"), "http://a.com/y");
  EXPECT_EQ(Run("URL.NORM http://www.A.com/y/ NORM ufmg"), "http://a.com/y");
  EXPECT_EQ(Run("URL.HOST https://A.com:8443/x"), "a.com:8443");
  EXPECT_EQ(Run("URL.DEPTH http://a/b/c?d/e"), "2");
  EXPECT_EQ(Run("URL.DEPTH http://a/b/c/ NORM UFMG"), "2");
  EXPECT_EQ(Run("URL.NORM ftp://a/"), "-ERR invalid URL: scheme not supported");
  EXPECT_EQ(Run("URL.HOST x"), "-ERR invalid URL: not a URL");
  EXPECT_EQ(Run("URL.HOST http://h/a.pdf NORM ufmg"), "-ERR invalid URL: file type not wanted");
  EXPECT_EQ(Run("URL.NORM http://a/ NORM whatwg"), "-ERR unknown NORM, use ufmg or rfc3986");
  EXPECT_EQ(Run("URL.NORM http://a/ x"), "-ERR syntax error");
}

TEST_F(FrontierCommandsTest, UrlParse) {
  EXPECT_EQ(Run("URL.PARSE HTTPS://A.com:8443/x/./b.html?q=1?2#z"),
            "[protocol, https, host, a.com:8443, path, /x/b.html, query, q=1?2, depth, 2]");
  EXPECT_EQ(Run("URL.PARSE http://a"), "[protocol, http, host, a, path, /, query, , depth, 1]");
  EXPECT_EQ(Run("URL.PARSE http://www.A.com NORM ufmg"),
            "[protocol, http, host, a.com, path, , query, , depth, 0]");
  EXPECT_EQ(Run("URL.PARSE http://a?b/c NORM ufmg"),
            "[protocol, http, host, a, path, , query, b/c, depth, 0]");
  EXPECT_EQ(Run("URL.PARSE nonsense"), "-ERR invalid URL: not a URL");
  EXPECT_EQ(context_.Run({"URL.PARSE", "http://a/"}).substr(0, 5), "*10\r\n");
  context_.set_resp(3);
  EXPECT_EQ(context_.Run({"URL.PARSE", "http://a/"}).substr(0, 4), "%5\r\n");
}

// ---- the log ----

// Whatever was done, the log gives the same frontier at any later time.
TEST_F(FrontierCommandsTest, TheLogGivesTheSameFrontier) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto pick = [&random](unsigned n) { return random() % n; };
  for (int round = 0; round < 20; ++round) {
    FakeContext live({FrontierCommands()});
    FakeContext replay({FrontierCommands()});
    replay.set_now_ms(1'900'000'000'000);
    const char* dedup[] = {"pending", "seen", "bloom 0.01"};
    const char* strategy[] = {"depth", "breadth", "best", "priority"};
    const std::string create =
        fmt::format("FR.CREATE f RETRIES 1 STRATEGY {} DEDUP {} DELAY {} LEASE {}0",
                    strategy[pick(4)], dedup[pick(3)], pick(30), pick(2));
    std::vector<std::string> log = {create};
    RunOn(live, create);
    live.TakeChanges();
    for (int step = 0; step < 300; ++step) {
      live.set_now_ms(live.now_ms() + static_cast<int64_t>(random() % 20));
      const std::string host = fmt::format("h{}", pick(6));
      const std::string url = fmt::format("http://h{}/{}/{}", pick(5), pick(3), pick(40));
      std::string call;
      switch (random() % 12) {
        case 0:
        case 1:
        case 2:
          call = fmt::format("FR.ADD f PRIO {} {} bad {}", pick(3), url, url);
          break;
        case 3:
          call = fmt::format("FR.ADD f AT {} {}", live.now_ms() + 25, url);
          break;
        case 4:
        case 5:
          call = fmt::format("FR.NEXT f {}", 1 + pick(4));
          break;
        case 6:
          call = "FR.NEXT f 2 LEASE 15 STRATEGY breadth BLOCK 5 RESTART";
          break;
        case 7:
          call = fmt::format("FR.ACK f {} {} REFETCH 30", pick(60), pick(60));
          break;
        case 8:
          call = fmt::format("FR.NACK f {} {} RETRY 7", pick(60), pick(60));
          break;
        case 9:
          call = fmt::format("FR.EXTEND f {} LEASE 40", pick(60));
          break;
        case 10:
          call = fmt::format("FR.HOST f {} DELAY {}", host, pick(40));
          break;
        default:
          call = Line({pick(3) == 0 ? "FR.PURGE f" : "FR.NEXT f 1 HOST", host});
          if (pick(10) == 0) call = "FR.CLEAR f";
      }
      RunOn(live, call);
      const std::string effects = live.TakeEffects();
      if (live.TakeChanges() > 0) log.push_back(effects.empty() ? call : effects);
    }
    for (const std::string& call : log) RunOn(replay, call);
    // A last call brings both to the same moment.
    const std::string last = "FR.NEXT f 100 LEASE 0 NOW " + std::to_string(live.now_ms() + 100000);
    EXPECT_EQ(RunOn(replay, last), RunOn(live, last));
    EXPECT_EQ(DigestOf(replay, "f"), DigestOf(live, "f"));
  }
}

TEST_F(FrontierCommandsTest, ExamplesRun) {
  for (const auto family : {FrontierCommands(), UrlCommands()}) {
    for (const CommandSpec& spec : family) {
      const std::string reply = Run(spec.example);
      EXPECT_NE(reply[0], '-') << spec.example << ": " << reply;
    }
  }
}

}  // namespace
}  // namespace sava::commands
