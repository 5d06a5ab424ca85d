// Executor: runs a command for one client from outside a RESP connection (the counterpart of
// Context). Declared here and implemented by the engine, so that callers need not know the engine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "commands/spec.h"

namespace sava::commands {

class Executor {
 public:
  virtual ~Executor() = default;
  // Runs the command; *reply is then its reply in RESP `resp` (2 or 3), valid until the next call.
  // False when the client has to wait (a lock, CLIENT PAUSE) or goes away: the command did not run.
  [[nodiscard]] virtual bool Run(Args args, int resp, std::string_view* reply) = 0;
  // The same for a look that is only a part of what the client asked for: the server's limiter does
  // not count it.
  [[nodiscard]] virtual bool Look(Args args, int resp, std::string_view* reply) {
    return Run(args, resp, reply);
  }
  // "host:port" of the master this server follows; empty: it is a master.
  virtual std::string MasterAddress() { return {}; }
  // After a RATELIMITED reply: the limit that refused, so many per so long. False: not known.
  virtual bool RefusedBy(int64_t* limit, int64_t* period_ms) {
    static_cast<void>(limit);
    static_cast<void>(period_ms);
    return false;
  }
};

}  // namespace sava::commands
