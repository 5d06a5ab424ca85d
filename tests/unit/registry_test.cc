// The command table: lookup, what follows from a row, and where keys stand.
#include "commands/registry.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "all_families.h"
#include "base/text.h"
#include "commands/native/families.h"
#include "commands/stock.h"

namespace sava::commands {
namespace {

void Nothing(Context&) {}

using Words = std::vector<std::string_view>;

constexpr CommandSpec kConfigRows[] = {
    {.name = "get", .handler = Nothing, .arity = -3, .flags = kAdmin | kLoading},
    {.name = "set", .handler = Nothing, .arity = -4, .flags = kAdmin},
};

bool EvenIndexes(Args args, std::vector<int>* indexes) {
  for (size_t i = 2; i < args.size(); i += 2) indexes->push_back(static_cast<int>(i));
  return args.size() > 2;
}

uint16_t OverwriteOrRead(Args args) {
  return args.size() > 2 ? kKeyRw | kKeyAccess : kKeyOw | kKeyUpdate;
}

constexpr CommandSpec kRows[] = {
    {.name = "get",
     .handler = Nothing,
     .arity = 2,
     .flags = kReadonly | kFast,
     .keys = {KeyAt(1, kKeyRo | kKeyAccess)}},
    {.name = "mset",
     .handler = Nothing,
     .arity = -3,
     .flags = kWrite,
     .keys = {KeysFrom(1, 2, kKeyOw)}},
    {.name = "bitop",
     .handler = Nothing,
     .arity = -4,
     .flags = kWrite,
     .keys = {KeyAt(2, kKeyOw), KeysFrom(3, 1, kKeyRo)}},
    {.name = "config", .arity = -2, .subcommands = kConfigRows},
    {.name = "ping", .handler = Nothing, .arity = -1, .flags = kFast},
    {.name = "zunionstore",
     .handler = Nothing,
     .arity = -4,
     .flags = kWrite,
     .keys = {KeyAt(1, kKeyOw), {.flags = kKeyRo, .first = 2, .keynum = true}}},
    {.name = "xread",
     .handler = Nothing,
     .arity = -4,
     .flags = kReadonly | kBlocking,
     .keys = {{.flags = kKeyRo, .last = -1, .limit = 2, .keyword = "STREAMS", .keyword_from = 1}}},
    {.name = "migrate",
     .handler = Nothing,
     .arity = -6,
     .flags = kWrite,
     .keys =
         {KeyAt(3, kKeyRw),
          {.flags = kKeyRw | kKeyIncomplete, .last = -1, .keyword = "KEYS", .keyword_from = -2}}},
    {.name = "spublish",
     .handler = Nothing,
     .arity = 3,
     .flags = kPubsub | kFast,
     .keys = {KeyAt(1, kKeyNotKey)}},
    {.name = "odd",
     .handler = Nothing,
     .arity = -2,
     .keys = {KeyAt(2, kKeyRo)},
     .find_keys = EvenIndexes},
    {.name = "either",
     .handler = Nothing,
     .arity = -2,
     .keys = {KeyAt(1, kKeyRw | kKeyVariableFlags)},
     .key_flags = OverwriteOrRead},
    {.name = "eval",
     .handler = Nothing,
     .arity = -3,
     .flags = kReadonly | kNoscript,
     .acl = kAclScripting,
     .keys = {{.flags = kKeyRw, .first = 2, .keynum = true}}},
    {.name = "everything", .handler = Nothing, .arity = 1, .lock = LockClass::kAll},
    {.name = "georadiusbymember_ro", .handler = Nothing, .arity = 1},
    {.name = "georadiusbymembar_ro", .handler = Nothing, .arity = 1},
};

class Registry : public testing::Test {
 protected:
  Registry() { table_.Add(kRows); }

  const Command& At(std::string_view name) {
    const Command* command = table_.Find(name);
    EXPECT_NE(command, nullptr) << name;
    return *command;
  }
  // "1 3", or "invalid".
  std::string Keys(const Words& words) {
    std::vector<int> indexes;
    if (!KeyIndexes(*table_.Resolve(words), words, &indexes)) return "invalid";
    std::string text;
    for (const int index : indexes) {
      if (!text.empty()) text += ' ';
      text += std::to_string(index);
    }
    return text;
  }

  CommandTable table_;
};

TEST_F(Registry, FindsNamesInAnyCase) {
  for (const CommandSpec& row : kRows) {
    EXPECT_EQ(At(row.name).spec, &row);
    EXPECT_EQ(At(base::ToUpper(row.name)).spec, &row);
    std::string mixed(row.name);
    for (size_t i = 0; i < mixed.size(); i += 2) mixed[i] = base::ToUpper(mixed)[i];
    EXPECT_EQ(At(mixed).spec, &row);
    for (size_t i = 0; i < mixed.size(); ++i) {
      std::string other(row.name);
      other[i] = '#';
      EXPECT_EQ(table_.Find(other), nullptr) << other;
      EXPECT_EQ(table_.Find(row.name.substr(0, i)), nullptr);
    }
    EXPECT_EQ(table_.Find(std::string(row.name) + "x"), nullptr);
  }
  EXPECT_EQ(table_.Find(""), nullptr);
  EXPECT_EQ(table_.Find(std::string(100000, 'g')), nullptr);
  EXPECT_EQ(CommandTable().Find("get"), nullptr);
}

TEST_F(Registry, FoldsLettersOnly) {
  static constexpr CommandSpec kOdd[] = {{.name = "a[b`c{", .handler = Nothing, .arity = 1}};
  table_.Add(kOdd);
  EXPECT_NE(table_.Find("A[B`C{"), nullptr);
  EXPECT_EQ(table_.Find("a{b`c{"), nullptr);
  EXPECT_EQ(table_.Find("a[b@c{"), nullptr);
  EXPECT_EQ(table_.Find("\xe1[b`c{"), nullptr);
}

TEST_F(Registry, ResolvesSubcommands) {
  EXPECT_EQ(table_.Resolve(Words{"CONFIG", "Get", "x"})->full_name, "config|get");
  EXPECT_EQ(table_.Resolve(Words{"CONFIG", "nope"})->full_name, "config");
  EXPECT_EQ(table_.Resolve(Words{"CONFIG"})->full_name, "config");
  EXPECT_EQ(table_.Resolve(Words{"GET", "get"})->full_name, "get");
  EXPECT_EQ(table_.Resolve(Words{"nope"}), nullptr);
  EXPECT_EQ(table_.Resolve({}), nullptr);
  EXPECT_EQ(table_.Find("config|get"), nullptr);
  EXPECT_EQ(table_.FindFullName("CONFIG|GET"), table_.Resolve(Words{"config", "get"}));
  EXPECT_EQ(table_.FindFullName("config|nope"), nullptr);
  EXPECT_EQ(table_.FindFullName("config|get|x"), nullptr);
  EXPECT_EQ(table_.FindFullName("get|x"), nullptr);
  EXPECT_EQ(table_.FindFullName("config"), table_.Find("config"));
}

TEST_F(Registry, NumbersCommandsDensely) {
  std::set<std::string> names;
  for (size_t i = 0; i < table_.by_id().size(); ++i) {
    EXPECT_EQ(table_.by_id()[i]->id, static_cast<int>(i));
    names.insert(table_.by_id()[i]->full_name);
  }
  EXPECT_EQ(names.size(), std::size(kRows) + std::size(kConfigRows));
  EXPECT_EQ(table_.all().size(), std::size(kRows));
  EXPECT_EQ(table_.Resolve(Words{"config", "set"})->parent, table_.Find("config"));
}

TEST_F(Registry, CategoriesFollowFromFlags) {
  const auto names = [&](std::string_view name) {
    std::string text;
    for (const std::string_view category : CategoryNames(table_.FindFullName(name)->acl)) {
      text += text.empty() ? "" : " ";
      text += category;
    }
    return text;
  };
  EXPECT_EQ(names("get"), "read fast");
  EXPECT_EQ(names("mset"), "write slow");
  EXPECT_EQ(names("config|get"), "admin slow dangerous");
  EXPECT_EQ(names("config"), "slow");
  EXPECT_EQ(names("spublish"), "pubsub fast");
  EXPECT_EQ(names("xread"), "read slow blocking");
  EXPECT_EQ(names("eval"), "slow scripting");
}

TEST_F(Registry, LocksFollowFromKeys) {
  EXPECT_EQ(At("get").lock, LockClass::kKeys);
  EXPECT_EQ(At("odd").lock, LockClass::kKeys);
  EXPECT_EQ(At("ping").lock, LockClass::kNone);
  EXPECT_EQ(At("spublish").lock, LockClass::kNone);
  EXPECT_EQ(At("everything").lock, LockClass::kAll);
}

TEST_F(Registry, FixedPlacesAreKnownBeforehand) {
  const auto range = [&](std::string_view name) {
    const Command& command = At(name);
    return std::to_string(command.first_key) + ' ' + std::to_string(command.last_key) + ' ' +
           std::to_string(command.key_step) + (command.simple_keys ? " simple" : "");
  };
  EXPECT_EQ(range("get"), "1 1 1 simple");
  EXPECT_EQ(range("mset"), "1 -1 2 simple");
  EXPECT_EQ(range("bitop"), "2 -1 1 simple");
  EXPECT_EQ(range("ping"), "0 0 0");
  EXPECT_EQ(range("zunionstore"), "1 1 1");
  EXPECT_EQ(range("xread"), "0 0 0");
  EXPECT_EQ(range("migrate"), "3 3 1");
  EXPECT_EQ(range("spublish"), "1 1 1");
  EXPECT_EQ(range("odd"), "2 2 1");
}

TEST_F(Registry, FindsKeys) {
  EXPECT_EQ(Keys({"get", "a"}), "1");
  EXPECT_EQ(Keys({"mset", "a", "1", "b", "2"}), "1 3");
  EXPECT_EQ(Keys({"mset", "a", "1", "b"}), "1 3");
  EXPECT_EQ(Keys({"bitop", "and", "d", "a", "b"}), "2 3 4");
  EXPECT_EQ(Keys({"ping", "a"}), "");
  EXPECT_EQ(Keys({"spublish", "a", "b"}), "");
  EXPECT_EQ(Keys({"odd", "x", "a", "x", "b"}), "2 4");
  EXPECT_EQ(Keys({"odd", "x"}), "invalid");
  EXPECT_EQ(Keys({"get"}), "invalid");
}

TEST_F(Registry, FindsKeysByNumber) {
  EXPECT_EQ(Keys({"zunionstore", "d", "2", "a", "b", "WEIGHTS", "1", "2"}), "1 3 4");
  EXPECT_EQ(Keys({"zunionstore", "d", "2", "a"}), "invalid");
  EXPECT_EQ(Keys({"zunionstore", "d", "x", "a"}), "invalid");
  EXPECT_EQ(Keys({"zunionstore", "d", "-1", "a"}), "invalid");
  EXPECT_EQ(Keys({"zunionstore", "d", "9223372036854775807", "a"}), "invalid");
  EXPECT_EQ(Keys({"eval", "x", "0", "a"}), "");
  EXPECT_EQ(Keys({"eval", "x", "2", "a", "b"}), "3 4");
}

TEST_F(Registry, FindsKeysByKeyword) {
  EXPECT_EQ(Keys({"xread", "COUNT", "2", "streams", "a", "b", "0", "0"}), "4 5");
  EXPECT_EQ(Keys({"xread", "COUNT", "2", "a", "b"}), "");
  EXPECT_EQ(Keys({"xread", "COUNT", "2", "STREAMS"}), "");
  EXPECT_EQ(Keys({"migrate", "h", "1", "", "0", "5", "COPY", "KEYS", "a", "b"}), "3 8 9");
  EXPECT_EQ(Keys({"migrate", "h", "1", "k", "0", "5"}), "3");
}

TEST_F(Registry, TellsWhatHappensToKeys) {
  const auto flags = [&](const Words& words) {
    std::vector<int> indexes;
    std::vector<uint16_t> each;
    EXPECT_TRUE(KeyIndexesAndFlags(*table_.Resolve(words), words, &indexes, &each));
    EXPECT_EQ(indexes.size(), each.size());
    std::string text;
    for (const uint16_t flag : each) {
      if (!text.empty()) text += ", ";
      for (const std::string_view name : KeyFlagNames(flag)) text.append(name).append(" ");
    }
    return text;
  };
  EXPECT_EQ(flags({"get", "a"}), "RO access ");
  EXPECT_EQ(flags({"bitop", "and", "d", "a", "b"}), "OW , RO , RO ");
  EXPECT_EQ(flags({"odd", "x", "a", "x", "b"}), "RO , RO ");
  EXPECT_EQ(flags({"either", "a"}), "OW update ");
  EXPECT_EQ(flags({"either", "a", "GET"}), "RW access ");
}

TEST_F(Registry, NamesFlagsInRedisOrder) {
  const auto names = [&](std::string_view name) {
    std::string text;
    for (const std::string_view flag : FlagNames(At(name))) {
      text += text.empty() ? "" : " ";
      text += flag;
    }
    return text;
  };
  EXPECT_EQ(names("get"), "readonly fast");
  EXPECT_EQ(names("xread"), "readonly blocking movablekeys");
  EXPECT_EQ(names("zunionstore"), "write movablekeys");
  EXPECT_EQ(names("migrate"), "write movablekeys");
  EXPECT_EQ(names("config"), "");
}

TEST(Categories, AreRedisListAndOurs) {
  const auto all = AllCategories();
  ASSERT_EQ(all.size(), 29U);
  EXPECT_EQ(all.front(), "keyspace");
  EXPECT_EQ(all[20], "scripting");
  EXPECT_EQ(all.back(), "simhash");
  for (const std::string_view name : all) {
    EXPECT_EQ(CategoryNames(CategoryByName(name)), std::vector<std::string_view>{name});
  }
  EXPECT_EQ(CategoryByName("HASH"), kAclHash);
  EXPECT_EQ(CategoryByName("@hash"), 0U);
}

TEST(Families, RowsAreComplete) {
  CommandTable table;
  for (const auto family : DataFamilies()) table.Add(family);
  for (const auto& command : table.by_id()) {
    const CommandSpec& spec = *command->spec;
    EXPECT_EQ(spec.name, base::ToLower(spec.name));
    EXPECT_NE(spec.arity, 0) << command->full_name;
    EXPECT_TRUE(spec.handler != nullptr || !spec.subcommands.empty()) << command->full_name;
    EXPECT_FALSE(spec.summary.empty()) << command->full_name;
    EXPECT_FALSE(spec.complexity.empty()) << command->full_name;
    EXPECT_FALSE(spec.group.empty()) << command->full_name;
    EXPECT_FALSE(spec.since.empty()) << command->full_name;
    EXPECT_TRUE(spec.reply.empty() == (spec.handler == nullptr)) << command->full_name;
    EXPECT_NE(spec.flags & (kWrite | kReadonly), unsigned{kWrite | kReadonly});
    for (uint8_t i = 0; i < spec.keys.count; ++i) {
      EXPECT_EQ(__builtin_popcount(spec.keys.items[i].flags & (kKeyRo | kKeyRw | kKeyOw | kKeyRm)),
                1)
          << command->full_name;
    }
    // The example is a call of this very command, with enough arguments.
    const auto words = base::SplitArgs(spec.example);
    ASSERT_TRUE(words.has_value() && !words->empty()) << command->full_name;
    const Words views(words->begin(), words->end());
    const Command* found = table.Resolve(views);
    ASSERT_NE(found, nullptr) << spec.example;
    EXPECT_TRUE(found == command.get() || found->parent == command.get()) << spec.example;
    EXPECT_TRUE(found->ArityOk(views.size())) << spec.example;
    std::vector<int> indexes;
    EXPECT_TRUE(KeyIndexes(*found, views, &indexes)) << spec.example;
  }
}

TEST(Stock, WhatTheModuleBringsIsKnownWithIt) {
  for (const auto family : NativeFamilies()) {
    for (const CommandSpec& spec : family) {
      EXPECT_EQ(ReaderOf(spec.name), Reader::kStockWithModule) << spec.name;
    }
  }
  EXPECT_EQ(ReaderOf("GET"), Reader::kStock);
  EXPECT_EQ(ReaderOf("AFC.Add"), Reader::kStockWithModule);
  EXPECT_EQ(ReaderOf("hpexpireat"), Reader::kSava);
  EXPECT_EQ(ReaderOf(""), Reader::kSava);
}

}  // namespace
}  // namespace sava::commands
