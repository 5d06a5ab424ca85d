// Packed integers and the hybrid of runs and groups: exact bytes, round trips at every width, cuts
// at every byte, and headers that lie.
#include "base/bit_packing.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.h"
#include "base/varint.h"

namespace sava::base {
namespace {

using Numbers = std::vector<uint64_t>;

std::span<const uint8_t> Bytes(std::string_view bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

std::string Hex(std::string_view bytes) { return HexText(Bytes(bytes).data(), bytes.size()); }

std::string Packed(const Numbers& values, unsigned width) {
  std::string bytes;
  PackBits(std::span<const uint64_t>(values), width, &bytes);
  return bytes;
}

std::string Hybrid(const Numbers& values, unsigned width) {
  std::string bytes;
  EncodeHybrid(std::span<const uint64_t>(values), width, &bytes);
  return bytes;
}

// Whether exactly `count` values stand in `bytes`, and nothing after them.
bool IsHybrid(std::string_view bytes, unsigned width, size_t count, Numbers* values = nullptr) {
  Numbers decoded(count);
  const std::span<const uint8_t> span = Bytes(bytes);
  const uint8_t* end = span.data() + span.size();
  if (DecodeHybrid(span.data(), end, width, std::span<uint64_t>(decoded)) != end) return false;
  if (values != nullptr) *values = decoded;
  return true;
}

// Values that fit `width` bits, in stretches of equal ones, so that runs come up.
Numbers SomeNumbers(unsigned width) {
  Numbers values;
  const uint64_t mask = width == 0 ? 0 : ~uint64_t{0} >> (64 - width);
  for (const auto& [value, times] : *rc::gen::container<std::vector<std::pair<uint64_t, uint8_t>>>(
           rc::gen::pair(rc::gen::arbitrary<uint64_t>(), rc::gen::arbitrary<uint8_t>()))) {
    const size_t length = times % 4 == 0 ? times : 1;
    values.insert(values.end(), length, (value * 0x9e3779b97f4a7c15ULL) & mask);
  }
  return values;
}

TEST(BitPacking, FillsBytesFromTheLowestBit) {
  const Numbers values = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(Hex(Packed(values, 3)), "88c6fa");
  EXPECT_EQ(Hex(Packed({1, 0, 1, 1}, 1)), "0d");
  EXPECT_EQ(Hex(Packed({0x1234, 0xabcd}, 16)), "3412cdab");
  EXPECT_EQ(Hex(Packed({UINT64_MAX, 1}, 64)), "ffffffffffffffff0100000000000000");
  EXPECT_EQ(Packed({0, 0, 0}, 0), "");
}

TEST(BitPacking, TheWidthIsTheSmallestThatFits) {
  EXPECT_EQ(BitsFor(0), 0U);
  EXPECT_EQ(BitsFor(1), 1U);
  EXPECT_EQ(BitsFor(255), 8U);
  EXPECT_EQ(BitsFor(256), 9U);
  EXPECT_EQ(BitsFor(UINT32_MAX), 32U);
  EXPECT_EQ(BitsFor(UINT64_MAX), 64U);
  EXPECT_EQ(PackedSize(3, 3), 2U);
  EXPECT_EQ(PackedSize(8, 0), 0U);
}

TEST(BitPacking, EveryWidthComesBack) {
  for (unsigned width = 0; width <= 64; ++width) {
    EXPECT_TRUE(rc::check([width] {
      const Numbers values = SomeNumbers(width);
      const std::string bytes = Packed(values, width);
      RC_ASSERT(bytes.size() == PackedSize(values.size(), width));
      Numbers decoded(values.size());
      RC_ASSERT(UnpackBits(Bytes(bytes), width, std::span<uint64_t>(decoded)));
      RC_ASSERT(decoded == values);
      if (!values.empty()) {
        const size_t i = *rc::gen::inRange<size_t>(0, values.size());
        RC_ASSERT(PackedAt(Bytes(bytes), width, i) == values[i]);
      }
      if (!bytes.empty()) {
        const std::string_view cut = std::string_view(bytes).substr(0, bytes.size() - 1);
        RC_ASSERT(!UnpackBits(Bytes(cut), width, std::span<uint64_t>(decoded)));
      }
    })) << width;
  }
}

TEST(BitPacking, RefusesAWidthTheTypeDoesNotHave) {
  const std::string bytes(64, '\1');
  uint32_t narrow[1];
  uint64_t wide[1];
  EXPECT_TRUE(UnpackBits(Bytes(bytes), 32, std::span<uint32_t>(narrow)));
  EXPECT_FALSE(UnpackBits(Bytes(bytes), 33, std::span<uint32_t>(narrow)));
  EXPECT_TRUE(UnpackBits(Bytes(bytes), 64, std::span<uint64_t>(wide)));
  EXPECT_FALSE(UnpackBits(Bytes(bytes), 65, std::span<uint64_t>(wide)));
  EXPECT_EQ(
      DecodeHybrid(Bytes(bytes).data(), Bytes(bytes).data() + 64, 65, std::span<uint64_t>(wide)),
      nullptr);
}

TEST(Hybrid, GivesTheBytesOfTheFormatPage) {
  EXPECT_EQ(Hex(Hybrid({0, 1, 2, 3, 4, 5, 6, 7}, 3)), "0388c6fa");
  EXPECT_EQ(Hex(Hybrid(Numbers(100, 5), 3)), "c80105");
  Numbers both(100, 5);
  both.insert(both.end(), {1, 2, 3});
  EXPECT_EQ(Hex(Hybrid(both, 3)), "c8010503d100");
  EXPECT_EQ(Hex(Hybrid(Numbers(1000, 0), 0)), "fb01");
  EXPECT_EQ(Hybrid({}, 7), "");
}

TEST(Hybrid, ARunStandsWhereItIsShorter) {
  // Sixteen bits packed are two bytes, and so are a run's header and value.
  EXPECT_EQ(Hex(Hybrid(Numbers(15, 1), 1)), "05ff7f");
  EXPECT_EQ(Hex(Hybrid(Numbers(16, 1), 1)), "2001");
  // Wide values repeat twice at the end, and that already pays.
  EXPECT_EQ(Hex(Hybrid(Numbers(2, 0xffffffff), 32)), "04ffffffff");
}

TEST(Hybrid, ComesBackAtEveryWidthAndIsNeverMuchLongerThanPacked) {
  for (unsigned width = 0; width <= 64; ++width) {
    EXPECT_TRUE(rc::check([width] {
      const Numbers values = SomeNumbers(width);
      const std::string bytes = Hybrid(values, width);
      Numbers decoded;
      RC_ASSERT(IsHybrid(bytes, width, values.size(), &decoded));
      RC_ASSERT(decoded == values);
      const size_t header = VarintSize((values.size() + 7) / 8 * 2 + 1);
      RC_ASSERT(bytes.size() <= header + PackedSize(values.size(), width));
    })) << width;
  }
}

TEST(Hybrid, NarrowTypesGiveTheSameBytes) {
  EXPECT_TRUE(rc::check([] {
    const unsigned width = *rc::gen::inRange(0U, 33U);
    const Numbers values = SomeNumbers(width);
    const std::vector<uint32_t> narrow(values.begin(), values.end());
    std::string bytes;
    EncodeHybrid(std::span<const uint32_t>(narrow), width, &bytes);
    RC_ASSERT(bytes == Hybrid(values, width));
    std::vector<uint32_t> decoded(narrow.size());
    const std::span<const uint8_t> span = Bytes(bytes);
    RC_ASSERT(DecodeHybrid(span.data(), span.data() + span.size(), width,
                           std::span<uint32_t>(decoded)) == span.data() + span.size());
    RC_ASSERT(decoded == narrow);
  }));
}

TEST(Hybrid, EveryCutIsNoticed) {
  Numbers values(300, 9);
  for (uint64_t i = 0; i < 100; ++i) values.push_back(i % 16);
  const std::string bytes = Hybrid(values, 4);
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_FALSE(IsHybrid(std::string_view(bytes).substr(0, cut), 4, values.size())) << cut;
  }
  EXPECT_TRUE(IsHybrid(bytes, 4, values.size()));
}

TEST(Hybrid, RefusesSegmentsThatLie) {
  const std::string huge = "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01";
  EXPECT_FALSE(IsHybrid(huge + "\x01", 1, 1000));                         // a run of 2^63 - 1
  EXPECT_FALSE(IsHybrid(std::string("\xff") + huge.substr(1), 1, 1000));  // as many groups
  EXPECT_FALSE(IsHybrid("\x12\x01", 1, 8));                               // a run of nine for eight
  EXPECT_FALSE(IsHybrid("\x05\x01\x01", 1, 8));                           // two groups for eight
  EXPECT_FALSE(IsHybrid(std::string_view("\x00\x01", 2), 1, 8));          // an empty run
  EXPECT_FALSE(IsHybrid("\x01\x10\x01", 1, 8));                           // no groups
  EXPECT_FALSE(IsHybrid("\x10\x02", 1, 8));  // a value wider than the width
  EXPECT_FALSE(IsHybrid("\x03\xff", 1, 7));  // a bit behind the last value
  EXPECT_TRUE(IsHybrid("\x10\x01", 1, 8));
  EXPECT_TRUE(IsHybrid("\x03\x7f", 1, 7));
}

}  // namespace
}  // namespace sava::base
