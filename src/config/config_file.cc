// See config_file.h.

#include "config/config_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace sava::config {

namespace {

base::Error SystemError() { return base::Error{std::strerror(errno)}; }

bool WriteAll(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// Makes the rename itself survive a crash; a file system that cannot do so is no reason to fail.
void SyncDirectoryOf(const std::filesystem::path& path) {
  const int directory = open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  static_cast<void>(fsync(directory));
  close(directory);
}

}  // namespace

base::Result<std::string> ReadWholeFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return SystemError();
  std::string text;
  char buffer[16384];
  while (true) {
    const ssize_t got = read(file, buffer, sizeof buffer);
    if (got > 0) {
      text.append(buffer, static_cast<size_t>(got));
    } else if (got == 0) {
      close(file);
      return text;
    } else if (errno != EINTR) {
      const base::Error error = SystemError();
      close(file);
      return error;
    }
  }
}

base::Status ReplaceFile(const std::string& path, std::string_view text) {
  std::error_code failure;
  std::filesystem::path target = std::filesystem::canonical(path, failure);
  if (failure) target = std::filesystem::absolute(path, failure);

  struct stat old = {};
  const bool existed = stat(target.c_str(), &old) == 0;
  std::string temporary = target.string() + ".XXXXXX";
  const int file = mkostemp(temporary.data(), O_CLOEXEC);
  if (file < 0) return SystemError();

  bool good = WriteAll(file, text);
  good = good && fchmod(file, existed ? old.st_mode & 07777 : 0644) == 0;
  // Only root may give files away: other users keep the file as their own.
  if (good && existed && fchown(file, old.st_uid, old.st_gid) != 0) errno = 0;
  good = good && fsync(file) == 0;
  good = good && rename(temporary.c_str(), target.c_str()) == 0;
  if (!good) {
    const base::Error error = SystemError();
    close(file);
    unlink(temporary.c_str());
    return error;
  }
  close(file);
  SyncDirectoryOf(target);
  return {};
}

}  // namespace sava::config
