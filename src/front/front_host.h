// FrontHost: what the event loops need from the process that runs them.
#pragma once

#include <cstdint>
#include <string>

#include "engine/client.h"
#include "journal/barrier.h"

namespace sava::front {

class FrontHost {
 public:
  virtual ~FrontHost() = default;

  // Called at the start of each loop's thread.
  virtual void PrepareThread() = 0;
  // Called by the first loop about ten times a second, inside the gate.
  virtual void Tick() = 0;
  // The barrier that must keep a change before a reply that tells of it may leave; nullptr:
  // there is none. REQUIRES: inside the gate, as long as it is used.
  virtual const journal::Barrier* barrier() const = 0;

  // The process is about to end: errors of listeners are of no interest.
  virtual bool shutting_down() const = 0;
  // Number of connections now.
  virtual size_t client_count() const = 0;
  // The last save is being made: writes stay paused whatever clients ask for.
  virtual bool ending() const = 0;
  // Requests that have begun are no longer waited for.
  virtual bool hurried() const = 0;

  // When the process began, in Unix milliseconds.
  virtual int64_t start_unix_ms() const = 0;
  // An HTTP request came with a wrong password. On the client's loop.
  virtual void NoteRefused(const engine::Client& client, const std::string& user,
                           int64_t now_ms) = 0;
};

}  // namespace sava::front
