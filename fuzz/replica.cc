// Fuzz target: what a replica reads from its master.
#include <cstddef>
#include <cstdint>

#include "replica_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sava::fuzz::CheckReplica({reinterpret_cast<const char*>(data), size});
  return 0;
}
