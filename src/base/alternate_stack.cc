#include "base/alternate_stack.h"

#include <signal.h>
#include <sys/mman.h>

namespace sava::base {

namespace {

constexpr size_t kGuard = 4096;  // not to be touched: growing beyond is a fault, not damage
constexpr size_t kSize = size_t{64} << 10;

}  // namespace

AlternateStack::AlternateStack() {
#ifndef SAVA_SANITIZED
  void* const memory = mmap(nullptr, kGuard + kSize, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return;
  stack_t stack{};
  stack.ss_sp = static_cast<char*>(memory) + kGuard;
  stack.ss_size = kSize;
  if (mprotect(memory, kGuard, PROT_NONE) != 0 || sigaltstack(&stack, nullptr) != 0) {
    munmap(memory, kGuard + kSize);
    return;
  }
  memory_ = memory;
#endif
}

AlternateStack::~AlternateStack() {
  if (memory_ == nullptr) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
  munmap(memory_, kGuard + kSize);
}

}  // namespace sava::base
