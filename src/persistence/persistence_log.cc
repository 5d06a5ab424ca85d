// The append-only log as the server sees it: switched on and off, in good order or in trouble, and
// the callback for clients that wait for its syncs.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <utility>

#include "persistence/persistence.h"

namespace sava::persistence {

using storage::AofLog;
using storage::AofManifest;
using storage::PathIn;

namespace {

constexpr std::string_view kSaveFailed =
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to "
    "disk. Commands that may modify the data set are disabled, because this instance is configured "
    "to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error "
    "option). "
    "Please check the Redis logs for details about the RDB error.";

AofLog::Policy PolicyOf(const config::Settings& settings) {
  switch (settings.appendfsync) {
    case config::AppendFsync::kAlways:
      return AofLog::Policy::kAlways;
    case config::AppendFsync::kNo:
      return AofLog::Policy::kNo;
    case config::AppendFsync::kEverysec:
      break;
  }
  return AofLog::Policy::kEverysec;
}

}  // namespace

std::unique_ptr<AofLog> Persistence::MakeLog(const config::Settings& settings) {
  AofLog::Options options;
  options.files = &files_;
  options.directory = PathIn(settings.dir, settings.appenddirname);
  options.name = settings.appendfilename;
  options.data_set = data_set_;
  options.policy = PolicyOf(settings);
  options.timestamps = settings.aof_timestamp_enabled;
  options.ring = settings.aof_ring;
  options.changed = [this] { LogChanged(); };
  {
    std::lock_guard lock(lock_mutex_);
    options.guard = log_lock_;
  }
  return std::make_unique<AofLog>(std::move(options));
}

// Takes a log with a base into use. REQUIRES: the gate is closed.
void Persistence::Watch(const config::Settings& settings) {
  log_->SetPolicy(PolicyOf(settings));
  engine_.changes().Track(log_->always());
  watched_.store(log_.get());
}

// The first base of a log that has none.
base::Status Persistence::BeginLog(std::unique_ptr<AofLog> log) {
  Cut cut;
  engine_.Exclusively(engine_.house_lane(), [&] {
    log_ = std::move(log);
    cut = BeginCut(true, !engine_.settings().aof_use_rdb_preamble);
    log_->SwitchAt(engine_.journal().Cut());
    engine_.journal().Attach(*log_);
  });
  base::Status status = WriteBase(cut);
  engine_.Exclusively(engine_.house_lane(), [&] {
    if (status) {
      Watch(engine_.settings());
    } else {
      engine_.journal().Detach(*log_);
      log = std::move(log_);
    }
  });
  if (status) LogChanged();
  return status;
}

base::Status Persistence::OpenAtStart(const config::Settings& settings,
                                      const AofManifest& manifest) {
  std::unique_ptr<AofLog> log = MakeLog(settings);
  base::Status status = log->Open(manifest, engine_.journal().next_ticket());
  if (status && manifest.base() == nullptr && manifest.increments().empty()) {
    spdlog::info("Creating AOF base file {} on server start",
                 storage::AofBaseName(settings.appendfilename, 1, settings.aof_use_rdb_preamble));
    status = BeginLog(std::move(log));
  } else if (status) {
    engine_.Exclusively(engine_.house_lane(), [&] {
      log_ = std::move(log);
      engine_.journal().Attach(*log_);
      Watch(engine_.settings());
    });
  }
  if (status) return status;
  return base::Error{"Can't write the append only file: " + status.error()};
}

// ---- appendonly changes while running ----

void Persistence::MatchAppendonly() {
  if (replacing()) return match_log_.store(true);
  const config::Settings settings = SettingsNow();
  const bool in_place =
      log_ != nullptr && log_->directory() == PathIn(settings.dir, settings.appenddirname);
  if (log_ != nullptr && !(settings.appendonly && in_place)) {
    moving_ = settings.appendonly;
    if (moving_) spdlog::info("The append only file moves to {}", settings.dir);
    TurnOff();
  }
  if (settings.appendonly && log_ == nullptr) {
    first_base_.store(true);
    const int64_t start = NowSeconds();
    const base::Status status = TurnOn(settings);
    NoteRewrite(status, start);
    if (status) {
      spdlog::info("The append only file is on: {}", PathIn(settings.dir, settings.appenddirname));
    } else {
      spdlog::warn("Unable to turn on AOF, trying again: {}", status.error());
      match_log_.store(true);
      if (moving_) SetLogError(status.error());  // writes were logged, and are not any more
      return;                                    // still without its first base
    }
  }
  if (std::exchange(moving_, false)) {
    const bool good = log_ == nullptr || log_->state() == AofLog::State::kGood;
    SetLogError(good ? std::string() : log_->last_error());
  }
  first_base_.store(false);
}

// Files of an earlier log lack later changes: they are history once the new base is there.
base::Status Persistence::TurnOn(const config::Settings& settings) {
  AofManifest manifest;
  const std::string directory = PathIn(settings.dir, settings.appenddirname);
  const auto found = AofLog::FindManifest(files_, directory, settings.appendfilename, &manifest);
  if (!found) return base::Error{found.error()};
  for (storage::AofFile& file : manifest.files) file.kind = storage::AofFile::Kind::kHistory;
  std::unique_ptr<AofLog> log = MakeLog(settings);
  if (base::Status status = log->Open(manifest, engine_.journal().next_ticket()); !status) {
    return status;
  }
  return BeginLog(std::move(log));
}

// The log is synced before replies that wait for it are sent.
void Persistence::TurnOff() {
  spdlog::info("AOF is turned off");
  engine_.Exclusively(engine_.house_lane(), [&] { engine_.journal().Detach(*log_); });
  const uint64_t end = engine_.journal().next_ticket();
  for (int tries = 0; tries < 5000 && log_->durable() < end; ++tries) {
    // The journal does not know the log any more: this thread does its part.
    log_->RequestSync();
    log_->Pause();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::unique_ptr<AofLog> log;
  engine_.Exclusively(engine_.house_lane(), [&] {
    watched_.store(nullptr);
    engine_.changes().Track(false);
    log = std::move(log_);
  });
  log.reset();
  {
    std::lock_guard lock(trouble_mutex_);
    seen_state_ = AofLog::State::kGood;
    needs_base_.store(false);
    log_error_.clear();
    if (on_durable_) on_durable_();
  }
  UpdateRefusal();
}

base::Status Persistence::SettingsChanged(const config::Settings& now) {
  if (base::Status status = FollowFiles(now); !status) return status;
  stop_writes_.store(now.stop_writes_on_bgsave_error && !now.save_rules.empty());
  UpdateRefusal();
  const bool moved = std::exchange(dir_, now.dir) != now.dir && now.appendonly;
  if (std::exchange(appendonly_, now.appendonly) != now.appendonly || moved) {
    std::lock_guard lock(mutex_);
    first_base_.store(now.appendonly);
    if (now.appendonly && figures_.activity == Activity::kNone && jobs_.empty()) {
      figures_.activity = Activity::kRewrite;
      figures_.activity_since_s = NowSeconds();
    }
    jobs_.push_back({Activity::kRewrite, [this] { return MatchAppendonly(), ""; }, {}});
    wake_.notify_all();
  }
  if (log_ == nullptr) return {};
  log_->set_timestamps(now.aof_timestamp_enabled);
  log_->SetRing(now.aof_ring);
  log_->SetPolicy(PolicyOf(now));
  if (watched_.load() != nullptr) Watch(now);
  // Answers that wait may be ready now, or the log's thread may have to sync for them.
  {
    std::lock_guard lock(trouble_mutex_);
    if (on_durable_) on_durable_();
  }
  engine_.journal().Nudge();
  return {};
}

// ---- trouble ----

void Persistence::LogChanged() {
  std::lock_guard lock(trouble_mutex_);
  AofLog* const log = watched_.load();
  if (log == nullptr) return;
  if (on_durable_) on_durable_();
  const AofLog::State state = log->state();
  if (state == seen_state_) return;
  seen_state_ = state;
  needs_base_.store(state == AofLog::State::kNeedsBase);
  log_error_ = state == AofLog::State::kGood ? "" : log->last_error();
  if (state == AofLog::State::kGood) {
    spdlog::warn("Writes are accepted again: the AOF file is in order.");
  } else {
    spdlog::warn("Writes are refused until {}: {}",
                 needs_base_.load() ? "a new base of the AOF is written" : "the AOF can be written",
                 log_error_);
  }
  UpdateRefusalLocked();
  std::lock_guard queue_lock(mutex_);
  wake_.notify_all();
}

void Persistence::SetLogError(std::string error) {
  std::lock_guard lock(trouble_mutex_);
  log_error_ = std::move(error);
  UpdateRefusalLocked();
}

void Persistence::UpdateRefusal() {
  std::lock_guard lock(trouble_mutex_);
  UpdateRefusalLocked();
}

void Persistence::UpdateRefusalLocked() {
  if (!log_error_.empty()) {
    engine_.admission().RefuseWrites("MISCONF Errors writing to the AOF file: " + log_error_);
  } else if (save_failed_.load() && stop_writes_.load()) {
    engine_.admission().RefuseWrites(std::string(kSaveFailed));
  } else {
    engine_.admission().RefuseWrites({});
  }
}

// ---- clients that wait for a sync ----

void Persistence::OnDurable(std::function<void()> wake) {
  std::lock_guard lock(trouble_mutex_);
  on_durable_ = std::move(wake);
}

}  // namespace sava::persistence
