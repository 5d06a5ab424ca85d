// The AFC.* family on a FakeContext: replies in both protocols, errors, notifications, changes, and
// what goes to the log. A log of effects, replayed by other times, must give the same counters.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "afc_members.h"
#include "base/text.h"
#include "commands/registry.h"
#include "fake_context.h"
#include "types/counters/afc.h"

namespace sava::commands {
namespace {

using types::Afc;

constexpr int64_t kNow = 1'700'000'000'000;
constexpr std::string_view kWrongType =
    "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
constexpr std::string_view kNotInteger = "-ERR value is not an integer or out of range\r\n";
constexpr std::string_view kMustBePositive = "-ERR value is out of range, must be positive\r\n";
constexpr std::string_view kSyntax = "-ERR syntax error\r\n";

// "*2 $1 a :2": a reply with spaces for line ends.
std::string Flat(std::string reply) {
  for (size_t at = reply.find("\r\n"); at != std::string::npos; at = reply.find("\r\n", at)) {
    reply.replace(at, 2, " ");
  }
  if (!reply.empty()) reply.pop_back();
  return reply;
}

class AfcFamily : public testing::Test {
 protected:
  AfcFamily() : context_({AfcCommands(), StringCommands(), KeyCommands()}) {
    context_.set_now_ms(kNow);
  }

  std::string Run(std::string_view line) { return context_.Run(*base::SplitArgs(line)); }
  std::string Flatly(std::string_view line) { return Flat(Run(line)); }
  void Forget() {
    context_.TakeChanges();
    context_.TakeEvents();
    context_.TakeEffects();
  }
  void ExpectReported(int64_t changes, std::string_view events, std::string_view effects = "") {
    EXPECT_EQ(context_.TakeChanges(), changes);
    EXPECT_EQ(context_.TakeEvents(), events);
    EXPECT_EQ(context_.TakeEffects(), effects);
  }
  const Afc& At(std::string_view key) {
    return static_cast<const Afc&>(*context_.Find(key, Access::kPeek).object);
  }

  FakeContext context_;
};

// ---- counting ----

TEST_F(AfcFamily, AddCountsNewMembers) {
  EXPECT_EQ(Run("AFC.ADD k a"), ":1\r\n");
  ExpectReported(1, "afc.add k");
  EXPECT_EQ(Run("afc.add k a b b c"), ":2\r\n");
  ExpectReported(4, "afc.add k");
  EXPECT_EQ(context_.events().size(), 0U);
  EXPECT_EQ(Flatly("AFC.TOP k 10 WITHCOUNTS"), "*6 $1 b :2 $1 a :2 $1 c :1");
  EXPECT_EQ(Run("AFC.ADD k ''"), ":1\r\n");
  EXPECT_EQ(Flatly("AFC.COUNT k '' a nope"), "*3 :1 :2 :0");
  Run("AFC.ADD k a");
  EXPECT_EQ(context_.events().back().cls, kNotifyModule);
}

TEST_F(AfcFamily, IncrbyTellsTheCount) {
  EXPECT_EQ(Run("AFC.INCRBY k a 5"), ":5\r\n");
  ExpectReported(1, "afc.incrby k");
  EXPECT_EQ(Run("AFC.INCRBY k a 1"), ":6\r\n");
  EXPECT_EQ(Run("AFC.INCRBY k a 9223372036854775807"), ":9223372036854775807\r\n");
  EXPECT_EQ(Run("AFC.INCRBY k a 1"), ":9223372036854775807\r\n");
  EXPECT_EQ(Run("AFC.INCRBY k b 9223372036854775807"), ":9223372036854775807\r\n");
  EXPECT_EQ(Run("AFC.INCRBY k c 9223372036854775807"), ":9223372036854775807\r\n");
  // The sum is more than a reply can say.
  EXPECT_EQ(Run("AFC.TOTAL k"), ":9223372036854775807\r\n");
}

TEST_F(AfcFamily, IncrbyRefusesWhatIsNoIncrement) {
  for (const char* n : {"x", "1.5", "''", "9223372036854775808", "' 1'", "+1"}) {
    EXPECT_EQ(Run("AFC.INCRBY k a " + std::string(n)), kNotInteger) << n;
  }
  for (const char* n : {"0", "-1", "-9223372036854775808"}) {
    EXPECT_EQ(Run("AFC.INCRBY k a " + std::string(n)), kMustBePositive) << n;
  }
  EXPECT_EQ(Run("EXISTS k"), ":0\r\n");
  ExpectReported(0, "");
}

TEST_F(AfcFamily, MembersMayHoldAnything) {
  const std::string odd("\0\r\n\xff", 4);
  const std::string uuid = types::UuidName(3);
  context_.Run({"AFC.ADD", "k", odd, uuid, odd});
  EXPECT_EQ(context_.Run({"AFC.TOP", "k", "9"}),
            "*2\r\n$4\r\n" + odd + "\r\n$36\r\n" + uuid + "\r\n");
  EXPECT_EQ(context_.Run({"AFC.COUNT", "k", odd}), "*1\r\n:2\r\n");
}

// ---- reading ----

TEST_F(AfcFamily, TopInBothProtocols) {
  Run("AFC.ADD k a b c b c c");
  EXPECT_EQ(Flatly("AFC.TOP k 2"), "*2 $1 c $1 b");
  EXPECT_EQ(Flatly("AFC.TOP k 2 withcounts"), "*4 $1 c :3 $1 b :2");
  EXPECT_EQ(Flatly("AFC.TOP k 0"), "*0");
  EXPECT_EQ(Flatly("AFC.TOP k 0 WITHCOUNTS"), "*0");
  EXPECT_EQ(Flatly("AFC.TOP k 9223372036854775807"), "*3 $1 c $1 b $1 a");
  EXPECT_EQ(Flatly("AFC.TOP nope 5"), "*0");
  EXPECT_EQ(Flatly("AFC.TOP nope 5 WITHCOUNTS"), "*0");
  context_.set_resp(3);
  EXPECT_EQ(Flatly("AFC.TOP k 2"), "*2 $1 c $1 b");
  EXPECT_EQ(Flatly("AFC.TOP k 2 WITHCOUNTS"), "*2 *2 $1 c :3 *2 $1 b :2");
  EXPECT_EQ(Flatly("AFC.TOP nope 5 WITHCOUNTS"), "*0");
}

TEST_F(AfcFamily, TopRefusesWhatMakesNoSense) {
  Run("AFC.ADD k a");
  EXPECT_EQ(Run("AFC.TOP k -1"), kMustBePositive);
  EXPECT_EQ(Run("AFC.TOP k x"), kNotInteger);
  EXPECT_EQ(Run("AFC.TOP k 1 COUNTS"), kSyntax);
  EXPECT_EQ(Run("AFC.TOP k 1 WITHCOUNTS WITHCOUNTS"), kSyntax);
}

TEST_F(AfcFamily, ReadingMissingKeys) {
  EXPECT_EQ(Flatly("AFC.COUNT nope a b"), "*2 :0 :0");
  EXPECT_EQ(Run("AFC.CARD nope"), ":0\r\n");
  EXPECT_EQ(Run("AFC.TOTAL nope"), ":0\r\n");
  EXPECT_EQ(Run("AFC.REM nope a"), ":0\r\n");
  EXPECT_EQ(Run("AFC.INFO nope"), "-ERR no such key\r\n");
  EXPECT_EQ(Run("DBSIZE"), ":0\r\n");
  ExpectReported(0, "");
}

TEST_F(AfcFamily, CardTotalAndHits) {
  Run("AFC.ADD k a b a");
  EXPECT_EQ(Run("AFC.CARD k"), ":2\r\n");
  EXPECT_EQ(Run("AFC.TOTAL k"), ":3\r\n");
  EXPECT_EQ(context_.hits(), 2);
  Run("AFC.TOP nope 1");
  EXPECT_EQ(context_.misses(), 1);
}

TEST_F(AfcFamily, InfoTellsAll) {
  Run("AFC.RESERVE k MAXLEN 100 WINDOW 60");
  Run("AFC.INCRBY k a 4");
  Run("AFC.ADD k b");
  const std::string bytes = base::IntText(context_.MemoryOf("k", 5));
  const std::string body =
      "$7 members :2 $5 total :5 $6 layout $6 packed $6 maxlen :100 "
      "$8 halflife :0 $6 window :60 $5 bytes :" +
      bytes;
  EXPECT_EQ(Flatly("AFC.INFO k"), "*14 " + body);
  context_.set_resp(3);
  EXPECT_EQ(Flatly("AFC.INFO k"), "%7 " + body);
  Run("AFC.RESERVE h HALFLIFE 3600");
  EXPECT_NE(Flatly("AFC.INFO h").find("$6 maxlen :0 $8 halflife :3600 $6 window :0"),
            std::string::npos);
}

// ---- removing ----

TEST_F(AfcFamily, RemTakesTheKeyWithTheLastMember) {
  Run("AFC.ADD k a b c");
  Forget();
  EXPECT_EQ(Run("AFC.REM k b nope b"), ":1\r\n");
  ExpectReported(1, "afc.rem k");
  EXPECT_EQ(Run("AFC.REM k nope"), ":0\r\n");
  ExpectReported(0, "");
  EXPECT_EQ(Run("AFC.REM k a c"), ":2\r\n");
  ExpectReported(2, "afc.rem k, del k");
  EXPECT_EQ(Run("EXISTS k"), ":0\r\n");
}

TEST_F(AfcFamily, DropForgetsCountersAndNothingElse) {
  Run("AFC.ADD k a b c");
  Forget();
  EXPECT_EQ(Run("AFC.DROP k"), ":1\r\n");
  ExpectReported(1, "del k", "DEL k");
  EXPECT_EQ(Run("AFC.DROP k"), ":0\r\n");
  ExpectReported(0, "");
  Run("SET s text");
  Forget();
  EXPECT_TRUE(Run("AFC.DROP s").starts_with("-WRONGTYPE"));
  EXPECT_EQ(Run("EXISTS s"), ":1\r\n");
}

TEST_F(AfcFamily, AReservedCounterStaysUntilItsLastMemberGoes) {
  Run("AFC.RESERVE k MAXLEN 2");
  EXPECT_EQ(Run("AFC.REM k a"), ":0\r\n");
  EXPECT_EQ(Run("EXISTS k"), ":1\r\n");
  EXPECT_EQ(Flatly("AFC.TOP k 3"), "*0");
  Run("AFC.ADD k a");
  EXPECT_EQ(Run("AFC.REM k a"), ":1\r\n");
  EXPECT_EQ(Run("EXISTS k"), ":0\r\n");
}

// ---- merging ----

TEST_F(AfcFamily, MergeAddsFromTheLeastFrequent) {
  Run("AFC.INCRBY one a 3");
  Run("AFC.INCRBY one b 2");
  Run("AFC.ADD one c d");
  Run("AFC.INCRBY two b 2");
  Run("AFC.ADD two e");
  Forget();
  EXPECT_EQ(Run("AFC.MERGE all one nope two"), "+OK\r\n");
  ExpectReported(6, "afc.merge all");
  // one: d, c arrive, then b 2, a 3; two: e arrives at the end, b to 4.
  EXPECT_EQ(Flatly("AFC.TOP all 9 WITHCOUNTS"), "*10 $1 b :4 $1 a :3 $1 d :1 $1 c :1 $1 e :1");
  EXPECT_EQ(Flatly("AFC.TOP one 9 WITHCOUNTS"), "*8 $1 a :3 $1 b :2 $1 c :1 $1 d :1");
}

TEST_F(AfcFamily, MergeEqualsIncrby) {
  std::mt19937 random(1);
  types::CounterModel model;
  Afc sources[3];
  for (Afc& source : sources) {
    for (int i = 0; i < 2000; ++i) {
      source.Add(types::MixedName(types::Skewed(random, 1500)), 1, kNow);
    }
  }
  for (size_t i = 0; i < 3; ++i) {
    context_.SetObject("s" + std::to_string(i), sources[i].Copy());
  }
  for (const size_t i : {0U, 1U, 2U, 1U}) {
    const types::Counted all = types::All(sources[i]);
    for (auto it = all.rbegin(); it != all.rend(); ++it) model.Add(it->first, it->second);
  }
  EXPECT_EQ(Run("AFC.MERGE d s0 s1 s2 s1"), "+OK\r\n");
  EXPECT_EQ(types::All(At("d")), model.All());
}

TEST_F(AfcFamily, MergeWithItself) {
  Run("AFC.INCRBY k a 3");
  Run("AFC.ADD k b c");
  EXPECT_EQ(Run("AFC.MERGE k k"), "+OK\r\n");
  EXPECT_EQ(Flatly("AFC.TOP k 9 WITHCOUNTS"), "*6 $1 a :6 $1 b :2 $1 c :2");
  // As it was before the command, wherever it stands.
  Run("AFC.INCRBY o a 10");
  EXPECT_EQ(Run("AFC.MERGE k o k k"), "+OK\r\n");
  EXPECT_EQ(Flatly("AFC.COUNT k a b"), "*2 :28 :6");
}

TEST_F(AfcFamily, MergeOfNothingMakesNoKey) {
  EXPECT_EQ(Run("AFC.MERGE d nope"), "+OK\r\n");
  Run("AFC.RESERVE empty");
  Forget();
  EXPECT_EQ(Run("AFC.MERGE d empty d"), "+OK\r\n");
  EXPECT_EQ(Run("EXISTS d"), ":0\r\n");
  ExpectReported(0, "");
}

TEST_F(AfcFamily, MergeChecksAllBeforeItChangesAnything) {
  Run("AFC.ADD a x");
  Run("SET s text");
  Forget();
  EXPECT_EQ(Run("AFC.MERGE d a s"), kWrongType);
  EXPECT_EQ(Run("AFC.MERGE s a"), kWrongType);
  EXPECT_EQ(Run("EXISTS d"), ":0\r\n");
  ExpectReported(0, "");
}

TEST_F(AfcFamily, MergeIntoABoundedCounter) {
  Run("AFC.RESERVE d MAXLEN 2");
  Run("AFC.ADD s a b c c");
  Run("AFC.MERGE d s");
  EXPECT_EQ(Run("AFC.CARD d"), ":2\r\n");
  EXPECT_EQ(Run("AFC.TOTAL d"), ":4\r\n");
}

// ---- reserving ----

TEST_F(AfcFamily, ReserveTakesItsOptionsOnce) {
  EXPECT_EQ(Run("AFC.RESERVE k0"), "+OK\r\n");
  ExpectReported(1, "afc.reserve k0");
  EXPECT_EQ(Run("AFC.RESERVE k1 maxlen 5"), "+OK\r\n");
  EXPECT_EQ(At("k1").options(), (Afc::Options{.maxlen = 5}));
  EXPECT_EQ(Run("AFC.RESERVE k2 HALFLIFE 60 MAXLEN 5"), "+OK\r\n");
  EXPECT_EQ(At("k2").options(), (Afc::Options{.maxlen = 5, .halflife_ms = 60'000}));
  EXPECT_EQ(Run("AFC.RESERVE k3 WINDOW 3162240000"), "+OK\r\n");
  EXPECT_EQ(At("k3").options(), (Afc::Options{.window_ms = 3'162'240'000'000}));
  for (const char* line :
       {"MAXLEN", "MAXLEN 1 MAXLEN 2", "HALFLIFE 1 WINDOW 1", "WINDOW 1 HALFLIFE 1", "5",
        "WINDOW 1 WINDOW 1", "MAXLEN 1 WINDOW", "TTL 5", "NOW 1 NOW 1"}) {
    EXPECT_EQ(Run("AFC.RESERVE bad " + std::string(line)), kSyntax) << line;
  }
  for (const char* line : {"MAXLEN 0", "MAXLEN -1", "HALFLIFE 0", "WINDOW -5", "NOW -1"}) {
    EXPECT_EQ(Run("AFC.RESERVE bad " + std::string(line)), kMustBePositive) << line;
  }
  for (const char* line : {"MAXLEN x", "HALFLIFE 0.5", "WINDOW 3162240001", "HALFLIFE ''",
                           "MAXLEN 9223372036854775808", "NOW 99999999999999999"}) {
    EXPECT_EQ(Run("AFC.RESERVE bad " + std::string(line)), kNotInteger) << line;
  }
  EXPECT_EQ(Run("EXISTS bad"), ":0\r\n");
}

TEST_F(AfcFamily, ReserveLeavesWhatIsThere) {
  Run("AFC.ADD k a");
  Run("SET s text");
  Forget();
  EXPECT_EQ(Run("AFC.RESERVE k MAXLEN 5"), "-ERR key already exists\r\n");
  EXPECT_EQ(Run("AFC.RESERVE s"), "-ERR key already exists\r\n");
  ExpectReported(0, "");
}

TEST_F(AfcFamily, BoundedCountersTakeOver) {
  Run("AFC.RESERVE k MAXLEN 2");
  Run("AFC.INCRBY k a 5");
  Run("AFC.INCRBY k b 3");
  EXPECT_EQ(Run("AFC.ADD k c"), ":1\r\n");
  EXPECT_EQ(Flatly("AFC.TOP k 9 WITHCOUNTS"), "*4 $1 a :5 $1 c :4");
  EXPECT_EQ(Flatly("AFC.COUNT k b"), "*1 :0");
}

// ---- time, and what is logged ----

TEST_F(AfcFamily, PlainCountersAreLoggedAsTheyCame) {
  Run("AFC.ADD k a b");
  Run("AFC.INCRBY k a 3");
  Run("AFC.REM k b");
  Run("AFC.MERGE d k");
  Run("AFC.RESERVE r MAXLEN 3");
  Run("AFC.ADDAT k 5 2 z");
  EXPECT_EQ(context_.TakeEffects(), "");
  EXPECT_FALSE(context_.no_effect());
}

TEST_F(AfcFamily, TimedCountersAreLoggedWithTheirTime) {
  EXPECT_EQ(Run("AFC.RESERVE w WINDOW 60"), "+OK\r\n");
  ExpectReported(1, "afc.reserve w", "AFC.RESERVE w WINDOW 60 NOW 1700000000000");
  EXPECT_EQ(Run("AFC.RESERVE h MAXLEN 9 HALFLIFE 5 NOW 1699999999999"), "+OK\r\n");
  ExpectReported(1, "afc.reserve h", "AFC.RESERVE h MAXLEN 9 HALFLIFE 5 NOW 1699999999999");
  Run("AFC.ADD w a b");
  ExpectReported(2, "afc.add w", "AFC.ADDAT w 1700000000000 1 a, AFC.ADDAT w 1700000000000 1 b");
  Run("AFC.INCRBY h a 7");
  ExpectReported(1, "afc.incrby h", "AFC.ADDAT h 1700000000000 7 a");
  context_.set_now_ms(kNow + 1);
  Run("AFC.REM w a nope");
  ExpectReported(1, "afc.rem w", "AFC.REMAT w 1700000000001 a");
  Run("AFC.MERGE h w");
  ExpectReported(1, "afc.merge h", "AFC.ADDAT h 1700000000001 1 b");
  // What was read from a timed counter depends on the time, wherever it went.
  Run("AFC.MERGE p w");
  ExpectReported(1, "afc.merge p", "AFC.INCRBY p b 1");
}

TEST_F(AfcFamily, AddAtAndRemAtCheckTheirArguments) {
  EXPECT_EQ(Run("AFC.ADDAT k 1700000000000 2 a b"), ":2\r\n");
  EXPECT_EQ(Flatly("AFC.COUNT k a b"), "*2 :2 :2");
  EXPECT_EQ(Run("AFC.ADDAT k x 1 a"), kNotInteger);
  EXPECT_EQ(Run("AFC.ADDAT k -1 1 a"), kMustBePositive);
  EXPECT_EQ(Run("AFC.ADDAT k 9223372036854775807 1 a"), kNotInteger);
  EXPECT_EQ(Run("AFC.ADDAT k 1 0 a"), kMustBePositive);
  EXPECT_EQ(Run("AFC.REMAT k x a"), kNotInteger);
  EXPECT_EQ(Run("AFC.REMAT k 1 a nope"), ":1\r\n");
  EXPECT_EQ(Flatly("AFC.TOP k 5"), "*1 $1 b");
}

// Replays a random history's effects much later: the same counters come out.
TEST_F(AfcFamily, TheLogGivesTheSameCounters) {
  FakeContext replica({AfcCommands()});
  std::mt19937 random(3);
  const auto follow = [&](const std::vector<std::string>& words) {
    const std::string reply = context_.Run(words);
    ASSERT_NE(reply.front(), '-') << reply;
    replica.set_now_ms(kNow + 1'000'000'000);
    std::string effects = context_.TakeEffects();
    if (effects.empty()) {
      if (context_.TakeChanges() > 0) replica.Run(words);
      return;
    }
    context_.TakeChanges();
    for (size_t at = 0; at != std::string::npos;) {
      const size_t end = effects.find(", ", at);
      replica.Run(*base::SplitArgs(effects.substr(at, end - at)));
      at = end == std::string::npos ? end : end + 2;
    }
  };
  const char* keys[] = {"plain", "decay", "window", "both"};
  follow({"AFC.RESERVE", "decay", "HALFLIFE", "2"});
  follow({"AFC.RESERVE", "window", "WINDOW", "1"});
  follow({"AFC.RESERVE", "both", "MAXLEN", "20", "WINDOW", "1"});
  int64_t now = kNow;
  for (int i = 0; i < 5000; ++i) {
    context_.set_now_ms(now += random() % 20);
    const std::string key = keys[random() % 4];
    const std::string member = types::WordName(types::Skewed(random, 60));
    switch (random() % 20) {
      case 0:
        follow({"AFC.REM", key, member, "word1"});
        break;
      case 1:
        if (random() % 8 == 0) follow({"AFC.MERGE", key, keys[random() % 4], key});
        break;
      case 2:
        follow({"AFC.INCRBY", key, member, std::to_string(1 + random() % 9)});
        break;
      default:
        follow({"AFC.ADD", key, member, types::WordName(static_cast<int>(random() % 60))});
    }
  }
  for (const char* key : keys) {
    const Value ours = context_.Find(key, Access::kPeek);
    const Value theirs = replica.Find(key, Access::kPeek);
    ASSERT_EQ(ours.kind, theirs.kind) << key;
    if (!ours) continue;
    const auto& a = static_cast<const Afc&>(*ours.object);
    const auto& b = static_cast<const Afc&>(*theirs.object);
    EXPECT_EQ(types::All(a, now), types::All(b, now)) << key;
    EXPECT_EQ(a.Total(now), b.Total(now)) << key;
  }
}

TEST_F(AfcFamily, WindowsPassByTheClock) {
  Run("AFC.RESERVE k WINDOW 10");
  Run("AFC.ADD k a a");
  context_.set_now_ms(kNow + 5'000);
  Run("AFC.ADD k b");
  EXPECT_EQ(Flatly("AFC.TOP k 5 WITHCOUNTS"), "*4 $1 a :2 $1 b :1");
  context_.set_now_ms(kNow + 30'000);
  EXPECT_EQ(Flatly("AFC.TOP k 5 WITHCOUNTS"), "*0");
  EXPECT_EQ(Run("AFC.CARD k"), ":0\r\n");
  EXPECT_EQ(Run("AFC.TOTAL k"), ":0\r\n");
  EXPECT_EQ(Run("EXISTS k"), ":1\r\n");
  EXPECT_EQ(Run("AFC.ADD k a"), ":1\r\n");
}

// ---- every command ----

TEST_F(AfcFamily, OtherTypesAreRefused) {
  Run("SET s text");
  context_.AddObject("list");
  Forget();
  for (const char* key : {"s", "list"}) {
    for (const char* line :
         {"AFC.ADD # a", "AFC.INCRBY # a 1", "AFC.TOP # 1", "AFC.COUNT # a", "AFC.CARD #",
          "AFC.TOTAL #", "AFC.REM # a", "AFC.MERGE # x", "AFC.MERGE x #", "AFC.INFO #",
          "AFC.ADDAT # 1 1 a", "AFC.REMAT # 1 a"}) {
      std::string with_key = line;
      with_key.replace(with_key.find('#'), 1, key);
      EXPECT_EQ(Run(with_key), kWrongType) << with_key;
    }
  }
  EXPECT_EQ(Run("GET s"), "$4\r\ntext\r\n");
  Run("AFC.ADD k a");
  EXPECT_EQ(Run("GET k"), kWrongType);
  EXPECT_EQ(Run("INCR k"), kWrongType);
  EXPECT_EQ(Run("APPEND k x"), kWrongType);
  EXPECT_EQ(Run("TYPE k"), "+afc\r\n");
}

TEST_F(AfcFamily, ArityIsChecked) {
  for (const char* line :
       {"AFC.ADD", "AFC.ADD k", "AFC.INCRBY k a", "AFC.INCRBY k a 1 2", "AFC.TOP k", "AFC.COUNT k",
        "AFC.CARD", "AFC.CARD k k", "AFC.TOTAL k k", "AFC.REM k", "AFC.MERGE d", "AFC.RESERVE",
        "AFC.INFO", "AFC.INFO k k", "AFC.ADDAT k 1 1", "AFC.REMAT k 1"}) {
    const std::string name =
        base::ToLower(std::string_view(line).substr(0, std::string_view(line).find(' ')));
    EXPECT_EQ(Run(line), "-ERR wrong number of arguments for '" + name + "' command\r\n") << line;
  }
}

TEST_F(AfcFamily, RowsSayWhereKeysStand) {
  CommandTable table;
  table.Add(AfcCommands());
  const std::vector<std::string_view> merge = {"AFC.MERGE", "d", "a", "b"};
  std::vector<int> indexes;
  std::vector<uint16_t> flags;
  ASSERT_TRUE(KeyIndexesAndFlags(*table.Resolve(merge), merge, &indexes, &flags));
  EXPECT_EQ(indexes, (std::vector<int>{1, 2, 3}));
  EXPECT_NE(flags[0] & kKeyRw, 0);
  EXPECT_NE(flags[1] & kKeyRo, 0);
  for (const CommandSpec& row : AfcCommands()) {
    EXPECT_EQ(row.group, "afc");
    EXPECT_FALSE(row.summary.empty());
    EXPECT_FALSE(row.example.empty());
    EXPECT_TRUE(table.Find(row.name)->simple_keys) << row.name;
    EXPECT_NE(row.flags & (kWrite | kReadonly), 0U);
  }
}

}  // namespace
}  // namespace sava::commands
