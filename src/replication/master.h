// Master: this server for its replicas. Owns the stream of changes and the list of replicas;
// decides which replica gets a copy of the data set when, and lets commands wait for replicas.
//
// A copy: the keeper cuts the data set with the gate closed and asks the stream for the place that
// belongs to the cut; the walker writes into a Transfer, which all replicas with the same needs
// read. What changes meanwhile waits for them in the backlog.
//
// Locks: mutex_ is a leaf but for a replica's own mutex and mailboxes.
//
// Thread safety: Tick inside the gate on the first loop; the rest as it says.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "persistence/persistence.h"
#include "replication/change_stream.h"
#include "replication/failover.h"
#include "replication/following.h"
#include "replication/replica.h"

namespace sava::replication {

// WAITAOF's, when there is no log.
inline constexpr std::string_view kNoLocalLog =
    "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";

class Master {
 public:
  Master(engine::Engine* engine, persistence::Persistence* persistence);
  ~Master();
  Master(const Master&) = delete;
  Master& operator=(const Master&) = delete;

  // Before the first command runs; it lives as long as this.
  void set_following(Following* following) { following_ = following; }
  Following& following() const { return *following_; }
  engine::Engine& engine() { return engine_; }
  ChangeStream& stream() { return stream_; }

  // ---- commands, inside the gate ----
  // A client becomes a replica: it goes on with the stream from the byte `from` (counted from 0) of
  // the history `id`, or else gets a copy. False: a copy is on its way.
  bool Resume(engine::Client& client, std::string_view id, int64_t from);
  void SendCopy(engine::Client& client, bool psync);
  void Acknowledged(engine::Client& client, int64_t bytes, int64_t on_disk);
  // What ROLE and INFO show, and FAILOVER looks for.
  std::vector<std::shared_ptr<Replica>> replicas() const;
  // Replicas that have acknowledged that many bytes.
  int64_t CountWith(int64_t bytes) const;
  int64_t CountOnDisk(int64_t bytes) const;
  int64_t good_replicas() const { return good_.load(std::memory_order_relaxed); }

  // WAIT and WAITAOF: the client, which is blocked, is answered when as many replicas have what was
  // written below the ticket (on their disks), and the own disk has it, if that is wanted.
  struct Wanted {
    uint64_t ticket = 0;
    int64_t replicas = 0;
    bool on_disk = false;
    bool local = false;
  };
  // `target` gets the place in the stream that they need, once it is known.
  void Await(const engine::Client& client, const Wanted& wanted,
             std::shared_ptr<std::atomic<int64_t>> target);
  // What it would be answered now, if it need not wait any longer or must not.
  struct Answer {
    bool enough = false;
    bool local = false;
    int64_t replicas = 0;
  };
  // target: -1: it is not known yet.
  Answer Now(const Wanted& wanted, int64_t target = -1) const;
  static void WriteAnswer(protocol::Reply& reply, const Wanted& wanted, const Answer& answer);

  // ---- the server ----
  // This server becomes a master, or a replica. All that the journal has from before goes to the
  // stream as it was then. REQUIRES: the gate is closed.
  void BecomeMaster();
  void BecomeReplica();
  // The stream goes on where the data set that was loaded stands. REQUIRES: the gate is closed.
  void GoOn();
  // The journal's records do not go to the stream any more. REQUIRES: the gate is closed, or the
  // loops have ended.
  void StopStream();
  // About ten times a second.
  void Tick();
  // Settings have changed, with the gate closed.
  void SettingsChanged(const config::Settings& settings);
  // More is kept by the log. On the log's threads.
  void Kept();
  // Waits until all replicas have everything, not for long. Whether they have it. On the main
  // thread, while writes are paused.
  bool AwaitReplicas(int64_t millis, const std::function<bool()>& hurried);
  // Replicas are dropped. With the gate closed.
  void DropAll(std::string_view why);
  // Something was done that the journal does not tell of: before long all replicas get a new copy.
  // On any thread.
  void NoteLost();

  Failover& failover() { return failover_; }

  // ---- feeds, each on its loop ----
  void Gone(Replica& replica);
  // A replica has come or moved on.
  void Changed();

  // ---- INFO ----
  struct Figures {
    uint64_t full_syncs = 0;
    uint64_t partial_syncs = 0;
    uint64_t partial_refused = 0;
    uint64_t keys_left_out = 0;  // of copies for stock servers
    int64_t transfer_file = 0;
    uint64_t sent = 0;  // bytes, to replicas that have gone
  };
  Figures figures() const;
  void ResetFigures();  // CONFIG RESETSTAT
  engine::ReplicationFigures SharedFigures() const;
  // What is kept for slow replicas, which maxmemory does not count: to evict keys would only make
  // it more.
  uint64_t UncountedBytes() const;

 private:
  struct Sync;
  struct Waiting {
    size_t lane;
    uint64_t client;
    uint64_t token;
    int resp;
    Wanted wanted;
    std::shared_ptr<std::atomic<int64_t>> target;  // -1: what it waits for is not in the stream yet
  };

  std::shared_ptr<Replica> Enlist(engine::Client& client, bool psync);
  commands::Reader ReaderOf(const engine::Announcement& announced) const;
  void StartSyncs(int64_t now_ms);
  void StartSync(const std::shared_ptr<Sync>& sync);
  void CutMade(Sync& sync);
  void AfterCut(const std::shared_ptr<Sync>& sync);
  void AbandonCopy();  // mutex_ is held
  void SyncEnded(Sync& sync, const base::Result<uint64_t>& written);
  void Attach();
  void Moved();
  void AnswerWaiting();
  void RefuseLocalWaiting();
  void CountGood(int64_t now_ms);
  void EndIfUnused(int64_t now_ms);
  void RenewIfLost();
  size_t TransferMemory() const;  // mutex_ is held
  void RequestAcks();

  engine::Engine& engine_;
  persistence::Persistence& persistence_;
  FollowsNobody nobody_;
  Following* following_ = &nobody_;
  ChangeStream stream_;
  Failover failover_{this};
  bool attached_ = false;  // to the journal; guarded by the gate

  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Replica>> replicas_;  // guarded by mutex_
  std::shared_ptr<Sync> sync_;                      // guarded by mutex_; the one under way
  std::vector<Waiting> waiting_;                    // guarded by mutex_
  Figures figures_;                                 // guarded by mutex_
  std::atomic<size_t> waiting_count_{0};
  std::atomic<int64_t> good_{0};
  std::atomic<int64_t> unused_since_ms_{0};
  // Settings, for threads outside the gate.
  std::atomic<int64_t> min_replicas_{0};
  std::atomic<int64_t> max_lag_{10};
  std::atomic<int64_t> most_waiting_{INT64_MAX};  // for one replica
  std::atomic<bool> told_left_out_{false};
  std::atomic<bool> lost_{false};
  int64_t last_ping_ms_ = 0;    // of Tick
  int64_t next_second_ms_ = 0;  // of Tick
};

}  // namespace sava::replication
