// Parsing of `sava cli`'s command line.
#include "cli/client_options.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "cli/suggest.h"

namespace sava::cli {
namespace {

constexpr std::string_view kUsage =
    R"(Usage: sava cli [OPTION ...] [COMMAND [ARGUMENT ...]]

With a command: runs it, prints the reply, exits 0, or 1 if it failed.
Without: reads commands from the terminal, or one a line from standard input.

  -h HOST        server's address (127.0.0.1)
  -p PORT        server's port (6379)
  -s SOCKET      path of the server's Unix socket, instead of host and port
  -a PASSWORD    authenticate; the environment's REDISCLI_AUTH does the same unseen by ps
  --user NAME    authenticate as this user (needs -a)
  -n DB          use this database (0)
  --tls          encrypt the connection; the server's certificate is checked, not its name
  --cacert FILE  whom that certificate has to come from; without it, and without
  --cacertdir DIR, those whom the system trusts
  --cert FILE    show the server this certificate
  --key FILE     its private key
  --sni HOST     the name of the server to ask for
  --insecure     take whatever certificate the server shows
  --tls-ciphers LIST, --tls-ciphersuites LIST
                 ciphers to allow, up to TLS 1.2 and of TLS 1.3
  -2, -3         speak RESP2 or RESP3
  -x             take the command's last argument from standard input
  --eval FILE    run the Lua script in the file; keys, a comma and arguments follow
  -r N           run the command N times, -1 for ever
  -i SECONDS     wait between the runs of -r; fractions are fine
  --json         print replies as JSON (and speak RESP3 unless -2 is given)
  --raw          print replies without types and quotes, as if not to a terminal
  --no-raw       print replies with types and quotes even if not to a terminal
  --help         this text

At the prompt: Tab completes, grey text shows the arguments to come, help COMMAND
explains one, quit leaves. History: ~/.sava_history, or the file SAVA_HISTORY names.

Examples:
  sava cli -p 7000 SET greeting hello
  sava cli --json HGETALL user:1
  sava cli -r 10 -i 0.5 INFO stats
  sava cli --eval compare-and-delete.lua lock:1 , token
)";

struct Setting {
  std::string_view name;
  base::Status (*apply)(const std::string& value, Options* options);
};

base::Status Refuse(std::string_view name, std::string_view wanted, std::string_view value) {
  return base::Error{fmt::format("{} wants {}, not '{}'", name, wanted, value)};
}

base::Status SetHost(const std::string& value, Options* options) {
  options->endpoint.host = value;
  return {};
}

base::Status SetPort(const std::string& value, Options* options) {
  int64_t port = 0;
  if (!base::ParseInt(value, &port) || port < 1 || port > 65535) {
    return Refuse("-p", "a port from 1 to 65535", value);
  }
  options->endpoint.port = static_cast<int>(port);
  return {};
}

base::Status SetSocket(const std::string& value, Options* options) {
  options->endpoint.socket = value;
  return {};
}

base::Status SetScript(const std::string& value, Options* options) {
  options->script = value;
  return {};
}

base::Status SetPassword(const std::string& value, Options* options) {
  options->password = value;
  return {};
}

base::Status SetUser(const std::string& value, Options* options) {
  options->user = value;
  return {};
}

base::Status SetDatabase(const std::string& value, Options* options) {
  if (!base::ParseInt(value, &options->database) || options->database < 0) {
    return Refuse("-n", "a database number", value);
  }
  return {};
}

base::Status SetRepeat(const std::string& value, Options* options) {
  if (!base::ParseInt(value, &options->repeat) || options->repeat < -1) {
    return Refuse("-r", "a number of runs, or -1", value);
  }
  return {};
}

base::Status SetInterval(const std::string& value, Options* options) {
  double& seconds = options->interval_seconds;
  if (!base::ParseDouble(value, &seconds) || !std::isfinite(seconds) || seconds < 0 ||
      seconds > 1e9) {
    return Refuse("-i", "seconds", value);
  }
  return {};
}

template <std::string net::TlsOptions::*kMember>
base::Status SetTls(const std::string& value, Options* options) {
  options->endpoint.tls_options.*kMember = value;
  return {};
}

base::Status SetSni(const std::string& value, Options* options) {
  options->endpoint.sni = value;
  return {};
}

using Tls = net::TlsOptions;
constexpr Setting kSettings[] = {
    {"--cacert", SetTls<&Tls::ca_file>},
    {"--cacertdir", SetTls<&Tls::ca_dir>},
    {"--cert", SetTls<&Tls::certificate>},
    {"--key", SetTls<&Tls::key>},
    {"--tls-ciphers", SetTls<&Tls::ciphers>},
    {"--tls-ciphersuites", SetTls<&Tls::ciphersuites>},
    {"--sni", SetSni},
    {"-h", SetHost},
    {"-p", SetPort},
    {"-s", SetSocket},
    {"-a", SetPassword},
    {"--user", SetUser},
    {"--pass", SetPassword},
    {"-n", SetDatabase},
    {"-r", SetRepeat},
    {"-i", SetInterval},
    {"--eval", SetScript},
};

bool SetFlag(std::string_view word, Options* options) {
  if (word == "-2") {
    options->protocol = 2;
  } else if (word == "-3") {
    options->protocol = 3;
  } else if (word == "--tls") {
    options->endpoint.tls = true;
  } else if (word == "--insecure") {
    options->endpoint.insecure = true;
  } else if (word == "-x") {
    options->last_argument_from_stdin = true;
  } else if (word == "--json") {
    options->output = OutputMode::kJson;
  } else if (word == "--raw") {
    options->output = OutputMode::kRaw;
  } else if (word == "--no-raw") {
    options->output = OutputMode::kTerminal;
  } else if (word == "--help") {
    options->help = true;
  } else {
    return false;
  }
  return true;
}

const Setting* FindSetting(std::string_view word) {
  for (const Setting& setting : kSettings) {
    if (setting.name == word) return &setting;
  }
  return nullptr;
}

std::string UnknownOption(std::string_view word) {
  std::vector<std::string_view> known = {"-2",       "-3",    "-x",         "--json", "--raw",
                                         "--no-raw", "--tls", "--insecure", "--help"};
  for (const Setting& setting : kSettings) known.push_back(setting.name);
  // Of one letter every other one is as near.
  const std::string hint = word.size() > 2 ? DidYouMean(word, known) : "";
  return fmt::format("unknown option '{}'{} 'sava cli --help' lists them.", word,
                     hint.empty() ? "." : hint);
}

}  // namespace

std::string Endpoint::Text() const {
  if (!socket.empty()) return socket;
  if (host.find(':') != std::string::npos) return fmt::format("[{}]:{}", host, port);
  return fmt::format("{}:{}", host, port);
}

base::Result<Options> ParseOptions(const std::vector<std::string>& words) {
  Options options;
  size_t i = 0;
  for (; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() < 2 || word.front() != '-') break;
    if (word == "--") {
      ++i;
      break;
    }
    if (SetFlag(word, &options)) continue;
    const Setting* setting = FindSetting(word);
    if (setting == nullptr) {
      return base::Error{UnknownOption(word)};
    }
    if (i + 1 == words.size()) return base::Error{fmt::format("{} wants a value", word)};
    const base::Status status = setting->apply(words[++i], &options);
    if (!status.ok()) return base::Error{status.error()};
  }
  options.command.assign(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
  if (options.help) return options;
  if (!options.user.empty() && !options.password) return base::Error{"--user needs -a"};
  const net::TlsOptions& tls = options.endpoint.tls_options;
  if (tls.certificate.empty() != tls.key.empty())
    return base::Error{"--cert and --key go together"};
  if (options.last_argument_from_stdin && options.command.empty() && options.script.empty()) {
    return base::Error{"-x needs a command"};
  }
  return options;
}

std::string_view UsageText() { return kUsage; }

}  // namespace sava::cli
