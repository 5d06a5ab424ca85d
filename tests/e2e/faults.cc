// Preloaded into a server under test: lets calls on regular files fail as a bad disk would. The
// file named by the environment variable SAVA_FAULTS holds words: write (no space left), half (the
// first half of a write arrives, then no space), fsync, slow (a sync takes four seconds), open (for
// writing), rename. No file: all is well. Standard streams are spared, so that the log can tell.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

bool Wanted(const char* word) {
  const char* path = getenv("SAVA_FAULTS");
  if (path == nullptr) return false;
  const int saved = errno;
  char text[200] = {};
  const long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    syscall(SYS_read, fd, text, sizeof(text) - 1);
    syscall(SYS_close, fd);
  }
  errno = saved;
  return strstr(text, word) != nullptr;
}

bool OnDisk(int fd) {
  struct stat facts;
  return fd > 2 && fstat(fd, &facts) == 0 && (S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode));
}

template <typename Function>
Function Real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

long Fail(int error) {
  errno = error;
  return -1;
}

int Open(int folder, const char* path, int flags, mode_t mode) {
  if ((flags & O_ACCMODE) != O_RDONLY && Wanted("open")) return static_cast<int>(Fail(EACCES));
  return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}

// Runs `real` unless the disk is bad; `half` writes the first part.
template <typename Whole, typename Half>
ssize_t Write(int fd, const Whole& whole, const Half& half) {
  if (OnDisk(fd)) {
    if (Wanted("write")) return Fail(ENOSPC);
    if (Wanted("half")) {
      const ssize_t done = half();
      return done > 0 ? done : Fail(ENOSPC);
    }
  }
  return whole();
}

int Sync(int fd, int (*real)(int)) {
  if (OnDisk(fd)) {
    if (Wanted("fsync")) return static_cast<int>(Fail(EIO));
    if (Wanted("slow")) usleep(4'000'000);
  }
  return real(fd);
}

}  // namespace

extern "C" {

ssize_t write(int fd, const void* data, size_t size) {
  static const auto real = Real<ssize_t (*)(int, const void*, size_t)>("write");
  return Write(
      fd, [&] { return real(fd, data, size); },
      [&]() -> ssize_t { return size > 1 ? real(fd, data, size / 2) : 0; });
}

ssize_t pwrite64(int fd, const void* data, size_t size, off64_t at) {
  static const auto real = Real<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  // What is synced with each write fails, and waits, as a sync does.
  const int flags = fcntl(fd, F_GETFL);
  if (flags >= 0 && (flags & O_DSYNC) != 0 && Sync(fd, [](int) { return 0; }) != 0) return -1;
  return Write(
      fd, [&] { return real(fd, data, size, at); },
      [&]() -> ssize_t { return size > 1 ? real(fd, data, size / 2, at) : 0; });
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  return pwrite64(fd, data, size, at);
}

ssize_t writev(int fd, const iovec* parts, int count) {
  static const auto real = Real<ssize_t (*)(int, const iovec*, int)>("writev");
  return Write(
      fd, [&] { return real(fd, parts, count); },
      [&]() -> ssize_t { return count > 1 ? real(fd, parts, count / 2) : 0; });
}

int fsync(int fd) {
  static const auto real = Real<int (*)(int)>("fsync");
  return Sync(fd, real);
}

int fdatasync(int fd) {
  static const auto real = Real<int (*)(int)>("fdatasync");
  return Sync(fd, real);
}

int rename(const char* from, const char* to) {
  static const auto real = Real<int (*)(const char*, const char*)>("rename");
  return Wanted("rename") ? static_cast<int>(Fail(EIO)) : real(from, to);
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return Open(AT_FDCWD, path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return Open(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

}  // extern "C"
