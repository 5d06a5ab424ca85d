// Earlier snapshots, kept beside the current one under dated names (save-keep): a name of
// yyyyMMddHHmmssffff-FILE, in UTC, where ffff are ten-thousandths of a second, so that names are in
// the order of time. A kept snapshot is another name of the same file as long as it is the current
// one: the next save replaces the name dump.rdb, never the file.
//
// Thread safety: of the keeper's thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "storage/file_system.h"

namespace sava::storage {

// The name that FILE gets, of a snapshot that was saved at this time (Unix ms).
std::string KeptSnapshotName(std::string_view file, int64_t at_ms);

// Gives the file in the directory its dated name too, which is returned, and removes the oldest
// dated ones but for `keep`. REQUIRES: keep > 0.
base::Result<std::string> KeepSnapshot(FileSystem& files, const std::string& directory,
                                       const std::string& file, int64_t at_ms, int64_t keep);

}  // namespace sava::storage
