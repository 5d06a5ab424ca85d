// The reader of append-only files: whole commands, whole transactions, and nothing else.
#include "storage/aof_reader.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "../../fuzz/aof_property.h"

namespace sava::storage {
namespace {

using Words = std::vector<std::string>;

std::string Resp(const Words& words) {
  std::string out = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    out += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return out;
}

// A file as the log writes it, and the places where it may end whole.
struct Sample {
  std::string bytes;
  std::map<size_t, size_t> whole;  // offset: commands up to there
};

Sample RandomSample() {
  Sample sample;
  size_t commands = 0;
  sample.whole[0] = 0;
  const auto end = [&] { sample.whole[sample.bytes.size()] = commands; };
  const auto word = rc::gen::container<std::string>(
      rc::gen::element('a', '\r', '\n', '$', '*', '#', '\0', '1', '\xff'));
  const int count = *rc::gen::inRange(0, 12);
  for (int i = 0; i < count; ++i) {
    switch (*rc::gen::inRange(0, 5)) {
      case 0:
        sample.bytes += "#TS:1700000000\r\n";
        break;
      case 1: {
        const int inside = *rc::gen::inRange(0, 4);
        sample.bytes += Resp({"MULTI"});
        for (int j = 0; j < inside; ++j) sample.bytes += Resp({"SET", *word, *word});
        commands += static_cast<size_t>(inside);
        sample.bytes += Resp({"exec"});
        break;
      }
      default:
        sample.bytes += Resp({"SET", *word, *word});
        ++commands;
    }
    end();
  }
  return sample;
}

size_t Count(std::string_view bytes, AofEnd* end) {
  size_t commands = 0;
  *end = ReadAof(bytes, [&commands](const AofCommand&) -> base::Status {
    ++commands;
    return {};
  });
  return commands;
}

TEST(AofReader, EveryTruncationEndsWithTheLastWholeCommand) {
  EXPECT_TRUE(rc::check([] {
    const Sample sample = RandomSample();
    for (size_t size = 0; size <= sample.bytes.size(); ++size) {
      const auto at = std::prev(sample.whole.upper_bound(size));
      AofEnd end;
      RC_ASSERT(Count(std::string_view(sample.bytes).substr(0, size), &end) == at->second);
      RC_ASSERT(end.good == at->first);
      RC_ASSERT(end.commands == at->second);
      RC_ASSERT(end.kind == (at->first == size ? AofEnd::Kind::kWhole : AofEnd::Kind::kTruncated));
    }
  }));
}

TEST(AofReader, FlippedBitsDoNoHarm) {
  EXPECT_TRUE(rc::check([] {
    std::string bytes = RandomSample().bytes;
    RC_PRE(!bytes.empty());
    for (int i = *rc::gen::inRange(1, 4); i > 0; --i) {
      const auto at = *rc::gen::inRange<size_t>(0, bytes.size());
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << *rc::gen::inRange(0, 8)));
    }
    RC_ASSERT(CheckAof(bytes) == "");
  }));
}

TEST(AofReader, AnyBytesDoNoHarm) {
  EXPECT_TRUE(rc::check([](const std::string& bytes) { RC_ASSERT(CheckAof(bytes) == ""); }));
}

TEST(AofReader, RefusesWhatIsNoCommand) {
  const std::string good = Resp({"SET", "a", "1"});
  const std::pair<std::string, uint64_t> cases[] = {
      // what follows the good command, where it is wrong
      {"SET a 1\r\n", 0},
      {"+OK\r\n", 0},
      {"\r\n", 0},
      {"*0\r\n", 0},
      {"*-1\r\n", 1},
      {"*x\r\n", 1},
      {"*\r\n", 1},
      {"*1\n$4\r\nPING\r\n", 2},
      {"*01\r\n$4\r\nPING\r\n", 0},
      {"*2147483648\r\n", 0},
      {"*99999999999999999999999\r\n", 0},
      {"*1\r\n$-1\r\n", 5},
      {"*1\r\n$4294967296\r\n", 4},
      {"*1\r\n:4\r\n", 4},
      {"*1\r\n$4\r\nPINGx\r\n", 12},
      {"*1\r\n$4\r\nPING\rx", 13},
      {Resp({"EXEC"}), 0},
      {Resp({"MULTI"}) + Resp({"MULTI"}), 15},
  };
  for (const auto& [bytes, offset] : cases) {
    AofEnd end;
    EXPECT_EQ(Count(good + bytes, &end), 1U) << bytes;
    EXPECT_EQ(end.kind, AofEnd::Kind::kCorrupt) << bytes;
    EXPECT_EQ(end.offset, good.size() + offset) << bytes;
    EXPECT_EQ(end.good, good.size()) << bytes;
    EXPECT_FALSE(end.text.empty());
  }
}

TEST(AofReader, HugeLengthsAreACutOffTail) {
  for (const std::string bytes :
       {"*1048576\r\n", "*1\r\n$4294967295\r\nabc", "*2\r\n$1\r\na\r\n"}) {
    AofEnd end;
    EXPECT_EQ(Count(bytes, &end), 0U);
    EXPECT_EQ(end.kind, AofEnd::Kind::kTruncated);
    EXPECT_EQ(end.good, 0U);
  }
}

TEST(AofReader, HandsOnTransactionsWithTheirEnd) {
  const std::string bytes = Resp({"SET", "a", "1"}) + Resp({"multi"}) + Resp({"SET", "b", "2"}) +
                            "#TS:1\r\n" + Resp({"SET", "c", "3"}) + Resp({"EXEC"});
  std::string seen;
  const AofEnd end = ReadAof(bytes, [&seen](const AofCommand& command) -> base::Status {
    seen += std::string(command.words[1]) + (command.in_transaction ? "t" : "") +
            (command.last ? "l" : "") + " ";
    return {};
  });
  EXPECT_EQ(seen, "a bt ctl ");
  EXPECT_EQ(end.kind, AofEnd::Kind::kWhole);
  EXPECT_EQ(end.good, bytes.size());
}

TEST(AofReader, TheReceiverMayRefuse) {
  const std::string first = Resp({"SET", "a", "1"});
  const std::string rest =
      Resp({"MULTI"}) + Resp({"SET", "b", "1"}) + Resp({"BAD"}) + Resp({"EXEC"}) + first;
  const AofEnd end = ReadAof(first + rest, [](const AofCommand& command) -> base::Status {
    if (command.words[0] == "BAD") return base::Error{"no such command"};
    return {};
  });
  EXPECT_EQ(end.kind, AofEnd::Kind::kRefused);
  EXPECT_EQ(end.text, "no such command");
  EXPECT_EQ(end.good, first.size());
  EXPECT_EQ(end.offset, first.size() + Resp({"MULTI"}).size() + Resp({"SET", "b", "1"}).size());
  EXPECT_EQ(end.commands, 2U);
}

TEST(AofReader, ZerosOfACrashAreACutOffTail) {
  const std::string one = Resp({"SET", "a", "1"});
  const std::string zeros(50, '\0');
  AofEnd end;
  // Up to the end, in any file.
  EXPECT_EQ(Count(one + zeros, &end), 1U);
  EXPECT_EQ(end.kind, AofEnd::Kind::kTruncated);
  EXPECT_EQ(end.good, one.size());
  // In the midst of a file that does not say what was synced.
  EXPECT_EQ(Count(one + zeros + one, &end), 1U);
  EXPECT_EQ(end.kind, AofEnd::Kind::kCorrupt);
  // In the midst of one that does, beyond that.
  const std::string begin = AofSyncedLine(0) + one;
  EXPECT_EQ(Count(begin + zeros + one, &end), 1U);
  EXPECT_EQ(end.kind, AofEnd::Kind::kTruncated);
  EXPECT_EQ(end.good, begin.size());
  EXPECT_EQ(Count(begin + zeros + AofSyncedLine(begin.size()) + one, &end), 1U);
  EXPECT_EQ(end.kind, AofEnd::Kind::kTruncated);
  // Where it says that more was synced.
  EXPECT_EQ(Count(begin + zeros + one + AofSyncedLine(begin.size() + 10) + one, &end), 1U);
  EXPECT_EQ(end.kind, AofEnd::Kind::kCorrupt);
  // A value that looks like such a line.
  EXPECT_EQ(Count(begin + zeros + Resp({"SET", "a", "#SYNCED:99999999"}), &end), 1U);
  EXPECT_EQ(end.kind, AofEnd::Kind::kTruncated);
}

TEST(AofReader, TellsProgress) {
  std::string bytes;
  while (bytes.size() < (5U << 20)) bytes += Resp({"SET", "key", std::string(1000, 'x')});
  std::vector<uint64_t> told;
  const AofEnd end = ReadAof(
      bytes, [](const AofCommand&) -> base::Status { return {}; },
      [&told](uint64_t done) { told.push_back(done); });
  EXPECT_EQ(end.kind, AofEnd::Kind::kWhole);
  EXPECT_GE(told.size(), 3U);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_LE(told.back(), bytes.size());
}

TEST(AofReader, FuzzCorpusHoldsItsProperty) {
  const auto corpus = std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/aof";
  int replayed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)),
                            std::istreambuf_iterator<char>());
    EXPECT_EQ(CheckAof(bytes), "") << entry.path();
    ++replayed;
  }
  EXPECT_GE(replayed, 6);
}

}  // namespace
}  // namespace sava::storage
