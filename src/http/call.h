// Call: one request on its way through a route, and what a route says about how far it has come.
#pragma once

#include <cstdint>

#include "commands/executor.h"
#include "http/guard.h"
#include "protocol/http_parser.h"
#include "protocol/http_response.h"
#include "protocol/reply_value.h"

namespace sava::http {

enum class Step : uint8_t {
  kDone,  // the response is complete
  kWait,  // a command could not run yet: call again when the client may go on
  kMore,  // there is more to do: call again soon, others are waiting for their turn
};

// The site's texts may change whenever a command runs: routes copy what they need later.
struct Call {
  const protocol::HttpRequest& request;
  const Site& site;
  commands::Executor& executor;
  protocol::HttpResponse* response;
  protocol::ParsedReply parsed = {};

  // Runs a command. False when the request has to wait: the command did not run.
  [[nodiscard]] bool Run(commands::Args words) {
    std::string_view bytes;
    if (!executor.Run(words, 3, &bytes)) return false;
    parsed.Parse(bytes);
    return true;
  }
  // The same for a look that the server's limiter does not count.
  [[nodiscard]] bool Look(commands::Args words) {
    std::string_view bytes;
    if (!executor.Look(words, 3, &bytes)) return false;
    parsed.Parse(bytes);
    return true;
  }
  // What the last command answered. Null when that cannot be read.
  protocol::ReplyValue reply() const { return parsed.root(); }
};

// A request that takes several steps. Between them the request's bytes may move.
class Job {
 public:
  virtual ~Job() = default;
  virtual Step Go(Call& call) = 0;
};

}  // namespace sava::http
