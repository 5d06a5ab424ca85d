// The files beside a command file: where they lie, and a writer that gathers small pieces into
// large writes. Not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sava::cli {

// "dir/x.txt" and "-out.txt" give "dir/x-out.txt".
std::string NameBeside(const std::string& path, std::string_view suffix);

class OutFile {
 public:
  OutFile() = default;
  ~OutFile();
  OutFile(const OutFile&) = delete;
  OutFile& operator=(const OutFile&) = delete;

  // Replaces the file. "-" is standard output.
  base::Status Open(const std::string& path);

  // Text may also be appended to the buffer itself; Grown() then writes it out when there is
  // enough.
  std::string* buffer() { return &buffer_; }
  void Grown() {
    if (buffer_.size() >= kEnough) Flush();
  }
  void Append(std::string_view text) {
    buffer_.append(text);
    Grown();
  }

  // Writes what is left. The first error of all, if there was one.
  base::Status Close();

 private:
  static constexpr size_t kEnough = 1 << 18;

  void Flush();

  std::string path_;
  std::string buffer_;
  int fd_ = -1;
  int error_ = 0;
};

}  // namespace sava::cli
