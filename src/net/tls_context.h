// TlsContext: certificates, keys and rules of encrypted connections, for one side. A connection
// keeps what it was made with, so a context may be replaced by another at any time.
//
// Thread safety: constant once made; connections of several threads may be made from one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct ssl_ctx_st;
struct ssl_st;

namespace sava::net {

struct TlsOptions {
  std::string certificate;  // a chain; empty: none is shown
  std::string key;
  std::string key_pass;
  std::string ca_file;  // whom the other side's certificate is to come from
  std::string ca_dir;
  bool system_authorities = false;  // those that the system trusts, where neither is given
  std::string dh_params;            // empty: OpenSSL's choice
  std::string protocols;            // "TLSv1.2 TLSv1.3"; empty: these
  std::string ciphers;              // up to TLS 1.2
  std::string ciphersuites;         // TLS 1.3
  bool prefers_own_order = false;
  bool caches_sessions = false;
  int64_t cache_size = 0;
  int64_t cache_seconds = 0;
};

enum class TlsRole : uint8_t { kServer, kClient };

// Whether the other side has to show a certificate.
enum class PeerCheck : uint8_t { kNone, kIfShown, kRequired };

class TlsContext {
 public:
  // Reads the files. The error is a line for the log.
  static base::Result<std::shared_ptr<const TlsContext>> Make(TlsRole role,
                                                              const TlsOptions& options);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  TlsRole role() const { return role_; }
  // A connection over the socket. Null without memory. The caller frees it.
  ssl_st* NewConnection(int fd, PeerCheck check) const;

 private:
  TlsContext(TlsRole role, ssl_ctx_st* context) : role_(role), context_(context) {}
  base::Status Load(const TlsOptions& options);

  const TlsRole role_;
  ssl_ctx_st* const context_;
  std::string key_pass_;
};

// From now on the connection offers to speak HTTP/1.1 where the client asks for the protocol
// (ALPN).
void OfferHttp(ssl_st* connection);

// The thread's last error of OpenSSL as a text; its queue of errors is empty afterwards.
std::string TlsError();

}  // namespace sava::net
