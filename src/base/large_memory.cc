#include "base/large_memory.h"

#include <sys/mman.h>

#include <cstdlib>

namespace sava::base {

void* AlignedMemory(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }

void FreeAligned(void* memory) { free(memory); }

void WantHugePages(void* first, size_t size) {
  static_cast<void>(madvise(first, size, MADV_HUGEPAGE));
}

}  // namespace sava::base
