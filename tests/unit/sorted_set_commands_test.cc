// What handlers of sorted sets report beside their replies: effects for the log, changes, events,
// keys that go when they are empty. Replies are compared with Redis's from outside
// (e2e/sorted_set_tests.py, e2e/geo_tests.py).
#include <gtest/gtest.h>

#include <string>

#include "commands/registry.h"
#include "fake_context.h"

namespace sava::commands {
namespace {

class SortedSetCommandsTest : public testing::Test {
 protected:
  FakeContext context_{{SortedSetCommands(), SortedSetRangeCommands(), SortedSetPopCommands(),
                        SortedSetAlgebraCommands(), GeoCommands(), GeoSearchCommands()}};
};

TEST_F(SortedSetCommandsTest, AddingIsLoggedAsItCame) {
  EXPECT_EQ(context_.Run({"ZADD", "z", "1", "a", "2", "b"}), ":2\r\n");
  EXPECT_EQ(context_.TakeChanges(), 2);
  EXPECT_EQ(context_.TakeEvents(), "zadd z");
  EXPECT_EQ(context_.Run({"ZADD", "z", "INCR", "2.5", "a"}), "$3\r\n3.5\r\n");
  EXPECT_EQ(context_.TakeEvents(), "zincr z");
  EXPECT_EQ(context_.TakeEffects(), "");
  context_.TakeChanges();
  EXPECT_EQ(context_.Run({"ZADD", "z", "3.5", "a"}), ":0\r\n");
  EXPECT_EQ(context_.TakeChanges(), 0);
  EXPECT_EQ(context_.TakeEvents(), "");
}

TEST_F(SortedSetCommandsTest, TakingIsLoggedByItsPlainForm) {
  context_.Run({"ZADD", "z", "1", "a", "2", "b", "3", "c", "4", "d"});
  context_.TakeEvents();
  context_.Run({"ZMPOP", "2", "none", "z", "MIN", "COUNT", "2"});
  EXPECT_EQ(context_.TakeEffects(), "ZPOPMIN z 2");
  EXPECT_EQ(context_.TakeEvents(), "zpopmin z");
  context_.Run({"BZPOPMAX", "none", "z", "0"});
  EXPECT_EQ(context_.TakeEffects(), "ZPOPMAX z");
  EXPECT_EQ(context_.TakeEvents(), "zpopmax z");
  EXPECT_EQ(context_.Run({"BZMPOP", "0", "1", "z", "MAX", "COUNT", "9"}),
            "*2\r\n$1\r\nz\r\n*1\r\n*2\r\n$1\r\nc\r\n$1\r\n3\r\n");
  EXPECT_EQ(context_.TakeEffects(), "ZPOPMAX z 1");
  EXPECT_EQ(context_.TakeEvents(), "zpopmax z, del z");
  EXPECT_FALSE(context_.Exists("z"));
  EXPECT_EQ(context_.Run({"BZPOPMIN", "z", "0"}), "*-1\r\n");
}

TEST_F(SortedSetCommandsTest, RangesOfMembersWithDifferentScoresAreLoggedByRank) {
  context_.Run({"ZADD", "same", "1", "a", "1", "b", "1", "c"});
  context_.Run({"ZADD", "mixed", "1", "a", "2", "b", "3", "c"});
  context_.TakeEffects();
  EXPECT_EQ(context_.Run({"ZRANGESTORE", "to", "same", "[a", "[b", "BYLEX"}), ":2\r\n");
  EXPECT_EQ(context_.TakeEffects(), "");
  EXPECT_EQ(context_.Run({"ZRANGESTORE", "to", "mixed", "+", "[b", "BYLEX", "REV"}), ":2\r\n");
  EXPECT_EQ(context_.TakeEffects(), "ZRANGESTORE to mixed 1 2");
  EXPECT_EQ(context_.Run({"ZREMRANGEBYLEX", "same", "[a", "[b"}), ":2\r\n");
  EXPECT_EQ(context_.TakeEffects(), "");
  EXPECT_EQ(context_.Run({"ZREMRANGEBYLEX", "mixed", "[x", "[y"}), ":0\r\n");
  EXPECT_EQ(context_.TakeEffects(), "");
  EXPECT_EQ(context_.Run({"ZREMRANGEBYLEX", "mixed", "-", "[b"}), ":2\r\n");
  EXPECT_EQ(context_.TakeEffects(), "ZREMRANGEBYRANK mixed 0 1");
}

TEST_F(SortedSetCommandsTest, AKeyGoesWithItsLastMember) {
  context_.Run({"ZADD", "z", "1", "a"});
  context_.TakeEvents();
  EXPECT_EQ(context_.Run({"ZREM", "z", "a", "b"}), ":1\r\n");
  EXPECT_EQ(context_.TakeEvents(), "zrem z, del z");
  EXPECT_FALSE(context_.Exists("z"));
}

TEST_F(SortedSetCommandsTest, StoringDropsAnExpiryAndEmptyResults) {
  context_.Run({"ZADD", "a", "1", "x"});
  context_.Run({"ZADD", "d", "1", "y"});
  context_.SetExpiry("d", 4'000'000'000'000);
  EXPECT_EQ(context_.Run({"ZUNIONSTORE", "d", "1", "a"}), ":1\r\n");
  EXPECT_EQ(context_.ExpiryAt("d"), kNoExpiry);
  context_.TakeEvents();
  context_.TakeChanges();
  EXPECT_EQ(context_.Run({"ZINTERSTORE", "d", "2", "a", "none"}), ":0\r\n");
  EXPECT_EQ(context_.TakeEvents(), "del d");
  EXPECT_EQ(context_.TakeChanges(), 1);
  EXPECT_EQ(context_.Run({"ZINTERSTORE", "d", "2", "a", "none"}), ":0\r\n");
  EXPECT_EQ(context_.TakeChanges(), 0);
}

TEST_F(SortedSetCommandsTest, RandomMembersAreMembers) {
  for (int i = 0; i < 50; ++i) {
    context_.Run({"ZADD", "z", std::to_string(i), "m" + std::to_string(i)});
  }
  for (const char* count : {"3", "49", "50", "-3"}) {
    const std::string reply = context_.Run({"ZRANDMEMBER", "z", count});
    EXPECT_NE(reply.find("$"), std::string::npos);
    EXPECT_EQ(reply.find("$-1"), std::string::npos);
  }
  EXPECT_EQ(context_.Run({"ZRANDMEMBER", "z", "100"}).substr(0, 5), "*50\r\n");
}

TEST_F(SortedSetCommandsTest, WrongTypesChangeNothing) {
  context_.AddObject("list");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"ZADD", "list", "1", "a"},
           {"ZINCRBY", "list", "1", "a"},
           {"ZPOPMIN", "list"},
           {"ZUNION", "1", "list"},
           {"ZRANGESTORE", "d", "list", "0", "-1"},
           {"GEOADD", "list", "1", "2", "a"},
           {"GEOSEARCHSTORE", "d", "list", "FROMLONLAT", "1", "2", "BYRADIUS", "1", "m"}}) {
    EXPECT_EQ(context_.Run(words).substr(0, 10), "-WRONGTYPE") << words[0];
  }
  EXPECT_EQ(context_.TakeChanges(), 0);
  EXPECT_FALSE(context_.Exists("d"));
}

TEST_F(SortedSetCommandsTest, OldRadiusSearchesNameTheirKeys) {
  CommandTable table;
  table.Add(GeoSearchCommands());
  const std::string_view words[] = {"GEORADIUS", "g",    "1",     "2", "3",         "m",
                                    "STORE",     "here", "COUNT", "1", "STOREDIST", "there"};
  std::vector<int> indexes;
  ASSERT_TRUE(KeyIndexes(*table.Find("georadius"), words, &indexes));
  EXPECT_EQ(indexes, (std::vector<int>{1, 11}));
}

}  // namespace
}  // namespace sava::commands
