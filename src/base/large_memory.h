// Memory for what lies in large, aligned blocks. A server of ours takes it from malloc and asks for
// huge pages; inside another host it comes from that host, which forks to save, and a forked child
// had better copy small pages: there WantHugePages does nothing.
//
// Thread safety: all calls from any thread.
#pragma once

#include <cstddef>

namespace sava::base {

// nullptr when there is no such memory. REQUIRES: alignment is a power of two and divides size.
void* AlignedMemory(size_t alignment, size_t size);
// What AlignedMemory gave, or nullptr.
void FreeAligned(void* memory);

// A wish: without huge pages everything works as well, only slower.
void WantHugePages(void* first, size_t size);

}  // namespace sava::base
