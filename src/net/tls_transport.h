// TlsTransport: a connection encrypted by OpenSSL. The handshake is made by Read, a step at a time;
// until it is done, Read says "again" and epoll is asked for what the handshake waits for.
//
// One read takes what the socket has, up to a record; what OpenSSL holds decrypted, or as whole
// records, is Pending. Small pieces of output are gathered into records of up to 16 KB. A record
// that the socket took in part is offered again with the same bytes, as OpenSSL demands.
//
// Not thread-safe: on its connection's loop.
#pragma once

#include <string>

#include "net/tls_context.h"
#include "net/transport.h"

namespace sava::net {

class TlsTransport final : public Transport {
 public:
  // Takes over a socket that does not block.
  TlsTransport(int fd, const TlsContext& context, PeerCheck check);
  ~TlsTransport() override { Close(); }
  TlsTransport(const TlsTransport&) = delete;
  TlsTransport& operator=(const TlsTransport&) = delete;

  // The name that a client says it wants to reach (SNI). Before the first Read.
  void AskFor(const std::string& host);
  // For HTTP. Before the first Read.
  void SpeakHttp();

  Transfer Read(char* target, size_t room) override;
  Transfer Writev(const iovec* vectors, size_t count) override;
  bool Pending() const override;
  bool Opening() const override { return opening_; }
  std::string_view failure() const override { return failure_; }
  uint32_t Interest(uint32_t wanted) const override;
  uint32_t Ready(uint32_t events) const override;
  void Shutdown() override;
  void Close() override;
  int fd() const override { return fd_; }

  // For people: "TLSv1.3 TLS_AES_256_GCM_SHA384".
  std::string Description() const;

 private:
  enum class Wait : uint8_t { kNone, kRead, kWrite };

  bool Open(Transfer* transfer);
  // The meaning of the last call's result, and which event it waits for.
  Transfer Settle(int result, Wait* wait);
  Transfer Write(const char* bytes, size_t size);

  int fd_;
  ssl_st* ssl_;
  bool opening_ = true;
  bool broken_ = false;  // of no use: no word of good-bye
  bool starved_ = true;  // OpenSSL wants more from the socket before it gives anything out
  bool over_ = false;    // the peer has ended, or the connection failed
  Wait open_waits_ = Wait::kNone;
  Wait read_waits_ = Wait::kNone;   // kWrite: for the socket to take something
  Wait write_waits_ = Wait::kNone;  // kRead: for the peer to send something
  size_t offered_ = 0;              // bytes of the record that the socket took in part
  std::string failure_;
};

}  // namespace sava::net
