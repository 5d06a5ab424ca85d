// The checksums against published check values and recorded payloads.
#include "base/crc.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace sava::base {
namespace {

TEST(Crc64, HasTheCheckValueOfTheJonesPolynomial) {
  EXPECT_EQ(Crc64(0, "123456789"), 0xe9c6d914c4b8d9caULL);
  EXPECT_EQ(Crc64(0, ""), 0U);
}

TEST(Crc64, MayBeTakenInPieces) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>(i * 37);
  const uint64_t whole = Crc64(0, text);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const std::string_view view = text;
    EXPECT_EQ(Crc64(Crc64(0, view.substr(0, cut)), view.substr(cut)), whole) << cut;
  }
}

// Long texts are taken by another way than short ones.
TEST(Crc64, IsTheSameForLongTextsAsByteForByte) {
  std::mt19937_64 random(1);
  std::string text;
  for (int i = 0; i < 1200; ++i) text += static_cast<char>(random());
  for (size_t begin = 0; begin < 20; ++begin) {
    uint64_t crc = random();
    const uint64_t before = crc;
    for (size_t size = 1; begin + size <= text.size(); ++size) {
      crc = Crc64(crc, std::string_view(text).substr(begin + size - 1, 1));
      ASSERT_EQ(Crc64(before, std::string_view(text).substr(begin, size)), crc) << size;
    }
  }
}

TEST(Crc64, SeesEveryFlippedBit) {
  std::string text = "some bytes that are long enough for both loops";
  const uint64_t crc = Crc64(0, text);
  for (size_t bit = 0; bit < text.size() * 8; ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(Crc64(0, text), crc) << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
  }
}

TEST(Crc16, HasTheCheckValueOfXmodem) {
  EXPECT_EQ(Crc16("123456789"), 0x31c3);
  EXPECT_EQ(Crc16(""), 0);
}

TEST(KeySlot, HashesThePartInBraces) {
  EXPECT_EQ(KeySlot("foo"), 12182);
  EXPECT_EQ(KeySlot("bar"), 5061);
  EXPECT_EQ(KeySlot("{user1000}.following"), KeySlot("{user1000}.followers"));
  EXPECT_EQ(KeySlot("{user1000}.following"), KeySlot("user1000"));
}

TEST(KeySlot, TakesTheWholeKeyWithoutAProperTag) {
  EXPECT_EQ(KeySlot("foo{}bar"), Crc16("foo{}bar") & 16383);
  EXPECT_EQ(KeySlot("foo{bar"), Crc16("foo{bar") & 16383);
  EXPECT_EQ(KeySlot("}foo{"), Crc16("}foo{") & 16383);
  // Only the first pair counts.
  EXPECT_EQ(KeySlot("foo{{bar}}zap"), KeySlot("{bar"));
  EXPECT_EQ(KeySlot("foo{bar}{zap}"), KeySlot("bar"));
}

}  // namespace
}  // namespace sava::base
