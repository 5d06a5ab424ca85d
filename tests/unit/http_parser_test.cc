// The HTTP request parser: whole, in pieces, malformed, over its limits; the writing of responses.
#include "protocol/http_parser.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "../../fuzz/http_property.h"
#include "protocol/http_response.h"

namespace sava::protocol {
namespace {

using Outcome = HttpParser::Outcome;

struct Seen {
  std::vector<HttpMethod> methods;
  std::vector<std::string> paths;
  std::vector<std::string> bodies;
  int status = 0;
};

// Feeds the bytes in pieces of one size, as a connection would.
Seen Feed(std::string_view bytes, size_t piece, const HttpLimits& limits = {}) {
  HttpParser parser;
  Seen seen;
  std::string kept;
  while (!bytes.empty()) {
    const size_t n = std::min(piece, bytes.size());
    kept.append(bytes.substr(0, n));
    bytes.remove_prefix(n);
    while (!kept.empty()) {
      const Outcome outcome = parser.Next(kept.data(), kept.size(), limits);
      kept.resize(kept.size() - parser.dropped());
      if (outcome == Outcome::kMore) break;
      if (outcome == Outcome::kError) {
        seen.status = parser.status();
        return seen;
      }
      seen.methods.push_back(parser.request().method);
      seen.paths.emplace_back(parser.request().path);
      seen.bodies.emplace_back(parser.request().body);
      kept.erase(0, parser.consumed());
      parser.Reset();
    }
  }
  return seen;
}

int StatusOf(std::string_view bytes, const HttpLimits& limits = {}) {
  const int whole = Feed(bytes, bytes.size(), limits).status;
  EXPECT_EQ(Feed(bytes, 1, limits).status, whole) << bytes;
  return whole;
}

// One request, its views copied.
struct One {
  explicit One(std::string text) : bytes(std::move(text)) {
    outcome = parser.Next(bytes.data(), bytes.size(), {});
  }
  std::string bytes;
  HttpParser parser;
  Outcome outcome;
  const HttpRequest& request() const { return parser.request(); }
};

TEST(HttpParser, ReadsARequest) {
  const One one(
      "POST /associations?a=b&c HTTP/1.1\r\nhost: "
      "localhost:7379\r\nContent-Type:application/json\r\n"
      "CONTENT-LENGTH: 4\r\nAuthorization:  Bearer x \r\nOrigin: http://a\r\n"
      "Sec-Fetch-Site: none\r\nX-Other: y\r\n\r\nbody");
  ASSERT_EQ(one.outcome, Outcome::kRequest);
  const HttpRequest& request = one.request();
  EXPECT_EQ(request.method, HttpMethod::kPost);
  EXPECT_EQ(request.path, "/associations");
  EXPECT_EQ(request.query, "a=b&c");
  EXPECT_EQ(request.host, "localhost:7379");
  EXPECT_EQ(request.content_type, "application/json");
  EXPECT_EQ(request.authorization, "Bearer x");
  EXPECT_EQ(request.origin, "http://a");
  EXPECT_EQ(request.fetch_site, "none");
  EXPECT_EQ(request.body, "body");
  EXPECT_TRUE(request.keep_alive);
  EXPECT_TRUE(request.has_body);
  EXPECT_FALSE(request.expects_continue);
  EXPECT_EQ(one.parser.consumed(), one.bytes.size());
}

TEST(HttpParser, ReadsTheSameRequestsHoweverTheBytesArrive) {
  const std::string bytes =
      "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
      "POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\nA;ext=\"v\"\r\n0123456789\r\n0\r\nTrailer: v\r\n\r\n"
      "\r\nPOST /c HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nfirstDELETE /d HTTP/1.1\r\n"
      "Host: x\r\n\r\n";
  for (const size_t piece : {1UL, 2UL, 3UL, 7UL, 50UL, bytes.size()}) {
    const Seen seen = Feed(bytes, piece);
    EXPECT_EQ(seen.status, 0) << piece;
    EXPECT_EQ(seen.paths, (std::vector<std::string>{"/a", "/b", "/c", "/d"})) << piece;
    EXPECT_EQ(seen.bodies, (std::vector<std::string>{"", "abc0123456789", "first", ""})) << piece;
  }
}

TEST(HttpParser, GivesTheSameRequestAgainWhenTheBytesHaveMoved) {
  std::string first =
      "POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nrest";
  HttpParser parser;
  ASSERT_EQ(parser.Next(first.data(), first.size(), {}), Outcome::kRequest);
  const size_t consumed = parser.consumed();
  std::string moved = first;
  first.assign(first.size(), '?');
  ASSERT_EQ(parser.Next(moved.data(), moved.size(), {}), Outcome::kRequest);
  EXPECT_EQ(parser.request().path, "/b");
  EXPECT_EQ(parser.request().body, "abc");
  EXPECT_EQ(parser.consumed(), consumed);
  EXPECT_EQ(moved.substr(consumed), "rest");
}

TEST(HttpParser, ManySmallChunksNeedNoMoreRoomThanTheirBytes) {
  std::string head = "POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  HttpParser parser;
  std::string kept = head;
  for (int i = 0; i < 1000; ++i) {
    kept += "1\r\nx\r\n";
    ASSERT_EQ(parser.Next(kept.data(), kept.size(), {}), Outcome::kMore);
    kept.resize(kept.size() - parser.dropped());
    ASSERT_LE(kept.size(), head.size() + static_cast<size_t>(i) + 1);
  }
  kept += "0\r\n\r\n";
  ASSERT_EQ(parser.Next(kept.data(), kept.size(), {}), Outcome::kRequest);
  EXPECT_EQ(parser.request().body, std::string(1000, 'x'));
}

TEST(HttpParser, KeepAliveFollowsVersionAndConnection) {
  const auto keeps = [](const std::string& line, const std::string& fields) {
    const One one(line + "\r\nHost: x\r\n" + fields + "\r\n");
    EXPECT_EQ(one.outcome, Outcome::kRequest);
    return one.request().keep_alive;
  };
  EXPECT_TRUE(keeps("GET / HTTP/1.1", ""));
  EXPECT_FALSE(keeps("GET / HTTP/1.1", "Connection: close\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.1", "Connection: upgrade, Close\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.0", ""));
  EXPECT_TRUE(keeps("GET / HTTP/1.0", "Connection: Keep-Alive\r\n"));
}

TEST(HttpParser, TargetsMayNameTheHost) {
  const One one("GET http://sava.example:80/a?b HTTP/1.1\r\nHost: other\r\n\r\n");
  ASSERT_EQ(one.outcome, Outcome::kRequest);
  EXPECT_EQ(one.request().host, "sava.example:80");
  EXPECT_EQ(one.request().path, "/a");
  const One bare("GET http://sava.example HTTP/1.1\r\nHost: other\r\n\r\n");
  ASSERT_EQ(bare.outcome, Outcome::kRequest);
  EXPECT_EQ(bare.request().path, "/");
  EXPECT_EQ(StatusOf("GET http://user@host/ HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
}

TEST(HttpParser, TellsWhenTheHeadIsThere) {
  std::string bytes = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n";
  HttpParser parser;
  EXPECT_EQ(parser.Next(bytes.data(), bytes.size(), {}), Outcome::kMore);
  EXPECT_FALSE(parser.head_complete());
  bytes += "\r\na";
  EXPECT_EQ(parser.Next(bytes.data(), bytes.size(), {}), Outcome::kMore);
  EXPECT_TRUE(parser.head_complete());
  EXPECT_TRUE(parser.request().expects_continue);
  EXPECT_EQ(parser.missing(), 2U);
}

TEST(HttpParser, RefusesShapesThatTwoReadersMayReadDifferently) {
  const std::string line = "POST / HTTP/1.1\r\nHost: x\r\n";
  for (const char* fields : {
           "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
           "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
           "Content-Length: 3\r\nContent-Length: 4\r\n",
           "Content-Length: 3, 3\r\n",
           "Content-Length: +3\r\n",
           "Content-Length: 0x3\r\n",
           "Content-Length: \r\n",
           "Content-Length: 99999999999999999999\r\n",
           "Content-Length : 3\r\n",
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
           "Host: y\r\n",
           "A: b\r\n folded\r\n",
           "\tA: b\r\n",
           "No colon\r\n",
           ": empty\r\n",
           "A: b\n",
           "A: b\rc\r\n",
           "A: \x01\r\n",
           "A\x80: b\r\n",
       }) {
    EXPECT_EQ(StatusOf(line + fields + "\r\n"), 400) << fields;
  }
  const std::string with_nul = line + std::string("A: \0\r\n\r\n", 9);
  EXPECT_EQ(StatusOf(with_nul), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\n\r\n"), 400) << "no Host";
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\nHost: x\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
}

TEST(HttpParser, RefusesBadRequestLines) {
  const auto status = [](const std::string& line) {
    return StatusOf(line + "\r\nHost: x\r\n\r\n");
  };
  for (const char* line :
       {"GET", "GET /", " GET / HTTP/1.1", "GET  / HTTP/1.1", "GET / http/1.1", "GET / HTTP/1",
        "GET / HTTP/1.1x", "G(T / HTTP/1.1", "GET a HTTP/1.1", "GET /a b HTTP/1.1",
        "GET /a#b HTTP/1.1", "GET * HTTP/1.1", "GET /\x7f HTTP/1.1"}) {
    EXPECT_EQ(status(line), 400) << line;
  }
  EXPECT_EQ(status("GET / HTTP/2.0"), 505);
  EXPECT_EQ(status("BREW / HTTP/1.1"), 501);
  EXPECT_EQ(status("CONNECT a:1 HTTP/1.1"), 501);
  EXPECT_EQ(StatusOf("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
            501);
  EXPECT_EQ(StatusOf("POST / HTTP/1.1\r\nHost: x\r\nExpect: magic\r\n\r\n"), 417);
}

TEST(HttpParser, RefusesBadChunks) {
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char* body : {"x\r\n", "\r\n", "-1\r\n", "3\r\nabcd\r\n", "3\nabc\r\n", "3\r\nabc\n",
                           "3 x\r\nabc\r\n", "0\r\nno colon\r\n\r\n", "3;\x01\r\nabc\r\n"}) {
    EXPECT_EQ(StatusOf(head + body), 400) << body;
  }
  EXPECT_EQ(StatusOf(head + "1;" + std::string(300, 'x') + "\r\n"), 400);
}

TEST(HttpParser, HoldsItsLimits) {
  HttpLimits limits;
  limits.max_head = 1000;
  limits.max_body = 10;
  const std::string line = "POST / HTTP/1.1\r\nHost: x\r\n";
  EXPECT_EQ(StatusOf("GET /" + std::string(1000, 'a') + " HTTP/1.1\r\n\r\n", limits), 414);
  EXPECT_EQ(StatusOf("GET /" + std::string(9000, 'a') + " HTTP/1.1\r\n\r\n"), 414);
  EXPECT_EQ(StatusOf(line + "A: " + std::string(1000, 'a') + "\r\n\r\n", limits), 431);
  EXPECT_EQ(StatusOf(line + "Content-Length: 11\r\n\r\n", limits), 413);
  EXPECT_EQ(StatusOf(line + "Content-Length: 10\r\n\r\n0123456789", limits), 0);
  const std::string chunked = line + "Transfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(StatusOf(chunked + "6\r\n012345\r\n5\r\n", limits), 413);
  EXPECT_EQ(StatusOf(chunked + "fffffffffffffffff\r\n", limits), 413);
  EXPECT_EQ(StatusOf(chunked + "0\r\nA: " + std::string(1000, 'a') + "\r\n\r\n", limits), 431);
  std::string many = line;
  for (int i = 0; i < 100; ++i) many += "A: b\r\n";
  EXPECT_EQ(StatusOf(many + "\r\n"), 431);
}

TEST(HttpResponse, IsWrittenWithItsLength) {
  HttpResponse response;
  response.content_type = "text/plain";
  response.body = "hello";
  response.AddField("X-A", "b");
  HttpFraming framing;
  OutBuffer out;
  WriteResponse(&out, response, framing);
  EXPECT_EQ(
      out.Since(0),
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello");
  framing.head_only = true;
  framing.close = true;
  const size_t mark = out.Mark();
  WriteResponse(&out, response, framing);
  EXPECT_EQ(out.Since(mark),
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/plain\r\n"
            "Content-Length: 5\r\nX-A: b\r\n\r\n");
}

TEST(HttpResponse, NoContentHasNoLength) {
  HttpResponse response;
  response.status = 204;
  HttpFraming framing;
  framing.date = "D";
  OutBuffer out;
  WriteResponse(&out, response, framing);
  EXPECT_EQ(out.Since(0), "HTTP/1.1 204 No Content\r\nDate: D\r\n\r\n");
}

TEST(HttpDate, IsTheFormOfTheStandard) {
  HttpDate date;
  EXPECT_EQ(date.At(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(date.At(784111778), "Sun, 06 Nov 1994 08:49:38 GMT");
}

TEST(FuzzCorpus, HttpHoldsItsProperty) {
  const std::filesystem::path corpus = std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/http";
  int replayed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)),
                            std::istreambuf_iterator<char>());
    fuzz::CheckHttp(bytes);
    ++replayed;
  }
  EXPECT_GE(replayed, 13);
}

}  // namespace
}  // namespace sava::protocol
