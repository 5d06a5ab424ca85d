// Transport: what carries the bytes of one connection. It owns the descriptor; SocketTransport is a
// plain socket.
//
// A transport that encrypts takes whole records from the socket, so it may have input that epoll
// says nothing of (Pending), and it may have to write before it can go on reading, or the other way
// round (Interest and Ready translate).
//
// Not thread-safe: on its connection's loop.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sava::net {

struct Transfer {
  enum class Outcome : uint8_t {
    kDone,    // at least one byte
    kAgain,   // none now
    kEnd,     // the peer sends nothing more
    kFailed,  // the connection is of no use any more
  };
  Outcome outcome = Outcome::kAgain;
  size_t bytes = 0;

  bool done() const { return outcome == Outcome::kDone; }
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual Transfer Read(char* target, size_t room) = 0;
  // After kAgain the next call begins with the same bytes and offers at least as many.
  virtual Transfer Writev(const iovec* vectors, size_t count) = 0;
  // Whether input was taken from the socket that Read has not given out.
  virtual bool Pending() const = 0;
  // The two sides still agree on how to speak: neither has said anything of its own. Read goes on
  // with that; a step may take a millisecond.
  virtual bool Opening() const { return false; }
  // Why it failed, where the system's error number does not say.
  virtual std::string_view failure() const { return {}; }

  // The events (EPOLLIN, EPOLLOUT) to ask epoll for when the owner wants these. May change with
  // each call above.
  virtual uint32_t Interest(uint32_t wanted) const = 0;
  // The calls the owner may make when epoll reports these events.
  virtual uint32_t Ready(uint32_t events) const = 0;

  // Tells the peer that nothing more will be sent.
  virtual void Shutdown() = 0;
  // Gives the descriptor back. Only once; the destructor does it otherwise.
  virtual void Close() = 0;
  // For epoll and for people; -1 when closed.
  virtual int fd() const = 0;
};

class SocketTransport final : public Transport {
 public:
  // Takes over a socket that does not block.
  explicit SocketTransport(int fd) : fd_(fd) {}
  ~SocketTransport() override { Close(); }
  SocketTransport(const SocketTransport&) = delete;
  SocketTransport& operator=(const SocketTransport&) = delete;

  Transfer Read(char* target, size_t room) override;
  Transfer Writev(const iovec* vectors, size_t count) override;
  bool Pending() const override { return false; }
  uint32_t Interest(uint32_t wanted) const override { return wanted; }
  uint32_t Ready(uint32_t events) const override { return events; }
  void Shutdown() override;
  void Close() override;
  int fd() const override { return fd_; }

 private:
  int fd_;
};

}  // namespace sava::net
