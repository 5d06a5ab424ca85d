// The files' owner: the locks of the dump and the log, and the id of the data set.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/if_memory.h"
#include "persistence/persistence.h"
#include "storage/kept_snapshots.h"
#include "storage/recovery_plan.h"

namespace sava::persistence {

using storage::DataLock;
using storage::PathIn;
using LockResult = base::Result<std::shared_ptr<DataLock>>;

// ---- locks ----

LockResult Persistence::TakeLock(const std::string& name, const config::Settings& settings,
                                 const std::string& place) {
  LockResult taken = locks_.Take(PathIn(settings.dir, storage::DataLockName(name)), place);
  if (!taken) {
    return base::Error{fmt::format(
        "Can't use the data set in {}: {}. Give this server a directory of its own with --dir, or "
        "files of its own with --dbfilename and --appendfilename",
        settings.dir.empty() ? "." : settings.dir, taken.error())};
  }
  if (!(*taken)->trouble().empty()) {
    spdlog::warn("{} can't be locked against other servers: {}", PathIn(settings.dir, name),
                 (*taken)->trouble());
  }
  return taken;
}

LockResult Persistence::LockDump(const config::Settings& settings) {
  LockResult taken = TakeLock(settings.dbfilename, settings, {});
  if (taken) {
    std::lock_guard lock(lock_mutex_);
    dump_lock_ = *taken;
  }
  return taken;
}

LockResult Persistence::LockLog(const config::Settings& settings) {
  LockResult taken =
      TakeLock(settings.appendfilename, settings, PathIn(settings.dir, settings.appenddirname));
  if (taken) {
    std::lock_guard lock(lock_mutex_);
    log_lock_ = *taken;
  }
  return taken;
}

base::Status Persistence::LockFiles(const config::Settings& settings) {
  bool dump = !settings.save_rules.empty();
  bool log = settings.appendonly;
  std::shared_ptr<DataLock> dump_before;
  {
    std::lock_guard lock(lock_mutex_);
    dump_before = dump_lock_;
    dump = dump || dump_lock_ != nullptr;
    log = log || log_lock_ != nullptr;
  }
  if (dump) {
    if (const LockResult taken = LockDump(settings); !taken) return base::Error{taken.error()};
  }
  if (log) {
    if (const LockResult taken = LockLog(settings); !taken) {
      std::lock_guard lock(lock_mutex_);
      dump_lock_ = dump_before;
      return base::Error{taken.error()};
    }
  }
  return {};
}

void Persistence::UnlockFiles() {
  std::lock_guard lock(lock_mutex_);
  dump_lock_.reset();
  log_lock_.reset();
}

// The locks go with the files. A file that is being written keeps its lock until it is done.
base::Status Persistence::FollowFiles(const config::Settings& now) {
  if (now.dir != dir_ && loading()) {
    return base::Error{"The directory can't be changed while the data is being loaded"};
  }
  if (now.dir != dir_ && now.appendonly) {
    storage::AofManifest there;
    const std::string directory = PathIn(now.dir, now.appenddirname);
    const auto found = storage::AofLog::FindManifest(files_, directory, now.appendfilename, &there);
    if (!found) return base::Error{found.error()};
    if (!there.files.empty() && there.data_set != data_set_) {
      const LockResult taken = TakeLock(now.appendfilename, now, directory);
      return base::Error{taken ? directory + " holds the log of another data set" : taken.error()};
    }
    if (base::Status made = files_.MakeDirectory(directory); !made) return made;
    if (::access((directory + "/.").c_str(), W_OK) != 0) {
      return base::Error{fmt::format("{}: {}", directory, strerror(errno))};
    }
  }
  return LockFiles(now);
}

// ---- the id ----

void Persistence::KeepDump(const config::Settings& settings, const storage::RecoveryPlan& plan) {
  const std::string path = PathIn(settings.dir, settings.dbfilename);
  const std::string& log = plan.manifest.data_set;
  foreign_dump_ = path;
  spdlog::warn(
      "{} {}, and lies beside the log of {}: the log is loaded, not the dump. The next save keeps "
      "the dump as {}.DATE",
      path,
      plan.dump_data_set.empty() ? "does not say of which data set it is"
                                 : "is of data set " + plan.dump_data_set,
      log.empty() ? "one that has no id yet" : "data set " + log, settings.dbfilename);
}

std::string Persistence::AsideName(const std::string& path) const {
  if (path.empty() || path != foreign_dump_ || !files_.Exists(path)) return {};
  const std::time_t now = NowSeconds();
  std::tm day{};
  gmtime_r(&now, &day);
  const std::string name =
      fmt::format("{}.{:04}-{:02}-{:02}", path, day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
  std::string free = name;
  for (int number = 2; files_.Exists(free); ++number) free = fmt::format("{}.{}", name, number);
  return free;
}

void Persistence::KeepDated(const config::Settings& settings) {
  if (settings.save_keep == 0) return;
  base::Result<std::string> kept = base::Error{"out of memory"};
  base::IfMemory([&] {
    kept = storage::KeepSnapshot(files_, settings.dir, settings.dbfilename,
                                 engine_.clock().WallMillis(), settings.save_keep);
  });
  if (kept) {
    spdlog::info("DB kept as {}", *kept);
  } else {
    spdlog::warn("The snapshot can't be kept under a dated name: {}", kept.error());
  }
}

}  // namespace sava::persistence
