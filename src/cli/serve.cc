#include "cli/serve.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "base/alternate_stack.h"
#include "base/process_memory.h"
#include "base/version.h"
#include "config/config.h"
#include "server/server.h"

namespace sava::cli {

namespace {

constexpr std::string_view kHelp = R"(Usage: sava serve [FILE] [-] [--name value ...]

Starts the server. FILE is a configuration file as redis.conf; '-' reads one from standard input;
each --name gives a setting of that name and wins over the files. 'sava FILE' means the same.

  --port N             RESP on this port (6379); 0 for none
  --http-port N        HTTP on this port (7379); 0 for none
  --bind ADDRESS ...   addresses to listen on (127.0.0.1)
  --dir PATH           the data folder (./data)
  --threads N          threads that run commands; 0 for one per core (0)
  --appendonly yes     keep a log of all writes
  --requirepass WORD   what clients have to know
  --help               this text

All settings: docs/configuration.md, or sava.conf, the sample file. SIGTERM and SIGINT end the
server.

Examples:
  sava serve
  sava serve --port 7000 --threads 2 --dir /tmp/try
  sava serve my.conf --maxmemory 1gb --maxmemory-policy allkeys-lru

Exit code: 0 ended when asked to; 1 it could not start.
)";

// '.', '-', '*', '#': debug, verbose, notice, warning, as in Redis's log.
class LevelMark final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& line, const std::tm& /*time*/,
              spdlog::memory_buf_t& out) override {
    out.push_back(line.level == spdlog::level::trace   ? '.'
                  : line.level == spdlog::level::debug ? '-'
                  : line.level == spdlog::level::info  ? '*'
                                                       : '#');
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<LevelMark>();
  }
};

std::unique_ptr<spdlog::formatter> LogFormat() {
  auto format = std::make_unique<spdlog::pattern_formatter>();
  format->add_flag<LevelMark>('*').set_pattern("%P:M %d %b %Y %H:%M:%S.%e %* %v");
  return format;
}

// The log's own code would make directories that are missing.
base::Status CheckLogFile(const std::string& path) {
  if (path.empty()) return {};
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    return base::Error{fmt::format("Can't open the log file '{}': {}", path, strerror(errno))};
  }
  close(fd);
  return {};
}

base::Status OpenLog(const config::Settings& settings) {
  try {
    std::vector<spdlog::sink_ptr> sinks;
    if (settings.logfile.empty()) {
      if (!settings.daemonize) sinks.push_back(std::make_shared<spdlog::sinks::stdout_sink_mt>());
    } else {
      sinks.push_back(std::make_shared<spdlog::sinks::basic_file_sink_mt>(settings.logfile));
    }
    if (settings.syslog_enabled) {
      const int facility =
          settings.syslog_facility == config::SyslogFacility::kUser
              ? LOG_USER
              : LOG_LOCAL0 + ((static_cast<int>(settings.syslog_facility) - 1) << 3);
      sinks.push_back(std::make_shared<spdlog::sinks::syslog_sink_mt>(settings.syslog_ident,
                                                                      LOG_PID, facility, false));
    }
    auto logger = std::make_shared<spdlog::logger>("sava", sinks.begin(), sinks.end());
    logger->set_formatter(LogFormat());
    logger->flush_on(spdlog::level::trace);
    static constexpr spdlog::level::level_enum kLevels[] = {
        spdlog::level::trace, spdlog::level::debug, spdlog::level::info, spdlog::level::warn};
    logger->set_level(kLevels[static_cast<size_t>(settings.loglevel)]);
    spdlog::set_default_logger(logger);
    spdlog::set_level(kLevels[static_cast<size_t>(settings.loglevel)]);
  } catch (const spdlog::spdlog_ex& error) {
    return base::Error{fmt::format("Can't open the log file: {}", error.what())};
  }
  return {};
}

// A reason to end, once wherever somebody looks: in the log, and on the terminal if that is
// elsewhere.
void TellFatal(const config::Settings& settings, const std::string& reason) {
  spdlog::critical("{}", reason);
  if (!settings.logfile.empty() && !settings.daemonize) std::cerr << "sava: " << reason << "\n";
}

// Tells a supervisor (systemd's notify protocol) that the server is ready.
void TellSupervisor(config::Supervised supervised) {
  const char* path = getenv("NOTIFY_SOCKET");
  if (path == nullptr || supervised == config::Supervised::kNo ||
      supervised == config::Supervised::kUpstart) {
    return;
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t length = strlen(path);
  if (length == 0 || length >= sizeof address.sun_path) return;
  memcpy(address.sun_path, path, length);
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  constexpr char kReady[] = "STATUS=Ready to accept connections\nREADY=1\n";
  sendto(fd, kReady, sizeof kReady - 1, MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&address),
         static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length));
  close(fd);
}

void WritePidFile(const std::string& path) {
  FILE* file = fopen(path.c_str(), "we");
  if (file == nullptr) {
    spdlog::warn("Failed to write PID file '{}': {}", path, strerror(errno));
    return;
  }
  fprintf(file, "%d\n", static_cast<int>(getpid()));
  fclose(file);
}

// How the data is kept, in a few words.
std::string HowKept(const config::Settings& settings) {
  static constexpr std::string_view kSyncs[] = {"every second", "before each reply",
                                                "when the system likes"};
  const bool snapshots = !settings.save_rules.empty();
  if (!settings.appendonly && !snapshots) return "kept in memory only: lost at exit";
  std::string text;
  if (settings.appendonly) {
    text = fmt::format("log in {}/, synced {}", settings.appenddirname,
                       kSyncs[static_cast<size_t>(settings.appendfsync)]);
  }
  if (snapshots) {
    text += fmt::format("{}snapshots in {}", text.empty() ? "" : "; ", settings.dbfilename);
  }
  return text;
}

void Banner(server::Server& server) {
  const config::Settings& settings = server.config().settings();
  char here[4096];
  const char* where = getcwd(here, sizeof here);
  const auto list = [](const std::vector<std::string>& bind, int64_t port, const char* prefix) {
    std::string text;
    for (const std::string& address : bind) {
      if (port == 0) break;
      text += fmt::format("{}{}{}:{}", text.empty() ? "" : ", ", prefix, address, port);
    }
    return text;
  };
  std::string addresses = list(settings.bind, settings.port, "");
  if (!settings.unixsocket.empty()) {
    addresses += addresses.empty() ? "" : ", ";
    addresses += settings.unixsocket;
  }
  spdlog::info("Sava {} (RESP, redis_version {}), {} threads, PID: {}", base::kVersion,
               base::kRedisVersion, server.thread_count(), getpid());
  spdlog::info("RESP  {}", addresses);
  if (settings.tls_port != 0) {
    spdlog::info("TLS   {}", list(settings.bind, settings.tls_port, ""));
  }
  if (settings.http_tls_port != 0) {
    spdlog::info("HTTPS {}", list(settings.http_bind, settings.http_tls_port, "https://"));
  }
  spdlog::info("HTTP  {}", server.http_port() == 0
                               ? fmt::format("off (http-port {})", settings.http_port)
                               : list(settings.http_bind, settings.http_port, "http://"));
  spdlog::info("Data  {} ({})", where == nullptr ? settings.dir : where, HowKept(settings));
  if (settings.port != 0) {
    spdlog::info("Try   redis-cli -p {} SET greeting hello", settings.port);
  }
}

}  // namespace

int Serve(std::span<const std::string> args, const Program& program) {
  if (!args.empty() && (args[0] == "--help" || args[0] == "-h")) {
    fmt::print("{}", kHelp);
    return 0;
  }
  const base::AlternateStack stack;
  auto config = std::make_unique<config::Config>();
  if (base::Status status = config->ParseArgs(args, &std::cin); !status) {
    std::cerr << status.error() << "\n";
    return 1;
  }
  const config::Settings& settings = config->settings();
  if (base::Status status = CheckLogFile(settings.logfile); !status) {
    std::cerr << "sava: " << status.error() << "\n";
    return 1;
  }
  if (settings.daemonize) {
    if (daemon(1, 0) != 0) {
      perror("sava: daemonize");
      return 1;
    }
    base::RestartAllocatorThread();
  }
  if (base::Status status = OpenLog(settings); !status) {
    std::cerr << "sava: " << status.error() << "\n";
    return 1;
  }
  const std::string pidfile =
      settings.pidfile.empty() && settings.daemonize ? "/var/run/sava.pid" : settings.pidfile;
  char here[4096];
  const std::string start_dir = getcwd(here, sizeof here) != nullptr ? here : ".";
  server::Server server(std::move(config));
  server.set_executable(program.path);
  server.set_program(program.name);
  if (base::Status status = server.Open(); !status) {
    TellFatal(settings, status.error());
    return 1;
  }
  const std::string pid_path =
      pidfile.empty() || pidfile[0] == '/' ? pidfile : start_dir + "/" + pidfile;
  if (!pid_path.empty()) WritePidFile(pid_path);
  Banner(server);
  spdlog::info("Server initialized");
  const config::Supervised supervised = settings.supervised;
  server.Start();
  base::Result<bool> loaded = server.WaitLoaded();
  if (!loaded || !*loaded) {
    if (!loaded) TellFatal(settings, loaded.error());
    if (!pid_path.empty()) unlink(pid_path.c_str());
    spdlog::shutdown();
    _exit(loaded ? 0 : 1);  // nothing was changed: there is nothing to be put in order
  }
  spdlog::info("Ready to accept connections");
  TellSupervisor(supervised);
  const int code = server.Wait();
  if (!pid_path.empty()) unlink(pid_path.c_str());
  return code;
}

}  // namespace sava::cli
