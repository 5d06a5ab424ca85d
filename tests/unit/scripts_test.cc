// Scripts in an engine without sockets: what is learned of them, and many threads with scripts of
// every conduct.
#include "script/scripts.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/rng.h"
#include "engine_fixture.h"
#include "script/script_cache.h"
#include "script/shebang.h"

namespace sava::script {
namespace {

struct Host final : engine::Host {};

struct Server {
  explicit Server(size_t lanes) : test(lanes, ScriptCommands()), scripts(&test.engine) {
    host.parts().Put(&scripts);
    host.parts().Put<const config::Settings>(&test.settings);
    test.engine.set_host(&host);
    test.engine.set_scripting(&scripts);
  }

  engine::TestEngine test;
  Scripts scripts;
  Host host;
};

using Words = std::vector<std::string>;

TEST(Scripts, RunAloneUntilTheyHaveShownThatTheyKeepToTheirKeys) {
  Server server(2);
  engine::TestClient client(server.test, 0);
  const Words words = {"EVAL", "return redis.call('INCR', KEYS[1])", "1", "n"};
  EXPECT_EQ(client.Run(words), ":1\r\n");
  EXPECT_EQ(server.scripts.Figures().exclusive, 1U);
  EXPECT_EQ(client.Run(words), ":2\r\n");
  EXPECT_EQ(server.scripts.Figures().declared, 1U);
  const Words other = {"EVAL", "return redis.call('INCR', 'n')", "0"};
  EXPECT_EQ(client.Run(other), ":3\r\n");
  EXPECT_EQ(client.Run(other), ":4\r\n");
  EXPECT_EQ(server.scripts.Figures().exclusive, 3U);
}

TEST(Scripts, ThatStrayBeforeTheyWriteRunAgainAlone) {
  Server server(2);
  engine::TestClient client(server.test, 0);
  // Several keys: one may have the stripe of "k".
  const std::string script =
      "local v = redis.call('EXISTS', KEYS[1], unpack(ARGV)) redis.call('SET', KEYS[1], '1') "
      "return v";
  EXPECT_EQ(client.Run({"EVAL", script, "1", "k"}), ":0\r\n");
  EXPECT_EQ(client.Run({"EVAL", script, "1", "k"}), ":1\r\n");
  EXPECT_EQ(client.Run({"EVAL", script, "1", "k", "b", "c", "d", "e", "f", "g"}), ":1\r\n");
  EXPECT_EQ(server.scripts.Figures().restarted, 1U);
  EXPECT_EQ(client.Run({"EVAL", script, "1", "k"}), ":1\r\n");
  EXPECT_EQ(server.scripts.Figures().declared, 1U);
}

TEST(Scripts, ThatStrayAfterTheyHaveWrittenGetTheLock) {
  Server server(2);
  engine::TestClient client(server.test, 0);
  const std::string script =
      "redis.call('INCR', KEYS[1]) for i = 1, #ARGV do redis.call('INCR', ARGV[i]) end return 1";
  EXPECT_EQ(client.Run({"EVAL", script, "1", "a"}), ":1\r\n");
  EXPECT_EQ(client.Run({"EVAL", script, "1", "a", "b", "c", "d", "a"}), ":1\r\n");
  EXPECT_GT(server.scripts.Figures().extended, 0U);
  EXPECT_EQ(client.Run({"MGET", "a", "b", "c", "d"}),
            "*4\r\n$1\r\n3\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n");
}

TEST(Scripts, ThatNameACommandForAllKeysAlwaysRunAlone) {
  Server server(2);
  engine::TestClient client(server.test, 0);
  const Words words = {"EVAL", "if ARGV[1] then return redis.call('DBSIZE') end return 0", "0"};
  EXPECT_EQ(client.Run(words), ":0\r\n");
  EXPECT_EQ(client.Run(words), ":0\r\n");
  EXPECT_EQ(server.scripts.Figures().declared, 0U);
}

TEST(Scripts, OneThatCallsACommandForAllKeysAfterWritingEnds) {
  Server server(2);
  engine::TestClient client(server.test, 0);
  const std::string script =
      "redis.call('INCR', KEYS[1]) if ARGV[1] then return redis.call(ARGV[1]) end return 0";
  EXPECT_EQ(client.Run({"EVAL", script, "1", "n"}), ":0\r\n");
  EXPECT_NE(client.Run({"EVAL", script, "1", "n", "dbsize"}).find("from now on it runs alone"),
            std::string::npos);
  EXPECT_EQ(server.scripts.Figures().clashed, 1U);
  EXPECT_EQ(client.Run({"EVAL", script, "1", "n", "dbsize"}), ":1\r\n");
}

// Amounts move between accounts; each thread has scripts that keep to their keys, that never do,
// and that stray now and then, before or after they have written.
TEST(Scripts, OnManyThreadsKeepSums) {
  constexpr size_t kThreads = 4;
  constexpr int kAccounts = 12;
  Server server(kThreads);
  std::atomic<int64_t> lost{0};
  const auto work = [&](size_t lane) {
    engine::TestClient client(server.test, lane);
    base::Rng rng(lane + 1);
    const auto account = [&] { return "account:" + std::to_string(rng.Below(kAccounts)); };
    for (int i = 0; i < 600; ++i) {
      const std::string from = account();
      const std::string to = account();
      switch (rng.Below(5)) {
        case 0:
          client.RunPatiently({"EVAL",
                               "redis.call('DECR',KEYS[1]) return redis.call('INCR',KEYS[2])", "2",
                               from, to});
          break;
        case 1:
          client.RunPatiently({"EVAL",
                               "redis.call('DECR',ARGV[1]) return redis.call('INCR',ARGV[2])", "0",
                               from, to});
          break;
        case 2: {
          const std::string script =
              "redis.call('DECR',KEYS[1]) return redis.call('INCR',ARGV[1] or KEYS[2]) -- " +
              std::to_string(i / 20 * 4 + static_cast<int>(lane % 2));
          Words words = {"EVAL", script, "2", from, to};
          if (i % 20 == 7) words.push_back(account());
          // What the one case without a way out has taken is put back.
          if (client.RunPatiently(words)[0] == '-') ++lost;
          break;
        }
        case 3:
          client.RunPatiently({"MSET", "x", "1", "y", "2", "z", "3"});
          break;
        default:
          client.RunPatiently({"MULTI"});
          client.RunPatiently({"EVAL", "return redis.call('DECR',KEYS[1])", "1", from});
          client.RunPatiently({"INCR", to});
          client.RunPatiently({"EXEC"});
          break;
      }
    }
  };
  std::vector<std::thread> threads;
  for (size_t lane = 0; lane < kThreads; ++lane) threads.emplace_back(work, lane);
  for (std::thread& thread : threads) thread.join();
  engine::TestClient client(server.test, 0);
  Words words = {
      "EVAL", "local s = 0 for i=1,#KEYS do s = s + (redis.call('GET',KEYS[i]) or 0) end return s",
      std::to_string(kAccounts)};
  for (int i = 0; i < kAccounts; ++i) words.push_back("account:" + std::to_string(i));
  EXPECT_EQ(client.RunPatiently(words), ":" + std::to_string(-lost.load()) + "\r\n");
  const engine::ScriptFigures figures = server.scripts.Figures();
  EXPECT_GT(figures.declared, 0U);
  EXPECT_GT(figures.exclusive, 0U);
  EXPECT_EQ(figures.clashed, static_cast<uint64_t>(lost.load()));
}

TEST(ScriptCache, KeepsWhatWasLoadedAndTheLastOfTheOthers) {
  ScriptCache cache;
  const auto add = [&](int i, bool loaded) {
    auto script = std::make_shared<Script>();
    script->source = "return " + std::to_string(i);
    script->sha = ShaOf(script->source);
    return cache.Add(script, loaded, i)->sha;
  };
  const std::string kept = add(0, true);
  for (int i = 1; i <= static_cast<int>(ScriptCache::kMostEvals) + 10; ++i) add(i, false);
  EXPECT_EQ(cache.count(), ScriptCache::kMostEvals + 1);
  EXPECT_EQ(cache.evicted(), 10U);
  EXPECT_NE(cache.Find(kept), nullptr);
  EXPECT_EQ(cache.Find(ShaOf("return 1")), nullptr);
  cache.Flush();
  EXPECT_EQ(cache.count(), 0U);
  EXPECT_EQ(cache.bytes(), 0U);
}

TEST(Shebang, SaysWhatAScriptMayDo) {
  EXPECT_FALSE(ReadScriptHead("return 1").value().present);
  const auto head = ReadScriptHead("#!lua flags=no-writes,allow-oom\nreturn 1");
  ASSERT_TRUE(head);
  EXPECT_EQ(head.value().flags, 3);
  EXPECT_EQ(ReadScriptHead("#!lua").error(), "Invalid script shebang");
  EXPECT_EQ(ReadScriptHead("#!lua flags=a\n").error(), "Unexpected flag in script shebang: a");
  EXPECT_EQ(ReadScriptHead("#!lua x=1\n").error(), "Unknown lua shebang option: x=1");
  EXPECT_EQ(ReadScriptHead("#!php\n").error(), "Unexpected engine in script shebang: #!php");
  EXPECT_EQ(ReadLibraryHead("#!lua name=a\n").value().name, "a");
  EXPECT_EQ(ReadLibraryHead("#!LUA name=a\n").value().name, "a");
  EXPECT_EQ(ReadLibraryHead("#!js name=a\n").error(), "Engine 'js' not found");
}

TEST(Running, AKilledScriptWritesNothingAndAWriterIsNotKilled) {
  Running running(2);
  EXPECT_EQ(running.Kill(Kind::kScript), Running::Outcome::kNothingRuns);
  Running::Slot& slot = running.Begin(1, Kind::kScript, 0);
  EXPECT_EQ(running.Kill(Kind::kScript), Running::Outcome::kNothingRuns) << "not long yet";
  running.TooLong(1, "sha", {});
  EXPECT_EQ(running.Kill(Kind::kFunction), Running::Outcome::kOtherKind);
  EXPECT_EQ(running.Kill(Kind::kScript), Running::Outcome::kYes);
  EXPECT_TRUE(running.Killed(slot));
  EXPECT_FALSE(Running::MayWrite(slot));
  running.End(1);
  Running::Slot& writer = running.Begin(0, Kind::kFunction, 0);
  EXPECT_TRUE(Running::MayWrite(writer));
  running.TooLong(0, "f", {});
  EXPECT_EQ(running.LongFunction()->name, "f");
  EXPECT_EQ(running.Kill(Kind::kFunction), Running::Outcome::kHasWritten);
  running.End(0);
  EXPECT_FALSE(running.LongKind());
}

}  // namespace
}  // namespace sava::script
