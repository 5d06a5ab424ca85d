// Code points in and out of UTF-8, words, lower case.
#include "base/unicode.h"

#include <gtest/gtest.h>

#include <string>

namespace sava::base {
namespace {

TEST(Unicode, EveryCodePointComesBack) {
  for (uint32_t point = 0; point < 0x110000; ++point) {
    if (point >= 0xd800 && point <= 0xdfff) continue;
    std::string bytes;
    AppendCodePoint(&bytes, point);
    std::string_view rest = bytes;
    ASSERT_EQ(TakeCodePoint(&rest), point);
    ASSERT_TRUE(rest.empty()) << point;
  }
}

TEST(Unicode, WhatIsNoUtf8IsOneByte) {
  for (const std::string bytes :
       {"\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff",
        "\xe2\x82", "\xf0\x9f\x98", "\xc3(", "\xf8\x88\x80\x80\x80"}) {
    std::string_view rest = bytes;
    EXPECT_EQ(TakeCodePoint(&rest), kNoCodePoint) << bytes;
    EXPECT_EQ(rest.size(), bytes.size() - 1);
  }
}

TEST(Unicode, KnowsWordsAndLowerCase) {
  EXPECT_TRUE(IsWordPart('a'));
  EXPECT_TRUE(IsWordPart('Z'));
  EXPECT_TRUE(IsWordPart('0'));
  EXPECT_TRUE(IsWordPart(0x161));   // š
  EXPECT_TRUE(IsWordPart(0x301));   // combining acute accent
  EXPECT_TRUE(IsWordPart(0x4e2d));  // 中
  EXPECT_TRUE(IsWordPart(0x966));   // Devanagari zero
  EXPECT_FALSE(IsWordPart('_'));
  EXPECT_FALSE(IsWordPart(' '));
  EXPECT_FALSE(IsWordPart('@'));
  EXPECT_FALSE(IsWordPart('['));
  EXPECT_FALSE(IsWordPart(0x2014));   // dash
  EXPECT_FALSE(IsWordPart(0x1f600));  // face
  EXPECT_FALSE(IsWordPart(kNoCodePoint));
  EXPECT_EQ(LowerCase('A'), 'a');
  EXPECT_EQ(LowerCase('z'), 'z');
  EXPECT_EQ(LowerCase('['), '[');
  EXPECT_EQ(LowerCase(0x160), 0x161U);      // Š
  EXPECT_EQ(LowerCase(0x161), 0x161U);      // š
  EXPECT_EQ(LowerCase(0x416), 0x436U);      // Ж
  EXPECT_EQ(LowerCase(0x130), 0x69U);       // İ
  EXPECT_EQ(LowerCase(0x10400), 0x10428U);  // beyond 16 bits
  EXPECT_EQ(LowerCase(0x10ffff), 0x10ffffU);
  EXPECT_EQ(LowerCase(kNoCodePoint), kNoCodePoint);
  // A lower case has none of its own.
  for (uint32_t point = 0; point < 0x110000; ++point) {
    ASSERT_EQ(LowerCase(LowerCase(point)), LowerCase(point)) << point;
  }
}

}  // namespace
}  // namespace sava::base
