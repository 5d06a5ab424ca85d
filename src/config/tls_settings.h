// The settings of TLS, as plain data: a part of Settings.
//
// Thread safety: that of Settings.
#pragma once

#include <cstdint>
#include <string>

namespace sava::config {

// Whether clients have to show a certificate.
enum class TlsAuth : uint8_t { kNo, kYes, kOptional };

struct TlsFiles {
  std::string tls_cert_file;
  std::string tls_key_file;
  std::string tls_key_file_pass;
  // For connections this server opens; empty: those above.
  std::string tls_client_cert_file;
  std::string tls_client_key_file;
  std::string tls_client_key_file_pass;
  std::string tls_ca_cert_file;
  std::string tls_ca_cert_dir;
  std::string tls_dh_params_file;
};

struct TlsRules {
  int64_t tls_port = 0;
  int64_t http_tls_port = 0;
  TlsAuth tls_auth_clients = TlsAuth::kYes;
  bool tls_replication = false;
  std::string tls_protocols;  // empty: TLSv1.2 and TLSv1.3
  std::string tls_ciphers;
  std::string tls_ciphersuites;
  bool tls_prefer_server_ciphers = false;
  bool tls_session_caching = true;
  int64_t tls_session_cache_size = 20480;
  int64_t tls_session_cache_timeout = 300;  // seconds
};

struct TlsSettings : TlsFiles, TlsRules {
  // Anything speaks TLS.
  bool uses_tls() const { return tls_port != 0 || http_tls_port != 0 || tls_replication; }
};

}  // namespace sava::config
