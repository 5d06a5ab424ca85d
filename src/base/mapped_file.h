// MappedFile: a file's bytes in memory, read only, for as long as the object lives. The file must
// not be shortened meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sava::base {

class MappedFile {
 public:
  // Errors name the path. Only regular files can be opened.
  static Result<MappedFile> Open(const std::string& path);
  // As the file would be if it ended with these bytes from `offset` on; it is not changed.
  // REQUIRES: it has at least `offset` bytes.
  static Result<MappedFile> WithEnd(const std::string& path, uint64_t offset, std::string_view end);
  // These bytes, as if they were a file.
  static Result<MappedFile> Of(std::string_view bytes);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::string_view bytes() const { return {data_, size_}; }
  // Gives back the memory of these bytes (whole pages of it); they may be read again all the same.
  void Release(size_t from, size_t to) const;

 private:
  MappedFile(const char* data, size_t size, size_t of_file = SIZE_MAX)
      : data_(data), size_(size), of_file_(of_file) {}

  const char* data_;  // nullptr for an empty file
  size_t size_;
  size_t of_file_;  // bytes of whole pages that are as in the file
};

}  // namespace sava::base
