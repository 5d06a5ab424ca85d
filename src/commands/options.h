// The options that SET and GETEX share: conditions, and the many ways to say when a key expires.
// Nothing here keeps state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "commands/key_context.h"

namespace sava::commands {

// How an expiry was written.
enum class ExpireUnit : uint8_t {
  kNone,
  kSeconds,         // EX: from now
  kMilliseconds,    // PX: from now
  kAtSeconds,       // EXAT: Unix time
  kAtMilliseconds,  // PXAT: Unix time
};

inline bool IsAbsolute(ExpireUnit unit) {
  return unit == ExpireUnit::kAtSeconds || unit == ExpireUnit::kAtMilliseconds;
}

// EX, PX, EXAT or PXAT, whatever the case; kNone for any other word.
ExpireUnit ExpireUnitNamed(std::string_view word);

// The command whose options are read; each knows some that the other does not.
enum class OptionsOf : uint8_t { kSet, kGetex };

struct StringOptions {
  bool nx = false;
  bool xx = false;
  bool get = false;
  bool keep_ttl = false;
  bool persist = false;
  ExpireUnit expire_unit = ExpireUnit::kNone;
  size_t expire_arg = 0;  // index of the number that belongs to expire_unit

  bool has_expiry() const { return expire_unit != ExpireUnit::kNone; }
};

// Reads the options from argument `from` to the end. An option may be repeated, options that
// contradict each other may not meet. Replies the syntax error and returns false when they do.
// The number of an expiry is not looked at: the commands differ in when they do that.
bool ParseStringOptions(KeyContext& context, OptionsOf command, size_t from,
                        StringOptions* options);

// The Unix time in milliseconds that argument `arg` stands for. Replies the error and returns false
// when it is no number, not positive, or beyond what 64 bits hold; `command` is the name to blame.
bool ParseExpireTime(KeyContext& context, size_t arg, ExpireUnit unit, std::string_view command,
                     int64_t* expire_at);

}  // namespace sava::commands
