// Connection: a client's socket on an event loop, whatever it speaks. Lives on its loop's thread; a
// closed one stays in memory until the round ends.
#pragma once

#include <cstdint>
#include <memory>

#include "base/buffer.h"
#include "engine/client.h"
#include "front/output_hold.h"
#include "net/loop.h"
#include "net/transport.h"

namespace sava::front {

struct Connection : net::Source {
  // Its loop serves it from now on.
  virtual void Opened() {}
  // It had to wait and may go on: its kept input must be parsed again.
  virtual void Resume() = 0;
  // More of its output may leave: sends it, and goes on with what had to wait for that. Between two
  // batches.
  virtual void Release() = 0;
  // It has something to do of which epoll says nothing: input that its transport took already, or
  // work in several steps (EventLoop::GoOnLater).
  virtual void GoOn() = 0;
  // It is being closed.
  virtual void Closing() {}
  // How long it may do nothing, in seconds; 0: no limit, or it keeps one itself.
  virtual int64_t MaxIdle() const { return 0; }

  engine::Client client;
  std::unique_ptr<net::Transport> transport;
  base::Buffer input;  // left over from earlier rounds
  OutputHold hold{this};

  bool wants_read = true;
  bool wants_write = false;
  uint32_t asked = 0;    // the events that epoll watches for
  bool goes_on = false;  // it is in its loop's list of connections that go on
  bool shaking = false;  // it is in its loop's line of handshakes
  bool closed = false;
  bool in_work = false;  // its loop is in the middle of work for it (EventLoop::ServeBusy)
};

}  // namespace sava::front
