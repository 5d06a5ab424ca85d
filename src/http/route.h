// Route: one row of the table of routes: which request it answers, which clients may send it, what
// body it may have, and what the front page says about it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "http/associations.h"
#include "http/call.h"
#include "http/limits.h"
#include "protocol/http_parser.h"

namespace sava::http {

// What the handlers of one thread keep between requests.
struct Services {
  Associations associations;
  Limits limits;
};

enum class Access : uint8_t {
  kGuarded,  // the guard decides
  kOpen,     // anybody, under any name
};

enum class BodyRule : uint8_t {
  kDocument,         // JSON
  kDocumentOrLines,  // newline-delimited JSON too
};

struct Route {
  // `name` is the segment that {…} stands for, as sent. *job is empty; a handler of several steps
  // leaves its job there.
  using Handler = Step (*)(Services& services, Call& call, std::string_view name,
                           std::unique_ptr<Job>* job);

  protocol::HttpMethod method;  // kGet answers HEAD too
  std::string_view pattern;     // {…} at its end stands for one segment, not empty
  Handler handler;
  Access access = Access::kGuarded;     // the same in all rows of a pattern
  BodyRule body = BodyRule::kDocument;  // when there is a body

  // For the front page. A route without a summary is not listed.
  std::string_view command = {};  // empty: none
  std::string_view summary = {};
  std::string_view options = {};  // of curl, before the URL
  std::string_view example = {};  // the path that is asked for
};

std::span<const Route> AllRoutes();

}  // namespace sava::http
