#include "replication/replica_wire.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "net/socket.h"
#include "net/tls_transport.h"

namespace sava::replication {

namespace {

constexpr size_t kLongestLine = 64 << 10;
constexpr size_t kLineRoom = 16 << 10;

int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

// ---- Waker ----

Waker::Waker() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
Waker::~Waker() { close(fd_); }

void Waker::Wake() const {
  const uint64_t one = 1;
  if (write(fd_, &one, sizeof one) < 0) {
  }
}

void Waker::Drain() const {
  uint64_t count;
  if (read(fd_, &count, sizeof count) < 0) {
  }
}

void Waker::Wait(int64_t ms) const {
  pollfd asked{fd_, POLLIN, 0};
  if (poll(&asked, 1, static_cast<int>(std::clamp<int64_t>(ms, 0, INT32_MAX))) > 0) Drain();
}

// ---- ReplicaWire ----

ReplicaWire::Outcome ReplicaWire::Fail(std::string text) {
  error_ = std::move(text);
  return Outcome::kClosed;
}

// Waits for events of the connection (EPOLLIN, EPOLLOUT).
ReplicaWire::Outcome ReplicaWire::AwaitEvents(uint32_t wanted, int64_t deadline_ms, bool may_wake,
                                              uint32_t* ready) {
  while (true) {
    const uint32_t interest = transport_->Interest(wanted);
    pollfd asked[2] = {{transport_->fd(), 0, 0}, {waker_.fd(), POLLIN, 0}};
    if ((interest & EPOLLIN) != 0) asked[0].events |= POLLIN;
    if ((interest & EPOLLOUT) != 0) asked[0].events |= POLLOUT;
    const int64_t left = deadline_ms - NowMs();
    const int n =
        poll(asked, may_wake ? 2 : 1, static_cast<int>(std::clamp<int64_t>(left, 0, INT32_MAX)));
    if (n < 0 && errno != EINTR) return Fail(strerror(errno));
    if (may_wake && n > 0 && asked[1].revents != 0) {
      waker_.Drain();
      return Outcome::kWoken;
    }
    if (n > 0 && asked[0].revents != 0) {
      uint32_t events = 0;
      if ((asked[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) events |= EPOLLIN;
      if ((asked[0].revents & (POLLOUT | POLLHUP | POLLERR)) != 0) events |= EPOLLOUT;
      *ready = transport_->Ready(events);
      return Outcome::kDone;
    }
    if (left <= 0) return Outcome::kTimeout;
  }
}

base::Status ReplicaWire::ComeFrom(const std::string& address) {
  sources_.clear();
  if (address.empty()) return {};
  auto found = net::Resolve(address, 0);
  if (!found) return base::Error{found.error()};
  sources_ = std::move(found.value());
  return {};
}

ReplicaWire::Outcome ReplicaWire::ConnectTo(const net::Address& address, int64_t timeout_ms) {
  const int fd = socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return Fail(strerror(errno));
  transport_ = std::make_unique<net::SocketTransport>(fd);
  if (!sources_.empty()) {
    const bool bound = std::ranges::any_of(sources_, [fd](const net::Address& one) {
      return bind(fd, reinterpret_cast<const sockaddr*>(&one.storage), one.length) == 0;
    });
    if (!bound) return Fail(std::string("bind-source-addr: ") + strerror(errno));
  }
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0) {
    if (errno != EINPROGRESS) return Fail(strerror(errno));
    uint32_t ready = 0;
    const Outcome outcome = AwaitEvents(EPOLLOUT, NowMs() + timeout_ms, true, &ready);
    if (outcome != Outcome::kDone) return outcome;
    int code = 0;
    socklen_t length = sizeof code;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length);
    if (code != 0) return Fail(strerror(code));
  }
  return Outcome::kDone;
}

ReplicaWire::Outcome ReplicaWire::Connect(std::span<const net::Address> addresses,
                                          const std::string& host,
                                          const std::shared_ptr<const net::TlsContext>& tls,
                                          int64_t timeout_ms) {
  Outcome outcome = Fail("the name has no address");
  for (const net::Address& address : addresses) {
    outcome = ConnectTo(address, timeout_ms);
    if (outcome == Outcome::kDone || outcome == Outcome::kWoken) break;
  }
  if (outcome != Outcome::kDone) {
    transport_.reset();
    return outcome;
  }
  const net::Accepted described = net::Describe(transport_->fd());
  peer_ = described.peer;
  self_ = described.self;
  net::SetNoDelay(transport_->fd());
  net::SetKeepAlive(transport_->fd(), 60);
  if (tls == nullptr) return outcome;
  // The descriptor changes hands.
  const int fd = dup(transport_->fd());
  transport_.reset();
  if (fd < 0) return Fail(strerror(errno));
  auto encrypted = std::make_unique<net::TlsTransport>(fd, *tls, net::PeerCheck::kRequired);
  encrypted->AskFor(host);
  transport_ = std::move(encrypted);
  return outcome;
}

void ReplicaWire::SetNoDelay(bool on) {
  const int value = on ? 1 : 0;
  setsockopt(fd(), IPPROTO_TCP, TCP_NODELAY, &value, sizeof value);
}

ReplicaWire::Outcome ReplicaWire::Read(char* target, size_t room, size_t* got, int64_t timeout_ms) {
  *got = 0;
  if (!rest_.empty()) {
    *got = std::min(room, rest_.size());
    std::memcpy(target, rest_.data(), *got);
    rest_.erase(0, *got);
    return Outcome::kDone;
  }
  const int64_t deadline = NowMs() + timeout_ms;
  while (true) {
    const net::Transfer transfer = transport_->Read(target, room);
    switch (transfer.outcome) {
      case net::Transfer::Outcome::kDone:
        *got = transfer.bytes;
        if (total_ != nullptr) total_->fetch_add(transfer.bytes, std::memory_order_relaxed);
        return Outcome::kDone;
      case net::Transfer::Outcome::kEnd:
        return Fail("the master closed the connection");
      case net::Transfer::Outcome::kFailed:
        return Fail(transport_->failure().empty() ? std::string(strerror(errno))
                                                  : std::string(transport_->failure()));
      case net::Transfer::Outcome::kAgain:
        break;
    }
    uint32_t ready = 0;
    const Outcome outcome = AwaitEvents(EPOLLIN, deadline, true, &ready);
    if (outcome != Outcome::kDone) return outcome;
  }
}

ReplicaWire::Outcome ReplicaWire::Write(std::string_view bytes, int64_t timeout_ms) {
  const int64_t deadline = NowMs() + timeout_ms;
  while (!bytes.empty()) {
    // A transport that encrypts agrees with the other side while it reads.
    if (transport_->Opening()) {
      char early[64];
      const net::Transfer opening = transport_->Read(early, sizeof early);
      if (opening.done()) rest_.append(early, opening.bytes);
      if (opening.outcome == net::Transfer::Outcome::kFailed ||
          opening.outcome == net::Transfer::Outcome::kEnd) {
        return Fail(std::string(transport_->failure()));
      }
    }
    if (!transport_->Opening()) {
      const iovec vector{const_cast<char*>(bytes.data()), bytes.size()};
      const net::Transfer transfer = transport_->Writev(&vector, 1);
      if (transfer.done()) {
        sent_ += transfer.bytes;
        bytes.remove_prefix(transfer.bytes);
        continue;
      }
      if (transfer.outcome != net::Transfer::Outcome::kAgain) {
        return Fail(transport_->failure().empty() ? std::string(strerror(errno))
                                                  : std::string(transport_->failure()));
      }
    }
    uint32_t ready = 0;
    const Outcome outcome =
        AwaitEvents(transport_->Opening() ? EPOLLIN : EPOLLOUT, deadline, false, &ready);
    if (outcome != Outcome::kDone) return outcome;
  }
  return Outcome::kDone;
}

ReplicaWire::Outcome ReplicaWire::ReadLine(std::string* line, int64_t timeout_ms) {
  const int64_t deadline = NowMs() + timeout_ms;
  std::string have = std::exchange(rest_, {});
  while (true) {
    const size_t begin = have.find_first_not_of("\r\n");
    have.erase(0, std::min(begin, have.size()));
    if (const size_t end = have.find('\n'); end != std::string::npos) {
      *line = have.substr(0, end);
      if (line->ends_with('\r')) line->pop_back();
      rest_ = have.substr(end + 1);
      return Outcome::kDone;
    }
    if (have.size() > kLongestLine) return Fail("the master's answer has no end");
    char bytes[kLineRoom];
    size_t got = 0;
    const Outcome outcome = Read(bytes, sizeof bytes, &got, deadline - NowMs());
    if (outcome != Outcome::kDone) {
      rest_ = std::move(have);
      return outcome;
    }
    have.append(bytes, got);
  }
}

}  // namespace sava::replication
