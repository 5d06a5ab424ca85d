// The TLS settings, made ready for connections.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "config/settings.h"
#include "net/tls_context.h"

namespace sava::front {

struct Tls {
  std::shared_ptr<const net::TlsContext> server;  // nullptr: no client may connect by TLS
  // For connections this server opens to other servers; none: they are plain. The other side has
  // to show a certificate.
  std::shared_ptr<const net::TlsContext> client;
  net::PeerCheck clients = net::PeerCheck::kRequired;
};

// Reads the files. A name that is relative is looked for in the folder in which the server was
// started, then in the data folder. The error is a line for the log.
base::Result<Tls> MakeTls(const config::Settings& settings, const std::string& start_folder);

}  // namespace sava::front
