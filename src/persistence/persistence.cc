// The keeper: its queue of jobs, snapshots, new bases of the log. Loading stands in
// persistence_load.cc, the log's states and switching in persistence_log.cc.
#include "persistence/persistence.h"

#include <fmt/format.h>
#include <pthread.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <utility>

#include "base/alternate_stack.h"
#include "base/if_memory.h"
#include "base/version.h"
#include "engine/cut_options.h"

namespace sava::persistence {

using storage::AofLog;
using storage::PathIn;

namespace {

// A snapshot that failed is not tried again by a rule before this many seconds.
constexpr int64_t kSaveRetrySeconds = 5;
// A rewrite that failed this often waits longer and longer, as Redis does.
constexpr uint64_t kRewritePatience = 3;
constexpr int kSavingNice = 5;
// So long the end of the server waits for a log that cannot be written.
constexpr int64_t kShortPatienceMs = 1000;
constexpr int64_t kRewriteLongestPause = 3600;
constexpr std::chrono::milliseconds kMemoryPause(10);

// What finds no memory has failed like what finds no room on the disk.
template <typename Work>
base::Status WithMemory(const Work& work) {
  base::Status status;
  if (base::IfMemory([&] { status = work(); })) return status;
  return base::Error{"out of memory"};
}

}  // namespace

Persistence::Persistence(engine::Engine* engine) : engine_(*engine) {
  figures_.last_save_s = NowSeconds();
}

Persistence::~Persistence() { Stop(); }

void Persistence::Start(std::function<void()> loaded) {
  loaded_ = std::move(loaded);
  load_start_ms_ = engine_.clock().WallMillis();
  loading_.store(true);
  engine_.admission().set_loading(true);
  const config::Settings& settings = engine_.settings();
  appendonly_ = settings.appendonly;
  dir_ = settings.dir;
  stop_writes_.store(settings.stop_writes_on_bgsave_error && !settings.save_rules.empty());
  figures_.activity = Activity::kLoad;
  thread_ = std::thread([this] {
    const base::AlternateStack stack;
    pthread_setname_np(pthread_self(), "sava-keeper");
    Run();
  });
}

void Persistence::Stop() {
  if (thread_.joinable()) {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      giving_up_.store(true);
    }
    engine_.snapshot().Abort();
    wake_.notify_all();
    thread_.join();
  }
  if (log_ != nullptr) engine_.journal().Detach(*log_);
  watched_.store(nullptr);
  log_.reset();
  UnlockFiles();
}

// ---- the queue ----

void Persistence::Run() {
  if (!base::IfMemory([this] { Load(); })) load_error_ = "out of memory";
  const bool good = load_error_.empty();
  if (good) {
    std::lock_guard lock(mutex_);
    figures_.activity = Activity::kNone;
    engine_.admission().set_loading(false);
    loading_.store(false, std::memory_order_release);
  }
  loaded_();
  if (!good) return;
  // Saves compute all the time; event loops go first on a machine with few cores.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kSavingNice);
  std::unique_lock lock(mutex_);
  while (true) {
    Job job;
    if (!jobs_.empty()) {
      job = std::move(jobs_.front());
      jobs_.pop_front();
    } else if (stopping_) {
      return;
    } else if (RepairDue()) {
      job = JobOf(Activity::kRewrite);
    } else if (match_log_.exchange(false)) {
      const auto match = [this] {
        if (!base::IfMemory([this] { MatchAppendonly(); })) match_log_.store(true);
        return "";
      };
      job = {Activity::kRewrite, match, {}};
    } else {
      wake_.wait_for(lock, std::chrono::seconds(1));
      continue;
    }
    figures_.activity = job.activity;
    figures_.activity_since_s = NowSeconds();
    figures_.cut_made = false;
    lock.unlock();
    std::string reply;
    if (!base::IfMemory([&] { reply = job.work(); })) {
      spdlog::error("Out of memory");
      reply = "-OOM\r\n";
    }
    lock.lock();
    figures_.activity = Activity::kNone;
    // The client is answered when the next job may begin, and there is memory for it.
    while (!base::IfMemory([&] { Answer(job.waiter, reply); }) && !stopping_.load()) {
      lock.unlock();
      std::this_thread::sleep_for(kMemoryPause);
      lock.lock();
    }
    if (stopping_) continue;
    if (jobs_.empty()) base::IfMemory([this] { StartScheduled(); });
    // A disk that fails is not asked again at once.
    if (RepairDue() || match_log_.load()) {
      wake_.wait_for(lock, std::chrono::seconds(1), [this] { return stopping_ || !jobs_.empty(); });
    }
  }
}

Persistence::Job Persistence::JobOf(Activity activity) {
  const auto work = [this, activity]() -> std::string {
    static_cast<void>(activity == Activity::kBgsave ? SaveSnapshot(true) : Rewrite());
    return {};
  };
  return {activity, work, {}};
}

// REQUIRES: mutex_.
void Persistence::StartLocked(Activity activity) {
  jobs_.push_back(JobOf(activity));
  figures_.activity = activity;
  figures_.activity_since_s = NowSeconds();
  bool& scheduled =
      activity == Activity::kBgsave ? figures_.save_scheduled : figures_.rewrite_scheduled;
  scheduled = false;
  figures_.saving_after_flush = false;
  figures_.cut_made = false;
  wake_.notify_all();
}

// REQUIRES: mutex_, nothing is queued.
void Persistence::StartScheduled() {
  if (figures_.rewrite_scheduled) {
    StartLocked(Activity::kRewrite);
  } else if (figures_.save_scheduled) {
    StartLocked(Activity::kBgsave);
  } else if (figures_.save_after_flush && !giving_up_.load()) {
    StartLocked(Activity::kBgsave);
    figures_.saving_after_flush = true;
  }
}

void Persistence::Push(Job job) {
  std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  wake_.notify_all();
}

void Persistence::Answer(const Waiter& waiter, std::string reply) {
  if (waiter.client == 0) return;
  auto message = std::make_shared<engine::Message>();
  message->resp2 = std::move(reply);
  engine_.lanes()[waiter.lane]->mailbox.Post(
      {engine::Mail::Kind::kReply, waiter.client, std::move(message), waiter.token});
}

void Persistence::RunAlone(const std::function<void()>& work) {
  std::promise<void> done;
  const auto alone = [&]() -> std::string {
    try {
      engine_.Exclusively(engine_.house_lane(), work);
      done.set_value();
    } catch (...) {  // it is the caller's
      done.set_exception(std::current_exception());
    }
    return {};
  };
  Push({Activity::kOther, alone, {}});
  done.get_future().get();
}

// ---- what commands ask for ----

Persistence::Started Persistence::StartSave(bool schedule, bool in_exec) {
  std::lock_guard lock(mutex_);
  const Activity now = figures_.activity;
  if (now == Activity::kBgsave || now == Activity::kSave) {
    // In Redis a save after FLUSHALL is over before anybody can ask for another.
    if (!figures_.saving_after_flush) return Started::kBusySame;
    figures_.save_scheduled = true;
    return Started::kStarted;
  }
  if (now == Activity::kNone && jobs_.empty() && !in_exec) {
    StartLocked(Activity::kBgsave);
    return Started::kStarted;
  }
  if (!schedule && !in_exec) return Started::kBusyOther;
  figures_.save_scheduled = true;
  wake_.notify_all();
  return Started::kScheduled;
}

Persistence::Started Persistence::StartRewrite(bool in_exec) {
  std::lock_guard lock(mutex_);
  if (figures_.activity == Activity::kRewrite) return Started::kBusySame;
  if (figures_.activity == Activity::kNone && jobs_.empty() && !in_exec) {
    StartLocked(Activity::kRewrite);
    return Started::kStarted;
  }
  figures_.rewrite_scheduled = true;
  figures_.rewrite_failures = 0;
  wake_.notify_all();
  return Started::kScheduled;
}

void Persistence::Save(const Waiter& waiter) {
  const auto work = [this] { return SaveSnapshot(false) ? "+OK\r\n" : "-ERR\r\n"; };
  Push({Activity::kSave, work, waiter});
}

void Persistence::Reload(const Waiter& waiter, uint32_t options) {
  Push({Activity::kOther, [this, options] { return ReloadNow(options); }, waiter});
}

void Persistence::LoadAof(const Waiter& waiter) {
  Push({Activity::kOther, [this] { return LoadAofNow(); }, waiter});
}

bool Persistence::FlushedAll(uint64_t changes) {
  flushed_.store(true);
  if (engine_.settings().save_rules.empty()) return false;
  // As Redis does: the old snapshot must not come back after a restart. One that is being written
  // is given up, or has the old data, so another has to follow.
  std::lock_guard lock(mutex_);
  figures_.save_after_flush = true;
  figures_.dirty_at_flush = engine_.Dirty() + changes;
  return watched_.load() == nullptr;
}

void Persistence::AnswerWhenSaved(const Waiter& waiter, std::string reply) {
  std::lock_guard lock(mutex_);
  // It may be over already.
  if (!figures_.save_after_flush) return Answer(waiter, std::move(reply));
  save_waiters_.push_back({waiter, std::move(reply), figures_.dirty_at_flush});
  if (figures_.activity == Activity::kNone && jobs_.empty()) StartScheduled();
}

// REQUIRES: mutex_.
void Persistence::AnswerSaveWaiters(uint64_t dirty) {
  std::erase_if(save_waiters_, [&](SaveWaiter& one) {
    if (one.dirty > dirty) return false;
    Answer(one.waiter, std::move(one.reply));
    return true;
  });
}

void Persistence::GiveUp() {
  giving_up_.store(true);
  if (!RepairDue() || stopping_.load()) engine_.snapshot().Abort();
}

Persistence::Figures Persistence::figures() const {
  std::lock_guard lock(mutex_);
  return figures_;
}

uint64_t Persistence::Changes() const {
  const uint64_t dirty = engine_.Dirty();
  const Figures now = figures();
  const uint64_t before = now.save_after_flush ? now.dirty_at_flush : now.dirty_at_save;
  return dirty > before ? dirty - before : 0;
}

void Persistence::Tick() {
  if (loading()) return;
  const config::Settings& settings = engine_.settings();
  if (log_waiter_count_.load(std::memory_order_relaxed) > 0 && log_ != nullptr) {
    log_->RequestSync();
    engine_.journal().Nudge();
  }
  const uint64_t dirty = engine_.Dirty();
  const int64_t now = NowSeconds();
  std::lock_guard lock(mutex_);
  if (figures_.activity != Activity::kNone || !jobs_.empty()) return;
  StartScheduled();
  if (figures_.activity != Activity::kNone) return;
  const auto changes = static_cast<int64_t>(dirty - std::min(dirty, figures_.dirty_at_save));
  if (figures_.last_save_ok || now - figures_.last_save_try_s > kSaveRetrySeconds) {
    for (const config::SaveRule& rule : settings.save_rules) {
      if (changes < rule.changes || now - figures_.last_save_s <= rule.seconds) continue;
      spdlog::info("{} changes in {} seconds. Saving...", rule.changes, rule.seconds);
      return StartLocked(Activity::kBgsave);
    }
  }
  if (watched_.load() == nullptr || settings.auto_aof_rewrite_percentage == 0 ||
      now < figures_.next_auto_rewrite_s) {
    return;
  }
  const uint64_t size = log_->size();
  if (size <= settings.auto_aof_rewrite_min_size) return;
  const uint64_t base = std::max<uint64_t>(log_->base_size(), 1);
  const uint64_t growth = size > base ? (size - base) * 100 / base : 0;
  if (growth < static_cast<uint64_t>(settings.auto_aof_rewrite_percentage)) return;
  spdlog::info("Starting automatic rewriting of AOF on {}% growth", growth);
  StartLocked(Activity::kRewrite);
}

// ---- a cut ----

config::Settings Persistence::SettingsNow() {
  config::Settings copy;
  engine_.Exclusively(engine_.house_lane(), [&] { copy = engine_.settings(); });
  return copy;
}

// The memory in use is asked for with the gate closed, too: a FLUSHALL may take tables away.
Persistence::Cut Persistence::BeforeCut(bool for_log) {
  Cut cut;
  engine_.Exclusively(engine_.house_lane(), [&] {
    cut.settings = engine_.settings();
    cut.origin = {base::kRedisVersion, NowSeconds(), engine_.memory().Used(), for_log, data_set_};
    cut.commands = for_log && !cut.settings.aof_use_rdb_preamble;
  });
  return cut;
}

Persistence::Cut Persistence::BeginCut(bool for_log, bool commands) {
  Cut cut;
  const int64_t now_ms = engine_.clock().WallMillis();
  cut.settings = engine_.settings();
  cut.dirty = engine_.Dirty();
  cut.origin = {base::kRedisVersion, now_ms / 1000, engine_.memory().Used(), for_log, data_set_};
  cut.commands = commands;
  flushed_.store(false);
  snapshot::Snapshot::Options options = engine::CutOptions(cut.settings, now_ms, !for_log);
  options.self_contained = commands;
  options.key_delay_us = cut.settings.rdb_key_save_delay;
  for (snapshot::RdbAux* aux : aux_) aux->AtCut();
  engine_.snapshot().Begin(options);
  {
    std::lock_guard lock(mutex_);
    figures_.cut_made = true;
  }
  // Whoever wanted it to end may have asked before it began.
  if (giving_up_.load()) GiveUp();
  return cut;
}

base::Result<uint64_t> Persistence::WriteCut(const Cut& cut, const std::string& temporary,
                                             const std::string& path, bool exclusive,
                                             const std::function<void()>& begin) {
  storage::SnapshotFile file;
  file.files = &files_;
  file.temporary = temporary;
  file.path = path;
  file.commands = cut.commands;
  file.aside = AsideName(path);
  file.options = {cut.settings.rdbcompression, cut.settings.rdbchecksum};
  file.origin = cut.origin;
  file.aux = aux_;
  file.max_rate = exclusive ? 0 : cut.settings.save_max_rate;
  file.begin = begin;
  const bool hold = cut.settings.no_appendfsync_on_rewrite && log_ != nullptr;
  if (hold) log_->set_hold_sync(true);
  base::Result<uint64_t> written = base::Error{"out of memory"};
  base::IfMemory([&] { written = WriteSnapshotFile(engine_.snapshot(), file, exclusive); });
  if (hold) log_->set_hold_sync(false);
  if (written && !file.aside.empty()) {
    spdlog::warn("{}, which was not of this data set, is kept as {}", path, file.aside);
    foreign_dump_.clear();
  }
  return written;
}

// ---- snapshots ----

base::Status Persistence::SaveSnapshot(bool background) {
  const int64_t start = NowSeconds();
  if (background) {
    spdlog::info("Background saving started");
    std::lock_guard lock(mutex_);
    figures_.last_save_try_s = start;
  }
  Cut cut;
  base::Status status = WithMemory([&] { return WriteSnapshot(&cut); });
  NoteSave(status, cut, start, background);
  return status;
}

base::Status Persistence::WriteSnapshot(Cut* cut) {
  flushed_.store(false);
  *cut = BeforeCut(false);
  const std::string dir = cut->settings.dir;
  const auto lock =
      LockDump(cut->settings);  // of the file that is written, whatever is set meanwhile
  if (!lock) return base::Error{lock.error()};
  const auto written =
      WriteCut(*cut, PathIn(dir, fmt::format("temp-{}.rdb", getpid())),
               PathIn(dir, cut->settings.dbfilename), false,
               [&] { engine_.Exclusively(engine_.house_lane(), [&] { *cut = BeginCut(false); }); });
  return written ? base::Status() : base::Error{written.error()};
}

void Persistence::NoteSave(const base::Status& status, const Cut& cut, int64_t start_s,
                           bool background) {
  const bool aborted = !status && (flushed_.load() || giving_up_.load());
  if (status) {
    spdlog::info("DB saved on disk");
    if (background) spdlog::info("Background saving terminated with success");
  } else if (aborted) {
    spdlog::warn("Saving was given up: {}",
                 flushed_.load() ? "the data set was flushed" : "the server is to end");
  } else {
    spdlog::warn("{}: {}", background ? "Background saving error" : "Error saving DB on disk",
                 status.error());
  }
  {
    std::lock_guard lock(mutex_);
    const int64_t now = NowSeconds();
    if (background) figures_.last_save_seconds = now - start_s;
    figures_.last_save_images = engine_.snapshot().peak_bytes();
    if (status) {
      figures_.last_save_s = now;
      figures_.last_save_ok = true;
      figures_.dirty_at_save = cut.dirty;
      ++figures_.saves;
      if (cut.dirty >= figures_.dirty_at_flush) figures_.save_after_flush = false;
    } else if (!aborted && background) {
      figures_.last_save_ok = false;
    }
    // A disk that fails is not asked again at once: from now on it is a matter of the save rules.
    if (!status && !aborted) figures_.save_after_flush = false;
    if (!aborted) AnswerSaveWaiters(status ? cut.dirty : UINT64_MAX);
    save_failed_.store(!figures_.last_save_ok);
  }
  UpdateRefusal();
}

// ---- new bases ----

base::Status Persistence::Rewrite() {
  if (log_ == nullptr) return WriteLoneBase();
  const int64_t start = NowSeconds();
  spdlog::info("Background append only file rewriting started");
  base::Status status = base::Error{"out of memory"};
  const bool ended = base::IfMemory([&] {
    if (const base::Status made = log_->PrepareSwitch(); !made) {
      spdlog::warn("Preparing an AOF increment: {}", made.error());
    }
    Cut cut = BeforeCut(true);
    status = WriteBase(cut, [&] {
      engine_.Exclusively(engine_.house_lane(), [&] {
        cut = BeginCut(true, cut.commands);
        log_->SwitchAt(engine_.journal().Cut());
      });
    });
  });
  if (!ended) log_->AbortRewrite();
  NoteRewrite(status, start);
  return status;
}

// The cut becomes the log's base.
base::Status Persistence::WriteBase(const Cut& cut, const std::function<void()>& begin) {
  const auto written = WriteCut(cut, log_->TemporaryBase(), "", false, begin);
  if (!written) {
    log_->AbortRewrite();
    return base::Error{written.error()};
  }
  return log_->FinishRewrite(!cut.commands);
}

// Without a log in use a rewrite leaves a base that a server may start from.
base::Status Persistence::WriteLoneBase() {
  const int64_t start = NowSeconds();
  spdlog::info("Background append only file rewriting started");
  base::Status status = WithMemory([this] { return WriteLoneBaseNow(); });
  NoteRewrite(status, start);
  return status;
}

base::Status Persistence::WriteLoneBaseNow() {
  if (const auto lock = LockLog(SettingsNow()); !lock) return base::Error{lock.error()};
  Cut cut = BeforeCut(true);
  const std::string directory = PathIn(cut.settings.dir, cut.settings.appenddirname);
  const std::string& name = cut.settings.appendfilename;
  storage::AofManifest old;
  base::Status status;
  if (const auto found = AofLog::FindManifest(files_, directory, name, &old); !found) {
    status = base::Error{found.error()};
  }
  if (old.highest(storage::AofFile::Kind::kBase) >= storage::AofManifest::kLastSequence) {
    status = base::Error{"no sequence number is left for a base of the log"};
  }
  if (status) status = files_.MakeDirectory(directory);
  const std::string temporary = PathIn(directory, "temp-rewriteaof.rdb");
  if (status) {
    const auto written = WriteCut(cut, temporary, "", false, [&] {
      engine_.Exclusively(engine_.house_lane(), [&] { cut = BeginCut(true, cut.commands); });
    });
    if (!written) status = base::Error{written.error()};
  }
  storage::AofFile base;
  base.kind = storage::AofFile::Kind::kBase;
  base.sequence = old.highest(storage::AofFile::Kind::kBase) + 1;
  base.name = storage::AofBaseName(name, base.sequence, !cut.commands);
  if (status) status = files_.Rename(temporary, PathIn(directory, base.name));
  if (status) {
    status = storage::WriteAtomically(files_, PathIn(directory, storage::AofManifestName(name)),
                                      storage::AofManifest{{base}, data_set_}.Text());
  }
  for (const storage::AofFile& file : old.files) {
    if (status && file.name != base.name) {
      static_cast<void>(files_.Remove(PathIn(directory, file.name)));
    }
  }
  return status;
}

void Persistence::NoteRewrite(const base::Status& status, int64_t start_s) {
  if (status) {
    spdlog::info("Background AOF rewrite terminated with success");
  } else if (giving_up_.load()) {
    spdlog::warn("AOF rewrite was given up: the server is to end");
  } else {
    spdlog::warn("Background AOF rewrite terminated with error: {}", status.error());
  }
  std::lock_guard lock(mutex_);
  const int64_t now = NowSeconds();
  figures_.last_rewrite_seconds = now - start_s;
  figures_.last_rewrite_images = engine_.snapshot().peak_bytes();
  figures_.last_rewrite_ok = status.ok();
  if (status) {
    ++figures_.rewrites;
    figures_.rewrite_failures = 0;
    figures_.next_auto_rewrite_s = 0;
    return;
  }
  const uint64_t failures = ++figures_.rewrite_failures;
  if (failures < kRewritePatience) return;
  const uint64_t doublings = std::min<uint64_t>(failures - kRewritePatience, 6);
  figures_.next_auto_rewrite_s =
      now + std::min<int64_t>(int64_t{60} << doublings, kRewriteLongestPause);
}

// ---- the end ----

base::Status Persistence::Prepare(const Ending& ending) {
  GiveUp();
  std::promise<base::Status> done;
  const auto work = [&]() -> std::string {
    giving_up_.store(false);
    done.set_value(WithMemory([&] { return PrepareNow(ending); }));
    return {};
  };
  Push({Activity::kOther, work, {}});
  base::Status status = done.get_future().get();
  giving_up_.store(false);
  return status;
}

base::Status Persistence::PrepareNow(const Ending& ending) {
  const config::Settings settings = SettingsNow();
  if (ending.save || (!ending.nosave && !settings.save_rules.empty())) {
    spdlog::info("Saving the final RDB snapshot before exiting.");
    if (base::Status status = SaveSnapshot(false); !status) {
      if (ending.save || log_ == nullptr) {
        return base::Error{"Error trying to save the DB, can't exit."};
      }
      spdlog::warn("The final RDB snapshot can't be saved. The AOF has the data.");
    }
  }
  if (log_ == nullptr) return {};
  spdlog::info("Calling fsync() on the AOF file.");
  if (RepairDue()) (void)Rewrite();
  base::Status status = SyncLog(settings.shutdown_timeout * 1000);
  if (status || giving_up_.load() || log_->state() == AofLog::State::kGood ||
      !log_->HasItsFiles()) {
    return status;
  }
  spdlog::warn("{}. Nobody was told of what it lacks.", status.error());
  return {};
}

// Waits until everything logged so far is on disk, not for long when that cannot be written.
base::Status Persistence::SyncLog(int64_t patience_ms) {
  engine_.journal().Flush();
  const uint64_t end = engine_.journal().next_ticket();
  const int64_t begin = engine_.clock().WallMillis();
  while (log_->durable() < end) {
    const AofLog::State state = log_->state();
    const int64_t patience =
        state == AofLog::State::kGood ? std::max(patience_ms, kShortPatienceMs) : kShortPatienceMs;
    if (state == AofLog::State::kNeedsBase || giving_up_.load() ||
        engine_.clock().WallMillis() - begin > patience) {
      return base::Error{"The append only file can't be written: " + log_->last_error()};
    }
    log_->RequestSync();
    engine_.journal().Nudge();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

}  // namespace sava::persistence
