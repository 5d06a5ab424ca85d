// The slow log, the latency monitor, error counts, and what reports make of them.
#include "engine/observe.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "access/acl_log.h"
#include "admin/command_totals.h"
#include "admin/latency_graph.h"

namespace sava::engine {
namespace {

void Add(SlowLog& log, const std::vector<std::string>& words, size_t max_length = 128) {
  const std::vector<std::string_view> args(words.begin(), words.end());
  log.Add(1000, 42, args, "127.0.0.1:5", "name", max_length);
}

TEST(SlowLog, KeepsTheNewestFirstAndCountsOn) {
  SlowLog log;
  for (int i = 0; i < 5; ++i) Add(log, {"GET", std::to_string(i)}, 3);
  EXPECT_EQ(log.size(), 3U);
  const auto entries = log.Newest(-1);
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].id, 4);
  EXPECT_EQ(entries[2].id, 2);
  EXPECT_EQ(entries[0].args, (std::vector<std::string>{"GET", "4"}));
  EXPECT_EQ(entries[0].unix_time, 1000);
  EXPECT_EQ(entries[0].micros, 42);
  EXPECT_EQ(entries[0].peer, "127.0.0.1:5");
  EXPECT_EQ(entries[0].client_name, "name");
  EXPECT_EQ(log.Newest(2).size(), 2U);
  EXPECT_EQ(log.Newest(0).size(), 0U);
  log.Reset();
  EXPECT_EQ(log.size(), 0U);
  Add(log, {"PING"});
  EXPECT_EQ(log.Newest(1)[0].id, 5) << "numbers are never used again";
}

TEST(SlowLog, ShortensLongArgumentsAndLongLists) {
  SlowLog log;
  Add(log, {"SET", std::string(128, 'a'), std::string(129, 'b'), std::string(300, 'c')});
  const auto strings = log.Newest(1)[0].args;
  EXPECT_EQ(strings[1], std::string(128, 'a'));
  EXPECT_EQ(strings[2], std::string(128, 'b') + "... (1 more bytes)");
  EXPECT_EQ(strings[3], std::string(128, 'c') + "... (172 more bytes)");

  std::vector<std::string> words(32, "x");
  Add(log, words);
  EXPECT_EQ(log.Newest(1)[0].args, words) << "32 arguments are kept";
  words.resize(101, "x");
  Add(log, words);
  const auto list = log.Newest(1)[0].args;
  ASSERT_EQ(list.size(), 32U);
  EXPECT_EQ(list[30], "x");
  EXPECT_EQ(list[31], "... (70 more arguments)");
}

TEST(LatencyMonitor, KeepsTheWorstOfEachSecond) {
  LatencyMonitor monitor;
  monitor.Add("command", 100, 9, 10);
  monitor.Add("command", 100, 50, 0);
  EXPECT_TRUE(monitor.All().empty()) << "below the threshold, or switched off";
  monitor.Add("command", 100, 10, 10);
  monitor.Add("command", 100, 30, 10);
  monitor.Add("command", 100, 20, 10);
  monitor.Add("command", 101, 15, 10);
  LatencyMonitor::Series series;
  ASSERT_TRUE(monitor.Get("command", &series));
  ASSERT_EQ(series.samples.size(), 2U);
  EXPECT_EQ(series.samples[0].unix_time, 100);
  EXPECT_EQ(series.samples[0].millis, 30U);
  EXPECT_EQ(series.samples[1].millis, 15U);
  EXPECT_EQ(series.max, 30U);
}

TEST(LatencyMonitor, KeepsAtMost160SamplesButTheWorstForEver) {
  LatencyMonitor monitor;
  monitor.Add("fork", 0, 1000, 1);
  for (int second = 1; second <= 200; ++second) monitor.Add("fork", second, 5, 1);
  LatencyMonitor::Series series;
  ASSERT_TRUE(monitor.Get("fork", &series));
  EXPECT_EQ(series.samples.size(), 160U);
  EXPECT_EQ(series.samples.front().unix_time, 41);
  EXPECT_EQ(series.samples.back().unix_time, 200);
  EXPECT_EQ(series.max, 1000U);
}

TEST(LatencyMonitor, ResetsSomeEventsOrAll) {
  LatencyMonitor monitor;
  for (const char* event : {"a", "b", "c"}) monitor.Add(event, 1, 5, 1);
  EXPECT_EQ(monitor.Reset({"a", "nosuch"}), 1);
  LatencyMonitor::Series series;
  EXPECT_FALSE(monitor.Get("a", &series));
  EXPECT_EQ(monitor.All().size(), 2U);
  EXPECT_EQ(monitor.Reset({}), 2);
  EXPECT_TRUE(monitor.All().empty());
}

TEST(ErrorStats, CountsByFirstWord) {
  ErrorStats errors;
  errors.Add("ERR");
  errors.Add("WRONGTYPE");
  errors.Add("ERR");
  const std::vector<std::pair<std::string, uint64_t>> expected = {{"ERR", 2}, {"WRONGTYPE", 1}};
  EXPECT_EQ(errors.All(), expected);
  errors.Reset();
  EXPECT_TRUE(errors.All().empty());
}

}  // namespace
}  // namespace sava::engine

namespace sava::server {
namespace {

TEST(LatencyGraph, DrawsAColumnForEachSample) {
  engine::LatencyMonitor::Series series{"command", {{90, 20}, {95, 30}, {99, 40}}, 70};
  EXPECT_EQ(admin::LatencyGraph(series, 100),
            "command - high 40 ms, low 20 ms (all time high 70 ms)\n" + std::string(80, '-') +
                "\n"
                "  #\n"
                " _|\n"
                " ||\n"
                "_||\n"
                "   \n"
                "151\n"
                "0ss\n"
                "s  \n");
}

TEST(LatencyGraph, WritesAgesShort) {
  EXPECT_EQ(admin::ShortAge(0), "0s");
  EXPECT_EQ(admin::ShortAge(59), "59s");
  EXPECT_EQ(admin::ShortAge(60), "1m");
  EXPECT_EQ(admin::ShortAge(7200), "2h");
  EXPECT_EQ(admin::ShortAge(86400 * 3), "3d");
}

TEST(CommandTotals, NamesPercentilesAndPowersOfTwo) {
  engine::Histogram histogram;
  for (int i = 0; i < 90; ++i) histogram.Record(900);  // below 1024 ns
  for (int i = 0; i < 9; ++i) histogram.Record(30'000);
  histogram.Record(1'000'000);
  admin::CommandTotals totals;
  admin::AddHistogram(histogram, &totals);
  EXPECT_EQ(totals.samples, 100U);
  const std::vector<std::pair<int64_t, int64_t>> steps = {{1, 90}, {33, 99}, {1056, 100}};
  EXPECT_EQ(totals.Cumulative(), steps);
  EXPECT_NEAR(totals.Percentile(50), 0.9, 0.9 * 0.25);
  EXPECT_NEAR(totals.Percentile(99), 30, 30 * 0.25);
  EXPECT_NEAR(totals.Percentile(100), 1000, 1000 * 0.25);
  EXPECT_EQ(admin::CommandTotals().Percentile(50), 0);
  EXPECT_TRUE(admin::CommandTotals().Cumulative().empty());
}

TEST(CommandTotals, CountsEveryBucketOnce) {
  engine::Histogram histogram;
  for (uint64_t nanos = 0; nanos < (1ULL << 50); nanos = nanos * 2 + 1) histogram.Record(nanos);
  admin::CommandTotals totals;
  admin::AddHistogram(histogram, &totals);
  EXPECT_EQ(totals.Cumulative().back().second, static_cast<int64_t>(totals.samples));
}

access::AclLogEntry Attempt(const std::string& user) {
  access::AclLogEntry entry;
  entry.context = "toplevel";
  entry.object = "AUTH";
  entry.username = user;
  return entry;
}

TEST(AclLog, JoinsEqualAttemptsWithinAMinute) {
  access::AclLog log;
  log.Add(Attempt("a"), 1000, 10);
  log.Add(Attempt("b"), 2000, 10);
  log.Add(Attempt("a"), 3000, 10);
  auto entries = log.Newest(10);
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].username, "a");
  EXPECT_EQ(entries[0].count, 2);
  EXPECT_EQ(entries[0].id, 0);
  EXPECT_EQ(entries[0].created_ms, 1000);
  EXPECT_EQ(entries[0].updated_ms, 3000);
  log.Add(Attempt("a"), 3000 + 60'001, 10);
  entries = log.Newest(10);
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].count, 1);
  EXPECT_EQ(log.denied(access::Reason::kAuth), 4);
  log.Add(Attempt("c"), 99'000, 2);
  EXPECT_EQ(log.Newest(10).size(), 2U) << "bounded";
  log.Reset();
  EXPECT_TRUE(log.Newest(10).empty());
  EXPECT_EQ(log.denied(access::Reason::kAuth), 5);
  EXPECT_EQ(log.denied(access::Reason::kKey), 0);
  auto key = Attempt("c");
  key.reason = access::Reason::kKey;
  log.Add(key, 99'000, 2);
  EXPECT_EQ(log.Newest(2)[0].count, 1) << "another reason";
  EXPECT_EQ(log.denied(access::Reason::kKey), 1);
  log.ResetDenied();
  EXPECT_EQ(log.denied(access::Reason::kAuth), 0);
}

}  // namespace
}  // namespace sava::server
