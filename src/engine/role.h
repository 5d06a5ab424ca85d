// Role: whether this server is a master, or the replica of one. Nothing in a replica's data changes
// by itself: no key or field expires, nothing is evicted, no bucket of the limiter is written to
// its key. What is past its time is missing for readers, and stays until the master says that it
// goes.
//
// Thread safety: the setters with the gate closed, or, for set_linked, by the thread that follows
// the master; everything else from any thread, and true for the rest of a batch inside the gate.
#pragma once

#include <atomic>

namespace sava::engine {

class Role {
 public:
  bool replica() const { return replica_.load(std::memory_order_relaxed); }
  // Whether the server's own work may change data.
  bool writes_by_itself() const { return !replica(); }
  // A replica whose link to its master is up, and whose data is the master's.
  bool linked() const { return linked_.load(std::memory_order_relaxed); }

  // REQUIRES: the gate is closed.
  void set_replica(bool on) {
    linked_.store(false, std::memory_order_relaxed);
    replica_.store(on, std::memory_order_relaxed);
  }
  void set_linked(bool on) { linked_.store(on, std::memory_order_relaxed); }

 private:
  std::atomic<bool> replica_{false};
  std::atomic<bool> linked_{false};
};

}  // namespace sava::engine
