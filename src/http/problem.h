// Problems: error answers as RFC 9457 describes them (application/problem+json), and which HTTP
// status an error reply of a command means.
#pragma once

#include <cstdint>
#include <string_view>

#include "commands/executor.h"
#include "protocol/http_response.h"

namespace sava::http {

inline constexpr std::string_view kJson = "application/json";
inline constexpr std::string_view kJsonLines = "application/x-ndjson";
inline constexpr std::string_view kQuotaExceeded =
    "https://iana.org/assignments/http-problem-types#quota-exceeded";

// `members`: further members of the object, each `,"name":value`.
void Problem(protocol::HttpResponse* response, int status, std::string_view detail,
             std::string_view members = {}, std::string_view type = "about:blank");

// For a key of more than `most` bytes, in a body as in a path.
void KeyTooLong(protocol::HttpResponse* response, size_t most, std::string_view members = {});

// From a command's error, "WRONGTYPE Operation against …". `executor` is the one that ran it.
void ProblemFromError(protocol::HttpResponse* response, std::string_view error,
                      commands::Executor& executor);

// Retry-After and the fields of draft-ietf-httpapi-ratelimit-headers.
struct RateFields {
  std::string_view policy;  // its name
  int64_t quota = -1;       // -1: not known
  int64_t window_ms = 0;
  int64_t remaining = 0;
  int64_t reset_ms = 0;
  int64_t retry_ms = 0;  // 0: nothing to wait for, -1: waiting does not help
};
void AddRateFields(protocol::HttpResponse* response, const RateFields& fields);

}  // namespace sava::http
