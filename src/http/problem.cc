#include "http/problem.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "commands/errors.h"
#include "http/json.h"

namespace sava::http {

namespace {

struct ErrorRow {
  std::string_view code;
  int status;
};
constexpr ErrorRow kErrors[] = {
    {"WRONGTYPE", 409}, {"RATELIMITED", 429}, {"OOM", 507},      {"LOADING", 503},
    {"BUSY", 503},      {"MISCONF", 503},     {"READONLY", 503}, {"MASTERDOWN", 503},
    {"TRYAGAIN", 503},  {"CLUSTERDOWN", 503}, {"NOAUTH", 401},   {"WRONGPASS", 401},
    {"NOPERM", 403},
};

int StatusOf(std::string_view error) {
  const std::string_view code = error.substr(0, error.find(' '));
  for (const ErrorRow& row : kErrors) {
    if (row.code == code) return row.status;
  }
  if (error.starts_with("ERR unknown command")) return 501;
  if (error == commands::errors::kNotBucket) return 409;
  return 400;
}

int64_t SecondsUp(int64_t ms) { return ms / 1000 + (ms % 1000 > 0 ? 1 : 0); }

// Structured fields hold integers of fifteen digits.
int64_t Fifteen(int64_t value) { return std::clamp<int64_t>(value, 0, 999999999999999); }

void RateLimited(protocol::HttpResponse* response, std::string_view error,
                 commands::Executor& executor) {
  constexpr std::string_view kWait = "retry_after_ms=";
  RateFields fields;
  fields.policy = "server";
  if (const size_t at = error.find(kWait); at != std::string_view::npos) {
    const std::string_view rest = error.substr(at + kWait.size());
    if (!base::ParseInt(rest.substr(0, rest.find(' ')), &fields.retry_ms)) fields.retry_ms = 1000;
  }
  fields.reset_ms = fields.retry_ms;
  if (!executor.RefusedBy(&fields.quota, &fields.window_ms)) fields.quota = -1;
  Problem(response, 429, "The server's own limit for this client is used up.",
          R"(,"violated-policies":["server"])", kQuotaExceeded);
  AddRateFields(response, fields);
}

}  // namespace

void Problem(protocol::HttpResponse* response, int status, std::string_view detail,
             std::string_view members, std::string_view type) {
  response->Clear();
  response->status = status;
  response->content_type = "application/problem+json";
  std::string& body = response->body;
  body.append("{\"type\":");
  AppendJson(&body, type);
  body.append(",\"title\":");
  AppendJson(&body, protocol::StatusText(status));
  body.append(",\"status\":").append(base::IntText(status));
  body.append(",\"detail\":");
  AppendJson(&body, detail);
  body.append(members);
  body.push_back('}');
}

void KeyTooLong(protocol::HttpResponse* response, size_t most, std::string_view members) {
  Problem(response, 400, fmt::format("A key has at most {} bytes here.", most), members);
}

void ProblemFromError(protocol::HttpResponse* response, std::string_view error,
                      commands::Executor& executor) {
  const int status = StatusOf(error);
  if (status == 429) return RateLimited(response, error, executor);
  // The code word says nothing that the status does not.
  const size_t blank = error.find(' ');
  std::string members;
  if (error.starts_with("READONLY") || error.starts_with("MASTERDOWN")) {
    members = ",\"master\":";
    AppendJson(&members, executor.MasterAddress());
  }
  Problem(response, status, blank == std::string_view::npos ? error : error.substr(blank + 1),
          members);
  if (status == 503) response->AddField("Retry-After", "1");
}

void AddRateFields(protocol::HttpResponse* response, const RateFields& fields) {
  if (fields.retry_ms > 0) {
    response->AddField("Retry-After", base::IntText(SecondsUp(fields.retry_ms)));
  }
  response->AddField("RateLimit",
                     fmt::format("\"{}\";r={};t={}", fields.policy, Fifteen(fields.remaining),
                                 Fifteen(SecondsUp(fields.reset_ms))));
  if (fields.quota < 0) return;
  std::string policy = fmt::format("\"{}\";q={}", fields.policy, Fifteen(fields.quota));
  // The window is told in seconds: one that has none is left out rather than told wrong.
  if (fields.window_ms % 1000 == 0)
    policy += fmt::format(";w={}", Fifteen(fields.window_ms / 1000));
  response->AddField("RateLimit-Policy", policy);
}

}  // namespace sava::http
