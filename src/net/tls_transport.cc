#include "net/tls_transport.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace sava::net {

namespace {

using Outcome = Transfer::Outcome;

constexpr size_t kRecord = SSL3_RT_MAX_PLAIN_LENGTH;

// Where the pieces of a record are put together.
thread_local char gathered[kRecord];

// The first `size` bytes of the vectors, which have at least as many, in one piece.
const char* InOnePiece(const iovec* vectors, size_t size) {
  if (vectors[0].iov_len >= size) return static_cast<const char*>(vectors[0].iov_base);
  for (size_t copied = 0; copied < size; ++vectors) {
    const size_t part = std::min(vectors->iov_len, size - copied);
    memcpy(gathered + copied, vectors->iov_base, part);
    copied += part;
  }
  return gathered;
}

// What a call of OpenSSL failed with is told from its thread's queue of errors, where others may
// have left some: a call that succeeds in the end, too. To look is cheap, to clear is not.
void ForgetErrors() {
  if (ERR_peek_error() != 0) [[unlikely]]
    ERR_clear_error();
  errno = 0;
}

}  // namespace

TlsTransport::TlsTransport(int fd, const TlsContext& context, PeerCheck check)
    : fd_(fd), ssl_(context.NewConnection(fd, check)) {
  // A client speaks first.
  open_waits_ = context.role() == TlsRole::kServer ? Wait::kRead : Wait::kWrite;
}

void TlsTransport::AskFor(const std::string& host) {
  if (ssl_ != nullptr) SSL_set_tlsext_host_name(ssl_, host.c_str());
}

void TlsTransport::SpeakHttp() {
  if (ssl_ != nullptr) OfferHttp(ssl_);
}

// REQUIRES: ForgetErrors before the call, so that what the queue of errors holds is of this call.
Transfer TlsTransport::Settle(int result, Wait* wait) {
  const int system_error = errno;
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
      *wait = Wait::kRead;
      return {Outcome::kAgain, 0};
    case SSL_ERROR_WANT_WRITE:
      *wait = Wait::kWrite;
      return {Outcome::kAgain, 0};
    case SSL_ERROR_ZERO_RETURN:
      ERR_clear_error();
      if (opening_) failure_ = "the peer hung up";
      return {Outcome::kEnd, 0};
    case SSL_ERROR_SYSCALL:
      broken_ = true;
      failure_ = system_error == 0 ? "the peer hung up" : strerror(system_error);
      ERR_clear_error();
      return {Outcome::kFailed, 0};
    default:
      broken_ = true;
      failure_ = TlsError();
      return {Outcome::kFailed, 0};
  }
}

// A step of the handshake. True when it is done; else *transfer says what became of it.
bool TlsTransport::Open(Transfer* transfer) {
  if (ssl_ == nullptr) {
    *transfer = {Outcome::kFailed, 0};
    return false;
  }
  ForgetErrors();
  const int result = SSL_do_handshake(ssl_);
  if (result == 1) {
    opening_ = false;
    return true;
  }
  *transfer = Settle(result, &open_waits_);
  return false;
}

Transfer TlsTransport::Read(char* target, size_t room) {
  Transfer transfer;
  if (opening_ && !Open(&transfer)) return transfer;
  read_waits_ = Wait::kNone;
  size_t total = 0;
  do {
    ForgetErrors();
    const int n =
        SSL_read(ssl_, target + total, static_cast<int>(std::min<size_t>(room - total, 1 << 30)));
    if (n <= 0) {
      transfer = Settle(n, &read_waits_);
      starved_ = transfer.outcome == Outcome::kAgain;
      over_ = !starved_;
      // What came before is given out first; the end or the failure is found again.
      return total > 0 ? Transfer{Outcome::kDone, total} : transfer;
    }
    starved_ = false;
    total += static_cast<size_t>(n);
  } while (total < room && SSL_has_pending(ssl_) == 1);
  return {Outcome::kDone, total};
}

bool TlsTransport::Pending() const {
  return !opening_ && !starved_ && ssl_ != nullptr && (over_ || SSL_has_pending(ssl_) == 1);
}

Transfer TlsTransport::Write(const char* bytes, size_t size) {
  ForgetErrors();
  const int n = SSL_write(ssl_, bytes, static_cast<int>(size));
  if (n <= 0) {
    const Transfer transfer = Settle(n, &write_waits_);
    if (transfer.outcome == Outcome::kAgain) offered_ = size;
    return transfer;
  }
  offered_ = 0;
  return {Outcome::kDone, static_cast<size_t>(n)};
}

Transfer TlsTransport::Writev(const iovec* vectors, size_t count) {
  // Read makes the handshake, so that what came with its end is not left lying in OpenSSL.
  if (opening_) return {};
  write_waits_ = Wait::kNone;
  size_t size = 0;
  for (size_t i = 0; i < count && size < kRecord; ++i) size += vectors[i].iov_len;
  size = std::min(size, kRecord);
  if (offered_ > 0) {
    if (size < offered_) return {Outcome::kFailed, 0};
    size = offered_;
  }
  if (size == 0) return {Outcome::kAgain, 0};
  return Write(InOnePiece(vectors, size), size);
}

uint32_t TlsTransport::Interest(uint32_t wanted) const {
  if (opening_) return open_waits_ == Wait::kWrite ? EPOLLOUT : EPOLLIN;
  uint32_t events = wanted & ~(EPOLLIN | EPOLLOUT);
  if ((wanted & EPOLLIN) != 0) events |= read_waits_ == Wait::kWrite ? EPOLLOUT : EPOLLIN;
  if ((wanted & EPOLLOUT) != 0) events |= write_waits_ == Wait::kRead ? EPOLLIN : EPOLLOUT;
  return events;
}

uint32_t TlsTransport::Ready(uint32_t events) const {
  constexpr uint32_t kBoth = EPOLLIN | EPOLLOUT;
  if (opening_) return (events & kBoth) != 0 ? (events & ~kBoth) | EPOLLIN : events;
  uint32_t ready = events;
  if (read_waits_ == Wait::kWrite && (events & EPOLLOUT) != 0) ready |= EPOLLIN;
  if (write_waits_ == Wait::kRead && (events & EPOLLIN) != 0) ready |= EPOLLOUT;
  return ready;
}

void TlsTransport::Shutdown() {
  if (ssl_ == nullptr || fd_ < 0) return;
  if (!opening_ && !broken_ && (SSL_get_shutdown(ssl_) & SSL_SENT_SHUTDOWN) == 0) {
    SSL_shutdown(ssl_);
    ERR_clear_error();
  }
  shutdown(fd_, SHUT_WR);
}

void TlsTransport::Close() {
  if (fd_ < 0) return;
  if (ssl_ != nullptr) {
    // The peer is told once; its answer is not waited for.
    if (!opening_ && !broken_ && offered_ == 0) SSL_shutdown(ssl_);
    SSL_free(std::exchange(ssl_, nullptr));
    ERR_clear_error();
  }
  close(std::exchange(fd_, -1));
}

std::string TlsTransport::Description() const {
  if (ssl_ == nullptr) return {};
  return fmt::format("{} {}", SSL_get_version(ssl_), SSL_get_cipher_name(ssl_));
}

}  // namespace sava::net
