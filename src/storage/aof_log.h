// AofLog: the append-only log on disk: a base (an RDB file), increments (RESP commands), a manifest
// that names them. As a consumer of the journal it gets records in ticket order, from one thread at
// a time, frames them (SELECT, MULTI/EXEC, comment lines), writes and, as the policy says, syncs.
//
// A power failure may lose: with kAlways nothing below durable(); with kEverysec the writes of the
// last second or two; with kNo everything that the system has not written yet. The end of the
// process loses nothing below kept().
//
// With kAlways most syncs use a ring (aof_sync_path.h): the ring holds, durably, the bytes written
// to the increment since the file itself was last synced. The increment's first sync, large ones,
// and all syncs where there is no ring are syncs of the file.
//
// With every policy the log tells the system every few megabytes to write the new bytes and to drop
// the pages it has written. The log then reuses a few pages of memory, and syncs stay short.
//
// Trouble: bytes that could not be written are truncated away, kept and tried again about ten times
// a second. After a failed sync, or when there was no memory for a record, the file cannot be
// trusted: state() is kNeedsBase until the owner has written a new base (SwitchAt …
// FinishRewrite). While state() is not kGood nothing new becomes durable.
//
// An increment is synced before the next one is, and is named by the manifest before anything in it
// counts as durable. After a switch that was prepared (PrepareSwitch) the next one gets records
// before the earlier one is synced; it then begins with a line that tells the earlier one's size
// (aof_reader.h: AofAfter), so that a start can tell where the log ends after a power failure.
//
// A new base in trouble: while the files so far cannot be trusted, or there is none yet, the
// increment after SwitchAt is not named by the manifest until FinishRewrite, and nothing becomes
// durable until then.
//
// Thread safety: Receive and Pause on one thread at a time (the journal's lock); PrepareSwitch,
// SwitchAt, TemporaryBase, FinishRewrite and AbortRewrite on one thread at a time; everything else
// from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "journal/barrier.h"
#include "journal/journal.h"
#include "storage/aof_manifest.h"
#include "storage/aof_pending.h"
#include "storage/aof_sync_path.h"
#include "storage/file_system.h"

namespace sava::storage {

class AofLog final : public journal::Consumer, public journal::Barrier {
 public:
  enum class Policy : uint8_t { kAlways, kEverysec, kNo };
  enum class State : uint8_t { kGood, kWriteFailed, kNeedsBase };
  struct Options {
    FileSystem* files = &FileSystem::Real();
    std::string directory;        // appenddirname
    std::string name;             // appendfilename
    std::string data_set;         // its id, which the manifest tells
    std::shared_ptr<void> guard;  // kept as long as the log is: its lock
    Policy policy = Policy::kEverysec;
    bool timestamps = false;
    std::chrono::milliseconds retry_after{100};  // a failed write
    bool ring = true;                            // kAlways syncs by way of one
    uint64_t ring_size = AofRing::kSize;
    // Called (on the thread that did it, without locks) when durable(), kept() or state() has
    // changed.
    std::function<void()> changed = [] {};
  };

  explicit AofLog(Options options);
  ~AofLog() override;  // writes and, unless kNo, syncs the rest

  // Reads the manifest; false with no error when there is none.
  static base::Result<bool> FindManifest(FileSystem& files, const std::string& directory,
                                         const std::string& name, AofManifest* manifest);

  // Continues the log of the manifest. Records go on in the last increment, as with Redis, or in a
  // new one where there is none or the last is not Sava's; without a base and an increment the
  // caller has to write a base first (SwitchAt/FinishRewrite). `next_ticket`: the first ticket that
  // goes. REQUIRES: before the journal has this consumer; every file of the log was
  // read to its end and found whole (ReadParts, RepairLog).
  base::Status Open(const AofManifest& manifest, uint64_t next_ticket);

  // ---- writing a new base ----
  // Makes the increment for the next switch, so that the switch does not wait for the disk: until
  // then records go where they went. Does nothing while the log is in trouble; then, and after an
  // error, the switch makes the increment itself, and records wait in memory meanwhile.
  base::Status PrepareSwitch();
  // Records from this ticket on go to a new increment, which the manifest names at once. Cheap
  // enough for a closed gate: files are made when the record comes or Pause is called.
  void SwitchAt(uint64_t ticket);
  // Where the caller writes the base (a temporary name in the directory, which is made
  // when it is missing).
  std::string TemporaryBase() const;
  // The base is written and synced: it takes its name, a new manifest names it and the increments
  // since SwitchAt; older files are removed. Afterwards state() is kGood again. On an error the
  // rewrite is over as after AbortRewrite.
  base::Status FinishRewrite(bool rdb = true);
  // The base could not be written: the log goes on with the old base and all increments. Removes
  // the temporary file.
  void AbortRewrite();

  void SetPolicy(Policy policy);
  void set_timestamps(bool on) { timestamps_.store(on, std::memory_order_relaxed); }
  void set_hold_sync(bool hold);  // no-appendfsync-on-rewrite: while true, kEverysec does not sync
  // Takes effect within a second or so; a ring that is not used any more is removed.
  void SetRing(bool on);

  // Every ticket below it is on disk. With kEverysec it advances with each sync, with kNo never
  // by itself (WAITAOF).
  uint64_t durable() const { return durable_.load(std::memory_order_acquire); }
  // Every ticket below it is where the policy wants it before an answer may leave: on disk
  // (kAlways), or written to a file of the log.
  uint64_t kept() const override {
    return always() ? durable() : filed_.load(std::memory_order_acquire);
  }
  bool always() const override {
    return policy_.load(std::memory_order_relaxed) == Policy::kAlways;
  }
  bool good() const override { return state() == State::kGood; }
  // Nothing is synced in a Pause, or the ring takes it in no time, and no sync is under way that it
  // might have to wait for.
  bool quick() const override {
    if (syncing_.load(std::memory_order_relaxed)) return false;
    return !always() || path_.load(std::memory_order_relaxed)->quick();
  }
  // Asks for a sync soon (at the next Pause), whatever the policy (WAITAOF, shutdown).
  void RequestSync();
  State state() const {
    if (needs_base_.load(std::memory_order_acquire)) return State::kNeedsBase;
    return write_failed_.load(std::memory_order_acquire) ? State::kWriteFailed : State::kGood;
  }
  // An effect before this ticket is missing: the log needs a new base. On any thread.
  void NoteLost(uint64_t ticket, std::string why = "Out of memory for a record");
  std::string last_error() const;
  // Whether the files that have what is kept() are still there.
  bool HasItsFiles();
  // A comment line to be the last one of the log, when this ends with all of it synced.
  void SetEndLine(std::string line);

  const std::string& directory() const { return options_.directory; }
  uint64_t size() const;       // of all its files
  uint64_t base_size() const;  // of all its files after the last rewrite or start
  uint64_t buffered() const;   // bytes not written yet
  uint64_t delayed_syncs() const;
  uint64_t ring_syncs() const { return ring_path_.syncs(); }

  void BeginRun() override { pending_.mutex.lock(); }
  void EndRun(uint64_t next) override;
  // REQUIRES: within a run, after which a Pause follows before there is much more.
  void Receive(const journal::Record& record) override;
  void Pause() override;

 private:
  using Time = std::chrono::steady_clock::time_point;
  using Lock = std::unique_lock<std::mutex>;

  struct Increment {
    std::unique_ptr<File> file;
    std::string name;
    uint64_t sequence = 0;
    // Under mutex_:
    uint64_t good = 0;    // bytes of whole records
    uint64_t marked = 0;  // what the last line about it said to be synced
    Time marked_at{};
    uint64_t behind = 0;  // the system was asked to write its bytes up to here
    std::string after;    // the line to write before its first record
    // Under sync_mutex_: comes before it, and is synced before it.
    std::shared_ptr<Increment> previous;
    // Changed under mutex_ or sync_mutex_:
    std::atomic<bool> alone{true};    // there is no previous
    std::atomic<bool> named{false};   // by the manifest
    std::atomic<bool> broken{false};  // nothing can be known of it any more
    std::atomic<uint64_t> synced{0};  // every ticket below it
    std::atomic<uint64_t> synced_size{0};
  };

  // ---- mutex_ is held ----
  void Step();
  void WriteAndSync();
  void WriteOut();
  bool Take();
  bool Write();
  void Discard();
  bool SwitchToPrepared();
  bool StartSwitch();
  void SettleManifest();
  void SyncWritten();
  SyncPath& WantedPath();
  bool PathIsToBePrepared() const;
  void AppendSyncedMark();
  void WriteFailed(const std::string& error);
  void WriteWorked();
  void SetCurrent(std::shared_ptr<Increment> increment, bool named);
  uint64_t CompleteSwitch();
  void RemoveOrphans();
  void Abandon(const Increment& increment);
  void SetSize();
  bool TooEarly() const;
  bool BehindIsDue() const;

  // ---- mutex_ is not held; busy_ is set, or no other thread is there ----
  base::Result<std::shared_ptr<Increment>> MakeIncrement();
  base::Status WriteManifest(AofManifest manifest);
  base::Result<std::shared_ptr<Increment>> LastIncrement(const AofFile& last);
  base::Status MakeDirectory() const;
  std::string NoNumberLeft() const;
  base::Status NameBase(bool rdb, const Increment& increment, AofManifest* next);

  // ---- mutex_ is held and released meanwhile ----
  void Switch(Lock& lock);
  base::Status SwitchForFinish(Lock& lock);
  void Abort(Lock& lock);
  void SyncIfDue(Lock& lock);
  void FollowRingSetting(Lock& lock, bool tick);
  void DropRing(Lock& lock);
  void WriteBehind(Lock& lock);
  void LookForFiles(Lock& lock);
  void RemoveHistory(Lock& lock);

  // ---- any ----
  void RunDisk();
  bool SyncFile(Increment& increment, uint64_t ticket, uint64_t size);
  bool SyncPrevious(Increment& increment);
  void RaiseDurable(uint64_t ticket);
  void RaiseWritten(uint64_t ticket);
  void FileWritten();
  void Broken(Increment& increment, const std::string& error);
  void SetError(const std::string& error);
  void Tell();
  std::string MissingFile(const AofManifest& manifest) const;
  std::string Path(std::string_view name) const { return PathIn(options_.directory, name); }
  std::string ManifestPath() const { return Path(AofManifestName(options_.name)); }
  std::string RingPath() const { return Path(AofRingName(options_.name)); }

  const Options options_;
  FileSystem& files_;
  std::atomic<Policy> policy_;
  std::atomic<bool> timestamps_;
  std::atomic<bool> hold_sync_{false};
  std::atomic<bool> sync_requested_{false};

  std::atomic<uint64_t> durable_{0};
  std::atomic<bool> needs_base_{false};
  std::atomic<bool> write_failed_{false};
  std::atomic<bool> told_{true};  // changed() was called since durable() or state() changed

  std::atomic<uint64_t> size_{0};
  std::atomic<uint64_t> base_size_{0};
  std::atomic<uint64_t> writing_size_{0};
  std::atomic<uint64_t> delayed_syncs_{0};
  std::atomic<bool> wants_ring_;
  std::atomic<bool> syncing_{false};
  std::atomic<int64_t> sync_began_{0};  // microseconds; 0: none runs, or it is counted as delayed
  mutable std::mutex error_mutex_;
  std::string last_error_;

  AofPending pending_;
  std::mutex sync_mutex_;  // one sync at a time; taken after mutex_

  std::mutex mutex_;                    // all below
  std::condition_variable wake_;        // the disk's thread
  std::condition_variable settled_;     // busy_ or hold_writes_ has become false
  std::shared_ptr<Increment> current_;  // takes the records; none: they are dropped
  std::shared_ptr<Increment>
      prepared_;              // for the next switch: without records, the manifest's last
  std::string writing_;       // taken from pending_, not written yet
  uint64_t writing_end_ = 0;  // the ticket after writing_
  // Every ticket below it is in a file or in the base to come. Read without mutex_, too.
  std::atomic<uint64_t> written_end_{0};
  std::atomic<uint64_t> filed_{0};  // the same, but for what only a base to come will have
  FileSyncPath file_path_;
  RingSyncPath ring_path_;
  std::atomic<SyncPath*> path_;  // one of these; changed by the disk's thread
  Time last_try_{};
  AofManifest manifest_;      // as the files are, unless unsure_
  bool unsure_ = false;       // writing a manifest failed: on disk may be that one or this one
  bool busy_ = false;         // a thread works on the files with mutex_ released
  bool hold_writes_ = false;  // the disk's thread must make the next increment
  bool rewriting_ = false;    // the switch was made, the base is to come
  uint64_t switched_at_ = 0;  // its ticket
  uint64_t last_base_ = 0;    // sequence numbers that were used
  uint64_t last_increment_ = 0;
  uint64_t other_sizes_ = 0;  // of the files that the manifest names besides the current one
  std::string end_line_;
  std::string lost_why_;  // guarded by pending_.mutex
  std::vector<std::string>
      orphans_;              // files that no manifest names; removed when the manifest is certain
  bool sync_asked_ = false;  // of the disk's thread
  bool stopping_ = false;
  std::thread disk_;  // syncs, and makes increments
};

}  // namespace sava::storage
