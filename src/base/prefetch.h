// Asking for memory that will be needed soon.
#pragma once

namespace sava::base {

// The empty statement keeps the compiler from taking a function that does nothing but prefetch for
// one without effect, whose calls can be left out (GCC 12 does).
inline void Prefetch(const void* address) {
  __builtin_prefetch(address);
  asm volatile("");
}

// The line comes as this core's own, so that writing to it does not ask for it a second time. Said
// in assembler: for a plain x86-64 compilers make an ordinary prefetch of __builtin_prefetch(p, 1).
// A processor that does not know the instruction does nothing.
inline void PrefetchForWrite(const void* address) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
  asm volatile("");
#endif
}

}  // namespace sava::base
