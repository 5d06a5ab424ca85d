// Whose the files are: the locks of the dump and the log.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "server/persistence.h"

namespace sava::server {

using journal::DataLock;
using journal::PathIn;
using LockResult = base::Result<std::shared_ptr<DataLock>>;

// ---- locks ----

LockResult Persistence::TakeLock(const std::string& name, const engine::Settings& settings,
                                 const std::string& place) {
  LockResult taken = locks_.Take(PathIn(settings.dir, journal::DataLockName(name)), place);
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

LockResult Persistence::LockDump(const engine::Settings& settings) {
  LockResult taken = TakeLock(settings.dbfilename, settings, {});
  if (taken) {
    std::lock_guard lock(lock_mutex_);
    dump_lock_ = *taken;
  }
  return taken;
}

LockResult Persistence::LockLog(const engine::Settings& settings) {
  LockResult taken =
      TakeLock(settings.appendfilename, settings, PathIn(settings.dir, settings.appenddirname));
  if (taken) {
    std::lock_guard lock(lock_mutex_);
    log_lock_ = *taken;
  }
  return taken;
}

base::Status Persistence::LockFiles(const engine::Settings& settings) {
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

// The locks go with the files. What is being written keeps its own until it is done.
base::Status Persistence::FollowFiles(const engine::Settings& now) {
  if (now.dir != dir_ && loading()) {
    return base::Error{"The directory can't be changed while the data is being loaded"};
  }
  return LockFiles(now);
}

}  // namespace sava::server
