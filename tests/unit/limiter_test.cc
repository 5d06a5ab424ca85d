// The server's own limiter: whom it limits, that many threads never get more than there is, and
// that its buckets are ordinary keys.
#include "engine/limiter.h"

#include <gtest/gtest.h>

#include <thread>

#include "config/config.h"
#include "engine/engine_context.h"
#include "engine_fixture.h"

namespace sava::engine {
namespace {

using types::RateAlgorithm;
using types::RateRule;

constexpr RateRule kThree{RateAlgorithm::kWindow, 3, 60'000, 3};

struct LimitedEngine : TestEngine {
  explicit LimitedEngine(size_t lanes, std::optional<RateRule> rule = kThree) : TestEngine(lanes) {
    settings.ratelimit_enabled = true;
    settings.ratelimit_default = rule;
    settings.ratelimit_exempt = {"DBSIZE"};
    engine.limiter().Configure(settings);
  }
};

std::string Refused(int64_t ms) {
  return "-RATELIMITED retry_after_ms=" + std::to_string(ms) + "\r\n";
}

TEST(Limiter, RefusesWhenNothingIsLeftAndRefillsAfterThePeriod) {
  LimitedEngine test(1);
  TestClient client(test, 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.Run({"GET", "k"}), "$-1\r\n");
  EXPECT_EQ(client.Run({"GET", "k"}), Refused(60'001));
  EXPECT_EQ(client.Run({"NOSUCH"}), Refused(60'001)) << "unknown commands count too";
  EXPECT_EQ(client.Run({"DBSIZE"}), ":1\r\n") << "exempt; the one key is the bucket";
  test.clock.AdvanceMillis(60'001);
  EXPECT_EQ(client.Run({"GET", "k"}), "$-1\r\n");
  EXPECT_EQ(test.engine.Total(&LaneStats::ratelimit_refused), 2U);
}

TEST(Limiter, OffMeansUnlimitedAndWithoutARuleTooEvenWhenOn) {
  LimitedEngine test(1, std::nullopt);
  TestClient client(test, 0);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(client.Run({"GET", "k"}), "$-1\r\n");
  test.settings.ratelimit_users = {{"default", kThree}};
  test.engine.limiter().Configure(test.settings);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.Run({"GET", "k"}), "$-1\r\n");
  EXPECT_EQ(client.Run({"GET", "k"}), Refused(60'001));
  test.settings.ratelimit_enabled = false;
  test.engine.limiter().Configure(test.settings);
  EXPECT_EQ(client.Run({"GET", "k"}), "$-1\r\n");
}

TEST(Limiter, EveryUserHasABucketAndHisOwnRule) {
  LimitedEngine test(1);
  test.settings.ratelimit_users = {{"alice", {RateAlgorithm::kToken, 10, 1000, 2}}};
  test.engine.limiter().Configure(test.settings);
  TestClient alice(test, 0);
  TestClient other(test, 0);
  alice.client.user = "alice";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(alice.Run({"GET", "k"}), "$-1\r\n");
  EXPECT_EQ(alice.Run({"GET", "k"}), Refused(100));
  EXPECT_EQ(other.Run({"GET", "__rl:alice"}), "$15\r\n1700000000000 0\r\n");
  EXPECT_EQ(other.Run({"GET", "__rl:default"}), "$15\r\n1700000000000 1\r\n");
}

TEST(Limiter, TheLongestPrefixDecidesAndEachAddressHasABucket) {
  LimitedEngine test(1, std::nullopt);
  for (const auto& [network, limit] : {std::pair{"10.0.0.0/8", 5}, std::pair{"10.1.0.0/16", 2}}) {
    config::NetworkLimit rule;
    ASSERT_TRUE(base::ParseNetwork(network, &rule.network));
    rule.rule = {RateAlgorithm::kWindow, limit, 60'000, limit};
    test.settings.ratelimit_networks.push_back(rule);
  }
  test.engine.limiter().Configure(test.settings);
  const auto allowed = [&](const char* address) {
    TestClient client(test, 0);
    client.client.peer.addr = address;
    int count = 0;
    while (count < 20 && client.Run({"GET", "k"})[0] == '$') ++count;
    return count;
  };
  EXPECT_EQ(allowed("10.1.2.3:1000"), 2);
  EXPECT_EQ(allowed("10.1.2.3:2000"), 0) << "the same address";
  EXPECT_EQ(allowed("10.1.2.4:1000"), 2);
  EXPECT_EQ(allowed("10.9.9.9:1000"), 5);
  EXPECT_EQ(allowed("11.0.0.1:1000"), 20);
  EXPECT_EQ(allowed("[::1]:1000"), 20);
}

TEST(Limiter, WhoIsRefusedByOneBucketPaysNeither) {
  LimitedEngine test(1);
  config::NetworkLimit rule;
  ASSERT_TRUE(base::ParseNetwork("10.0.0.0/8", &rule.network));
  rule.rule = {RateAlgorithm::kWindow, 100, 60'000, 100};
  test.settings.ratelimit_networks = {rule};
  test.engine.limiter().Configure(test.settings);
  TestClient client(test, 0);
  client.client.peer.addr = "10.0.0.1:1";
  for (int i = 0; i < 10; ++i) client.Run({"GET", "k"});
  EXPECT_EQ(test.engine.limiter().Find("__rl:ip:10.0.0.1")->Look(1'700'000'000'000).remaining, 97);
}

TEST(Limiter, ATransactionPaysWhenItIsQueued) {
  LimitedEngine test(1);
  TestClient client(test, 0);
  EXPECT_EQ(client.Run({"MULTI"}), "+OK\r\n");
  EXPECT_EQ(client.Run({"SET", "a", "1"}), "+QUEUED\r\n");
  EXPECT_EQ(client.Run({"SET", "b", "1"}), "+QUEUED\r\n");
  EXPECT_EQ(client.Run({"EXEC"}), "*2\r\n+OK\r\n+OK\r\n") << "paid for already";
  test.clock.AdvanceMillis(60'001);
  client.Run({"MULTI"});
  client.Run({"SET", "a", "2"});
  client.Run({"SET", "a", "3"});
  EXPECT_EQ(client.Run({"SET", "a", "4"}), Refused(60'001));
  EXPECT_EQ(client.Run({"EXEC"}),
            "-EXECABORT Transaction discarded because of previous errors.\r\n");
  test.clock.AdvanceMillis(60'001);
  EXPECT_EQ(client.Run({"GET", "a"}), "$1\r\n1\r\n");
}

TEST(Limiter, TheBucketIsAKeyThatIsWrittenInTime) {
  LimitedEngine test(1);
  TestClient client(test, 0);
  const auto stored = [&] {
    return std::string(Glance(test.engine.keyspace(), client.lane.now_ms, 0, "__rl:default").bytes);
  };
  client.Run({"GET", "k"});
  test.engine.Upkeep(client.lane);
  EXPECT_EQ(stored(), "1700000000000 2");
  client.Run({"GET", "k"});
  EXPECT_EQ(stored(), "1700000000000 2") << "not yet";
  test.clock.AdvanceMillis(100);
  test.engine.Upkeep(client.lane);
  EXPECT_EQ(stored(), "1700000000000 1");
  EXPECT_EQ(client.Run({"GET", "__rl:default"}), "$15\r\n1700000000000 0\r\n")
      << "and at once for a command that names it";
  test.settings.ratelimit_enabled = false;
  test.engine.limiter().Configure(test.settings);
  EXPECT_EQ(client.Run({"PTTL", "__rl:default"}), ":119900\r\n");
}

TEST(Limiter, SettingABucketIsHonouredForOthersOnly) {
  LimitedEngine test(1);
  TestClient client(test, 0);
  TestClient admin(test, 0);
  admin.client.user = "admin";
  EXPECT_EQ(client.Run({"SET", "__rl:default", "1700000000000 100"}),
            "-NOPERM a limited user may not write the bucket that limits him\r\n");
  EXPECT_TRUE(client.Run({"DEL", "a", "__rl:default"}).starts_with("-NOPERM"));
  EXPECT_EQ(client.Run({"GET", "k"}), "$-1\r\n");
  EXPECT_EQ(client.Run({"GET", "k"}), Refused(60'001));
  EXPECT_EQ(admin.Run({"SET", "__rl:default", "1700000000000 1"}), "+OK\r\n");
  EXPECT_EQ(client.Run({"GET", "__rl:default"}), "$15\r\n1700000000000 0\r\n");
  EXPECT_EQ(client.Run({"GET", "k"}), Refused(60'001));
  EXPECT_EQ(admin.Run({"DEL", "__rl:default"}), ":1\r\n");
  EXPECT_EQ(client.Run({"GET", "k"}), "$-1\r\n");
  EXPECT_EQ(admin.Run({"SET", "__rl:default", "nonsense"}), "+OK\r\n");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(client.Run({"GET", "k"}), "$-1\r\n");
  EXPECT_EQ(client.Run({"GET", "k"}), Refused(60'001)) << "what is no bucket changes none";
}

TEST(Limiter, FlushingLetsNobodyRoundHisOwnLimit) {
  LimitedEngine test(1);
  TestClient client(test, 0);
  TestClient admin(test, 0);
  admin.client.user = "admin";
  for (int i = 0; i < 2; ++i) client.Run({"GET", "k"});
  EXPECT_EQ(client.Run({"FLUSHALL"}), "+OK\r\n");
  EXPECT_EQ(client.Run({"GET", "k"}), Refused(60'001));
  EXPECT_EQ(admin.Run({"FLUSHALL"}), "+OK\r\n");
  EXPECT_EQ(client.Run({"GET", "k"}), "$-1\r\n") << "but the others start afresh";
}

TEST(Limiter, FlushingAnotherDatabaseChangesNoBucket) {
  LimitedEngine test(1);
  test.settings.ratelimit_exempt = {"SELECT", "FLUSHDB", "SWAPDB"};
  test.engine.limiter().Configure(test.settings);
  TestClient client(test, 0);
  TestClient admin(test, 0);
  admin.client.user = "admin";
  admin.Run({"SELECT", "1"});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client.Run({"GET", "k"}), "$-1\r\n");
    EXPECT_EQ(admin.Run({"FLUSHDB"}), "+OK\r\n");
    EXPECT_EQ(admin.Run({"SWAPDB", "3", "4"}), "+OK\r\n");
  }
  EXPECT_EQ(client.Run({"GET", "k"}), Refused(60'001));
}

TEST(Limiter, AnExemptCommandDoesNotOpenOnesOwnBucket) {
  LimitedEngine test(1);
  test.settings.ratelimit_exempt = {"SET", "DEL"};
  test.engine.limiter().Configure(test.settings);
  TestClient client(test, 0);
  client.Run({"GET", "k"});
  EXPECT_TRUE(client.Run({"SET", "__rl:default", "1 5"}).starts_with("-NOPERM"));
  EXPECT_TRUE(client.Run({"DEL", "__rl:default"}).starts_with("-NOPERM"));
  EXPECT_EQ(client.Run({"SET", "k", "v"}), "+OK\r\n");
}

TEST(Limiter, AStoredBucketIsTakenUpWhenTheLimiterStarts) {
  LimitedEngine test(1);
  test.settings.ratelimit_enabled = false;
  test.engine.limiter().Configure(test.settings);
  TestClient client(test, 0);
  client.Run({"SET", "__rl:default", "1700000000000 1"});
  test.settings.ratelimit_enabled = true;
  test.engine.limiter().Configure(test.settings);
  EXPECT_EQ(client.Run({"GET", "k"}), "$-1\r\n");
  EXPECT_EQ(client.Run({"GET", "k"}), Refused(60'001));
}

TEST(Limiter, IdleBucketsAreForgotten) {
  LimitedEngine test(1, RateRule{RateAlgorithm::kToken, 10, 1000, 10});
  {
    TestClient client(test, 0);
    client.Run({"GET", "k"});
  }
  EXPECT_EQ(test.engine.limiter().All().size(), 1U);
  test.clock.AdvanceMillis(5000);
  Lane& lane = *test.engine.lanes()[0];
  for (int i = 0; i < 3; ++i) test.engine.Upkeep(lane);
  EXPECT_EQ(test.engine.limiter().All().size(), 0U);
}

// Many threads, each with its own lane, on one bucket; the clock stands still, so nothing comes
// back.
TEST(Limiter, ManyThreadsNeverGetMoreThanThereIs) {
  constexpr size_t kThreads = 4;
  for (const auto algorithm : {RateAlgorithm::kWindow, RateAlgorithm::kToken, RateAlgorithm::kGcra,
                               RateAlgorithm::kSliding}) {
    LimitedEngine test(kThreads, RateRule{algorithm, 5000, 60'000, 5000});
    std::atomic<int> allowed{0};
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        TestClient client(test, t);
        for (int i = 0; i < 2500; ++i) {
          // Commands that name the bucket's key write it back and read it again.
          const std::string reply =
              i % 50 == 0 ? client.RunPatiently({"GET", "__rl:default"})
                          : client.RunPatiently({"SET", "k" + std::to_string(i), "v"});
          if (reply[0] != '-') allowed.fetch_add(1);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(allowed.load(), 5000) << types::RateAlgorithmName(algorithm);
  }
}

// The same on one key with RL.TAKE.
TEST(RlTake, ManyThreadsNeverGetMoreThanThereIs) {
  constexpr size_t kThreads = 4;
  for (const char* algorithm : {"WINDOW", "TOKEN", "GCRA", "SLIDING"}) {
    TestEngine test(kThreads);
    std::atomic<int> allowed{0};
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        TestClient client(test, t);
        for (int i = 0; i < 1000; ++i) {
          const std::string reply =
              client.RunPatiently({"RL.TAKE", "k", algorithm, "1500", "60000"});
          if (reply.starts_with("*5\r\n:1\r\n")) allowed.fetch_add(1);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(allowed.load(), 1500) << algorithm;
  }
}

// ---- settings ----

std::string GetSetting(config::Config& config, std::string_view name) {
  return config.Get({&name, 1}).at(0).second;
}

base::Status SetSetting(config::Config& config, std::string_view name, std::string_view value) {
  const std::string_view words[] = {name, value};
  return config.Set(words, true);
}

TEST(LimiterSettings, ComeFromTheFileLineByLine) {
  config::Config config;
  ASSERT_TRUE(
      config.ParseText("ratelimit-enabled yes\n"
                       "ratelimit-default window 3 60s\n"
                       "ratelimit-user alice token 1000 1s burst 200\n"
                       "ratelimit-user bob sliding 5 1500ms\n"
                       "ratelimit-user alice gcra 10 1m\n"
                       "ratelimit-ip 10.1.2.3/8 gcra 5000 1s\n"
                       "ratelimit-ip ::1 window 1 1d\n"
                       "ratelimit-exempt ping config|get\n"
                       "ratelimit-key-prefix limit:\n",
                       "the text"));
  const config::Settings& settings = config.settings();
  EXPECT_TRUE(settings.ratelimit_enabled);
  EXPECT_EQ(*settings.ratelimit_default, kThree);
  EXPECT_EQ(GetSetting(config, "ratelimit-default"), "window 3 60s");
  EXPECT_EQ(GetSetting(config, "ratelimit-user"), "bob sliding 5 1500ms alice gcra 10 60s");
  EXPECT_EQ(GetSetting(config, "ratelimit-ip"), "10.0.0.0/8 gcra 5000 1s ::1/128 window 1 86400s");
  EXPECT_EQ(GetSetting(config, "ratelimit-exempt"), "PING CONFIG|GET");
  EXPECT_EQ(settings.ratelimit_key_prefix, "limit:");
  const std::string rewritten = config.RewrittenText("");
  config::Config again;
  ASSERT_TRUE(again.ParseText(rewritten, "the text")) << rewritten;
  EXPECT_EQ(again.settings().ratelimit_users, settings.ratelimit_users);
  EXPECT_EQ(again.settings().ratelimit_networks, settings.ratelimit_networks);
}

TEST(LimiterSettings, ChangeWhileRunningAndAreCheckedFirst) {
  config::Config config;
  EXPECT_TRUE(SetSetting(config, "ratelimit-user", "a window 1 1s b token 5 1s burst 9"));
  EXPECT_EQ(config.settings().ratelimit_users.size(), 2U);
  for (const char* bad :
       {"a", "a window", "a window 1", "a leaky 1 1s", "a window x 1s", "a window 1 1",
        "a window 1 1y", "a window 0 1s", "a window 1 1s burst 2", "a window 1 0s",
        "a window 1 1s b", "a gcra 1000000000000000 1ms", "a window 1 99999999999999999d"}) {
    EXPECT_FALSE(SetSetting(config, "ratelimit-user", bad)) << bad;
  }
  EXPECT_EQ(config.settings().ratelimit_users.size(), 2U);
  EXPECT_FALSE(SetSetting(config, "ratelimit-ip", "10.0.0.0/33 window 1 1s"));
  EXPECT_FALSE(SetSetting(config, "ratelimit-ip", "alice window 1 1s"));
  EXPECT_FALSE(SetSetting(config, "ratelimit-default", "window 3 60s more"));
  EXPECT_FALSE(SetSetting(config, "ratelimit-key-prefix", ""));
  EXPECT_TRUE(SetSetting(config, "ratelimit-user", ""));
  EXPECT_TRUE(config.settings().ratelimit_users.empty());
  EXPECT_TRUE(SetSetting(config, "ratelimit-default", "window 3 60s"));
  EXPECT_TRUE(SetSetting(config, "ratelimit-default", ""));
  EXPECT_FALSE(config.settings().ratelimit_default.has_value());
}

TEST(LimiterSettings, ExemptCommandsMustExist) {
  TestEngine test(1);
  test.settings.ratelimit_exempt = {"GET", "OBJECT|ENCODING"};
  EXPECT_TRUE(test.engine.limiter().Check(test.settings));
  test.settings.ratelimit_exempt = {"GET", "NOSUCH"};
  EXPECT_EQ(test.engine.limiter().Check(test.settings).error(), "there is no command 'NOSUCH'");
}

}  // namespace
}  // namespace sava::engine
