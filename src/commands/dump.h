// A value as the bytes that RESTORE takes, here or on a Redis (docs/formats/dump.md).
#pragma once

#include <string>

#include "commands/value.h"

namespace sava::commands {

// REQUIRES: there is a value.
std::string DumpOf(const Value& value);

}  // namespace sava::commands
