// Shared by the writer and the reader of RDB files: marks, and what a file says of a key.
// docs/formats/rdb.md describes the bytes.
#pragma once

#include <cstdint>
#include <string_view>

namespace sava::storage {

// Bytes at the place of a value's type that are something else.
enum RdbOpcode : uint8_t {
  kRdbKeyMeta = 243,  // of RDB 13, which is not read here
  kRdbSlotInfo = 244,
  kRdbFunction = 245,
  kRdbFunctionDraft = 246,  // release candidates of Redis 7.0 wrote it
  kRdbModuleAux = 247,
  kRdbIdle = 248,
  kRdbFrequency = 249,
  kRdbAux = 250,
  kRdbResizeDb = 251,
  kRdbExpireMs = 252,
  kRdbExpireSeconds = 253,
  kRdbSelectDb = 254,
  kRdbEnd = 255,
};

inline constexpr std::string_view kRdbMagic = "REDIS";
// Files of this version and later end with a checksum.
inline constexpr int kRdbFirstChecksum = 5;
// When a module's AUX data is loaded: before the keys.
inline constexpr uint64_t kRdbAuxBeforeKeys = 1;

}  // namespace sava::storage
