// FileSystem: the few things durability asks of a disk, as an interface, so that tests can record
// what was written and synced, or let calls fail. Paths are relative to the working directory, as
// the settings give them.
//
// Thread safety: a FileSystem may be used by several threads, a File by one at a time, except that
// Sync and WriteBehind may run beside Append and Truncate: they cover what those had done when they
// began.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"

namespace sava::storage {

// A file open for writing at its end.
class File {
 public:
  virtual ~File() = default;
  // Writes all of it, or says why not; some of it may have been written then (see size).
  virtual base::Status Append(std::string_view bytes) = 0;
  // The appended bytes are on the disk, as far as the system can say (fdatasync).
  virtual base::Status Sync() = 0;
  virtual base::Status Truncate(uint64_t size) = 0;
  // These bytes will not be read soon: the system may write them to the disk now and drop the pages
  // that are written. Only a hint; Sync reports errors.
  virtual void WriteBehind(uint64_t begin, uint64_t end) {
    (void)begin;
    (void)end;
  }
  // Bytes in the file.
  virtual uint64_t size() const = 0;
};

// A file of a fixed size all of which has its place on the disk: to write some of it changes
// nothing else.
class Blocks {
 public:
  static constexpr size_t kSize = 4096;
  virtual ~Blocks() = default;
  // The bytes are on the disk when it returns. After an error any part of them may be. REQUIRES:
  // offset and size are multiples of kSize, and within the file.
  virtual base::Status Write(uint64_t offset, std::string_view bytes) = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  enum class Mode : uint8_t {
    kNew,     // made; a file or link that has the name is removed first, never followed
    kAppend,  // made when missing
  };
  virtual base::Result<std::unique_ptr<File>> Open(const std::string& path, Mode mode) = 0;
  // A new file of zeros, on the disk under its name; an error also where the system cannot write
  // past its cache. What could not be made whole is removed.
  virtual base::Result<std::unique_ptr<Blocks>> MakeBlocks(const std::string& path,
                                                           uint64_t size) = 0;
  // Writes these bytes where they belong in a file that is there, whatever it has there, and syncs
  // it: also what seems to be the same, since what could not be written once may be in memory only.
  virtual base::Status WriteOver(const std::string& path, uint64_t offset,
                                 std::string_view bytes) = 0;
  virtual base::Status Rename(const std::string& from, const std::string& to) = 0;
  // A second name of the same file.
  virtual base::Status Link(const std::string& from, const std::string& to);
  virtual base::Status Remove(const std::string& path) = 0;
  virtual base::Status MakeDirectory(const std::string& path) = 0;  // there already: fine
  // Renames, new and removed files of the directory are on the disk. "": the working directory.
  virtual base::Status SyncDirectory(const std::string& path) = 0;

  virtual bool Exists(const std::string& path) = 0;
  virtual base::Result<uint64_t> Size(const std::string& path) = 0;
  // At most `most` bytes from `offset` on; regular files only.
  virtual base::Result<std::string> Read(const std::string& path, uint64_t offset,
                                         uint64_t most) = 0;
  base::Result<std::string> ReadAll(const std::string& path) { return Read(path, 0, UINT64_MAX); }
  // All of a regular file; it must not be shortened as long as the result is kept.
  virtual base::Result<base::MappedFile> Map(const std::string& path);
  // As the file would be if it ended with these bytes from `offset` on. REQUIRES: it has at least
  // `offset` bytes.
  virtual base::Result<base::MappedFile> MapWithEnd(const std::string& path, uint64_t offset,
                                                    std::string_view end);
  // Names in a directory, sorted; empty when there is none such.
  virtual std::vector<std::string> List(const std::string& path) = 0;

  static FileSystem& Real();
};

// Replaces a file's content so that a crash leaves the old one or the new one, whole: a temporary
// file, fsync, rename, fsync of the directory.
// After a failure it may be either.
base::Status WriteAtomically(FileSystem& files, const std::string& path, std::string_view bytes);

// "a/b" of "a" and "b"; just "b" when the directory is "".
std::string PathIn(std::string_view directory, std::string_view name);
// "a" of "a/b", "" of "b".
std::string DirectoryOf(std::string_view path);

}  // namespace sava::storage
