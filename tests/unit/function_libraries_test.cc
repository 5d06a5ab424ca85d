// Function libraries as they are kept, and what FUNCTION in a log does to them.
#include "engine/function_libraries.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "../../fuzz/function_restore_property.h"
#include "storage/rdb_format.h"
#include "types/value/save.h"

namespace sava::engine {
namespace {

using Words = std::vector<std::string_view>;
using Sources = std::vector<std::string>;

constexpr std::string_view kOne = "#!lua name=one\nreturn 1";
constexpr std::string_view kOther = "#!lua name=one\nreturn 2";
constexpr std::string_view kTwo = "#!lua NAME=\"two\" \r\nreturn 3";

std::string Replayed(FunctionLibraries& libraries, const Words& words) {
  const base::Status status = libraries.Replay(words);
  return status ? "" : status.error();
}

std::string Dumped(const Words& codes) {
  std::string body;
  {
    types::Writer out(&body);
    for (const std::string_view code : codes) {
      out.Byte(storage::kRdbFunction);
      out.String(code);
    }
  }
  types::SealDump(&body);
  return body;
}

TEST(FunctionLibraries, AreNamedByTheirFirstLine) {
  EXPECT_EQ(FunctionLibraries::NameOf(kOne), "one");
  EXPECT_EQ(FunctionLibraries::NameOf(kTwo), "two");
  EXPECT_EQ(FunctionLibraries::NameOf("#!lua\nname=x"), "");
  EXPECT_EQ(FunctionLibraries::NameOf("name=x"), "");
  EXPECT_EQ(FunctionLibraries::NameOf("#!lua name=\"x"), "");
  EXPECT_EQ(FunctionLibraries::NameOf(""), "");
}

TEST(FunctionLibraries, AreKeptAsTheyCame) {
  FunctionLibraries libraries;
  libraries.Add(kOne);
  libraries.Add(kTwo);
  libraries.Add("no name at all");
  libraries.Add(kOther);
  EXPECT_EQ(libraries.sources(),
            (Sources{std::string(kTwo), "no name at all", std::string(kOther)}));
  EXPECT_EQ(libraries.count(), 3U);
  EXPECT_GT(libraries.bytes(), kTwo.size() + kOther.size());
}

TEST(FunctionLibraries, ChangeByWhatALogSays) {
  FunctionLibraries libraries;
  EXPECT_EQ(Replayed(libraries, {"FUNCTION", "LOAD", kOne}), "");
  EXPECT_EQ(Replayed(libraries, {"function", "load", kOther}), "ERR Library 'one' already exists");
  EXPECT_EQ(libraries.sources(), Sources{std::string(kOne)});
  EXPECT_EQ(Replayed(libraries, {"function", "load", "replace", kOther}), "");
  EXPECT_EQ(libraries.sources(), Sources{std::string(kOther)});
  EXPECT_EQ(Replayed(libraries, {"FUNCTION", "LOAD", kTwo}), "");
  EXPECT_EQ(Replayed(libraries, {"FUNCTION", "DELETE", "three"}), "ERR Library not found");
  EXPECT_EQ(Replayed(libraries, {"FUNCTION", "DELETE", "one"}), "");
  EXPECT_EQ(libraries.sources(), Sources{std::string(kTwo)});
  EXPECT_EQ(Replayed(libraries, {"FUNCTION", "FLUSH", "ASYNC"}), "");
  EXPECT_EQ(libraries.count(), 0U);
  for (const Words& wrong : {Words{"FUNCTION"}, Words{"FUNCTION", "LOAD"},
                             Words{"FUNCTION", "LIST"}, Words{"FUNCTION", "LOAD", "again", kOne},
                             Words{"FUNCTION", "LOAD", "no name"}, Words{"FUNCTION", "DELETE"}}) {
    EXPECT_NE(Replayed(libraries, wrong), "") << wrong.size();
  }
  EXPECT_EQ(libraries.count(), 0U);
}

TEST(FunctionLibraries, AreRestoredWholeOrNotAtAll) {
  FunctionLibraries libraries;
  libraries.Add(kOne);
  const std::string dump = Dumped({kTwo, kOther});
  EXPECT_EQ(Replayed(libraries, {"FUNCTION", "RESTORE", dump}), "ERR Library one already exists");
  EXPECT_EQ(libraries.sources(), Sources{std::string(kOne)});
  EXPECT_NE(Replayed(libraries, {"FUNCTION", "RESTORE", dump.substr(1), "FLUSH"}), "");
  EXPECT_EQ(libraries.sources(), Sources{std::string(kOne)});
  EXPECT_EQ(Replayed(libraries, {"FUNCTION", "RESTORE", dump, "REPLACE"}), "");
  EXPECT_EQ(libraries.sources(), (Sources{std::string(kTwo), std::string(kOther)}));
  EXPECT_EQ(Replayed(libraries, {"FUNCTION", "RESTORE", Dumped({kOne}), "FLUSH"}), "");
  EXPECT_EQ(libraries.sources(), Sources{std::string(kOne)});
  EXPECT_NE(Replayed(libraries, {"FUNCTION", "RESTORE", dump, "never"}), "");
}

TEST(FunctionLibraries, PayloadsHoldTheirProperty) {
  const auto corpus = std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/function_restore";
  int replayed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    EXPECT_EQ(CheckFunctionRestore(bytes), "") << entry.path();
    ++replayed;
  }
  EXPECT_GE(replayed, 10);
}

}  // namespace
}  // namespace sava::engine
