#include "storage/kept_snapshots.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <vector>

namespace sava::storage {

namespace {

constexpr size_t kDateDigits = 18;

bool IsKept(std::string_view name, std::string_view file) {
  if (name.size() != kDateDigits + 1 + file.size() || name[kDateDigits] != '-') return false;
  const std::string_view date = name.substr(0, kDateDigits);
  return name.ends_with(file) &&
         std::all_of(date.begin(), date.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string KeptSnapshotName(std::string_view file, int64_t at_ms) {
  const auto seconds = static_cast<std::time_t>(at_ms / 1000);
  std::tm at{};
  gmtime_r(&seconds, &at);
  return fmt::format("{:04}{:02}{:02}{:02}{:02}{:02}{:03}0-{}", at.tm_year + 1900, at.tm_mon + 1,
                     at.tm_mday, at.tm_hour, at.tm_min, at.tm_sec, at_ms % 1000, file);
}

base::Result<std::string> KeepSnapshot(FileSystem& files, const std::string& directory,
                                       const std::string& file, int64_t at_ms, int64_t keep) {
  while (files.Exists(PathIn(directory, KeptSnapshotName(file, at_ms)))) ++at_ms;
  const std::string name = KeptSnapshotName(file, at_ms);
  if (const base::Status linked = files.Link(PathIn(directory, file), PathIn(directory, name));
      !linked) {
    return base::Error{linked.error()};
  }
  std::vector<std::string> kept = files.List(directory);
  std::erase_if(kept, [&file](const std::string& one) { return !IsKept(one, file); });
  const auto most = static_cast<size_t>(keep);
  for (size_t i = 0; kept.size() > most && i < kept.size() - most; ++i) {
    const base::Status removed = files.Remove(PathIn(directory, kept[i]));
    if (!removed) return base::Error{removed.error()};
  }
  if (const base::Status synced = files.SyncDirectory(directory); !synced) {
    return base::Error{synced.error()};
  }
  return name;
}

}  // namespace sava::storage
