// SyncPath: how `always` brings the bytes written to the log's file to the disk before replies may
// leave. Two ways: a sync of the file each time (FileSyncPath), or a ring beside the file, which
// costs less, and a sync of the file now and then (RingSyncPath; aof_ring.h).
//
// Thread safety: quick(), ExpectSlow() and RingSyncPath::syncs() on any thread; the rest under the
// log's lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "storage/aof_ring.h"
#include "storage/file_system.h"

namespace sava::storage {

class SyncPath {
 public:
  using Lock = std::unique_lock<std::mutex>;  // of the log's lock, held

  // The increment that takes the records.
  struct Increment {
    uint64_t sequence = 0;
    uint64_t size = 0;
    uint64_t synced_size = 0;  // that many bytes are synced as a file
    bool counts = false;       // a start reads it: the manifest names it, and no base is missing
  };

  virtual ~SyncPath() = default;

  // The path does not know what the file ends with: there is a new one, or bytes were appended
  // that this path was not told of.
  virtual void Restart() = 0;
  // Finds the memory that Append will need for that many bytes: std::bad_alloc is thrown here.
  virtual void Reserve(size_t bytes) = 0;
  // These bytes were appended to the file. REQUIRES: Reserve.
  virtual void Append(std::string_view bytes) = 0;
  // Everything that was appended is on disk when this returns true. sync_file: syncs the increment
  // and what comes before it.
  virtual bool MakeDurable(const Increment& at, const std::function<bool()>& sync_file) = 0;
  // The file must be synced soon, while writing goes on.
  virtual bool wants_file_sync() const = 0;

  // Whether the next MakeDurable is likely to be over in no time.
  virtual bool quick() const = 0;
  virtual void ExpectSlow() = 0;

  // ---- on the disk's thread; these release the lock meanwhile ----
  // Whether Prepare has something to do.
  virtual bool wants_preparation() const = 0;
  // REQUIRES: what this path has made durable so far is synced as a file.
  virtual void Prepare(Lock& lock) = 0;
  // Looks whether its file is still there. False: it was not, and the increment must be synced.
  virtual bool LookForFile(Lock& lock) = 0;
};

class FileSyncPath final : public SyncPath {
 public:
  void Restart() override {}
  void Reserve(size_t bytes) override { (void)bytes; }
  void Append(std::string_view bytes) override { (void)bytes; }
  bool MakeDurable(const Increment& at, const std::function<bool()>& sync_file) override {
    (void)at;
    return sync_file();
  }
  bool wants_file_sync() const override { return false; }
  bool quick() const override { return false; }
  void ExpectSlow() override {}
  bool wants_preparation() const override { return false; }
  void Prepare(Lock& lock) override { (void)lock; }
  bool LookForFile(Lock& lock) override {
    (void)lock;
    return true;
  }
};

// After a sync of the file what is appended goes into the ring, until the ring is full, too much
// is appended at once, or Restart. Where there can be no ring, all syncs are the file's.
class RingSyncPath final : public SyncPath {
 public:
  RingSyncPath(FileSystem& files, std::string path, uint64_t size)
      : files_(files), path_(std::move(path)), size_(size) {}

  void Restart() override;
  void Reserve(size_t bytes) override;
  void Append(std::string_view bytes) override;
  bool MakeDurable(const Increment& at, const std::function<bool()>& sync_file) override;
  bool wants_file_sync() const override { return wants_file_sync_; }
  bool quick() const override { return quick_.load(std::memory_order_relaxed); }
  void ExpectSlow() override { quick_.store(false, std::memory_order_relaxed); }
  bool wants_preparation() const override { return ring_ == nullptr && !refused_; }
  void Prepare(Lock& lock) override;
  bool LookForFile(Lock& lock) override;

  bool has_ring() const { return ring_ != nullptr; }
  // Removes its file. REQUIRES: the increment has all of it, synced as a file.
  void Remove(Lock& lock);
  uint64_t syncs() const { return syncs_.load(std::memory_order_relaxed); }

 private:
  bool Put(const Increment& at);
  void Leave();

  FileSystem& files_;
  const std::string path_;
  const uint64_t size_;
  std::unique_ptr<AofRing> ring_;  // none: not made yet, or it cannot be
  bool refused_ = false;
  // Of the increment all but pending_ is on the disk, and all before the increment.
  bool follows_ = false;
  bool wants_file_sync_ = false;
  std::string pending_;
  std::string before_;              // the last bytes before it
  std::string last_;                // of the increment
  std::atomic<bool> quick_{false};  // and no thread is at it
  std::atomic<uint64_t> syncs_{0};
};

}  // namespace sava::storage
