// OutputFeed: bytes for a client behind its replies, made as its socket takes them: a replica's
// copy of the data set and the stream of changes.
//
// Thread safety: the client's loop. A thread that has more for a feed wakes that loop by mail
// (kWake with the client's id).
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace sava::engine {

struct Client;

// What a replica has said of itself with REPLCONF before it asks for the data.
struct Announcement {
  std::string ip;  // empty: that of its connection
  int64_t port = 0;
  std::string version;
  bool eof = false;     // reads a data set whose length is not said
  bool psync2 = false;  // knows of changed ids
  bool sava = false;    // knows native types and commands
  bool rdb_only = false;
  bool filtered = false;  // wants only a part of the data
  bool keys = true;
  bool functions = true;
};

class OutputFeed {
 public:
  virtual ~OutputFeed() = default;
  // The next bytes, in at most `most` vectors; returns how many. 0: there is nothing to send now,
  // and its loop will be woken when there is. They stay where they are until Sent.
  virtual size_t Gather(iovec* vectors, size_t most) = 0;
  // That many of them were sent.
  virtual void Sent(size_t bytes) = 0;
  // Called about once a second. False: the client must be closed.
  virtual bool Tick(const Client& client, int64_t now_ms) = 0;
  // The client will be closed as soon as its loop can: it does not count any more. With the gate
  // closed, on any thread.
  virtual void Drop() = 0;
  // The client is being closed.
  virtual void Closing() = 0;
  // Nothing more will come, and all was sent: the client must be closed.
  virtual bool over() const = 0;
  // Bytes of memory that wait for it, for CLIENT LIST and INFO.
  virtual size_t pending() const = 0;
};

}  // namespace sava::engine
