// The HTTP routes with an executor that answers what a test tells it: which commands a request
// becomes, which response a reply becomes, and who is refused at the door.
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "http/front_page.h"
#include "http/guard.h"
#include "http/json.h"
#include "http/problem.h"
#include "http/route.h"
#include "http/routes.h"
#include "http/text.h"

namespace sava::http {
namespace {

using protocol::HttpMethod;
using Words = std::vector<std::string>;

class ScriptedExecutor final : public commands::Executor {
 public:
  bool Run(commands::Args args, int resp, std::string_view* reply) override {
    EXPECT_EQ(resp, 3);
    if (wait_next > 0) {
      --wait_next;
      return false;
    }
    commands.emplace_back(args.begin(), args.end());
    if (replies.size() > 1) {
      current_ = replies.front();
      replies.pop_front();
    } else {
      current_ = replies.front();  // the last one stays
    }
    *reply = current_;
    return true;
  }

  bool RefusedBy(int64_t* limit, int64_t* period_ms) override {
    *limit = 7;
    *period_ms = 5000;
    return true;
  }

  std::vector<Words> commands;
  std::deque<std::string> replies = {":1\r\n"};
  int wait_next = 0;

 private:
  std::string current_;
};

class RoutesTest : public ::testing::Test {
 protected:
  RoutesTest() {
    request.host = "localhost:7379";
    request.path = "/";
  }

  // The status; 0 when the request has to wait.
  int Ask(HttpMethod method, std::string_view path, std::string_view body = {},
          std::string_view content_type = "application/json") {
    request.method = method;
    request.query = {};
    if (const size_t mark = path.find('?'); mark != std::string_view::npos) {
      request.query = path.substr(mark + 1);
      path = path.substr(0, mark);
    }
    request.path = path;
    request.body = body;
    request.has_body = !body.empty();
    request.content_type = body.empty() ? "" : content_type;
    job.reset();
    response.Clear();
    if (!Routes::Admit(request, site, &response)) return response.status;
    return Go();
  }
  int Go() {
    Call call{request, site, executor, &response};
    Step step;
    while ((step = routes.Handle(call, &job)) == Step::kMore) ++rounds;
    return step == Step::kWait ? 0 : response.status;
  }
  bool Says(std::string_view text) const {
    return (response.fields + response.body).find(text) != std::string::npos;
  }

  protocol::HttpRequest request;
  Site site;
  config::Settings settings;
  const commands::CommandTable table;
  ScriptedExecutor executor;
  Routes routes;
  std::unique_ptr<Job> job;
  protocol::HttpResponse response;
  int rounds = 0;
};

// ---- the front page ----

TEST_F(RoutesTest, AProgramGetsTheRoutesAsJson) {
  site.uptime_s = 77;
  request.host = "localhost:7379";
  for (const char* accept : {"", "*/*", "application/json", "text/html;q=0",
                             "text/html;q=0.5, application/json", "text/htmlx"}) {
    request.accept = accept;
    EXPECT_EQ(Ask(HttpMethod::kGet, "/"), 200) << accept;
    EXPECT_EQ(response.content_type, "application/json") << accept;
    EXPECT_TRUE(Says(R"("uptimeSeconds":77)"));
    EXPECT_TRUE(Says("Vary: Accept"));
    JsonReader reader(response.body);
    EXPECT_TRUE(reader.Object([](const JsonMember&) { return true; }) && reader.AtEnd())
        << response.body;
  }
  EXPECT_TRUE(executor.commands.empty());
}

TEST_F(RoutesTest, ABrowserGetsAPage) {
  site.uptime_s = 3 * 86400 + 4 * 3600 + 59;
  request.host = "10.0.0.1:<b>";
  for (const char* accept :
       {"text/html", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        "application/json;q=0.9, Text/HTML ; Q=1.0"}) {
    request.accept = accept;
    response.Clear();
    Call call{request, site, executor, &response};
    WriteFrontPage(call);
    EXPECT_EQ(response.content_type, "text/html; charset=utf-8") << accept;
    EXPECT_TRUE(Says("up for 3 d 4 h"));
    EXPECT_FALSE(Says("10.0.0.1:<b>")) << "what a client sends is escaped";
    EXPECT_TRUE(Says("10.0.0.1:&lt;b&gt;"));
    for (const char* needed : {"src=", "href=", "<script", "@import", "url("}) {
      EXPECT_FALSE(Says(needed)) << "it stands alone: " << needed;
    }
  }
}

TEST_F(RoutesTest, TheFrontPageListsEveryRouteButItself) {
  EXPECT_EQ(Ask(HttpMethod::kGet, "/"), 200);
  const std::string page = response.body;
  size_t listed = 0;
  for (const Route& route : AllRoutes()) {
    const std::string row = "{\"method\":\"" + std::string(MethodName(route.method)) +
                            "\",\"path\":\"" + std::string(route.pattern) + "\"";
    EXPECT_EQ(page.find(row) != std::string::npos, route.pattern != "/") << row;
    ++listed;
  }
  EXPECT_GE(listed, 8U);
  EXPECT_EQ(Ask(HttpMethod::kPost, "/"), 405);
  EXPECT_TRUE(Says("Allow: GET, HEAD"));
  settings.requirepass = "secret";
  const access::Users users(&table, &settings);
  site.users = &users;
  EXPECT_EQ(Ask(HttpMethod::kGet, "/"), 401);
}

TEST_F(RoutesTest, EveryRouteTakesItsMethodAndItsPathNoOther) {
  executor.replies = {"-ERR no\r\n"};
  for (const Route& route : AllRoutes()) {
    std::string path(route.pattern);
    if (const size_t brace = path.find('{'); brace != std::string::npos) path.resize(brace);
    if (path.size() < route.pattern.size()) {
      EXPECT_EQ(Ask(route.method, path), 404) << "a name is not empty: " << path;
      path += "name";
    }
    std::string allowed;
    for (const HttpMethod method :
         {HttpMethod::kGet, HttpMethod::kHead, HttpMethod::kPost, HttpMethod::kPut,
          HttpMethod::kDelete, HttpMethod::kPatch, HttpMethod::kOptions, HttpMethod::kTrace}) {
      if (Ask(method, path) == 405) continue;
      EXPECT_NE(response.status, 404) << path;
      allowed += (allowed.empty() ? "" : ", ") + std::string(MethodName(method));
    }
    EXPECT_NE(allowed.find(MethodName(route.method)), std::string::npos) << path << allowed;
    EXPECT_EQ(Ask(HttpMethod::kTrace, path), 405);
    EXPECT_TRUE(Says("Allow: " + allowed + "\r\n")) << path << response.fields;
  }
}

// ---- how long a key may be ----

TEST_F(RoutesTest, AKeyHasTheSameLimitEverywhere) {
  site.max_key = 10;
  const std::string fits(10, 'k');
  const std::string encoded = "%6b" + std::string(9, 'k');
  const std::string rule = R"({"algorithm":"window","limit":3,"periodMs":1000})";
  const std::string query = "?algorithm=window&limit=3&periodMs=1000";
  executor.replies = {":1\r\n"};
  for (const std::string& key : {fits, fits + "k"}) {
    const bool good = key == fits;
    const auto expect = [&](int status) {
      EXPECT_EQ(status == 400 && Says("A key has at most 10 bytes"), !good) << key << status;
    };
    const std::string body = R"({"key":")" + key + R"(","associatedKey":"much longer than ten"})";
    expect(Ask(HttpMethod::kPost, "/associations", body));
    expect(Ask(HttpMethod::kGet, "/associations/" + key));
    expect(Ask(HttpMethod::kDelete, "/associations/" + key));
    expect(Ask(HttpMethod::kPost, "/associations:batch", "[" + body + "]"));
    EXPECT_EQ(Says(R"("index":0)"), !good);
    expect(Ask(HttpMethod::kPost, "/associations:batch", body, "application/x-ndjson"));
    expect(Ask(HttpMethod::kPost, "/v1/limits/" + key, rule));
    expect(Ask(HttpMethod::kGet, "/v1/limits/" + key + query));
  }
  EXPECT_EQ(Ask(HttpMethod::kDelete, "/associations/" + encoded), 200) << "decoded bytes count";
}

// ---- associations ----

TEST_F(RoutesTest, PostRecordsAnAssociation) {
  EXPECT_EQ(Ask(HttpMethod::kPost, "/associations", R"({"key":"u1","associatedKey":"books"})"),
            204);
  EXPECT_EQ(executor.commands, (std::vector<Words>{{"AFC.ADD", "assoc:u1", "books"}}));
  EXPECT_EQ(response.body, "");
}

TEST_F(RoutesTest, PropertyNamesHaveNoCaseAndKeysMayBeNumbers) {
  EXPECT_EQ(Ask(HttpMethod::kPost, "/associations",
                " { \"AssociatedKey\" : -1.50e3 , \"x\":[{\"key\":{}}], "
                "\"Key\":12345678901234567890123 } "),
            204);
  EXPECT_EQ(executor.commands,
            (std::vector<Words>{{"AFC.ADD", "assoc:12345678901234567890123", "-1.50e3"}}));
}

TEST_F(RoutesTest, KeysAreAnyUnicode) {
  EXPECT_EQ(Ask(HttpMethod::kPost, "/associations",
                R"({"key":"\u010d\ud83d\ude00 \"/\\","associatedKey":"č\u0000"})"),
            204);
  EXPECT_EQ(executor.commands[0][1], "assoc:č😀 \"/\\");
  EXPECT_EQ(executor.commands[0][2], std::string("č\0", 3));
}

TEST_F(RoutesTest, BadBodiesAreRefusedAndNothingRuns) {
  for (const std::string body : {
           R"({"key":"a"})",
           R"({"associatedKey":"a"})",
           R"({})",
           R"([])",
           R"("text")",
           R"({"key":"a","associatedKey":"b"} x)",
           R"({"key":"a","associatedKey":"b",})",
           R"({"key":"a","associatedKey":null})",
           R"({"key":true,"associatedKey":"b"})",
           R"({"key":{"a":1},"associatedKey":"b"})",
           R"({"key":"a","KEY":"b","associatedKey":"c"})",
           R"({"key":"","associatedKey":"c"})",
           R"({"key":"a","associatedKey":""})",
           R"({"key":"a","associatedKey":"\ud800"})",
           R"({"key":"a","associatedKey":"\ud800\u0041"})",
           R"({"key":"a","associatedKey":"\udc00"})",
           R"({"key":"a","associatedKey":"\x"})",
           R"({"key":"a","associatedKey":"b)",
           R"({"key":01,"associatedKey":"b"})",
           R"({"key":1.,"associatedKey":"b"})",
           R"({"key":+1,"associatedKey":"b"})",
           R"({"key":NaN,"associatedKey":"b"})",
           R"({'key':1,"associatedKey":"b"})",
           R"({"key":1 "associatedKey":"b"})",
       }) {
    EXPECT_EQ(Ask(HttpMethod::kPost, "/associations", body), 400) << body;
    EXPECT_EQ(response.content_type, "application/problem+json");
    EXPECT_TRUE(Says(R"("status":400)")) << response.body;
  }
  EXPECT_EQ(Ask(HttpMethod::kPost, "/associations", "{\"key\":\"\xff\",\"associatedKey\":1}"), 400);
  EXPECT_EQ(Ask(HttpMethod::kPost, "/associations", "{\"key\":\"\xc0\x80\",\"associatedKey\":1}"),
            400);
  EXPECT_EQ(Ask(HttpMethod::kPost, "/associations", "{\"key\":\"a\nb\",\"associatedKey\":1}"), 400);
  EXPECT_EQ(Ask(HttpMethod::kPost, "/associations"), 400) << "without a body";
  std::string deep =
      R"({"key":1,"associatedKey":2,"x":)" + std::string(1000, '[') + std::string(1000, ']') + "}";
  EXPECT_EQ(Ask(HttpMethod::kPost, "/associations", deep), 400);
  EXPECT_EQ(Ask(HttpMethod::kPost, "/associations", R"({"key":"a","associatedKey";1})"), 400);
  EXPECT_TRUE(Says("not valid JSON at byte 26.")) << response.body;
  EXPECT_TRUE(executor.commands.empty());
}

TEST_F(RoutesTest, GetAnswersTheMostFrequent) {
  executor.replies = {"*2\r\n*2\r\n$5\r\nbooks\r\n:12\r\n*2\r\n$3\r\na\"\n\r\n:1\r\n"};
  EXPECT_EQ(Ask(HttpMethod::kGet, "/associations/u%201%2F%C4%8D+"), 200);
  EXPECT_EQ(executor.commands,
            (std::vector<Words>{{"AFC.TOP", "assoc:u 1/č+", "20", "WITHCOUNTS"}}));
  EXPECT_EQ(
      response.body,
      R"([{"associatedKey":"books","frequency":12},{"associatedKey":"a\"\n","frequency":1}])");
  EXPECT_EQ(response.content_type, "application/json");
  executor.replies = {"*0\r\n"};
  EXPECT_EQ(Ask(HttpMethod::kGet, "/associations/nobody"), 200);
  EXPECT_EQ(response.body, "[]");
}

TEST_F(RoutesTest, MembersThatAreNoTextBecomeReplacementCharacters) {
  executor.replies = {"*1\r\n*2\r\n$4\r\na\xff\x01z\r\n:3\r\n"};
  EXPECT_EQ(Ask(HttpMethod::kGet, "/associations/u"), 200);
  EXPECT_EQ(response.body, "[{\"associatedKey\":\"a\xef\xbf\xbd\\u0001z\",\"frequency\":3}]");
}

TEST_F(RoutesTest, AnAnswerThatIsNotTheCommandsIsAProblem) {
  for (const char* reply : {"", ":1\r\n", "_\r\n", "*1\r\n:1\r\n", "*1\r\n*2\r\n$1\r\na\r\n",
                            "*1\r\n*2\r\n:1\r\n:1\r\n", "*2\r\n$1\r\na\r\n:1\r\n"}) {
    executor.replies = {reply};
    EXPECT_EQ(Ask(HttpMethod::kGet, "/associations/u"), 500) << reply;
    EXPECT_EQ(Ask(HttpMethod::kGet, "/v1/limits/a?algorithm=token&limit=1&periodMs=1"), 500);
  }
  executor.replies = {"*6\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n"};
  EXPECT_EQ(Ask(HttpMethod::kGet, "/v1/limits/a?algorithm=token&limit=1&periodMs=1"), 500);
}

TEST_F(RoutesTest, HowManyIsChecked) {
  executor.replies = {"*0\r\n"};
  EXPECT_EQ(Ask(HttpMethod::kGet, "/associations/u?x=1&k=7"), 200);
  EXPECT_EQ(executor.commands[0][2], "7");
  site.associations_top = 50;
  site.associations_prefix = "p/";
  EXPECT_EQ(Ask(HttpMethod::kGet, "/associations/u"), 200);
  EXPECT_EQ(executor.commands[1], (Words{"AFC.TOP", "p/u", "50", "WITHCOUNTS"}));
  for (const char* query :
       {"k=0", "k=-1", "k=10001", "k=", "k", "k=1.5", "k=%zz", "k=99999999999999999999"}) {
    EXPECT_EQ(Ask(HttpMethod::kGet, "/associations/u?" + std::string(query)), 400) << query;
  }
  EXPECT_EQ(Ask(HttpMethod::kGet, "/associations/u%2"), 400);
  EXPECT_EQ(executor.commands.size(), 2U);
}

TEST_F(RoutesTest, DeleteForgetsACounterAndNothingElse) {
  executor.replies = {":1\r\n", ":0\r\n",
                      "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"};
  EXPECT_EQ(Ask(HttpMethod::kDelete, "/associations/u1"), 200);
  EXPECT_EQ(executor.commands, (std::vector<Words>{{"AFC.DROP", "assoc:u1"}}));
  EXPECT_EQ(response.body, "");
  EXPECT_EQ(Ask(HttpMethod::kDelete, "/associations/u1"), 200);
  EXPECT_EQ(Ask(HttpMethod::kDelete, "/associations/u1"), 409);
}

TEST_F(RoutesTest, ARequestThatHasToWaitRunsOnceLater) {
  executor.wait_next = 2;
  EXPECT_EQ(Ask(HttpMethod::kPost, "/associations", R"({"key":1,"associatedKey":2})"), 0);
  EXPECT_EQ(Go(), 0);
  EXPECT_TRUE(executor.commands.empty());
  EXPECT_EQ(Go(), 204);
  EXPECT_EQ(executor.commands.size(), 1U);
}

// ---- batches ----

TEST_F(RoutesTest, ABatchCountsWhatItDid) {
  executor.replies = {"+none\r\n", "+afc\r\n", ":2\r\n", ":0\r\n"};
  EXPECT_EQ(Ask(HttpMethod::kPost, "/associations:batch",
                R"([{"key":"a","associatedKey":"x"},{"key":"a","associatedKey":"\u0079"},)"
                R"({"key":"b","associatedKey":"x"}])"),
            200);
  EXPECT_EQ(executor.commands, (std::vector<Words>{{"TYPE", "assoc:a"},
                                                   {"TYPE", "assoc:b"},
                                                   {"AFC.ADD", "assoc:a", "x", "y"},
                                                   {"AFC.ADD", "assoc:b", "x"}}));
  EXPECT_EQ(response.body, R"({"accepted":3,"new":2})");
}

TEST_F(RoutesTest, ABatchMayBeLines) {
  executor.replies = {"+none\r\n", "+none\r\n", ":1\r\n"};
  EXPECT_EQ(Ask(HttpMethod::kPost, "/associations:batch",
                "{\"key\":\"a\",\"associatedKey\":\"x\"}\r\n\n  \n{\"key\":2,\"associatedKey\":3}",
                "application/x-ndjson; charset=utf-8"),
            200);
  EXPECT_EQ(response.body, R"({"accepted":2,"new":2})");
  EXPECT_EQ(Ask(HttpMethod::kPost, "/associations:batch",
                "{\"key\":1,\"associatedKey\":1}{\"key\":1,\"associatedKey\":1}\n",
                "application/x-ndjson"),
            400);
}

TEST_F(RoutesTest, AnEmptyBatchIsNothingToDo) {
  EXPECT_EQ(Ask(HttpMethod::kPost, "/associations:batch", " [ ] "), 200);
  EXPECT_EQ(response.body, R"({"accepted":0,"new":0})");
  EXPECT_TRUE(executor.commands.empty());
}

TEST_F(RoutesTest, ABatchWithAnInvalidElementDoesNothing) {
  EXPECT_EQ(Ask(HttpMethod::kPost, "/associations:batch",
                R"([{"key":"a","associatedKey":"x"},{"key":"a"}])"),
            400);
  EXPECT_TRUE(Says(R"("index":1)")) << response.body;
  for (const char* body :
       {"{}", "[", "[{\"key\":1,\"associatedKey\":1}", "[{\"key\":1,\"associatedKey\":1},]",
        "[{\"key\":1,\"associatedKey\":1}] 1", "[1]"}) {
    EXPECT_EQ(Ask(HttpMethod::kPost, "/associations:batch", body), 400) << body;
  }
  EXPECT_TRUE(executor.commands.empty());
}

TEST_F(RoutesTest, ABatchThatMeetsAnotherTypeDoesNothing) {
  executor.replies = {"+none\r\n", "+string\r\n"};
  EXPECT_EQ(Ask(HttpMethod::kPost, "/associations:batch",
                R"([{"key":"a","associatedKey":"x"},{"key":"b","associatedKey":"y"}])"),
            409);
  EXPECT_TRUE(Says(R"("index":1)")) << response.body;
  EXPECT_EQ(executor.commands.size(), 2U);
}

TEST_F(RoutesTest, ABatchThatStopsHalfwaySaysHowFarItCame) {
  executor.replies = {"+none\r\n", "+none\r\n", ":1\r\n", "-OOM command not allowed\r\n"};
  EXPECT_EQ(Ask(HttpMethod::kPost, "/associations:batch",
                R"([{"key":"a","associatedKey":"x"},{"key":"b","associatedKey":"y"}])"),
            507);
  EXPECT_TRUE(Says(R"("accepted":1})")) << response.body;
}

TEST_F(RoutesTest, ALargeBatchTakesStepsAndLosesNothingWhileItWaits) {
  std::string body = "[";
  for (int i = 0; i < 5000; ++i) {
    body += (i > 0 ? "," : "") + std::string(R"({"key":"k)") + std::to_string(i % 700) +
            R"(","associatedKey":")" + (i % 2 == 0 ? "\\u0061" : "b") + std::to_string(i) + "\"}";
  }
  body += "]";
  std::deque<std::string> replies(5000, "+none\r\n");
  replies.emplace_back(":1\r\n");
  executor.replies = replies;
  executor.wait_next = 1;
  EXPECT_EQ(Ask(HttpMethod::kPost, "/associations:batch", body), 0);
  std::string moved = body;
  request.body = moved;
  body.assign(body.size(), '?');
  EXPECT_EQ(Go(), 200);
  EXPECT_GT(rounds, 5);
  EXPECT_EQ(response.body, R"({"accepted":5000,"new":5000})");
  ASSERT_EQ(executor.commands.size(), 10000U);
  EXPECT_EQ(executor.commands[5000], (Words{"AFC.ADD", "assoc:k0", "a0"}));
  EXPECT_EQ(executor.commands[9999], (Words{"AFC.ADD", "assoc:k99", "b4999"}));
}

// ---- limits ----

TEST_F(RoutesTest, TakeFromABucket) {
  executor.replies = {"*5\r\n:1\r\n:10\r\n:9\r\n:0\r\n:1001\r\n"};
  EXPECT_EQ(Ask(HttpMethod::kPost, "/v1/limits/user%3A1",
                R"({"algorithm":"GCRA","limit":10,"periodMs":60000,"burst":3,"Cost":2})"),
            200);
  EXPECT_EQ(executor.commands, (std::vector<Words>{{"RL.TAKE", "user:1", "GCRA", "10", "60000",
                                                    "BURST", "3", "COST", "2"}}));
  EXPECT_EQ(response.body,
            R"({"allowed":true,"limit":10,"remaining":9,"retryAfterMs":0,"resetMs":1001})");
  EXPECT_TRUE(Says("RateLimit: \"gcra\";r=9;t=2\r\n")) << response.fields;
  EXPECT_TRUE(Says("RateLimit-Policy: \"gcra\";q=10;w=60\r\n")) << response.fields;
  EXPECT_FALSE(Says("Retry-After:"));
}

TEST_F(RoutesTest, ARefusalSaysWhenToTryAgain) {
  executor.replies = {"*5\r\n:0\r\n:3\r\n:0\r\n:1500\r\n:2000\r\n"};
  EXPECT_EQ(Ask(HttpMethod::kGet, "/v1/limits/a?algorithm=window&limit=3&periodMs=1500&cost=1"),
            429);
  EXPECT_EQ(executor.commands,
            (std::vector<Words>{{"RL.PEEK", "a", "window", "3", "1500", "COST", "1"}}));
  EXPECT_EQ(response.content_type, "application/problem+json");
  EXPECT_TRUE(Says("Retry-After: 2\r\n")) << response.fields;
  EXPECT_TRUE(Says("RateLimit: \"window\";r=0;t=2\r\n")) << response.fields;
  EXPECT_TRUE(Says("RateLimit-Policy: \"window\";q=3\r\n")) << response.fields;
  EXPECT_TRUE(Says(R"("allowed":false)")) << response.body;
  executor.replies = {"*5\r\n:0\r\n:3\r\n:3\r\n:-1\r\n:0\r\n"};
  EXPECT_EQ(Ask(HttpMethod::kGet, "/v1/limits/a?algorithm=window&limit=3&periodMs=1000&cost=9"),
            429);
  EXPECT_FALSE(Says("Retry-After:")) << "waiting does not help";
}

TEST_F(RoutesTest, BadLimitsAreRefusedAndNothingRuns) {
  for (const char* body : {
           R"({})",
           R"([])",
           R"({"algorithm":"leaky","limit":1,"periodMs":1})",
           R"({"algorithm":1,"limit":1,"periodMs":1})",
           R"({"algorithm":"token","limit":"1","periodMs":1})",
           R"({"algorithm":"token","limit":1.5,"periodMs":1})",
           R"({"algorithm":"token","limit":1e3,"periodMs":1})",
           R"({"algorithm":"token","limit":1})",
           R"({"algorithm":"token","periodMs":1})",
           R"({"algorithm":"token","limit":1,"periodMs":1,"LIMIT":2})",
           R"({"algorithm":"token","limit":1,"periodMs":1,"costs":2})",
           R"({"algorithm":"token","limit":99999999999999999999,"periodMs":1})",
           R"({"algorithm":"token","limit":1,"periodMs":1} 1)",
       }) {
    EXPECT_EQ(Ask(HttpMethod::kPost, "/v1/limits/a", body), 400) << body;
  }
  for (const char* query : {"", "algorithm=token", "algorithm=token&limit=1&periodMs=x",
                            "algorithm=token&limit=1&periodMs=1&what=1",
                            "algorithm=token&limit=1&periodMs=1&limit=1"}) {
    EXPECT_EQ(Ask(HttpMethod::kGet, "/v1/limits/a?" + std::string(query)), 400) << query;
  }
  EXPECT_TRUE(executor.commands.empty());
  executor.replies = {"-ERR not a rate limit bucket\r\n"};
  EXPECT_EQ(Ask(HttpMethod::kGet, "/v1/limits/a?algorithm=token&limit=1&periodMs=1"), 409);
}

// ---- errors ----

TEST_F(RoutesTest, ErrorsOfCommandsBecomeStatuses) {
  const std::pair<const char*, int> rows[] = {
      {"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", 409},
      {"-RATELIMITED retry_after_ms=1200\r\n", 429},
      {"-OOM command not allowed when used memory > 'maxmemory'.\r\n", 507},
      {"-LOADING Sava is loading the dataset in memory\r\n", 503},
      {"-MISCONF errors writing\r\n", 503},
      {"-NOAUTH Authentication required.\r\n", 401},
      {"-ERR unknown command 'AFC.ADD'\r\n", 501},
      {"-ERR something\r\n", 400},
  };
  for (const auto& [reply, status] : rows) {
    executor.replies = {reply};
    for (const auto& [method, path, body] :
         {std::tuple{HttpMethod::kPost, "/associations", R"({"key":1,"associatedKey":2})"},
          std::tuple{HttpMethod::kGet, "/associations/1", ""},
          std::tuple{HttpMethod::kDelete, "/associations/1", ""},
          std::tuple{HttpMethod::kPost, "/associations:batch",
                     R"([{"key":1,"associatedKey":2}])"}}) {
      EXPECT_EQ(Ask(method, path, body), status) << path << " " << reply;
      EXPECT_EQ(response.content_type, "application/problem+json");
    }
    if (status == 429) {
      EXPECT_TRUE(Says("Retry-After: 2\r\n")) << response.fields;
      EXPECT_TRUE(Says("RateLimit: \"server\";r=0;t=2\r\n")) << response.fields;
      EXPECT_TRUE(Says("RateLimit-Policy: \"server\";q=7;w=5\r\n")) << response.fields;
    }
  }
}

TEST_F(RoutesTest, PathsAndMethods) {
  EXPECT_EQ(Ask(HttpMethod::kGet, "/healthz"), 200);
  EXPECT_EQ(Ask(HttpMethod::kHead, "/healthz"), 200);
  for (const char* path : {"/nothing", "/associations/", "/associations/a/b", "/associationsx",
                           "/v1/limits/", "/v1/limits", "/v1/limits/a/b", "/healthz/", "*"}) {
    EXPECT_EQ(Ask(HttpMethod::kGet, path), 404) << path;
  }
  EXPECT_EQ(Ask(HttpMethod::kGet, "/associations"), 405);
  EXPECT_TRUE(Says("Allow: POST\r\n"));
  EXPECT_EQ(Ask(HttpMethod::kPut, "/associations/a"), 405);
  EXPECT_TRUE(Says("Allow: GET, HEAD, DELETE\r\n"));
  EXPECT_EQ(Ask(HttpMethod::kDelete, "/v1/limits/a"), 405);
  EXPECT_EQ(Ask(HttpMethod::kPost, "/healthz"), 405);
  EXPECT_EQ(Ask(HttpMethod::kOptions, "/associations"), 405);
  EXPECT_TRUE(executor.commands.empty());
}

// ---- the door ----

TEST_F(RoutesTest, BodiesMustBeJson) {
  constexpr const char* kBody = R"({"key":1,"associatedKey":2})";
  for (const char* type : {"", "text/plain", "application/x-www-form-urlencoded",
                           "application/jsonx", "application/x-ndjson"}) {
    EXPECT_EQ(Ask(HttpMethod::kPost, "/associations", kBody, type), 415) << type;
    EXPECT_TRUE(Says("Accept-Post: application/json\r\n"));
  }
  EXPECT_EQ(Ask(HttpMethod::kPost, "/associations", kBody, "Application/JSON ; charset=utf-8"),
            204);
  request.content_encoding = "gzip";
  EXPECT_EQ(Ask(HttpMethod::kPost, "/associations", kBody), 415);
}

TEST_F(RoutesTest, HostsMustBeOurs) {
  const std::vector<std::string> hosts = {"sava.example"};
  site.hosts = hosts;
  for (const char* host : {"localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:7379", "10.1.2.3:80",
                           "[::1]", "[fe80::1]:80", "Sava.Example", "sava.example:7379"}) {
    EXPECT_TRUE(IsOurHost(host, hosts)) << host;
  }
  for (const char* host :
       {"", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "sava.example.evil",
        "127.0.0.1:80:90", "localhost:x", "[::1", "x[::1]", "1.2.3", ":80"}) {
    EXPECT_FALSE(IsOurHost(host, hosts)) << host;
    request.host = host;
    EXPECT_EQ(Ask(HttpMethod::kGet, "/associations/a"), 421) << host;
    EXPECT_EQ(Ask(HttpMethod::kGet, "/healthz"), 200) << host;
  }
  EXPECT_TRUE(IsOurHost("anything", std::vector<std::string>{"*"}));
  EXPECT_TRUE(executor.commands.empty());
}

TEST_F(RoutesTest, PagesOfOtherSitesMayNotWrite) {
  executor.replies = {"*0\r\n"};
  const auto write = [this] {
    executor.replies = {":1\r\n"};
    return Ask(HttpMethod::kPost, "/associations", R"({"key":1,"associatedKey":2})");
  };
  request.origin = "http://localhost:7379";
  request.fetch_site = "same-origin";
  EXPECT_EQ(write(), 204);
  request.fetch_site = {};
  for (const char* origin : {"http://evil.example", "http://localhost:3000", "null", "https://"}) {
    request.origin = origin;
    EXPECT_EQ(write(), 403) << origin;
    EXPECT_EQ(Ask(HttpMethod::kDelete, "/associations/a"), 403) << origin;
  }
  request.origin = {};
  for (const char* site_kind : {"cross-site", "same-site"}) {
    request.fetch_site = site_kind;
    EXPECT_EQ(write(), 403) << site_kind;
  }
  EXPECT_EQ(executor.commands.size(), 1U);
}

TEST_F(RoutesTest, ThePasswordIsAskedFor) {
  settings.requirepass = "se:cret";
  const access::Users users(&table, &settings);
  site.users = &users;
  executor.replies = {"*0\r\n"};
  const auto ask = [this](std::string_view authorization) {
    request.authorization = authorization;
    return Ask(HttpMethod::kGet, "/associations/a");
  };
  EXPECT_EQ(ask(""), 401);
  EXPECT_TRUE(Says("WWW-Authenticate: Basic realm=\"sava\""));
  EXPECT_TRUE(Says("WWW-Authenticate: Bearer realm=\"sava\""));
  EXPECT_EQ(ask("Bearer se:cret"), 200);
  EXPECT_EQ(ask("bearer  se:cret"), 200);
  EXPECT_EQ(ask("Bearer se:cre"), 401);
  EXPECT_EQ(ask("Bearer se:crett"), 401);
  EXPECT_EQ(ask("Bearer"), 401);
  EXPECT_EQ(ask("Basic ZGVmYXVsdDpzZTpjcmV0"), 200) << "default:se:cret";
  EXPECT_EQ(ask("basic OnNlOmNyZXQ="), 200) << ":se:cret";
  EXPECT_EQ(ask("Basic OnNlOmNyZXQ"), 200) << "without padding";
  EXPECT_EQ(ask("Basic YWxpY2U6c2U6Y3JldA=="), 401) << "alice:se:cret";
  EXPECT_EQ(ask("Basic ZGVmYXVsdDp4"), 401) << "default:x";
  EXPECT_EQ(ask("Basic ????"), 401);
  EXPECT_EQ(ask("Digest se:cret"), 401);
  request.authorization = {};
  EXPECT_EQ(Ask(HttpMethod::kGet, "/healthz"), 200);
}

// ---- texts ----

TEST(HttpText, QueriesArePairs) {
  QueryReader reader("a=1&&b&c=%41+b%2b&=x&d=");
  std::string_view name;
  std::string_view value;
  std::vector<std::string> seen;
  while (reader.Next(&name, &value) == QueryReader::Outcome::kPair) {
    seen.push_back(std::string(name) + ":" + std::string(value));
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"a:1", "b:", "c:A b+", ":x", "d:"}));
}

}  // namespace
}  // namespace sava::http
