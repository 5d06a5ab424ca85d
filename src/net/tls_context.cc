#include "net/tls_context.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

namespace sava::net {

namespace {

struct Version {
  const char* name;
  uint64_t off;
};
constexpr Version kVersions[] = {{"TLSv1", SSL_OP_NO_TLSv1},
                                 {"TLSv1.1", SSL_OP_NO_TLSv1_1},
                                 {"TLSv1.2", SSL_OP_NO_TLSv1_2},
                                 {"TLSv1.3", SSL_OP_NO_TLSv1_3}};
constexpr uint64_t kAllOff =
    SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1 | SSL_OP_NO_TLSv1_2 | SSL_OP_NO_TLSv1_3;
constexpr const char* kDefaultVersions = "TLSv1.2 TLSv1.3";

// Sessions of clients that showed a certificate are only resumed where they were begun.
constexpr unsigned char kSessionContext[] = "sava";

base::Error Fail(std::string what) { return base::Error{std::move(what) + ": " + TlsError()}; }

base::Result<uint64_t> VersionsOff(const std::string& protocols) {
  uint64_t off = kAllOff;
  std::istringstream words(protocols.empty() ? kDefaultVersions : protocols);
  for (std::string word; words >> word;) {
    const auto* const found = std::ranges::find_if(kVersions, [&word](const Version& version) {
      return strcasecmp(version.name, word.c_str()) == 0;
    });
    if (found == std::end(kVersions)) {
      return base::Error{
          "Invalid tls-protocols specified. Use a combination of TLSv1, TLSv1.1, TLSv1.2 and "
          "TLSv1.3"};
    }
    off &= ~found->off;
  }
  return off;
}

// Gives OpenSSL the password of a key; without one the key cannot be read. (OpenSSL would ask the
// terminal.)
int PassOfKey(char* target, int room, int writing, void* password) {
  static_cast<void>(writing);
  const auto& text = *static_cast<const std::string*>(password);
  if (text.empty() || text.size() > static_cast<size_t>(room)) return -1;
  memcpy(target, text.data(), text.size());
  return static_cast<int>(text.size());
}

// Which of the protocols above TLS that a client names is spoken: HTTP/1.1 if at all.
int ChooseProtocol(SSL* connection, const unsigned char** chosen, unsigned char* length,
                   const unsigned char* offered, unsigned offered_length, void* unused) {
  static_cast<void>(unused);
  static constexpr unsigned char kHttp[] = "\x08http/1.1";
  if (SSL_get_app_data(connection) == nullptr) return SSL_TLSEXT_ERR_NOACK;
  unsigned char* found = nullptr;
  if (SSL_select_next_proto(&found, length, kHttp, sizeof kHttp - 1, offered, offered_length) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

// OpenSSL's own way to a socket raises SIGPIPE where the peer is gone.
int FdOf(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))); }

int ReadSocket(BIO* bio, char* target, int room) {
  BIO_clear_retry_flags(bio);
  ssize_t n;
  do {
    n = recv(FdOf(bio), target, static_cast<size_t>(room), 0);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) BIO_set_retry_read(bio);
  if (n == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(n);
}

int WriteSocket(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  ssize_t n;
  do {
    n = send(FdOf(bio), bytes, static_cast<size_t>(size), MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) BIO_set_retry_write(bio);
  return static_cast<int>(n);
}

long ControlSocket(BIO* bio, int command, long number, void* pointer) {
  static_cast<void>(number), static_cast<void>(pointer);
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return command == BIO_CTRL_FLUSH || command == BIO_CTRL_DUP ? 1 : 0;
}

BIO_METHOD* SocketMethod() {
  BIO_METHOD* const method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "sava");
  if (method == nullptr) return nullptr;
  BIO_meth_set_read(method, ReadSocket);
  BIO_meth_set_write(method, WriteSocket);
  BIO_meth_set_ctrl(method, ControlSocket);
  return method;
}

// Does not own the socket.
BIO* NewSocket(int fd) {
  static BIO_METHOD* const method = SocketMethod();
  BIO* const bio = method == nullptr ? nullptr : BIO_new(method);
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
  BIO_set_init(bio, 1);
  return bio;
}

base::Status LoadDhParams(SSL_CTX* context, const std::string& path) {
  if (path.empty()) {
    SSL_CTX_set_dh_auto(context, 1);
    return {};
  }
  const std::unique_ptr<BIO, int (*)(BIO*)> file(BIO_new_file(path.c_str(), "r"), BIO_free);
  if (file == nullptr) return Fail(fmt::format("Failed to load DH params file: {}", path));
  EVP_PKEY* const params = PEM_read_bio_Parameters(file.get(), nullptr);
  if (params == nullptr) return Fail(fmt::format("Failed to read DH params: {}", path));
  if (SSL_CTX_set0_tmp_dh_pkey(context, params) != 1) {
    EVP_PKEY_free(params);
    return Fail(fmt::format("Failed to use DH params: {}", path));
  }
  return {};
}

base::Status LoadIdentity(SSL_CTX* context, const TlsOptions& options) {
  if (options.certificate.empty()) return {};
  if (SSL_CTX_use_certificate_chain_file(context, options.certificate.c_str()) != 1) {
    return Fail(fmt::format("Failed to load certificate: {}", options.certificate));
  }
  if (SSL_CTX_use_PrivateKey_file(context, options.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return Fail(fmt::format("Failed to load private key: {}", options.key));
  }
  return {};
}

base::Status LoadAuthorities(SSL_CTX* context, TlsRole role, const TlsOptions& options) {
  const auto name = [](const std::string& text) { return text.empty() ? nullptr : text.c_str(); };
  if (options.ca_file.empty() && options.ca_dir.empty()) {
    if (options.system_authorities && SSL_CTX_set_default_verify_paths(context) != 1) {
      return Fail("Failed to use the system's CA certificates");
    }
    return {};
  }
  if (SSL_CTX_load_verify_locations(context, name(options.ca_file), name(options.ca_dir)) != 1) {
    return Fail("Failed to configure CA certificate(s) file/directory");
  }
  // Clients with several certificates are told which of them will do.
  if (role == TlsRole::kServer && !options.ca_file.empty()) {
    SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(options.ca_file.c_str()));
    ERR_clear_error();
  }
  return {};
}

void SetSessions(SSL_CTX* context, TlsRole role, const TlsOptions& options) {
  if (role == TlsRole::kServer && options.caches_sessions) {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_SERVER);
    SSL_CTX_sess_set_cache_size(context, options.cache_size);
    SSL_CTX_set_timeout(context, options.cache_seconds);
    SSL_CTX_set_session_id_context(context, kSessionContext, sizeof kSessionContext - 1);
    return;
  }
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  if (role == TlsRole::kServer) {
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(context, 0);
  }
}

}  // namespace

std::string TlsError() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  if (code == 0) return "unknown error";
  char text[256];
  ERR_error_string_n(code, text, sizeof text);
  return text;
}

base::Result<std::shared_ptr<const TlsContext>> TlsContext::Make(TlsRole role,
                                                                 const TlsOptions& options) {
  ERR_clear_error();
  SSL_CTX* const context =
      SSL_CTX_new(role == TlsRole::kServer ? TLS_server_method() : TLS_client_method());
  if (context == nullptr) return Fail("Failed to create a TLS context");
  const std::shared_ptr<TlsContext> made(new TlsContext(role, context));
  if (base::Status status = made->Load(options); !status) return base::Error{status.error()};
  return std::shared_ptr<const TlsContext>(made);
}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

base::Status TlsContext::Load(const TlsOptions& options) {
  base::Result<uint64_t> off = VersionsOff(options.protocols);
  if (!off) return base::Error{off.error()};
  SSL_CTX_set_options(context_, *off | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                    SSL_OP_IGNORE_UNEXPECTED_EOF);
  if (options.prefers_own_order) SSL_CTX_set_options(context_, SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(context_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                 SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context_, 1);
  key_pass_ = options.key_pass;
  SSL_CTX_set_default_passwd_cb(context_, PassOfKey);
  SSL_CTX_set_default_passwd_cb_userdata(context_, &key_pass_);
  SetSessions(context_, role_, options);
  if (role_ == TlsRole::kServer) SSL_CTX_set_alpn_select_cb(context_, ChooseProtocol, nullptr);
  if (base::Status status = LoadIdentity(context_, options); !status) return status;
  if (base::Status status = LoadAuthorities(context_, role_, options); !status) return status;
  if (base::Status status = LoadDhParams(context_, options.dh_params); !status) return status;
  if (!options.ciphers.empty() && SSL_CTX_set_cipher_list(context_, options.ciphers.c_str()) != 1) {
    return Fail(fmt::format("Failed to configure ciphers: {}", options.ciphers));
  }
  if (!options.ciphersuites.empty() &&
      SSL_CTX_set_ciphersuites(context_, options.ciphersuites.c_str()) != 1) {
    return Fail(fmt::format("Failed to configure ciphersuites: {}", options.ciphersuites));
  }
  return {};
}

SSL* TlsContext::NewConnection(int fd, PeerCheck check) const {
  SSL* const connection = SSL_new(context_);
  BIO* const socket = NewSocket(fd);
  if (connection == nullptr || socket == nullptr) {
    SSL_free(connection);
    BIO_free(socket);
    ERR_clear_error();
    return nullptr;
  }
  SSL_set_bio(connection, socket, socket);
  const int mode = check == PeerCheck::kNone ? SSL_VERIFY_NONE
                   : check == PeerCheck::kIfShown
                       ? SSL_VERIFY_PEER
                       : SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
  SSL_set_verify(connection, mode, nullptr);
  role_ == TlsRole::kServer ? SSL_set_accept_state(connection) : SSL_set_connect_state(connection);
  return connection;
}

void OfferHttp(SSL* connection) {
  static int marked;
  SSL_set_app_data(connection, &marked);
}

}  // namespace sava::net
