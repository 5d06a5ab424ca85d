// Stream: the bytes that replicas of this server get, seen by the half of this room that follows a
// master. While it follows one, its own replicas get the master's bytes, as they came.
#pragma once

#include <cstdint>
#include <string_view>

#include "replication/ids.h"

namespace sava::replication {

class Stream {
 public:
  virtual ~Stream() = default;

  virtual History history() const = 0;

  // From here on this server has the data of that history at that offset, and its replicas get what
  // AppendRaw brings, not those of its own journal. They are dropped, and the backlog
  // begins again. REQUIRES: the gate is closed.
  virtual void Adopt(std::string_view id, int64_t offset) = 0;
  // The master goes on under another id: the one before becomes the second. Replicas are dropped,
  // so that they learn of it; what is kept of the stream stays. REQUIRES: the gate is closed.
  virtual void Rename(std::string_view id) = 0;
  // The master's own bytes, after they were applied. On the thread that applies.
  virtual void AppendRaw(std::string_view bytes) = 0;
  // This server becomes a master, or a replica (of whom is not said yet): a history of its own
  // begins, or its own bytes end. Replicas are dropped. REQUIRES: the gate is closed.
  virtual void Promote() = 0;
  virtual void Demote() = 0;
};

}  // namespace sava::replication
