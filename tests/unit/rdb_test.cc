// RDB files: recorded files of redis-server 7.0.15 and of our own writer, round trips, exact bytes,
// and damaged input of every kind.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "../../fuzz/afc_load_property.h"
#include "../../fuzz/rdb_property.h"
#include "base/crc.h"
#include "base/rng.h"
#include "rdb_golden.h"
#include "storage/rdb_reader.h"
#include "storage/rdb_writer.h"

namespace sava::storage {
namespace {

const std::filesystem::path kGolden = std::filesystem::path(SAVA_SOURCE_DIR) / "tests/golden/rdb";

std::string FileBytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += hex[i] == ' ' ? 1 : 2) {
    if (hex[i] == ' ') continue;
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

// A file without a checksum around `records`.
std::string FileOf(std::string_view records, std::string_view version = "0010") {
  return "REDIS" + std::string(version) + std::string(records) + "\xff" + std::string(8, '\0');
}

RdbEnd Read(std::string_view file, RecordingSink* sink) {
  return ReadRdb(file, types::AllTypes(), *sink);
}

// What is wrong with the file, as "OFFSET TEXT"; empty when nothing is.
std::string ErrorOf(std::string_view file, bool skips = true) {
  RecordingSink sink;
  sink.skips = skips;
  sink.databases = 16;
  const RdbEnd end = Read(file, &sink);
  if (!end.error) return "";
  return std::to_string(end.error->offset) + " " + end.error->text;
}

// ---- exact bytes ----

TEST(RdbWriter, WritesTheseBytes) {
  const std::string file = Written({.compress = false}, [](RdbWriter& out) {
    out.Begin({.redis_version = "7.2.4", .ctime_s = 1'700'000'000, .used_memory = 1000});
    out.Function("#!lua name=f\n");
    out.SelectDb(1, 2, 1);
    out.String({"k", 0x0102030405060708, 70, 9}, "v");
    out.Number({"7"}, -1);
    out.End();
  });
  std::string expected =
      "REDIS0010"
      "\xfa\x09redis-ver\x05"
      "7.2.4"
      "\xfa\x0aredis-bits\xc0\x40"
      "\xfa\x05"
      "ctime\xc2";
  expected += FromHex("00f15365");
  expected += "\xfa\x08used-mem\xc1\xe8\x03\xfa\x08";
  expected += "aof-base";
  expected += FromHex("c000");
  expected += "\xf5\x0d#!lua name=f\n";
  expected += FromHex("fe01 fb0201 fc0807060504030201 f84046 f909 00 016b 0176 00 c007 c0ff ff");
  const uint64_t crc = base::Crc64(0, expected);
  expected.append(reinterpret_cast<const char*>(&crc), 8);
  EXPECT_EQ(file, expected);
}

TEST(RdbWriter, EndsTheSmallestFileAsRedisDoes) {
  std::string file = "REDIS0010\xff";
  const uint64_t crc = base::Crc64(0, file);
  file.append(reinterpret_cast<const char*>(&crc), 8);
  RecordingSink sink;
  const RdbEnd end = Read(file, &sink);
  EXPECT_FALSE(end.error);
  EXPECT_TRUE(end.checked);
  EXPECT_EQ(end.size, 18U);
}

TEST(RdbWriter, HandsOnPiecesAndCountsThem) {
  std::string file;
  size_t largest = 0;
  RdbWriter out(
      [&](std::string_view bytes) {
        file += bytes;
        largest = std::max(largest, bytes.size());
      },
      {});
  out.Begin(kGoldenOrigin);
  for (int i = 0; i < 20'000; ++i) out.Number({"key " + std::to_string(i)}, i);
  out.End();
  EXPECT_EQ(out.written(), file.size());
  EXPECT_LE(largest, 64U * 1024);
  RecordingSink sink;
  EXPECT_FALSE(Read(file, &sink).error);
  EXPECT_EQ(sink.keys.size(), 20'000U);
}

// ---- golden files ----

class Golden : public testing::TestWithParam<GoldenRdb> {};

TEST_P(Golden, IsReadAsWhatItWasWrittenFrom) {
  const std::string file = FileBytes(kGolden / (std::string(GetParam().name) + ".rdb"));
  ASSERT_FALSE(file.empty());
  RecordingSink golden;
  const RdbEnd end = Read(file, &golden);
  ASSERT_FALSE(end.error) << end.error->text;
  EXPECT_EQ(end.size, file.size());
  EXPECT_EQ(end.checked, GetParam().options.checksum);
  RecordingSink now;
  ASSERT_FALSE(Read(Written(GetParam().options, GetParam().write), &now).error);
  EXPECT_EQ(golden.aux, now.aux);
  EXPECT_EQ(golden.sizes, now.sizes);
  EXPECT_EQ(golden.keys, now.keys);
  EXPECT_EQ(golden.has_dictionary, now.has_dictionary);
  EXPECT_EQ(CheckRdb(file), "");
}

INSTANTIATE_TEST_SUITE_P(All, Golden, testing::ValuesIn(kGoldenRdbs),
                         [](const auto& at) { return std::string(at.param.name); });

// Compressors may choose differently; where none is used the bytes are fixed.
TEST(RdbWriter, WritesTheGoldenBytes) {
  for (const GoldenRdb& golden : kGoldenRdbs) {
    if (golden.options.compress) continue;
    EXPECT_EQ(Written(golden.options, golden.write),
              FileBytes(kGolden / (std::string(golden.name) + ".rdb")));
  }
}

TEST(RdbReader, ReadsWhatRedisWrote) {
  for (const std::string_view policy : {"lfu", "lru"}) {
    const std::string file = FileBytes(kGolden / ("redis-7.0.15-" + std::string(policy) + ".rdb"));
    RecordingSink sink;
    const RdbEnd end = Read(file, &sink);
    ASSERT_FALSE(end.error) << end.error->text;
    EXPECT_TRUE(end.checked);
    EXPECT_EQ(sink.version(), 10);
    ASSERT_FALSE(sink.aux.empty());
    EXPECT_EQ(sink.aux[0], (std::pair<std::string, std::string>("redis-ver", "7.0.15")));
    ASSERT_EQ(sink.functions.size(), 1U);
    EXPECT_TRUE(sink.functions[0].starts_with("#!lua name=mylib\n"));
    ASSERT_EQ(sink.keys.size(), 5U);
    std::map<std::string, RecordedKey> keys;
    for (const RecordedKey& key : sink.keys) keys[key.key] = key;
    EXPECT_EQ(keys["greeting"].value, "hello");
    EXPECT_EQ(keys["number"].value, "12345");
    std::string abc;
    for (int i = 0; i < 100; ++i) abc += "abc";
    EXPECT_EQ(keys["long"].value, abc);
    EXPECT_EQ(keys["t"].expire_at_ms, kYear2100Ms);
    EXPECT_EQ(keys["greeting"].expire_at_ms, -1);
    EXPECT_EQ(keys["other"].db, 5U);
    EXPECT_EQ(keys["long"].db, 0U);
    EXPECT_EQ(keys["greeting"].frequency >= 0, policy == "lfu");
    EXPECT_EQ(keys["greeting"].idle_seconds >= 0, policy == "lru");
    EXPECT_EQ(CheckRdb(file), "");
  }
}

// ---- values ----

TEST(Rdb, StringsRoundTrip) {
  constexpr uint64_t kSeed = 5;
  base::Rng rng(kSeed);
  for (int round = 0; round < 100; ++round) {
    RecordingSink made;
    for (uint64_t i = rng.Below(50); i > 0; --i) {
      RecordedKey key;
      key.db = rng.Below(3);
      key.type = "string";
      for (uint64_t n = rng.Below(40); n > 0; --n) key.key += static_cast<char>(rng.Below(256));
      const uint64_t alphabet = 1 + rng.Below(10);
      for (uint64_t n = rng.Below(round % 10 == 0 ? 100'000 : 30); n > 0; --n) {
        key.value += static_cast<char>('0' + rng.Below(alphabet));
      }
      if (rng.Below(2) == 0) key.expire_at_ms = static_cast<int64_t>(rng.Below(1ULL << 62));
      if (rng.Below(3) == 0) key.idle_seconds = static_cast<int64_t>(rng.Below(1ULL << 40));
      if (rng.Below(3) == 0) key.frequency = static_cast<int>(rng.Below(256));
      made.keys.push_back(key);
    }
    for (const bool compress : {true, false}) {
      const std::string file = WriteRecorded(made, {.compress = compress});
      RecordingSink sink;
      const RdbEnd end = Read(file, &sink);
      ASSERT_FALSE(end.error) << end.error->text << " seed " << kSeed;
      EXPECT_EQ(sink.keys, made.keys) << "seed " << kSeed;
      EXPECT_EQ(end.size, file.size());
    }
  }
}

TEST(Rdb, CountersRoundTripInBothEncodings) {
  for (const bool refer : {false, true}) {
    for (const types::GoldenAfc& golden : types::kGoldenAfcs) {
      const std::unique_ptr<types::Afc> afc = golden.make();
      std::string file;
      RdbWriter out([&file](std::string_view bytes) { file += bytes; }, {});
      out.Begin(kGoldenOrigin);
      // Counters may all be too small to share members.
      const bool shared = refer && types::AllTypes().has_aux();
      if (refer) out.AuxData();
      out.Object({"counter", kYear2100Ms}, *afc);
      out.End();
      RecordingSink sink;
      const RdbEnd end = Read(file, &sink);
      ASSERT_FALSE(end.error) << golden.name << ": " << end.error->text;
      EXPECT_EQ(sink.has_dictionary, shared);
      ASSERT_EQ(sink.objects.size(), 1U);
      const auto& again = static_cast<const types::Afc&>(*sink.objects[0]);
      EXPECT_EQ(types::ContentOf(again, types::kGoldenNow),
                types::ContentOf(*afc, types::kGoldenNow));
      EXPECT_EQ(again.options(), afc->options());
      EXPECT_EQ(sink.keys[0].type, "afc");
      EXPECT_EQ(sink.keys[0].expire_at_ms, kYear2100Ms);
    }
  }
}

// A value written piece by piece, as a snapshot of a large counter is.
TEST(Rdb, AValueMayComeInPieces) {
  const auto afc = types::MakeAfc({}, 3000, types::WordName);
  const auto content = types::ContentOf(*afc, types::kGoldenNow);
  std::string file;
  RdbWriter out([&file](std::string_view bytes) { file += bytes; }, {});
  out.Begin(kGoldenOrigin);
  types::Writer& value = out.OpenValue({"large"}, afc->rdb_type());
  afc->BeginCut([&value](std::string_view bytes) { value.Raw(bytes); }, false);
  while (!afc->SavePieces(1000)) afc->Add("a later member", 1, types::kGoldenNow);
  out.End();
  RecordingSink sink;
  ASSERT_FALSE(Read(file, &sink).error);
  ASSERT_EQ(sink.objects.size(), 1U);
  EXPECT_EQ(types::ContentOf(static_cast<const types::Afc&>(*sink.objects[0]), types::kGoldenNow),
            content);
}

TEST(Rdb, WhatStandsBesideAKeyIsItsOwn) {
  const std::string file = Written({}, [](RdbWriter& out) {
    out.Begin(kGoldenOrigin);
    out.String({"a", 1000, 5, -1}, "1");
    out.String({"b"}, "2");
    out.String({"c", -1, -1, 0}, "3");
    out.End();
  });
  RecordingSink sink;
  ASSERT_FALSE(Read(file, &sink).error);
  const std::vector<RecordedKey> expected = {{0, "a", 1000, 5, -1, "string", "1"},
                                             {0, "b", -1, -1, -1, "string", "2"},
                                             {0, "c", -1, -1, 0, "string", "3"}};
  EXPECT_EQ(sink.keys, expected);
}

// ---- opcodes and versions ----

TEST(RdbReader, KnowsTheOldForms) {
  // No checksum before version 5; expiry in seconds; a number of 8 bits.
  std::string file = "REDIS0003";
  file += FromHex("fe00 fd 00e1f505 00 0161 c005 00 0162 0163 ff");
  RecordingSink sink;
  const RdbEnd end = Read(file, &sink);
  ASSERT_FALSE(end.error) << end.error->text;
  EXPECT_FALSE(end.checked);
  EXPECT_EQ(end.size, file.size());
  const std::vector<RecordedKey> expected = {{0, "a", 100'000'000'000, -1, -1, "string", "5"},
                                             {0, "b", -1, -1, -1, "string", "c"}};
  EXPECT_EQ(sink.keys, expected);
}

TEST(RdbReader, ReadsVersions1To12) {
  for (int version = 0; version <= 14; ++version) {
    const std::string text =
        version < 10 ? "000" + std::to_string(version) : "00" + std::to_string(version);
    const std::string error = ErrorOf(FileOf("", text));
    EXPECT_EQ(error.empty(), version >= 1 && version <= 12) << version << error;
  }
  EXPECT_EQ(ErrorOf(FileOf("", "0013")), "0 RDB version 13 is not read here: 1 to 12 are");
  EXPECT_EQ(ErrorOf("VALKEY080\xff"), "0 an RDB file of Valkey 9 or later is not read here");
  EXPECT_EQ(ErrorOf("REDIS00x0\xff"), "0 this is not an RDB file: its version is no number");
  for (const std::string_view other :
       {"", "REDIS", "REDIS001", "redis0010\xff", "*2\r\n$6\r\nSELECT\r\n"}) {
    EXPECT_EQ(ErrorOf(other), "0 this is not an RDB file") << other;
  }
}

TEST(RdbReader, PassesOverWhatItNeedNotKnow) {
  // An unknown AUX field, a slot's sizes, sizes of a database, then a key.
  const std::string file = FileOf(
      FromHex("fa 0178 0179 f4 4100 0a 05 fe0f fb 81ffffffffffffffff 00 00 0161 0162"), "0012");
  RecordingSink sink;
  const RdbEnd end = Read(file, &sink);
  ASSERT_FALSE(end.error) << end.error->text;
  EXPECT_EQ(sink.aux, (std::vector<std::pair<std::string, std::string>>{{"x", "y"}}));
  EXPECT_EQ(sink.sizes[0].first, UINT64_MAX);
  ASSERT_EQ(sink.keys.size(), 1U);
  EXPECT_EQ(sink.keys[0].db, 15U);
}

TEST(RdbReader, WhatFollowsTheEndIsNotItsOwn) {
  const std::string file = FileOf(FromHex("00 0161 0162"));
  RecordingSink sink;
  const RdbEnd end = Read(file + "*1\r\n$4\r\nPING\r\n", &sink);
  EXPECT_FALSE(end.error);
  EXPECT_EQ(end.size, file.size());
}

std::string ModuleItems() {
  std::string bytes;
  types::Writer out(&bytes);
  out.Length(types::ModuleId("other-mod", 3));
  out.ModuleSigned(-5);
  out.ModuleUnsigned(5);
  out.ModuleFloat(1);
  out.ModuleDouble(2);
  out.ModuleString("text");
  out.ModuleEnd();
  return bytes;
}

TEST(RdbReader, UnknownModulesArePassedOverOrRefused) {
  std::string aux = "\xf7";
  types::Writer(&aux).Length(types::ModuleId("some--aux", 1));
  aux += FromHex("02 02 05 0161 00");
  const std::string value = FromHex("07 016d") + ModuleItems();
  const std::string file = FileOf(value + aux + FromHex("00 0161 0162"));
  RecordingSink sink;
  const RdbEnd end = Read(file, &sink);
  ASSERT_FALSE(end.error) << end.error->text;
  EXPECT_EQ(sink.foreign, (std::vector<std::string>{"m other-mod", "some--aux"}));
  EXPECT_EQ(sink.keys.size(), 1U);
  EXPECT_EQ(ErrorOf(file, false), "12 a value of an unknown module");
  EXPECT_EQ(ErrorOf(FileOf(aux), false), "9 data of an unknown module");
}

TEST(RdbReader, NamesWhatItDoesNotRead) {
  EXPECT_EQ(ErrorOf(FileOf(FromHex("00 0161 0162 06 046c697374 01 0161"))),
            "20 key \"list\": values of RDB type 6 (module, first form) are not read here");
  EXPECT_EQ(ErrorOf(FileOf(FromHex("08 0168"))), "9 there is no RDB type or opcode 8");
  EXPECT_EQ(ErrorOf(FileOf(FromHex("f2 0168"))), "9 there is no RDB type or opcode 242");
  EXPECT_EQ(ErrorOf(FileOf(FromHex("f3 0168"))),
            "9 opcode 243 belongs to RDB versions that are not read here");
  EXPECT_EQ(ErrorOf(FileOf(FromHex("f6 0168"))),
            "9 functions in the form of a release candidate of Redis 7.0 are not read here");
  EXPECT_EQ(ErrorOf(FileOf(FromHex("fe10 00 0161 0162"))), "9 no such database");
  const std::string list = FileOf(FromHex("06 4100") + std::string(256, 'k') + FromHex("0100"));
  EXPECT_NE(ErrorOf(list).find("kkk\"... (256 bytes): values of RDB type 6"), std::string::npos);
}

TEST(RdbReader, ReadsTheCollectionsOfRedis) {
  RecordingSink sink;
  const RdbEnd end = Read(FileBytes(kGolden / "redis-7.0.15-collections.rdb"), &sink);
  ASSERT_FALSE(end.error) << end.error->text;
  EXPECT_GT(sink.keys.size(), 0U);
}

// ---- damage ----

std::vector<std::string> SmallFiles() {
  std::vector<std::string> files = {
      FileBytes(kGolden / "redis-7.0.15-lfu.rdb"),
      Written({}, WriteStrings),
      Written({},
              [](RdbWriter& out) {
                out.Begin(kGoldenOrigin);
                out.AuxData();
                out.SelectDb(0, 2, 0);
                out.Object({"counter"}, *types::MakeAfc({}, 30, types::WordName));
                out.String({"a"}, "b");
                out.End();
              }),
  };
  return files;
}

TEST(RdbReader, RefusesEveryTruncation) {
  for (const std::string& file : SmallFiles()) {
    ASSERT_EQ(ErrorOf(file), "");
    for (size_t size = 0; size < file.size(); ++size) {
      RecordingSink sink;
      const RdbEnd end = Read(std::string_view(file).substr(0, size), &sink);
      ASSERT_TRUE(end.error) << size;
      EXPECT_LE(end.error->offset, size);
    }
  }
}

TEST(RdbReader, NoticesEveryFlippedBit) {
  for (std::string file : SmallFiles()) {
    for (size_t at = 0; at < file.size() * 8; ++at) {
      const auto bit = static_cast<char>(1 << (at % 8));
      file[at / 8] = static_cast<char>(file[at / 8] ^ bit);
      EXPECT_NE(ErrorOf(file), "") << "bit " << at;
      if (at % 5 == 0) {
        EXPECT_EQ(CheckRdb(file), "") << "bit " << at;
      }
      file[at / 8] = static_cast<char>(file[at / 8] ^ bit);
    }
  }
}

TEST(RdbReader, SurvivesFlippedBitsWithoutAChecksum) {
  std::string file = Written({.checksum = false}, [](RdbWriter& out) { WriteStrings(out); });
  for (size_t at = 0; at < file.size() * 8; ++at) {
    const auto bit = static_cast<char>(1 << (at % 8));
    file[at / 8] = static_cast<char>(file[at / 8] ^ bit);
    EXPECT_EQ(CheckRdb(file), "") << "bit " << at;
    file[at / 8] = static_cast<char>(file[at / 8] ^ bit);
  }
}

TEST(RdbReader, TakesAChecksumOfZeroForNone) {
  std::string file = Written({.checksum = false}, WriteStrings);
  EXPECT_EQ(file.substr(file.size() - 8), std::string(8, '\0'));
  EXPECT_EQ(ErrorOf(file), "");
  std::string checked = Written({}, WriteStrings);
  checked.back() = static_cast<char>(checked.back() ^ 1);
  EXPECT_NE(ErrorOf(checked).find("the checksum is wrong"), std::string::npos);
  RecordingSink sink;
  EXPECT_FALSE(ReadRdb(checked, types::AllTypes(), sink, false).error);
}

TEST(RdbReader, BelievesNoLength) {
  for (const std::string_view records : {
           "00 0161 80ffffffff",                        // a value of 4 GB
           "00 0161 817fffffffffffffff 00",             // of 8 EB
           "00 81ffffffffffffffff 61",                  // a key
           "00 0161 c3 01 80ffffffff 61",               // LZF: 4 GB from one byte
           "00 0161 c3 81ffffffffffffffff 01 61",       // LZF: packed beyond all
           "00 0161 c3 00 00",                          // LZF: nothing
           "00 0161 c4 00",                             // no such string
           "00 0161 82 00",                             // no such length
           "fa 80ffffffff 61",                          // AUX
           "f5 80ffffffff 61",                          // a library
           "f8 81ffffffffffffffff 00 0161 0162",        // idle for ever
           "fe c0",                                     // a string where a number is
           "07 0161 81ffffffffffffffff 05 80ffffffff",  // an unknown module's string
           "07 0161 81ffffffffffffffff 06",             // an unknown item
       }) {
    EXPECT_NE(ErrorOf(FileOf(FromHex(records))), "") << records;
    EXPECT_EQ(CheckRdb(FileOf(FromHex(records))), "") << records;
  }
}

TEST(RdbReader, RefusesTheDictionaryTwiceOrLate) {
  std::string aux = "\xf7";
  types::Writer(&aux).Length(types::Afc::Type().module_id);
  const std::string early = aux + FromHex("02 01 05 00 00");
  const std::string late = aux + FromHex("02 02 05 00 00");
  EXPECT_EQ(ErrorOf(FileOf(early)), "");
  EXPECT_NE(ErrorOf(FileOf(early + early)), "");
  EXPECT_NE(ErrorOf(FileOf(late)), "");
  EXPECT_NE(ErrorOf(FileOf(aux + FromHex("02 01 05 0161 05 00 00"))), "");
}

TEST(RdbReader, RefusesAnything) {
  base::Rng rng(11);
  for (int i = 0; i < 20'000; ++i) {
    std::string records;
    for (uint64_t n = rng.Below(60); n > 0; --n) {
      const uint64_t kind = rng.Below(4);
      records +=
          static_cast<char>(kind == 0 ? 243 + rng.Below(13) : rng.Below(kind == 1 ? 256 : 8));
    }
    EXPECT_EQ(CheckRdb(FileOf(records)), "");
  }
}

TEST(RdbReader, ReplaysItsCorpus) {
  const std::filesystem::path corpus = std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/rdb";
  int replayed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    EXPECT_EQ(CheckRdb(FileBytes(entry.path())), "") << entry.path();
    ++replayed;
  }
  EXPECT_GE(replayed, 8);
}

}  // namespace
}  // namespace sava::storage
