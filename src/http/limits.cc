#include "http/limits.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "http/json.h"
#include "http/problem.h"
#include "http/text.h"

namespace sava::http {

namespace {
constexpr std::string_view kAlgorithms[] = {"window", "token", "gcra", "sliding"};
}

std::string* Limits::Place(std::string_view name) {
  if (base::EqualsNoCase(name, "algorithm")) return &wanted_.algorithm;
  if (base::EqualsNoCase(name, "limit")) return &wanted_.limit;
  if (base::EqualsNoCase(name, "periodMs")) return &wanted_.period_ms;
  if (base::EqualsNoCase(name, "burst")) return &wanted_.burst;
  if (base::EqualsNoCase(name, "cost")) return &wanted_.cost;
  return nullptr;
}

std::string Limits::ReadBody(std::string_view body) {
  JsonReader reader(body);
  const bool read = reader.Object([&](const JsonMember& member) {
    std::string* place = Place(member.name);
    if (place == nullptr) return reader.Fail("a property is not known");
    if (!place->empty()) return reader.Fail("a property is given twice");
    const bool text = place == &wanted_.algorithm;
    if (member.kind != (text ? JsonKind::kString : JsonKind::kNumber)) {
      return reader.Fail(text ? "a string is expected" : "a number is expected");
    }
    *place = member.value;
    return true;
  });
  if (read && reader.AtEnd()) return {};
  return fmt::format("The body is not as it should be: {}.",
                     read ? "something follows the object" : reader.error());
}

std::string Limits::ReadQuery(std::string_view query) {
  QueryReader reader(query);
  std::string_view name;
  std::string_view value;
  while (true) {
    switch (reader.Next(&name, &value)) {
      case QueryReader::Outcome::kEnd:
        return {};
      case QueryReader::Outcome::kBad:
        return "The query is not percent-encoded as it should be.";
      case QueryReader::Outcome::kPair:
        break;
    }
    std::string* place = Place(name);
    if (place == nullptr) return "A query parameter is not known.";
    if (!place->empty()) return "A query parameter is given twice.";
    *place = value;
  }
}

std::string Limits::CheckWanted() const {
  const std::string algorithm = base::ToLower(wanted_.algorithm);
  if (std::ranges::find(kAlgorithms, algorithm) == std::end(kAlgorithms)) {
    return "algorithm is one of window, token, gcra, sliding.";
  }
  int64_t number = 0;
  if (!base::ParseInt(wanted_.limit, &number)) return "limit is a whole number.";
  if (!base::ParseInt(wanted_.period_ms, &number)) return "periodMs is a whole number.";
  for (const std::string* text : {&wanted_.burst, &wanted_.cost}) {
    if (!text->empty() && !base::ParseInt(*text, &number)) {
      return "burst and cost are whole numbers.";
    }
  }
  return {};
}

Step Limits::Take(Call& call, std::string_view name) {
  wanted_ = {};
  return Run(call, "RL.TAKE", name, ReadBody(call.request.body));
}

Step Limits::Peek(Call& call, std::string_view name) {
  wanted_ = {};
  return Run(call, "RL.PEEK", name, ReadQuery(call.request.query));
}

Step Limits::Run(Call& call, std::string_view command, std::string_view name,
                 const std::string& problem) {
  const std::string wrong = problem.empty() ? CheckWanted() : problem;
  if (!wrong.empty()) {
    Problem(call.response, 400, wrong);
    return Step::kDone;
  }
  std::string_view key;
  if (!PercentDecode(name, false, &key_scratch_, &key)) {
    Problem(call.response, 400, "The path is not percent-encoded as it should be.");
    return Step::kDone;
  }
  if (key.size() > call.site.max_key) {
    KeyTooLong(call.response, call.site.max_key);
    return Step::kDone;
  }
  words_.assign({command, key, wanted_.algorithm, wanted_.limit, wanted_.period_ms});
  if (!wanted_.burst.empty()) words_.insert(words_.end(), {"BURST", wanted_.burst});
  if (!wanted_.cost.empty()) words_.insert(words_.end(), {"COST", wanted_.cost});
  if (!call.Run(words_)) return Step::kWait;
  WriteOutcome(call);
  return Step::kDone;
}

void Limits::WriteOutcome(Call& call) const {
  protocol::HttpResponse* response = call.response;
  const protocol::ReplyValue reply = call.reply();
  if (reply.is_error()) return ProblemFromError(response, reply.text(), call.executor);
  int64_t values[5] = {};
  bool good = reply.kind() == protocol::ReplyKind::kArray && reply.size() == std::size(values);
  size_t filled = 0;
  for (const protocol::ReplyValue value : reply) {
    good = good && value.is_int();
    if (good) values[filled++] = value.integer();
  }
  if (!good) return Problem(response, 500, "The bucket's answer cannot be read.");
  const bool allowed = values[0] == 1;
  const std::string members =
      fmt::format(R"("allowed":{},"limit":{},"remaining":{},"retryAfterMs":{},"resetMs":{})",
                  allowed, values[1], values[2], values[3], values[4]);
  const std::string policy = base::ToLower(wanted_.algorithm);
  if (allowed) {
    response->content_type = kJson;
    response->body.append("{").append(members).append("}");
  } else {
    Problem(response, 429,
            values[3] < 0 ? "The cost is more than the limit ever holds." : "The limit is used up.",
            fmt::format(R"(,"violated-policies":["{}"],{})", policy, members), kQuotaExceeded);
  }
  RateFields fields;
  fields.policy = policy;
  base::ParseInt(wanted_.limit, &fields.quota);
  base::ParseInt(wanted_.period_ms, &fields.window_ms);
  fields.remaining = values[2];
  fields.retry_ms = values[3];
  fields.reset_ms = values[4];
  AddRateFields(response, fields);
  response->AddField("Cache-Control", "no-store");
}

}  // namespace sava::http
