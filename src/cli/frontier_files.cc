#include "cli/frontier_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace sava::cli {

std::string NameBeside(const std::string& path, std::string_view suffix) {
  std::filesystem::path target(path);
  std::string name = target.stem().string();
  name.append(suffix);
  target.replace_filename(name);
  return target.string();
}

OutFile::~OutFile() {
  if (fd_ > STDERR_FILENO) close(fd_);
}

base::Status OutFile::Open(const std::string& path) {
  path_ = path;
  if (path == "-") {
    path_ = "standard output";
    fd_ = STDOUT_FILENO;
  } else {
    fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  }
  if (fd_ < 0) return base::Error{fmt::format("{}: {}", path_, std::strerror(errno))};
  buffer_.reserve(kEnough * 2);
  return {};
}

void OutFile::Flush() {
  std::string_view left = buffer_;
  while (!left.empty() && error_ == 0) {
    const ssize_t n = write(fd_, left.data(), left.size());
    if (n >= 0) {
      left.remove_prefix(static_cast<size_t>(n));
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  buffer_.clear();
}

base::Status OutFile::Close() {
  Flush();
  if (fd_ > STDERR_FILENO && close(fd_) != 0 && error_ == 0) error_ = errno;
  fd_ = -1;
  if (error_ != 0) return base::Error{fmt::format("{}: {}", path_, std::strerror(error_))};
  return {};
}

}  // namespace sava::cli
