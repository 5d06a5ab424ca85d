// Fuzz target: any bytes as texts to encode, and as changes of a list with encoded blocks.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "encoded_blocks_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string problem =
      sava::types::CheckEncodedBlocks({reinterpret_cast<const char*>(data), size});
  if (!problem.empty()) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::abort();
  }
  return 0;
}
