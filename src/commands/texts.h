// Numbers and string values as text.
#pragma once

#include <cstdint>
#include <string_view>

#include "commands/context.h"

namespace sava::commands {

// Room for any 64-bit number as text.
struct NumberText {
  char digits[24];

  std::string_view Write(int64_t value) { return {digits, base::FormatInt(value, digits)}; }
};

// The bytes of a string value, written into `scratch` when it is kept as a number; empty when the
// key is missing. Valid as long as the value and the scratch are.
inline std::string_view StringBytes(const Value& value, NumberText* scratch) {
  return value.is_int() ? scratch->Write(value.integer) : value.bytes;
}

}  // namespace sava::commands
