// Member: a counter's member in the form it is kept in. Canonical UUID text (36 characters, lower
// case) is kept as its 16 bytes; everything else as it is.
//
//   record    varint header, bytes; header 0: 16 bytes of a UUID, else length + 1
//
// No state; safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/hash.h"
#include "base/varint.h"

namespace sava::types {

inline constexpr size_t kUuidBytes = 16;
inline constexpr size_t kUuidText = 36;

// False when the text is not a UUID in canonical form; `out` is then undefined.
bool PackUuid(std::string_view text, char* out);
void UnpackUuid(const char* bytes, char* text);

// Room for the text of a UUID that is kept as bytes.
using UuidText = char[kUuidText];

// What is kept of a member.
struct KeptMember {
  std::string_view bytes;
  bool uuid = false;

  bool operator==(const KeptMember& other) const {
    return uuid == other.uuid && bytes == other.bytes;
  }
  uint64_t Hash(uint64_t seed) const { return base::HashBytes(bytes, seed + (uuid ? 1 : 0)); }
  // Not a UUID's text, which would be kept as bytes. Every member that was made by Member is.
  bool canonical() const {
    char packed[kUuidBytes];
    return uuid || bytes.size() != kUuidText || !PackUuid(bytes, packed);
  }
  uint64_t header() const { return uuid ? 0 : bytes.size() + 1; }
  size_t record_size() const { return base::VarintSize(header()) + bytes.size(); }
  // What the user sees; `scratch` holds it when it is a UUID.
  std::string_view Text(UuidText& scratch) const {
    if (!uuid) return bytes;
    UnpackUuid(bytes.data(), scratch);
    return {scratch, kUuidText};
  }
  // Returns the end of the record. REQUIRES: room for record_size().
  uint8_t* Write(uint8_t* out) const {
    if (uuid) {
      *out++ = 0;
    } else {
      uint64_t rest = bytes.size() + 1;
      for (; rest >= 0x80; rest >>= 7) *out++ = static_cast<uint8_t>(rest | 0x80);
      *out++ = static_cast<uint8_t>(rest);
    }
    if (!bytes.empty()) memcpy(out, bytes.data(), bytes.size());
    return out + bytes.size();
  }
};

// The record that begins at p, and where the next one begins; nullptr when it does not end before
// `end`.
inline const uint8_t* ReadRecord(const uint8_t* p, const uint8_t* end, KeptMember* member) {
  uint64_t header = 0;
  p = base::GetVarint(p, end, &header);
  if (p == nullptr) return nullptr;
  const uint64_t size = header == 0 ? kUuidBytes : header - 1;
  if (size > static_cast<uint64_t>(end - p)) return nullptr;
  *member = {{reinterpret_cast<const char*>(p), size}, header == 0};
  return p + size;
}

// A member as a caller names it, with room for its kept form.
class Member {
 public:
  explicit Member(std::string_view text) {
    kept_.uuid = text.size() == kUuidText && PackUuid(text, packed_);
    kept_.bytes = kept_.uuid ? std::string_view(packed_, kUuidBytes) : text;
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  const KeptMember& kept() const { return kept_; }

 private:
  KeptMember kept_;
  char packed_[kUuidBytes];
};

}  // namespace sava::types
