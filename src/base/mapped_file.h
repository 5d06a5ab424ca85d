// MappedFile: a file's bytes in memory, read only, for as long as the object lives. The file must
// not be shortened meanwhile.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sava::base {

class MappedFile {
 public:
  // Errors name the path. Only regular files can be opened.
  static Result<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::string_view bytes() const { return {data_, size_}; }
  // Gives back the memory of these bytes (whole pages of it); they may be read again all the same.
  void Release(size_t from, size_t to) const;

 private:
  MappedFile(const char* data, size_t size) : data_(data), size_(size) {}

  const char* data_;  // nullptr for an empty file
  size_t size_;
};

}  // namespace sava::base
