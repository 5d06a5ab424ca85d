// Loading: at start, and again for DEBUG RELOAD and DEBUG LOADAOF.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/mapped_file.h"
#include "engine/engine_context.h"
#include "persistence/persistence.h"
#include "storage/aof_reader.h"
#include "storage/aof_ring.h"
#include "storage/data_set.h"

namespace sava::persistence {

using storage::AofFile;
using storage::AofLog;
using storage::AofManifest;
using storage::PathIn;

namespace {

constexpr double kMegabyte = 1 << 20;

std::string DirectoryFor(const config::Settings& settings) {
  return PathIn(settings.dir, settings.appenddirname);
}

}  // namespace

// ---- how far it is ----

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
  options.verify_checksum = settings.rdbchecksum && !engine_.skip_checksums().load();
  options.progress = &progress_;
  options.warn = [](const std::string& text) { spdlog::warn("{}", text); };
  return options;
}

base::Status Persistence::LoadDump(const config::Settings& settings, bool exclusive, bool merge) {
  const std::string path = PathIn(settings.dir, settings.dbfilename);
  BeginProgress(SizeOf(path));
  const int64_t start = engine_.clock().MonotonicMicros();
  LoadOptions options = OptionsFor(settings, exclusive);
  options.replace = merge;
  Loader loader(&engine_, options);
  if (base::Status status = loader.LoadRdb(path); !status) return status;
  EndPart();
  spdlog::info("Done loading RDB, keys loaded: {}, keys expired: {}.", progress_.keys_loaded.load(),
               progress_.keys_expired.load());
  spdlog::info("DB loaded from disk: {:.3f} seconds",
               static_cast<double>(engine_.clock().MonotonicMicros() - start) / 1e6);
  return {};
}

// A file of the log as it will be once it has what the ring has for it.
base::Result<base::MappedFile> Persistence::OpenPart(const std::string& path) const {
  if (repairs_.ring.lacking > 0 && path == repairs_.restored) {
    return base::MappedFile::WithEnd(path, repairs_.ring.offset, repairs_.ring.end);
  }
  return base::MappedFile::Open(path);
}

uint64_t Persistence::PartSize(const std::string& path) const {
  if (repairs_.ring.lacking == 0 || path != repairs_.restored) return SizeOf(path);
  return repairs_.ring.offset + repairs_.ring.end.size();
}

// One file of the log. The last one (`last`: nothing after it counts) may be cut off where
// aof-load-truncated allows it: what follows its last whole record is to be cut away.
base::Status Persistence::LoadPart(const config::Settings& settings, const std::string& path,
                                   bool last, bool exclusive) {
  const auto file = OpenPart(path);
  if (!file) return base::Error{file.error()};
  Loader loader(&engine_, OptionsFor(settings, exclusive));
  uint64_t good = 0;
  base::Status status =
      loader.LoadAof(path, file.value(), last && settings.aof_load_truncated, &good);
  if (!status) return status;
  EndPart();
  const uint64_t size = file.value().bytes().size();
  if (good >= size) return {};
  spdlog::warn("!!! Warning: short read while loading the AOF file {}!!!", path);
  spdlog::warn("AOF {} loaded anyway because aof-load-truncated is enabled", path);
  repairs_.cuts.push_back({path, good, size, "it ends there"});
  return {};
}

// Nothing of the log is changed before all of it was found good: then it gets what the ring has,
// and what was left out of it is cut off.
base::Status Persistence::RepairLog(const config::Settings& settings, const AofManifest& manifest) {
  const LogRepairs repairs = std::exchange(repairs_, {});
  const auto restored = storage::RestoreFromRing(files_, DirectoryFor(settings),
                                                 settings.appendfilename, manifest, true);
  if (!restored) return base::Error{restored.error()};
  if (restored.value().lacking > 0) {
    spdlog::warn("{} lacked {} bytes that were synced: restored from {}", restored.value().file,
                 restored.value().lacking, storage::AofRingName(settings.appendfilename));
  }
  return CutLog(repairs);
}

base::Status Persistence::CutLog(const LogRepairs& repairs) {
  for (const LogRepairs::Cut& cut : repairs.cuts) {
    spdlog::warn("Truncating the AOF {} at offset {} ({} bytes are left out): {}", cut.path,
                 cut.kept, cut.size - cut.kept, cut.why);
    auto file = files_.Open(cut.path, storage::FileSystem::Mode::kAppend);
    if (!file) return base::Error{file.error()};
    base::Status status = (*file)->Truncate(cut.kept);
    if (status) status = (*file)->Sync();
    if (!status) return status;
  }
  return {};
}

// The first of these; false when the log ends with it although there are others: then it is cut
// off, and they have nothing but what was never synced. They are left empty.
base::Result<bool> Persistence::LoadIncrement(const config::Settings& settings,
                                              const std::string& directory,
                                              std::span<const AofFile> increments, bool exclusive) {
  storage::AofHindsight hindsight;
  for (const AofFile& later : increments.subspan(1)) {
    const auto file = OpenPart(PathIn(directory, later.name));
    if (!file) return base::Error{file.error()};
    hindsight.Add(increments[0].sequence, file.value().bytes());
  }
  const std::string path = PathIn(directory, increments[0].name);
  const uint64_t size = PartSize(path);
  const bool lost = size < hindsight.size;
  const size_t cuts = repairs_.cuts.size();
  if (lost && (hindsight.whole || !settings.aof_load_truncated)) {
    return base::Error{fmt::format(
        "Unexpected end of file reading the append only file {}: it has {} bytes, and had {}", path,
        size, hindsight.size)};
  }
  const base::Status status = LoadPart(settings, path, !hindsight.whole, exclusive);
  if (!status) return base::Error{status.error()};
  if (!lost && repairs_.cuts.size() == cuts) return true;
  if (lost) {
    spdlog::warn("!!! Warning: the AOF file {} has lost its end: it has {} bytes, and had {}!!!",
                 path, size, hindsight.size);
  }
  // They keep nothing but their first line, as increments without records.
  for (const AofFile& later : increments.subspan(1)) {
    const std::string later_path = PathIn(directory, later.name);
    const uint64_t later_size = PartSize(later_path);
    const uint64_t kept = std::min<uint64_t>(later_size, storage::AofSyncedLine(0).size());
    if (later_size == kept) continue;
    repairs_.cuts.push_back({later_path, kept, later_size, "what comes before it is cut off"});
  }
  return false;
}

base::Status Persistence::LoadLog(const config::Settings& settings, const AofManifest& manifest,
                                  bool exclusive) {
  std::vector<AofFile> parts;
  if (manifest.base() != nullptr) parts.push_back(*manifest.base());
  for (const AofFile& file : manifest.increments()) parts.push_back(file);
  const std::string directory = DirectoryFor(settings);
  uint64_t total = 0;
  for (const AofFile& file : parts) total += SizeOf(PathIn(directory, file.name));
  BeginProgress(total);
  const int64_t start = engine_.clock().MonotonicMicros();
  const auto seconds_since = [this](int64_t since) {
    return static_cast<double>(engine_.clock().MonotonicMicros() - since) / 1e6;
  };
  bool more = true;
  for (size_t i = 0; i < parts.size() && more; ++i) {
    const int64_t part_start = engine_.clock().MonotonicMicros();
    if (parts[i].kind == AofFile::Kind::kBase) {
      base::Status status =
          LoadPart(settings, PathIn(directory, parts[i].name), i + 1 == parts.size(), exclusive);
      if (!status) return status;
    } else {
      const auto loaded =
          LoadIncrement(settings, directory, std::span(parts).subspan(i), exclusive);
      if (!loaded) return base::Error{loaded.error()};
      more = loaded.value();
    }
    spdlog::info("DB loaded from {} file {}: {:.3f} seconds",
                 parts[i].kind == AofFile::Kind::kBase ? "base" : "incr", parts[i].name,
                 seconds_since(part_start));
  }
  if (!parts.empty()) {
    spdlog::info("DB loaded from append only file: {:.3f} seconds", seconds_since(start));
  }
  return {};
}

// A log of one file, as Redis wrote it before version 7, becomes the base of the new form. It is
// loaded where it is and moved only then; the manifest that names it comes first, so that a crash
// in between leaves what Upgrade understands.
base::Status Persistence::Upgrade(const config::Settings& settings, AofManifest* manifest) {
  const std::string directory = DirectoryFor(settings);
  const std::string old_path = PathIn(settings.dir, settings.appendfilename);
  BeginProgress(SizeOf(old_path));
  if (base::Status status = LoadPart(settings, old_path, true, false); !status) return status;
  if (base::Status status = CutLog(std::exchange(repairs_, {})); !status) return status;
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

base::Status Persistence::LoadDumpOrBegin(const config::Settings& settings) {
  if (const std::string path = PathIn(settings.dir, settings.dbfilename); files_.Exists(path)) {
    if (const auto id = storage::DataSetOfRdb(files_, path)) data_set_ = id.value();
    return LoadDump(settings, false);
  }
  spdlog::info("Nothing to load from {}: a new, empty data set begins", settings.dir);
  return {};
}

base::Status Persistence::LoadAll(const config::Settings& settings, AofManifest* manifest) {
  if (!settings.appendonly) return LoadDumpOrBegin(settings);
  const bool dump = files_.Exists(PathIn(settings.dir, settings.dbfilename));
  const std::string directory = DirectoryFor(settings);
  auto found = AofLog::FindManifest(files_, directory, settings.appendfilename, manifest);
  if (!found) return base::Error{found.error()};
  if (files_.Exists(PathIn(settings.dir, settings.appendfilename))) {
    const AofFile* const base = manifest->base();
    const bool half_moved = *found && base != nullptr && manifest->increments().empty() &&
                            base->name == settings.appendfilename &&
                            !files_.Exists(PathIn(directory, base->name));
    if (!*found || half_moved) {
      if (dump) LookAtDump(settings, *manifest);
      return Upgrade(settings, manifest);
    }
  }
  const bool has_files = manifest->base() != nullptr || !manifest->increments().empty();
  if (has_files) {
    data_set_ = manifest->data_set;
    if (dump) LookAtDump(settings, *manifest);
    if (manifest->highest(AofFile::Kind::kIncrement) >= AofManifest::kLastSequence) {
      return base::Error{"no sequence number is left for another increment of the log"};
    }
    auto ring =
        storage::RestoreFromRing(files_, directory, settings.appendfilename, *manifest, false);
    if (!ring) return base::Error{ring.error()};
    repairs_.restored = PathIn(directory, ring->file);
    repairs_.ring = std::move(*ring);
    base::Status status = LoadLog(settings, *manifest, false);
    return status ? RepairLog(settings, *manifest) : status;
  }
  return LoadDumpOrBegin(settings);
}

void Persistence::Load() {
  const config::Settings settings = SettingsNow();
  AofManifest manifest;
  base::Status status = LockFiles(settings);
  if (status) status = LoadAll(settings, &manifest);
  if (data_set_.empty()) data_set_ = storage::NewDataSetId();
  if (!status) status = base::Error{"Can't load the data: " + status.error()};
  if (status && settings.appendonly) status = OpenAtStart(settings, manifest);
  if (!status) {
    UnlockFiles();  // nothing was changed, and nothing will be
    load_error_ = status.error();
    return;
  }
  if (const size_t count = engine_.libraries().count(); count > 0) {
    spdlog::info(
        "Function libraries: {} kept as they came and saved again. FCALL is not available yet.",
        count);
  }
  std::lock_guard lock(mutex_);
  figures_.dirty_at_save = engine_.Dirty();
  figures_.last_save_s = NowSeconds();
}

// ---- DEBUG ----

// REQUIRES: the gate is closed.
void Persistence::EmptyAll() {
  engine_.house_lane().context->Flush(-1, false);
  engine_.libraries().Clear();
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
    if (const base::Status status = LoadDump(settings, true, (options & kMerge) != 0); !status) {
      spdlog::warn("{}", status.error());
      reply = "-ERR Error trying to load the RDB dump, check server logs.\r\n";
      return;
    }
    spdlog::warn("DB reloaded by DEBUG RELOAD");
    engine_.ServeEverybody(engine_.house_lane());
    // The log does not know of what came in besides itself, nor of keys that were left out because
    // their time had come.
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
      status = LoadLog(settings, manifest, true);
      const LogRepairs repairs = std::exchange(repairs_, {});
      if (status) status = CutLog(repairs);
    }
    if (!status) {
      spdlog::warn("{}", status.error());
      reply = "-ERR Error trying to load the AOF files, check server logs.\r\n";
      return;
    }
    spdlog::warn("Append Only File loaded by DEBUG LOADAOF");
    engine_.ServeEverybody(engine_.house_lane());
  });
  return reply;
}

}  // namespace sava::persistence
