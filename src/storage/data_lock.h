// DataLock: which process writes the files of a data set. A process that writes FILE holds flock on
// "FILE.lock" beside it; the lock of a log is in the data directory, not in the log's own, so
// that it stays when that one is removed. flock, because locks of fcntl are gone as soon as any
// descriptor of the file is closed.
//
// The file names its holder: "PID\nPLACE\n", PLACE being the directory of a log. It is removed
// with the lock; one that a killed process left behind stops no one.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"

namespace sava::storage {

class DataLock {
 public:
  struct Holder {
    int64_t pid = 0;  // 0: it does not say
    std::string place;
  };

  // An error when another process holds it, which says so and names it. Where the lock cannot be
  // made at all (a disk that is full or read-only, a file system without locks) there is one that
  // holds nothing: trouble() says why.
  static base::Result<std::shared_ptr<DataLock>> Take(const std::string& path,
                                                      const std::string& place = {});
  // The holder of that path's lock; nothing when it is free.
  static std::optional<Holder> HolderOf(const std::string& path);

  DataLock(const DataLock&) = delete;
  DataLock& operator=(const DataLock&) = delete;
  ~DataLock();

  const std::string& path() const { return path_; }
  const std::string& trouble() const { return trouble_; }

 private:
  DataLock(std::string path, int fd, std::string trouble)
      : path_(std::move(path)), trouble_(std::move(trouble)), fd_(fd) {}

  const std::string path_;
  const std::string trouble_;
  const int fd_;  // -1: holds nothing
};

// The locks of one process: a second request for a lock it holds gets the same one.
class DataLocks {
 public:
  base::Result<std::shared_ptr<DataLock>> Take(const std::string& path,
                                               const std::string& place = {});

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<DataLock>> held_;  // guarded by mutex_
};

// "dump.rdb.lock" of "dump.rdb".
std::string DataLockName(std::string_view name);

}  // namespace sava::storage
