// What stands at a key, and how it is looked at and spoken of: the words that KeyContext and the
// handlers share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/blob.h"
#include "base/text.h"
#include "types/value/object.h"

namespace sava::commands {

// Classes of keyspace notifications (the letters of notify-keyspace-events).
enum NotifyClass : uint32_t {
  kNotifyKeyspace = 1U << 0,  // K
  kNotifyKeyevent = 1U << 1,  // E
  kNotifyGeneric = 1U << 2,   // g
  kNotifyString = 1U << 3,    // $
  kNotifyList = 1U << 4,      // l
  kNotifySet = 1U << 5,       // s
  kNotifyHash = 1U << 6,      // h
  kNotifyZset = 1U << 7,      // z
  kNotifyExpired = 1U << 8,   // x
  kNotifyEvicted = 1U << 9,   // e
  kNotifyStream = 1U << 10,   // t
  kNotifyKeyMiss = 1U << 11,  // m
  kNotifyLoaded = 1U << 12,
  kNotifyModule = 1U << 13,  // d
  kNotifyNew = 1U << 14,     // n
  kNotifyAll = kNotifyGeneric | kNotifyString | kNotifyList | kNotifySet | kNotifyHash |
               kNotifyZset | kNotifyExpired | kNotifyEvicted | kNotifyStream | kNotifyModule,
};

// The class of the values of a type by its letter; none for other letters.
constexpr NotifyClass NotifyClassOf(char letter) {
  switch (letter) {
    case '$':
      return kNotifyString;
    case 'l':
      return kNotifyList;
    case 's':
      return kNotifySet;
    case 'h':
      return kNotifyHash;
    case 'z':
      return kNotifyZset;
    case 't':
      return kNotifyStream;
    case 'd':
      return kNotifyModule;
    default:
      return NotifyClass{};
  }
}

inline constexpr int64_t kNoExpiry = -1;
inline constexpr int64_t kKeepExpiry = -2;

// How a string is kept; what OBJECT ENCODING answers.
enum class StringForm : uint8_t { kInt, kEmbstr, kRaw };

// What stands at a key.
struct Value {
  enum class Kind : uint8_t { kNone, kString, kObject };

  Kind kind = Kind::kNone;
  StringForm form = StringForm::kRaw;
  int64_t integer = 0;              // kString with form kInt: the number
  std::string_view bytes;           // kString otherwise
  base::Blob* blob = nullptr;       // set when `bytes` live in a blob
  types::Object* object = nullptr;  // kObject
  int64_t expire_at = kNoExpiry;    // Unix milliseconds

  explicit operator bool() const { return kind != Kind::kNone; }
  bool is_string() const { return kind == Kind::kString; }
  bool is_int() const { return kind == Kind::kString && form == StringForm::kInt; }
  // The string's text; `scratch` holds it when the value is kept as a number.
  std::string_view Text(std::string* scratch) const {
    if (!is_int()) return bytes;
    *scratch = base::IntText(integer);
    return *scratch;
  }
};

// How a key is looked at.
enum class Access : uint8_t {
  kRead,   // counts as hit or miss, refreshes LRU/LFU
  kWrite,  // about to be changed: refreshes LRU/LFU, no hit or miss
  kPeek,   // leaves no trace (OBJECT, DEBUG, TTL's family uses kRead without refresh: kReadQuiet)
  kReadQuiet,  // counts as hit or miss but does not refresh LRU/LFU
};

}  // namespace sava::commands
