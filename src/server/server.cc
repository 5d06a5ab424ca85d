#include "server/server.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

#include "admin/crash_report.h"
#include "admin/info.h"
#include "base/if_memory.h"
#include "base/page_pool.h"
#include "base/spare_memory.h"
#include "commands/idna.h"
#include "config/proc_title.h"
#include "engine/client_list.h"
#include "engine/clients.h"
#include "engine/engine_context.h"
#include "front/families.h"
#include "front/loops.h"
#include "persistence/families.h"
#include "persistence/persistence.h"
#include "replication/families.h"
#include "replication/follower.h"
#include "replication/master.h"
#include "replication/migration.h"
#include "script/scripts.h"
#include "server/families.h"
#include "types/value/type_registry.h"

namespace sava::server {

static_assert(static_cast<uint32_t>(config::kNotifyNewKey) == commands::kNotifyNew);
static_assert(static_cast<uint32_t>(config::kNotifyKeyMiss) == commands::kNotifyKeyMiss);
static_assert(static_cast<uint32_t>(config::kNotifyAll) == commands::kNotifyAll);

namespace {

// How often INFO is kept for a crash report.
constexpr unsigned kTicksPerInfo = 10;

// Written by signal handlers; the read end is Wait's.
std::atomic<int> signal_pipe{-1};

void OnSignal(int number) {
  const int fd = signal_pipe.load();
  const auto byte = static_cast<char>(number);
  if (fd >= 0 && write(fd, &byte, 1) < 0) {
  }
}

void InstallSignals() {
  struct sigaction action {};
  action.sa_handler = OnSignal;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
  sigaction(SIGHUP, &action, nullptr);
  sigaction(SIGXFSZ, &action, nullptr);  // a file that may not grow is an error of its write
}

constexpr std::string_view kOomScoreRefused = "oom-score-adj: the system refuses the score";

std::string RandomHex(size_t digits) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(digits, '0');
  std::string bytes(digits, '\0');
  base::SecureRandom(bytes.data(), bytes.size());
  for (size_t i = 0; i < digits; ++i) text[i] = kDigits[static_cast<unsigned char>(bytes[i]) & 15];
  return text;
}

}  // namespace

Server::Server(std::unique_ptr<config::Config> config)
    : config_(std::move(config)),
      info_(front::kClientsInfo, persistence::kPersistenceInfo, replication::kReplicationInfo),
      log_path_(config_->settings().logfile.empty()
                    ? std::string()
                    : std::filesystem::absolute(config_->settings().logfile).string()),
      start_folder_(std::filesystem::current_path().string()) {
  base::InstallSpareMemory();
  commands::InstallIdna();
  for (const auto family : AllFamilies()) table_.Add(family);
  config::Settings& settings = config_->settings();
  facts_.threads = settings.threads > 0 ? static_cast<size_t>(settings.threads)
                                        : std::max(1U, std::thread::hardware_concurrency());
  engine::Engine::Options options;
  options.lanes = facts_.threads;
  engine_ = std::make_unique<engine::Engine>(options, &settings, &table_);
  engine_->set_host(this);
  scripts_ = std::make_unique<script::Scripts>(engine_.get());
  engine_->set_scripting(scripts_.get());
  persistence_ = std::make_unique<persistence::Persistence>(engine_.get());
  persistence_->Register(&engine_->libraries());
  master_ = std::make_unique<replication::Master>(engine_.get(), persistence_.get());
  follower_ =
      std::make_unique<replication::Follower>(engine_.get(), persistence_.get(), master_.get());
  master_->set_following(follower_.get());
  persistence_->Register(follower_.get());
  migrations_ = std::make_unique<replication::Migrations>(engine_.get());
  facts_.start_unix_ms = base::Clock::System().WallMillis();
  LoadLimits();
  monitor_ = std::make_unique<admin::ProcessMonitor>(engine_.get(), &facts_, [this] {
    const storage::AofLog* const log = persistence_->log();
    return (log == nullptr ? 0 : log->buffered()) + engine_->journal().memory() +
           master_->UncountedBytes();
  });
  facts_.run_id = RandomHex(40);
  facts_.http_port = [this] { return http_port(); };
  facts_.client_count = [this] { return client_count(); };
  facts_.loop_clients = [this] {
    return loops_ == nullptr ? std::string() : loops_->ClientCounts();
  };
  facts_.replication = [this] {
    engine::ReplicationFigures figures = master_->SharedFigures();
    figures.input_bytes = follower_->received();
    return figures;
  };
  facts_.ms_to_end = [this]() -> int64_t {
    const int64_t end = end_ms_.load();
    return end == 0 ? -1 : std::max<int64_t>(0, end - engine_->clock().WallMillis());
  };
  facts_.change_history = [this] { master_->stream().ChangeId(); };
  LendParts();
}

void Server::LendParts() {
  commands::Parts& to = parts();
  to.Put(this);
  to.Put<front::FrontHost>(this);
  to.Put(&facts_);
  to.Put(&info_);
  to.Put(monitor_.get());
  to.Put(&engine_->users());
  to.Put(&engine_->acl_log());
  to.Put(scripts_.get());
  to.Put(config_.get());
  to.Put<const config::Settings>(&config_->settings());
  to.Put(persistence_.get());
  to.Put<engine::Reloader>(persistence_.get());
  to.Put(follower_.get());
  to.Put(master_.get());
  to.Put(migrations_.get());
  config_->OnResetStats([this] {
    engine::ResetStats(*engine_);
    engine_->acl_log().ResetDenied();
    master_->ResetFigures();
    follower_->ResetReceived();
  });
}

Server::~Server() {
  base::PagePool::Shared().set_helper(nullptr);
  persistence_->OnDurable(nullptr);
  follower_->Suspend();
  // A migration that ends tells its loop.
  if (loops_ != nullptr) loops_->Stop([this] { migrations_.reset(); });
  loops_.reset();
  migrations_.reset();
  master_->StopStream();
  persistence_.reset();
  follower_.reset();
  master_.reset();
  scripts_.reset();
  engine_.reset();
  signal_pipe.store(-1);
  for (const int fd : shutdown_pipe_) {
    if (fd >= 0) close(fd);
  }
}

void Server::ApplyHooks() {
  config_->AskWhetherLoading([this] { return engine_->admission().loading(); });
  config_->OnChange(
      {"proto-max-bulk-len", "client-query-buffer-limit", "client-output-buffer-limit", "timeout",
       "tcp-keepalive", "hz", "shutdown-timeout", "shutdown-on-sigint", "shutdown-on-sigterm",
       "protected-mode", "appendonly", "appendfsync", "maxmemory", "maxmemory-clients"},
      [this](const config::Settings&) {
        LoadLimits();
        return base::Status();
      });
  // What clients take that have been idle since counts, too.
  config_->OnChange({"maxmemory", "maxmemory-clients"}, [this](const config::Settings&) {
    if (loops_ != nullptr && limits_.client_memory.load() > 0) engine::ChargeClients(*engine_);
    return base::Status();
  });
  config_->OnChange({"requirepass"}, [this](const config::Settings& now) {
    engine_->users().SetDefaultPassword(now.requirepass);
    return base::Status();
  });
  config_->OnChange({"maxclients"}, [this](const config::Settings& now) -> base::Status {
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    const auto wanted = static_cast<rlim_t>(now.maxclients) + 64;
    const rlim_t allowed = files.rlim_cur;
    if (files.rlim_cur < wanted) {
      files.rlim_cur = wanted;
      if (files.rlim_max < wanted) files.rlim_max = wanted;
      if (setrlimit(RLIMIT_NOFILE, &files) != 0) {
        return base::Error{
            fmt::format("The operating system is not able to handle the specified number of "
                        "clients, try with {}",
                        allowed > 64 ? allowed - 64 : 1)};
      }
    }
    LoadLimits();
    return {};
  });
  const auto listen_again = [this](std::string_view trouble) {
    return [this, trouble](const config::Settings& now) -> base::Status {
      if (loops_ == nullptr) return {};
      const base::Status status = loops_->Listen(now);
      return status ? status : base::Error{fmt::format("{} ({})", trouble, status.error())};
    };
  };
  config_->OnChange({"tls-port",
                     "http-tls-port",
                     "tls-cert-file",
                     "tls-key-file",
                     "tls-key-file-pass",
                     "tls-client-cert-file",
                     "tls-client-key-file",
                     "tls-client-key-file-pass",
                     "tls-dh-params-file",
                     "tls-ca-cert-file",
                     "tls-ca-cert-dir",
                     "tls-auth-clients",
                     "tls-replication",
                     "tls-protocols",
                     "tls-ciphers",
                     "tls-ciphersuites",
                     "tls-prefer-server-ciphers",
                     "tls-session-caching",
                     "tls-session-cache-size",
                     "tls-session-cache-timeout"},
                    [this](const config::Settings& now) -> base::Status {
                      if (UseTls(now)) return {};
                      return base::Error{"Unable to update TLS configuration. Check server logs."};
                    });
  const auto come_from = [this](const config::Settings&) {
    follower_->ComeFrom(config_->Text("bind-source-addr"));
    return base::Status();
  };
  static_cast<void>(come_from(config_->settings()));
  config_->OnChange({"bind-source-addr"}, come_from);
  config_->OnChange({"port", "tls-port", "http-tls-port"},
                    listen_again("Unable to listen on this port. Check server logs."));
  config_->OnChange({"bind"}, listen_again("Failed to bind to specified addresses."));
  config_->OnChange({"proc-title-template", "port", "tls-port", "bind"},
                    [this](const config::Settings& now) {
                      ShowTitle(now);
                      return base::Status();
                    });
  config_->OnChange({"oom-score-adj", "oom-score-adj-values"},
                    [this](const config::Settings& now) { return ApplyOomScore(now); });
  config_->OnChange({"dir"}, [](const config::Settings& now) -> base::Status {
    if (chdir(now.dir.c_str()) != 0) return base::Error{strerror(errno)};
    return {};
  });
  config_->OnChange({"ratelimit-enabled", "ratelimit-default", "ratelimit-user", "ratelimit-ip",
                     "ratelimit-exempt", "ratelimit-key-prefix"},
                    [this](const config::Settings& now) -> base::Status {
                      if (base::Status status = engine_->limiter().Check(now); !status) {
                        return status;
                      }
                      if (const std::string name = UnknownLimitedUser(); !name.empty()) {
                        return base::Error{fmt::format("there is no user '{}'", name)};
                      }
                      engine_->limiter().Configure(now);
                      return {};
                    });
  config_->OnChange(
      {"save", "stop-writes-on-bgsave-error", "appendonly", "appendfsync", "aof-ring",
       "aof-timestamp-enabled", "dir", "dbfilename"},
      [this](const config::Settings& now) { return persistence_->SettingsChanged(now); });
  config_->OnChange({"min-replicas-to-write", "min-replicas-max-lag", "repl-backlog-size",
                     "client-output-buffer-limit"},
                    [this](const config::Settings& now) {
                      master_->SettingsChanged(now);
                      return base::Status();
                    });
  config_->OnChange({"crash-log-enabled"}, [this](const config::Settings& now) {
    now.crash_log_enabled ? admin::InstallCrashReport(log_path_) : admin::RemoveCrashReport();
    return base::Status();
  });
  config_->OnChange({"loglevel"}, [](const config::Settings& now) -> base::Status {
    static constexpr spdlog::level::level_enum kLevels[] = {
        spdlog::level::trace, spdlog::level::debug, spdlog::level::info, spdlog::level::warn};
    spdlog::set_level(kLevels[static_cast<size_t>(now.loglevel)]);
    return {};
  });
}

bool Server::UseTls(const config::Settings& settings) {
  base::Result<front::Tls> tls = front::MakeTls(settings, start_folder_);
  if (!tls) {
    spdlog::warn("{}", tls.error());
    return false;
  }
  follower_->UseTls(tls->client);
  migrations_->UseTls(tls->client);
  loops_->UseTls(std::move(*tls));
  return true;
}

// HTTP may not have been asked for; then it is no reason not to start that another server has its
// port.
base::Status Server::Listen() {
  base::Status status = loops_->Listen(config_->settings());
  if (status || config_->GivenAtStart("http-port") || config_->GivenAtStart("http-bind")) {
    return status;
  }
  const std::string reason = status.error();
  loops_->WithoutHttp();
  status = loops_->Listen(config_->settings());
  if (status) spdlog::warn("HTTP is off: {}", reason);
  return status;
}

int64_t Server::http_port() const {
  return loops_ != nullptr && loops_->http() ? config_->settings().http_port : 0;
}

void Server::ShowTitle(const config::Settings& settings) const {
  if (!settings.set_proc_title) return;
  config::ShowProcTitle(config::ProcTitle(settings, program_, config_->config_file()));
}

// The machine may allow fewer open files than maxclients needs: serve those it allows.
base::Status Server::OpenFiles() {
  config::Settings& settings = config_->settings();
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  const auto wanted = static_cast<rlim_t>(settings.maxclients) + 64;
  if (files.rlim_cur < wanted) {
    files.rlim_cur = std::min(wanted, files.rlim_max);
    setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < wanted) {
      settings.maxclients = files.rlim_cur > 64 ? static_cast<int64_t>(files.rlim_cur - 64) : 1;
      spdlog::warn("The system allows {} open files: maxclients lowered to {}.", files.rlim_cur,
                   settings.maxclients);
      LoadLimits();
    }
  }
  if (settings.dir.empty()) return {};
  if (mkdir(settings.dir.c_str(), 0777) != 0 && errno != EEXIST) {
    return base::Error{
        fmt::format("Can't create the data directory '{}': {}", settings.dir, strerror(errno))};
  }
  if (chdir(settings.dir.c_str()) != 0) {
    return base::Error{fmt::format("Can't chdir to '{}': {}", settings.dir, strerror(errno))};
  }
  char here[4096];
  if (getcwd(here, sizeof here) != nullptr) settings.dir = here;
  return {};
}

// The users decide whether clients need a password.
void Server::LoadLimits() { limits_.Load(config_->settings(), engine_->users().open()); }

// The second of the values is that of a replica.
base::Status Server::ApplyOomScore(const config::Settings& settings) {
  scored_as_replica_ = engine_->role().replica();
  const size_t role = scored_as_replica_ ? 1 : 0;
  return oom_score_.Apply(settings.oom_score_adj, settings.oom_score_adj_values[role]);
}

base::Status Server::RenameCommands() {
  for (const auto& [name, other] : config_->settings().renamed_commands) {
    switch (table_.Rename(name, other)) {
      case commands::CommandTable::Renamed::kDone:
        break;
      case commands::CommandTable::Renamed::kUnknown:
        return base::Error{fmt::format("No such command in rename-command: '{}'", name)};
      case commands::CommandTable::Renamed::kTaken:
        return base::Error{
            fmt::format("Target command name already exists in rename-command: '{}'", other)};
    }
  }
  return {};
}

base::Status Server::OpenUsers() {
  access::Users& users = engine_->users();
  if (base::Status status = users.Open(); !status) return status;
  users.AddListener([this](uint64_t) { LoadLimits(); });
  LoadLimits();
  config_->OnRewriteUsers(
      [&users] { return users.has_file() ? std::vector<std::string>() : users.ConfigLines(); });
  const std::string unknown = UnknownLimitedUser();
  if (!unknown.empty()) {
    spdlog::warn("ratelimit-user {}: there is no such user; the rule waits for one.", unknown);
  }
  return {};
}

// The first user with a rule of the limiter that does not exist; empty: all do.
std::string Server::UnknownLimitedUser() const {
  for (const config::UserLimit& limit : config_->settings().ratelimit_users) {
    if (engine_->users().Find(limit.user) == nullptr) return limit.user;
  }
  return {};
}

base::Status Server::Open() {
  if (base::Status status = RenameCommands(); !status) return status;
  if (base::Status status = OpenFiles(); !status) return status;
  if (base::Status status = engine_->limiter().Check(config_->settings()); !status) {
    return base::Error{"ratelimit-exempt: " + status.error()};
  }
  if (base::Status status = OpenUsers(); !status) return status;
  engine_->limiter().Configure(config_->settings());
  if (base::Status status = persistence_->LockFiles(config_->settings()); !status) return status;
  if (pipe(shutdown_pipe_) != 0) return base::Error{strerror(errno)};
  base::LimitHugePages(config_->settings().disable_thp);
  const config::Settings& settings = config_->settings();
  if (!ApplyOomScore(settings)) spdlog::warn(kOomScoreRefused);
  loops_ = std::make_unique<front::Loops>(this, engine_.get(), &limits_);
  if (!UseTls(settings)) {
    return base::Error{"Failed to configure TLS. Check logs for more info."};
  }
  if (base::Status status = Listen(); !status) return status;
  if (settings.port == 0 && settings.tls_port == 0 && settings.unixsocket.empty() &&
      http_port() == 0 && settings.http_tls_port == 0) {
    return base::Error{"Configured to not listen anywhere, exiting."};
  }
  signal_pipe.store(shutdown_pipe_[1]);
  InstallSignals();
  if (settings.crash_log_enabled) admin::InstallCrashReport(log_path_);
  ApplyHooks();
  ShowTitle(config_->settings());
  // Memory that all values of a type share must not be counted as that of the first one.
  for (const types::SharedStore& store : types::AllTypes().shared_stores()) store.count();
  engine_->memory().set_ceiling(base::MemoryCeiling());
  Tick();
  monitor_->NoteStartup();
  return {};
}

void Server::Start() {
  persistence_->OnDurable([this] {
    master_->Kept();
    loops_->WakeHolders();
  });
  base::PagePool::Shared().set_helper(
      [this] { growing_.Run([] { base::PagePool::Shared().Prepare(); }, 0); });
  persistence_->Start([this] {
    if (write(shutdown_pipe_[1], &kLoaded, 1) < 0) {
    }
  });
  loops_->Start();
}

base::Result<bool> Server::WaitLoaded() {
  while (true) {
    pollfd asked{shutdown_pipe_[0], POLLIN, 0};
    const int ready = poll(&asked, 1, 1000);
    if (ready == 0) spdlog::info("{}", persistence_->ProgressLine());
    if (ready <= 0) continue;
    char byte = 0;
    if (!ReadRequest(&byte)) return false;
    if (byte != kLoaded) {
      spdlog::warn("Received shutdown signal during loading, exiting now.");
      return false;
    }
    const std::string& error = persistence_->load_error();
    if (!error.empty()) return base::Error{error};
    follower_->Start();
    return true;
  }
}

bool Server::FlushedAll(uint64_t changes) { return persistence_->FlushedAll(changes); }

void Server::AnswerWhenSaved(const engine::Client& client, const std::string& reply) {
  persistence_->AnswerWhenSaved({client.lane, client.id, client.wait.token}, reply);
}

// Memory and journal may differ: the log needs a new base before anything else counts as kept, and
// replicas need a new copy.
void Server::OutOfMemory() {
  master_->NoteLost();
  if (persistence_->barrier() == nullptr) return;
  persistence_->log()->NoteLost(engine_->journal().next_ticket());
  engine_->journal().Nudge();
}

// ---- for the loops ----

size_t Server::client_count() const { return loops_ == nullptr ? 0 : loops_->client_count(); }

void Server::PrepareThread() {
  // The allocator's cache for the thread must not be counted as memory of its first keys.
  base::WarmAllocator();
}

const journal::Barrier* Server::barrier() const { return persistence_->barrier(); }

void Server::NoteRefused(const engine::Client& client, const std::string& user, int64_t now_ms) {
  access::AclLogEntry entry;
  entry.context = "toplevel";
  entry.object = "HTTP";
  entry.username = user;
  entry.client_info = engine::ClientLine(client, now_ms);
  engine_->acl_log().Add(std::move(entry), now_ms,
                         static_cast<size_t>(engine_->settings().acllog_max_len));
}

// ---- memory ----

void Server::Tick() {
  base::RefillSpareMemory();
  monitor_->Tick();
  if (engine_->role().replica() != scored_as_replica_ && !ApplyOomScore(config_->settings())) {
    spdlog::warn(kOomScoreRefused);
  }
  if (admin::kCrashReports && ++ticks_ % kTicksPerInfo == 1 &&
      engine_->settings().crash_log_enabled) {
    admin::KeepInfoForCrash(admin::InfoText(*engine_, *engine_->lanes()[0], {}));
  }
  base::IfMemory([this] {
    persistence_->Tick();
    master_->Tick();
    migrations_->Tick();
  });  // else the next time
}

}  // namespace sava::server
