// The parts of `sava frontier` that can be tried alone: command files, access logs, stack
// distances.
#include "cli/frontier_script.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "../../fuzz/frontier_commands_property.h"
#include "cli/frontier_access_log.h"
#include "cli/frontier_files.h"
#include "cli/frontier_stack_distance.h"

namespace sava::cli {
namespace {

TEST(FrontierScript, CorpusHoldsItsProperty) {
  const std::filesystem::path corpus =
      std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/frontier_commands";
  int replayed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)),
                            std::istreambuf_iterator<char>());
    EXPECT_EQ(CheckScript(bytes), "") << entry.path();
    ++replayed;
  }
  EXPECT_GE(replayed, 8);
}

TEST(FrontierScript, RandomWordsHoldTheProperty) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<std::string> words = {"ADD_URLS",    "ESCALONA",   "ESCALONA_TUDO",
                                            "VER_HOST",    "LIMPA_HOST", "ESCALONA_HOST",
                                            "LISTA_HOSTS", " ",          "\n",
                                            "\r\n",        "2",          "h"};
    const auto picks =
        *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, words.size()));
    std::string text;
    for (const size_t pick : picks) text += words[pick];
    RC_ASSERT(CheckScript(text).empty());
  }));
}

TEST(FrontierScript, EveryCommand) {
  ScriptReader reader(
      "ADD_URLS 2\r\n http://a/x \r\n\r\nESCALONA_TUDO\nESCALONA 3\n\nESCALONA_HOST h 4\n"
      "VER_HOST h\nLISTA_HOSTS\nLIMPA_HOST h\n\tLIMPA_TUDO");
  EXPECT_EQ(reader.Next().verb, ScriptVerb::kAddUrls);
  EXPECT_EQ(reader.Next().text, "http://a/x");
  EXPECT_EQ(reader.Next().text, "");  // counts as a URL
  for (const auto& [verb, line, count, host] :
       std::vector<std::tuple<ScriptVerb, uint64_t, uint64_t, std::string>>{
           {ScriptVerb::kScheduleAll, 4, 0, ""},
           {ScriptVerb::kSchedule, 5, 3, ""},
           {ScriptVerb::kScheduleHost, 7, 4, "h"},
           {ScriptVerb::kShowHost, 8, 0, "h"},
           {ScriptVerb::kListHosts, 9, 0, ""},
           {ScriptVerb::kClearHost, 10, 0, "h"},
           {ScriptVerb::kClearAll, 11, 0, ""}}) {
    const ScriptStep step = reader.Next();
    EXPECT_EQ(step.kind, ScriptStep::Kind::kCommand);
    EXPECT_EQ(step.verb, verb);
    EXPECT_EQ(step.line, line);
    EXPECT_EQ(step.count, count);
    EXPECT_EQ(step.host, host);
  }
  EXPECT_EQ(reader.Next().kind, ScriptStep::Kind::kEnd);
  EXPECT_EQ(reader.Next().kind, ScriptStep::Kind::kEnd);
}

TEST(FrontierFiles, NamesBeside) {
  EXPECT_EQ(NameBeside("x.txt", "-out.txt"), "x-out.txt");
  EXPECT_EQ(NameBeside("a.d/b.c.txt", "-access.log"), "a.d/b.c-access.log");
  EXPECT_EQ(NameBeside("/a.d/plain", "-out.txt"), "/a.d/plain-out.txt");
}

TEST(AccessLog, OnlyAccessesAreRead) {
  Access access;
  ASSERT_TRUE(ParseAccess("7 1000000101 W 0xffffffffffffffff 64", &access));
  EXPECT_EQ(access.phase, 7U);
  EXPECT_EQ(access.id, 1000000101U);
  EXPECT_EQ(access.address, UINT64_MAX);
  EXPECT_EQ(access.size, 64U);
  EXPECT_TRUE(access.write);
  ASSERT_TRUE(ParseAccess("0 0 R 0x0 0\r", &access));
  EXPECT_FALSE(access.write);
  for (const char* line : {"", "0", "0 0", "0 0 R", "0 0 R 0x", "0 0 R 0x1", "0 0 R 1 1",
                           "0 0 r 0x1 1", "0 0 RW 0x1 1", "-1 0 R 0x1 1", "0 0 R 0x1 1 1",
                           "0 0 R 0x1g 1", "0 0 R 0x10000000000000000 1", "0  0 R 0x1 1"}) {
    EXPECT_FALSE(ParseAccess(line, &access)) << line;
  }
}

TEST(AccessLog, NoTwoStructuresShareAnId) {
  std::vector<uint64_t> ids = {kQueueCells, kHostItems};
  for (uint64_t host = 1; host <= 1000; ++host) {
    ids.push_back(CellsOf(host));
    ids.push_back(UrlsOf(host));
  }
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
}

// What a stack kept as a list says.
class PlainStack {
 public:
  uint64_t Touch(uint64_t address) {
    uint64_t distance = StackDistance::kFirst;
    const auto place = std::find(stack_.begin(), stack_.end(), address);
    if (place != stack_.end()) {
      distance = static_cast<uint64_t>(place - stack_.begin());
      stack_.erase(place);
    }
    stack_.insert(stack_.begin(), address);
    return distance;
  }
  void Keep(uint64_t mask) {
    std::erase_if(stack_,
                  [mask](uint64_t address) { return (StackDistance::Hash(address) & mask) != 0; });
  }
  size_t size() const { return stack_.size(); }

 private:
  std::vector<uint64_t> stack_;
};

TEST(StackDistance, AsAListKeptByHand) {
  EXPECT_TRUE(rc::check([] {
    StackDistance fast;
    PlainStack plain;
    const auto range = *rc::gen::inRange<uint64_t>(1, 200);
    const auto touches =
        *rc::gen::container<std::vector<uint64_t>>(rc::gen::inRange<uint64_t>(0, range));
    for (int round = 0; round < 4; ++round) {
      for (const uint64_t address : touches) {
        RC_ASSERT(fast.Touch(address) == plain.Touch(address));
      }
      if (round == 2) {
        fast.Keep(1);
        plain.Keep(1);
      }
      RC_ASSERT(fast.size() == plain.size());
    }
  }));
}

}  // namespace
}  // namespace sava::cli
