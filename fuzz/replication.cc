// What replicas say (REPLCONF), what the stream of changes is made of, what a server sends that is
// asked for its data.
#include <cstddef>
#include <cstdint>

#include "replication_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sava::fuzz::CheckReplication({reinterpret_cast<const char*>(data), size});
  return 0;
}
