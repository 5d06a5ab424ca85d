// The parts of `sava bench associations` that need no server: the generator, the histogram, the
// measuring of replies, the check of counts, the options and the report.
#include "cli/bench_associations.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "cli/bench_histogram.h"
#include "cli/bench_load.h"
#include "cli/bench_options.h"
#include "cli/bench_report.h"
#include "cli/bench_wire.h"

namespace sava::cli {
namespace {

TEST(LatencyHistogram, PercentilesAreNoMoreThanThreePercentTooHigh) {
  EXPECT_TRUE(rc::check([](uint64_t seed) {
    base::Rng rng(seed);
    LatencyHistogram histogram;
    std::vector<uint64_t> values;
    double sum = 0;
    for (int i = 0; i < 1000; ++i) {
      values.push_back(rng.Next() >> (24 + rng.Below(40)));
      histogram.Record(values.back());
      sum += static_cast<double>(values.back());
    }
    std::sort(values.begin(), values.end());
    for (const double percent : {0.1, 50.0, 90.0, 99.0, 99.9, 100.0}) {
      const auto exact =
          static_cast<double>(values[static_cast<size_t>(std::lround(percent * 10)) - 1]);
      const auto told = static_cast<double>(histogram.Percentile(percent));
      RC_ASSERT(told >= exact);
      RC_ASSERT(told <= exact * 1.0313 + 1);
    }
    RC_ASSERT(histogram.max() == values.back());
    RC_ASSERT(histogram.count() == values.size());
    RC_ASSERT(std::abs(histogram.mean() - sum / 1000) <= sum / 1e9);
  }));
}

TEST(LatencyHistogram, SmallValuesAreExact) {
  for (uint64_t value = 0; value < 64; ++value) {
    LatencyHistogram histogram;
    histogram.Record(value);
    histogram.Record(1000);
    EXPECT_EQ(histogram.Percentile(50), value);
  }
}

TEST(LatencyHistogram, MergedIsTheSameAsTogether) {
  LatencyHistogram one;
  LatencyHistogram two;
  LatencyHistogram both;
  for (uint64_t i = 0; i < 1000; ++i) {
    (i % 3 == 0 ? one : two).Record(i * i);
    both.Record(i * i);
  }
  one.Merge(two);
  EXPECT_EQ(one.count(), both.count());
  EXPECT_EQ(one.mean(), both.mean());
  for (double percent = 1; percent <= 100; ++percent) {
    EXPECT_EQ(one.Percentile(percent), both.Percentile(percent));
  }
}

TEST(LatencyHistogram, NothingAndTooMuchAreTold) {
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.Percentile(99), 0U);
  EXPECT_EQ(histogram.mean(), 0);
  histogram.Record(UINT64_MAX);
  EXPECT_EQ(histogram.max(), UINT64_MAX);
}

TEST(Permutation, HitsEveryNumberOnce) {
  EXPECT_TRUE(rc::check([](uint64_t seed) {
    const uint64_t size = *rc::gen::inRange<uint64_t>(1, 3000);
    const Permutation permutation(size, seed);
    std::vector<bool> seen(size);
    for (uint64_t i = 0; i < size; ++i) {
      const uint64_t image = permutation(i);
      RC_ASSERT(image < size);
      RC_ASSERT(!seen[image]);
      seen[image] = true;
    }
  }));
}

// A shuffled pack has about one card on its own place, and a neighbour as often behind as before.
TEST(Permutation, LooksShuffled) {
  constexpr uint64_t kSize = 100000;
  const Permutation permutation(kSize, 7);
  uint64_t fixed = 0;
  uint64_t rising = 0;
  for (uint64_t i = 0; i + 1 < kSize; ++i) {
    fixed += permutation(i) == i ? 1 : 0;
    rising += permutation(i) < permutation(i + 1) ? 1 : 0;
  }
  EXPECT_LT(fixed, 20U);
  EXPECT_GT(rising, kSize * 48 / 100);
  EXPECT_LT(rising, kSize * 52 / 100);
}

using Pairs = std::map<std::pair<uint64_t, uint64_t>, uint64_t>;

Pairs AllOf(const AssociationLoad& load) {
  Pairs pairs;
  for (uint64_t i = 0; i < load.slots(); ++i) {
    if (const auto found = load.At(i)) ++pairs[{found->associator, found->member}];
  }
  return pairs;
}

TEST(AssociationLoad, RepeatsEveryPairAsOftenAsItSays) {
  EXPECT_TRUE(rc::check([](uint64_t seed) {
    AssociationShape shape;
    shape.associators = *rc::gen::inRange<uint64_t>(1, 20);
    shape.associated = *rc::gen::inRange<uint64_t>(1, 20);
    shape.repetitions = *rc::gen::inRange<uint64_t>(1, 10);
    shape.distinct = *rc::gen::element<uint64_t>(0, shape.associated + 13);
    shape.in_order = *rc::gen::arbitrary<bool>();
    shape.seed = seed;
    const AssociationLoad load(shape);
    const Pairs pairs = AllOf(load);
    RC_ASSERT(pairs.size() == shape.associators * shape.associated);
    uint64_t total = 0;
    for (uint64_t a = 0; a < shape.associators; ++a) {
      for (uint64_t j = 0; j < shape.associated; ++j) {
        const uint64_t times = load.Repetitions(a, j);
        RC_ASSERT(times >= 1U && times <= shape.repetitions);
        RC_ASSERT(pairs.at({a, load.Member(a, j)}) == times);
        total += times;
      }
    }
    RC_ASSERT(load.CountOperations() == total);
  }));
}

TEST(AssociationLoad, MembersComeFromTheWholePool) {
  AssociationShape shape;
  shape.associators = 200;
  shape.associated = 10;
  shape.repetitions = 1;
  shape.distinct = 1000;
  std::set<uint64_t> members;
  for (const auto& [pair, times] : AllOf(AssociationLoad(shape))) members.insert(pair.second);
  EXPECT_GT(members.size(), 800U);
  EXPECT_LE(*members.rbegin(), 999U);
}

TEST(AssociationLoad, TheDocumentsOrderIsPairAfterPair) {
  AssociationShape shape;
  shape.associators = 3;
  shape.associated = 4;
  shape.repetitions = 5;
  shape.in_order = true;
  const AssociationLoad load(shape);
  std::pair<uint64_t, uint64_t> last{0, 0};
  for (uint64_t i = 0; i < load.slots(); ++i) {
    const auto found = load.At(i);
    if (!found) continue;
    const std::pair<uint64_t, uint64_t> now{found->associator, found->member};
    EXPECT_LE(last, now);
    last = now;
  }
}

TEST(AssociationLoad, KeysAreRandomGuids) {
  AssociationShape shape;
  shape.seed = 1;
  const AssociationLoad load(shape);
  shape.seed = 2;
  const AssociationLoad other(shape);
  std::set<std::string> texts;
  for (uint64_t i = 0; i < 1000; ++i) {
    for (const std::string& text : {load.AssociatorText(i), load.MemberText(i),
                                    other.AssociatorText(i), other.MemberText(i)}) {
      ASSERT_EQ(text.size(), 36U);
      EXPECT_EQ(text[14], '4');
      EXPECT_NE(std::string_view("89ab").find(text[19]), std::string_view::npos);
      EXPECT_EQ(std::string({text[8], text[13], text[18], text[23]}), "----");
      texts.insert(text);
    }
  }
  EXPECT_EQ(texts.size(), 4000U);
  EXPECT_EQ(load.AssociatorText(5), AssociationLoad(load.shape()).AssociatorText(5));
}

TEST(Wire, RequestsAreWhatAServerReads) {
  std::string out;
  AppendRespRequest({"AFC.ADD", "assoc:u1", "a"}, &out);
  EXPECT_EQ(out, "*3\r\n$7\r\nAFC.ADD\r\n$8\r\nassoc:u1\r\n$1\r\na\r\n");
  out.clear();
  AppendHttpRequest({"127.0.0.1:7379", ""}, "GET", "/associations/u1?k=2", "", &out);
  EXPECT_EQ(out, "GET /associations/u1?k=2 HTTP/1.1\r\nHost: 127.0.0.1:7379\r\n\r\n");
  out.clear();
  AppendHttpRequest({"h", "Bearer x"}, "POST", "/a", "{}", &out);
  EXPECT_EQ(out,
            "POST /a HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer x\r\n"
            "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
}

struct Scanned {
  std::vector<std::string> replies;
  std::vector<bool> errors;
  bool broken = false;
};

// Feeds the bytes in pieces of `step`.
Scanned ScanAll(Wire wire, const std::string& bytes, size_t step) {
  Scanned scanned;
  ReplyScanner scanner(wire);
  size_t start = 0;
  for (size_t end = std::min(step, bytes.size());; end = std::min(end + step, bytes.size())) {
    while (start < end) {
      const std::string_view rest = std::string_view(bytes).substr(start, end - start);
      const ReplyScanner::Status status = scanner.Scan(rest);
      if (status == ReplyScanner::Status::kBroken) scanned.broken = true;
      if (status != ReplyScanner::Status::kReply) break;
      scanned.replies.emplace_back(rest.substr(0, scanner.size()));
      scanned.errors.push_back(scanner.is_error());
      start += scanner.size();
    }
    if (end == bytes.size() || scanned.broken) return scanned;
  }
}

TEST(Wire, RepliesEndWhereTheyEndHoweverTheyAreCut) {
  const std::vector<std::string> replies = {
      "+OK\r\n",
      "-ERR no\r\n",
      ":12\r\n",
      "$5\r\n\r\n-ab\r\n",
      "$-1\r\n",
      "*0\r\n",
      "*-1\r\n",
      "*4\r\n$1\r\na\r\n:2\r\n*1\r\n$0\r\n\r\n_\r\n",
      "%1\r\n+k\r\n*2\r\n:1\r\n:2\r\n",
  };
  std::string all;
  for (const std::string& reply : replies) all += reply;
  for (size_t step = 1; step <= all.size(); ++step) {
    const Scanned scanned = ScanAll(Wire::kResp, all, step);
    EXPECT_EQ(scanned.replies, replies) << step;
    EXPECT_EQ(std::count(scanned.errors.begin(), scanned.errors.end(), true), 1);
    EXPECT_TRUE(scanned.errors[1]);
  }
}

TEST(Wire, HttpRepliesEndWhereTheyEndHoweverTheyAreCut) {
  const std::vector<std::string> replies = {
      "HTTP/1.1 204 No Content\r\nDate: x\r\n\r\n",
      "HTTP/1.1 200 OK\r\ncontent-length:  5 \r\n\r\n[\r\n\r\n",
      "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\n\r\n{}",
      "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
  };
  std::string all;
  for (const std::string& reply : replies) all += reply;
  for (size_t step = 1; step <= all.size(); ++step) {
    const Scanned scanned = ScanAll(Wire::kHttp, all, step);
    EXPECT_EQ(scanned.replies, replies) << step;
    EXPECT_EQ(scanned.errors, (std::vector<bool>{false, false, true, false}));
  }
}

TEST(Wire, NonsenseIsNoticed) {
  for (const char* bytes :
       {"hello\r\n", "$x\r\n", "*99999999999999999999\r\n", "$2000000000\r\n"}) {
    EXPECT_TRUE(ScanAll(Wire::kResp, bytes, 100).broken) << bytes;
  }
  for (const char* bytes : {"hello world!\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
                            "HTTP/1.1 200 OK\r\n\r\nno length"}) {
    EXPECT_TRUE(ScanAll(Wire::kHttp, bytes, 100).broken) << bytes;
  }
}

TEST(Verification, TopListsAreRead) {
  const CountedMembers expected = {{"a", 3}, {"b", 1}};
  const auto from_resp = ParseTopReply("*4\r\n$1\r\na\r\n:3\r\n$1\r\nb\r\n:1\r\n");
  ASSERT_TRUE(from_resp);
  EXPECT_EQ(from_resp.value(), expected);
  for (const char* body :
       {R"([{"associatedKey":"a","frequency":3},{"associatedKey":"b","frequency":1}])",
        R"([{"frequency": 3, "associatedKey": "a"}, {"frequency": 1, "associatedKey": "b"}])"}) {
    const auto from_json = ParseTopJson(body);
    ASSERT_TRUE(from_json) << from_json.error();
    EXPECT_EQ(from_json.value(), expected);
  }
  EXPECT_TRUE(ParseTopJson("[]").value().empty());
  EXPECT_FALSE(ParseTopJson("{\"error\":\"x\"}"));
  EXPECT_FALSE(ParseTopReply("*1\r\n$1\r\na\r\n"));
  EXPECT_FALSE(ParseTopReply("*2\r\n$1\r\na\r\n$1\r\nb\r\n"));
}

TEST(Verification, AWrongCountIsFound) {
  AssociationShape shape;
  shape.seed = 3;
  const AssociationLoad load(shape);
  CountedMembers counted;
  for (uint64_t j = 0; j < shape.associated; ++j) {
    counted.emplace_back(load.MemberText(load.Member(7, j)), load.Repetitions(7, j));
  }
  std::sort(counted.begin(), counted.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  EXPECT_EQ(CheckCounts(load, 7, 100, counted), "");
  EXPECT_NE(CheckCounts(load, 8, 100, counted), "");
  CountedMembers wrong = counted;
  ++wrong.front().second;
  EXPECT_NE(CheckCounts(load, 7, 100, wrong), "");
  wrong = counted;
  std::swap(wrong.front(), wrong.back());
  EXPECT_NE(CheckCounts(load, 7, 100, wrong), "");
  wrong = counted;
  wrong.pop_back();
  EXPECT_NE(CheckCounts(load, 7, 100, wrong), "");
  EXPECT_EQ(CheckCounts(load, 7, 99, wrong), "");
  wrong = counted;
  wrong.erase(wrong.begin());
  EXPECT_NE(CheckCounts(load, 7, 99, wrong), "") << "the most frequent one is missing";
  wrong = counted;
  wrong[1] = wrong[0];
  EXPECT_NE(CheckCounts(load, 7, 100, wrong), "");
}

TEST(BenchOptions, AreReadAndChecked) {
  const auto options = ParseBenchOptions({"--associators", "5", "--associated", "6",
                                          "--repetitions", "7", "--http", "--top", "3,4", "--seed",
                                          "9", "--clients", "2", "--threads", "8", "--keep"});
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options.value().shape.associators, 5U);
  EXPECT_EQ(options.value().shape.associated, 6U);
  EXPECT_EQ(options.value().shape.repetitions, 7U);
  EXPECT_EQ(options.value().shape.seed, 9U);
  EXPECT_EQ(options.value().top, (std::vector<uint64_t>{3, 4}));
  EXPECT_EQ(options.value().load.endpoint.port, 7379);
  EXPECT_EQ(options.value().load.threads, 2U) << "no thread without a client";
  EXPECT_TRUE(options.value().keep);
  EXPECT_EQ(ParseBenchOptions({}).value().load.endpoint.port, 6379);
  // random.Next(1, R) of the document's program.
  const auto most = [](const char* repetitions) {
    return ParseBenchOptions({"--repetitions", repetitions, "--exclusive"})
        .value()
        .shape.repetitions;
  };
  EXPECT_EQ(most("5"), 4U);
  EXPECT_EQ(most("2"), 1U);
  EXPECT_EQ(most("1"), 1U);
  const std::vector<std::vector<std::string>> refused = {
      {"--associators", "0"},
      {"--associators", "x"},
      {"--associators"},
      {"--nosuch", "1"},
      {"--top", ""},
      {"--top", "1,,2"},
      {"--order", "no"},
      {"-p", "70000"},
      {"--distinct", "5"},
      {"--user", "u"},
      {"--http", "--top", "10001"},
      {"--top", "5,10001,5", "--http"},
      {"--http", "-s", "socket"},
      {"-s", "socket", "--http"},
      {"--associators", "1000000000", "--associated", "1000000000"},
  };
  EXPECT_TRUE(ParseBenchOptions({"--http", "--top", "10000"}));
  EXPECT_TRUE(ParseBenchOptions({"-s", "socket", "--top", "10001"}));
  for (const auto& words : refused) EXPECT_FALSE(ParseBenchOptions(words)) << words[0];
}

TEST(BenchReport, IsGoodOnlyWhenEverythingWas) {
  BenchReport report;
  report.phases.push_back({"insert", {}});
  report.phases[0].result.operations = 1234;
  report.phases[0].result.seconds = 2;
  report.phases[0].result.latency.Record(1500000);
  report.verification = BenchReport::Verification{};
  EXPECT_TRUE(report.ok());
  EXPECT_NE(ReportText(report).find("insert            1,234         617"), std::string::npos)
      << ReportText(report);
  EXPECT_NE(ReportJson(report).find(R"("ops_per_second":617.0,"latency_ms":{"mean":1.500,)"),
            std::string::npos)
      << ReportJson(report);
  report.verification->problem = "no";
  EXPECT_FALSE(report.ok());
  report.verification.reset();
  report.phases[0].result.errors = 1;
  EXPECT_FALSE(report.ok());
}

}  // namespace
}  // namespace sava::cli
