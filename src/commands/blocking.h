// What the blocking commands of all families share: their timeouts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "commands/key_context.h"

namespace sava::commands {

// Parses argument `i`, a timeout in seconds with fractions, into the moment when the waiting ends
// (Unix ms; 0: never). Replies the error and returns false when it is none.
bool TimeoutSeconds(KeyContext& ctx, size_t i, int64_t* deadline_ms);
// The same of a timeout in whole milliseconds (XREAD's BLOCK).
bool TimeoutMillis(KeyContext& ctx, size_t i, int64_t* deadline_ms);

}  // namespace sava::commands
