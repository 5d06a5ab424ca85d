// Glob patterns of KEYS, SCAN, PSUBSCRIBE and CONFIG GET: * ? [abc] [^a] [a-z] and \ escapes.
#pragma once

#include <string_view>

namespace sava::base {

// Bounded work: patterns with many stars cannot make it exponential.
bool GlobMatch(std::string_view pattern, std::string_view text, bool ignore_case = false);

}  // namespace sava::base
