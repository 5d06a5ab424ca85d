// Connection: a client's socket on an event loop, whatever it speaks. Lives on its loop's thread; a
// closed one stays in memory until the round ends.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.h"
#include "engine/client.h"
#include "net/loop.h"

namespace sava::front {

struct Connection : net::Source {
  // It had to wait and may go on: its kept input is to be looked at again.
  virtual void Resume() = 0;
  // It is being closed.
  virtual void Closing() {}
  // How long it may do nothing, in seconds; 0: for ever, or its own affair.
  virtual int64_t MaxIdle() const { return 0; }

  engine::Client client;
  base::Buffer input;  // left over from earlier rounds
  // With a log: bytes up to `end`, counted from the first one ever produced, may leave when
  // everything below `ticket` is kept (AofLog::kept).
  struct Hold {
    uint64_t end;
    uint64_t ticket;
  };
  std::vector<Hold> holds;  // few
  uint64_t sent = 0;        // bytes ever sent
  uint64_t released = 0;    // bytes ever that may leave
  bool held = false;        // stands in its loop's list
  int64_t held_since_ms = 0;

  bool wants_read = true;
  bool wants_write = false;
  bool closed = false;
};

}  // namespace sava::front
