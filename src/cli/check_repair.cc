#include "cli/check_repair.h"

#include <fmt/format.h>

#include <filesystem>

#include "storage/file_system.h"

namespace sava::cli {

namespace {

using storage::FileSystem;

// A copy under a name that was free, on the disk.
base::Result<std::string> Copy(const std::string& path) {
  FileSystem& files = FileSystem::Real();
  std::string copy = path + ".before-repair";
  for (int number = 2; files.Exists(copy); ++number) {
    copy = fmt::format("{}.before-repair.{}", path, number);
  }
  std::error_code error;
  // An existing file is not overwritten.
  std::filesystem::copy_file(path, copy, error);
  if (error) return base::Error{fmt::format("copying {} to {}: {}", path, copy, error.message())};
  auto file = files.Open(copy, FileSystem::Mode::kAppend);
  base::Status status = file ? (*file)->Sync() : base::Error{file.error()};
  if (status) status = files.SyncDirectory(storage::DirectoryOf(path));
  if (!status) return base::Error{status.error()};
  return copy;
}

}  // namespace

base::Result<std::string> RepairTail(const std::string& path, uint64_t size, uint64_t good) {
  auto copy = Copy(path);
  if (!copy) return copy;
  auto file = FileSystem::Real().Open(path, FileSystem::Mode::kAppend);
  if (!file) return base::Error{file.error()};
  if ((*file)->size() != size) {
    return base::Error{
        fmt::format("{}: it has changed meanwhile; is a server running on it?", path)};
  }
  base::Status status = (*file)->Truncate(good);
  if (status) status = (*file)->Sync();
  if (!status) return base::Error{status.error()};
  return copy;
}

}  // namespace sava::cli
