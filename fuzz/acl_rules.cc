// Fuzz target: any bytes as an ACL file, and as rules of ACL SETUSER.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "acl_rules_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string problem =
      sava::access::CheckAclText({reinterpret_cast<const char*>(data), size});
  if (!problem.empty()) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::abort();
  }
  return 0;
}
