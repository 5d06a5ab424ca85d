// Fuzz target: HTTP requests, their routes and their JSON.
#include <cstddef>
#include <cstdint>

#include "http_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sava::fuzz::CheckHttp({reinterpret_cast<const char*>(data), size});
  return 0;
}
