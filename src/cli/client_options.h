// The command line of `sava cli`. Options end at the first word that is none; that word and
// everything behind it are the command, verbatim.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/client_format.h"
#include "net/tls_context.h"

namespace sava::cli {

// Where the server listens: a Unix socket if `socket` is not empty, else TCP.
struct Endpoint {
  std::string host = "127.0.0.1";
  int port = 6379;
  std::string socket;
  bool tls = false;
  net::TlsOptions tls_options;
  bool insecure = false;  // whatever certificate the server shows
  std::string sni;        // the name of the server that is asked for

  // "127.0.0.1:6379", "[::1]:6379" or the socket's path.
  std::string Text() const;
};

struct Options {
  Endpoint endpoint;
  std::string user;
  std::optional<std::string> password;
  int64_t database = 0;
  int protocol = 0;  // 2 or 3 as asked for, 0 if not asked: RESP2, but RESP3 for JSON where known
  bool last_argument_from_stdin = false;
  std::string script;  // a file, to be run by EVAL; the command is its keys, a comma, its arguments
  int64_t repeat = 1;  // -1: until stopped
  double interval_seconds = 0;
  std::optional<OutputMode> output;  // as asked for; else by whether the output is a terminal
  bool help = false;
  std::vector<std::string> command;
};

// `words` are the arguments after "cli".
base::Result<Options> ParseOptions(const std::vector<std::string>& words);

std::string_view UsageText();

}  // namespace sava::cli
