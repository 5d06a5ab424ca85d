// RDB primitives: recorded payloads of redis-server 7.0.15, round trips, and damaged input.
#include "types/value/save.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "../../fuzz/restore_property.h"
#include "base/crc.h"
#include "base/rng.h"
#include "types/value/type_registry.h"

namespace sava::types {
namespace {

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

struct Recorded {
  std::string value;
  std::string_view payload;
};

// What DUMP of redis-server 7.0.15 gave for these strings.
std::vector<Recorded> RecordedPayloads() {
  return {
      {"", "00000a005d9b5c400f7fa2da"},
      {"a", "0001610a00bffeef9b8f367db4"},
      {"hello", "000568656c6c6f0a006372df766534200a"},
      {"0", "00c0000a009840a778f8500308"},
      {"12", "00c00c0a003c2af8515c04bcd5"},
      {"-1", "00c0ff0a000c937e2485089dc5"},
      {"127", "00c07f0a000db5eb315254c514"},
      {"128", "00c180000a00eb7ab3b510cf4b65"},
      {"-129", "00c17fff0a001760822854808480"},
      {"32768", "00c2008000000a0045d82eedd5bda910"},
      {"2147483647", "00c2ffffff7f0a002c74e59ee02eada1"},
      {"2147483648", "000a323134373438333634380a00e7b129a34c1d76ee"},
      {"-2147483649", "000b2d323134373438333634390a00c261377908f2028c"},
      {"9223372036854775807", "0013393232333337323033363835343737353830370a003a657e9481e85f22"},
      {"007", "00033030370a007258e27b4c69bad9"},
      {std::string(63, 'x'), "00c3093f017878e032000178780a0072a017a560edf6e5"},
      {std::string(200, 'a'), "00c30940c8016161e0bb000161610a001f99f72e01b20de3"},
      {"The quick brown fox jumps over the lazy dog. The quick brown fox.",
       "00c33740411f54686520717569636b2062726f776e20666f78206a756d7073206f7665722074201e0a6c617a79"
       "20646f672e2054200de0052c01782e0a0024ac8d796ab71db6"},
  };
}

std::string Sealed(std::string_view value) {
  std::string payload;
  Writer out(&payload);
  out.Byte(kRdbString);
  out.String(value);
  SealDump(&payload);
  return payload;
}

TEST(Dump, ReadsRecordedPayloads) {
  for (const Recorded& recorded : RecordedPayloads()) {
    const std::string payload = FromHex(recorded.payload);
    std::string_view body;
    ASSERT_TRUE(OpenDump(payload, &body)) << recorded.value;
    Reader in(body);
    EXPECT_EQ(in.Byte(), kRdbString);
    EXPECT_EQ(in.String(), recorded.value);
    EXPECT_TRUE(in.ok());
    EXPECT_EQ(in.remaining(), 0U);
  }
}

TEST(Dump, WritesTheRecordedBytes) {
  for (const Recorded& recorded : RecordedPayloads()) {
    // Compressors may differ in their choices; what they do not touch must be equal.
    if (recorded.payload.substr(2, 2) == "c3") continue;
    EXPECT_EQ(Sealed(recorded.value), FromHex(recorded.payload)) << recorded.value;
  }
}

TEST(Dump, RefusesDamageAndNewerVersions) {
  const std::string good = Sealed("hello");
  std::string_view body;
  ASSERT_TRUE(OpenDump(good, &body));
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_FALSE(OpenDump(bad, &body)) << i;
    EXPECT_FALSE(OpenDump(std::string_view(good).substr(0, i), &body)) << i;
  }
  for (const uint16_t version : {0, 6, 9, 10, 11, 12, 13, 256}) {
    std::string payload("\0\1a", 3);
    payload += static_cast<char>(version & 0xff);
    payload += static_cast<char>(version >> 8);
    const uint64_t crc = base::Crc64(0, payload);
    payload.append(reinterpret_cast<const char*>(&crc), 8);
    EXPECT_EQ(OpenDump(payload, &body), version <= 12) << version;
  }
  // A checksum of zero is no excuse.
  std::string zero = good;
  for (size_t i = zero.size() - 8; i < zero.size(); ++i) zero[i] = 0;
  EXPECT_FALSE(OpenDump(zero, &body));
}

TEST(Length, HasFourWidths) {
  struct Case {
    uint64_t value;
    std::string_view hex;
  };
  const Case cases[] = {
      {0, "00"},
      {63, "3f"},
      {64, "4040"},
      {16383, "7fff"},
      {16384, "8000004000"},
      {0xffffffffULL, "80ffffffff"},
      {0x100000000ULL, "810000000100000000"},
      {UINT64_MAX, "81ffffffffffffffff"},
  };
  for (const Case& c : cases) {
    std::string bytes;
    Writer out(&bytes);
    out.Length(c.value);
    EXPECT_EQ(bytes, FromHex(c.hex)) << c.value;
    Reader in(bytes);
    EXPECT_EQ(in.Length(), c.value);
    EXPECT_TRUE(in.ok());
    EXPECT_EQ(in.remaining(), 0U);
  }
}

TEST(Length, FailsOnStringMarksAndUnknownWidths) {
  for (const std::string_view hex : {"", "c0", "c3", "82", "bf", "40", "80000000", "8100000000"}) {
    const std::string bytes = FromHex(hex);
    Reader in(bytes);
    EXPECT_EQ(in.Length(), 0U);
    EXPECT_FALSE(in.ok()) << hex;
  }
}

TEST(Count, MustFitWhatIsLeft) {
  const std::string bytes = FromHex("0361626364");
  EXPECT_EQ(Reader(bytes).Count(), 3U);
  Reader two(bytes);
  EXPECT_EQ(two.Count(2), 0U);
  EXPECT_FALSE(two.ok());
}

TEST(String, RoundTripsWithAndWithoutCompression) {
  constexpr uint64_t kSeed = 99;
  base::Rng rng(kSeed);
  for (int round = 0; round < 3000; ++round) {
    std::string value;
    const uint64_t size = rng.Below(round % 100 == 0 ? 200000 : 100);
    const uint64_t alphabet = 1 + rng.Below(256);
    for (uint64_t i = 0; i < size; ++i) value += static_cast<char>('0' + rng.Below(alphabet));
    for (const bool compress : {true, false}) {
      std::string bytes;
      {
        Writer out(&bytes, compress);
        out.String(value);
        ASSERT_EQ(out.written(), bytes.size());
      }
      if (compress) {
        ASSERT_LE(bytes.size(), value.size() + 9);
      }
      Reader in(bytes);
      ASSERT_EQ(in.String(), value) << "seed " << kSeed;
      ASSERT_TRUE(in.ok());
      ASSERT_EQ(in.remaining(), 0U);
    }
  }
}

TEST(String, IsCompressedOnlyWhenThatPays) {
  const auto size = [](std::string_view value, bool compress) {
    std::string bytes;
    Writer out(&bytes, compress);
    out.String(value);
    return bytes.size();
  };
  EXPECT_EQ(size(std::string(20, 'a'), true), 21U);
  EXPECT_LT(size(std::string(21, 'a'), true), 21U);
  EXPECT_EQ(size(std::string(21, 'a'), false), 22U);
  std::string different;
  for (int i = 0; i < 60; ++i) different += static_cast<char>(i * 7);
  EXPECT_EQ(size(different, true), 61U);
}

TEST(String, OfANumberIsItsDecimalText) {
  for (const int64_t value :
       {int64_t{0}, int64_t{-128}, int64_t{127}, int64_t{-129}, int64_t{40000}, int64_t{INT32_MAX},
        int64_t{INT32_MIN}, int64_t{INT32_MAX} + 1, std::numeric_limits<int64_t>::min(),
        std::numeric_limits<int64_t>::max()}) {
    std::string as_number;
    std::string as_text;
    Writer(&as_number).StringOf(value);
    Writer(&as_text).String(std::to_string(value));
    EXPECT_EQ(as_number, as_text);
    EXPECT_EQ(Reader(as_number).String(), std::to_string(value));
  }
}

TEST(StringView, PointsIntoTheInputWhereItCan) {
  const std::string bytes = FromHex("0568656c6c6f");
  std::string scratch;
  Reader in(bytes);
  const std::string_view view = in.StringView(&scratch);
  EXPECT_EQ(view, "hello");
  EXPECT_EQ(view.data(), bytes.data() + 1);
}

TEST(Reader, ReservesNothingForLengthsThatLie) {
  // Each claims far more than there is: a string, a compressed one, one that unpacks to 4 GB.
  for (const std::string_view hex :
       {"81ffffffffffffffff61", "80ffffffff61", "c381ffffffffffffffff0561", "c30180ffffffff61",
        "c3034eff010203", "c30300010203", "c4", "ff", "c0", "c100", "c2000000"}) {
    const std::string bytes = FromHex(hex);
    Reader in(bytes);
    EXPECT_EQ(in.String(), "") << hex;
    EXPECT_FALSE(in.ok()) << hex;
  }
}

TEST(Reader, StaysFailed) {
  const std::string bytes = FromHex("0161ffffffffffffffffffff");
  Reader in(bytes);
  EXPECT_EQ(in.String(), "a");
  in.Fail();
  EXPECT_EQ(in.Byte(), 0);
  EXPECT_EQ(in.Fixed64(), 0U);
  EXPECT_EQ(in.String(), "");
  EXPECT_EQ(in.remaining(), 0U);
  EXPECT_FALSE(in.ok());
}

TEST(Reader, SurvivesTruncationAnywhere) {
  std::string bytes;
  {
    Writer out(&bytes);
    out.String(std::string(300, 'z'));
    out.Double(2.5);
    out.ModuleString("member");
    out.ModuleSigned(-5);
    out.ModuleEnd();
  }
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    Reader in(std::string_view(bytes).substr(0, cut));
    in.String();
    in.Double();
    in.ModuleString();
    in.ModuleSigned();
    in.ModuleEnd();
    EXPECT_FALSE(in.ok()) << cut;
  }
}

TEST(Numbers, AreLittleEndian) {
  std::string bytes;
  Writer out(&bytes);
  out.Fixed32(0x01020304);
  out.Fixed64(0x0102030405060708ULL);
  out.Double(1.0);
  EXPECT_EQ(bytes, FromHex("040302010807060504030201000000000000f03f"));
  Reader in(bytes);
  EXPECT_EQ(in.Fixed32(), 0x01020304U);
  EXPECT_EQ(in.Fixed64(), 0x0102030405060708ULL);
  EXPECT_EQ(in.Double(), 1.0);
}

std::string ModuleValue() {
  std::string bytes;
  Writer out(&bytes);
  out.ModuleSigned(-7);
  out.ModuleUnsigned(UINT64_MAX);
  out.ModuleFloat(1.5F);
  out.ModuleDouble(-2.25);
  out.ModuleString("text");
  out.ModuleEnd();
  return bytes;
}

TEST(Module, ItemsComeBackInOrder) {
  const std::string bytes = ModuleValue();
  Reader in(bytes);
  EXPECT_EQ(in.ModuleSigned(), -7);
  EXPECT_EQ(in.ModuleUnsigned(), UINT64_MAX);
  EXPECT_EQ(in.ModuleFloat(), 1.5F);
  EXPECT_EQ(in.ModuleDouble(), -2.25);
  EXPECT_EQ(in.ModuleString(), "text");
  in.ModuleEnd();
  EXPECT_TRUE(in.ok());
  EXPECT_EQ(in.remaining(), 0U);
}

TEST(Module, AnotherItemIsAFailure) {
  const std::string bytes = ModuleValue();
  Reader in(bytes);
  EXPECT_EQ(in.ModuleUnsigned(), 0U);
  EXPECT_FALSE(in.ok());
}

TEST(Module, CanBeSkipped) {
  const std::string bytes = ModuleValue() + "rest";
  Reader in(bytes);
  in.SkipModule();
  EXPECT_TRUE(in.ok());
  EXPECT_EQ(in.remaining(), 4U);
  Reader cut(std::string_view(bytes).substr(0, 10));
  cut.SkipModule();
  EXPECT_FALSE(cut.ok());
  Reader unknown("\x06");
  unknown.SkipModule();
  EXPECT_FALSE(unknown.ok());
}

TEST(Writer, HandsOnTheSameBytesInPieces) {
  const std::string large(200000, 'q');
  const auto write = [&](Writer& out) {
    for (int i = 0; i < 20000; ++i) out.StringOf(i);
    out.Raw(large);
    out.Length(5);
  };
  std::string whole;
  {
    Writer out(&whole);
    write(out);
  }
  std::string pieces;
  size_t calls = 0;
  {
    Writer out([&](std::string_view bytes) {
      pieces += bytes;
      ++calls;
    });
    write(out);
    EXPECT_EQ(out.written(), whole.size());
  }
  EXPECT_EQ(pieces, whole);
  EXPECT_GT(calls, 2U);
}

TEST(RestoreFuzz, CorpusHolds) {
  const std::filesystem::path corpus =
      std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/restore";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(CheckRestore(bytes), "") << entry.path();
    ++files;
  }
  EXPECT_GE(files, 16);
}

TEST(RestoreFuzz, RandomBytesHold) {
  constexpr uint64_t kSeed = 4711;
  base::Rng rng(kSeed);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes;
    for (uint64_t i = rng.Below(40); i > 0; --i) {
      // Half of them bytes that mean something.
      bytes += rng.Below(2) == 0
                   ? static_cast<char>(rng.Next())
                   : "\x00\x01\x02\x05\x3f\x40\x80\x81\xc0\xc1\xc2\xc3"[rng.Below(12)];
    }
    ASSERT_EQ(CheckRestore(bytes), "") << "seed " << kSeed << ", round " << round;
  }
}

TEST(TypeRegistry, KnowsWhoReadsWhat) {
  static constexpr uint8_t kIds[] = {14, 18};
  static constexpr uint8_t kOther[] = {2, 18};
  static constexpr uint8_t kString[] = {0};
  static constexpr TypeInfo kList{"list", kIds, 2, nullptr};
  static constexpr TypeInfo kSet{"set", kOther, 2, nullptr};
  static constexpr TypeInfo kBad{"bad", kString, 1, nullptr};
  TypeRegistry registry;
  EXPECT_EQ(registry.Find(14), nullptr);
  EXPECT_TRUE(registry.Add(kList).ok());
  EXPECT_TRUE(registry.Add(kList).ok());
  EXPECT_EQ(registry.Find(14), &kList);
  EXPECT_EQ(registry.Find(18), &kList);
  // A refused type leaves nothing behind.
  EXPECT_FALSE(registry.Add(kSet).ok());
  EXPECT_EQ(registry.Find(2), nullptr);
  EXPECT_FALSE(registry.Add(kBad).ok());
}

TEST(TypeRegistry, AsksTypesForWhatOnlySomeHave) {
  static constexpr uint8_t kIds[] = {14};
  static constexpr SharedStore kStores[] = {{"texts", [] { return size_t{3}; }, nullptr}};
  static constexpr TypeInfo kPlain{"plain", kIds, 1, nullptr};
  static constexpr TypeInfo kMuch{.name = "much",
                                  .rdb_types = nullptr,
                                  .rdb_type_count = 0,
                                  .load = nullptr,
                                  .module_id = 7,
                                  .rdb_version = [] { return uint16_t{11}; },
                                  .shared_stores = kStores};
  TypeRegistry registry;
  EXPECT_TRUE(registry.Add(kPlain).ok());
  EXPECT_EQ(registry.rdb_version(), kRdbVersion);
  EXPECT_TRUE(registry.shared_stores().empty());
  EXPECT_FALSE(registry.has_aux());
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(registry.Add(kMuch).ok());
  EXPECT_EQ(registry.rdb_version(), 11);
  ASSERT_EQ(registry.shared_stores().size(), 1U);
  EXPECT_EQ(registry.shared_stores()[0].count(), 3U);
}

}  // namespace
}  // namespace sava::types
