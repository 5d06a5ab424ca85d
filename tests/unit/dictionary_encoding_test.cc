// Dictionary encoding: exact bytes, round trips, when it pays, and input nobody should trust.
#include "base/dictionary_encoding.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../../fuzz/encodings_property.h"
#include "base/sha256.h"

namespace sava::base {
namespace {

using Views = std::vector<std::string_view>;
constexpr DictionaryLimits kAmple{1 << 20, 1 << 24};

std::string Hex(std::string_view bytes) {
  return HexText(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

std::string Encoded(const Views& values) {
  std::string bytes;
  DictionaryEncoder(values).AppendTo(&bytes);
  return bytes;
}

// Whether the bytes are a dictionary from the first to the last.
bool IsDictionary(std::string_view bytes, const DictionaryLimits& limits = kAmple) {
  const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
  const uint8_t* begin = p;
  const uint8_t* end = p + bytes.size();
  const bool read = DecodeDictionary(&p, end, limits).has_value();
  EXPECT_TRUE(read || p == begin);
  return read && p == end;
}

bool IsPlain(std::string_view bytes, const DictionaryLimits& limits = kAmple) {
  const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
  const uint8_t* end = p + bytes.size();
  return DecodePlainStrings(&p, end, limits).has_value() && p == end;
}

TEST(Dictionary, GivesTheBytesOfTheFormatPage) {
  // 4 values, 2 of them distinct: "red", "blue"; then 0, 1, 1, 0 in one bit each.
  EXPECT_EQ(Hex(Encoded({"red", "blue", "blue", "red"})),
            "0402"
            "03726564"
            "04626c7565"
            "0306");
  EXPECT_EQ(Hex(Encoded({})), "0000");
  EXPECT_EQ(Hex(Encoded({""})), "01010003");
  EXPECT_EQ(Hex(Encoded(Views(200, "a"))),
            "c801"
            "01"
            "0161"
            "33");
}

TEST(Dictionary, NumbersValuesInOrderOfFirstAppearance) {
  const DictionaryEncoder encoder(Views{"z", "a", "z", "m", "a"});
  EXPECT_EQ(Views(encoder.distinct().begin(), encoder.distinct().end()), (Views{"z", "a", "m"}));
}

TEST(Dictionary, ComesBack) {
  EXPECT_TRUE(rc::check([](const std::vector<std::string>& distinct) {
    const auto picks = *rc::gen::arbitrary<std::vector<uint16_t>>();
    Views values;
    for (const uint16_t pick : picks) {
      if (!distinct.empty()) values.push_back(distinct[pick % distinct.size()]);
    }
    RC_ASSERT(CheckDictionaryRoundTrip(values) == "");
    const DictionaryEncoder encoder(values);
    std::string plain;
    AppendPlainStrings(&plain, values);
    RC_ASSERT(plain.size() == encoder.plain_size());
    RC_ASSERT(encoder.pays() == (Encoded(values).size() < plain.size()));
    const auto* p = reinterpret_cast<const uint8_t*>(plain.data());
    const auto decoded = DecodePlainStrings(&p, p + plain.size(), kAmple);
    RC_ASSERT(decoded && *decoded == values);
  }));
}

TEST(Dictionary, PaysWhereLongValuesRepeat) {
  const std::string long_value(36, 'u');
  Views repeated;
  Views different;
  std::vector<std::string> texts;
  for (int i = 0; i < 100; ++i) texts.push_back(long_value + std::to_string(i));
  for (int i = 0; i < 100; ++i) {
    repeated.push_back(texts[static_cast<size_t>(i) % 10]);
    different.push_back(texts[static_cast<size_t>(i)]);
  }
  EXPECT_TRUE(DictionaryEncoder(repeated).pays());
  EXPECT_FALSE(DictionaryEncoder(different).pays());
  EXPECT_FALSE(DictionaryEncoder(Views{}).pays());
  // Ten values of 38 bytes and four bits each, instead of a hundred values.
  EXPECT_EQ(DictionaryEncoder(repeated).encoded_size(), 1 + 1 + 10 * 38 + 1 + 50U);
  EXPECT_EQ(DictionaryEncoder(repeated).plain_size(), 1 + 100 * 38U);
}

TEST(Dictionary, StandsBetweenOtherBytes) {
  const std::string bytes = Encoded({"a", "b", "a"}) + "rest";
  const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
  const uint8_t* end = p + bytes.size();
  ASSERT_TRUE(DecodeDictionary(&p, end, kAmple));
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(p), 4), "rest");
}

TEST(Dictionary, EveryCutIsNoticed) {
  const std::string bytes = Encoded({"red", "blue", "", "blue", "a longer one", "red"});
  std::string plain;
  AppendPlainStrings(&plain, Views{"red", "blue", ""});
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_FALSE(IsDictionary(std::string_view(bytes).substr(0, cut))) << cut;
  }
  for (size_t cut = 0; cut < plain.size(); ++cut) {
    EXPECT_FALSE(IsPlain(std::string_view(plain).substr(0, cut))) << cut;
  }
  EXPECT_TRUE(IsDictionary(bytes));
  EXPECT_TRUE(IsPlain(plain));
}

TEST(Dictionary, RefusesCountsThatLie) {
  constexpr DictionaryLimits kNone{SIZE_MAX, SIZE_MAX};
  EXPECT_FALSE(IsDictionary(FromHex("ffffffffffffffffff01ffffffffffffffffff01"), kNone));
  EXPECT_FALSE(IsDictionary(FromHex("ffffffff0fffffffff0f0161"), kNone));
  EXPECT_FALSE(IsDictionary(FromHex("0201"
                                    "ffffffffffffffff7f"
                                    "61"
                                    "04"),
                            kNone));
  EXPECT_FALSE(IsDictionary(FromHex("0102"
                                    "0161"
                                    "0162"
                                    "0300"),
                            kNone));  // more than values
  EXPECT_FALSE(IsDictionary(FromHex("0100"), kNone));
  EXPECT_FALSE(IsDictionary(FromHex("0001"
                                    "0161"),
                            kNone));
  EXPECT_FALSE(IsPlain(FromHex("ffffffffffffffffff01"
                               "0161"),
                       kNone));
}

TEST(Dictionary, RefusesWhatNoEncoderWrites) {
  EXPECT_TRUE(
      IsDictionary(FromHex("0202"
                           "0161"
                           "0162"
                           "0302")));
  EXPECT_FALSE(
      IsDictionary(FromHex("0202"
                           "0161"
                           "0161"
                           "0302")));  // a value twice
  EXPECT_FALSE(
      IsDictionary(FromHex("0202"
                           "0161"
                           "0162"
                           "0300")));  // one never used
  EXPECT_FALSE(
      IsDictionary(FromHex("0202"
                           "0161"
                           "0162"
                           "0301")));  // the second one first
  EXPECT_TRUE(
      IsDictionary(FromHex("0303"
                           "0161"
                           "0162"
                           "0163"
                           "0324")));
  EXPECT_FALSE(
      IsDictionary(FromHex("0303"
                           "0161"
                           "0162"
                           "0163"
                           "0334")));  // id 3 of three
}

TEST(Dictionary, KeepsTheCallersLimits) {
  const std::string bytes = Encoded(Views(100, "0123456789"));
  EXPECT_LT(bytes.size(), 20U);
  EXPECT_TRUE(IsDictionary(bytes, {100, 1000}));
  EXPECT_FALSE(IsDictionary(bytes, {99, 1000}));
  EXPECT_FALSE(IsDictionary(bytes, {100, 999}));
  std::string plain;
  AppendPlainStrings(&plain, Views(100, "0123456789"));
  EXPECT_TRUE(IsPlain(plain, {100, 1000}));
  EXPECT_FALSE(IsPlain(plain, {99, 1000}));
  EXPECT_FALSE(IsPlain(plain, {100, 999}));
}

}  // namespace
}  // namespace sava::base
