#include "storage/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sava::storage {

namespace {

base::Error Failure(std::string_view what, const std::string& path, int error) {
  return base::Error{fmt::format("{} {}: {}", what, path, strerror(error))};
}

template <typename Call>
auto Again(Call call) {
  while (true) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

class RealFile final : public File {
 public:
  RealFile(int fd, std::string path, uint64_t size)
      : fd_(fd), path_(std::move(path)), size_(size) {}
  RealFile(const RealFile&) = delete;
  RealFile& operator=(const RealFile&) = delete;
  ~RealFile() override { close(fd_); }

  base::Status Append(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = Again([&] { return write(fd_, bytes.data(), bytes.size()); });
      if (n < 0) return Failure("writing", path_, errno);
      if (n == 0) return Failure("writing", path_, ENOSPC);
      size_.fetch_add(static_cast<uint64_t>(n), std::memory_order_relaxed);
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return {};
  }

  base::Status Sync() override {
    if (Again([&] { return fdatasync(fd_); }) != 0) return Failure("syncing", path_, errno);
    return {};
  }

  base::Status Truncate(uint64_t size) override {
    if (Again([&] { return ftruncate(fd_, static_cast<off_t>(size)); }) != 0) {
      return Failure("truncating", path_, errno);
    }
    size_.store(size, std::memory_order_relaxed);
    return {};
  }

  // Pages that are not written yet begin to be, pages that are go back to the system.
  void WriteBehind(uint64_t begin, uint64_t end) override {
    posix_fadvise(fd_, static_cast<off_t>(begin), static_cast<off_t>(end - begin),
                  POSIX_FADV_DONTNEED);
  }

  uint64_t size() const override { return size_.load(std::memory_order_relaxed); }

 private:
  const int fd_;
  const std::string path_;
  std::atomic<uint64_t> size_;
};

class RealBlocks final : public Blocks {
 public:
  RealBlocks(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  RealBlocks(const RealBlocks&) = delete;
  RealBlocks& operator=(const RealBlocks&) = delete;
  ~RealBlocks() override { close(fd_); }

  // Past the cache memory has to be aligned, too.
  base::Status Write(uint64_t offset, std::string_view bytes) override {
    if (room_ < bytes.size()) {
      aligned_.reset(static_cast<char*>(std::aligned_alloc(kSize, bytes.size())));
      room_ = aligned_ == nullptr ? 0 : bytes.size();
      if (room_ == 0) return Failure("writing", path_, ENOMEM);
    }
    memcpy(aligned_.get(), bytes.data(), bytes.size());
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t n = Again([&] {
        return pwrite(fd_, aligned_.get() + done, bytes.size() - done,
                      static_cast<off_t>(offset + done));
      });
      if (n < 0) return Failure("writing", path_, errno);
      if (n == 0 || static_cast<size_t>(n) % kSize != 0) return Failure("writing", path_, EIO);
      done += static_cast<size_t>(n);
    }
    return {};
  }

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  const int fd_;
  const std::string path_;
  std::unique_ptr<char, Free> aligned_;
  size_t room_ = 0;
};

class RealFileSystem final : public FileSystem {
 public:
  base::Result<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override {
    // Another user of the directory could have put a link there, to a file that is not ours.
    if (mode == Mode::kNew) unlink(path.c_str());
    const int flags =
        O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (mode == Mode::kNew ? O_EXCL | O_NOFOLLOW : 0);
    const int fd = Again([&] { return open(path.c_str(), flags, 0644); });
    if (fd < 0) return Failure("opening", path, errno);
    struct stat about {};
    if (fstat(fd, &about) != 0) {
      const int error = errno;
      close(fd);
      return Failure("opening", path, error);
    }
    return std::unique_ptr<File>(
        std::make_unique<RealFile>(fd, path, static_cast<uint64_t>(about.st_size)));
  }

  base::Result<std::unique_ptr<Blocks>> MakeBlocks(const std::string& path,
                                                   uint64_t size) override {
    const std::string directory = DirectoryOf(path);
    struct statvfs about {};
    // The last of the space is for what others have to write.
    if (statvfs(directory.empty() ? "." : directory.c_str(), &about) != 0 ||
        about.f_bavail * about.f_frsize < 8 * size) {
      return Failure("making", path, ENOSPC);
    }
    auto made = [&]() -> base::Result<std::unique_ptr<Blocks>> {
      auto file = Open(path, Mode::kNew);
      if (!file) return base::Error{file.error()};
      const std::string zeros(static_cast<size_t>(std::min<uint64_t>(size, 1 << 20)), '\0');
      for (uint64_t left = size; left > 0;) {
        const uint64_t step = std::min<uint64_t>(left, zeros.size());
        base::Status status = (*file)->Append(std::string_view(zeros).substr(0, step));
        if (!status) return base::Error{status.error()};
        left -= step;
      }
      base::Status status = (*file)->Sync();
      if (status) status = SyncDirectory(directory);
      if (!status) return base::Error{status.error()};
      const int flags = O_WRONLY | O_DIRECT | O_DSYNC | O_CLOEXEC;
      const int fd = Again([&] { return open(path.c_str(), flags); });
      if (fd < 0) return Failure("opening", path, errno);
      return std::unique_ptr<Blocks>(std::make_unique<RealBlocks>(fd, path));
    }();
    if (!made) (void)Remove(path);
    return made;
  }

  base::Status WriteOver(const std::string& path, uint64_t offset,
                         std::string_view bytes) override {
    const int fd = Again([&] { return open(path.c_str(), O_WRONLY | O_CLOEXEC); });
    if (fd < 0) return Failure("opening", path, errno);
    base::Status status = [&]() -> base::Status {
      while (!bytes.empty()) {
        const ssize_t n = Again(
            [&] { return pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
        if (n < 0) return Failure("writing", path, errno);
        if (n == 0) return Failure("writing", path, ENOSPC);
        offset += static_cast<uint64_t>(n);
        bytes.remove_prefix(static_cast<size_t>(n));
      }
      if (Again([&] { return fdatasync(fd); }) != 0) return Failure("syncing", path, errno);
      return {};
    }();
    close(fd);
    return status;
  }

  base::Status Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) != 0) return Failure("renaming", from, errno);
    return {};
  }

  base::Status Link(const std::string& from, const std::string& to) override {
    if (link(from.c_str(), to.c_str()) != 0) return Failure("linking", from, errno);
    return {};
  }

  base::Status Remove(const std::string& path) override {
    if (unlink(path.c_str()) != 0) return Failure("removing", path, errno);
    return {};
  }

  base::Status MakeDirectory(const std::string& path) override {
    if (mkdir(path.c_str(), 0755) == 0) return {};
    const int error = errno;
    struct stat about {};
    if (error == EEXIST && stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode)) return {};
    return Failure("making directory", path, error);
  }

  base::Status SyncDirectory(const std::string& path) override {
    const std::string name = path.empty() ? "." : path;
    const int fd = Again([&] { return open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (fd < 0) return Failure("opening directory", name, errno);
    const int result = Again([&] { return fsync(fd); });
    const int error = errno;
    close(fd);
    // Some file systems cannot sync a directory, and say so.
    if (result != 0 && error != EINVAL) return Failure("syncing directory", name, error);
    return {};
  }

  bool Exists(const std::string& path) override {
    struct stat about {};
    return stat(path.c_str(), &about) == 0;
  }

  base::Result<uint64_t> Size(const std::string& path) override {
    struct stat about {};
    if (stat(path.c_str(), &about) != 0) return Failure("looking at", path, errno);
    return static_cast<uint64_t>(about.st_size);
  }

  base::Result<std::string> Read(const std::string& path, uint64_t offset, uint64_t most) override {
    // Opening a pipe must not wait for its writer, and a device may have no end.
    const int fd = Again([&] { return open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); });
    if (fd < 0) return Failure("opening", path, errno);
    struct stat about {};
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
      close(fd);
      return base::Error{fmt::format("{}: not a regular file", path)};
    }
    std::string bytes;
    char block[64 * 1024];
    while (true) {
      const auto wanted =
          static_cast<size_t>(std::min<uint64_t>(sizeof(block), most - bytes.size()));
      const ssize_t n = Again(
          [&] { return pread(fd, block, wanted, static_cast<off_t>(offset + bytes.size())); });
      if (n <= 0) {
        const int error = errno;
        close(fd);
        if (n < 0) return Failure("reading", path, error);
        return bytes;
      }
      bytes.append(block, static_cast<size_t>(n));
    }
  }

  base::Result<base::MappedFile> Map(const std::string& path) override {
    return base::MappedFile::Open(path);
  }

  base::Result<base::MappedFile> MapWithEnd(const std::string& path, uint64_t offset,
                                            std::string_view end) override {
    return base::MappedFile::WithEnd(path, offset, end);
  }

  std::vector<std::string> List(const std::string& path) override {
    std::vector<std::string> names;
    DIR* const directory = opendir(path.empty() ? "." : path.c_str());
    if (directory == nullptr) return names;
    while (const dirent* entry = readdir(directory)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    closedir(directory);
    std::sort(names.begin(), names.end());
    return names;
  }
};

}  // namespace

base::Status FileSystem::Link(const std::string& from, const std::string& to) {
  return base::Error{"linking " + from + " as " + to + ": not supported"};
}

base::Result<base::MappedFile> FileSystem::Map(const std::string& path) {
  const auto bytes = ReadAll(path);
  if (!bytes) return base::Error{bytes.error()};
  return base::MappedFile::Of(bytes.value());
}

base::Result<base::MappedFile> FileSystem::MapWithEnd(const std::string& path, uint64_t offset,
                                                      std::string_view end) {
  auto bytes = Read(path, 0, offset);
  if (!bytes) return base::Error{bytes.error()};
  return base::MappedFile::Of(*bytes += end);
}

FileSystem& FileSystem::Real() {
  static RealFileSystem files;
  return files;
}

base::Status WriteAtomically(FileSystem& files, const std::string& path, std::string_view bytes) {
  const std::string directory = DirectoryOf(path);
  const std::string temporary =
      PathIn(directory, "temp-" + path.substr(directory.empty() ? 0 : directory.size() + 1));
  base::Status done = [&]() -> base::Status {
    auto file = files.Open(temporary, FileSystem::Mode::kNew);
    if (!file) return base::Error{file.error()};
    if (base::Status status = (*file)->Append(bytes); !status) return status;
    if (base::Status status = (*file)->Sync(); !status) return status;
    return files.Rename(temporary, path);
  }();
  if (!done) {
    (void)files.Remove(temporary);
    return done;
  }
  return files.SyncDirectory(directory);
}

std::string PathIn(std::string_view directory, std::string_view name) {
  if (directory.empty()) return std::string(name);
  return fmt::format("{}{}{}", directory, directory.ends_with('/') ? "" : "/", name);
}

std::string DirectoryOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return "";
  return std::string(path.substr(0, std::max<size_t>(slash, 1)));
}

}  // namespace sava::storage
