// What the files of the string family share: small helpers, and the handlers that the rows in
// strings.cc name. Nobody outside the family needs this header, except for the text helpers.
#pragma once

#include <cstddef>
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

// Replies the error and returns false when a string of `size` bytes plus `more` would be longer
// than proto-max-bulk-len. REQUIRES: both are not negative.
bool CheckStringSize(Context& context, int64_t size, int64_t more);

namespace strings {

// strings_get_set.cc: whole values.
void Get(Context& context);
void Getset(Context& context);
void Getdel(Context& context);
void Getex(Context& context);
void Mget(Context& context);
void Set(Context& context);
uint16_t SetKeyFlags(Args args);
void Setnx(Context& context);
void Setex(Context& context);
void Psetex(Context& context);
void Mset(Context& context);
void Msetnx(Context& context);

// strings_edit.cc: parts of values, and numbers.
void Append(Context& context);
void Strlen(Context& context);
void Getrange(Context& context);
void Setrange(Context& context);
void Incr(Context& context);
void Incrby(Context& context);
void Decr(Context& context);
void Decrby(Context& context);
void Incrbyfloat(Context& context);

// strings_lcs.cc
void Lcs(Context& context);

}  // namespace strings
}  // namespace sava::commands
