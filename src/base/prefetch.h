// Asking for memory that will be needed soon.
#pragma once

namespace sava::base {

// The empty statement keeps the compiler from taking a function that does nothing but prefetch for
// one without effect, whose calls can be left out (GCC 12 does).
inline void Prefetch(const void* address) {
  __builtin_prefetch(address);
  asm volatile("");
}

inline void PrefetchForWrite(const void* address) {
  __builtin_prefetch(address, 1);
  asm volatile("");
}

}  // namespace sava::base
