// Fuzz target: any bytes as a varint, a hybrid of runs and packed groups, or a dictionary.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "encodings_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string problem =
      sava::base::CheckEncodings({reinterpret_cast<const char*>(data), size});
  if (!problem.empty()) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::abort();
  }
  return 0;
}
