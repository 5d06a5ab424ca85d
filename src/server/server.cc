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

#include "base/page_pool.h"
#include "engine/engine_context.h"
#include "server/crash_report.h"
#include "server/families.h"
#include "server/info.h"
#include "server/loops.h"
#include "server/persistence.h"
#include "server/proc_title.h"
#include "types/shared_texts.h"

namespace sava::server {

static_assert(static_cast<uint32_t>(engine::kNotifyNewKey) == commands::kNotifyNew);
static_assert(static_cast<uint32_t>(engine::kNotifyKeyMiss) == commands::kNotifyKeyMiss);
static_assert(static_cast<uint32_t>(engine::kNotifyAll) == commands::kNotifyAll);

namespace {

constexpr unsigned kFewCores = 4;

// A byte of the shutdown pipe besides the numbers of signals.
constexpr char kAsked = 0;     // by RequestShutdown
constexpr char kLoaded = 127;  // by the keeper

// How often free pages are given back, and of how many regions at once: some 100 us each.
constexpr unsigned kTicksPerTrim = 5;
constexpr int kRegionsPerTrim = 16;

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

void LoopLimits::Load(const engine::Settings& settings) {
  // Lengths of keys are kept in 32 bits.
  max_bulk.store(static_cast<int64_t>(std::min<uint64_t>(settings.proto_max_bulk_len, UINT32_MAX)));
  query_buffer.store(settings.client_query_buffer_limit);
  timeout.store(settings.timeout);
  keepalive.store(settings.tcp_keepalive);
  hz.store(settings.hz > 0 ? settings.hz : 10);
  shutdown_timeout.store(settings.shutdown_timeout);
  on_sigint.store(settings.shutdown_on_sigint);
  on_sigterm.store(settings.shutdown_on_sigterm);
  maxclients.store(static_cast<size_t>(settings.maxclients));
  refuse_strangers.store(settings.protected_mode && settings.requirepass.empty());
  one_loop.store(settings.appendonly && settings.appendfsync == engine::AppendFsync::kAlways &&
                 settings.threads == 0 && std::thread::hardware_concurrency() <= kFewCores);
}

Server& Server::Of(commands::Context& context) {
  return static_cast<Server&>(*engine::EngineContext::Of(context).engine().host());
}

Server::Server(std::unique_ptr<Config> config)
    : config_(std::move(config)),
      run_id_(RandomHex(40)),
      log_path_(config_->settings().logfile.empty()
                    ? std::string()
                    : std::filesystem::absolute(config_->settings().logfile).string()) {
  for (const auto family : commands::AllFamilies()) table_.Add(family);
  table_.Add(engine::TransactionCommands());
  table_.Add(engine::PubSubCommands());
  for (const auto family : ServerFamilies()) table_.Add(family);
  engine::Settings& settings = config_->settings();
  threads_ = settings.threads > 0 ? static_cast<size_t>(settings.threads)
                                  : std::max(1U, std::thread::hardware_concurrency());
  engine::Engine::Options options;
  options.lanes = threads_;
  engine_ = std::make_unique<engine::Engine>(options, &settings, &table_);
  engine_->set_host(this);
  persistence_ = std::make_unique<Persistence>(engine_.get());
  start_unix_ms_ = base::Clock::System().WallMillis();
  limits_.Load(settings);
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
      [this](const engine::Settings& now) {
        limits_.Load(now);
        return base::Status();
      });
  config_->OnChange({"maxclients"}, [this](const engine::Settings& now) -> base::Status {
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
    return [this, trouble](const engine::Settings& now) -> base::Status {
      if (loops_ == nullptr) return {};
      const base::Status status = loops_->Listen(now);
      return status ? status : base::Error{fmt::format("{} ({})", trouble, status.error())};
    };
  };
  config_->OnChange({"port"}, listen_again("Unable to listen on this port. Check server logs."));
  config_->OnChange({"bind"}, listen_again("Failed to bind to specified addresses."));
  config_->OnChange({"proc-title-template", "port", "bind"}, [this](const engine::Settings& now) {
    ShowTitle(now);
    return base::Status();
  });
  config_->OnChange({"oom-score-adj", "oom-score-adj-values"}, [this](const engine::Settings& now) {
    return oom_score_.Apply(now.oom_score_adj, now.oom_score_adj_values[0]);
  });
  config_->OnChange({"dir"}, [](const engine::Settings& now) -> base::Status {
    if (chdir(now.dir.c_str()) != 0) return base::Error{strerror(errno)};
    return {};
  });
  config_->OnChange({"ratelimit-enabled", "ratelimit-default", "ratelimit-user", "ratelimit-ip",
                     "ratelimit-exempt", "ratelimit-key-prefix"},
                    [this](const engine::Settings& now) -> base::Status {
                      if (base::Status status = engine_->limiter().Check(now); !status) {
                        return status;
                      }
                      engine_->limiter().Configure(now);
                      return {};
                    });
  config_->OnChange(
      {"save", "stop-writes-on-bgsave-error", "appendonly", "appendfsync", "aof-ring",
       "aof-timestamp-enabled", "dir", "dbfilename"},
      [this](const engine::Settings& now) { return persistence_->SettingsChanged(now); });
  config_->OnChange({"crash-log-enabled"}, [this](const engine::Settings& now) {
    now.crash_log_enabled ? InstallCrashReport(log_path_) : RemoveCrashReport();
    return base::Status();
  });
  config_->OnChange({"loglevel"}, [](const engine::Settings& now) -> base::Status {
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

void Server::ShowTitle(const engine::Settings& settings) const {
  if (!settings.set_proc_title) return;
  ShowProcTitle(ProcTitle(settings, program_, config_->config_file()));
}

// The machine may allow fewer open files than maxclients needs: serve those it allows.
base::Status Server::OpenFiles() {
  engine::Settings& settings = config_->settings();
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
  LimitHugePages(config_->settings().disable_thp);
  const engine::Settings& settings = config_->settings();
  if (const base::Status status =
          oom_score_.Apply(settings.oom_score_adj, settings.oom_score_adj_values[0]);
      !status) {
    spdlog::warn("oom-score-adj: the system refuses the score");
  }
  loops_ = std::make_unique<Loops>(this);
  if (base::Status status = Listen(); !status) return status;
  if (config_->settings().port == 0 && config_->settings().unixsocket.empty() && http_port() == 0) {
    return base::Error{"Configured to not listen anywhere, exiting."};
  }
  signal_pipe.store(shutdown_pipe_[1]);
  InstallSignals();
  if (settings.crash_log_enabled) InstallCrashReport(log_path_);
  ApplyHooks();
  ShowTitle(config_->settings());
  // What there is one of for all hashes is not to be counted as that of the first.
  types::SharedTexts::FieldNames();
  types::SharedTexts::FieldValues();
  engine_->set_memory_ceiling(MemoryCeiling());
  Tick();
  startup_memory_ = engine_->UsedMemory();
  return {};
}

void Server::Start() {
  persistence_->OnDurable([this] { WakeHolders(); });
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
  const bool force = (request.flags & engine::kShutdownForce) != 0;
  if (persistence_->writes_first_base()) {
    spdlog::warn("Writing initial AOF{}", force ? ". Exit anyway." : ", can't exit.");
    if (!force) return false;
  }
  hurried_.store((request.flags & engine::kShutdownNow) != 0);
  shutting_down_.store(true);
  loops_->Drain();
  const int64_t paused_until = engine_->pause_until();
  const bool paused_writes = engine_->pause_writes_only();
  ending_.store(true);
  engine_->Pause(INT64_MAX, true);
  base::Status status;
  if (!aborted_.load()) {
    status = persistence_->Prepare({(request.flags & engine::kShutdownSave) != 0,
                                    (request.flags & engine::kShutdownNosave) != 0});
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
  engine_->Unpause();
  if (paused_until != 0) engine_->Pause(paused_until, paused_writes);
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

void Server::ForEachClient(const std::function<void(engine::Client&)>& visit) {
  for (auto& lane : engine_->lanes()) {
    for (auto& [id, client] : lane->clients) visit(*client);
  }
}

void Server::CloseClient(engine::Client& client) {
  client.set(engine::kClientCloseNow);
  engine_->lanes()[client.lane]->mailbox.Post({engine::Mail::Kind::kWake, client.id, nullptr});
}

MemoryFigures Server::Memory() {
  MemoryFigures figures;
  const AllocatorFigures allocator = ReadAllocator();
  figures.allocated = allocator.allocated;
  figures.active = allocator.active;
  figures.resident = allocator.resident;
  AccountMemory(allocator);
  figures.used = engine_->UsedMemory();
  figures.dataset = std::min(engine_->keyspace().UsedBytes(), figures.used);
  figures.overhead = figures.used - figures.dataset;
  figures.startup = startup_memory_;
  figures.rss = ResidentBytes();
  figures.system_total = SystemMemory();
  if (figures.used > peak_memory_.load(std::memory_order_relaxed)) {
    peak_memory_.store(figures.used, std::memory_order_relaxed);
  }
  figures.peak = peak_memory_.load(std::memory_order_relaxed);
  return figures;
}

// What the allocator has given out, and is in use, besides the keyspace's own account.
void Server::AccountMemory(const AllocatorFigures& allocator) {
  const size_t allocated = allocator.allocated - allocator.cached;
  const size_t held = engine_->keyspace().HeldBytes() + base::PagePool::Shared().free_bytes();
  const journal::AofLog* const log = persistence_->log();
  // The allocator of a sanitizer does not say: then buffers are all that is known.
  const int64_t other = allocated == 0
                            ? engine_->BufferBytes()
                            : static_cast<int64_t>(allocated) - static_cast<int64_t>(held);
  engine_->set_other_memory(other, log == nullptr ? 0 : log->buffered());
}

void Server::PurgeMemory() {
  base::PagePool& pages = base::PagePool::Shared();
  for (size_t regions = pages.region_count(); regions > 0; --regions) {
    pages.Trim(base::PagePool::kPages / 32);
  }
  PurgeAllocator();
}

void Server::Tick() {
  base::PagePool& pages = base::PagePool::Shared();
  if (++ticks_ % kTicksPerTrim == 0) {
    const size_t least = pages.WorthTrimming();
    for (int regions = 0; least > 0 && regions < kRegionsPerTrim && pages.Trim(least); ++regions) {
    }
  }
  AccountMemory(ReadAllocator());
  const size_t used = engine_->UsedMemory();
  if (used > peak_memory_.load(std::memory_order_relaxed)) peak_memory_.store(used);

  RateSample sample;
  sample.at_ms = engine_->clock().MonotonicMicros() / 1000;
  sample.ops = engine_->Total(&engine::LaneStats::commands);
  sample.input = engine_->Total(&engine::LaneStats::net_input);
  sample.output = engine_->Total(&engine::LaneStats::net_output);
  const int64_t elapsed = sample.at_ms - last_sample_.at_ms;
  if (last_sample_.at_ms != 0 && elapsed > 0) {
    const auto rate = [elapsed](uint64_t now, uint64_t before) {
      return now < before ? 0 : static_cast<int64_t>((now - before) * 1000) / elapsed;
    };
    // Smoothed over about a second and a half.
    const auto blend = [](std::atomic<int64_t>& value, int64_t latest) {
      value.store((value.load(std::memory_order_relaxed) * 15 + latest) / 16,
                  std::memory_order_relaxed);
    };
    blend(rates_.ops, rate(sample.ops, last_sample_.ops));
    blend(rates_.input_bytes, rate(sample.input, last_sample_.input));
    blend(rates_.output_bytes, rate(sample.output, last_sample_.output));
  }
  last_sample_ = sample;
  if (kCrashReports && ticks_ % kTicksPerInfo == 1 && engine_->settings().crash_log_enabled) {
    KeepInfoForCrash(InfoText(*this, *engine_->lanes()[0], {}));
  }
  persistence_->Tick();
}

void Server::WakeHolders() { loops_->WakeHolders(); }

const std::vector<std::unique_ptr<EventLoop>>& Server::loops() const { return loops_->all(); }

std::string Server::loop_clients() const {
  if (loops_ == nullptr) return {};  // not started
  std::vector<size_t> counts;
  for (const auto& loop : loops()) counts.push_back(loop->connection_count());
  return fmt::format("{}", fmt::join(counts, ","));
}

void Server::ResetStats() {
  for (auto& lane : engine_->lanes()) {
    engine::LaneStats& stats = lane->stats;
    for (engine::Counter* counter : {&stats.commands,
                                     &stats.connections,
                                     &stats.rejected_connections,
                                     &stats.hits,
                                     &stats.misses,
                                     &stats.expired,
                                     &stats.expired_parts,
                                     &stats.evicted,
                                     &stats.net_input,
                                     &stats.net_output,
                                     &stats.reads,
                                     &stats.writes,
                                     &stats.error_replies,
                                     &stats.unexpected_errors,
                                     &stats.output_limit_disconnections,
                                     &stats.query_limit_disconnections,
                                     &stats.published,
                                     &stats.ratelimit_refused,
                                     &stats.parked,
                                     &stats.compacted,
                                     &stats.expire_cycles_capped,
                                     &stats.expire_nanos,
                                     &stats.eviction_stalls_nanos,
                                     &stats.loop_max_nanos,
                                     &stats.loop_over_5ms,
                                     &stats.loop_rounds,
                                     &stats.loop_busy_nanos}) {
      counter->Reset();
    }
    stats.loop.Reset();
    for (engine::CommandStats& command : stats.by_command) {
      command.calls.Reset();
      command.nanos.Reset();
      command.rejected.Reset();
      command.failed.Reset();
      if (engine::Histogram* histogram = command.histogram.load()) histogram->Reset();
    }
  }
  engine_->errors().Reset();
  engine_->background().ResetDone();
}

}  // namespace sava::server
