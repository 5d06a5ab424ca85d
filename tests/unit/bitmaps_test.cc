// The bitmap commands on a FakeContext, and their bit functions against a model of single bits.
#include "commands/redis/bitmaps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "fake_context.h"

namespace sava::commands {
namespace {

std::string Int(int64_t value) { return ":" + std::to_string(value) + "\r\n"; }
std::string Err(std::string_view text) { return "-" + std::string(text) + "\r\n"; }
std::string Ints(const std::vector<int64_t>& values) {
  std::string text = "*" + std::to_string(values.size()) + "\r\n";
  for (const int64_t value : values) text += Int(value);
  return text;
}

const std::string kWrongType = Err(errors::kWrongType);
const std::string kSyntax = Err(errors::kSyntax);
const std::string kNotInteger = Err(errors::kNotInteger);
const std::string kBadOffset = Err(errors::kBitOffset);
const std::string kBadType = Err(
    "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 "
    "is.");

class Bitmaps : public testing::Test {
 protected:
  Bitmaps() { context_.AddObject("list"); }

  std::string Run(std::vector<std::string> words) { return context_.Run(std::move(words)); }
  void Store(const std::string& key, const std::string& bytes) {
    Run({"SET", key, bytes});
    Forget();
  }
  void Forget() {
    context_.TakeChanges();
    context_.TakeEvents();
  }
  void ExpectReported(int64_t changes, std::string_view events) {
    EXPECT_EQ(context_.TakeChanges(), changes);
    EXPECT_EQ(context_.TakeEvents(), events);
    EXPECT_EQ(context_.TakeEffects(), "");
  }

  FakeContext context_{{StringCommands(), BitmapCommands()}};
};

TEST_F(Bitmaps, SetbitGrowsAndTellsTheFormerBit) {
  EXPECT_EQ(Run({"SETBIT", "k", "7", "1"}), Int(0));
  ExpectReported(1, "setbit k");
  EXPECT_EQ(Run({"SETBIT", "k", "7", "0"}), Int(1));
  EXPECT_EQ(context_.StringAt("k"), std::string("\0", 1));
  EXPECT_EQ(Run({"SETBIT", "k", "17", "1"}), Int(0));
  EXPECT_EQ(context_.StringAt("k"), std::string("\0\0\x40", 3));
  EXPECT_EQ(context_.FormAt("k"), StringForm::kRaw);
}

TEST_F(Bitmaps, SetbitOfTheSameBitChangesNothing) {
  Store("k", "1");
  EXPECT_EQ(Run({"SETBIT", "k", "0", "0"}), Int(0));
  EXPECT_EQ(Run({"SETBIT", "k", "7", "1"}), Int(1));
  ExpectReported(0, "");
  // Growing is a change even when the bit is zero.
  EXPECT_EQ(Run({"SETBIT", "k", "8", "0"}), Int(0));
  ExpectReported(1, "setbit k");
  EXPECT_EQ(context_.StringAt("k"), std::string("1\0", 2));
}

TEST_F(Bitmaps, SetbitWorksOnNumbersAndKeepsTheExpiry) {
  Store("k", "1");
  context_.SetExpiry("k", context_.now_ms() + 5);
  EXPECT_EQ(Run({"SETBIT", "k", "6", "1"}), Int(0));
  EXPECT_EQ(context_.StringAt("k"), "3");
  EXPECT_EQ(context_.ExpiryAt("k"), context_.now_ms() + 5);
}

TEST_F(Bitmaps, SetbitAndGetbitRefuse) {
  for (const char* offset : {"-1", "x", "", "4294967296", "#1", "9223372036854775808"}) {
    EXPECT_EQ(Run({"SETBIT", "list", offset, "x"}), kBadOffset) << offset;
    EXPECT_EQ(Run({"GETBIT", "list", offset}), kBadOffset) << offset;
  }
  for (const char* bit : {"2", "-1", "x", ""}) {
    EXPECT_EQ(Run({"SETBIT", "list", "0", bit}), Err(errors::kBitValue)) << bit;
  }
  EXPECT_EQ(Run({"SETBIT", "list", "0", "1"}), kWrongType);
  EXPECT_EQ(Run({"GETBIT", "list", "0"}), kWrongType);
  context_.set_max_string_size(2);
  EXPECT_EQ(Run({"SETBIT", "k", "15", "1"}), Int(0));
  EXPECT_EQ(Run({"SETBIT", "k", "16", "1"}), kBadOffset);
}

TEST_F(Bitmaps, GetbitBehindTheEndIsZero) {
  Store("k", "7");  // 0011 0111, kept as a number
  EXPECT_EQ(Run({"GETBIT", "k", "2"}), Int(1));
  EXPECT_EQ(Run({"GETBIT", "k", "4"}), Int(0));
  EXPECT_EQ(Run({"GETBIT", "k", "4294967295"}), Int(0));
  EXPECT_EQ(Run({"GETBIT", "none", "0"}), Int(0));
}

TEST_F(Bitmaps, BitcountOfRanges) {
  Store("k", "foobar");
  EXPECT_EQ(Run({"BITCOUNT", "k"}), Int(26));
  EXPECT_EQ(Run({"BITCOUNT", "k", "0", "0"}), Int(4));
  EXPECT_EQ(Run({"BITCOUNT", "k", "1", "1", "byte"}), Int(6));
  EXPECT_EQ(Run({"BITCOUNT", "k", "5", "30", "BIT"}), Int(17));
  EXPECT_EQ(Run({"BITCOUNT", "k", "-1", "-2"}), Int(0));
  EXPECT_EQ(Run({"BITCOUNT", "k", "-1", "-2", "FOO"}), kSyntax);
  EXPECT_EQ(Run({"BITCOUNT", "k", "-100", "100"}), Int(26));
  EXPECT_EQ(Run({"BITCOUNT", "k", "6", "10"}), Int(0));
  EXPECT_EQ(Run({"BITCOUNT", "none"}), Int(0));
  Store("n", "12");
  EXPECT_EQ(Run({"BITCOUNT", "n"}), Int(6));
}

TEST_F(Bitmaps, BitcountChecksInRedisOrder) {
  EXPECT_EQ(Run({"BITCOUNT", "none", "x"}), kSyntax);
  EXPECT_EQ(Run({"BITCOUNT", "none", "x", "y"}), kNotInteger);
  EXPECT_EQ(Run({"BITCOUNT", "list", "0", "1"}), kWrongType);
  Store("k", "abc");
  EXPECT_EQ(Run({"BITCOUNT", "k", "0"}), kSyntax);
  EXPECT_EQ(Run({"BITCOUNT", "k", "0", "x", "y"}), kNotInteger);
  EXPECT_EQ(Run({"BITCOUNT", "k", "0", "0", "y"}), kSyntax);
  EXPECT_EQ(Run({"BITCOUNT", "k", "0", "0", "BIT", "y"}), kSyntax);
}

TEST_F(Bitmaps, BitposFindsTheFirstBit) {
  Store("k", std::string("\xff\xf0\x00", 3));
  EXPECT_EQ(Run({"BITPOS", "k", "0"}), Int(12));
  Store("k", std::string("\x00\xff\xf0", 3));
  EXPECT_EQ(Run({"BITPOS", "k", "1", "0"}), Int(8));
  EXPECT_EQ(Run({"BITPOS", "k", "1", "2"}), Int(16));
  EXPECT_EQ(Run({"BITPOS", "k", "1", "2", "-1", "BYTE"}), Int(16));
  EXPECT_EQ(Run({"BITPOS", "k", "1", "7", "15", "BIT"}), Int(8));
  EXPECT_EQ(Run({"BITPOS", "k", "1", "7", "-3", "bit"}), Int(8));
  EXPECT_EQ(Run({"BITPOS", "k", "1", "5", "2"}), Int(-1));
}

TEST_F(Bitmaps, BitposOfZerosDependsOnTheEnd) {
  Store("k", "\xff\xff\xff");
  EXPECT_EQ(Run({"BITPOS", "k", "0"}), Int(24));
  EXPECT_EQ(Run({"BITPOS", "k", "0", "1"}), Int(24));
  EXPECT_EQ(Run({"BITPOS", "k", "0", "0", "-1"}), Int(-1));
  EXPECT_EQ(Run({"BITPOS", "k", "0", "3"}), Int(-1));
  EXPECT_EQ(Run({"BITPOS", "none", "0", "x", "y", "z"}), kNotInteger);
  EXPECT_EQ(Run({"BITPOS", "none", "0", "1", "2"}), Int(0));
  EXPECT_EQ(Run({"BITPOS", "none", "1"}), Int(-1));
  Store("empty", "");
  EXPECT_EQ(Run({"BITPOS", "empty", "0"}), Int(-1));
  EXPECT_EQ(Run({"BITPOS", "empty", "1"}), Int(-1));
}

TEST_F(Bitmaps, BitposChecksInRedisOrder) {
  EXPECT_EQ(Run({"BITPOS", "list", "x"}), kNotInteger);
  EXPECT_EQ(Run({"BITPOS", "list", "2"}), Err("ERR The bit argument must be 1 or 0."));
  EXPECT_EQ(Run({"BITPOS", "list", "1", "x"}), kNotInteger);
  EXPECT_EQ(Run({"BITPOS", "list", "1", "0"}), kWrongType);
  Store("k", "abc");
  EXPECT_EQ(Run({"BITPOS", "k", "1", "x", "y", "FOO"}), kNotInteger);
  EXPECT_EQ(Run({"BITPOS", "k", "1", "0", "y", "FOO"}), kSyntax);
  EXPECT_EQ(Run({"BITPOS", "k", "1", "0", "y", "BIT"}), kNotInteger);
  EXPECT_EQ(Run({"BITPOS", "k", "1", "0", "1", "BIT", "x"}), kSyntax);
}

TEST_F(Bitmaps, BitopStoresARawString) {
  Store("a", "foobar");
  Store("b", "abcdef");
  EXPECT_EQ(Run({"BITOP", "and", "to", "a", "b"}), Int(6));
  EXPECT_EQ(context_.StringAt("to"), "`bc`ab");
  ExpectReported(1, "set to");
  Store("n", "12");
  EXPECT_EQ(Run({"BITOP", "OR", "to", "n"}), Int(2));
  EXPECT_EQ(context_.StringAt("to"), "12");
  EXPECT_EQ(context_.FormAt("to"), StringForm::kRaw);
}

TEST_F(Bitmaps, BitopReplacesItsTargetWithExpiryAndAll) {
  Store("a", "\xf0\x0f");
  context_.SetExpiry("a", context_.now_ms() + 5);
  EXPECT_EQ(Run({"BITOP", "NOT", "a", "a"}), Int(2));
  EXPECT_EQ(context_.StringAt("a"), "\x0f\xf0");
  EXPECT_EQ(context_.ExpiryAt("a"), kNoExpiry);
  EXPECT_EQ(Run({"BITOP", "XOR", "list", "a"}), Int(2));
  EXPECT_EQ(context_.StringAt("list"), "\x0f\xf0");
  Forget();
  EXPECT_EQ(Run({"BITOP", "AND", "a", "none"}), Int(0));
  ExpectReported(1, "del a");
  EXPECT_EQ(Run({"BITOP", "AND", "a", "none"}), Int(0));
  ExpectReported(0, "");
  EXPECT_EQ(Run({"BITOP", "AND", "a", "list", "none"}), Int(2));
  EXPECT_EQ(context_.StringAt("a"), std::string(2, '\0'));
}

TEST_F(Bitmaps, BitopRefuses) {
  EXPECT_EQ(Run({"BITOP", "NAND", "to", "list"}), kSyntax);
  EXPECT_EQ(Run({"BITOP", "NOT", "to", "list", "b"}),
            Err("ERR BITOP NOT must be called with a single source key."));
  EXPECT_EQ(Run({"BITOP", "AND", "to", "none", "list"}), kWrongType);
  ExpectReported(0, "");
}

TEST_F(Bitmaps, BitfieldReadsAndWrites) {
  EXPECT_EQ(Run({"BITFIELD", "k"}), "*0\r\n");
  EXPECT_EQ(Run({"BITFIELD", "k", "GET", "u8", "0", "get", "i64", "#3"}), Ints({0, 0}));
  EXPECT_FALSE(context_.Exists("k"));
  ExpectReported(0, "");
  EXPECT_EQ(Run({"BITFIELD", "k", "SET", "u8", "0", "255", "GET", "i8", "0", "GET", "u4", "#1"}),
            Ints({0, -1, 15}));
  ExpectReported(1, "setbit k");
  EXPECT_EQ(Run({"BITFIELD", "k", "INCRBY", "i5", "100", "1", "GET", "u4", "0"}), Ints({1, 15}));
  EXPECT_EQ(context_.StringAt("k").size(), 14U);
  Forget();
  EXPECT_EQ(Run({"BITFIELD", "k", "SET", "u8", "0", "255", "INCRBY", "u8", "0", "0"}),
            Ints({255, 255}));
  ExpectReported(0, "");
}

TEST_F(Bitmaps, BitfieldCountsWhatItChanged) {
  Store("k", "ab");
  EXPECT_EQ(
      Run({"BITFIELD", "k", "SET", "u8", "0", "1", "SET", "u8", "8", "98", "SET", "u8", "0", "2"}),
      Ints({97, 98, 1}));
  ExpectReported(2, "setbit k");
  // Writing zeros counts when the string became longer for it.
  EXPECT_EQ(Run({"BITFIELD", "k", "SET", "u8", "16", "0", "SET", "u8", "8", "98"}), Ints({0, 98}));
  ExpectReported(2, "setbit k");
}

TEST_F(Bitmaps, BitfieldOverflow) {
  Store("k", "\xff\x7f");
  EXPECT_EQ(Run({"BITFIELD", "k", "INCRBY", "u8", "0", "2", "INCRBY", "i8", "8", "1"}),
            Ints({1, -128}));
  EXPECT_EQ(Run({"BITFIELD", "k", "OVERFLOW", "SAT", "INCRBY", "u8", "0", "-5", "INCRBY", "i8", "8",
                 "-1", "SET", "i8", "8", "1000", "GET", "i8", "8"}),
            Ints({0, -128, -128, 127}));
  EXPECT_EQ(Run({"BITFIELD", "k", "overflow", "fail", "INCRBY", "u8", "0", "256", "OVERFLOW",
                 "WRAP", "INCRBY", "u8", "0", "257"}),
            "*2\r\n$-1\r\n:1\r\n");
  EXPECT_EQ(Run({"BITFIELD", "k", "OVERFLOW", "SAT", "SET", "u8", "0", "-1", "GET", "u8", "0"}),
            Ints({1, 255}));
  context_.set_resp(3);
  EXPECT_EQ(Run({"BITFIELD", "k", "OVERFLOW", "FAIL", "SET", "u2", "0", "4"}), "*1\r\n_\r\n");
}

TEST_F(Bitmaps, BitfieldOfFullWidth) {
  EXPECT_EQ(Run({"BITFIELD", "k",
                 "SET",      "i64",
                 "3",        "-9223372036854775808",
                 "INCRBY",   "i64",
                 "3",        "-1",
                 "OVERFLOW", "SAT",
                 "INCRBY",   "i64",
                 "3",        "1",
                 "INCRBY",   "i64",
                 "3",        "-9223372036854775808",
                 "INCRBY",   "i64",
                 "3",        "-9223372036854775808"}),
            Ints({0, INT64_MAX, INT64_MAX, -1, INT64_MIN}));
  EXPECT_EQ(
      Run({"BITFIELD", "u", "SET", "u63", "1", "9223372036854775807", "INCRBY", "u63", "1", "1"}),
      Ints({0, 0}));
  // The distance from the lowest number to the highest does not fit in 64 bits.
  EXPECT_EQ(Run({"BITFIELD", "s", "OVERFLOW", "SAT", "SET", "i5", "0", "-9223372036854775808",
                 "GET", "i5", "0", "SET", "i5", "0", "-1000", "GET", "i5", "0"}),
            Ints({0, 15, 15, -16}));
}

TEST_F(Bitmaps, BitfieldThatRefusesAllStillMakesRoom) {
  EXPECT_EQ(Run({"BITFIELD", "k", "OVERFLOW", "FAIL", "SET", "u2", "8", "9"}), "*1\r\n$-1\r\n");
  EXPECT_EQ(context_.StringAt("k"), std::string(2, '\0'));
  ExpectReported(1, "");
}

TEST_F(Bitmaps, BitfieldRefusesBeforeItChanges) {
  Store("k", "abc");
  for (const char* type : {"u64", "i65", "u0", "i0", "x8", "u", "i", "", "U8", "i-1", "u8x"}) {
    EXPECT_EQ(Run({"BITFIELD", "k", "SET", "u8", "0", "1", "GET", type, "x"}), kBadType) << type;
  }
  for (const char* offset : {"-1", "#-1", "x", "#", "", "4294967296", "#536870912"}) {
    EXPECT_EQ(Run({"BITFIELD", "k", "SET", "u8", offset, "x"}), kBadOffset) << offset;
  }
  EXPECT_EQ(Run({"BITFIELD", "k", "SET", "u8", "0", "x"}), kNotInteger);
  EXPECT_EQ(Run({"BITFIELD", "k", "GET"}), kSyntax);
  EXPECT_EQ(Run({"BITFIELD", "k", "GET", "u8"}), kSyntax);
  EXPECT_EQ(Run({"BITFIELD", "k", "SET", "u8", "0"}), kSyntax);
  EXPECT_EQ(Run({"BITFIELD", "k", "OVERFLOW"}), kSyntax);
  EXPECT_EQ(Run({"BITFIELD", "k", "OVERFLOW", "x"}), Err("ERR Invalid OVERFLOW type specified"));
  EXPECT_EQ(Run({"BITFIELD", "list", "GET", "u8", "0"}), kWrongType);
  EXPECT_EQ(Run({"BITFIELD", "list", "SET", "u8", "0", "1"}), kWrongType);
  EXPECT_EQ(context_.StringAt("k"), "abc");
  ExpectReported(0, "");
}

TEST_F(Bitmaps, BitfieldRoOnlyReads) {
  Store("k", "abc");
  EXPECT_EQ(Run({"BITFIELD_RO", "k", "OVERFLOW", "SAT", "GET", "u8", "#1"}), Ints({98}));
  EXPECT_EQ(Run({"BITFIELD_RO", "list", "SET", "u8", "0", "1"}),
            Err("ERR BITFIELD_RO only supports the GET subcommand"));
  EXPECT_EQ(Run({"BITFIELD_RO", "list", "GET", "u8", "0"}), kWrongType);
}

TEST_F(Bitmaps, RowsAreComplete) {
  ASSERT_EQ(BitmapCommands().size(), 7U);
  for (const CommandSpec& row : BitmapCommands()) {
    EXPECT_EQ(row.group, "bitmap") << row.name;
    EXPECT_NE(row.acl & kAclBitmap, 0U) << row.name;
    EXPECT_GE(row.keys.count, 1) << row.name;
    for (const std::string_view text : {row.summary, row.complexity, row.arguments, row.reply}) {
      EXPECT_FALSE(text.empty()) << row.name;
    }
    FakeContext empty({BitmapCommands()});
    const auto words = base::SplitArgs(row.example);
    ASSERT_TRUE(words.has_value()) << row.name;
    EXPECT_TRUE(base::EqualsNoCase(words->at(0), row.name));
    EXPECT_NE(empty.Run(*words)[0], '-') << row.example;
  }
}

// ---- the bit functions against vectors of single bits ----

class BitModel : public testing::Test {
 protected:
  BitModel() {
    const char* given = std::getenv("SAVA_TEST_SEED");
    const uint64_t seed =
        given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    RecordProperty("seed", std::to_string(seed));
    printf("seed %llu (SAVA_TEST_SEED repeats it)\n", static_cast<unsigned long long>(seed));
    random_.seed(seed);
  }

  int64_t Pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  // Mostly long runs of equal bytes, so that searches have to go far.
  std::string Bytes(int64_t longest) {
    std::string bytes(static_cast<size_t>(Pick(0, longest)), Pick(0, 1) == 0 ? '\0' : '\xff');
    for (int64_t n = Pick(0, 3) == 0 ? longest : Pick(0, 3); n > 0 && !bytes.empty(); --n) {
      bytes[static_cast<size_t>(Pick(0, static_cast<int64_t>(bytes.size()) - 1))] =
          static_cast<char>(Pick(0, 255));
    }
    return bytes;
  }

  static bool Bit(std::string_view bytes, int64_t i) {
    const auto at = static_cast<size_t>(i / 8);
    return at < bytes.size() && ((static_cast<uint8_t>(bytes[at]) >> (7 - i % 8)) & 1) != 0;
  }

  std::mt19937_64 random_;
};

TEST_F(BitModel, CountAndFind) {
  for (int round = 0; round < 5000; ++round) {
    const std::string bytes = Bytes(100);
    if (bytes.empty()) {
      EXPECT_EQ(bits::Count(bytes), 0U);
      continue;
    }
    const auto total = static_cast<int64_t>(bytes.size()) * 8;
    const int64_t first = Pick(0, total - 1);
    const int64_t last = Pick(first, total - 1);
    uint64_t all = 0;
    uint64_t count = 0;
    int64_t found[2] = {-1, -1};
    for (int64_t i = 0; i < total; ++i) {
      const bool bit = Bit(bytes, i);
      all += bit ? 1 : 0;
      if (i < first || i > last) continue;
      count += bit ? 1 : 0;
      if (found[bit ? 1 : 0] < 0) found[bit ? 1 : 0] = i;
    }
    ASSERT_EQ(bits::Count(bytes), all);
    ASSERT_EQ(bits::Count(bytes, first, last), count) << first << " " << last;
    ASSERT_EQ(bits::Find(bytes, false, first, last), found[0]) << first << " " << last;
    ASSERT_EQ(bits::Find(bytes, true, first, last), found[1]) << first << " " << last;
  }
}

TEST_F(BitModel, Combine) {
  for (int round = 0; round < 1500; ++round) {
    // Now and then longer than the blocks that Combine works in.
    const int64_t longest = round % 100 == 0 ? 20'000 : 50;
    const auto operation = static_cast<bits::Operation>(Pick(0, 3));
    const size_t count = operation == bits::Operation::kNot ? 1 : static_cast<size_t>(Pick(1, 4));
    std::vector<std::string> strings(count);
    for (std::string& bytes : strings) bytes = Bytes(longest);
    const std::vector<std::string_view> sources(strings.begin(), strings.end());
    size_t size = 0;
    for (const std::string& bytes : strings) size = std::max(size, bytes.size());

    std::string result(size, 'x');
    bits::Combine(operation, sources, result.data(), size);
    for (size_t i = 0; i < size; ++i) {
      const auto byte = [&](size_t s) {
        return i < strings[s].size() ? static_cast<uint8_t>(strings[s][i]) : uint8_t{0};
      };
      uint8_t expected = byte(0);
      if (operation == bits::Operation::kNot) expected = static_cast<uint8_t>(~expected);
      for (size_t s = 1; s < count; ++s) {
        if (operation == bits::Operation::kAnd) expected &= byte(s);
        if (operation == bits::Operation::kOr) expected |= byte(s);
        if (operation == bits::Operation::kXor) expected ^= byte(s);
      }
      ASSERT_EQ(static_cast<uint8_t>(result[i]), expected) << "byte " << i << " of " << size;
    }
  }
}

TEST_F(BitModel, Fields) {
  for (int round = 0; round < 5000; ++round) {
    std::string bytes = Bytes(20);
    const auto width = static_cast<int>(Pick(1, 64));
    const auto offset = static_cast<uint64_t>(Pick(0, 200));
    uint64_t expected = 0;
    for (int i = 0; i < width; ++i) {
      expected = expected << 1 | (Bit(bytes, static_cast<int64_t>(offset) + i) ? 1 : 0);
    }
    ASSERT_EQ(bits::GetField(bytes, offset, width), expected) << offset << " " << width;

    const size_t needed = (offset + static_cast<uint64_t>(width) + 7) / 8;
    if (bytes.size() < needed) bytes.resize(needed, '\0');
    const std::string before = bytes;
    const uint64_t value = random_();
    bits::SetField(bytes.data(), offset, width, value);
    for (int64_t i = 0; i < static_cast<int64_t>(bytes.size()) * 8; ++i) {
      const int64_t at = i - static_cast<int64_t>(offset);
      const bool inside = at >= 0 && at < width;
      const bool bit = inside ? ((value >> (width - 1 - at)) & 1) != 0 : Bit(before, i);
      ASSERT_EQ(Bit(bytes, i), bit) << "bit " << i << " field " << offset << " " << width;
    }
  }
}

}  // namespace
}  // namespace sava::commands
