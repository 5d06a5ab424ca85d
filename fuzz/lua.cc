// Fuzz target: scripts, libraries, and the input of cjson, cmsgpack, struct, patterns and replies.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "lua_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string problem = sava::lua::CheckLua({reinterpret_cast<const char*>(data), size});
  if (!problem.empty()) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::abort();
  }
  return 0;
}
