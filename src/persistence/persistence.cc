// The keeper: its queue of jobs, what commands start, the end. Snapshots, copies and new bases
// are in persistence_save.cc, loading in persistence_load.cc, the log's states in
// persistence_log.cc.
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
#include "persistence/with_memory.h"

namespace sava::persistence {

using storage::AofLog;
using storage::PathIn;

namespace {

// A snapshot that failed is not tried again by a rule before this many seconds.
constexpr int64_t kSaveRetrySeconds = 5;
constexpr int kSavingNice = 5;
// How long the end of the server waits for a log that cannot be written.
constexpr int64_t kShortPatienceMs = 1000;
constexpr std::chrono::milliseconds kMemoryPause(10);

}  // namespace

Persistence::Persistence(engine::Engine* engine) : engine_(*engine) {
  figures_.save.last_s = NowSeconds();
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
  if (log_ != nullptr) {
    engine_.journal().Detach(*log_);
    for (const snapshot::RdbAux* aux : aux_) {
      std::string line = replacing() ? std::string() : aux->EndLine();
      if (!line.empty()) log_->SetEndLine(std::move(line));
    }
  }
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
    figures_.activity = jobs_.empty() ? Activity::kNone : jobs_.front().activity;
    // The client is answered when the next job may begin, and there is memory for it.
    while (!base::IfMemory([&] { Answer(job.waiter, reply); }) && !stopping_.load()) {
      lock.unlock();
      std::this_thread::sleep_for(kMemoryPause);
      lock.lock();
    }
    if (stopping_) continue;
    if (jobs_.empty()) base::IfMemory([this] { StartScheduled(); });
    // After a failure of the disk there is no new try at once.
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
      activity == Activity::kBgsave ? figures_.save.scheduled : figures_.rewrite.scheduled;
  scheduled = false;
  figures_.save.runs_after_flush = false;
  figures_.cut_made = false;
  wake_.notify_all();
}

// REQUIRES: mutex_, nothing is queued.
void Persistence::StartScheduled() {
  if (figures_.rewrite.scheduled) {
    StartLocked(Activity::kRewrite);
  } else if (figures_.save.scheduled) {
    StartLocked(Activity::kBgsave);
  } else if (figures_.save.after_flush && !giving_up_.load()) {
    StartLocked(Activity::kBgsave);
    figures_.save.runs_after_flush = true;
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
    } catch (...) {  // the caller handles it
      done.set_exception(std::current_exception());
    }
    return {};
  };
  Push({Activity::kOther, alone, {}});
  done.get_future().get();
}

// ---- for commands ----

Persistence::Started Persistence::StartSave(bool schedule, bool in_exec) {
  std::lock_guard lock(mutex_);
  const Activity now = figures_.activity;
  if (now == Activity::kBgsave || now == Activity::kSave || now == Activity::kCopy) {
    // In Redis a save after FLUSHALL is over before any client can start another.
    if (!figures_.save.runs_after_flush || now == Activity::kCopy) return Started::kBusySame;
    figures_.save.scheduled = true;
    return Started::kStarted;
  }
  if (now == Activity::kNone && jobs_.empty() && !in_exec) {
    StartLocked(Activity::kBgsave);
    return Started::kStarted;
  }
  if (!schedule && !in_exec) return Started::kBusyOther;
  figures_.save.scheduled = true;
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
  figures_.rewrite.scheduled = true;
  figures_.rewrite.failures = 0;
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
  figures_.save.after_flush = true;
  figures_.save.dirty_at_flush = engine_.Dirty() + changes;
  return watched_.load() == nullptr;
}

void Persistence::AnswerWhenSaved(const Waiter& waiter, std::string reply) {
  std::lock_guard lock(mutex_);
  // It may be over already.
  if (!figures_.save.after_flush) return Answer(waiter, std::move(reply));
  save_waiters_.push_back({waiter, std::move(reply), figures_.save.dirty_at_flush});
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
  const uint64_t before = now.save.after_flush ? now.save.dirty_at_flush : now.save.dirty;
  return dirty > before ? dirty - before : 0;
}

void Persistence::Tick() {
  if (loading() || replacing()) return;
  const config::Settings& settings = engine_.settings();
  const uint64_t dirty = engine_.Dirty();
  const int64_t now = NowSeconds();
  std::lock_guard lock(mutex_);
  if (figures_.activity != Activity::kNone || !jobs_.empty()) return;
  StartScheduled();
  if (figures_.activity != Activity::kNone) return;
  const auto changes = static_cast<int64_t>(dirty - std::min(dirty, figures_.save.dirty));
  if (figures_.save.last_ok || now - figures_.save.last_try_s > kSaveRetrySeconds) {
    for (const config::SaveRule& rule : settings.save_rules) {
      if (changes < rule.changes || now - figures_.save.last_s <= rule.seconds) continue;
      spdlog::info("{} changes in {} seconds. Saving...", rule.changes, rule.seconds);
      return StartLocked(Activity::kBgsave);
    }
  }
  if (watched_.load() == nullptr || settings.auto_aof_rewrite_percentage == 0 ||
      now < figures_.rewrite.next_auto_s) {
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
  if (replacing()) {
    spdlog::warn("Nothing is saved: the data of the master did not come, the files are as before.");
    return {};
  }
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
  spdlog::warn("{}. No client was told of the writes it lacks.", status.error());
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
