#include "cli/data_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/mapped_file.h"
#include "storage/aof_manifest.h"
#include "storage/file_system.h"
#include "storage/rdb_format.h"

namespace sava::cli {

namespace {

using storage::FileSystem;
using storage::PathIn;
using Paths = std::vector<std::string>;

constexpr std::string_view kManifestEnding = ".manifest";
constexpr std::string_view kLogDirectory = "appendonlydir";
constexpr std::string_view kLogName = "appendonly.aof";
constexpr std::string_view kDumpName = "dump.rdb";

bool IsDirectory(const std::string& path) {
  struct stat about {};
  return stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

// Files of a directory; names that begin with "temp-" are those of files still being written.
Paths FilesIn(const std::string& directory, std::string_view ending) {
  Paths found;
  for (const std::string& name : FileSystem::Real().List(directory)) {
    const std::string path = PathIn(directory, name);
    if (name.ends_with(ending) && !name.starts_with("temp-") && !IsDirectory(path)) {
      found.push_back(path);
    }
  }
  return found;
}

// The one that has the usual name, or the only one there is; empty when there is none.
base::Result<std::string> OneOf(const Paths& paths, const std::string& usual,
                                std::string_view what) {
  for (const std::string& path : paths) {
    if (path == usual) return path;
  }
  if (paths.size() > 1) {
    return base::Error{fmt::format("{} and {}: more than one {}; name the one that is meant",
                                   paths[0], paths[1], what)};
  }
  return paths.empty() ? std::string() : paths[0];
}

base::Status ReadManifest(const std::string& path, DataFiles* data) {
  const auto manifest = storage::AofManifest::Read(FileSystem::Real(), path);
  if (!manifest) return base::Error{manifest.error()};
  data->manifest = path;
  const std::string directory = storage::DirectoryOf(path);
  if (const storage::AofFile* base = manifest.value().base()) {
    data->log.push_back(PathIn(directory, base->name));
  }
  for (const storage::AofFile& file : manifest.value().increments()) {
    data->log.push_back(PathIn(directory, file.name));
  }
  data->parts = manifest.value();
  return {};
}

// The manifest of the log in a data directory, or in an append-only directory.
base::Result<std::string> FindManifest(const std::string& path) {
  Paths manifests = FilesIn(path, kManifestEnding);
  if (manifests.empty()) {
    Paths directories;
    for (const std::string& name : FileSystem::Real().List(path)) {
      const std::string inner = PathIn(path, name);
      if (IsDirectory(inner) && !FilesIn(inner, kManifestEnding).empty()) {
        directories.push_back(inner);
      }
    }
    auto directory = OneOf(directories, PathIn(path, kLogDirectory), "append-only directory");
    if (!directory || directory.value().empty()) return directory;
    manifests = FilesIn(directory.value(), kManifestEnding);
  }
  const std::string directory = storage::DirectoryOf(manifests[0]);
  return OneOf(manifests, PathIn(directory, storage::AofManifestName(kLogName)), "manifest");
}

base::Result<DataFiles> FindInDirectory(const std::string& path) {
  DataFiles data;
  data.directory = true;
  const auto manifest = FindManifest(path);
  if (!manifest) return base::Error{manifest.error()};
  const bool log_directory = !manifest.value().empty() && !FilesIn(path, kManifestEnding).empty();
  if (!log_directory) {
    const auto dump = OneOf(FilesIn(path, ".rdb"), PathIn(path, kDumpName), "RDB file");
    if (!dump) return base::Error{dump.error()};
    data.dump = dump.value();
  }
  if (!manifest.value().empty()) {
    if (base::Status status = ReadManifest(manifest.value(), &data); !status) {
      return base::Error{status.error()};
    }
  } else {
    // A log of one file, as Redis wrote it before version 7.
    const auto log = OneOf(FilesIn(path, ".aof"), PathIn(path, kLogName), "append-only file");
    if (!log) return base::Error{log.error()};
    if (!log.value().empty()) data.log.push_back(log.value());
  }
  if (data.dump.empty() && !data.has_log()) {
    return base::Error{
        fmt::format("{}: no data here, neither an RDB file nor an append-only directory", path)};
  }
  return data;
}

// "appendonly.aof" of "appendonlydir/appendonly.aof.manifest".
std::string_view LogName(const DataFiles& data) {
  std::string_view name = data.manifest;
  if (const size_t slash = name.rfind('/'); slash != name.npos) name.remove_prefix(slash + 1);
  name.remove_suffix(kManifestEnding.size());
  return name;
}

// The lock under which a server writes the file. `place`: the log's directory, whose lock stands
// above it; empty for a file that lies in the data directory itself.
struct LockOf {
  std::string path;
  std::string place;

  // The holder, if it is for this file: another log of that name may be in the same directory.
  std::optional<storage::DataLock::Holder> Holder() const {
    auto holder = storage::DataLock::HolderOf(path);
    if (holder && !place.empty() && !holder->place.empty() && holder->place != place) return {};
    return holder;
  }
};

// "appendonly.aof" of the name of one of a log's files; empty for others.
std::string_view NameOfLog(std::string_view file) {
  for (const std::string_view ending : {".base.rdb", ".base.aof", ".incr.aof"}) {
    if (!file.ends_with(ending)) continue;
    file.remove_suffix(ending.size());
    const size_t dot = file.find_last_not_of("0123456789");
    return dot != file.npos && file[dot] == '.' ? file.substr(0, dot) : std::string_view();
  }
  if (!file.ends_with(kManifestEnding)) return {};
  return file.substr(0, file.size() - kManifestEnding.size());
}

LockOf FindLock(const std::string& file) {
  std::error_code error;
  const std::filesystem::path full = std::filesystem::weakly_canonical(file, error);
  const std::string name = full.filename().string();
  const std::string_view log = NameOfLog(name);
  if (log.empty()) return {storage::DataLockName(full.string()), {}};
  const std::filesystem::path place = full.parent_path();
  return {(place.parent_path() / storage::DataLockName(log)).string(), place.string()};
}

// Of the dump and of the log.
std::vector<LockOf> LocksOf(const DataFiles& data) {
  std::vector<LockOf> locks;
  if (!data.dump.empty()) locks.push_back(FindLock(data.dump));
  if (data.has_log()) {
    locks.push_back(FindLock(data.manifest.empty() ? data.log[0] : data.manifest));
  }
  return locks;
}

}  // namespace

std::string Running(int64_t pid) {
  return fmt::format("a server{} is running on these files",
                     pid == 0 ? "" : fmt::format(" (process {})", pid));
}

std::optional<int64_t> ServerOn(const DataFiles& data) {
  for (const LockOf& lock : LocksOf(data)) {
    if (const auto holder = lock.Holder()) return holder->pid;
  }
  return std::nullopt;
}

base::Result<std::shared_ptr<storage::DataLock>> KeepServersOff(const DataFiles& data) {
  if (const auto pid = ServerOn(data)) return base::Error{Running(*pid)};
  if (!data.has_log()) return std::shared_ptr<storage::DataLock>();
  const LockOf lock = LocksOf(data).back();
  // Held all the same: for another log.
  if (storage::DataLock::HolderOf(lock.path)) return std::shared_ptr<storage::DataLock>();
  return storage::DataLock::Take(lock.path, lock.place);
}

bool LooksLikeLog(std::string_view path, std::string_view beginning) {
  return path.ends_with(".aof") || beginning.starts_with('*') || beginning.starts_with('#');
}

base::Result<DataFiles> FindData(const std::string& path) {
  if (IsDirectory(path)) return FindInDirectory(path);
  DataFiles data;
  const auto file = base::MappedFile::Open(path);
  if (!file) return base::Error{file.error()};
  const std::string_view bytes = file.value().bytes();
  if (path.ends_with(kManifestEnding) || bytes.starts_with("file ")) {
    if (base::Status status = ReadManifest(path, &data); !status) {
      return base::Error{status.error()};
    }
  } else if (LooksLikeLog(path, bytes)) {
    data.log.push_back(path);
  } else {
    data.dump = path;
  }
  return data;
}

storage::RecoveryPlan PlanOf(const DataFiles& data) {
  FileSystem& files = FileSystem::Real();
  if (data.manifest.empty()) return storage::PlanFile(files, data.log[0]);
  // A manifest of another name does not tell the ring's.
  const std::string name(data.manifest.ends_with(kManifestEnding) ? LogName(data) : "");
  return storage::PlanLog(files, storage::DirectoryOf(data.manifest), name, data.parts);
}

void RemoveRing(const storage::RecoveryPlan& plan) {
  if (plan.log.empty()) return;
  FileSystem& files = FileSystem::Real();
  const std::string path = PathIn(plan.directory, storage::AofRingName(plan.log));
  if (!files.Exists(path)) return;
  (void)files.Remove(path);
  (void)files.SyncDirectory(plan.directory);
}

}  // namespace sava::cli
