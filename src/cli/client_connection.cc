// Sockets of the client. They are non-blocking; every wait is one poll() with the signals beside
// it.
#include "cli/client_connection.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include "net/tls_transport.h"

namespace sava::cli {
namespace {

constexpr int kConnectTimeoutMs = 10000;
constexpr size_t kReadBytes = size_t{64} << 10;

std::string Encode(const std::vector<std::string>& args) {
  size_t total = 16;
  for (const std::string& arg : args) total += arg.size() + 24;
  std::string out;
  out.reserve(total);
  out += '*' + std::to_string(args.size()) + "\r\n";
  for (const std::string& arg : args) {
    out += '$' + std::to_string(arg.size()) + "\r\n";
    out += arg;
    out += "\r\n";
  }
  return out;
}

base::Error SystemError(int code) { return base::Error{std::strerror(code)}; }

}  // namespace

void Connection::Close() {
  if (transport_ != nullptr) {
    transport_.reset();
  } else if (fd_ >= 0) {
    close(fd_);
  }
  fd_ = -1;
  parser_ = ReplyParser();
}

void Connection::Fail(std::string message) {
  Close();
  error_ = std::move(message);
}

base::Status Connection::Open(const Endpoint& endpoint) {
  Close();
  error_.clear();
  base::Status status =
      endpoint.socket.empty() ? OpenTcp(endpoint.host, endpoint.port) : OpenUnix(endpoint.socket);
  if (status.ok()) status = Carry(endpoint);
  if (!status.ok()) Close();
  return status;
}

base::Status Connection::Carry(const Endpoint& endpoint) {
  if (!endpoint.tls) {
    transport_ = std::make_unique<net::SocketTransport>(fd_);
    return {};
  }
  if (tls_ == nullptr) {
    net::TlsOptions options = endpoint.tls_options;
    options.system_authorities = true;
    auto made = net::TlsContext::Make(net::TlsRole::kClient, options);
    if (!made) return base::Error{made.error()};
    tls_ = std::move(*made);
  }
  const net::PeerCheck check =
      endpoint.insecure ? net::PeerCheck::kNone : net::PeerCheck::kRequired;
  auto transport = std::make_unique<net::TlsTransport>(fd_, *tls_, check);
  if (!endpoint.sni.empty()) transport->AskFor(endpoint.sni);
  transport_ = std::move(transport);
  const int timeout = timeout_ms_;
  if (timeout_ms_ < 0) timeout_ms_ = kConnectTimeoutMs;
  base::Status status = Shake();
  timeout_ms_ = timeout;
  return status;
}

base::Status Connection::Shake() {
  char bytes[kReadBytes];
  while (transport_->Opening()) {
    const net::Transfer read = transport_->Read(bytes, sizeof bytes);
    if (read.done()) {
      parser_.Feed({bytes, read.bytes});
    } else if (transport_->Opening()) {
      if (read.outcome != net::Transfer::Outcome::kAgain) {
        return base::Error{"TLS handshake failed: " + std::string(transport_->failure())};
      }
      const WaitStatus waited = Wait(POLLIN);
      if (waited == WaitStatus::kInterrupted) return SystemError(EINTR);
      if (waited == WaitStatus::kTimeout) return SystemError(ETIMEDOUT);
    }
  }
  return {};
}

base::Status Connection::OpenUnix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return SystemError(ENAMETOOLONG);
  std::memcpy(address.sun_path, path.data(), path.size());
  return Connect(AF_UNIX, &address, sizeof address);
}

base::Status Connection::OpenTcp(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) return base::Error{gai_strerror(code)};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  base::Status status = base::Error{"no address"};
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    status = Connect(entry->ai_family, entry->ai_addr, entry->ai_addrlen);
    if (status.ok()) break;
  }
  if (status.ok()) {
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  }
  return status;
}

base::Status Connection::Connect(int family, const void* address, size_t length) {
  Close();
  fd_ = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return SystemError(errno);
  const auto* target = static_cast<const sockaddr*>(address);
  if (connect(fd_, target, static_cast<socklen_t>(length)) == 0) return {};
  if (errno != EINPROGRESS) return SystemError(errno);
  const int timeout = timeout_ms_;
  if (timeout_ms_ < 0) timeout_ms_ = kConnectTimeoutMs;
  const WaitStatus waited = Wait(POLLOUT);
  timeout_ms_ = timeout;
  if (waited == WaitStatus::kInterrupted) return SystemError(EINTR);
  if (waited == WaitStatus::kTimeout) return SystemError(ETIMEDOUT);
  int code = 0;
  socklen_t size = sizeof code;
  getsockopt(fd_, SOL_SOCKET, SO_ERROR, &code, &size);
  if (code != 0) return SystemError(code);
  return {};
}

Connection::WaitStatus Connection::Wait(short events) {
  using Clock = std::chrono::steady_clock;
  if (transport_ != nullptr) {
    events = static_cast<short>(transport_->Interest(static_cast<uint32_t>(events)));
  }
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(timeout_ms_);
  while (true) {
    pollfd watched[2] = {{fd_, events, 0}, {signals_ != nullptr ? signals_->fd() : -1, POLLIN, 0}};
    int left = -1;
    if (timeout_ms_ >= 0) {
      const auto span = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      left = span.count() > 0 ? static_cast<int>(span.count()) : 0;
    }
    const int ready = poll(watched, 2, left);
    if (ready == 0) return WaitStatus::kTimeout;
    if (ready < 0) continue;
    if (watched[1].revents != 0 && signals_->TakeInterrupt()) return WaitStatus::kInterrupted;
    if (watched[0].revents != 0) return WaitStatus::kReady;
  }
}

base::Status Connection::Send(const std::vector<std::string>& args) {
  const std::string bytes = Encode(args);
  size_t sent = 0;
  while (sent < bytes.size()) {
    const iovec rest{const_cast<char*>(bytes.data()) + sent, bytes.size() - sent};
    errno = 0;
    const net::Transfer written = transport_->Writev(&rest, 1);
    if (written.done()) {
      sent += written.bytes;
      continue;
    }
    if (written.outcome != net::Transfer::Outcome::kAgain) {
      Fail(Reason());
      return base::Error{error_};
    }
    const WaitStatus waited = Wait(POLLOUT);
    if (waited == WaitStatus::kReady) continue;
    Fail(std::strerror(waited == WaitStatus::kTimeout ? ETIMEDOUT : EINTR));
    return base::Error{error_};
  }
  return {};
}

Connection::ReadStatus Connection::ReadRaw(std::string* bytes) {
  constexpr size_t kStep = 256 * 1024;
  const size_t before = bytes->size();
  while (is_open()) {
    bytes->resize(before + kStep);
    errno = 0;
    const net::Transfer read = transport_->Read(bytes->data() + before, kStep);
    bytes->resize(before + (read.done() ? read.bytes : 0));
    if (read.done()) return ReadStatus::kReply;
    if (read.outcome == net::Transfer::Outcome::kEnd) {
      Fail("Server closed the connection");
      break;
    }
    if (read.outcome == net::Transfer::Outcome::kFailed) {
      Fail(Reason());
      break;
    }
    switch (Wait(POLLIN)) {
      case WaitStatus::kReady:
        break;
      case WaitStatus::kInterrupted:
        return ReadStatus::kInterrupted;
      case WaitStatus::kTimeout:
        Fail("Server says nothing");
        break;
    }
  }
  return ReadStatus::kClosed;
}

bool Connection::Receive() {
  char bytes[kReadBytes];
  errno = 0;
  const net::Transfer read = transport_->Read(bytes, sizeof bytes);
  switch (read.outcome) {
    case net::Transfer::Outcome::kDone:
      parser_.Feed({bytes, read.bytes});
      return true;
    case net::Transfer::Outcome::kAgain:
      return true;
    case net::Transfer::Outcome::kEnd:
      Fail("Server closed the connection");
      return false;
    case net::Transfer::Outcome::kFailed:
      break;
  }
  Fail(Reason());
  return false;
}

std::string Connection::Reason() const {
  const std::string_view told = transport_->failure();
  return told.empty() ? std::strerror(errno) : std::string(told);
}

Connection::ReadStatus Connection::Read(Reply* reply) {
  while (is_open()) {
    switch (parser_.Next(reply)) {
      case ReplyParser::Status::kReply:
        return ReadStatus::kReply;
      case ReplyParser::Status::kError:
        Fail(std::string(parser_.error()));
        return ReadStatus::kClosed;
      case ReplyParser::Status::kNeedMore:
        break;
    }
    if (transport_->Pending()) {
      if (!Receive()) return ReadStatus::kClosed;
      continue;
    }
    switch (Wait(POLLIN)) {
      case WaitStatus::kInterrupted:
        Fail("Interrupted");
        return ReadStatus::kInterrupted;
      case WaitStatus::kTimeout:
        Fail(std::strerror(ETIMEDOUT));
        return ReadStatus::kClosed;
      case WaitStatus::kReady:
        if (!Receive()) return ReadStatus::kClosed;
    }
  }
  return ReadStatus::kClosed;
}

std::vector<Reply> Connection::ReadAvailable() {
  std::vector<Reply> replies;
  while (is_open()) {
    Reply reply;
    const ReplyParser::Status status = parser_.Next(&reply);
    if (status == ReplyParser::Status::kReply) {
      replies.push_back(std::move(reply));
      continue;
    }
    if (status == ReplyParser::Status::kError) {
      Fail(std::string(parser_.error()));
      break;
    }
    pollfd watched{fd_, POLLIN, 0};
    const bool more = transport_->Pending() || poll(&watched, 1, 0) > 0;
    if (!more || !Receive()) break;
  }
  return replies;
}

}  // namespace sava::cli
