// Blocks keep apart and are accounted for by their class, and empty pages go back.
#include "base/slab.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace sava::base {
namespace {

TEST(Slab, ClassesFitTheirSizes) {
  for (int cls = 3; cls < Slab::kClasses; ++cls) {
    EXPECT_EQ(Slab::ClassOf(Slab::ClassSize(cls)), cls);
    EXPECT_EQ(Slab::ClassSize(cls) % 8, 0U);
  }
  for (size_t size = 24; size <= Slab::kMaxBlock; ++size) {
    const int cls = Slab::ClassOf(size);
    EXPECT_GE(Slab::ClassSize(cls), size);
    EXPECT_LT(Slab::ClassSize(cls - 1), size);
    EXPECT_EQ(Slab::Rounded(size), Slab::ClassSize(cls));
  }
}

TEST(Slab, BlocksKeepTheirBytes) {
  Slab slab;
  struct Block {
    char* at;
    size_t size;
  };
  std::vector<Block> blocks;
  for (size_t round = 0; round < 30; ++round) {
    for (size_t size = 1; size <= Slab::kMaxBlock + 40; ++size) {
      blocks.push_back({static_cast<char*>(slab.Allocate(size)), size});
      memset(blocks.back().at, static_cast<int>(blocks.size()), size);
    }
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    for (size_t k = 0; k < blocks[i].size; ++k) {
      ASSERT_EQ(blocks[i].at[k], static_cast<char>(i + 1)) << i << " " << k;
    }
  }
  for (const Block& block : blocks) slab.Release(block.at, block.size);
  EXPECT_EQ(slab.large_bytes(), 0U);
  EXPECT_LT(slab.used(), 1024U);  // no block, only what it needs itself
  EXPECT_LE(slab.page_bytes(), Slab::kClasses * Slab::kPageSize);  // the spare ones
}

TEST(Slab, WithoutSparePagesNothingStays) {
  Slab slab(false);
  for (size_t size = 1; size <= Slab::kMaxBlock; ++size) {
    void* const block = slab.Allocate(size);
    EXPECT_EQ(slab.page_bytes(), Slab::kPageSize);
    slab.Release(block, size);
    EXPECT_EQ(slab.page_bytes(), 0U);
  }
}

}  // namespace
}  // namespace sava::base
