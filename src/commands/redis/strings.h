// What the files of the string family share: a check, and the handlers that the rows in
// strings.cc name. Nobody outside the family needs this header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "commands/context.h"
#include "commands/texts.h"

namespace sava::commands {

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
