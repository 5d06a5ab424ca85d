#include "net/transport.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace sava::net {

namespace {

using Outcome = Transfer::Outcome;

Transfer Result(ssize_t n) {
  if (n > 0) return {Outcome::kDone, static_cast<size_t>(n)};
  if (n == 0) return {Outcome::kEnd, 0};
  return {errno == EAGAIN || errno == EWOULDBLOCK ? Outcome::kAgain : Outcome::kFailed, 0};
}

}  // namespace

Transfer SocketTransport::Read(char* target, size_t room) {
  ssize_t n;
  do {
    n = recv(fd_, target, room, 0);
  } while (n < 0 && errno == EINTR);
  return Result(n);
}

Transfer SocketTransport::Writev(const iovec* vectors, size_t count) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(vectors);
  message.msg_iovlen = count;
  ssize_t n;
  do {
    n = count == 1 ? send(fd_, vectors[0].iov_base, vectors[0].iov_len, MSG_NOSIGNAL)
                   : sendmsg(fd_, &message, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  return Result(n);
}

void SocketTransport::Shutdown() { shutdown(fd_, SHUT_WR); }

void SocketTransport::Close() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

}  // namespace sava::net
