// ACL rules: what they allow, how they are shown, and that shown rules mean the same.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../../fuzz/acl_rules_property.h"
#include "access/users.h"
#include "engine/access_check.h"
#include "engine_fixture.h"

namespace sava::access {
namespace {

using Words = std::vector<std::string>;

class AccessTest : public testing::Test {
 protected:
  User Make(const Words& rules) {
    User user("u", &table(), false);
    const base::Status status = user.ApplyAll(rules, false);
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error());
    return user;
  }
  std::string ErrorOf(const Words& rules) {
    User user("u", &table(), false);
    const std::string before = user.Text();
    const base::Status status = user.ApplyAll(rules, false);
    EXPECT_EQ(user.Text(), before) << "all or nothing";
    return status.ok() ? "" : status.error();
  }
  Verdict Check(const User& user, const Words& words) {
    const std::vector<std::string_view> args(words.begin(), words.end());
    const commands::Command* const command = table().Resolve(args);
    EXPECT_NE(command, nullptr) << words[0];
    return user.Check(*command, args);
  }
  bool May(const User& user, const Words& words) { return Check(user, words).allowed(); }

  const commands::CommandTable& table() { return test_.table; }
  engine::TestEngine test_{1};
};

TEST_F(AccessTest, ANewUserMayNothing) {
  const User user = Make({});
  EXPECT_EQ(user.Text(), "off sanitize-payload resetchannels -@all");
  EXPECT_FALSE(May(user, {"get", "a"}));
  EXPECT_FALSE(user.everything());
  EXPECT_TRUE(Make({"allkeys", "allchannels", "allcommands"}).everything());
  EXPECT_FALSE(Make({"~*", "&*", "+@all", "-get"}).everything());
}

TEST_F(AccessTest, TheOrderOfRulesCounts) {
  EXPECT_TRUE(May(Make({"~*", "-@all", "+get"}), {"get", "a"}));
  EXPECT_FALSE(May(Make({"~*", "+get", "-@all"}), {"get", "a"}));
  EXPECT_FALSE(May(Make({"~*", "+@all", "-@read"}), {"get", "a"}));
  EXPECT_TRUE(May(Make({"~*", "+@all", "-@read", "+get"}), {"get", "a"}));
  EXPECT_FALSE(May(Make({"~*", "+get", "-@read"}), {"get", "a"}));
  EXPECT_TRUE(May(Make({"~*", "+@read", "-get"}), {"strlen", "a"}));
}

TEST_F(AccessTest, ContainersAndSubcommands) {
  const Words help = {"object", "help"};
  EXPECT_TRUE(May(Make({"+object"}), help));
  EXPECT_TRUE(May(Make({"+object|help"}), help));
  EXPECT_FALSE(May(Make({"+object", "-object|help"}), help));
  EXPECT_FALSE(May(Make({"+object|encoding", "~*"}), help));
  EXPECT_TRUE(May(Make({"-object", "+object|encoding", "~*"}), {"object", "encoding", "a"}));
  EXPECT_EQ(Make({"+object|help", "+OBJECT"}).selectors[0].CommandsText(), "-@all +object");
  EXPECT_EQ(Make({"+object", "-object|help"}).selectors[0].CommandsText(),
            "-@all +object -object|help");
}

TEST_F(AccessTest, FirstArguments) {
  const User user = Make({"+select|0", "+SELECT|7"});
  EXPECT_EQ(user.selectors[0].CommandsText(), "-@all +select|0 +select|7");
  EXPECT_TRUE(May(user, {"select", "0"}));
  EXPECT_TRUE(May(user, {"select", "7"}));
  EXPECT_FALSE(May(user, {"select", "1"}));
  User all = user;
  ASSERT_TRUE(all.ApplyAll({"-select"}, false).ok());
  EXPECT_FALSE(May(all, {"select", "0"}));
}

TEST_F(AccessTest, KeysNeedWhatTheCommandDoesWithThem) {
  const User reader = Make({"+@all", "%R~r:*", "%W~w:*", "~b:*"});
  EXPECT_TRUE(May(reader, {"get", "r:1"}));
  EXPECT_FALSE(May(reader, {"set", "r:1", "v"}));
  EXPECT_TRUE(May(reader, {"set", "w:1", "v"}));
  EXPECT_FALSE(May(reader, {"set", "w:1", "v", "GET"})) << "returns what was there";
  EXPECT_FALSE(May(reader, {"get", "w:1"}));
  EXPECT_TRUE(May(reader, {"exists", "r:1", "w:1", "b:1"})) << "needs no right in particular";
  EXPECT_FALSE(May(reader, {"exists", "x"}));
  EXPECT_TRUE(May(reader, {"copy", "r:1", "w:1"}));
  EXPECT_FALSE(May(reader, {"copy", "w:1", "r:1"}));
  EXPECT_EQ(Check(reader, {"mget", "r:1", "x"}).arg, 2U);
  EXPECT_TRUE(May(Make({"+@all", "%R~a", "%W~a"}), {"getset", "a", "v"})) << "the same pattern";
  EXPECT_FALSE(May(Make({"+@all", "%R~a", "%W~a*"}), {"getset", "a", "v"})) << "two patterns";
}

TEST_F(AccessTest, KeysThatOthersHaveMissed) {
  const User user = Make({"+@all", "~a"});
  EXPECT_FALSE(May(user, {"georadius", "a", "0", "0", "1", "m", "STORE", "a", "STORE", "b"}));
  EXPECT_FALSE(May(user, {"sort", "a", "STORE", "a", "STORE", "b"}));
  EXPECT_FALSE(May(user, {"sort", "a", "LIMIT", "STORE", "a", "STORE", "b"}));
  EXPECT_FALSE(May(user, {"sort_ro", "b"}));
  EXPECT_FALSE(May(user, {"xreadgroup", "GROUP", "g", "STREAMS", "STREAMS", "b", ">"}));
  EXPECT_TRUE(May(user, {"xreadgroup", "GROUP", "g", "STREAMS", "STREAMS", "a", ">"}));
  EXPECT_FALSE(May(user, {"zunionstore", "a", "2", "a", "b"}));
  EXPECT_FALSE(May(user, {"blmpop", "0", "2", "a", "b", "LEFT"}));
}

TEST_F(AccessTest, ASelectorAllowsAllOfACallOrNothing) {
  const User user = Make({"+get", "~g:*", "(+set ~s:*)", "(+@all", "~all)"});
  EXPECT_TRUE(May(user, {"get", "g:1"}));
  EXPECT_FALSE(May(user, {"get", "s:1"}));
  EXPECT_TRUE(May(user, {"set", "s:1", "v"}));
  EXPECT_FALSE(May(user, {"set", "g:1", "v"}));
  EXPECT_TRUE(May(user, {"set", "all", "v"}));
  EXPECT_FALSE(May(user, {"mget", "g:1", "all"}));
  EXPECT_EQ(user.Text(),
            "off sanitize-payload ~g:* resetchannels -@all +get (~s:* resetchannels -@all +set) "
            "(~all resetchannels +@all)");
  User fewer = user;
  ASSERT_TRUE(fewer.ApplyAll({"clearselectors"}, false).ok());
  EXPECT_EQ(fewer.selectors.size(), 1U);
  // The command unless some selector allows it, then the last key.
  EXPECT_EQ(Check(user, {"mget", "x"}).reason, Reason::kKey);
  EXPECT_EQ(Check(Make({"+get"}), {"mget", "x"}).reason, Reason::kCommand);
}

TEST_F(AccessTest, Channels) {
  const User user = Make({"+@all", "&news.*", "&exact"});
  EXPECT_TRUE(May(user, {"subscribe", "news.a", "exact"}));
  EXPECT_EQ(Check(user, {"subscribe", "exact", "other"}).reason, Reason::kChannel);
  EXPECT_EQ(Check(user, {"subscribe", "exact", "other"}).arg, 2U);
  EXPECT_TRUE(May(user, {"psubscribe", "news.*"}));
  EXPECT_FALSE(May(user, {"psubscribe", "news.a*"})) << "patterns are compared as they stand";
  EXPECT_TRUE(May(user, {"publish", "news.x", "other"}));
  EXPECT_FALSE(May(user, {"publish", "other", "news.x"}));
  EXPECT_FALSE(May(user, {"spublish", "other", "m"}));
  EXPECT_FALSE(May(user, {"ssubscribe", "other"}));
  EXPECT_TRUE(May(user, {"unsubscribe", "other"}));
}

TEST_F(AccessTest, RulesThatAreWrong) {
  const auto modifier = [](std::string_view rule, std::string_view why) {
    return "Error in ACL SETUSER modifier '" + std::string(rule) + "': " + std::string(why);
  };
  for (const char* rule : {"%", "%R", "%RW", "%~a", "%RR~a", "%RX~a", "~a b", "&a b", "x", "+get|",
                           "(~a))", "((+get))", ")", "+select|0 1"}) {
    EXPECT_EQ(ErrorOf({"on", rule}), modifier(rule, "Syntax error"));
  }
  for (const char* rule : {"+nosuch", "-nosuch", "+@nosuch", "+object|nosuch", "-get|x", "+"}) {
    EXPECT_EQ(ErrorOf({rule}), modifier(rule, "Unknown command or category name in ACL"));
  }
  EXPECT_EQ(ErrorOf({"+object|help|x"}),
            modifier("+object|help|x", "Allowing first-arg of a subcommand is not supported"));
  EXPECT_NE(ErrorOf({"~*", "~a"}).find("Try 'resetkeys'"), std::string::npos);
  EXPECT_NE(ErrorOf({"&*", "&a"}).find("Try 'resetchannels'"), std::string::npos);
  EXPECT_EQ(ErrorOf({"(+get", "~a"}), "Unmatched parenthesis in acl selector starting at '(+get'.");
  EXPECT_NE(ErrorOf({"<never"}).find("does not exist"), std::string::npos);
  EXPECT_NE(ErrorOf({"#abc"}).find("exactly 64"), std::string::npos);
  EXPECT_NE(ErrorOf({"#" + std::string(64, 'A')}).find("lowercase"), std::string::npos);
}

TEST_F(AccessTest, ShownRulesMeanTheSame) {
  for (const Words& rules : std::vector<Words>{
           {"on", ">a", ">b", "~x", "%R~y*", "%W~z?", "&c", "+@read", "-get", "+select|1"},
           {"nopass", "allkeys", "allchannels", "allcommands", "-@dangerous", "+object|help"},
           {"skip-sanitize-payload", "%RW~*", "+@all", "(~a\"b +get)", "(%R~* &* +@hash -hset)"}}) {
    const User user = Make(rules);
    EXPECT_EQ(Make(Split(user.Text(), ' ')).Text(), user.Text());
  }
}

TEST_F(AccessTest, ReadingEveryKey) {
  const auto reads = [this](const Words& rules) {
    const std::vector<std::string_view> args = {"sort", "a", "BY", "w_*"};
    return Make(rules).ReadsEveryKey(*table().Find("sort"), args);
  };
  EXPECT_TRUE(reads({"+sort", "~*"}));
  EXPECT_TRUE(reads({"+sort", "%R~*"}));
  EXPECT_FALSE(reads({"+sort", "%W~*", "%R~a"}));
  EXPECT_FALSE(reads({"+sort", "~a"}));
  EXPECT_FALSE(reads({"+get", "~*", "(+sort ~a)"})) << "another selector";
}

// ---- users ----

TEST_F(AccessTest, PasswordsAreAsked) {
  Users& users = test_.engine.users();
  EXPECT_TRUE(users.open());
  EXPECT_NE(users.Authenticate("default", "whatever"), nullptr);
  EXPECT_EQ(users.Authenticate("nobody", "whatever"), nullptr);
  ASSERT_TRUE(users.Set("ann", {"on", ">one", ">two"}, 0).ok());
  EXPECT_NE(users.Authenticate("ann", "one"), nullptr);
  EXPECT_NE(users.Authenticate("ann", "two"), nullptr);
  EXPECT_EQ(users.Authenticate("ann", "on"), nullptr);
  ASSERT_TRUE(users.Set("ann", {"<one"}, 0).ok());
  EXPECT_EQ(users.Authenticate("ann", "one"), nullptr);
  ASSERT_TRUE(users.Set("ann", {"off"}, 0).ok());
  EXPECT_EQ(users.Authenticate("ann", "two"), nullptr);
  users.SetDefaultPassword("pw");
  EXPECT_FALSE(users.open());
  EXPECT_EQ(users.Authenticate("default", ""), nullptr);
  EXPECT_NE(users.Authenticate("default", "pw"), nullptr);
  users.SetDefaultPassword("");
  EXPECT_TRUE(users.open());
}

TEST_F(AccessTest, AFileIsReadAsAWhole) {
  const Users& users = test_.engine.users();
  auto read = users.Parse("user a on >x ~k +get (+set ~s)\r\n\n  user b off\n", "f");
  ASSERT_TRUE(read.ok()) << read.error();
  EXPECT_EQ(read->size(), 3U) << "default is added";
  EXPECT_EQ(read->at("default")->Text(), users.default_user().Text());
  const auto bad = users.Parse(
      "user a on\nuser a on\nusr b\nuser c +nosuch +nosuch2\nuser d (+get\nuser\n", "f");
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error(),
            "f:2: Duplicate user 'a' found. f:3: line should start with user keyword. f:4: "
            "Unknown command or category name in ACL. f:5: Unmatched parenthesis in selector "
            "definition.f:6: line should start with user keyword. WARNING: ACL errors detected, no "
            "change to the previously active ACL rules was performed");
}

// ---- the engine ----

TEST_F(AccessTest, ClientsAreLimitedByTheirUser) {
  engine::TestClient client(test_, 0);
  Users& users = test_.engine.users();
  ASSERT_TRUE(users.Set("ann", {"on", "nopass", "~a*", "+get", "+multi", "+exec"}, 0).ok());
  client.client.user = "ann";
  ASSERT_TRUE(users.Set("ann", {"+set"}, 0).ok());
  EXPECT_EQ(client.Run({"SET", "a1", "v"}), "+OK\r\n");
  EXPECT_EQ(client.Run({"SET", "b1", "v"}), "-NOPERM No permissions to access a key\r\n");
  EXPECT_EQ(client.Run({"OBJECT", "HELP"}),
            "-NOPERM User ann has no permissions to run the 'object|help' command\r\n");
  EXPECT_EQ(test_.engine.acl_log().denied(Reason::kKey), 1);
  EXPECT_EQ(test_.engine.acl_log().denied(Reason::kCommand), 1);
  EXPECT_EQ(client.Run({"MULTI"}), "+OK\r\n");
  EXPECT_EQ(client.Run({"GET", "a1"}), "+QUEUED\r\n");
  EXPECT_EQ(client.Run({"SET", "a2", "v"}), "+QUEUED\r\n");
  ASSERT_TRUE(users.Set("ann", {"-set"}, 0).ok());
  EXPECT_EQ(client.Run({"EXEC"}),
            "*2\r\n$1\r\nv\r\n-NOPERM ACLs rules changed between the moment the transaction was "
            "accumulated and the EXEC call. This command is no longer allowed for the following "
            "reason: no permission to execute the command or subcommand\r\n");
  EXPECT_EQ(users.Delete({"ann"}, 0), 1U);
  EXPECT_TRUE(client.client.has(engine::kClientCloseNow));
}

TEST_F(AccessTest, WaitersAreAskedAgain) {
  engine::TestClient waiter(test_, 0);
  engine::TestClient pusher(test_, 0);
  Users& users = test_.engine.users();
  ASSERT_TRUE(users.Set("ann", {"on", "nopass", "~*", "+blpop", "+get"}, 0).ok());
  waiter.client.user = "ann";
  ASSERT_TRUE(users.Set("ann", {"on"}, 0).ok());
  EXPECT_EQ(waiter.Run({"BLPOP", "l", "0"}), "");
  ASSERT_TRUE(users.Set("ann", {"-blpop"}, 0).ok());
  EXPECT_EQ(pusher.Run({"RPUSH", "l", "x"}), ":1\r\n");
  test_.engine.ReceiveMail(waiter.lane);
  EXPECT_EQ(waiter.TakeOutput(),
            "-NOPERM User ann has no permissions to run the 'blpop' command\r\n");
  EXPECT_EQ(pusher.Run({"LLEN", "l"}), ":1\r\n") << "nothing was taken";
}

// Lanes run commands while users come, change and go.
TEST(AccessThreads, UsersChangeWhileOthersRun) {
  engine::TestEngine test(3);
  Users& users = test.engine.users();
  ASSERT_TRUE(users.Set("ann", {"on", "nopass", "~a*", "+@all"}, 0).ok());
  std::atomic<int> running{2};
  std::atomic<bool> wrong{false};
  engine::TestClient clients[] = {{test, 0}, {test, 1}};
  for (engine::TestClient& client : clients) {
    client.client.user = "ann";
    engine::UseRulesOfUser(test.engine, client.client);
  }
  const auto work = [&](size_t lane) {
    engine::TestClient& client = clients[lane];
    const std::string key = "a" + std::to_string(lane);
    for (int i = 0; i < 2000; ++i) {
      const std::string reply = client.RunPatiently({"SET", i % 3 == 0 ? "b" : key, "v"});
      const bool refused = reply.starts_with("-NOPERM");
      if (i % 3 == 0 && !refused) wrong = true;
      client.RunPatiently({"MULTI"});
      client.RunPatiently({"GET", key});
      client.RunPatiently({"EXEC"});
    }
    --running;
  };
  std::thread first(work, 0);
  std::thread second(work, 1);
  engine::Lane& lane = *test.engine.lanes()[2];
  for (int i = 0; running > 0; ++i) {
    test.engine.Exclusively(lane, [&] {
      const std::string rule = i % 2 == 0 ? "-get" : "+get";
      ASSERT_TRUE(users.Set("ann", {rule, i % 3 == 0 ? "-blpop" : "+blpop"}, 0).ok());
      ASSERT_TRUE(users.Set("bob", {"on"}, 0).ok());
      EXPECT_EQ(users.Delete({"bob"}, 0), 1U);
    });
    std::this_thread::yield();
  }
  first.join();
  second.join();
  EXPECT_FALSE(wrong);
  EXPECT_GE(test.engine.acl_log().denied(Reason::kKey), 2);
}

TEST_F(AccessTest, RenamedCommandsKeepTheirNameForRules) {
  using Renamed = commands::CommandTable::Renamed;
  EXPECT_EQ(test_.table.Rename("nosuch", "x"), Renamed::kUnknown);
  EXPECT_EQ(test_.table.Rename("get", "SET"), Renamed::kTaken);
  EXPECT_EQ(test_.table.Rename("Get", "Fetch-This-One"), Renamed::kDone);
  EXPECT_EQ(test_.table.Rename("object", "thing"), Renamed::kDone);
  EXPECT_EQ(test_.table.Rename("append", ""), Renamed::kDone);
  engine::TestClient client(test_, 0);
  EXPECT_EQ(client.Run({"GET", "a"}).substr(0, 26), "-ERR unknown command 'GET'");
  EXPECT_EQ(client.Run({"fetch-this-one", "a"}), "$-1\r\n");
  EXPECT_EQ(client.Run({"APPEND", "a", "b"}).substr(0, 20), "-ERR unknown command");
  EXPECT_EQ(client.Run({"thing", "encoding", "a"}), "$-1\r\n");
  EXPECT_EQ(client.Run({"thing", "nosuch"}),
            "-ERR unknown subcommand 'nosuch'. Try OBJECT HELP.\r\n");
  EXPECT_EQ(test_.table.FindFullName("object|help")->full_name, "object|help");
  EXPECT_TRUE(May(Make({"+get", "~*"}), {"fetch-this-one", "a"}));
}

TEST(AclCorpus, RulesHoldTheirProperty) {
  const auto corpus = std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/acl_rules";
  int replayed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)),
                            std::istreambuf_iterator<char>());
    EXPECT_EQ(CheckAclText(bytes), "") << entry.path();
    ++replayed;
  }
  EXPECT_GE(replayed, 8);
}

}  // namespace
}  // namespace sava::access
