// Fuzz target: RESP and inline requests.
#include <cstddef>
#include <cstdint>

#include "resp_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sava::fuzz::CheckRequest({reinterpret_cast<const char*>(data), size});
  return 0;
}
