// ReplicaWire: the connection to a master, for a thread of its own: every call waits until it is
// done, its time is over, or another thread wakes this one (Waker).
//
// Not thread-safe, but for Waker.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/connect.h"
#include "net/tls_context.h"
#include "net/transport.h"

namespace sava::replication {

// Wakes the thread that waits in a ReplicaWire. From any thread.
class Waker {
 public:
  Waker();
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;
  void Wake() const;
  // Waits for that long at most, or until woken.
  void Wait(int64_t ms) const;
  void Drain() const;
  int fd() const { return fd_; }

 private:
  int fd_;
};

class ReplicaWire {
 public:
  // `total`: where what is received is counted, too.
  explicit ReplicaWire(const Waker* waker, std::atomic<uint64_t>* total = nullptr)
      : waker_(*waker), total_(total) {}

  enum class Outcome : uint8_t {
    kDone,
    kWoken,    // another thread has woken this one
    kTimeout,  // nothing came, or could be sent, in that time
    kClosed,   // error() says why
  };
  // The address of this machine that the connection comes from; empty: the system chooses.
  base::Status ComeFrom(const std::string& address);
  // One address after another. `tls`: none, or how to encrypt.
  Outcome Connect(std::span<const net::Address> addresses, const std::string& host,
                  const std::shared_ptr<const net::TlsContext>& tls, int64_t timeout_ms);
  void SetNoDelay(bool on);
  // At least one byte.
  Outcome Read(char* target, size_t room, size_t* got, int64_t timeout_ms);
  // All of it; the thread is not woken in between.
  Outcome Write(std::string_view bytes, int64_t timeout_ms);
  // A line without its end, of the bytes that Read does not have to give out any more. Empty lines
  // count as none. Goes on where it was woken.
  Outcome ReadLine(std::string* line, int64_t timeout_ms);
  // Bytes that were read too early: they are read again.
  void GiveBack(std::string_view bytes) { rest_.insert(0, bytes); }

  const std::string& error() const { return error_; }
  const std::string& peer() const { return peer_; }
  const std::string& self() const { return self_; }
  int fd() const { return transport_ == nullptr ? -1 : transport_->fd(); }
  uint64_t sent() const { return sent_; }

 private:
  Outcome Fail(std::string text);
  Outcome ConnectTo(const net::Address& address, int64_t timeout_ms);
  Outcome AwaitEvents(uint32_t wanted, int64_t deadline_ms, bool may_wake, uint32_t* ready);

  const Waker& waker_;
  std::vector<net::Address> sources_;
  std::atomic<uint64_t>* const total_;
  std::unique_ptr<net::Transport> transport_;
  std::string rest_;
  std::string peer_;
  std::string self_;
  std::string error_;
  uint64_t sent_ = 0;
};

}  // namespace sava::replication
