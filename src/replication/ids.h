// History: which stream of changes a data set belongs to, and how far it is in it. The bytes of a
// stream are counted from the first one ever; a history is known by an id of 40 hexadecimal digits.
// A server that becomes master begins a history of its own and remembers the one it comes from, so
// that its siblings may go on with it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/rng.h"
#include "base/text.h"

namespace sava::replication {

inline constexpr size_t kIdDigits = 40;
// Whoever tells a greater offset has not counted.
inline constexpr int64_t kMostOffset = INT64_MAX / 2;

inline std::string NewId() {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string id(kIdDigits, '0');
  base::SecureRandom(id.data(), id.size());
  for (char& digit : id) digit = kDigits[static_cast<unsigned char>(digit) & 15];
  return id;
}

inline bool IsId(std::string_view text) {
  if (text.size() != kIdDigits) return false;
  return text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

struct History {
  std::string id = NewId();
  // Bytes of the stream so far; the next one has this number plus one, as PSYNC counts.
  int64_t offset = 0;
  // The history before, and the first byte that is not its own any more; -1: there is none.
  std::string second_id = std::string(kIdDigits, '0');
  int64_t second_offset = -1;

  // Whether a replica that has followed `asked_id` and wants the byte `from` next has seen nothing
  // but what belongs to this history.
  bool Covers(std::string_view asked_id, int64_t from) const {
    if (base::EqualsNoCase(asked_id, id)) return true;
    return second_offset >= 0 && base::EqualsNoCase(asked_id, second_id) && from <= second_offset;
  }
  // A history of its own begins here.
  void Promote() {
    second_id = id;
    second_offset = offset + 1;
    id = NewId();
  }
  void ForgetSecond() {
    second_id.assign(kIdDigits, '0');
    second_offset = -1;
  }
};

}  // namespace sava::replication
