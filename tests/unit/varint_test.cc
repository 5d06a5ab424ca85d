// Varints: exact bytes, every truncation, and what must be refused; and the corpus of the fuzz
// target for all encodings.
#include "base/varint.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>

#include "../../fuzz/encodings_property.h"
#include "base/sha256.h"

namespace sava::base {
namespace {

std::string Hex(std::string_view bytes) {
  return HexText(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

std::string Encoded(uint64_t value) {
  std::string bytes;
  AppendVarint(&bytes, value);
  return bytes;
}

// How many bytes were read, 0 when refused.
size_t Decode(std::string_view bytes, uint64_t* value) {
  const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
  const uint8_t* after = GetVarint(p, p + bytes.size(), value);
  return after == nullptr ? 0 : static_cast<size_t>(after - p);
}

TEST(Varint, GivesTheBytesOfTheDocumentsExample) {
  uint8_t buffer[kMaxVarintBytes + 1];
  EXPECT_EQ(PutVarint(buffer, 10), 1U);
  EXPECT_EQ(PutVarint(buffer + 1, 300), 2U);
  EXPECT_EQ(HexText(buffer, 3), "0aac02");
  uint64_t value = 0;
  const uint8_t* p = GetVarint(buffer, buffer + 3, &value);
  EXPECT_EQ(p, buffer + 1);
  EXPECT_EQ(value, 10U);
  p = GetVarint(p, buffer + 3, &value);
  EXPECT_EQ(p, buffer + 3);
  EXPECT_EQ(value, 300U);
}

TEST(Varint, TakesTheFewestBytes) {
  EXPECT_EQ(Hex(Encoded(0)), "00");
  EXPECT_EQ(Hex(Encoded(7)), "07");
  EXPECT_EQ(Hex(Encoded(127)), "7f");
  EXPECT_EQ(Hex(Encoded(128)), "8001");
  EXPECT_EQ(Hex(Encoded(16383)), "ff7f");
  EXPECT_EQ(Hex(Encoded(16384)), "808001");
  EXPECT_EQ(Hex(Encoded(UINT64_MAX)), "ffffffffffffffffff01");
  for (unsigned bits = 0; bits < 64; ++bits) {
    const uint64_t value = uint64_t{1} << bits;
    EXPECT_EQ(VarintSize(value), Encoded(value).size());
    EXPECT_EQ(VarintSize(value - 1), Encoded(value - 1).size());
  }
}

TEST(Varint, ComesBackFromItsBytesAndFromNoneOfItsPrefixes) {
  EXPECT_TRUE(rc::check([](uint64_t random, uint8_t shift) {
    const uint64_t value = random >> (shift % 64);
    const std::string bytes = Encoded(value);
    RC_ASSERT(bytes.size() == VarintSize(value));
    uint64_t decoded = 0;
    RC_ASSERT(Decode(bytes + "\xff", &decoded) == bytes.size());
    RC_ASSERT(decoded == value);
    for (size_t cut = 0; cut < bytes.size(); ++cut) {
      RC_ASSERT(Decode(std::string_view(bytes).substr(0, cut), &decoded) == 0U);
    }
  }));
}

TEST(Varint, RefusesWhatDoesNotFit) {
  uint64_t value = 0;
  EXPECT_EQ(Decode("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", &value), 10U);
  EXPECT_EQ(value, UINT64_MAX);
  EXPECT_EQ(Decode("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", &value), 0U);
  EXPECT_EQ(Decode("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f", &value), 0U);
  // Ten bytes that all promise another one.
  EXPECT_EQ(Decode(std::string(10, '\x80') + '\0', &value), 0U);
  EXPECT_EQ(Decode(std::string(11, '\xff'), &value), 0U);
  EXPECT_EQ(Decode("", &value), 0U);
}

TEST(Varint, AcceptsNeedlessZeros) {
  uint64_t value = 1;
  EXPECT_EQ(Decode(std::string_view("\x80\x00", 2), &value), 2U);
  EXPECT_EQ(value, 0U);
}

TEST(Varint, FoldsSignedNumbers) {
  EXPECT_EQ(ZigZag(0), 0U);
  EXPECT_EQ(ZigZag(-1), 1U);
  EXPECT_EQ(ZigZag(1), 2U);
  EXPECT_EQ(ZigZag(-2), 3U);
  EXPECT_EQ(ZigZag(INT64_MAX), UINT64_MAX - 1);
  EXPECT_EQ(ZigZag(INT64_MIN), UINT64_MAX);
  EXPECT_TRUE(rc::check([](int64_t value) {
    std::string bytes;
    AppendSignedVarint(&bytes, value);
    const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
    int64_t decoded = 0;
    RC_ASSERT(GetSignedVarint(p, p + bytes.size(), &decoded) == p + bytes.size());
    RC_ASSERT(decoded == value);
    RC_ASSERT(GetSignedVarint(p, p + bytes.size() - 1, &decoded) == nullptr);
  }));
}

TEST(FuzzCorpus, EncodingsHoldTheirProperty) {
  const std::filesystem::path corpus =
      std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/encodings";
  int replayed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)),
                            std::istreambuf_iterator<char>());
    EXPECT_EQ(CheckEncodings(bytes), "") << entry.path();
    ++replayed;
  }
  EXPECT_GE(replayed, 18);
}

}  // namespace
}  // namespace sava::base
