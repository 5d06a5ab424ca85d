// The settings the server acts on, as plain data.
//
// One field per setting, holding its value in the form the code wants it; the initial values are
// Sava's defaults. How a setting is named, written, checked and printed is said in
// config/config_table.cc and nowhere else. Settings that are only kept (accepted, printed, without
// effect) have no field here.
//
// Thread safety: plain fields. Everybody reads them while inside the gate; CONFIG SET writes them
// while it holds the gate exclusively.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ip.h"
#include "config/replication_settings.h"
#include "config/tls_settings.h"
#include "types/collections/collection_limits.h"
#include "types/counters/rate_limit.h"

namespace sava::config {

enum class MaxmemoryPolicy : uint8_t {
  kVolatileLru,
  kVolatileLfu,
  kVolatileRandom,
  kVolatileTtl,
  kAllkeysLru,
  kAllkeysLfu,
  kAllkeysRandom,
  kNoEviction,
};

// Which connections may use a guarded feature: none, all, or those from this machine.
enum class Allow : uint8_t { kNo, kYes, kLocal };

enum class LogLevel : uint8_t { kDebug, kVerbose, kNotice, kWarning };

enum class Supervised : uint8_t { kUpstart, kSystemd, kAuto, kNo };

enum class SyslogFacility : uint8_t {
  kUser,
  kLocal0,
  kLocal1,
  kLocal2,
  kLocal3,
  kLocal4,
  kLocal5,
  kLocal6,
  kLocal7,
};

enum class AppendFsync : uint8_t { kEverysec, kAlways, kNo };

// Scripts that ask for keys which they were not given.
enum class ScriptKeys : uint8_t { kLearn, kExclusive, kStrict };

enum class OomScoreAdj : uint8_t { kNo, kRelative, kAbsolute };

enum class SanitizeDump : uint8_t { kNo, kYes, kClients };

// Bits of shutdown-on-sigint and shutdown-on-sigterm; none set means the default behaviour.
enum ShutdownFlag : uint32_t {
  kShutdownSave = 1U << 0,
  kShutdownNosave = 1U << 1,
  kShutdownNow = 1U << 2,
  kShutdownForce = 1U << 3,
};

// Bits of notify-keyspace-events, each with its letter.
enum NotifyFlag : uint32_t {
  kNotifyKeyspace = 1U << 0,  // K
  kNotifyKeyevent = 1U << 1,  // E
  kNotifyGeneric = 1U << 2,   // g
  kNotifyString = 1U << 3,    // $
  kNotifyList = 1U << 4,      // l
  kNotifySet = 1U << 5,       // s
  kNotifyHash = 1U << 6,      // h
  kNotifyZset = 1U << 7,      // z
  kNotifyExpired = 1U << 8,   // x
  kNotifyEvicted = 1U << 9,   // e
  kNotifyStream = 1U << 10,   // t
  kNotifyKeyMiss = 1U << 11,  // m, not part of A
  kNotifyModule = 1U << 13,   // d
  kNotifyNewKey = 1U << 14,   // n, not part of A
  kNotifyAll = kNotifyGeneric | kNotifyString | kNotifyList | kNotifySet | kNotifyHash |
               kNotifyZset | kNotifyExpired | kNotifyEvicted | kNotifyStream | kNotifyModule,  // A
};

// A client whose pending output exceeds `hard` bytes, or `soft` bytes for `soft_seconds`, is
// dropped. Zero means no limit.
struct OutputBufferLimit {
  uint64_t hard = 0;
  uint64_t soft = 0;
  int64_t soft_seconds = 0;
  bool operator==(const OutputBufferLimit&) const = default;
};

// A snapshot is due when `changes` writes have happened and `seconds` have passed.
struct SaveRule {
  int64_t seconds = 0;
  int64_t changes = 0;
  bool operator==(const SaveRule&) const = default;
};

// What the server's own limiter allows a user, or each address of a network.
struct UserLimit {
  std::string user;
  types::RateRule rule;
  bool operator==(const UserLimit&) const = default;
};
struct NetworkLimit {
  base::IpNetwork network;
  types::RateRule rule;
  bool operator==(const NetworkLimit&) const = default;
};

// A field for every row of the table in config_table.cc, flat as the names of CONFIG are.
struct Settings : types::CollectionLimits, TlsSettings, ReplicationSettings {
  // Network. An address of `bind` may begin with '-' (may be missing on this machine) and may be
  // "*" or "::*" (all addresses).
  int64_t port = 6379;
  std::vector<std::string> bind = {"127.0.0.1"};
  std::string unixsocket;
  uint32_t unixsocketperm = 0;  // 0: leave what the umask gives
  int64_t tcp_backlog = 511;
  int64_t timeout = 0;          // seconds a client may idle, 0: for ever
  int64_t tcp_keepalive = 300;  // seconds, 0: off
  int64_t maxclients = 10000;
  int64_t threads = 0;  // event-loop threads, 0: one per core
  int64_t http_port = 7379;
  std::vector<std::string> http_bind = {"127.0.0.1"};
  std::vector<std::string> http_hosts;  // names this server may be called by; "*": any
  uint64_t http_max_header = 16ULL << 10;
  uint64_t http_max_body = 16ULL << 20;
  int64_t http_timeout = 30;       // seconds for a request to arrive or a response to be taken
  int64_t http_idle_timeout = 60;  // seconds between two requests of a connection
  std::string associations_prefix = "assoc:";
  int64_t associations_top = 20;
  bool associations_guid_keys = false;
  uint64_t proto_max_bulk_len = 512ULL << 20;
  uint64_t client_query_buffer_limit = 1ULL << 30;
  OutputBufferLimit output_limit_normal;
  OutputBufferLimit output_limit_replica = {256ULL << 20, 64ULL << 20, 60};
  OutputBufferLimit output_limit_pubsub = {32ULL << 20, 8ULL << 20, 60};
  int64_t maxmemory_clients = 0;  // bytes; below zero: that percentage of maxmemory
  int64_t tracking_table_max_keys = 1000000;

  // Security.
  bool protected_mode = true;
  std::string requirepass;
  Allow enable_protected_configs = Allow::kNo;
  Allow enable_debug_command = Allow::kNo;
  Allow enable_module_command = Allow::kNo;
  std::string aclfile;
  std::vector<std::vector<std::string>> user_lines;  // `user NAME rule ...`, without the word user
  bool acl_pubsub_all_channels = false;              // of new users
  int64_t acllog_max_len = 128;
  // rename-command lines: what a command is called, and what clients call it; empty: nothing.
  std::vector<std::pair<std::string, std::string>> renamed_commands;
  std::string masteruser;
  SanitizeDump sanitize_dump_payload = SanitizeDump::kNo;

  // The server's own limiter.
  bool ratelimit_enabled = false;
  std::optional<types::RateRule> ratelimit_default;  // for users without a rule of their own
  std::vector<UserLimit> ratelimit_users;
  std::vector<NetworkLimit> ratelimit_networks;
  std::vector<std::string> ratelimit_exempt = {"AUTH", "HELLO",  "PING",    "QUIT",
                                               "INFO", "CONFIG", "SHUTDOWN"};
  std::string ratelimit_key_prefix = "__rl:";

  // Process and log.
  bool daemonize = false;
  Supervised supervised = Supervised::kNo;
  std::string pidfile;
  LogLevel loglevel = LogLevel::kNotice;
  std::string logfile;
  bool syslog_enabled = false;
  std::string syslog_ident = "sava";
  SyslogFacility syslog_facility = SyslogFacility::kLocal0;
  bool always_show_logo = false;
  bool crash_log_enabled = true;
  bool set_proc_title = true;
  std::string proc_title_template = "{title} {listen-addr} {server-mode}";
  bool disable_thp = true;
  OomScoreAdj oom_score_adj = OomScoreAdj::kNo;
  std::array<int, 3> oom_score_adj_values = {0, 200, 800};
  int64_t shutdown_timeout = 10;  // seconds
  uint32_t shutdown_on_sigint = 0;
  uint32_t shutdown_on_sigterm = 0;

  // Keyspace and memory.
  int64_t databases = 16;
  uint64_t maxmemory = 0;  // bytes, 0: no limit
  MaxmemoryPolicy maxmemory_policy = MaxmemoryPolicy::kNoEviction;
  int64_t maxmemory_samples = 5;
  int64_t maxmemory_eviction_tenacity = 10;
  int64_t lfu_log_factor = 10;
  int64_t lfu_decay_time = 1;  // minutes
  int64_t hz = 10;
  bool dynamic_hz = true;
  bool activerehashing = true;
  int64_t active_expire_effort = 1;
  bool lazyfree_lazy_eviction = false;
  bool lazyfree_lazy_expire = false;
  bool lazyfree_lazy_server_del = false;
  bool lazyfree_lazy_user_del = false;
  bool lazyfree_lazy_user_flush = false;
  uint32_t notify_keyspace_events = 0;  // NotifyFlag bits

  // Observation.
  int64_t slowlog_log_slower_than = 10000;  // microseconds, below zero: off
  int64_t slowlog_max_len = 128;
  int64_t latency_monitor_threshold = 0;  // milliseconds, 0: off
  bool latency_tracking = true;
  std::vector<double> latency_tracking_info_percentiles = {50, 99, 99.9};
  int64_t busy_reply_threshold = 5000;  // milliseconds

  // Scripts.
  ScriptKeys script_keys = ScriptKeys::kLearn;
  uint64_t script_max_memory = uint64_t{256} << 20;  // bytes that a run may hold
  bool lua_enable_deprecated_api = false;

  // Persistence.
  std::string dir = "./data";
  std::string dbfilename = "dump.rdb";
  std::vector<SaveRule> save_rules = {{300, 1}, {60, 10000}};
  bool stop_writes_on_bgsave_error = true;
  bool rdbcompression = true;
  bool rdbchecksum = true;
  uint64_t save_max_rate = 0;  // bytes a second that a snapshot may write, 0: no limit
  int64_t save_keep = 0;       // snapshots kept under dated names
  bool appendonly = true;
  std::string appendfilename = "appendonly.aof";
  std::string appenddirname = "appendonlydir";
  AppendFsync appendfsync = AppendFsync::kEverysec;
  bool aof_ring = true;  // `always` syncs by way of one
  bool no_appendfsync_on_rewrite = false;
  int64_t auto_aof_rewrite_percentage = 100;
  uint64_t auto_aof_rewrite_min_size = 64ULL << 20;
  bool aof_load_truncated = true;
  bool aof_use_rdb_preamble = true;
  int64_t rdb_key_save_delay = 0;  // for tests: µs of sleep after each key; -N: 1 µs after one of N
  bool aof_timestamp_enabled = false;
};

}  // namespace sava::config
