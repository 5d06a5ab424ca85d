// AofRing: a file of a fixed size beside the log, laid out on the disk, by way of which `always`
// syncs. To sync a file that grows, the file system has to write records of its own; to write once
// more over blocks that are there costs a fraction of that (docs/adr/0009-a-ring-for-syncs.md). So
// bytes appended to the log are also put into the ring, and are durable once they are there. The
// log's file is synced now and then, and what that covers may be overwritten in the ring.
//
//   first block:  "SAVARNG1" · u64 secret, by chance · zeros
//   entry, at a multiple of 4096: "SAVARNG1" · u64 number · u64 increment · u64 offset in it · u32
//   bytes · u32 number of bytes before the offset · u64 CRC64 of these · u64 CRC64 of all before
//   and the bytes · bytes · zeros; both CRC64 begin with the secret
//
// After a power failure the log's file may lack its end: the entries with the highest numbers, as
// far as they join, are that end. A reader that finds the file whole need not know of the ring. The
// secret keeps clients from writing values that look like entries.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "storage/aof_manifest.h"
#include "storage/file_system.h"

namespace sava::storage {

class AofRing {
 public:
  static constexpr uint64_t kSize = 16 << 20;
  // Of one entry: a sync of more takes its time in any case.
  static constexpr size_t kMostBytes = 256 << 10;

  // Makes the file, or says why there can be none.
  static base::Result<std::unique_ptr<AofRing>> Make(FileSystem& files, const std::string& path,
                                                     uint64_t size = kSize);

  // These bytes of the increment, which begin at `offset` in it, are on the disk when it returns
  // true; false: there is no room until more of the file is synced. `synced`: that much of it is on
  // disk, and all of the earlier increments. `before`: the bytes right before them, or some of
  // these, by which the file is recognised. REQUIRES: 0 < bytes <= kMostBytes.
  base::Result<bool> Put(uint64_t increment, uint64_t offset, std::string_view before,
                         std::string_view bytes, uint64_t synced);
  // More than half of it is needed.
  bool half_full() const { return used_ > size_ / 2; }

 private:
  struct Entry {
    uint64_t increment;
    uint64_t end;   // in the increment
    uint64_t room;  // in the ring, with the bytes left out before it
  };

  AofRing(std::unique_ptr<Blocks> blocks, uint64_t size, uint64_t secret)
      : blocks_(std::move(blocks)), size_(size), secret_(secret) {}

  const std::unique_ptr<Blocks> blocks_;
  const uint64_t size_;
  const uint64_t secret_;
  std::deque<Entry> entries_;          // that are needed, the oldest first
  uint64_t used_ = 0;                  // by them
  uint64_t position_ = Blocks::kSize;  // of the next
  uint64_t number_ = 0;                // of the last
  std::string scratch_;
};

std::string AofRingName(std::string_view name);  // "NAME.ring"

// The end of an increment, as the ring has it.
struct AofRingEnd {
  uint64_t increment = 0;  // 0: there is none
  uint64_t offset = 0;
  uint32_t before = 0;      // number of bytes before the offset
  uint64_t before_crc = 0;  // have this CRC64, begun with
  uint64_t secret = 0;
  std::string bytes;
};
AofRingEnd ReadAofRing(std::string_view ring);

// What RestoreFromRing found.
struct AofRestored {
  std::string file;      // the increment's, without a directory; "": there is nothing for this log
  uint64_t lacking = 0;  // bytes that the file lacked, or had wrong
  // What the file ends with from here on, if it lacks some of it.
  uint64_t offset = 0;
  std::string end;
};

// Looks whether the log's files lack what the ring has, as after a power failure, and, if `write`,
// writes and syncs it, lacking or not. When the ring does not fit the file: an error, and nothing
// is changed.
base::Result<AofRestored> RestoreFromRing(FileSystem& files, const std::string& directory,
                                          std::string_view name, const AofManifest& manifest,
                                          bool write);

}  // namespace sava::storage
