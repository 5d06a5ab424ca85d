// INFO's sections of counters: traffic and keys, commands, errors, latencies, databases.
#include <algorithm>

#include "access/acl_log.h"
#include "admin/command_totals.h"
#include "admin/info_sections.h"
#include "admin/process_facts.h"
#include "admin/process_monitor.h"

namespace sava::admin {

namespace {

using engine::ClientStats;
using engine::InfoWriter;
using engine::KeyStats;
using engine::LaneStats;
using engine::NetStats;
using engine::Ratio;
using engine::UpkeepStats;

double Kilobytes(const std::atomic<int64_t>& bytes) {
  return static_cast<double>(bytes.load(std::memory_order_relaxed)) / 1024;
}

void Traffic(InfoWriter& out) {
  const ProcessMonitor::Rates& rates = out.part<ProcessMonitor>().rates();
  out.Field("total_connections_received",
            out.Total(&LaneStats::clients, &ClientStats::connections));
  out.Field("total_commands_processed", out.Total(&LaneStats::commands));
  out.Field("instantaneous_ops_per_sec", rates.ops.load(std::memory_order_relaxed));
  const engine::ReplicationFigures replication = out.part<ProcessFacts>().replication();
  out.Field("total_net_input_bytes",
            out.Total(&LaneStats::net, &NetStats::input) + replication.input_bytes);
  out.Field("total_net_output_bytes", out.Total(&LaneStats::net, &NetStats::output));
  out.Field("total_net_repl_input_bytes", replication.input_bytes);
  out.Field("total_net_repl_output_bytes", replication.output_bytes);
  out.Line("instantaneous_input_kbps:{:.2f}", Kilobytes(rates.input_bytes));
  out.Line("instantaneous_output_kbps:{:.2f}", Kilobytes(rates.output_bytes));
  out.Line("instantaneous_input_repl_kbps:{:.2f}", Kilobytes(rates.replica_input));
  out.Line("instantaneous_output_repl_kbps:{:.2f}", Kilobytes(rates.replica_output));
  out.Field("rejected_connections", out.Total(&LaneStats::clients, &ClientStats::rejected));
  out.Field("sync_full", replication.full_syncs);
  out.Field("sync_partial_ok", replication.partial_syncs);
  out.Field("sync_partial_err", replication.partial_refused);
}

void Keys(InfoWriter& out) {
  engine::PubSub& pubsub = out.engine.pubsub();
  out.Field("expired_keys", out.Total(&LaneStats::keys, &KeyStats::expired));
  out.Field("expired_subkeys", out.Total(&LaneStats::keys, &KeyStats::expired_parts));
  // Expired keys are found by their time, not by samples: none is left to be found by chance.
  out.Field("expired_stale_perc", "0.00");
  out.Field("expired_time_cap_reached_count",
            out.Total(&LaneStats::upkeep, &UpkeepStats::expire_cycles_capped));
  out.Field("expire_cycle_cpu_milliseconds",
            out.Total(&LaneStats::upkeep, &UpkeepStats::expire_nanos) / 1'000'000);
  out.Field("evicted_keys", out.Total(&LaneStats::keys, &KeyStats::evicted));
  out.Field("evicted_clients", out.Total(&LaneStats::clients, &ClientStats::evicted));
  if (out.engine.scripting() != nullptr) {
    const engine::ScriptFigures scripts = out.engine.scripting()->Figures();
    out.Field("evicted_scripts", scripts.evicted);
    out.Field("script_runs_declared", scripts.declared);
    out.Field("script_runs_exclusive", scripts.exclusive);
    out.Field("script_runs_restarted", scripts.restarted);
    out.Field("script_locks_extended", scripts.extended);
    out.Field("script_runs_clashed", scripts.clashed);
  }
  out.Field("total_eviction_exceeded_time",
            out.Total(&LaneStats::upkeep, &UpkeepStats::eviction_stalls_nanos) / 1'000'000);
  out.Field("current_eviction_exceeded_time", 0);
  out.Field("keyspace_hits", out.Total(&LaneStats::keys, &KeyStats::hits));
  out.Field("keyspace_misses", out.Total(&LaneStats::keys, &KeyStats::misses));
  out.Field("pubsub_channels", pubsub.ChannelCount(false));
  out.Field("pubsub_patterns", pubsub.PatternCount());
  out.Field("pubsubshard_channels", pubsub.ChannelCount(true));
}

// A duration's percentile is named p50, p99, p99.9.
std::string PercentText(double percent) {
  std::string text = fmt::format("{:.9f}", percent);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

// The average time left to live in a database, from samples of some stripes. Stripes that another
// thread works on are left out.
int64_t AverageTtl(InfoWriter& out, int db) {
  constexpr size_t kEnough = 8;
  keyspace::Keyspace& keyspace = out.engine.keyspace();
  int64_t sum = 0;
  size_t seen = 0;
  for (size_t stripe = 0; stripe < keyspace::Keyspace::kStripes && seen < kEnough; ++stripe) {
    const keyspace::Table* table = keyspace.table(db, stripe);
    if (table == nullptr || table->expiring() == 0) continue;
    keyspace::StripeLock& lock = keyspace.stripe(stripe).lock;
    if (!out.lane.exclusive() && !lock.TryLock()) continue;
    const int64_t average = table->AverageTtl(out.now_ms, out.lane.rng);
    if (!out.lane.exclusive()) lock.Unlock();
    if (average <= 0) continue;
    sum += average;
    ++seen;
  }
  return seen == 0 ? 0 : sum / static_cast<int64_t>(seen);
}

}  // namespace

void StatsSection(InfoWriter& out) {
  Traffic(out);
  Keys(out);
  out.Fields(
      {"latest_fork_usec", "total_forks", "migrate_cached_sockets", "slave_expires_tracked_keys",
       "active_defrag_hits", "active_defrag_misses", "active_defrag_key_hits",
       "active_defrag_key_misses", "total_active_defrag_time", "current_active_defrag_time"},
      "0");
  const engine::Tracking& tracking = out.engine.tracking();
  out.Field("tracking_total_keys", tracking.keys());
  out.Field("tracking_total_items", tracking.items());
  out.Field("tracking_total_prefixes", tracking.prefixes());
  out.Field("unexpected_error_replies", out.Total(&LaneStats::unexpected_errors));
  out.Field("total_error_replies", out.Total(&LaneStats::error_replies));
  out.Field("dump_payload_sanitizations", 0);
  out.Field("total_reads_processed", out.Total(&LaneStats::net, &NetStats::reads));
  out.Field("total_writes_processed", out.Total(&LaneStats::net, &NetStats::writes));
  out.Fields({"io_threaded_reads_processed", "io_threaded_writes_processed"}, "0");
  out.Field("client_query_buffer_limit_disconnections",
            out.Total(&LaneStats::clients, &ClientStats::over_query_limit));
  out.Field("client_output_buffer_limit_disconnections",
            out.Total(&LaneStats::clients, &ClientStats::over_output_limit));
  out.Fields({"reply_buffer_shrinks", "reply_buffer_expands"}, "0");
  const access::AclLog& refused = out.engine.acl_log();
  out.Field("acl_access_denied_auth", refused.denied(access::Reason::kAuth));
  out.Field("acl_access_denied_cmd", refused.denied(access::Reason::kCommand));
  out.Field("acl_access_denied_key", refused.denied(access::Reason::kKey));
  out.Field("acl_access_denied_channel", refused.denied(access::Reason::kChannel));
  out.Field("ratelimit_refused", out.Total(&LaneStats::ratelimit_refused));
}

// The server's own limiter: the buckets that refused most, at most a hundred of them.
void RatelimitSection(InfoWriter& out) {
  constexpr size_t kShown = 100;
  struct Row {
    std::string key;
    engine::RateBucket::Figures figures;
  };
  std::vector<Row> rows;
  for (const auto& bucket : out.engine.limiter().All()) {
    rows.push_back({bucket->key(), bucket->Look(out.now_ms)});
  }
  std::ranges::sort(rows, [](const Row& a, const Row& b) {
    if (a.figures.refused != b.figures.refused) return a.figures.refused > b.figures.refused;
    return a.key < b.key;
  });
  out.Field("ratelimit_enabled", out.engine.limiter().enabled() ? 1 : 0);
  out.Field("ratelimit_refused", out.Total(&LaneStats::ratelimit_refused));
  out.Field("ratelimit_buckets", rows.size());
  for (size_t i = 0; i < rows.size() && i < kShown; ++i) {
    const engine::RateBucket::Figures& figures = rows[i].figures;
    out.Line(
        "bucket{}:key={},algorithm={},limit={},period_ms={},burst={},remaining={},allowed={},"
        "refused={}",
        i, rows[i].key, types::RateAlgorithmName(figures.rule.algorithm), figures.rule.limit,
        figures.rule.period_ms, figures.rule.capacity, figures.remaining, figures.allowed,
        figures.refused);
  }
}

void CommandstatsSection(InfoWriter& out) {
  for (const auto& command : out.engine.table().by_id()) {
    const CommandTotals totals = TotalsOf(out.engine, *command);
    if (totals.calls + totals.rejected + totals.failed == 0) continue;
    const double per_call =
        totals.calls == 0 ? 0
                          : static_cast<double>(totals.micros) / static_cast<double>(totals.calls);
    out.Line("cmdstat_{}:calls={},usec={},usec_per_call={:.2f},rejected_calls={},failed_calls={}",
             command->full_name, totals.calls, totals.micros, per_call, totals.rejected,
             totals.failed);
  }
}

void ErrorstatsSection(InfoWriter& out) {
  for (const auto& [code, count] : out.engine.observer().errors().All()) {
    out.Line("errorstat_{}:count={}", code, count);
  }
}

void LatencystatsSection(InfoWriter& out) {
  const config::Settings& settings = out.engine.settings();
  for (const auto& command : out.engine.table().by_id()) {
    const CommandTotals totals = TotalsOf(out.engine, *command);
    if (totals.samples == 0) continue;
    std::string percentiles;
    for (const double percent : settings.latency_tracking_info_percentiles) {
      if (!percentiles.empty()) percentiles += ',';
      percentiles += fmt::format("p{}={:.3f}", PercentText(percent), totals.Percentile(percent));
    }
    out.Line("latency_percentiles_usec_{}:{}", command->full_name, percentiles);
  }
}

void KeyspaceSection(InfoWriter& out) {
  const keyspace::Keyspace& keyspace = out.engine.keyspace();
  for (int db = 0; db < keyspace.databases(); ++db) {
    const size_t keys = keyspace.Size(db);
    if (keys == 0) continue;
    const size_t expires = std::min(keyspace.Expiring(db), keys);
    out.Line("db{}:keys={},expires={},avg_ttl={}", db, keys, expires,
             expires == 0 ? 0 : AverageTtl(out, db));
  }
}

}  // namespace sava::admin
