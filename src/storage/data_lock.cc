#include "storage/data_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/text.h"

namespace sava::storage {

namespace {

// A process that only looks holds a lock for a moment; one that has just taken it may not have
// written its id yet.
constexpr int kTries = 20;
constexpr auto kPause = std::chrono::milliseconds(10);

int Lock(int fd, int how) {
  while (flock(fd, how | LOCK_NB) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

// Whether the path still names what was opened.
bool Names(const std::string& path, int fd) {
  struct stat named {};
  struct stat opened {};
  return lstat(path.c_str(), &named) == 0 && fstat(fd, &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

bool IsRegular(int fd) {
  struct stat about {};
  return fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
}

DataLock::Holder ReadHolder(int fd) {
  char bytes[4200];
  const ssize_t size = pread(fd, bytes, sizeof bytes, 0);
  std::string_view text(bytes, size > 0 ? static_cast<size_t>(size) : 0);
  DataLock::Holder holder;
  const size_t end = text.find('\n');
  if (end == std::string_view::npos || !base::ParseInt(text.substr(0, end), &holder.pid)) return {};
  text.remove_prefix(end + 1);
  holder.place = text.substr(0, text.find('\n'));
  return holder;
}

// A file that is there is opened as well as one that is not; -1 with errno. For reading: a disk on
// which a file is open for writing cannot be made read-only.
int OpenLockFile(const std::string& path) {
  const int flags = O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  return open(path.c_str(), flags, 0644);
}

// What cannot be written is only missed in the message to the next one.
void WriteHolder(const std::string& path, const std::string& place) {
  const int fd = open(path.c_str(), O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return;
  const std::string text = fmt::format("{}\n{}\n", getpid(), place);
  if (write(fd, text.data(), text.size()) < 0) {
  }
  close(fd);
}

}  // namespace

base::Result<std::shared_ptr<DataLock>> DataLock::Take(const std::string& path,
                                                       const std::string& place) {
  const auto without = [&path](int error) {
    return std::shared_ptr<DataLock>(new DataLock(path, -1, strerror(error)));
  };
  Holder holder;
  for (int tries = 0; tries < kTries; ++tries) {
    if (tries > 0) std::this_thread::sleep_for(kPause);
    const int fd = OpenLockFile(path);
    const bool strange = fd < 0 ? errno == ELOOP || errno == EISDIR : !IsRegular(fd);
    if (fd < 0 && !strange) return without(errno);
    if (strange) {
      if (fd >= 0) close(fd);
      return base::Error{fmt::format("{} is not a regular file", path)};
    }
    const int error = Lock(fd, LOCK_EX);
    if (error == 0 && Names(path, fd)) {
      WriteHolder(path, place);
      return std::shared_ptr<DataLock>(new DataLock(path, fd, {}));
    }
    if (error == EWOULDBLOCK) holder = ReadHolder(fd);
    close(fd);
    if (error != 0 && error != EWOULDBLOCK) return without(error);
  }
  return base::Error{fmt::format(
      "another {} holds {}",
      holder.pid == 0 ? std::string("process") : fmt::format("server (process {})", holder.pid),
      path)};
}

std::optional<DataLock::Holder> DataLock::HolderOf(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  std::optional<Holder> holder;
  if (IsRegular(fd) && Lock(fd, LOCK_SH) == EWOULDBLOCK) holder = ReadHolder(fd);
  close(fd);
  return holder;
}

DataLock::~DataLock() {
  if (fd_ < 0) return;
  if (Names(path_, fd_)) unlink(path_.c_str());
  close(fd_);
}

base::Result<std::shared_ptr<DataLock>> DataLocks::Take(const std::string& path,
                                                        const std::string& place) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<DataLock>& held = held_[path];
  if (std::shared_ptr<DataLock> ours = held.lock(); ours != nullptr && ours->trouble().empty()) {
    return ours;
  }
  auto taken = DataLock::Take(path, place);
  if (taken) held = *taken;
  return taken;
}

std::string DataLockName(std::string_view name) { return fmt::format("{}.lock", name); }

}  // namespace sava::storage
