#include "net/socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "net/port_owner.h"

namespace sava::net {

namespace {

base::Error Fail(int fd, std::string what) {
  const int code = errno;
  if (fd >= 0) close(fd);
  return base::Error{fmt::format("{}: {}", what, strerror(code))};
}

// Names the process that has the port.
base::Error FailTcp(int fd, std::string what, int port) {
  const bool in_use = errno == EADDRINUSE;
  base::Error error = Fail(fd, std::move(what));
  const PortOwner owner = in_use ? FindPortOwner(port) : PortOwner();
  if (owner.pid != 0) error.message += fmt::format(" by {} (pid {})", owner.name, owner.pid);
  return error;
}

std::string Text(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return fmt::format("{}:{}", text, ntohs(v4.sin_port));
  }
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    return fmt::format("[{}]:{}", text, ntohs(v6.sin6_port));
  }
  return "?:0";
}

bool IsLoopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
  }
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    if (IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr)) return true;
    return IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) && v6.sin6_addr.s6_addr[12] == 127;
  }
  return false;
}

Accepted DescribeWith(int fd, const sockaddr_storage& peer) {
  Accepted result;
  result.fd = fd;
  sockaddr_storage self{};
  socklen_t length = sizeof self;
  getsockname(fd, reinterpret_cast<sockaddr*>(&self), &length);
  if (self.ss_family == AF_UNIX) {
    const auto& address = reinterpret_cast<const sockaddr_un&>(self);
    result.unix_socket = true;
    result.local = true;
    result.peer = std::string(address.sun_path) + ":0";
    result.self = result.peer;
  } else {
    result.local = IsLoopback(peer);
    result.peer = Text(peer);
    result.self = Text(self);
  }
  return result;
}

}  // namespace

base::Result<int> ListenTcp(const std::string& address, int port, int backlog) {
  const bool any4 = address == "*";
  const bool any6 = address == "::*";
  addrinfo hints{};
  hints.ai_family = any4 ? AF_INET : any6 ? AF_INET6 : AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const std::string service = fmt::format("{}", port);
  const int error =
      getaddrinfo(any4 || any6 ? nullptr : address.c_str(), service.c_str(), &hints, &list);
  if (error != 0) return base::Error{fmt::format("bind {}: {}", address, gai_strerror(error))};
  const int fd = socket(list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    freeaddrinfo(list);
    return Fail(fd, fmt::format("socket for {}", address));
  }
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (list->ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  const int bound = bind(fd, list->ai_addr, list->ai_addrlen);
  freeaddrinfo(list);
  if (bound != 0) return FailTcp(fd, fmt::format("bind {}:{}", address, port), port);
  if (listen(fd, backlog) != 0) {
    return FailTcp(fd, fmt::format("listen on {}:{}", address, port), port);
  }
  return fd;
}

base::Result<int> ListenUnix(const std::string& path, uint32_t permissions, int backlog) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return base::Error{fmt::format("unixsocket {}: the path is too long", path)};
  }
  memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return Fail(fd, "unix socket");
  unlink(path.c_str());
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return Fail(fd, fmt::format("unixsocket {}", path));
  }
  if (permissions != 0) chmod(path.c_str(), static_cast<mode_t>(permissions));
  if (listen(fd, backlog) != 0) return Fail(fd, fmt::format("unixsocket {}", path));
  return fd;
}

Accepted Describe(int fd) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length);
  return DescribeWith(fd, peer);
}

Accepted Accept(int listener, int* error) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  *error = 0;
  const int fd =
      accept4(listener, reinterpret_cast<sockaddr*>(&peer), &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd >= 0) return DescribeWith(fd, peer);
  if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) *error = errno;
  return {};
}

void SetNoDelay(int fd, bool on) {
  const int value = on ? 1 : 0;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, sizeof value);
}

void SetKeepAlive(int fd, int seconds) {
  const int on = 1;
  const int interval = seconds / 3 > 0 ? seconds / 3 : 1;
  const int probes = 3;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

}  // namespace sava::net
