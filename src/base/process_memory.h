// What the allocator and the kernel know about the process's memory. jemalloc when it is linked,
// the C library's allocator (sanitizer builds) otherwise.
#pragma once

#include <cstddef>
#include <string>

namespace sava::base {

struct AllocatorFigures {
  size_t allocated = 0;
  size_t cached = 0;  // of these, what threads keep for their next calls
  size_t active = 0;
  size_t resident = 0;
};

AllocatorFigures ReadAllocator();
size_t ResidentBytes();
size_t SystemMemory();
// The least of the system's memory and the limits of the process's control groups (cgroup v2).
size_t MemoryCeiling();
// Keeps the system from using huge pages where they were not asked for, or no longer does. Where it
// would, and cannot be told so, it is told to use none.
void LimitHugePages(bool limit);
// After a fork the allocator's own thread, which gives memory back, is gone: starts it again.
void RestartAllocatorThread();
// Makes what the allocator keeps for the calling thread.
void WarmAllocator();
// jemalloc's mallctl: 0 or an error number, ENOENT without jemalloc.
int ControlAllocator(const char* name, void* old, size_t* old_length, void* fresh,
                     size_t fresh_length);
// Gives free pages back.
void PurgeAllocator();
// The allocator's own report, or empty.
std::string AllocatorReport();
// "jemalloc-5.3.0" or "libc".
std::string AllocatorName();

}  // namespace sava::base
