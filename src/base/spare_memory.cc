#include "base/spare_memory.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <new>

namespace sava::base {

constinit thread_local int MayFail::depth_ = 0;

namespace {

constexpr size_t kPieceBytes = 256 * 1024;
// Together more than the 2 MB that the allocator may want for itself.
constexpr size_t kPieces = 16;

std::array<std::atomic<void*>, kPieces> pieces{};

void HandleNoMemory() {
  if (!ReleaseSpareMemory()) throw std::bad_alloc();
}

}  // namespace

void InstallSpareMemory() {
  RefillSpareMemory();
  std::set_new_handler(HandleNoMemory);
}

void RefillSpareMemory() {
  for (std::atomic<void*>& piece : pieces) {
    if (piece.load(std::memory_order_relaxed) != nullptr) continue;
    void* const fresh =
        mmap(nullptr, kPieceBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) return;
    void* empty = nullptr;
    if (!piece.compare_exchange_strong(empty, fresh)) munmap(fresh, kPieceBytes);
  }
}

bool ReleaseSpareMemory() {
  if (MayFail::here()) return false;
  for (std::atomic<void*>& piece : pieces) {
    void* const held = piece.exchange(nullptr);
    if (held == nullptr) continue;
    munmap(held, kPieceBytes);
    return true;
  }
  return false;
}

}  // namespace sava::base
