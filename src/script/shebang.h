// The first line of a script or a library: "#!lua name=mylib flags=no-writes,allow-oom".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sava::script {

struct ScriptHead {
  bool present = false;  // else it says nothing of itself
  size_t length = 0;     // the line without its end; what follows is the body, with the line's end
  uint8_t flags = 0;     // of lua::FunctionFlag
};

// Of a script for EVAL. The error is without "ERR ".
base::Result<ScriptHead> ReadScriptHead(std::string_view source);

struct LibraryHead {
  std::string name;
  size_t length = 0;
};

// Of a library for FUNCTION LOAD. The error is without "ERR ".
base::Result<LibraryHead> ReadLibraryHead(std::string_view source);

// Letters, digits and underscores, at least one.
bool GoodName(std::string_view name);
inline constexpr std::string_view kBadLibraryName =
    "Library names can only contain letters, numbers, or underscores(_) and must be at least one "
    "character long";

// By the flag's name ("no-writes"); 0: there is no such flag.
uint8_t FlagByName(std::string_view name);
// Calls visit(name) for each flag that is set.
template <typename Visit>
void ForEachFlagName(uint8_t flags, const Visit& visit);

namespace detail {
struct FlagName {
  std::string_view name;
  uint8_t flag;
};
inline constexpr FlagName kFlagNames[] = {{"no-writes", 1},
                                          {"allow-oom", 2},
                                          {"allow-stale", 4},
                                          {"no-cluster", 8},
                                          {"allow-cross-slot-keys", 16}};
}  // namespace detail

template <typename Visit>
void ForEachFlagName(uint8_t flags, const Visit& visit) {
  for (const detail::FlagName& one : detail::kFlagNames) {
    if ((flags & one.flag) != 0) visit(one.name);
  }
}

}  // namespace sava::script
