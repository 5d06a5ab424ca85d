// ReplicaLink: how this server follows a master. One thread does all of it, one step after the
// other: it finds the master's address, connects, agrees on how to go on, takes a data set when it
// has to, and applies the stream. When something fails it tries again, soon, or, where that would
// not help, later and later. No other thread touches the connection.
//
// A data set is received into a file, checked, and only then takes the place of the one that is
// there (Persistence::Replace). Each Follow and FollowNobody changes a number
// with the gate closed; work that belongs to an older number does nothing.
//
// Thread safety: as each says.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "engine/engine.h"
#include "net/tls_context.h"
#include "persistence/persistence.h"
#include "replication/replica_apply.h"
#include "replication/replica_payload.h"
#include "replication/replica_wire.h"
#include "replication/stream.h"

namespace sava::replication {

class ReplicaLink {
 public:
  enum class State : uint8_t { kNone, kConnect, kConnecting, kHandshake, kSync, kConnected };

  struct Figures {
    State state = State::kNone;
    int64_t last_io_ms = 0;     // Unix ms; 0: never
    int64_t down_since_ms = 0;  // 0: never up
    int64_t sync_total = -1;    // bytes of the data set
    int64_t sync_read = 0;
    uint64_t behind = 0;  // bytes that have come and are not applied
    uint64_t full_syncs = 0;
    uint64_t partial_syncs = 0;
    int64_t apply_cpu_us = 0;
    std::string last_error;
  };

  ReplicaLink(engine::Engine* engine, persistence::Persistence* persistence, Stream* stream);
  ~ReplicaLink();

  // On the main thread. Stop ends the connection and the thread; Start begins again.
  void Start();
  void Stop();

  // REQUIRES: the gate is closed. `taken`: the master is asked to become one (FAILOVER) and told
  // whether it does; then only one attempt is made, and its failure ends the following.
  void Follow(const std::string& host, int port, std::function<void(bool)> taken = {});
  void FollowNobody();
  // Done soon by the thread, with the gate closed. From any thread.
  void Post(std::function<void()> work);
  // The data set that was loaded is the one of the stream's history, and the stream has selected
  // that database: only what has come since is asked for. REQUIRES: the gate is closed.
  void SetResumable(bool on, int db);
  bool resumable() const { return resumable_.load(); }
  int db() const { return db_.load(); }
  // What the file that is loaded says that the stream has selected. On the thread that loads.
  void NoteLoadedDb(int db) { loaded_db_ = db; }

  // From any thread.
  void UseTls(std::shared_ptr<const net::TlsContext> tls);
  void ComeFrom(std::string address);
  Figures figures() const;
  // Bytes from masters, of all kinds.
  uint64_t received() const { return received_.load(std::memory_order_relaxed); }
  void ResetReceived() { received_.store(0, std::memory_order_relaxed); }
  static std::string_view Name(State state);

 private:
  struct Target {
    std::string host;  // empty: none
    int port = 0;
    uint64_t number = 0;
    std::function<void(bool)> taken;
  };
  // What the settings say, read now and then.
  struct Wishes {
    std::string masterauth, masteruser, announce_ip, dir;
    int64_t own_port = 0;
    int64_t timeout_ms = 0;
    bool tls = false;
    bool nodelay = true;
  };
  // How an attempt ended.
  enum class End : uint8_t { kBroke, kFailed, kRefused };
  // What the master said to PSYNC.
  struct Answer {
    enum class Kind : uint8_t { kFull, kContinue, kOld } kind = Kind::kFull;
    std::string id;
    int64_t offset = 0;
  };

  void Run();
  Target Wanted() const;
  bool Current(uint64_t number) const { return number_.load() == number && !stopping_.load(); }
  void ReadWishes();
  End Attempt(const Target& target);
  bool Connect(const Target& target, ReplicaWire& wire);
  bool Greet(ReplicaWire& wire);
  bool Ask(const Target& target, ReplicaWire& wire, Answer* answer);
  bool Exchange(ReplicaWire& wire, std::span<const std::string_view> words, std::string* reply);
  bool Send(ReplicaWire& wire, std::string_view text);
  bool AwaitLine(ReplicaWire& wire, std::string* reply);
  End Resume(const Target& target, ReplicaWire& wire, const Answer& answer);
  End Sync(const Target& target, ReplicaWire& wire, const Answer& answer);
  bool Receive(const Target& target, ReplicaWire& wire, const std::string& path,
               ReplicaPayload& payload);
  bool Load(const Target& target, ReplicaWire& wire, const std::string& path, const Answer& answer);
  End Steady(const Target& target, ReplicaWire& wire, bool acks);
  bool SendAck(ReplicaWire& wire);
  void NoteKept(bool always);
  int64_t KeptOffset();
  static std::string CommandOf(std::span<const std::string_view> words);
  void NoteApply(const ReplicaApply& apply);
  void HandoverFailed(const Target& target);
  void Pause(End end);
  void DoPosted();
  void Fail(std::string text);
  void SetState(State state);
  int64_t NowMs() const { return engine_.clock().WallMillis(); }

  engine::Engine& engine_;
  persistence::Persistence& persistence_;
  Stream& stream_;
  Waker waker_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> number_{0};
  std::atomic<bool> resumable_{false};
  std::atomic<int> db_{0};
  std::atomic<uint64_t> received_{0};
  int loaded_db_ = 0;  // the keeper's

  mutable std::mutex mutex_;                    // a leaf lock
  Target target_;                               // guarded by mutex_
  std::shared_ptr<const net::TlsContext> tls_;  // guarded by mutex_
  std::string source_;                          // guarded by mutex_
  Figures figures_;                             // guarded by mutex_
  std::vector<std::function<void()>> posted_;   // guarded by mutex_

  // The thread's own.
  Wishes wishes_;
  int64_t back_off_ms_ = 0;
  int64_t attempt_ms_ = 0;  // when the last one began
  struct Kept {
    uint64_t ticket;
    int64_t offset;
  };
  std::vector<Kept> kept_;  // what is applied, and below which ticket the log has it
  int64_t next_kept_ms_ = 0;
  int64_t kept_offset_ = 0;
  bool has_log_ = false;
  uint64_t durable_ = 0;       // of the log, when it was last looked at
  bool disk_fails_ = false;    // the log cannot be written
  bool ignores_disk_ = false;  // replica-ignore-disk-write-errors
};

}  // namespace sava::replication
