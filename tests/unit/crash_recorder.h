// CrashRecorder: a FileSystem in memory that remembers every write, truncation, sync, name change
// and directory sync in order, so that a test can ask what a disk may hold after power failed at
// any of these instants: everything that was synced, and of the rest any part. Calls can be made to
// fail, as disks do.
//
// What a failed sync should have synced is not made certain by later syncs either: systems mark
// such pages clean.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/file_system.h"

namespace sava::storage {

class CrashRecorder final : public FileSystem {
 public:
  enum class Kind : uint8_t {
    kWrite,
    kTruncate,
    kSync,
    kFailedSync,
    kName,    // a path is this inode from now on; `other` is a path that is no more
    kRemove,  // a path is no more
    kSyncDirectory,
    kNote,  // of the test
    kPut,   // a write to blocks: certain once it is done, any part of it before
  };
  // Asked before each call that may fail; true: it fails.
  using Faults = std::function<bool(Kind)>;

  struct Operation {
    Kind kind;
    size_t inode = 0;
    std::string path;
    std::string other;
    uint64_t offset = 0;  // of a write, the size of a truncation, a note's value
    std::string bytes;
  };

  // What is there, by path.
  using Contents = std::map<std::string, std::string>;

  CrashRecorder() = default;
  // A disk as a crash left it; all of it is synced.
  explicit CrashRecorder(const Contents& contents) {
    for (const auto& [path, bytes] : contents) {
      const size_t inode = NewInode();
      inodes_[inode] = bytes;
      names_[path] = inode;
      Add({Kind::kWrite, inode, path, "", 0, bytes});
      Add({Kind::kSync, inode, path, "", 0, ""});
      Add({Kind::kName, inode, path, "", 0, ""});
      Add({Kind::kSyncDirectory, 0, DirectoryOf(path), "", 0, ""});
    }
  }

  void set_faults(Faults faults) {
    const std::lock_guard lock(mutex_);
    faults_ = std::move(faults);
  }
  void Note(uint64_t value) {
    const std::lock_guard lock(mutex_);
    Add({Kind::kNote, 0, "", "", value, ""});
  }
  // What was asked to be written behind, and how long the file was then.
  struct Behind {
    uint64_t begin;
    uint64_t end;
    uint64_t size;
  };
  std::vector<Behind> behind() const {
    const std::lock_guard lock(mutex_);
    return behind_;
  }
  size_t operations() const {
    const std::lock_guard lock(mutex_);
    return log_.size();
  }
  // The highest note among the first `count` operations.
  uint64_t NoteAt(size_t count) const {
    const std::lock_guard lock(mutex_);
    uint64_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      if (log_[i].kind == Kind::kNote) value = std::max(value, log_[i].offset);
    }
    return value;
  }

  // What may be there when power fails after `count` operations.
  Contents Crash(size_t count, std::mt19937_64& random) const {
    const std::lock_guard lock(mutex_);
    const std::vector<bool> certain = Certain(count);
    const double luck = std::uniform_real_distribution<>(0, 1)(random);
    std::bernoulli_distribution happens(luck);
    std::map<size_t, std::string> data;
    std::map<std::string, size_t> names;
    for (size_t i = 0; i < count; ++i) {
      const Operation& at = log_[i];
      if (!certain[i] && !happens(random)) continue;
      switch (at.kind) {
        case Kind::kWrite: {
          std::string& bytes = data[at.inode];
          const size_t size = certain[i] || happens(random) ? at.bytes.size()
                                                            : std::uniform_int_distribution<size_t>(
                                                                  0, at.bytes.size())(random);
          bytes.resize(std::max<size_t>(bytes.size(), at.offset + size), '\0');
          bytes.replace(at.offset, size, at.bytes, 0, size);
          break;
        }
        case Kind::kTruncate:
          data[at.inode].resize(at.offset, '\0');
          break;
        case Kind::kPut:
          Put(data[at.inode], at.offset, at.bytes);
          break;
        case Kind::kName:
          names[at.path] = at.inode;
          if (!at.other.empty()) names.erase(at.other);
          break;
        case Kind::kRemove:
          names.erase(at.path);
          break;
        default:
          break;
      }
    }
    if (count < log_.size() && log_[count].kind == Kind::kPut) {
      const Operation& at = log_[count];
      for (size_t done = 0; done < at.bytes.size(); done += kSector) {
        if (happens(random)) Put(data[at.inode], at.offset + done, at.bytes.substr(done, kSector));
      }
    }
    Contents contents;
    for (const auto& [path, inode] : names) contents[path] = data[inode];
    return contents;
  }

  // Everything, as a process that starts again finds it.
  Contents Live() const {
    const std::lock_guard lock(mutex_);
    Contents contents;
    for (const auto& [path, inode] : names_) contents[path] = inodes_[inode];
    return contents;
  }

  // ---- FileSystem ----
  base::Result<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override {
    const std::lock_guard lock(mutex_);
    if (Fails(Kind::kName)) return base::Error{"opening " + path + ": no"};
    auto at = names_.find(path);
    if (at == names_.end()) {
      at = names_.emplace(path, NewInode()).first;
      Add({Kind::kName, at->second, path, "", 0, ""});
    } else if (mode == Mode::kNew && !inodes_[at->second].empty()) {
      inodes_[at->second].clear();
      Add({Kind::kTruncate, at->second, path, "", 0, ""});
    }
    return std::unique_ptr<File>(std::make_unique<RecordedFile>(this, at->second));
  }
  base::Status WriteOver(const std::string& path, uint64_t offset,
                         std::string_view bytes) override {
    const std::lock_guard lock(mutex_);
    const auto at = names_.find(path);
    if (at == names_.end() || Fails(Kind::kWrite)) return base::Error{"writing " + path + ": no"};
    Add({Kind::kWrite, at->second, "", "", offset, std::string(bytes)});
    Put(inodes_[at->second], offset, bytes);
    const bool fails = Fails(Kind::kSync);
    Add({fails ? Kind::kFailedSync : Kind::kSync, at->second, "", "", 0, ""});
    if (fails) return base::Error{"syncing: no"};
    return {};
  }
  base::Status Rename(const std::string& from, const std::string& to) override {
    const std::lock_guard lock(mutex_);
    const auto at = names_.find(from);
    if (at == names_.end() || Fails(Kind::kName)) return base::Error{"renaming " + from + ": no"};
    const size_t inode = at->second;
    names_.erase(at);
    names_[to] = inode;
    Add({Kind::kName, inode, to, from, 0, ""});
    return {};
  }
  base::Status Remove(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    if (!names_.contains(path) || Fails(Kind::kRemove)) return base::Error{"removing: no"};
    names_.erase(path);
    Add({Kind::kRemove, 0, path, "", 0, ""});
    return {};
  }
  base::Status MakeDirectory(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    directories_.insert(path);
    return {};
  }
  base::Status SyncDirectory(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    if (Fails(Kind::kSyncDirectory)) return base::Error{"syncing the directory: no"};
    Add({Kind::kSyncDirectory, 0, path, "", 0, ""});
    return {};
  }
  bool Exists(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    return names_.contains(path) || directories_.contains(path);
  }
  base::Result<uint64_t> Size(const std::string& path) override {
    auto bytes = ReadAll(path);
    if (!bytes) return base::Error{bytes.error()};
    return static_cast<uint64_t>(bytes->size());
  }
  base::Result<std::string> Read(const std::string& path, uint64_t offset, uint64_t most) override {
    const std::lock_guard lock(mutex_);
    const auto at = names_.find(path);
    if (at == names_.end()) return base::Error{path + ": no such file"};
    const std::string& bytes = inodes_[at->second];
    return bytes.substr(std::min<uint64_t>(offset, bytes.size()), most);
  }
  base::Result<std::unique_ptr<Blocks>> MakeBlocks(const std::string& path,
                                                   uint64_t size) override {
    const std::lock_guard lock(mutex_);
    if (Fails(Kind::kName)) return base::Error{"making " + path + ": no"};
    const size_t inode = NewInode();
    names_[path] = inode;
    inodes_[inode].assign(size, '\0');
    Add({Kind::kName, inode, path, "", 0, ""});
    Add({Kind::kWrite, inode, path, "", 0, inodes_[inode]});
    Add({Kind::kSync, inode, path, "", 0, ""});
    Add({Kind::kSyncDirectory, 0, DirectoryOf(path), "", 0, ""});
    return std::unique_ptr<Blocks>(std::make_unique<RecordedBlocks>(this, inode));
  }
  std::vector<std::string> List(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, inode] : names_) {
      if (DirectoryOf(name) == path)
        names.push_back(name.substr(path.empty() ? 0 : path.size() + 1));
    }
    return names;
  }

 private:
  class RecordedFile final : public File {
   public:
    RecordedFile(CrashRecorder* disk, size_t inode) : disk_(*disk), inode_(inode) {}
    base::Status Append(std::string_view bytes) override {
      const std::lock_guard lock(disk_.mutex_);
      std::string& content = disk_.inodes_[inode_];
      const bool fails = disk_.Fails(Kind::kWrite);
      // A full disk takes some of it.
      if (fails) bytes = bytes.substr(0, disk_.log_.size() * 7 % (bytes.size() + 1));
      if (!bytes.empty()) {
        disk_.Add({Kind::kWrite, inode_, "", "", content.size(), std::string(bytes)});
        content += bytes;
      }
      if (fails) return base::Error{"writing: no"};
      return {};
    }
    base::Status Sync() override {
      const std::lock_guard lock(disk_.mutex_);
      const bool fails = disk_.Fails(Kind::kSync);
      disk_.Add({fails ? Kind::kFailedSync : Kind::kSync, inode_, "", "", 0, ""});
      if (fails) return base::Error{"syncing: no"};
      return {};
    }
    base::Status Truncate(uint64_t size) override {
      const std::lock_guard lock(disk_.mutex_);
      if (disk_.Fails(Kind::kTruncate)) return base::Error{"truncating: no"};
      disk_.inodes_[inode_].resize(size, '\0');
      disk_.Add({Kind::kTruncate, inode_, "", "", size, ""});
      return {};
    }
    void WriteBehind(uint64_t begin, uint64_t end) override {
      const std::lock_guard lock(disk_.mutex_);
      disk_.behind_.push_back({begin, end, disk_.inodes_[inode_].size()});
    }
    uint64_t size() const override {
      const std::lock_guard lock(disk_.mutex_);
      return disk_.inodes_[inode_].size();
    }

   private:
    CrashRecorder& disk_;
    const size_t inode_;
  };

  class RecordedBlocks final : public Blocks {
   public:
    RecordedBlocks(CrashRecorder* disk, size_t inode) : disk_(*disk), inode_(inode) {}
    base::Status Write(uint64_t offset, std::string_view bytes) override {
      const std::lock_guard lock(disk_.mutex_);
      if (offset % kSize != 0 || bytes.size() % kSize != 0 ||
          offset + bytes.size() > disk_.inodes_[inode_].size()) {
        abort();
      }
      const bool fails = disk_.Fails(Kind::kPut);
      if (fails) bytes = bytes.substr(0, disk_.log_.size() % (bytes.size() / kSector) * kSector);
      disk_.Add({Kind::kPut, inode_, "", "", offset, std::string(bytes)});
      Put(disk_.inodes_[inode_], offset, bytes);
      if (fails) return base::Error{"writing blocks: no"};
      return {};
    }

   private:
    CrashRecorder& disk_;
    const size_t inode_;
  };

  static constexpr size_t kSector = 512;
  static void Put(std::string& data, uint64_t offset, std::string_view bytes) {
    if (data.size() < offset + bytes.size()) data.resize(offset + bytes.size(), '\0');
    data.replace(offset, bytes.size(), bytes);
  }

  size_t NewInode() {
    inodes_.emplace_back();
    return inodes_.size() - 1;
  }
  void Add(Operation operation) { log_.push_back(std::move(operation)); }
  bool Fails(Kind kind) const { return faults_ && faults_(kind); }

  // Which of the first `count` operations a sync has made certain.
  std::vector<bool> Certain(size_t count) const {
    std::vector<bool> certain(count, false);
    std::map<size_t, std::vector<size_t>> data;        // by inode: waiting for its sync
    std::map<std::string, std::vector<size_t>> names;  // by directory
    for (size_t i = 0; i < count; ++i) {
      const Operation& at = log_[i];
      const auto settle = [&](std::vector<size_t>& waiting, bool is) {
        for (const size_t j : waiting) certain[j] = is;
        waiting.clear();
      };
      switch (at.kind) {
        case Kind::kWrite:
        case Kind::kTruncate:
          data[at.inode].push_back(i);
          break;
        case Kind::kName:
        case Kind::kRemove:
          names[DirectoryOf(at.path)].push_back(i);
          break;
        case Kind::kSync:
        case Kind::kFailedSync:
          settle(data[at.inode], at.kind == Kind::kSync);
          break;
        case Kind::kSyncDirectory:
          settle(names[at.path], true);
          break;
        case Kind::kPut:
          certain[i] = true;
          break;
        case Kind::kNote:
          break;
      }
    }
    return certain;
  }

  mutable std::mutex mutex_;
  Faults faults_;
  std::vector<Behind> behind_;
  std::vector<Operation> log_;
  std::vector<std::string> inodes_;
  std::map<std::string, size_t> names_;
  std::set<std::string> directories_;
};

}  // namespace sava::storage
