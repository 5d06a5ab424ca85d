// AofManifest: which files make up the append-only log, in Redis 7's form and names.
// docs/formats/aof.md describes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "storage/file_system.h"

namespace sava::storage {

struct AofFile {
  enum class Kind : char { kBase = 'b', kIncrement = 'i', kHistory = 'h' };
  std::string name;  // without a directory
  uint64_t sequence = 0;
  Kind kind = Kind::kIncrement;
  bool operator==(const AofFile&) const = default;
};

struct AofManifest {
  std::vector<AofFile> files;  // base (at most one) first, increments in order, history
  std::string data_set = "";   // its id; empty: the manifest does not say

  // The highest number a file may have; what Redis counts in ends here, too.
  static constexpr uint64_t kLastSequence = INT64_MAX;

  static base::Result<AofManifest> Parse(std::string_view text);
  // Errors name the path. A file that is not regular, or far too long, is not read.
  static base::Result<AofManifest> Read(FileSystem& files, const std::string& path);
  std::string Text() const;

  const AofFile* base() const;
  std::vector<AofFile> increments() const;
  uint64_t highest(AofFile::Kind kind) const;
};

// "NAME.manifest", "NAME.3.base.rdb", "NAME.4.incr.aof".
std::string AofManifestName(std::string_view name);
std::string AofBaseName(std::string_view name, uint64_t sequence, bool rdb);
std::string AofIncrementName(std::string_view name, uint64_t sequence);

}  // namespace sava::storage
