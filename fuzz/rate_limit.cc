// Fuzz target: any bytes as the string of a rate limit bucket, under any rule.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "rate_limit_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string problem =
      sava::types::CheckBucketText({reinterpret_cast<const char*>(data), size});
  if (!problem.empty()) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::abort();
  }
  return 0;
}
