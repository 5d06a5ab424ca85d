// INFO's sections about the process itself: what it is, its clients, its place among other servers,
// and its event loops.
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

#include "admin/command_totals.h"
#include "admin/info.h"
#include "admin/info_sections.h"
#include "admin/process_facts.h"
#include "base/page_pool.h"
#include "base/version.h"
#include "config/config.h"

namespace sava::admin {

namespace {

using engine::InfoWriter;
using engine::Ratio;

std::string_view SupervisedName(config::Supervised supervised) {
  switch (supervised) {
    case config::Supervised::kSystemd:
      return "systemd";
    case config::Supervised::kUpstart:
      return "upstart";
    case config::Supervised::kAuto:
      return "auto";
    case config::Supervised::kNo:
      break;
  }
  return "no";
}

// "listener0:name=tcp,bind=127.0.0.1,port=6379"
void Listeners(InfoWriter& out, const config::Settings& settings, int64_t http_port) {
  int number = 0;
  const auto list = [&](std::string_view name, const std::vector<std::string>& bind, int64_t port) {
    if (port == 0) return;
    std::string addresses;
    for (const std::string& address : bind) addresses += ",bind=" + address;
    out.Line("listener{}:name={}{},port={}", number++, name, addresses, port);
  };
  list("tcp", settings.bind, settings.port);
  if (!settings.unixsocket.empty()) {
    out.Line("listener{}:name=unix,bind={}", number++, settings.unixsocket);
  }
  list("tls", settings.bind, settings.tls_port);
  list("http", settings.http_bind, http_port);
  list("https", settings.http_bind, settings.http_tls_port);
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

void ServerSection(InfoWriter& out) {
  const ProcessFacts& facts = out.part<ProcessFacts>();
  const config::Settings& settings = out.engine.settings();
  utsname system{};
  uname(&system);
  const int64_t up = std::max<int64_t>(0, (out.now_ms - facts.start_unix_ms) / 1000);
  out.Field("redis_version", base::kRedisVersion);
  out.Field("redis_git_sha1", "00000000");
  out.Field("redis_git_dirty", 0);
  out.Field("redis_build_id", "0");
  out.Field("redis_mode", "standalone");
  out.Field("sava_version", base::kVersion);
  out.Line("os:{} {} {}", system.sysname, system.release, system.machine);
  out.Field("arch_bits", sizeof(void*) * 8);
  out.Field("monotonic_clock", "POSIX clock_gettime");
  out.Field("multiplexing_api", "epoll");
  out.Field("atomicvar_api", "c11-builtin");
  out.Line("gcc_version:{}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
  out.Field("process_id", getpid());
  out.Field("process_supervised", SupervisedName(settings.supervised));
  out.Field("run_id", facts.run_id);
  out.Field("tcp_port", settings.port != 0 ? settings.port : settings.tls_port);
  out.Field("http_port", facts.http_port());
  out.Field("server_time_usec", out.engine.clock().WallMicros());
  out.Field("uptime_in_seconds", up);
  out.Field("uptime_in_days", up / 86400);
  out.Field("hz", settings.hz);
  out.Field("configured_hz", settings.hz);
  out.Field("lru_clock", out.lane.batch.lru_clock);
  out.Field("executable", facts.executable);
  out.Field("config_file", out.part<config::Config>().config_file());
  if (const int64_t left = facts.ms_to_end(); left >= 0) {
    out.Field("shutdown_in_milliseconds", left);
  }
  out.Field("io_threads_active", facts.threads > 1 ? 1 : 0);
  Listeners(out, settings, facts.http_port());
}

void CpuSection(InfoWriter& out) {
  rusage self{};
  rusage children{};
  rusage thread{};
  getrusage(RUSAGE_SELF, &self);
  getrusage(RUSAGE_CHILDREN, &children);
  getrusage(RUSAGE_THREAD, &thread);
  out.Line("used_cpu_sys:{:.6f}", Seconds(self.ru_stime));
  out.Line("used_cpu_user:{:.6f}", Seconds(self.ru_utime));
  out.Line("used_cpu_sys_children:{:.6f}", Seconds(children.ru_stime));
  out.Line("used_cpu_user_children:{:.6f}", Seconds(children.ru_utime));
  // There is no main thread: this is the loop that answers.
  out.Line("used_cpu_sys_main_thread:{:.6f}", Seconds(thread.ru_stime));
  out.Line("used_cpu_user_main_thread:{:.6f}", Seconds(thread.ru_utime));
}

void ModulesSection(InfoWriter&) {}

void ClusterSection(InfoWriter& out) { out.Field("cluster_enabled", 0); }

void SavaSection(InfoWriter& out) {
  const ProcessFacts& facts = out.part<ProcessFacts>();
  using engine::LaneStats;
  using engine::RoundStats;
  using engine::UpkeepStats;
  CommandTotals rounds;
  uint64_t longest = 0;
  for (const auto& lane : out.engine.lanes()) {
    AddHistogram(lane->stats.rounds.nanos, &rounds);
    longest = std::max(longest, lane->stats.rounds.max_nanos.get());
  }
  // A percentile is the upper end of its bucket, which may lie above the longest.
  const double longest_us = static_cast<double>(longest) / 1000;
  const auto percentile = [&](double percent) {
    return std::min(rounds.Percentile(percent), longest_us);
  };
  const size_t threads = facts.threads;
  const auto up_nanos =
      static_cast<double>(std::max<int64_t>(1, out.now_ms - facts.start_unix_ms)) * 1e6;
  const keyspace::Keyspace& keyspace = out.engine.keyspace();
  out.Field("threads", threads);
  out.Field("loop_clients", facts.loop_clients());
  out.Field("loop_rounds", out.Total(&LaneStats::rounds, &RoundStats::count));
  out.Line("loop_busy_percent:{:.2f}",
           static_cast<double>(out.Total(&LaneStats::rounds, &RoundStats::busy_nanos)) * 100 /
               (up_nanos * static_cast<double>(threads)));
  out.Line("loop_stall_p50_us:{:.3f}", percentile(50));
  out.Line("loop_stall_p99_us:{:.3f}", percentile(99));
  out.Line("loop_stall_p99.9_us:{:.3f}", percentile(99.9));
  out.Line("loop_stall_max_us:{:.3f}", longest_us);
  out.Field("loop_stalls_over_5ms", out.Total(&LaneStats::rounds, &RoundStats::over_5ms));
  out.Field("parked", out.Total(&LaneStats::parked));
  out.Field("compacted_blocks", out.Total(&LaneStats::upkeep, &UpkeepStats::compacted));
  out.Field("slab_idle_bytes", engine::Difference(keyspace.HeldBytes(), keyspace.UsedBytes()) +
                                   base::PagePool::Shared().idle_bytes());
  out.Field("journal_enabled", out.engine.journal().enabled() ? 1 : 0);
  out.Field("journal_backlog_bytes", out.engine.journal().backlog());
}

}  // namespace sava::admin
