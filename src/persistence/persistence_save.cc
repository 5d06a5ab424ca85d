// The files that the keeper writes: snapshots, copies for others, new bases of the log, each from a
// cut.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/version.h"
#include "engine/cut_options.h"
#include "persistence/persistence.h"
#include "persistence/with_memory.h"

namespace sava::persistence {

using storage::AofLog;
using storage::PathIn;

namespace {

// A rewrite that failed this often waits longer and longer, as Redis does.
constexpr uint64_t kRewritePatience = 3;
constexpr int64_t kRewriteLongestPause = 3600;
constexpr std::string_view kNothingToSave = "the data of the master has not come";

}  // namespace

// ---- a cut ----

config::Settings Persistence::SettingsNow() {
  config::Settings copy;
  engine_.Exclusively(engine_.house_lane(), [&] { copy = engine_.settings(); });
  return copy;
}

// The memory in use is read with the gate closed, too: a FLUSHALL may take tables away.
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
  // GiveUp may have been called before it began.
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
    figures_.save.last_try_s = start;
  }
  Cut cut;
  base::Status status = WithMemory([&] { return WriteSnapshot(&cut); });
  NoteSave(status, cut, start, background);
  return status;
}

base::Status Persistence::WriteSnapshot(Cut* cut) {
  if (replacing()) return base::Error{std::string(kNothingToSave)};
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
  if (!written) return base::Error{written.error()};
  KeepDated(cut->settings);
  return {};
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
    if (background) figures_.save.last_seconds = now - start_s;
    figures_.save.last_images = engine_.snapshot().peak_bytes();
    if (status) {
      figures_.save.last_s = now;
      figures_.save.last_ok = true;
      figures_.save.dirty = cut.dirty;
      ++figures_.save.count;
      if (cut.dirty >= figures_.save.dirty_at_flush) figures_.save.after_flush = false;
    } else if (!aborted && background) {
      figures_.save.last_ok = false;
    }
    // After a failure of the disk there is no new try at once: the save rules decide from now on.
    if (!status && !aborted) figures_.save.after_flush = false;
    // A client that was answered may ask for the next save or rewrite: this one is over.
    if (!aborted && !save_waiters_.empty()) {
      figures_.activity = Activity::kNone;
      AnswerSaveWaiters(status ? cut.dirty : UINT64_MAX);
    }
    save_failed_.store(!figures_.save.last_ok);
  }
  UpdateRefusal();
}

// ---- copies for others ----

void Persistence::MakeCopy(std::shared_ptr<Copy> copy) {
  const auto work = [this, copy]() -> std::string {
    base::Result<uint64_t> written = base::Error{"out of memory"};
    base::IfMemory([&] { written = WriteCopy(*copy); });
    // The callbacks may hold the copy in turn.
    const auto done = std::exchange(copy->done, nullptr);
    copy->at_cut = nullptr;
    copy->after_cut = nullptr;
    done(written);
    return {};
  };
  Push({Activity::kCopy, work, {}});
}

void Persistence::PostAlone(std::function<void()> work) {
  const auto alone = [this, work = std::move(work)]() -> std::string {
    engine_.Exclusively(engine_.house_lane(), work);
    return {};
  };
  Push({Activity::kOther, alone, {}});
}

base::Result<uint64_t> Persistence::WriteCopy(Copy& copy) {
  const Cut before = BeforeCut(false);
  storage::SnapshotFile file;
  file.sink = copy.sink;
  file.options = {before.settings.rdbcompression, before.settings.rdbchecksum};
  file.origin = before.origin;
  file.stock = copy.reader != commands::Reader::kSava;
  file.natives = copy.reader != commands::Reader::kStock;
  file.keys = copy.keys;
  file.left_out = &copy.left_out;
  std::vector<snapshot::RdbAux*> aux = copy.aux;
  if (copy.functions) aux.insert(aux.end(), aux_.begin(), aux_.end());
  file.aux = aux;
  file.begin = [&] {
    engine_.Exclusively(engine_.house_lane(), [&] {
      const int64_t now_ms = engine_.clock().WallMillis();
      snapshot::Snapshot::Options options =
          engine::CutOptions(engine_.settings(), now_ms, /*abort_on_flush=*/false);
      options.self_contained = !file.natives;
      options.key_delay_us = engine_.settings().rdb_key_save_delay;
      for (snapshot::RdbAux* one : aux) one->AtCut();
      if (copy.keys) engine_.snapshot().Begin(options);
      copy.at_cut();
      if (giving_up_.load()) GiveUp();
    });
    copy.after_cut();
  };
  return WriteSnapshotFile(engine_.snapshot(), file, false);
}

// ---- new bases ----

base::Status Persistence::Rewrite() {
  if (replacing()) return base::Error{std::string(kNothingToSave)};
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
  figures_.rewrite.last_seconds = now - start_s;
  figures_.rewrite.last_images = engine_.snapshot().peak_bytes();
  figures_.rewrite.last_ok = status.ok();
  if (status) {
    ++figures_.rewrite.count;
    figures_.rewrite.failures = 0;
    figures_.rewrite.next_auto_s = 0;
    return;
  }
  const uint64_t failures = ++figures_.rewrite.failures;
  if (failures < kRewritePatience) return;
  const uint64_t doublings = std::min<uint64_t>(failures - kRewritePatience, 6);
  figures_.rewrite.next_auto_s =
      now + std::min<int64_t>(int64_t{60} << doublings, kRewriteLongestPause);
}

}  // namespace sava::persistence
