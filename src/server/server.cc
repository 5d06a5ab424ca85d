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

#include "base/if_memory.h"
#include "admin/crash_report.h"
#include "admin/info.h"
#include "base/page_pool.h"
#include "engine/client_list.h"
#include "engine/clients.h"
#include "engine/engine_context.h"
#include "front/families.h"
#include "front/loops.h"
#include "persistence/families.h"
#include "persistence/persistence.h"
#include "server/families.h"
#include "server/idna.h"
#include "server/proc_title.h"
#include "types/collections/shared_texts.h"

namespace sava::server {

static_assert(static_cast<uint32_t>(config::kNotifyNewKey) == commands::kNotifyNew);
static_assert(static_cast<uint32_t>(config::kNotifyKeyMiss) == commands::kNotifyKeyMiss);
static_assert(static_cast<uint32_t>(config::kNotifyAll) == commands::kNotifyAll);

namespace {

// A byte of the shutdown pipe besides the numbers of signals.
constexpr char kAsked = 0;     // by RequestShutdown
constexpr char kLoaded = 127;  // by the keeper

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
      info_(front::kClientsInfo, persistence::kPersistenceInfo),
      log_path_(config_->settings().logfile.empty()
                    ? std::string()
                    : std::filesystem::absolute(config_->settings().logfile).string()) {
  InstallIdna();
  for (const auto family : AllFamilies()) table_.Add(family);
  config::Settings& settings = config_->settings();
  facts_.threads = settings.threads > 0 ? static_cast<size_t>(settings.threads)
                                        : std::max(1U, std::thread::hardware_concurrency());
  engine::Engine::Options options;
  options.lanes = facts_.threads;
  engine_ = std::make_unique<engine::Engine>(options, &settings, &table_);
  engine_->set_host(this);
  persistence_ = std::make_unique<persistence::Persistence>(engine_.get());
  facts_.start_unix_ms = base::Clock::System().WallMillis();
  limits_.Load(settings);
  monitor_ = std::make_unique<admin::ProcessMonitor>(engine_.get(), [this] {
    const storage::AofLog* const log = persistence_->log();
    return log == nullptr ? 0 : log->buffered();
  });
  facts_.run_id = RandomHex(40);
  facts_.http_port = [this] { return http_port(); };
  facts_.client_count = [this] { return client_count(); };
  facts_.loop_clients = [this] {
    return loops_ == nullptr ? std::string() : loops_->ClientCounts();
  };
  LendParts();
}

void Server::LendParts() {
  commands::Parts& to = parts();
  to.Put(this);
  to.Put<front::FrontHost>(this);
  to.Put(&facts_);
  to.Put(&info_);
  to.Put(monitor_.get());
  to.Put(&acl_log_);
  to.Put(config_.get());
  to.Put<const config::Settings>(&config_->settings());
  to.Put(persistence_.get());
  to.Put<engine::Reloader>(persistence_.get());
  config_->OnResetStats([this] {
    engine::ResetStats(*engine_);
    acl_log_.ResetDenied();
  });
}

Server::~Server() {
  base::PagePool::Shared().set_helper(nullptr);
  persistence_->OnDurable(nullptr);
  if (loops_ != nullptr) loops_->Stop();
  loops_.reset();
  persistence_.reset();
  engine_.reset();
  signal_pipe.store(-1);
  for (const int fd : shutdown_pipe_) {
    if (fd >= 0) close(fd);
  }
}

void Server::ApplyHooks() {
  config_->OnChange(
      {"proto-max-bulk-len", "client-query-buffer-limit", "client-output-buffer-limit", "timeout",
       "tcp-keepalive", "hz", "shutdown-timeout", "shutdown-on-sigint", "shutdown-on-sigterm",
       "requirepass", "protected-mode", "appendonly", "appendfsync"},
      [this](const config::Settings& now) {
        limits_.Load(now);
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
    limits_.Load(now);
    return {};
  });
  const auto listen_again = [this](std::string_view trouble) {
    return [this, trouble](const config::Settings& now) -> base::Status {
      if (loops_ == nullptr) return {};
      const base::Status status = loops_->Listen(now);
      return status ? status : base::Error{fmt::format("{} ({})", trouble, status.error())};
    };
  };
  config_->OnChange({"port"}, listen_again("Unable to listen on this port. Check server logs."));
  config_->OnChange({"bind"}, listen_again("Failed to bind to specified addresses."));
  config_->OnChange({"proc-title-template", "port", "bind"}, [this](const config::Settings& now) {
    ShowTitle(now);
    return base::Status();
  });
  config_->OnChange({"oom-score-adj", "oom-score-adj-values"}, [this](const config::Settings& now) {
    return oom_score_.Apply(now.oom_score_adj, now.oom_score_adj_values[0]);
  });
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
                      engine_->limiter().Configure(now);
                      return {};
                    });
  config_->OnChange(
      {"save", "stop-writes-on-bgsave-error", "appendonly", "appendfsync", "aof-ring",
       "aof-timestamp-enabled", "dir", "dbfilename"},
      [this](const config::Settings& now) { return persistence_->SettingsChanged(now); });
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

// Nobody may have asked for HTTP; then it is no reason not to start that another server has its
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
  ShowProcTitle(ProcTitle(settings, program_, config_->config_file()));
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
      limits_.Load(settings);
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

base::Status Server::Open() {
  if (base::Status status = OpenFiles(); !status) return status;
  if (base::Status status = engine_->limiter().Check(config_->settings()); !status) {
    return base::Error{"ratelimit-exempt: " + status.error()};
  }
  engine_->limiter().Configure(config_->settings());
  if (base::Status status = persistence_->LockFiles(config_->settings()); !status) return status;
  if (pipe(shutdown_pipe_) != 0) return base::Error{strerror(errno)};
  base::LimitHugePages(config_->settings().disable_thp);
  const config::Settings& settings = config_->settings();
  if (const base::Status status =
          oom_score_.Apply(settings.oom_score_adj, settings.oom_score_adj_values[0]);
      !status) {
    spdlog::warn("oom-score-adj: the system refuses the score");
  }
  loops_ = std::make_unique<front::Loops>(this, engine_.get(), &limits_);
  if (base::Status status = Listen(); !status) return status;
  if (config_->settings().port == 0 && config_->settings().unixsocket.empty() && http_port() == 0) {
    return base::Error{"Configured to not listen anywhere, exiting."};
  }
  signal_pipe.store(shutdown_pipe_[1]);
  InstallSignals();
  if (settings.crash_log_enabled) admin::InstallCrashReport(log_path_);
  ApplyHooks();
  ShowTitle(config_->settings());
  // What there is one of for all hashes is not to be counted as that of the first.
  types::SharedTexts::FieldNames();
  types::SharedTexts::FieldValues();
  engine_->memory().set_ceiling(base::MemoryCeiling());
  Tick();
  monitor_->NoteStartup();
  return {};
}

void Server::Start() {
  persistence_->OnDurable([this] { loops_->WakeHolders(); });
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
    return true;
  }
}

// ---- shutdown ----

bool Server::ReadRequest(char* byte) {
  while (true) {
    const ssize_t n = read(shutdown_pipe_[0], byte, 1);
    if (n == 1) return true;
    if (n == 0 || errno != EINTR) return false;
  }
}

Server::ShutdownRequest Server::TakeRequest(char byte) {
  ShutdownRequest request;
  if (byte == SIGTERM || byte == SIGINT) {
    spdlog::warn("Received {} scheduling shutdown...", byte == SIGTERM ? "SIGTERM" : "SIGINT");
    request.flags = (byte == SIGTERM ? limits_.on_sigterm : limits_.on_sigint).load();
    return request;
  }
  std::lock_guard lock(shutdown_mutex_);
  if (shutdown_requests_.empty()) return request;
  request = shutdown_requests_.front();
  shutdown_requests_.erase(shutdown_requests_.begin());
  if (request.client != 0) shutdown_clients_.push_back(request);
  return request;
}

int Server::Wait() {
  char byte = 0;
  while (ReadRequest(&byte)) {
    if (Shutdown(TakeRequest(byte))) break;
    RefuseShutdown();
  }
  spdlog::warn("Sava is now ready to exit, bye bye...");
  return 0;
}

// HTTP requests that have begun are answered, then writes wait and what there is to save is saved.
// False when that failed: everything is as before.
bool Server::Shutdown(const ShutdownRequest& request) {
  spdlog::warn("User requested shutdown...");
  aborted_.store(false);
  const bool force = (request.flags & config::kShutdownForce) != 0;
  if (persistence_->writes_first_base()) {
    spdlog::warn("Writing initial AOF{}", force ? ". Exit anyway." : ", can't exit.");
    if (!force) return false;
  }
  hurried_.store((request.flags & config::kShutdownNow) != 0);
  shutting_down_.store(true);
  loops_->Drain();
  const int64_t paused_until = engine_->admission().pause_until();
  const bool paused_writes = engine_->admission().pause_writes_only();
  ending_.store(true);
  engine_->admission().Pause(INT64_MAX, true);
  base::Status status;
  if (!aborted_.load()) {
    status = persistence_->Prepare({(request.flags & config::kShutdownSave) != 0,
                                    (request.flags & config::kShutdownNosave) != 0});
  }
  if (!status) spdlog::warn("{}", status.error());
  if (!aborted_.load() && (status || force)) {
    loops_->AwaitReleased();
    persistence_->OnDurable(nullptr);
    loops_->Stop();
    persistence_->Stop();
    return true;
  }
  ending_.store(false);
  engine_->admission().Unpause();
  if (paused_until != 0) engine_->admission().Pause(paused_until, paused_writes);
  persistence_->RunAlone([this] { loops_->EndDrain(); });
  shutting_down_.store(false);
  persistence_->GoOn();
  return false;
}

void Server::RefuseShutdown() {
  spdlog::warn("{}",
               aborted_.load()
                   ? "Shutdown was aborted"
                   : "Errors trying to shut down the server. Check the logs for more information.");
  std::vector<ShutdownRequest> clients;
  {
    std::lock_guard lock(shutdown_mutex_);
    clients.swap(shutdown_clients_);
  }
  for (const ShutdownRequest& one : clients) {
    auto message = std::make_shared<engine::Message>();
    message->resp2 = "-ERR Errors trying to SHUTDOWN. Check logs.\r\n";
    engine_->lanes()[one.lane]->mailbox.Post(
        {engine::Mail::Kind::kReply, one.client, std::move(message), one.token});
  }
}

bool Server::hurried() const {
  pollfd asked{shutdown_pipe_[0], POLLIN, 0};
  return hurried_.load() || poll(&asked, 1, 0) > 0;
}

void Server::RequestShutdown(uint32_t flags, size_t lane, uint64_t client, uint64_t token) {
  {
    std::lock_guard lock(shutdown_mutex_);
    shutdown_requests_.push_back({flags, lane, client, token});
  }
  if (write(shutdown_pipe_[1], &kAsked, 1) < 0) {
  }
}

bool Server::AbortShutdown() {
  if (!shutting_down()) return false;
  aborted_.store(true);
  hurried_.store(true);
  persistence_->GiveUp();
  return true;
}

bool Server::FlushedAll(uint64_t changes) { return persistence_->FlushedAll(changes); }

void Server::AnswerWhenSaved(const engine::Client& client, const std::string& reply) {
  persistence_->AnswerWhenSaved({client.lane, client.id, client.block_token}, reply);
}

// What memory has may not be what the log tells: it needs a new base before anything else counts.
void Server::OutOfMemory() {
  if (persistence_->barrier() == nullptr) return;
  persistence_->log()->NoteLost(engine_->journal().next_ticket());
  engine_->journal().Nudge();
}

// ---- for the loops ----

size_t Server::client_count() const { return loops_ == nullptr ? 0 : loops_->client_count(); }

void Server::PrepareThread() {
  // What the allocator keeps for the thread is not to be counted as that of its first keys.
  base::WarmAllocator();
}

const journal::Barrier* Server::barrier() const { return persistence_->barrier(); }

void Server::NoteRefused(const engine::Client& client, const std::string& user, int64_t now_ms) {
  access::AclLogEntry entry;
  entry.context = "toplevel";
  entry.object = "HTTP";
  entry.username = user;
  entry.client_info = engine::ClientLine(client, now_ms);
  acl_log_.Add(std::move(entry), now_ms, static_cast<size_t>(engine_->settings().acllog_max_len));
}

// ---- memory ----

void Server::Tick() {
  monitor_->Tick();
  if (admin::kCrashReports && ++ticks_ % kTicksPerInfo == 1 &&
      engine_->settings().crash_log_enabled) {
    admin::KeepInfoForCrash(admin::InfoText(*engine_, *engine_->lanes()[0], {}));
  }
  base::IfMemory([this] { persistence_->Tick(); });  // else the next time
}

}  // namespace sava::server
