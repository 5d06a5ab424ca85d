// Loading: at start, and again for DEBUG RELOAD and DEBUG LOADAOF.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/mapped_file.h"
#include "engine/engine_context.h"
#include "persistence/persistence.h"
#include "storage/data_set.h"
#include "storage/recovery_plan.h"

namespace sava::persistence {

using storage::AofFile;
using storage::AofLog;
using storage::AofManifest;
using storage::PathIn;
using storage::RecoveryPlan;

namespace {

constexpr double kMegabyte = 1 << 20;

std::string DirectoryFor(const config::Settings& settings) {
  return PathIn(settings.dir, settings.appenddirname);
}

// The last line of a log's file, when it is a comment; the lines that say what is synced are
// skipped. Else empty.
std::string EndLineOf(storage::FileSystem& files, const std::string& path) {
  constexpr uint64_t kLooked = 4096;
  const auto size = files.Size(path);
  if (!size) return {};
  const auto read = files.Read(path, size.value() - std::min(size.value(), kLooked), kLooked);
  if (!read) return {};
  std::string_view rest = read.value();
  while (rest.ends_with("\r\n")) {
    rest.remove_suffix(2);
    const size_t before = rest.rfind('\n');
    if (before == std::string_view::npos) return {};
    const std::string_view line = rest.substr(before + 1);
    if (!line.starts_with(storage::kAofSyncedMark)) {
      return line.starts_with('#') ? std::string(line) : std::string();
    }
    rest = rest.substr(0, before + 1);
  }
  return {};
}

storage::DataPlaces PlacesOf(const config::Settings& settings) {
  return {PathIn(settings.dir, settings.dbfilename), PathIn(settings.dir, settings.appendfilename),
          DirectoryFor(settings), settings.appendfilename};
}

}  // namespace

// ---- progress ----

uint64_t Persistence::SizeOf(const std::string& path) const {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

void Persistence::BeginProgress(uint64_t total_bytes) {
  load_start_ms_.store(engine_.clock().WallMillis());
  load_before_.store(0);
  load_total_.store(total_bytes);
  progress_.loaded_bytes.store(0);
  progress_.keys_loaded.store(0);
  progress_.keys_expired.store(0);
}

void Persistence::EndPart() {
  load_before_.fetch_add(progress_.total_bytes.load());
  progress_.loaded_bytes.store(0);
}

Persistence::LoadFigures Persistence::load_figures() const {
  LoadFigures figures;
  figures.start_ms = load_start_ms_.load();
  figures.total_bytes = load_total_.load();
  figures.loaded_bytes =
      std::min(figures.total_bytes, load_before_.load() + progress_.loaded_bytes.load());
  figures.keys_loaded = progress_.keys_loaded.load();
  figures.keys_expired = progress_.keys_expired.load();
  const int64_t elapsed = std::max<int64_t>(1, engine_.clock().WallMillis() - figures.start_ms);
  figures.rate = static_cast<double>(figures.loaded_bytes) * 1000 / static_cast<double>(elapsed);
  const auto left = static_cast<double>(figures.total_bytes - figures.loaded_bytes);
  figures.eta_s = figures.rate < 1 ? 1 : static_cast<int64_t>(left / figures.rate);
  return figures;
}

std::string Persistence::ProgressLine() const {
  const LoadFigures figures = load_figures();
  const auto total = static_cast<double>(std::max<uint64_t>(1, figures.total_bytes));
  const auto done = static_cast<double>(figures.loaded_bytes);
  return fmt::format("Loading: {:.0f}% ({:.0f} of {:.0f} MB), {:.1f} MB/s, {} s left",
                     done * 100 / total, done / kMegabyte, total / kMegabyte,
                     figures.rate / kMegabyte, figures.eta_s);
}

// ---- files ----

LoadOptions Persistence::OptionsFor(const config::Settings& settings, bool exclusive) {
  LoadOptions options;
  options.exclusive = exclusive;
  options.settings = &settings;
  options.verify_checksum = settings.rdbchecksum && !engine_.switches().skip_checksums.load();
  options.progress = &progress_;
  options.aux = aux_;
  options.keep_expired = engine_.role().replica();  // its master says which keys expire
  options.key_delay_us = settings.key_load_delay;
  options.warn = [](const std::string& text) { spdlog::warn("{}", text); };
  return options;
}

base::Status Persistence::LoadDump(const config::Settings& settings, bool exclusive,
                                   uint32_t reload) {
  const std::string path = PathIn(settings.dir, settings.dbfilename);
  BeginProgress(SizeOf(path));
  const int64_t start = engine_.clock().MonotonicMicros();
  LoadOptions options = OptionsFor(settings, exclusive);
  options.replace = (reload & kMerge) != 0;
  options.new_libraries = (reload & kNoFlush) != 0 && !options.replace;
  Loader loader(&engine_, options);
  if (base::Status status = loader.LoadRdb(path); !status) return status;
  EndPart();
  spdlog::info("Done loading RDB, keys loaded: {}, keys expired: {}.", progress_.keys_loaded.load(),
               progress_.keys_expired.load());
  spdlog::info("DB loaded from disk: {:.3f} seconds",
               static_cast<double>(engine_.clock().MonotonicMicros() - start) / 1e6);
  return {};
}

// Loads the parts of a log, one after another.
class Persistence::PartLoader final : public storage::PartReader {
 public:
  PartLoader(Persistence* persistence, LoadOptions options)
      : persistence_(*persistence), options_(std::move(options)) {}

  storage::AofEnd Read(const RecoveryPlan::Part& part, const base::MappedFile& file) override {
    const engine::Engine& engine = persistence_.engine_;
    const int64_t start = engine.clock().MonotonicMicros();
    Loader loader(&persistence_.engine_, options_);
    storage::AofEnd end = loader.LoadAof(part.path, file);
    persistence_.EndPart();
    if (end.kind == storage::AofEnd::Kind::kWhole ||
        end.kind == storage::AofEnd::Kind::kTruncated) {
      spdlog::info("DB loaded from {} file {}: {:.3f} seconds",
                   part.file.kind == AofFile::Kind::kBase ? "base" : "incr", part.file.name,
                   static_cast<double>(engine.clock().MonotonicMicros() - start) / 1e6);
    }
    return end;
  }

 private:
  Persistence& persistence_;
  const LoadOptions options_;
};

// Nothing of the log is changed before all of it was found good.
base::Status Persistence::LoadLog(const config::Settings& settings, RecoveryPlan* plan,
                                  bool exclusive) {
  uint64_t total = 0;
  for (const RecoveryPlan::Part& part : plan->parts) total += part.size;
  BeginProgress(total);
  const int64_t start = engine_.clock().MonotonicMicros();
  PartLoader loader(this, OptionsFor(settings, exclusive));
  storage::ReadRules rules;
  rules.cut_tails = settings.aof_load_truncated;
  base::Status status = storage::ReadParts(files_, plan, loader, rules);
  if (!status) return status;
  spdlog::info("DB loaded from append only file: {:.3f} seconds",
               static_cast<double>(engine_.clock().MonotonicMicros() - start) / 1e6);
  TellRepairs(*plan);
  return storage::RepairLog(files_, *plan);
}

// Logs the changes that are about to be made to the files of the log.
void Persistence::TellRepairs(const RecoveryPlan& plan) {
  if (plan.ring.lacking > 0) {
    spdlog::warn("{} lacked {} bytes that were synced: restored from {}", plan.ring.file,
                 plan.ring.lacking, storage::AofRingName(plan.log));
  }
  for (const RecoveryPlan::Finding& finding : plan.findings) {
    const RecoveryPlan::Part& part = plan.parts[finding.part];
    if (finding.lost) {
      spdlog::warn("!!! Warning: the AOF file {} has lost its end: it has {} bytes, and had {}!!!",
                   part.path, part.size, part.had);
    }
    if (finding.end.good < part.size) {
      spdlog::warn("!!! Warning: short read while loading the AOF file {}!!!", part.path);
      spdlog::warn("{}: {}; what follows offset {} is left out", part.path, finding.end.text,
                   finding.end.good);
      spdlog::warn("AOF {} loaded anyway because aof-load-truncated is enabled", part.path);
    }
    for (const RecoveryPlan::Cut& cut : finding.cuts) {
      spdlog::warn("Truncating the AOF {} at offset {} ({} bytes are left out): {}", cut.path,
                   cut.kept, cut.size - cut.kept, cut.why);
    }
  }
}

// A log of one file, as Redis wrote it before version 7, becomes the base of the new form. It was
// loaded where it is and is moved only now; the manifest that names it comes first, so that a crash
// in between leaves what PlanStart understands.
base::Status Persistence::Upgrade(const config::Settings& settings, AofManifest* manifest) {
  const std::string directory = DirectoryFor(settings);
  const std::string old_path = PathIn(settings.dir, settings.appendfilename);
  manifest->files = {{settings.appendfilename, 1, AofFile::Kind::kBase}};
  base::Status status = files_.MakeDirectory(directory);
  if (status) {
    status = storage::WriteAtomically(
        files_, PathIn(directory, storage::AofManifestName(settings.appendfilename)),
        manifest->Text());
  }
  if (status) status = files_.Rename(old_path, PathIn(directory, settings.appendfilename));
  if (status) status = files_.SyncDirectory(directory);
  if (status) status = files_.SyncDirectory(settings.dir);
  if (!status) return status;
  spdlog::info(
      "Successfully migrated an old-style AOF configuration ({}) into the AOF directory {}",
      settings.appendfilename, settings.appenddirname);
  return {};
}

base::Status Persistence::CarryOut(const config::Settings& settings, RecoveryPlan* plan) {
  data_set_ = plan->data_set;
  if (plan->foreign_dump) KeepDump(settings, *plan);
  if (!plan->refused.empty()) return base::Error{plan->refused};
  switch (plan->source) {
    case RecoveryPlan::Source::kNothing:
      spdlog::info("Nothing to load from {}: a new, empty data set begins", settings.dir);
      return {};
    case RecoveryPlan::Source::kDump:
      loaded_dump_ = true;
      return LoadDump(settings, false);
    case RecoveryPlan::Source::kLog: {
      base::Status status = LoadLog(settings, plan, false);
      if (status && !plan->parts.empty()) loaded_end_ = EndLineOf(files_, plan->parts.back().path);
      return status;
    }
    case RecoveryPlan::Source::kOldLog:
      break;
  }
  base::Status status = LoadLog(settings, plan, false);
  return status ? Upgrade(settings, &plan->manifest) : status;
}

void Persistence::Load() {
  const config::Settings settings = SettingsNow();
  RecoveryPlan plan;
  base::Status status = LockFiles(settings);
  if (status) {
    plan = storage::PlanStart(files_, PlacesOf(settings), settings.appendonly);
    status = CarryOut(settings, &plan);
  }
  if (data_set_.empty()) data_set_ = storage::NewDataSetId();
  if (!status) status = base::Error{"Can't load the data: " + status.error()};
  if (status && settings.appendonly) status = OpenAtStart(settings, plan.manifest);
  if (!status) {
    UnlockFiles();  // nothing was changed, and nothing will be
    load_error_ = status.error();
    return;
  }
  for (const snapshot::RdbAux* aux : aux_) {
    if (const std::string text = aux->Loaded(); !text.empty()) spdlog::info("{}", text);
  }
  engine_.Exclusively(engine_.house_lane(), [&] {
    for (snapshot::RdbAux* aux : aux_) aux->LoadEnded();
  });
  std::lock_guard lock(mutex_);
  figures_.save.dirty = engine_.Dirty();
  figures_.save.last_s = NowSeconds();
}

// ---- DEBUG ----

// REQUIRES: the gate is closed.
void Persistence::EmptyAll() {
  engine::Invocation work(engine_.house_lane());
  engine::EngineContext(work).Flush(-1, false);
  for (snapshot::RdbAux* aux : aux_) aux->Clear();
}

std::string Persistence::ReloadNow(uint32_t options) {
  std::string reply = "+OK\r\n";
  engine_.Exclusively(engine_.house_lane(), [&] {
    const config::Settings& settings = engine_.settings();
    if ((options & kNoSave) == 0) {
      const auto lock = LockDump(settings);
      if (!lock) {
        spdlog::warn("{}", lock.error());
        reply = "-ERR\r\n";
        return;
      }
      const Cut cut = BeginCut(false);
      const int64_t start = NowSeconds();
      const auto written = WriteCut(cut, PathIn(settings.dir, fmt::format("temp-{}.rdb", getpid())),
                                    PathIn(settings.dir, settings.dbfilename), true);
      NoteSave(written ? base::Status() : base::Error{written.error()}, cut, start, false);
      if (!written) {
        reply = "-ERR\r\n";
        return;
      }
    }
    if ((options & kNoFlush) == 0) EmptyAll();
    if (const base::Status status = LoadDump(settings, true, options); !status) {
      spdlog::warn("{}", status.error());
      reply = "-ERR Error trying to load the RDB dump, check server logs.\r\n";
      return;
    }
    spdlog::warn("DB reloaded by DEBUG RELOAD");
    engine_.waiting().ServeEverybody(engine_.house_lane());
    // The log lacks data that came from elsewhere, and the removal of keys that were left out
    // because they had expired.
    if (log_ != nullptr) static_cast<void>(StartRewrite(true));
  });
  return reply;
}

std::string Persistence::LoadAofNow() {
  const config::Settings settings = SettingsNow();
  std::string reply = "+OK\r\n";
  engine_.Exclusively(engine_.house_lane(), [&] {
    AofManifest manifest;
    base::Status status = log_ == nullptr ? base::Status() : SyncLog(10000);
    if (status) {
      const auto found =
          AofLog::FindManifest(files_, DirectoryFor(settings), settings.appendfilename, &manifest);
      if (!found) {
        status = base::Error{found.error()};
      } else if (!found.value()) {
        status = base::Error{"There is no AOF manifest in " + DirectoryFor(settings)};
      }
    }
    if (status) {
      EmptyAll();
      // The files have the bytes of its ring: they were synced.
      RecoveryPlan plan = storage::PlanLog(files_, DirectoryFor(settings), {}, manifest);
      status = LoadLog(settings, &plan, true);
    }
    if (!status) {
      spdlog::warn("{}", status.error());
      reply = "-ERR Error trying to load the AOF files, check server logs.\r\n";
      return;
    }
    spdlog::warn("Append Only File loaded by DEBUG LOADAOF");
    engine_.waiting().ServeEverybody(engine_.house_lane());
  });
  return reply;
}

}  // namespace sava::persistence
