// Fuzz target: any bytes as a payload of FUNCTION RESTORE.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "function_restore_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string problem =
      sava::engine::CheckFunctionRestore({reinterpret_cast<const char*>(data), size});
  if (!problem.empty()) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::abort();
  }
  return 0;
}
