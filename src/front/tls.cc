#include "front/tls.h"

#include <filesystem>
#include <system_error>

namespace sava::front {

namespace {

net::PeerCheck CheckOf(config::TlsAuth auth) {
  switch (auth) {
    case config::TlsAuth::kNo:
      return net::PeerCheck::kNone;
    case config::TlsAuth::kOptional:
      return net::PeerCheck::kIfShown;
    case config::TlsAuth::kYes:
      break;
  }
  return net::PeerCheck::kRequired;
}

// Where the files are.
void Find(const std::string& start_folder, net::TlsOptions* options) {
  for (std::string* name : {&options->certificate, &options->key, &options->ca_file,
                            &options->ca_dir, &options->dh_params}) {
    const std::filesystem::path path = *name;
    if (path.empty() || path.is_absolute()) continue;
    std::error_code error;
    const std::filesystem::path there = start_folder / path;
    if (std::filesystem::exists(there, error)) *name = there.string();
  }
}

net::TlsOptions ServerOptions(const config::Settings& settings) {
  net::TlsOptions options;
  options.certificate = settings.tls_cert_file;
  options.key = settings.tls_key_file;
  options.key_pass = settings.tls_key_file_pass;
  options.ca_file = settings.tls_ca_cert_file;
  options.ca_dir = settings.tls_ca_cert_dir;
  options.dh_params = settings.tls_dh_params_file;
  options.protocols = settings.tls_protocols;
  options.ciphers = settings.tls_ciphers;
  options.ciphersuites = settings.tls_ciphersuites;
  options.prefers_own_order = settings.tls_prefer_server_ciphers;
  options.caches_sessions = settings.tls_session_caching;
  options.cache_size = settings.tls_session_cache_size;
  options.cache_seconds = settings.tls_session_cache_timeout;
  return options;
}

net::TlsOptions ClientOptions(const config::Settings& settings) {
  net::TlsOptions options = ServerOptions(settings);
  if (settings.tls_client_cert_file.empty()) return options;
  options.certificate = settings.tls_client_cert_file;
  options.key = settings.tls_client_key_file;
  options.key_pass = settings.tls_client_key_file_pass;
  return options;
}

base::Status Complete(const config::Settings& settings) {
  if (settings.tls_cert_file.empty()) return base::Error{"No tls-cert-file configured!"};
  if (settings.tls_key_file.empty()) return base::Error{"No tls-key-file configured!"};
  const bool asks = settings.tls_auth_clients != config::TlsAuth::kNo || settings.tls_replication;
  if (asks && settings.tls_ca_cert_file.empty() && settings.tls_ca_cert_dir.empty()) {
    return base::Error{
        "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-cluster, "
        "tls-replication or tls-auth-clients are enabled!"};
  }
  return {};
}

}  // namespace

base::Result<Tls> MakeTls(const config::Settings& settings, const std::string& start_folder) {
  Tls made;
  made.clients = CheckOf(settings.tls_auth_clients);
  if (!settings.uses_tls()) return made;
  if (base::Status status = Complete(settings); !status) return base::Error{status.error()};
  net::TlsOptions options = ServerOptions(settings);
  Find(start_folder, &options);
  auto server = net::TlsContext::Make(net::TlsRole::kServer, options);
  if (!server) return base::Error{server.error()};
  made.server = std::move(*server);
  if (!settings.tls_replication) return made;
  options = ClientOptions(settings);
  Find(start_folder, &options);
  auto client = net::TlsContext::Make(net::TlsRole::kClient, options);
  if (!client) return base::Error{client.error()};
  made.client = std::move(*client);
  return made;
}

}  // namespace sava::front
