#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace sava::base {

namespace {

constexpr size_t kPage = 4096;

Error Failure(const std::string& path, int error) {
  return Error{fmt::format("{}: {}", path, strerror(error))};
}

// A regular file; its descriptor is closed at the end.
class Descriptor {
 public:
  // Opening a pipe must not wait for its writer.
  explicit Descriptor(const std::string& path)
      : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0 || fstat(fd_, &about_) != 0) {
      status_ = Failure(path, errno);
    } else if (!S_ISREG(about_.st_mode)) {
      status_ = Error{fmt::format("{}: not a regular file", path)};
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  const Status& status() const { return status_; }
  int fd() const { return fd_; }
  size_t size() const { return static_cast<size_t>(about_.st_size); }

 private:
  const int fd_;
  struct stat about_ {};
  Status status_;
};

}  // namespace

Result<MappedFile> MappedFile::Open(const std::string& path) {
  const Descriptor file(path);
  if (!file.status()) return Error{file.status().error()};
  void* data = nullptr;
  if (file.size() != 0) {
    data = mmap(nullptr, file.size(), PROT_READ, MAP_PRIVATE, file.fd(), 0);
    if (data == MAP_FAILED) return Failure(path, errno);
    madvise(data, file.size(), MADV_SEQUENTIAL);
  }
  return MappedFile(static_cast<const char*>(data), file.size());
}

// Memory for all of it, over which the pages of the file are laid that it has whole before the end.
Result<MappedFile> MappedFile::WithEnd(const std::string& path, uint64_t offset,
                                       std::string_view end) {
  const Descriptor file(path);
  if (!file.status()) return Error{file.status().error()};
  if (file.size() < offset) return Failure(path, EINVAL);
  const size_t size = offset + end.size();
  if (size == 0) return MappedFile(nullptr, 0);
  const size_t whole = offset / kPage * kPage;
  void* const memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return Failure(path, errno);
  char* const data = static_cast<char*>(memory);
  MappedFile mapped(data, size, whole);
  if (whole > 0 &&
      mmap(data, whole, PROT_READ, MAP_PRIVATE | MAP_FIXED, file.fd(), 0) == MAP_FAILED) {
    return Failure(path, errno);
  }
  for (size_t at = whole; at < offset;) {
    const ssize_t n = pread(file.fd(), data + at, offset - at, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Failure(path, n < 0 ? errno : EIO);
    at += static_cast<size_t>(n);
  }
  if (!end.empty()) memcpy(data + offset, end.data(), end.size());
  return mapped;
}

Result<MappedFile> MappedFile::Of(std::string_view bytes) {
  if (bytes.empty()) return MappedFile(nullptr, 0);
  void* const memory =
      mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return Failure("memory for a file", errno);
  memcpy(memory, bytes.data(), bytes.size());
  return MappedFile(static_cast<const char*>(memory), bytes.size(), 0);
}

void MappedFile::Release(size_t from, size_t to) const {
  from = from / kPage * kPage;
  to = std::min(to, of_file_) / kPage * kPage;
  if (to > from) madvise(const_cast<char*>(data_) + from, to - from, MADV_DONTNEED);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      of_file_(other.of_file_) {}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
}

}  // namespace sava::base
