// Connection: a client's socket on an event loop, whatever it speaks. Lives on its loop's thread; a
// closed one stays in memory until the round ends.
#pragma once

#include "base/buffer.h"
#include "engine/client.h"
#include "net/loop.h"

namespace sava::server {

struct Connection : net::Source {
  // It had to wait and may go on: its kept input is to be looked at again.
  virtual void Resume() = 0;
  // It is being closed.
  virtual void Closing() {}
  // How long it may do nothing, in seconds; 0: for ever, or its own affair.
  virtual int64_t MaxIdle() const { return 0; }

  engine::Client client;
  base::Buffer input;  // left over from earlier rounds
  bool wants_read = true;
  bool wants_write = false;
  bool closed = false;
};

}  // namespace sava::server
