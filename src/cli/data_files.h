// FindData: which files a path stands for, when somebody names a data set: an RDB file, a file of
// an append-only log, a manifest, an append-only directory, or a server's data directory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "storage/aof_manifest.h"
#include "storage/data_lock.h"
#include "storage/recovery_plan.h"

namespace sava::cli {

struct DataFiles {
  std::string dump;              // an RDB file; empty: none
  std::string manifest;          // of the log; empty: the log is a single file, or there is none
  std::vector<std::string> log;  // its files in the order in which they are loaded
  bool directory = false;        // the path is one
  storage::AofManifest parts;    // what the manifest says

  bool has_log() const { return !manifest.empty() || !log.empty(); }
};

// A server loads the log when there is one, else the dump. Errors name the path.
base::Result<DataFiles> FindData(const std::string& path);

// What a start makes of the log. REQUIRES: has_log().
storage::RecoveryPlan PlanOf(const DataFiles& data);
// After RestoreLog.
void RemoveRing(const storage::RecoveryPlan& plan);

// The process that holds the lock of one of the files, i.e. a server that writes them; 0: one that
// does not tell its number.
std::optional<int64_t> ServerOn(const DataFiles& data);
// Keeps servers away from the log as long as the result is kept; an error when one has it.
base::Result<std::shared_ptr<storage::DataLock>> KeepServersOff(const DataFiles& data);
// "a server (process 12) is running on these files".
std::string Running(int64_t pid);

// Whether a file that begins so and has this name holds commands, or an RDB file and commands.
bool LooksLikeLog(std::string_view path, std::string_view beginning);

}  // namespace sava::cli
