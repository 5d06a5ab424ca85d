// The list of a call's keys, from which locks, prefetching and COMMAND GETKEYS follow, against the
// keys that handlers open.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "all_families.h"
#include "base/text.h"
#include "commands/registry.h"
#include "fake_context.h"
#include "types/value/type_registry.h"

namespace sava::commands {
namespace {

using Words = std::vector<std::string>;

// One key of every type that handlers ask for, and two that are not there.
const Words kPool = {"string", "number", "list", "set",    "hash",
                     "zset",   "stream", "none", "nothing"};

void Fill(FakeContext& context) {
  for (const char* line :
       {"SET string value", "SET number 17", "RPUSH list a b c", "SADD set a b c", "HSET hash f 1",
        "ZADD zset 1 a 2 b", "XADD stream 1-1 f v", "DEL none nothing"}) {
    context.Run(*base::SplitArgs(line));
  }
  context.TakeOpened();
}

struct Commands {
  Commands() {
    for (const auto family : DataFamilies()) table.Add(family);
  }
  // Those that lock their keys and nothing else.
  std::vector<const Command*> WithKeys() const {
    std::vector<const Command*> found;
    for (const auto& command : table.by_id()) {
      if (command->spec->handler != nullptr && command->lock == LockClass::kKeys &&
          !command->spec->example.empty()) {
        found.push_back(command.get());
      }
    }
    return found;
  }
  CommandTable table;
};

// The example with other keys, and now and then a word more, less or another.
Words Mutated(const Command& command, Words words, std::mt19937& random) {
  const auto pick = [&](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  const std::vector<std::string_view> args(words.begin(), words.end());
  std::vector<int> keys;
  if (KeyIndexes(command, args, &keys)) {
    for (const int key : keys) {
      if (pick(4) > 0) words[static_cast<size_t>(key)] = kPool[pick(kPool.size())];
    }
  }
  const size_t first = command.parent == nullptr ? 1 : 2;
  if (words.size() <= first) return words;
  const auto place = [&] {
    return words.begin() + static_cast<ptrdiff_t>(first + pick(words.size() - first));
  };
  const Words others = {"0", "1", "2", "-1", "a", "", "string", "LIMIT", "COUNT", "STORE", "KEYS"};
  switch (pick(6)) {
    case 0:
      *place() = others[pick(others.size())];
      break;
    case 1:
      words.insert(place(), others[pick(others.size())]);
      break;
    case 2:
      words.push_back(kPool[pick(kPool.size())]);
      break;
    case 3:
      words.erase(place());
      break;
    default:
      break;
  }
  return words;
}

TEST(KeyList, HoldsEveryKeyAHandlerOpens) {
  const Commands commands;
  const auto families = DataFamilies();
  std::mt19937 random(20231);
  std::set<std::string> opened_some;
  for (const Command* command : commands.WithKeys()) {
    const Words example = *base::SplitArgs(command->spec->example);
    for (int round = 0; round < 60; ++round) {
      FakeContext context(families);
      context.set_command_table(&commands.table);
      context.set_type_registry(&types::AllTypes());
      Fill(context);
      const Words words = round == 0 ? example : Mutated(*command, example, random);
      const std::vector<std::string_view> args(words.begin(), words.end());
      if (commands.table.Resolve(args) != command || !command->ArityOk(args.size())) continue;
      if (command->spec->choose_lock != nullptr &&
          command->spec->choose_lock(args) != LockClass::kKeys) {
        continue;
      }
      std::vector<int> indexes;
      std::set<std::string, std::less<>> listed;
      if (KeyIndexes(*command, args, &indexes)) {
        for (const int index : indexes) listed.insert(words[static_cast<size_t>(index)]);
      }
      context.Run(words);
      const auto opened = context.TakeOpened();
      if (!opened.empty()) opened_some.insert(command->full_name);
      std::string line;
      for (const std::string& word : words) line += "'" + word + "' ";
      for (const std::string& key : opened) {
        EXPECT_TRUE(listed.contains(key)) << line << "opens '" << key << "'";
      }
    }
    EXPECT_TRUE(opened_some.contains(command->full_name))
        << command->full_name << " lists keys and opens none";
  }
}

TEST(KeyList, IsTheSameHoweverItIsAskedFor) {
  const Commands commands;
  std::mt19937 random(7);
  for (const Command* command : commands.WithKeys()) {
    const Words example = *base::SplitArgs(command->spec->example);
    for (int round = 0; round < 20; ++round) {
      const Words words = Mutated(*command, example, random);
      const std::vector<std::string_view> args(words.begin(), words.end());
      if (!command->ArityOk(args.size())) continue;
      std::vector<int> indexes;
      std::vector<int> with_flags;
      std::vector<int> scratch;
      std::vector<int> visited;
      std::vector<uint16_t> flags;
      const bool fits = KeyIndexes(*command, args, &indexes);
      EXPECT_EQ(fits, KeyIndexesAndFlags(*command, args, &with_flags, &flags));
      EXPECT_EQ(fits, ForEachKey(*command, args, &scratch, [&](size_t index) {
                  visited.push_back(static_cast<int>(index));
                }));
      if (!fits) continue;
      EXPECT_EQ(indexes, with_flags);
      EXPECT_EQ(indexes, visited);
      EXPECT_EQ(indexes.size(), flags.size());
      for (size_t n = 0; command->simple_keys && n < indexes.size(); ++n) {
        EXPECT_EQ(static_cast<size_t>(indexes[n]), command->SimpleKey(n));
      }
    }
  }
}

}  // namespace
}  // namespace sava::commands
