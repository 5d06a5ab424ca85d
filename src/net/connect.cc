#include "net/connect.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace sava::net {

base::Result<std::vector<Address>> Resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), fmt::format("{}", port).c_str(), &hints, &list);
  if (error != 0) return base::Error{fmt::format("{}: {}", host, gai_strerror(error))};
  std::vector<Address> addresses;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    Address address;
    memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    address.length = one->ai_addrlen;
    addresses.push_back(address);
  }
  freeaddrinfo(list);
  return addresses;
}

Connect::Connect(Loop* loop, const Address& to, int64_t deadline_ms)
    : loop_(loop), deadline_ms_(deadline_ms) {
  fd_ = socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) {
    error_ = strerror(errno);
    return;
  }
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&to.storage), to.length) != 0 &&
      errno != EINPROGRESS) {
    error_ = strerror(errno);
    close(std::exchange(fd_, -1));
    return;
  }
  loop_->Add(fd_, EPOLLOUT, this);
}

Connect::~Connect() {
  if (fd_ < 0) return;
  loop_->Remove(fd_);
  close(fd_);
}

void Connect::OnEvents(uint32_t events) {
  static_cast<void>(events);
  ready_ = true;
}

base::Result<Accepted> Connect::Take() {
  if (fd_ < 0) return base::Error{error_};
  if (!ready_) return base::Error{strerror(ETIMEDOUT)};
  int code = 0;
  socklen_t length = sizeof code;
  getsockopt(fd_, SOL_SOCKET, SO_ERROR, &code, &length);
  if (code != 0) return base::Error{strerror(code)};
  loop_->Remove(fd_);
  return Describe(std::exchange(fd_, -1));
}

}  // namespace sava::net
