// The rows of the settings table (see config_table.h) and the lookup by name.

#include "config/config_table.h"

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>

#include "base/nearest.h"
#include "base/text.h"

namespace sava::config {

namespace {

using S = Settings;

constexpr int64_t kIntMin = std::numeric_limits<int32_t>::min();
constexpr int64_t kIntMax = std::numeric_limits<int32_t>::max();
constexpr int64_t kUintMax = std::numeric_limits<uint32_t>::max();
constexpr int64_t kLongMax = std::numeric_limits<int64_t>::max();
constexpr uint64_t kUlongMax = std::numeric_limits<uint64_t>::max();
constexpr int64_t kMegabyte = 1 << 20;

template <typename Enum>
constexpr ChoiceName Choice(std::string_view name, Enum value) {
  return {name, static_cast<int64_t>(value)};
}

constexpr ChoiceName kPolicies[] = {
    Choice("volatile-lru", MaxmemoryPolicy::kVolatileLru),
    Choice("volatile-lfu", MaxmemoryPolicy::kVolatileLfu),
    Choice("volatile-random", MaxmemoryPolicy::kVolatileRandom),
    Choice("volatile-ttl", MaxmemoryPolicy::kVolatileTtl),
    Choice("allkeys-lru", MaxmemoryPolicy::kAllkeysLru),
    Choice("allkeys-lfu", MaxmemoryPolicy::kAllkeysLfu),
    Choice("allkeys-random", MaxmemoryPolicy::kAllkeysRandom),
    Choice("noeviction", MaxmemoryPolicy::kNoEviction),
};
constexpr ChoiceName kAllows[] = {Choice("no", Allow::kNo), Choice("yes", Allow::kYes),
                                  Choice("local", Allow::kLocal)};
constexpr ChoiceName kLogLevels[] = {
    Choice("debug", LogLevel::kDebug), Choice("verbose", LogLevel::kVerbose),
    Choice("notice", LogLevel::kNotice), Choice("warning", LogLevel::kWarning)};
constexpr ChoiceName kSupervisors[] = {
    Choice("upstart", Supervised::kUpstart), Choice("systemd", Supervised::kSystemd),
    Choice("auto", Supervised::kAuto), Choice("no", Supervised::kNo)};
constexpr ChoiceName kFacilities[] = {
    Choice("user", SyslogFacility::kUser),     Choice("local0", SyslogFacility::kLocal0),
    Choice("local1", SyslogFacility::kLocal1), Choice("local2", SyslogFacility::kLocal2),
    Choice("local3", SyslogFacility::kLocal3), Choice("local4", SyslogFacility::kLocal4),
    Choice("local5", SyslogFacility::kLocal5), Choice("local6", SyslogFacility::kLocal6),
    Choice("local7", SyslogFacility::kLocal7)};
constexpr ChoiceName kScriptKeys[] = {Choice("learn", ScriptKeys::kLearn),
                                      Choice("exclusive", ScriptKeys::kExclusive),
                                      Choice("strict", ScriptKeys::kStrict)};
constexpr ChoiceName kFsyncs[] = {Choice("everysec", AppendFsync::kEverysec),
                                  Choice("always", AppendFsync::kAlways),
                                  Choice("no", AppendFsync::kNo)};
constexpr ChoiceName kOomModes[] = {
    Choice("no", OomScoreAdj::kNo), Choice("yes", OomScoreAdj::kRelative),
    Choice("relative", OomScoreAdj::kRelative), Choice("absolute", OomScoreAdj::kAbsolute)};
constexpr ChoiceName kSanitizes[] = {Choice("no", SanitizeDump::kNo),
                                     Choice("yes", SanitizeDump::kYes),
                                     Choice("clients", SanitizeDump::kClients)};
constexpr ChoiceName kShutdowns[] = {
    {"default", 0},        {"save", kShutdownSave},   {"nosave", kShutdownNosave},
    {"now", kShutdownNow}, {"force", kShutdownForce},
};
constexpr ChoiceName kDisklessLoads[] = {{"disabled", 0}, {"on-empty-db", 1}, {"swapdb", 2}};
constexpr ChoiceName kChannelDefaults[] = {{"allchannels", 1}, {"resetchannels", 0}};
constexpr ChoiceName kEndpoints[] = {{"ip", 0}, {"hostname", 1}, {"unknown-endpoint", 2}};
constexpr ChoiceName kNativeTypes[] = {Choice("auto", NativeTypes::kAuto),
                                       Choice("send", NativeTypes::kSend),
                                       Choice("omit", NativeTypes::kOmit)};
constexpr ChoiceName kPropagations[] = {
    Choice("ignore", PropagationError::kIgnore), Choice("panic", PropagationError::kPanic),
    Choice("panic-on-replicas", PropagationError::kPanicOnReplicas)};
constexpr ChoiceName kTlsAuths[] = {Choice("no", TlsAuth::kNo), Choice("yes", TlsAuth::kYes),
                                    Choice("optional", TlsAuth::kOptional)};

// Where a row's value lives: a field of Settings, or only kept with this default.
struct Place {
  Field field;
  std::string_view initial;
};
template <auto kMember>
constexpr Place In() {
  return {config::In<kMember>(), {}};
}
constexpr Place Kept(std::string_view initial) { return {{}, initial}; }

constexpr Setting Row(std::string_view name, Kind kind, Place place) {
  Setting row;
  row.name = name;
  row.kind = kind;
  row.field = place.field;
  row.initial = place.initial;
  return row;
}
constexpr Setting Ranged(Setting row, int64_t min, uint64_t max) {
  row.min = min;
  row.max = max;
  return row;
}
constexpr Setting Bool(std::string_view name, Place place) { return Row(name, Kind::kBool, place); }
constexpr Setting Number(std::string_view name, int64_t min, int64_t max, Place place) {
  return Ranged(Row(name, Kind::kInteger, place), min, static_cast<uint64_t>(max));
}
constexpr Setting Octal(std::string_view name, int64_t max, Place place) {
  return Ranged(Row(name, Kind::kOctal, place), 0, static_cast<uint64_t>(max));
}
constexpr Setting Memory(std::string_view name, int64_t min, uint64_t max, Place place) {
  return Ranged(Row(name, Kind::kMemory, place), min, max);
}
constexpr Setting MemoryOrPercent(std::string_view name, Place place) {
  return Ranged(Row(name, Kind::kMemoryOrPercent, place), 0, kLongMax);
}
constexpr Setting OneOf(std::string_view name, std::span<const ChoiceName> choices, Place place) {
  Setting row = Row(name, Kind::kChoice, place);
  row.choices = choices;
  return row;
}
constexpr Setting SomeOf(std::string_view name, std::span<const ChoiceName> choices, Place place) {
  Setting row = Row(name, Kind::kChoices, place);
  row.choices = choices;
  row.flags = kManyWords;
  return row;
}
constexpr Setting Text(std::string_view name, Place place) { return Row(name, Kind::kText, place); }
constexpr Setting Other(std::string_view name, const Special& special) {
  Setting row = Row(name, Kind::kSpecial, {});
  row.special = &special;
  return row;
}

int64_t ClampHz(int64_t value) { return std::clamp<int64_t>(value, 1, 500); }
int64_t ClampBacklog(int64_t value) { return std::max<int64_t>(value, 16 * 1024); }
int64_t ClampWatchdog(int64_t value) { return value == 0 ? 0 : std::max<int64_t>(value, 200); }

base::Status CheckShutdown(int64_t bits) {
  if ((bits & kShutdownSave) != 0 && (bits & kShutdownNosave) != 0) {
    return base::Error{"shutdown options SAVE and NOSAVE can't be used simultaneously"};
  }
  return {};
}

bool IsPath(std::string_view text) { return text.find('/') != std::string_view::npos; }

base::Status CheckDbFilename(std::string_view text) {
  if (IsPath(text)) return base::Error{"dbfilename can't be a path, just a filename"};
  return {};
}

base::Status CheckAppendFilename(std::string_view text) {
  if (text.empty()) return base::Error{"appendfilename can't be empty"};
  if (IsPath(text)) return base::Error{"appendfilename can't be a path, just a filename"};
  return {};
}

base::Status CheckAppendDirname(std::string_view text) {
  if (text.empty()) return base::Error{"appenddirname can't be empty"};
  if (IsPath(text)) return base::Error{"appenddirname can't be a path, just a dirname"};
  return {};
}

base::Status CheckHostname(std::string_view text) {
  if (text.size() >= 256) return base::Error{"Hostnames must be less than 256 characters"};
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && (c < '0' || c > '9') && c != '-' && c != '.') {
      return base::Error{"Hostnames may only contain alphanumeric characters, hyphens or dots"};
    }
  }
  return {};
}

base::Status CheckNodename(std::string_view text) {
  if (text.find_first_of("!#$%&()*+:;<>?@[]^{|}~") != std::string_view::npos) {
    return base::Error{"Announced human node name contained invalid character"};
  }
  return {};
}

// The template must be well formed, and leave something to show where everything that may be empty
// is empty.
base::Status CheckTitle(std::string_view text) {
  constexpr std::string_view kShown[] = {"listen-addr", "port", "tls-port", "config-file"};
  constexpr std::string_view kMaybeEmpty[] = {"title", "server-mode", "unixsocket"};
  const base::Error bad{"template format is invalid or contains unknown variables"};
  bool shows_something = false;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '{') {
      shows_something = shows_something || text[at] != ' ';
      continue;
    }
    const size_t end = text.find('}', at);
    if (end == std::string_view::npos) return bad;
    const std::string_view variable = text.substr(at + 1, end - at - 1);
    if (std::ranges::find(kShown, variable) != std::end(kShown)) {
      shows_something = true;
    } else if (std::ranges::find(kMaybeEmpty, variable) == std::end(kMaybeEmpty)) {
      return bad;
    }
    at = end;
  }
  if (!shows_something) return bad;
  return {};
}

base::Status CheckKeyPrefix(std::string_view text) {
  if (text.empty()) return base::Error{"the prefix can't be empty"};
  if (text.size() > 128) return base::Error{"the prefix must be shorter than 129 bytes"};
  return {};
}

constexpr Setting kRows[] = {
    // Sava's own.
    Number("threads", 0, 1024, In<&S::threads>()).With(kImmutable),
    Number("http-port", 0, 65535, In<&S::http_port>()).With(kImmutable),
    Other("http-bind", kHttpBindSpecial).With(kImmutable | kManyWords),
    Other("http-hosts", kHttpHostsSpecial).With(kManyWords),
    Memory("http-max-header", 1024, kMegabyte, In<&S::http_max_header>()),
    Memory("http-max-body", 0, 1024 * kMegabyte, In<&S::http_max_body>()),
    Number("http-timeout", 0, kIntMax, In<&S::http_timeout>()),
    Number("http-idle-timeout", 0, kIntMax, In<&S::http_idle_timeout>()),
    Text("associations-prefix", In<&S::associations_prefix>()),
    Number("associations-top", 1, 10000, In<&S::associations_top>()),
    Bool("associations-guid-keys", In<&S::associations_guid_keys>()),

    // Network.
    Number("port", 0, 65535, In<&S::port>()),
    Other("bind", kBindSpecial).With(kManyWords),
    Text("bind-source-addr", Kept("")),
    Text("unixsocket", In<&S::unixsocket>()).With(kImmutable),
    Octal("unixsocketperm", 0777, In<&S::unixsocketperm>()).With(kImmutable),
    Number("tcp-backlog", 0, kIntMax, In<&S::tcp_backlog>()).With(kImmutable),
    Number("timeout", 0, kIntMax, In<&S::timeout>()),
    Number("tcp-keepalive", 0, kIntMax, In<&S::tcp_keepalive>()),
    Number("socket-mark-id", 0, kUintMax, Kept("0")).With(kImmutable),
    Number("maxclients", 1, kUintMax, In<&S::maxclients>()),
    Memory("proto-max-bulk-len", kMegabyte, kLongMax, In<&S::proto_max_bulk_len>()),
    Memory("client-query-buffer-limit", kMegabyte, kLongMax, In<&S::client_query_buffer_limit>()),
    Other("client-output-buffer-limit", kOutputLimitSpecial).With(kManyWords),
    MemoryOrPercent("maxmemory-clients", In<&S::maxmemory_clients>()),
    Number("tracking-table-max-keys", 0, kLongMax, In<&S::tracking_table_max_keys>()),
    Number("io-threads", 1, 128, Kept("1")).With(kImmutable),
    Bool("io-threads-do-reads", Kept("no")).With(kImmutable),

    // Security.
    Bool("protected-mode", In<&S::protected_mode>()),
    Text("requirepass", In<&S::requirepass>()).With(kSensitive),
    OneOf("enable-protected-configs", kAllows, In<&S::enable_protected_configs>()).With(kImmutable),
    OneOf("enable-debug-command", kAllows, In<&S::enable_debug_command>()).With(kImmutable),
    OneOf("enable-module-command", kAllows, In<&S::enable_module_command>()).With(kImmutable),
    Text("aclfile", In<&S::aclfile>()).With(kImmutable),
    OneOf("acl-pubsub-default", kChannelDefaults, In<&S::acl_pubsub_all_channels>()),
    Number("acllog-max-len", 0, kLongMax, In<&S::acllog_max_len>()),
    OneOf("sanitize-dump-payload", kSanitizes, In<&S::sanitize_dump_payload>()),

    // The server's own limiter.
    Bool("ratelimit-enabled", In<&S::ratelimit_enabled>()),
    Other("ratelimit-default", kRateDefaultSpecial).With(kManyWords),
    Other("ratelimit-user", kRateUserSpecial).With(kManyWords),
    Other("ratelimit-ip", kRateIpSpecial).With(kManyWords),
    Other("ratelimit-exempt", kRateExemptSpecial).With(kManyWords),
    Text("ratelimit-key-prefix", In<&S::ratelimit_key_prefix>()).Checked(CheckKeyPrefix),

    // TLS.
    Number("tls-port", 0, 65535, In<&S::tls_port>()),
    Number("http-tls-port", 0, 65535, In<&S::http_tls_port>()),
    Text("tls-cert-file", In<&S::tls_cert_file>()).With(kNamesFile),
    Text("tls-key-file", In<&S::tls_key_file>()).With(kNamesFile),
    Text("tls-key-file-pass", In<&S::tls_key_file_pass>()).With(kSensitive | kNamesFile),
    Text("tls-client-cert-file", In<&S::tls_client_cert_file>()).With(kNamesFile),
    Text("tls-client-key-file", In<&S::tls_client_key_file>()).With(kNamesFile),
    Text("tls-client-key-file-pass", In<&S::tls_client_key_file_pass>())
        .With(kSensitive | kNamesFile),
    Text("tls-dh-params-file", In<&S::tls_dh_params_file>()).With(kNamesFile),
    Text("tls-ca-cert-file", In<&S::tls_ca_cert_file>()).With(kNamesFile),
    Text("tls-ca-cert-dir", In<&S::tls_ca_cert_dir>()).With(kNamesFile),
    OneOf("tls-auth-clients", kTlsAuths, In<&S::tls_auth_clients>()),
    Bool("tls-replication", In<&S::tls_replication>()),
    Bool("tls-cluster", Kept("no")).NotBuilt("TLS between the nodes of a cluster"),
    Text("tls-protocols", In<&S::tls_protocols>()),
    Text("tls-ciphers", In<&S::tls_ciphers>()),
    Text("tls-ciphersuites", In<&S::tls_ciphersuites>()),
    Bool("tls-prefer-server-ciphers", In<&S::tls_prefer_server_ciphers>()),
    Bool("tls-session-caching", In<&S::tls_session_caching>()),
    Number("tls-session-cache-size", 0, kIntMax, In<&S::tls_session_cache_size>()),
    Number("tls-session-cache-timeout", 0, kIntMax, In<&S::tls_session_cache_timeout>()),

    // Process and log.
    Bool("daemonize", In<&S::daemonize>()).With(kImmutable),
    OneOf("supervised", kSupervisors, In<&S::supervised>()).With(kImmutable),
    Text("pidfile", In<&S::pidfile>()).With(kImmutable),
    OneOf("loglevel", kLogLevels, In<&S::loglevel>()),
    Text("logfile", In<&S::logfile>()).With(kImmutable),
    Bool("syslog-enabled", In<&S::syslog_enabled>()).With(kImmutable),
    Text("syslog-ident", In<&S::syslog_ident>()).With(kImmutable),
    OneOf("syslog-facility", kFacilities, In<&S::syslog_facility>()).With(kImmutable),
    Bool("always-show-logo", In<&S::always_show_logo>()).With(kImmutable),
    Bool("crash-log-enabled", In<&S::crash_log_enabled>()),
    Bool("crash-memcheck-enabled", Kept("yes")),
    Bool("use-exit-on-panic", Kept("no")).With(kHidden),
    Bool("set-proc-title", In<&S::set_proc_title>()).With(kImmutable),
    Text("proc-title-template", In<&S::proc_title_template>()).Checked(CheckTitle),
    Text("locale-collate", Kept("")),
    Text("ignore-warnings", Kept("")),
    Bool("disable-thp", In<&S::disable_thp>()).With(kImmutable),
    OneOf("oom-score-adj", kOomModes, In<&S::oom_score_adj>()),
    Other("oom-score-adj-values", kOomValuesSpecial).With(kManyWords),
    Number("shutdown-timeout", 0, kIntMax, In<&S::shutdown_timeout>()),
    SomeOf("shutdown-on-sigint", kShutdowns, In<&S::shutdown_on_sigint>()).Checked(CheckShutdown),
    SomeOf("shutdown-on-sigterm", kShutdowns, In<&S::shutdown_on_sigterm>()).Checked(CheckShutdown),
    Number("watchdog-period", 0, kIntMax, Kept("0")).With(kHidden).Clamped(ClampWatchdog),
    Text("server-cpulist", Kept("")).Also("server_cpulist").With(kImmutable),
    Text("bio-cpulist", Kept("")).Also("bio_cpulist").With(kImmutable),
    Text("aof-rewrite-cpulist", Kept("")).Also("aof_rewrite_cpulist").With(kImmutable),
    Text("bgsave-cpulist", Kept("")).Also("bgsave_cpulist").With(kImmutable),

    // Keyspace and memory.
    Number("databases", 1, kIntMax, In<&S::databases>()).With(kImmutable),
    Memory("maxmemory", 0, kUlongMax, In<&S::maxmemory>()),
    OneOf("maxmemory-policy", kPolicies, In<&S::maxmemory_policy>()),
    Number("maxmemory-samples", 1, kIntMax, In<&S::maxmemory_samples>()),
    Number("maxmemory-eviction-tenacity", 0, 100, In<&S::maxmemory_eviction_tenacity>()),
    Number("lfu-log-factor", 0, kIntMax, In<&S::lfu_log_factor>()),
    Number("lfu-decay-time", 0, kIntMax, In<&S::lfu_decay_time>()),
    Number("hz", 0, kIntMax, In<&S::hz>()).Clamped(ClampHz),
    Bool("dynamic-hz", In<&S::dynamic_hz>()),
    Bool("activerehashing", In<&S::activerehashing>()),
    Number("active-expire-effort", 1, 10, In<&S::active_expire_effort>()),
    Bool("lazyfree-lazy-eviction", In<&S::lazyfree_lazy_eviction>()),
    Bool("lazyfree-lazy-expire", In<&S::lazyfree_lazy_expire>()),
    Bool("lazyfree-lazy-server-del", In<&S::lazyfree_lazy_server_del>()),
    Bool("lazyfree-lazy-user-del", In<&S::lazyfree_lazy_user_del>()),
    Bool("lazyfree-lazy-user-flush", In<&S::lazyfree_lazy_user_flush>()),
    Other("notify-keyspace-events", kNotifySpecial),
    Bool("jemalloc-bg-thread", Kept("yes")),
    Bool("activedefrag", Kept("no")),
    Memory("active-defrag-ignore-bytes", 1, kLongMax, Kept("104857600")),
    Number("active-defrag-threshold-lower", 0, 1000, Kept("10")),
    Number("active-defrag-threshold-upper", 0, 1000, Kept("100")),
    Number("active-defrag-cycle-min", 1, 99, Kept("1")),
    Number("active-defrag-cycle-max", 1, 99, Kept("25")),
    Number("active-defrag-max-scan-fields", 1, kLongMax, Kept("1000")),

    // How long collections stay packed.
    Number("hash-max-listpack-entries", 0, kLongMax, In<&S::hash_max_listpack_entries>())
        .Also("hash-max-ziplist-entries"),
    Memory("hash-max-listpack-value", 0, kLongMax, In<&S::hash_max_listpack_value>())
        .Also("hash-max-ziplist-value"),
    Number("list-max-listpack-size", kIntMin, kIntMax, In<&S::list_max_listpack_size>())
        .Also("list-max-ziplist-size"),
    Number("list-compress-depth", 0, kIntMax, In<&S::list_compress_depth>()),
    Bool("dictionary-encoding", In<&S::dictionary_encoding>()),
    Number("set-max-intset-entries", 0, kLongMax, In<&S::set_max_intset_entries>()),
    Number("set-max-listpack-entries", 0, kLongMax, In<&S::set_max_listpack_entries>()),
    Memory("set-max-listpack-value", 0, kLongMax, In<&S::set_max_listpack_value>()),
    Number("zset-max-listpack-entries", 0, kLongMax, In<&S::zset_max_listpack_entries>())
        .Also("zset-max-ziplist-entries"),
    Memory("zset-max-listpack-value", 0, kLongMax, In<&S::zset_max_listpack_value>())
        .Also("zset-max-ziplist-value"),
    Memory("hll-sparse-max-bytes", 0, kLongMax, In<&S::hll_sparse_max_bytes>()),
    Memory("stream-node-max-bytes", 0, kLongMax, In<&S::stream_node_max_bytes>()),
    Number("stream-node-max-entries", 0, kLongMax, In<&S::stream_node_max_entries>()),

    // Observation.
    Number("slowlog-log-slower-than", -1, kLongMax, In<&S::slowlog_log_slower_than>()),
    Number("slowlog-max-len", 0, kLongMax, In<&S::slowlog_max_len>()),
    Number("latency-monitor-threshold", 0, kLongMax, In<&S::latency_monitor_threshold>()),
    Bool("latency-tracking", In<&S::latency_tracking>()),
    Other("latency-tracking-info-percentiles", kPercentilesSpecial).With(kManyWords),
    Number("busy-reply-threshold", 0, kLongMax, In<&S::busy_reply_threshold>())
        .Also("lua-time-limit"),

    // Scripts.
    OneOf("script-keys", kScriptKeys, In<&S::script_keys>()),
    Memory("script-max-memory", 1 << 20, kLongMax, In<&S::script_max_memory>()),
    Bool("lua-enable-deprecated-api", In<&S::lua_enable_deprecated_api>()).With(kHidden),

    // Persistence.
    Other("dir", kDirSpecial).With(kProtected | kWhenLoaded),
    Text("dbfilename", In<&S::dbfilename>()).With(kProtected).Checked(CheckDbFilename),
    Other("save", kSaveSpecial).With(kManyWords),
    Bool("stop-writes-on-bgsave-error", In<&S::stop_writes_on_bgsave_error>()),
    Bool("rdbcompression", In<&S::rdbcompression>()),
    Bool("rdbchecksum", In<&S::rdbchecksum>()).With(kImmutable),
    Bool("rdb-del-sync-files", In<&S::rdb_del_sync_files>()),
    Bool("rdb-save-incremental-fsync", Kept("yes")),
    Number("rdb-key-save-delay", kIntMin, kIntMax, In<&S::rdb_key_save_delay>()).With(kHidden),
    Number("key-load-delay", kIntMin, kIntMax, In<&S::key_load_delay>()).With(kHidden),
    Number("loading-process-events-interval-bytes", 1024, kIntMax, Kept("2097152")).With(kHidden),
    Memory("save-max-rate", 0, kLongMax, In<&S::save_max_rate>()),
    Number("save-keep", 0, 10000, In<&S::save_keep>()),
    Bool("appendonly", In<&S::appendonly>()).With(kWhenLoaded),
    Text("appendfilename", In<&S::appendfilename>()).With(kImmutable).Checked(CheckAppendFilename),
    Text("appenddirname", In<&S::appenddirname>()).With(kImmutable).Checked(CheckAppendDirname),
    OneOf("appendfsync", kFsyncs, In<&S::appendfsync>()),
    Bool("aof-ring", In<&S::aof_ring>()),
    Bool("no-appendfsync-on-rewrite", In<&S::no_appendfsync_on_rewrite>()),
    Number("auto-aof-rewrite-percentage", 0, kIntMax, In<&S::auto_aof_rewrite_percentage>()),
    Memory("auto-aof-rewrite-min-size", 0, kLongMax, In<&S::auto_aof_rewrite_min_size>()),
    Bool("aof-load-truncated", In<&S::aof_load_truncated>()),
    Bool("aof-use-rdb-preamble", In<&S::aof_use_rdb_preamble>()),
    Bool("aof-timestamp-enabled", In<&S::aof_timestamp_enabled>()),
    Bool("aof-rewrite-incremental-fsync", Kept("yes")),
    Bool("aof-disable-auto-gc", Kept("no")),

    // Replication.
    Other("replicaof", kReplicaOfSpecial).Also("slaveof").With(kImmutable | kManyWords),
    Text("masterauth", In<&S::masterauth>()).With(kSensitive),
    Text("masteruser", In<&S::masteruser>()).With(kSensitive),
    Number("min-replicas-to-write", 0, kIntMax, In<&S::min_replicas_to_write>())
        .Also("min-slaves-to-write"),
    Number("min-replicas-max-lag", 0, kIntMax, In<&S::min_replicas_max_lag>())
        .Also("min-slaves-max-lag"),
    Text("replica-announce-ip", In<&S::replica_announce_ip>()).Also("slave-announce-ip"),
    Number("replica-announce-port", 0, 65535, In<&S::replica_announce_port>())
        .Also("slave-announce-port"),
    Bool("replica-announced", In<&S::replica_announced>()),
    Bool("replica-ignore-disk-write-errors", In<&S::replica_ignore_disk_write_errors>()),
    Bool("replica-ignore-maxmemory", In<&S::replica_ignore_maxmemory>())
        .Also("slave-ignore-maxmemory"),
    Bool("replica-lazy-flush", In<&S::replica_lazy_flush>()).Also("slave-lazy-flush"),
    Number("replica-priority", 0, kIntMax, In<&S::replica_priority>()).Also("slave-priority"),
    Bool("replica-read-only", In<&S::replica_read_only>()).Also("slave-read-only"),
    Bool("replica-serve-stale-data", In<&S::replica_serve_stale_data>())
        .Also("slave-serve-stale-data"),
    Memory("repl-backlog-size", 1, kLongMax, In<&S::repl_backlog_size>()).Clamped(ClampBacklog),
    Number("repl-backlog-ttl", 0, kLongMax, In<&S::repl_backlog_ttl>()),
    Bool("repl-disable-tcp-nodelay", In<&S::repl_disable_tcp_nodelay>()),
    OneOf("repl-diskless-load", kDisklessLoads, In<&S::repl_diskless_load>()).With(kWhenLoaded),
    Bool("repl-diskless-sync", In<&S::repl_diskless_sync>()),
    Number("repl-diskless-sync-delay", 0, kIntMax, In<&S::repl_diskless_sync_delay>()),
    Number("repl-diskless-sync-max-replicas", 0, kIntMax,
           In<&S::repl_diskless_sync_max_replicas>()),
    OneOf("repl-native-types", kNativeTypes, In<&S::repl_native_types>()),
    Number("repl-ping-replica-period", 1, kIntMax, In<&S::repl_ping_replica_period>())
        .Also("repl-ping-slave-period"),
    Number("repl-timeout", 1, kIntMax, In<&S::repl_timeout>()),
    OneOf("propagation-error-behavior", kPropagations, In<&S::propagation_error_behavior>()),

    // Cluster.
    Bool("cluster-enabled", Kept("no")).With(kImmutable).NotBuilt("cluster mode"),
    Text("cluster-config-file", Kept("nodes.conf")).With(kImmutable),
    Number("cluster-port", 0, 65535, Kept("0")).With(kImmutable),
    Number("cluster-node-timeout", 0, kLongMax, Kept("15000")),
    Number("cluster-migration-barrier", 0, kIntMax, Kept("1")),
    Number("cluster-replica-validity-factor", 0, kIntMax, Kept("10"))
        .Also("cluster-slave-validity-factor"),
    Bool("cluster-replica-no-failover", Kept("no")).Also("cluster-slave-no-failover"),
    Bool("cluster-require-full-coverage", Kept("yes")),
    Bool("cluster-allow-reads-when-down", Kept("no")),
    Bool("cluster-allow-pubsubshard-when-down", Kept("yes")),
    Bool("cluster-allow-replica-migration", Kept("yes")),
    Memory("cluster-link-sendbuf-limit", 0, kUlongMax, Kept("0")),
    Text("cluster-announce-ip", Kept("")),
    Text("cluster-announce-hostname", Kept("")).Checked(CheckHostname),
    Text("cluster-announce-human-nodename", Kept("")).Checked(CheckNodename),
    Number("cluster-announce-port", 0, 65535, Kept("0")),
    Number("cluster-announce-tls-port", 0, 65535, Kept("0")),
    Number("cluster-announce-bus-port", 0, 65535, Kept("0")),
    OneOf("cluster-preferred-endpoint-type", kEndpoints, Kept("ip")),
};

constexpr Directive kDirectives[] = {
    {"loadmodule", "not built yet: modules"},
    {"sentinel", "sentinel directive while not in sentinel mode"},
    {"list-max-ziplist-entries", ""},
    {"list-max-ziplist-value", ""},
};

}  // namespace

std::span<const Setting> AllSettings() {
  static const std::vector<Setting> kSorted = [] {
    std::vector<Setting> rows(std::begin(kRows), std::end(kRows));
    std::ranges::sort(rows, {}, &Setting::name);
    return rows;
  }();
  return kSorted;
}

const Setting* FindSetting(std::string_view name) {
  static const std::unordered_map<std::string_view, const Setting*> kIndex = [] {
    std::unordered_map<std::string_view, const Setting*> index;
    for (const Setting& row : AllSettings()) {
      index.emplace(row.name, &row);
      if (!row.alias.empty()) index.emplace(row.alias, &row);
    }
    return index;
  }();
  if (name.size() > 64) return nullptr;
  const auto found = kIndex.find(base::ToLower(name));
  return found == kIndex.end() ? nullptr : found->second;
}

const Directive* FindDirective(std::string_view name) {
  for (const Directive& directive : kDirectives) {
    if (base::EqualsNoCase(directive.name, name)) return &directive;
  }
  return nullptr;
}

std::string_view NearestName(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Setting& row : AllSettings()) {
    if (row.has(kHidden)) continue;
    known.push_back(row.name);
    if (!row.alias.empty()) known.push_back(row.alias);
  }
  return base::NearestWord(name, known);
}

ConfigState DefaultState() {
  ConfigState state;
  for (const Setting& row : AllSettings()) state.kept.emplace_back(row.initial);
  return state;
}

}  // namespace sava::config
