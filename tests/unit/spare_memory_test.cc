// Spare memory: when all other memory is gone, work that cannot fail gets some more of it, and work
// that can does not.
#include "base/spare_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <new>

namespace sava::base {
namespace {

// Ends the process: 0 when all went as it should. Not under a sanitizer.
[[noreturn, maybe_unused]] void UseUpAll() {
  InstallSpareMemory();
  rlimit limit{};
  limit.rlim_cur = limit.rlim_max = size_t{1} << 30;
  if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(10);
  // A list of its own blocks takes no other memory.
  struct Block {
    Block* next;
    char rest[4000];
  };
  Block* all = nullptr;
  {
    const MayFail here;
    for (size_t size : {size_t{1} << 24, size_t{1} << 20, sizeof(Block), sizeof(Block)}) {
      while (void* const memory = operator new(size, std::nothrow)) {
        all = new (memory) Block{all, {}};
      }
    }
    if (ReleaseSpareMemory()) _exit(11);
  }
  size_t spared = 0;
  while (spared < 1000 && operator new(1000, std::nothrow) != nullptr) ++spared;
  if (spared < 1000) _exit(12);
  while (operator new(1000, std::nothrow) != nullptr) {
  }
  _exit(ReleaseSpareMemory() ? 13 : 0);
}

TEST(SpareMemory, IsForWorkThatCannotFail) {
#ifdef SAVA_SANITIZED
  GTEST_SKIP() << "a sanitizer needs the address space itself";
#else
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(UseUpAll(), testing::ExitedWithCode(0), "");
#endif
}

TEST(SpareMemory, IsPutAsideAgain) {
  RefillSpareMemory();
  size_t pieces = 0;
  while (ReleaseSpareMemory()) ++pieces;
  EXPECT_GT(pieces, 0U);
  RefillSpareMemory();
  size_t again = 0;
  while (ReleaseSpareMemory()) ++again;
  EXPECT_EQ(again, pieces);
  EXPECT_FALSE(ReleaseSpareMemory());
}

}  // namespace
}  // namespace sava::base
