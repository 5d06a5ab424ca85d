// Persistence: keeps the data. Owns the append-only log and one thread, the keeper, which does
// everything that is slow, one job at a time: loading at start, snapshots, new bases of the log,
// reloading, the save before exit. Blocked clients and the main thread wait for jobs, event loops
// never do.
//
// Invariants: log_ changes on the keeper's thread with the gate closed, so a thread inside the gate
// may read it. Writes are refused while the log cannot be written, and, with
// stop-writes-on-bgsave-error, after a snapshot that failed.
//
// Thread safety: the constructor, Start, Prepare, Stop and the destructor on the main
// thread; what commands call inside the gate; LogChanged on the log's threads and on loops.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/reloader.h"
#include "persistence/data_jobs.h"
#include "persistence/figures.h"
#include "persistence/loader.h"
#include "snapshot/rdb_aux.h"
#include "storage/aof_log.h"
#include "storage/data_lock.h"
#include "storage/recovery_plan.h"
#include "storage/snapshot_file.h"

namespace sava::persistence {

class Persistence final : public engine::Reloader {
 public:
  using Waiter = engine::ReplyWaiter;

  using Activity = SavingFigures::Activity;
  using Figures = SavingFigures;
  using LoadFigures = LoadingFigures;
  using Copy = DataCopy;
  using Replacement = DataReplacement;

  explicit Persistence(engine::Engine* engine);
  ~Persistence() override;

  // What else belongs to the data set. REQUIRES: before Start; it lives as long as this.
  void Register(snapshot::RdbAux* aux) { aux_.push_back(aux); }

  // ---- start and end ----
  // Takes the locks of the files that the settings say are written: the log, and the dump when
  // there are save rules or one was written before. On an error, which says which process has them
  // and what to do, the earlier locks are kept. On any thread.
  base::Status LockFiles(const config::Settings& settings);
  // Starts the keeper, which begins to load. Called before the loops serve; `loaded` is called when
  // that is over, on the keeper's thread.
  void Start(std::function<void()> loaded);
  bool loading() const { return loading_.load(std::memory_order_acquire); }
  // Why not all could be loaded; empty when all went well. After `loaded` was called.
  const std::string& load_error() const { return load_error_; }
  // How far loading is, or how far the last one was.
  LoadFigures load_figures() const;
  // "Loading: 43% (512 of 1190 MB), 310 MB/s, 2 s left"
  std::string ProgressLine() const;

  // After `loaded`: the data is that of the dump, all of it; the last comment line of the log
  // (RdbAux::EndLine), empty when something follows it.
  bool loaded_dump() const { return loaded_dump_; }
  const std::string& loaded_end() const { return loaded_end_; }

  // Everything acknowledged is put on disk before the process ends. REQUIRES: writes are paused.
  struct Ending {
    bool save = false;    // a snapshot, whatever the rules
    bool nosave = false;  // none
  };
  base::Status Prepare(const Ending& ending);
  // Whether a log that was switched on has no base yet: there may be no other copy of the data.
  bool writes_first_base() const { return first_base_.load(); }
  // The data set of a master takes the place of this server's.
  void Replace(Replacement replacement);
  // Whether memory lacks what Replace was to bring: then nothing is saved, and the files keep what
  // they have, until another Replace, or KeepWhatThereIs.
  bool replacing() const { return replacing_.load(); }
  void KeepWhatThereIs() { replacing_.store(false); }
  // Runs `work` on the keeper with the gate closed; returns when it is done.
  void RunAlone(const std::function<void()>& work);
  // Ends the keeper and the log. REQUIRES: the loops have ended.
  void Stop();

  void MakeCopy(std::shared_ptr<Copy> copy);
  // Runs `work` on the keeper with the gate closed, some time later.
  void PostAlone(std::function<void()> work);

  // ---- for commands ----
  enum class Started : uint8_t { kStarted, kScheduled, kBusySame, kBusyOther };
  Started StartSave(bool schedule, bool in_exec);
  Started StartRewrite(bool in_exec);
  void Save(const Waiter& waiter);
  void Reload(const Waiter& waiter, uint32_t options) override;
  void LoadAof(const Waiter& waiter) override;
  // About ten times a second, on the first loop: save rules, growth of the log.
  void Tick();
  // FLUSHALL was run; it will count as that many changes. True when nothing but a snapshot keeps
  // it: its client must be answered by AnswerWhenSaved. REQUIRES: the gate is closed.
  bool FlushedAll(uint64_t changes);
  // Answers when a snapshot of after the last FLUSHALL is saved, or could not be, as in Redis.
  void AnswerWhenSaved(const Waiter& waiter, std::string reply);
  // Settings have changed. REQUIRES: the gate is closed.
  base::Status SettingsChanged(const config::Settings& now);
  // stops saving and rewriting soon; from any thread.
  void GiveUp();
  // After GiveUp, when the server goes on.
  void GoOn() { giving_up_.store(false); }

  Figures figures() const;
  // Inside the gate.
  storage::AofLog* log() const { return log_.get(); }
  // The log in use. Inside the gate, and on threads that merge the journal or keep the log.
  const storage::AofLog* active_log() const { return watched_.load(); }
  uint64_t Changes() const;

  // ---- answers that wait for the log ----
  // The barrier that must keep a change before a reply that tells of it may leave; nullptr:
  // there is none. REQUIRES: inside the gate, as long as it is used.
  const journal::Barrier* barrier() const { return watched_.load(std::memory_order_relaxed); }
  // Called when more is kept; nullptr: no longer.
  void OnDurable(std::function<void()> wake);

 private:
  // The client is told what `work` returned when the next job may begin.
  struct Job {
    Activity activity = Activity::kOther;
    std::function<std::string()> work;
    Waiter waiter;
  };
  struct SaveWaiter {
    Waiter waiter;
    std::string reply;
    uint64_t dirty;  // a snapshot with this many changes has what it waits for
  };
  // What a cut is written with.
  struct Cut {
    config::Settings settings;
    storage::RdbWriter::Origin origin;
    uint64_t dirty = 0;
    bool commands = false;  // aof-use-rdb-preamble no: the base of the log has commands
  };

  class PartLoader;

  void Run();
  bool RepairDue() const { return needs_base_.load() && !replacing_.load(); }
  void Push(Job job);
  Job JobOf(Activity activity);
  void StartLocked(Activity activity);
  void StartScheduled();
  void Answer(const Waiter& waiter, std::string reply);

  config::Settings SettingsNow();
  // REQUIRES: the gate is closed.
  // What is known before the cut; then the cut itself, with the gate closed.
  Cut BeforeCut(bool for_log);
  // `commands`: as it was said before, while a setting may have changed since.
  Cut BeginCut(bool for_log, bool commands = false);
  // With `begin` the cut is made on the way: `cut` then has only its settings and origin before.
  base::Result<uint64_t> WriteCut(const Cut& cut, const std::string& temporary,
                                  const std::string& path, bool exclusive,
                                  const std::function<void()>& begin = {});

  base::Status SaveSnapshot(bool background);
  base::Status WriteSnapshot(Cut* cut);
  // Gives the snapshot that was just saved its dated name, with save-keep. What goes wrong is
  // logged: the snapshot itself is saved.
  void KeepDated(const config::Settings& settings);
  void NoteSave(const base::Status& status, const Cut& cut, int64_t start_s, bool background);
  void AnswerSaveWaiters(uint64_t dirty);
  base::Result<uint64_t> WriteCopy(Copy& copy);
  base::Status Rewrite();
  base::Status WriteBase(const Cut& cut, const std::function<void()>& begin = {});
  base::Status WriteLoneBase();
  base::Status WriteLoneBaseNow();
  void NoteRewrite(const base::Status& status, int64_t start_s);
  base::Status PrepareNow(const Ending& ending);
  base::Status SyncLog(int64_t patience_ms);

  // Whose the files are, see persistence_files.cc.
  void UnlockFiles();
  // The dump that lies there is of another data set, and not to be overwritten.
  void KeepDump(const config::Settings& settings, const storage::RecoveryPlan& plan);
  // Where to put the file at the path before it is replaced; "": it may be replaced.
  std::string AsideName(const std::string& path) const;
  base::Status FollowFiles(const config::Settings& now);
  base::Result<std::shared_ptr<storage::DataLock>> LockDump(const config::Settings& settings);
  base::Result<std::shared_ptr<storage::DataLock>> LockLog(const config::Settings& settings);
  base::Result<std::shared_ptr<storage::DataLock>> TakeLock(const std::string& name,
                                                            const config::Settings& settings,
                                                            const std::string& place);

  // The log, see persistence_log.cc.
  void MatchAppendonly();
  std::unique_ptr<storage::AofLog> MakeLog(const config::Settings& settings);
  void Watch(const config::Settings& settings);
  base::Status BeginLog(std::unique_ptr<storage::AofLog> log);
  base::Status OpenAtStart(const config::Settings& settings, const storage::AofManifest& manifest);
  base::Status TurnOn(const config::Settings& settings);
  void TurnOff();
  void LogChanged();
  void SetLogError(std::string error);
  void UpdateRefusal();
  void UpdateRefusalLocked();

  // Loading, see persistence_load.cc.
  void Load();
  // Loads what the plan says, and puts the files in order.
  base::Status CarryOut(const config::Settings& settings, storage::RecoveryPlan* plan);
  base::Status LoadLog(const config::Settings& settings, storage::RecoveryPlan* plan,
                       bool exclusive);
  void TellRepairs(const storage::RecoveryPlan& plan);
  // `reload`: what a client that asked for it wants of it, see engine::Reloader.
  base::Status LoadDump(const config::Settings& settings, bool exclusive, uint32_t reload = 0);
  base::Status Upgrade(const config::Settings& settings, storage::AofManifest* manifest);
  uint64_t SizeOf(const std::string& path) const;
  void BeginProgress(uint64_t total_bytes);
  void EndPart();
  LoadOptions OptionsFor(const config::Settings& settings, bool exclusive);
  base::Status ReplaceNow(const Replacement& replacement, bool* emptied);
  void KeepReceived(const std::string& path, const std::string& data_set,
                    const config::Settings& settings);
  void EndLoading();
  void AwaitNeedsBase();
  std::string ReloadNow(uint32_t options);
  std::string LoadAofNow();
  void EmptyAll();

  int64_t NowSeconds() const { return engine_.clock().WallMillis() / 1000; }

  engine::Engine& engine_;
  storage::FileSystem& files_ = storage::FileSystem::Real();
  std::vector<snapshot::RdbAux*> aux_;
  std::thread thread_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;                  // guarded by mutex_
  Figures figures_;                       // guarded by mutex_
  std::vector<SaveWaiter> save_waiters_;  // guarded by mutex_

  std::atomic<bool> loading_{false};
  std::string load_error_;
  bool loaded_dump_ = false;
  std::string loaded_end_;
  LoadProgress progress_;                 // of the file that is being loaded
  std::atomic<uint64_t> load_total_{0};   // bytes of all files
  std::atomic<uint64_t> load_before_{0};  // bytes of the files before this one
  std::atomic<int64_t> load_start_ms_{0};
  std::function<void()> loaded_;
  // The id of the data set; set while it is loaded, then it stays.
  std::string data_set_;
  // A dump that lay beside the log and is of another data set: not to be overwritten. Keeper only.
  std::string foreign_dump_;

  std::unique_ptr<storage::AofLog> log_;
  std::atomic<storage::AofLog*> watched_{nullptr};  // log_ once it has a base
  bool appendonly_ = false;              // the setting when it was last looked at, gate closed
  std::string dir_;                      // the same
  bool moving_ = false;                  // to another directory; the keeper's
  std::atomic<bool> match_log_{false};   // the setting could not be followed: to be tried again
  std::atomic<bool> first_base_{false};  // a log that was switched on gets one now, or soon
  std::atomic<bool> needs_base_{false};  // the log can go on only with a new base
  std::atomic<bool> save_failed_{false};
  std::atomic<bool> stop_writes_{true};  // the settings want writes refused after a failed save
  std::atomic<bool> flushed_{false};     // during this cut
  std::atomic<bool> replacing_{false};   // memory is not what the files are to have
  std::atomic<bool> giving_up_{false};
  std::atomic<bool> stopping_{false};

  std::mutex lock_mutex_;
  std::shared_ptr<storage::DataLock> dump_lock_;  // guarded by lock_mutex_
  std::shared_ptr<storage::DataLock> log_lock_;   // guarded by lock_mutex_
  storage::DataLocks locks_;

  std::mutex trouble_mutex_;  // guards what follows; nothing is locked inside but leaf locks
  std::function<void()> on_durable_;
  storage::AofLog::State seen_state_ = storage::AofLog::State::kGood;
  std::string log_error_;
};

}  // namespace sava::persistence
