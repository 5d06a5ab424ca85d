// Memory of sava.so comes from the host, so that the host's figures and limits hold for it. The
// linker sends every call of malloc and its kin in our objects, and in the libraries linked into
// sava.so, to the functions below (--wrap in CMakeLists.txt); operator new calls malloc.
//
// Before the host's functions are bound, static constructors have a small block that nothing is
// given back to.
//
// Thread safety: all calls from any thread; the early block is used by the loading thread only.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "base/large_memory.h"
#include "module/host_api.h"

namespace sava::module {

namespace {

// From here on a failure is an answer, below it the host ends: it could not go on either.
constexpr size_t kLarge = 1 << 20;
constexpr size_t kAlign = alignof(std::max_align_t);

alignas(kAlign) char early[16 << 10];
size_t early_used = 0;

bool IsEarly(const void* memory) {
  const auto at = reinterpret_cast<uintptr_t>(memory);
  const auto begin = reinterpret_cast<uintptr_t>(early);
  return at >= begin && at < begin + sizeof early;
}

// The size stands in front, for Resize.
void* AllocateEarly(size_t size) {
  const size_t whole = kAlign + (size + kAlign - 1) / kAlign * kAlign;
  if (size > sizeof early || whole > sizeof early - early_used) return nullptr;
  char* const memory = early + early_used;
  early_used += whole;
  memcpy(memory, &size, sizeof size);
  return memory + kAlign;
}

size_t EarlySize(const void* memory) {
  size_t size = 0;
  memcpy(&size, static_cast<const char*>(memory) - kAlign, sizeof size);
  return size;
}

// More than the machine has is refused before the host reserves it: a size may come from outside.
size_t MachineBytes() {
  static const size_t bytes =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

void* Allocate(size_t size) {
  if (!host::bound()) return AllocateEarly(size);
  if (size < kLarge) return host::Alloc(size);
  return size > MachineBytes() ? nullptr : host::TryAlloc(size);
}

// Of the host's functions only Calloc knows when memory is zero already, and it does not fail.
void* AllocateZeroed(size_t count, size_t size) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) return nullptr;
  if (!host::bound()) return AllocateEarly(bytes);  // was never used before
  if (bytes < kLarge) return host::Calloc(count, size);
  void* const room = Allocate(bytes);
  if (room == nullptr) return nullptr;
  host::Free(room);
  return host::Calloc(count, size);
}

void Release(void* memory) {
  if (memory != nullptr && !IsEarly(memory)) host::Free(memory);
}

size_t UsableSize(void* memory) {
  if (memory == nullptr) return 0;
  if (IsEarly(memory)) return EarlySize(memory);
  if (host::MallocUsableSize != nullptr) return host::MallocUsableSize(memory);
  // A host that keeps the size in front counts it too.
  constexpr size_t kFront = 16;
  const size_t whole = host::MallocSize(memory);
  return whole < kFront ? 0 : whole - kFront;
}

void* Resize(void* memory, size_t size) {
  if (memory == nullptr) return Allocate(size);
  const bool is_early = IsEarly(memory);
  if (!is_early && size < kLarge) return host::Realloc(memory, size);
  void* const moved = Allocate(size);
  if (moved == nullptr) return nullptr;
  const size_t held = UsableSize(memory);
  memcpy(moved, memory, held < size ? held : size);
  Release(memory);
  return moved;
}

// The host's memory is aligned for any scalar: room is added, and the distance stands in front.
void* AllocateAligned(size_t alignment, size_t size) {
  char* const memory = static_cast<char*>(Allocate(size + alignment + sizeof(size_t)));
  if (memory == nullptr) return nullptr;
  const auto first = reinterpret_cast<uintptr_t>(memory) + sizeof(size_t);
  const size_t distance = sizeof(size_t) + (alignment - first % alignment) % alignment;
  memcpy(memory + distance - sizeof(size_t), &distance, sizeof distance);
  return memory + distance;
}

void ReleaseAligned(void* memory) {
  if (memory == nullptr) return;
  size_t distance = 0;
  memcpy(&distance, static_cast<char*>(memory) - sizeof distance, sizeof distance);
  Release(static_cast<char*>(memory) - distance);
}

}  // namespace

}  // namespace sava::module

namespace sava::base {

void* AlignedMemory(size_t alignment, size_t size) {
  return module::AllocateAligned(alignment, size);
}
void FreeAligned(void* memory) { module::ReleaseAligned(memory); }
void WantHugePages(void* /*first*/, size_t /*size*/) {}

}  // namespace sava::base

// NOLINTBEGIN(bugprone-reserved-identifier): the linker makes up these names
extern "C" {
void* __wrap_malloc(size_t size) { return sava::module::Allocate(size); }
void* __wrap_calloc(size_t count, size_t size) { return sava::module::AllocateZeroed(count, size); }
void* __wrap_realloc(void* memory, size_t size) { return sava::module::Resize(memory, size); }
void __wrap_free(void* memory) { sava::module::Release(memory); }
size_t __wrap_malloc_usable_size(void* memory) { return sava::module::UsableSize(memory); }
}
// NOLINTEND(bugprone-reserved-identifier)

void* operator new(size_t size, std::align_val_t alignment) {
  void* const memory = sava::module::AllocateAligned(static_cast<size_t>(alignment), size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return operator new(size, alignment);
}
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept {
  sava::module::ReleaseAligned(memory);
}
void operator delete[](void* memory, std::align_val_t /*alignment*/) noexcept {
  sava::module::ReleaseAligned(memory);
}
void operator delete(void* memory, size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  sava::module::ReleaseAligned(memory);
}
void operator delete[](void* memory, size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  sava::module::ReleaseAligned(memory);
}
