// Blocks keep apart, begin with a cache line, and can be taken again after Clear.
#include "base/huge_blocks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace sava::base {
namespace {

TEST(HugeBlocks, BlocksKeepTheirBytes) {
  HugeBlocks memory;
  for (int round = 0; round < 2; ++round) {
    // Block by block at first, then over several slabs.
    constexpr size_t kSizes[] = {16384, 9216, 100, 1};
    std::vector<char*> blocks;
    for (size_t i = 0; i < 3000; ++i) {
      blocks.push_back(memory.Allocate(kSizes[i % 4]));
      ASSERT_EQ(reinterpret_cast<uintptr_t>(blocks.back()) % 64, 0U);
      memset(blocks.back(), static_cast<int>(i), kSizes[i % 4]);
    }
    for (size_t i = 0; i < blocks.size(); ++i) {
      for (size_t k = 0; k < kSizes[i % 4]; ++k) {
        ASSERT_EQ(blocks[i][k], static_cast<char>(i)) << i << " " << k;
      }
    }
    memory.Clear();
  }
}

}  // namespace
}  // namespace sava::base
