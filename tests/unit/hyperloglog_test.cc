// HyperLogLog: bytes and estimates recorded from Redis 7.0.15, both forms against each other, and
// strings that only look like estimators.
#include "types/sketches/hyperloglog.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/crc.h"
#include "base/rng.h"

namespace sava::types::hyperloglog {
namespace {

constexpr uint64_t kMost = 3000;

TEST(HyperLogLog, HasTheBytesAndEstimatesOfRedis) {
  // After so many elements: length, CRC-64 and estimate of Redis 7.0.15.
  const struct {
    int elements;
    size_t size;
    uint64_t crc;
    uint64_t count;
  } golden[] = {
      {1, 21, 0xab46b37270ab6281, 1},
      {2, 24, 0x8583ded40a69aea6, 2},
      {10, 48, 0xc0c9dbf95a92f73e, 10},
      {100, 285, 0x9db1c20ecd45d7a2, 99},
      {500, 1050, 0x30b98ce36c558ce5, 502},
      {1000, 1897, 0x67786718346436ab, 997},
      {5000, 12304, 0x1534b21959fa591c, 5005},
      {20000, 12304, 0xbf07d9766b396f9d, 19986},
      {100000, 12304, 0x6ae970d515ed5316, 100039},
  };
  std::string bytes = New();
  int n = 0;
  for (const auto& point : golden) {
    for (; n < point.elements; ++n) {
      const Change change = Set(&bytes, MarkOf("element:" + std::to_string(n)), kMost);
      ASSERT_NE(change, Change::kDamaged);
      if (change == Change::kChanged) ForgetCount(bytes.data());
    }
    EXPECT_EQ(bytes.size(), point.size) << n;
    EXPECT_EQ(base::Crc64(0, bytes), point.crc) << n;
    uint64_t count = 0;
    EXPECT_FALSE(KeptCount(bytes, &count));
    EXPECT_TRUE(Count(bytes, &count));
    EXPECT_EQ(count, point.count) << n;
    KeepCount(bytes.data(), count);
    EXPECT_TRUE(KeptCount(bytes, &count));
    EXPECT_EQ(count, point.count);
  }
}

TEST(HyperLogLog, BothFormsSayTheSame) {
  base::Rng rng(3);
  std::string sparse = New();
  std::string dense = New();
  ASSERT_TRUE(MakeDense(&dense));
  auto registers = std::make_unique<Registers>();
  for (int i = 0; i < 3000; ++i) {
    const Mark mark{static_cast<uint32_t>(rng.Below(kRegisters)),
                    static_cast<uint8_t>(1 + rng.Below(32))};
    EXPECT_EQ(Set(&sparse, mark, 1 << 20), Set(&dense, mark, kMost));
    uint8_t& expected = (*registers)[mark.index];
    expected = std::max(expected, mark.rank);
    EXPECT_EQ(DenseAt(dense.data(), mark.index), expected);
  }
  EXPECT_FALSE(IsDense(sparse));
  uint64_t counts[2] = {0, 1};
  EXPECT_TRUE(Count(sparse, &counts[0]));
  EXPECT_TRUE(Count(dense, &counts[1]));
  EXPECT_EQ(counts[0], counts[1]);
  EXPECT_EQ(counts[0], Count(*registers));
  for (const std::string* bytes : {&sparse, &dense}) {
    auto merged = std::make_unique<Registers>();
    EXPECT_TRUE(MergeInto(merged.get(), *bytes));
    EXPECT_EQ(*merged, *registers);
  }
  ASSERT_TRUE(MakeDense(&sparse));
  ForgetCount(sparse.data());
  ForgetCount(dense.data());
  EXPECT_EQ(sparse, dense);
}

TEST(HyperLogLog, ARankBeyondARunMakesItDense) {
  std::string bytes = New();
  EXPECT_EQ(Set(&bytes, {7, 32}, kMost), Change::kChanged);
  EXPECT_FALSE(IsDense(bytes));
  EXPECT_EQ(Describe(bytes), "z:7 v:32,1 Z:16376");
  EXPECT_EQ(Set(&bytes, {8, 33}, kMost), Change::kChanged);
  EXPECT_TRUE(IsDense(bytes));
  EXPECT_EQ(DenseAt(bytes.data(), 7), 32);
  EXPECT_EQ(DenseAt(bytes.data(), 8), 33);
  EXPECT_EQ(DenseAt(bytes.data(), 9), 0);
}

TEST(HyperLogLog, KnowsItsOwn) {
  EXPECT_TRUE(Valid(New()));
  EXPECT_FALSE(Valid(""));
  EXPECT_FALSE(Valid("HYLL"));
  std::string other = New();
  other[4] = 2;
  EXPECT_FALSE(Valid(other));
  other[4] = 0;
  EXPECT_FALSE(Valid(other));  // dense, but not of that size
  other = New();
  other[0] = 'h';
  EXPECT_FALSE(Valid(other));
}

// Any runs: refused or used, never beyond the string.
TEST(HyperLogLog, DamagedRunsDoNoHarm) {
  base::Rng rng(11);
  int refused = 0;
  for (int turn = 0; turn < 3000; ++turn) {
    std::string bytes = New().substr(0, kHead);
    for (uint64_t n = rng.Below(40); n > 0; --n) {
      bytes.push_back(static_cast<char>(rng.Below(4) == 0 ? 0x40 | rng.Below(64) : rng.Next()));
    }
    bytes.shrink_to_fit();
    uint64_t count = 0;
    auto registers = std::make_unique<Registers>();
    const bool counted = Count(bytes, &count);
    EXPECT_EQ(MergeInto(registers.get(), bytes), counted);
    std::string dense = bytes;
    EXPECT_EQ(MakeDense(&dense), counted);
    if (!counted) ++refused;
    Describe(bytes);
    for (int i = 0; i < 5; ++i) Set(&bytes, MarkOf(std::to_string(rng.Next())), kMost);
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace sava::types::hyperloglog
