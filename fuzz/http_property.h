// What must hold for any bytes a client may send over HTTP: parsing them whole and in pieces gives
// the same requests and the same error; every request that is found can be judged and answered; and
// what JSON says comes back when it is written and read again.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/json.h"
#include "http/routes.h"
#include "protocol/http_parser.h"
#include "protocol/reply_value.h"

namespace sava::fuzz {

// Answers every command, and now and then asks to wait.
class AnyExecutor final : public commands::Executor {
 public:
  bool Run(commands::Args args, int resp, std::string_view* reply) override {
    static constexpr std::string_view kReplies[] = {":1\r\n",
                                                    "+afc\r\n",
                                                    "*1\r\n*2\r\n$1\r\na\r\n:3\r\n",
                                                    "-WRONGTYPE x\r\n",
                                                    "-RATELIMITED retry_after_ms=1500\r\n",
                                                    "*5\r\n:0\r\n:1\r\n:0\r\n:10\r\n:2000\r\n"};
    if (args.empty() || args[0].empty() || resp != 3) abort();
    ++calls_;
    if (calls_ % 3 == 0) return false;
    *reply = kReplies[calls_ % std::size(kReplies)];
    return true;
  }

 private:
  size_t calls_ = 0;
};

struct HttpParsed {
  std::vector<std::string> requests;
  int status = 0;
  bool operator==(const HttpParsed&) const = default;
};

inline void Answer(const protocol::HttpRequest& request) {
  const std::vector<std::string> hosts = {"sava.example"};
  http::Site site;
  site.hosts = hosts;
  protocol::HttpResponse response;
  protocol::OutBuffer out;
  if (http::Routes::Admit(request, site, &response)) {
    http::Routes routes;
    AnyExecutor executor;
    std::unique_ptr<http::Job> job;
    http::Call call{request, site, executor, &response};
    while (routes.Handle(call, &job) != http::Step::kDone) {
    }
  }
  protocol::WriteResponse(&out, response, {});
  if (out.pending() < 20) abort();
}

inline HttpParsed HttpInPieces(std::string_view bytes, size_t piece, bool answer) {
  protocol::HttpParser parser;
  protocol::HttpLimits limits;
  limits.max_head = 2048;
  limits.max_body = 4096;
  HttpParsed result;
  std::string kept;
  while (!bytes.empty()) {
    const size_t n = std::min(piece, bytes.size());
    kept.append(bytes.substr(0, n));
    bytes.remove_prefix(n);
    while (!kept.empty()) {
      const auto outcome = parser.Next(kept.data(), kept.size(), limits);
      kept.resize(kept.size() - parser.dropped());
      if (outcome == protocol::HttpParser::Outcome::kMore) break;
      if (outcome == protocol::HttpParser::Outcome::kError) {
        result.status = parser.status();
        if (result.status < 400 || parser.detail().empty()) abort();
        return result;
      }
      if (parser.consumed() == 0 || parser.consumed() > kept.size()) abort();
      const protocol::HttpRequest& request = parser.request();
      std::string text(MethodName(request.method));
      for (const std::string_view part :
           {request.path, request.query, request.host, request.content_type, request.authorization,
            request.origin, request.fetch_site, request.body}) {
        text.append("|").append(part);
      }
      result.requests.push_back(std::move(text));
      if (answer) Answer(request);
      kept.erase(0, parser.consumed());
      parser.Reset();
    }
  }
  return result;
}

// An object's members are the same when they are written and read again.
inline void CheckJson(std::string_view text) {
  using http::JsonKind;
  using Members = std::vector<std::pair<std::string, std::string>>;
  const auto read = [](http::JsonReader* reader, std::string_view of, Members* members) {
    return reader->Object([&](const http::JsonMember& member) {
      const char* const data = member.value.data();
      if (member.in_text &&
          (data < of.data() || data + member.value.size() > of.data() + of.size())) {
        abort();
      }
      if (member.kind == JsonKind::kOther && !member.value.empty()) abort();
      if (member.kind == JsonKind::kString) members->emplace_back(member.name, member.value);
      return true;
    });
  };
  http::JsonReader reader(text);
  Members members;
  if (!read(&reader, text, &members)) {
    if (reader.error().empty() || reader.position() > text.size()) abort();
    return;
  }
  std::string written = "{";
  for (const auto& [name, value] : members) {
    if (written.size() > 1) written.push_back(',');
    http::AppendJson(&written, name);
    written.push_back(':');
    http::AppendJson(&written, value);
  }
  written.push_back('}');
  http::JsonReader again(written);
  Members second;
  if (!read(&again, written, &second) || second != members || !again.AtEnd()) abort();
}

inline void CheckHttp(std::string_view bytes) {
  if (bytes.size() > 30000) bytes = bytes.substr(0, 30000);
  const HttpParsed whole = HttpInPieces(bytes, bytes.size() + 1, true);
  if (!(HttpInPieces(bytes, 1, false) == whole) || !(HttpInPieces(bytes, 7, false) == whole)) {
    abort();
  }
  CheckJson(bytes);
  CheckJson(std::string("{\"a\":").append(bytes).append("}"));
  protocol::ParsedReply reply;
  if (!reply.Parse(bytes) && !reply.root().is_null()) abort();
}

}  // namespace sava::fuzz
