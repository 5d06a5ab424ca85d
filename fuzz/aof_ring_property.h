// What must hold for any bytes given as the ring of an append-only log: what is read of them is
// part of them, and a log that lacks it, or has other bytes there, is restored or left as it is.
// Shared by the fuzz target and by the unit test that replays its corpus.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "../tests/unit/crash_recorder.h"
#include "storage/aof_ring.h"

namespace sava::storage {

// Empty if all is well, otherwise what went wrong.
inline std::string CheckAofRing(std::string_view bytes) {
  const AofRingEnd end = ReadAofRing(bytes);
  if (end.bytes.size() > bytes.size()) return "more than there was";
  if ((end.increment == 0) != end.bytes.empty()) return "bytes for no increment";
  if (end.increment == 0) return "";
  const AofManifest manifest{{{"log.aof", end.increment, AofFile::Kind::kIncrement}}};
  const uint64_t before = std::min<uint64_t>(end.offset, 100);
  for (const std::string& tail :
       {std::string(), std::string("*1\r\n$4\r\nPING\r\n"), end.bytes,
        end.bytes.substr(0, end.bytes.size() / 2) + std::string(9, 'x')}) {
    const std::string found = std::string(before, '#') + tail;
    CrashRecorder disk({{"dir/log.ring", std::string(bytes)}, {"dir/log.aof", found}});
    const auto restored = RestoreFromRing(disk, "dir", "log", manifest, true);
    const std::string left = disk.ReadAll("dir/log.aof").value();
    if (!restored) {
      if (left != found) return "refused, and changed all the same";
    } else if (restored.value().lacking == 0 ? left != found
                                             : left != std::string(before, '#') + end.bytes) {
      return "restored, but not to what the ring has";
    }
  }
  return "";
}

}  // namespace sava::storage
