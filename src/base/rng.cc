#include "base/rng.h"

#include <sys/random.h>

#include <cstdlib>

namespace sava::base {

void SecureRandom(void* out, size_t size) {
  auto* p = static_cast<char*>(out);
  while (size > 0) {
    const ssize_t n = getrandom(p, size, 0);
    if (n < 0) {
      abort();  // only possible on kernels without getrandom
    }
    p += n;
    size -= static_cast<size_t>(n);
  }
}

uint64_t SecureRandom64() {
  uint64_t value;
  SecureRandom(&value, sizeof value);
  return value;
}

}  // namespace sava::base
