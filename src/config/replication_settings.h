// The settings of replication, as plain data: a part of Settings.
//
// Thread safety: that of Settings.
#pragma once

#include <cstdint>
#include <string>

namespace sava::config {

// What becomes of native types, and commands, on their way to a replica.
enum class NativeTypes : uint8_t {
  kAuto,  // sent to replicas that say they know them, left out for others
  kSend,
  kOmit,
};

enum class PropagationError : uint8_t { kIgnore, kPanic, kPanicOnReplicas };

// Of a server that has replicas.
struct MasterSettings {
  int64_t min_replicas_to_write = 0;
  int64_t min_replicas_max_lag = 10;  // seconds
  int64_t repl_backlog_size = 1 << 20;
  int64_t repl_backlog_ttl = 3600;  // seconds
  bool repl_disable_tcp_nodelay = false;
  bool repl_diskless_sync = true;
  int64_t repl_diskless_sync_delay = 5;  // seconds
  int64_t repl_diskless_sync_max_replicas = 0;
  int64_t repl_ping_replica_period = 10;  // seconds
  NativeTypes repl_native_types = NativeTypes::kAuto;
};

// Of a server that is a replica. A field for every setting, as in Settings.
struct ReplicaSettings {
  std::string master_host;  // replicaof; empty: this server is a master
  int64_t master_port = 0;
  std::string masterauth;
  std::string masteruser;
  std::string replica_announce_ip;
  int64_t replica_announce_port = 0;
  bool replica_announced = true;
  bool replica_ignore_disk_write_errors = false;
  bool replica_ignore_maxmemory = true;
  bool replica_lazy_flush = false;
  int64_t replica_priority = 100;
  bool replica_read_only = true;
  bool replica_serve_stale_data = true;
  int64_t repl_diskless_load = 0;  // 0: disabled
  PropagationError propagation_error_behavior = PropagationError::kIgnore;
  bool rdb_del_sync_files = false;
  int64_t key_load_delay = 0;  // microseconds a key
};

struct ReplicationSettings : MasterSettings, ReplicaSettings {
  int64_t repl_timeout = 60;  // seconds
};

}  // namespace sava::config
