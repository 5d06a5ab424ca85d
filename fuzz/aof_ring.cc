// Fuzz target: any bytes as the ring of an append-only log.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "aof_ring_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string problem =
      sava::journal::CheckAofRing({reinterpret_cast<const char*>(data), size});
  if (!problem.empty()) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::abort();
  }
  return 0;
}
