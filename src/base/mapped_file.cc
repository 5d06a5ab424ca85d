#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace sava::base {

Result<MappedFile> MappedFile::Open(const std::string& path) {
  const auto failure = [&path](int error) {
    return Error{fmt::format("{}: {}", path, strerror(error))};
  };
  // Opening a pipe must not wait for its writer.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return failure(errno);
  struct stat about {};
  if (fstat(fd, &about) != 0) {
    const int error = errno;
    close(fd);
    return failure(error);
  }
  if (!S_ISREG(about.st_mode)) {
    close(fd);
    return Error{fmt::format("{}: not a regular file", path)};
  }
  const auto size = static_cast<size_t>(about.st_size);
  void* data = nullptr;
  if (size != 0) {
    data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      const int error = errno;
      close(fd);
      return failure(error);
    }
    madvise(data, size, MADV_SEQUENTIAL);
  }
  close(fd);
  return MappedFile(static_cast<const char*>(data), size);
}

void MappedFile::Release(size_t from, size_t to) const {
  constexpr size_t kPage = 4096;
  from = from / kPage * kPage;
  to = to / kPage * kPage;
  if (to > from) madvise(const_cast<char*>(data_) + from, to - from, MADV_DONTNEED);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
}

}  // namespace sava::base
