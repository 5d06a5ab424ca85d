// A data set as commands: what is written for each kind of value, and that it reads as a log.
#include "storage/command_writer.h"

#include <gtest/gtest.h>

#include <vector>

#include "storage/aof_reader.h"
#include "types/collections/hash.h"
#include "types/collections/list.h"
#include "types/collections/stream.h"
#include "types/counters/afc.h"

namespace sava::storage {
namespace {

using Command = std::vector<std::string>;

std::vector<Command> CommandsIn(const std::string& bytes) {
  std::vector<Command> commands;
  const AofEnd end = ReadAof(bytes, [&](const AofCommand& command) {
    commands.emplace_back(command.words.begin(), command.words.end());
    return base::Status();
  });
  EXPECT_EQ(end.kind, AofEnd::Kind::kWhole) << end.text;
  return commands;
}

template <typename Write>
std::vector<Command> Written(const Write& write) {
  std::string bytes;
  CommandWriter out([&bytes](std::string_view more) { bytes += more; });
  write(out);
  out.End();
  EXPECT_FALSE(out.error());
  return CommandsIn(bytes);
}

void Put(CommandWriter& out, const snapshot::CutKey& key, const types::Object& value) {
  value.Save(out.OpenValue(key, value.rdb_type()));
  out.CloseValue();
}

TEST(CommandWriter, WritesStringsAndTimes) {
  const auto commands = Written([](CommandWriter& out) {
    out.Function("#!lua name=f\n");
    out.SelectDb(3, 2, 1);
    out.String({"a", 77}, "x y");
    out.SwitchDb(0);
    out.Number({"b"}, -5);
  });
  EXPECT_EQ(commands, (std::vector<Command>{{"FUNCTION", "LOAD", "#!lua name=f\n"},
                                            {"SELECT", "3"},
                                            {"SET", "a", "x y"},
                                            {"PEXPIREAT", "a", "77"},
                                            {"SELECT", "0"},
                                            {"SET", "b", "-5"}}));
}

TEST(CommandWriter, WritesSomeElementsAtATime) {
  types::List list;
  for (int i = 0; i < 130; ++i) list.Push(types::List::End::kTail, std::to_string(i));
  const auto commands = Written([&](CommandWriter& out) { Put(out, {"l", 9}, list); });
  ASSERT_EQ(commands.size(), 4U);
  EXPECT_EQ(commands[0].size(), 2U + 64);
  EXPECT_EQ(commands[2], (Command{"RPUSH", "l", "128", "129"}));
  EXPECT_EQ(commands[3], (Command{"PEXPIREAT", "l", "9"}));
  types::List long_ones;
  for (int i = 0; i < 3; ++i) {
    long_ones.Push(types::List::End::kTail, std::string(1 << 20, 'x'));
  }
  EXPECT_EQ(Written([&](CommandWriter& out) { Put(out, {"l"}, long_ones); }).size(), 3U);
}

TEST(CommandWriter, WritesTimesOfFields) {
  types::Hash hash;
  hash.Set("f", "v", types::Hash::kNever, types::kDefaultCollectionLimits);
  hash.SetExpiry("f", 4102444800000);
  EXPECT_EQ(Written([&](CommandWriter& out) { Put(out, {"h"}, hash); }),
            (std::vector<Command>{{"HMSET", "h", "f", "v"},
                                  {"HPEXPIREAT", "h", "4102444800000", "FIELDS", "1", "f"}}));
}

TEST(CommandWriter, WritesStreamsByCommandsWhereTheseAreEnough) {
  types::Stream stream;
  const std::string_view pairs[] = {"f", "v"};
  stream.Add({1, 1}, pairs, types::kDefaultCollectionLimits);
  stream.Add({1, 2}, pairs, types::kDefaultCollectionLimits);
  stream.AddGroup("g", {1, 2}, 2);
  types::StreamGroup& group = *stream.FindGroup("g");
  group.AddConsumer("idle", 5);
  group.Assign({{1, 2}, 77, 3, group.AddConsumer("c", 5)});
  const auto write = [&](CommandWriter& out) { Put(out, {"s", 9}, stream); };
  EXPECT_EQ(
      Written(write),
      (std::vector<Command>{
          {"XADD", "s", "1-1", "f", "v"},
          {"XADD", "s", "1-2", "f", "v"},
          {"XSETID", "s", "1-2", "ENTRIESADDED", "2", "MAXDELETEDID", "0-0"},
          {"XGROUP", "CREATE", "s", "g", "1-2", "ENTRIESREAD", "2"},
          {"XGROUP", "CREATECONSUMER", "s", "g", "c"},
          {"XGROUP", "CREATECONSUMER", "s", "g", "idle"},
          {"XCLAIM", "s", "g", "c", "0", "1-2", "TIME", "77", "RETRYCOUNT", "3", "JUSTID", "FORCE"},
          {"PEXPIREAT", "s", "9"}}));
  stream.Delete({1, 2});  // and it is pending still
  const auto commands = Written(write);
  ASSERT_EQ(commands.size(), 1U);
  EXPECT_EQ(commands[0][0], "RESTORE");
  EXPECT_EQ(commands[0][2], "9");
  EXPECT_EQ(commands[0].back(), "ABSTTL");
}

TEST(CommandWriter, RestoresNativeTypes) {
  const types::Afc counter;
  const auto commands = Written([&](CommandWriter& out) { Put(out, {"c"}, counter); });
  ASSERT_EQ(commands.size(), 1U);
  ASSERT_EQ(commands[0].size(), 4U);
  EXPECT_EQ(commands[0][0], "RESTORE");
  EXPECT_EQ(commands[0][2], "0");
  std::string_view body;
  EXPECT_TRUE(types::OpenDump(commands[0][3], &body));
  EXPECT_EQ(body[0], static_cast<char>(types::kRdbModule));
}

}  // namespace
}  // namespace sava::storage
