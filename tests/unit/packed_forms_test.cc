// The packed forms of Redis's files: golden bytes of Redis 7.0.15 and bytes built by hand, every
// single damage refused or harmless, and what is written read back.
#include "types/collections/packed_forms.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "../../fuzz/packed_forms_property.h"

namespace sava::types {
namespace {

using Texts = std::vector<std::string>;

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

std::string Little(uint64_t value, size_t width) {
  std::string bytes;
  for (size_t i = 0; i < width; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  return bytes;
}

std::string TextOf(const PackedItem& item) {
  PackedItem::Scratch scratch;
  return std::string(item.Text(scratch));
}

bool ReadListpack(std::string_view bytes, Texts* texts) {
  return ForEachListpack(bytes, [texts](const PackedItem& item) {
    texts->push_back(TextOf(item));
    return true;
  });
}

bool ReadZiplist(std::string_view bytes, Texts* texts) {
  return ForEachZiplist(bytes, [texts](const PackedItem& item) {
    texts->push_back(TextOf(item));
    return true;
  });
}

// The list 0 127 -1 128 4095 ... as Redis 7.0.15 packs it.
const Texts kGoldenTexts = {"0",
                            "127",
                            "-1",
                            "128",
                            "4095",
                            "-4096",
                            "4096",
                            "-32768",
                            "32767",
                            "8388607",
                            "-8388608",
                            "2147483647",
                            "-9223372036854775808",
                            "a",
                            "",
                            "012",
                            std::string(64, 'x')};
std::string GoldenListpack() {
  std::string hex =
      "8a000000110000017f01dfff02c08002cfff02d00002f1001003f1008003f1ff7f03f2ffff7f04f200008004"
      "f3ffffff7f05f400000000000000800981610280018330313204e040";
  for (int i = 0; i < 64; ++i) hex += "78";
  return FromHex(hex + "42ff");
}

TEST(Listpack, ReadsWhatRedisWrites) {
  Texts texts;
  EXPECT_TRUE(ReadListpack(GoldenListpack(), &texts));
  EXPECT_EQ(texts, kGoldenTexts);
}

TEST(Listpack, WritesWhatRedisWrites) {
  ListpackWriter writer;
  size_t size = 7;
  for (const std::string& text : kGoldenTexts) {
    writer.Add(text);
    size += ListpackSize(text);
    EXPECT_EQ(writer.size(), size);
  }
  EXPECT_EQ(writer.count(), kGoldenTexts.size());
  EXPECT_EQ(writer.Finish(), GoldenListpack());
  EXPECT_EQ(writer.count(), 0U);
  EXPECT_EQ(writer.Finish(), FromHex("070000000000ff"));
}

// From 16383 bytes on, a back length takes three bytes.
TEST(Listpack, CountsBackLengthsAsRedisDoes) {
  for (const auto& [size, tail] : std::vector<std::pair<size_t, std::string>>{
           {16377, "7ffeff"}, {16378, "00ffffff"}, {16379, "018080ff"}}) {
    ListpackWriter writer;
    writer.Add(std::string(size, 'q'));
    const std::string bytes = writer.Finish();
    EXPECT_EQ(bytes.substr(bytes.size() - tail.size() / 2), FromHex(tail)) << size;
    Texts texts;
    EXPECT_TRUE(ReadListpack(bytes, &texts));
    EXPECT_EQ(texts, Texts{std::string(size, 'q')});
  }
}

TEST(Listpack, ManyElementsAreCountedNotStated) {
  ListpackWriter writer;
  for (int i = 0; i < 70'000; ++i) writer.AddInt(i);
  const std::string bytes = writer.Finish();
  EXPECT_EQ(bytes.substr(4, 2), "\xff\xff");
  Texts texts;
  EXPECT_TRUE(ReadListpack(bytes, &texts));
  EXPECT_EQ(texts.size(), 70'000U);
}

TEST(Listpack, RefusesDamage) {
  const std::string good = GoldenListpack();
  const auto bad = [](const std::string& bytes) {
    Texts texts;
    return !ReadListpack(bytes, &texts);
  };
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_TRUE(bad(good.substr(0, i))) << i;
    if (i + 1 < good.size()) {
      EXPECT_TRUE(bad(good.substr(0, i) + '\xff')) << i;
    }
  }
  std::string other = good;
  other[4] = 16;  // the count
  EXPECT_TRUE(bad(other));
  other = good;
  other[7] = 2;  // a back length
  EXPECT_TRUE(bad(other));
  EXPECT_TRUE(bad(good + '\xff'));
  // A string of 4 GB less one, and encodings that do not exist.
  EXPECT_TRUE(bad(FromHex("0d0000000100f0ffffffff05ff")));
  for (const char* code : {"f5", "fa", "fe"}) {
    EXPECT_TRUE(bad(FromHex("090000000100" + std::string(code) + "01ff"))) << code;
  }
}

// ---- ziplists: no server at hand writes them ----

std::string Ziplist(const Texts& entries, uint16_t count) {
  std::string body;
  size_t last = 10;
  for (const std::string& entry : entries) {
    last = 10 + body.size();
    body += entry;
  }
  const std::string head = Little(11 + body.size(), 4) + Little(last, 4) + Little(count, 2);
  return head + body + '\xff';
}

TEST(Ziplist, ReadsEveryEncoding) {
  const std::string long_text(300, 'y');
  const Texts entries = {
      FromHex("0002") + "ab",                 // 6-bit length
      FromHex("04412c") + long_text,          // 14-bit length, big-endian
      FromHex("fe2f010000") + FromHex("f1"),  // long back length; 0
      FromHex("06fd"),                        // 12
      FromHex("02fe80"),                      // -128
      FromHex("03c00080"),                    // -32768
      FromHex("04f0000080"),                  // -8388608
      FromHex("05d0000000"
              "80"),                    // -2147483648
      FromHex("06e00000000000000080"),  // the least
      FromHex("0a"
              "8000000003") +
          "xyz",        // 32-bit length, big-endian
      FromHex("0900"),  // empty
  };
  Texts texts;
  EXPECT_TRUE(ReadZiplist(Ziplist(entries, 11), &texts));
  EXPECT_EQ(texts, (Texts{"ab", long_text, "0", "12", "-128", "-32768", "-8388608", "-2147483648",
                          "-9223372036854775808", "xyz", ""}));
  texts.clear();
  EXPECT_TRUE(ReadZiplist(Ziplist(entries, 0xFFFF), &texts));
  EXPECT_FALSE(ReadZiplist(Ziplist(entries, 10), &texts));
}

TEST(Ziplist, RefusesDamage) {
  const std::string good =
      Ziplist({FromHex("0001") + "a", FromHex("03f3"), FromHex("02c00102")}, 3);
  Texts texts;
  EXPECT_TRUE(ReadZiplist(good, &texts));
  EXPECT_EQ(texts, (Texts{"a", "2", "513"}));
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(ReadZiplist(good.substr(0, i), &texts)) << i;
    // Every byte but those of the values themselves matters.
    if (i == 12 || i == 14 || i == 17 || i == 18) continue;
    std::string other = good;
    other[i] = static_cast<char>(other[i] ^ 0x41);
    EXPECT_FALSE(ReadZiplist(other, &texts)) << i;
  }
}

TEST(Ziplist, AnEmptyOneIsSound) {
  Texts texts;
  EXPECT_TRUE(ReadZiplist(FromHex("0b0000000a0000000000ff"), &texts));
  EXPECT_TRUE(texts.empty());
}

// ---- zipmaps ----

bool ReadZipmap(std::string_view bytes, Texts* texts) {
  return ForEachZipmap(bytes, [texts](std::string_view field, std::string_view value) {
    texts->push_back(std::string(field) + "=" + std::string(value));
    return true;
  });
}

TEST(Zipmap, ReadsFieldsAndValues) {
  // foo => bar, hello => world with three bytes to spare, a long value.
  const std::string long_value(260, 'v');
  const std::string bytes = std::string("\x03\x03") + "foo" + std::string("\x03\x00", 2) + "bar" +
                            "\x05" + "hello" + "\x05\x03" + "world" + "..." + "\x01" + "k" +
                            "\xfe" + Little(260, 4) + std::string(1, '\0') + long_value + "\xff";
  Texts texts;
  EXPECT_TRUE(ReadZipmap(bytes, &texts));
  EXPECT_EQ(texts, (Texts{"foo=bar", "hello=world", "k=" + long_value}));
  std::string other = bytes;
  other[0] = '\xfe';
  EXPECT_TRUE(ReadZipmap(other, &texts));
  other[0] = 2;
  EXPECT_FALSE(ReadZipmap(other, &texts));
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(ReadZipmap(bytes.substr(0, i), &texts)) << i;
  }
}

// ---- intsets ----

TEST(Intset, AreThoseOfRedis) {
  const std::pair<std::vector<int64_t>, const char*> golden[] = {
      {{-2, 1, 300}, "0200000003000000feff01002c01"},
      {{-5, 70000}, "0400000002000000fbffffff70110100"},
      {{1, int64_t{1} << 40}, "080000000200000001000000000000000000000000010000"},
  };
  for (const auto& [values, hex] : golden) {
    EXPECT_EQ(WriteIntset(values), FromHex(hex));
    std::vector<int64_t> read;
    EXPECT_TRUE(ForEachIntset(FromHex(hex), [&read](int64_t value) {
      read.push_back(value);
      return true;
    }));
    EXPECT_EQ(read, values);
  }
}

TEST(Intset, RefusesDamage) {
  for (const char* hex : {"", "02000000", "0200000000000000", "02000000010000000100ff",
                          "0300000001000000010000", "020000000200000001000100",
                          "020000000200000002000100", "0200000001000000", "0200000000000080"}) {
    EXPECT_FALSE(ForEachIntset(FromHex(hex), [](int64_t) { return true; })) << hex;
  }
}

// ---- any bytes ----

TEST(PackedForms, WhatIsWrittenIsReadBack) {
  EXPECT_TRUE(rc::check([] {
    const auto texts = *rc::gen::container<Texts>(rc::gen::oneOf(
        rc::gen::arbitrary<std::string>(),
        rc::gen::map(rc::gen::arbitrary<int64_t>(), [](int64_t n) { return std::to_string(n); })));
    ListpackWriter writer;
    for (const std::string& text : texts) writer.Add(text);
    Texts read;
    RC_ASSERT(ReadListpack(writer.Finish(), &read));
    RC_ASSERT(read == texts);
  }));
}

TEST(PackedForms, TheSeedsOfTheFuzzTargetHold) {
  int seeds = 0;
  const auto folder = std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/packed_forms";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    EXPECT_EQ(CheckPackedForm(bytes), "") << entry.path();
    ++seeds;
  }
  EXPECT_GE(seeds, 5);
}

}  // namespace
}  // namespace sava::types
