// Commands on sets and hashes in a keyspace of the test's own: what they reply in both protocols,
// tell, and log.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "commands/registry.h"
#include "fake_context.h"
#include "types/value/type_registry.h"

namespace sava::commands {
namespace {

class Collections : public testing::Test {
 protected:
  Collections()
      : context_({SetCommands(), SetRandomCommands(), SetAlgebraCommands(), HashCommands(),
                  HashMoreCommands(), HashExpireCommands(), HashGetSetCommands(), StringCommands(),
                  KeyCommands(), SortCommands(), ListCommands()}) {
    context_.set_type_registry(&types::AllTypes());
  }

  std::string Run(std::vector<std::string> words) { return context_.Run(std::move(words)); }
  std::string Events() { return context_.TakeEvents(); }
  std::string Effects() { return context_.TakeEffects(); }

  FakeContext context_;
};

using SetFamily = Collections;
using HashFamily = Collections;

TEST_F(SetFamily, AddsAndRemoves) {
  EXPECT_EQ(Run({"SADD", "s", "a", "b", "a"}), ":2\r\n");
  EXPECT_EQ(Events(), "sadd s");
  EXPECT_EQ(context_.TakeChanges(), 2);
  EXPECT_EQ(Run({"SADD", "s", "a"}), ":0\r\n");
  EXPECT_EQ(Events(), "");
  EXPECT_EQ(context_.TakeChanges(), 0);
  EXPECT_EQ(Run({"SMEMBERS", "s"}), "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
  EXPECT_EQ(Run({"SCARD", "s"}), ":2\r\n");
  EXPECT_EQ(Run({"SISMEMBER", "s", "a"}), ":1\r\n");
  EXPECT_EQ(Run({"SMISMEMBER", "s", "a", "x"}), "*2\r\n:1\r\n:0\r\n");
  EXPECT_EQ(Run({"SMISMEMBER", "none", "a", "x"}), "*2\r\n:0\r\n:0\r\n");
  EXPECT_EQ(Run({"SREM", "s", "a", "b", "c"}), ":2\r\n");
  EXPECT_EQ(Events(), "srem s, del s");
  EXPECT_EQ(Run({"SMEMBERS", "s"}), "*0\r\n");
  context_.set_resp(3);
  Run({"SADD", "s", "a"});
  EXPECT_EQ(Run({"SMEMBERS", "s"}), "~1\r\n$1\r\na\r\n");
  EXPECT_EQ(Run({"SINTER", "s", "none"}), "~0\r\n");
}

TEST_F(SetFamily, MovesAMember) {
  Run({"SADD", "s", "a", "b"});
  Run({"SADD", "t", "b"});
  Events();
  EXPECT_EQ(Run({"SMOVE", "s", "t", "x"}), ":0\r\n");
  EXPECT_EQ(Events(), "");
  EXPECT_EQ(Run({"SMOVE", "s", "t", "b"}), ":1\r\n");
  EXPECT_EQ(Events(), "srem s");
  EXPECT_EQ(Run({"SMOVE", "s", "new", "a"}), ":1\r\n");
  EXPECT_EQ(Events(), "srem s, del s, sadd new");
  EXPECT_EQ(Run({"SMOVE", "new", "new", "a"}), ":1\r\n");
  Run({"SET", "text", "x"});
  Events();
  EXPECT_EQ(Run({"SMOVE", "new", "text", "a"}), "-" + std::string(errors::kWrongType) + "\r\n");
  EXPECT_EQ(Run({"SCARD", "new"}), ":1\r\n");
}

TEST_F(SetFamily, WhatWasPoppedIsLoggedAsRemoved) {
  Run({"SADD", "s", "only"});
  Events();
  Effects();
  EXPECT_EQ(Run({"SPOP", "s"}), "$4\r\nonly\r\n");
  EXPECT_EQ(Events(), "spop s, del s");
  EXPECT_EQ(Effects(), "SREM s only");
  EXPECT_EQ(Run({"SPOP", "s"}), "$-1\r\n");
  EXPECT_EQ(Run({"SPOP", "s", "3"}), "*0\r\n");
  EXPECT_EQ(Run({"SPOP", "s", "-1"}), "-ERR value is out of range, must be positive\r\n");
  Run({"SADD", "s", "a", "b", "c"});
  Effects();
  Run({"SPOP", "s", "2"});
  EXPECT_EQ(Effects().substr(0, 7), "SREM s ");
  EXPECT_EQ(Run({"SCARD", "s"}), ":1\r\n");
  Events();
  Run({"SPOP", "s", "5"});
  EXPECT_EQ(Effects(), "DEL s");
  EXPECT_EQ(Events(), "spop s, del s");
}

TEST_F(SetFamily, WhatSortStoresIsLogged) {
  Run({"SADD", "s", "c", "a", "b"});
  Run({"SET", "w_a", "2"});
  Effects();
  EXPECT_EQ(Run({"SORT", "s", "BY", "w_*", "GET", "#", "GET", "w_*", "STORE", "to"}), ":6\r\n");
  EXPECT_EQ(Effects(), "RPUSH to b  c  a 2");
  EXPECT_TRUE(context_.no_effect());
  EXPECT_EQ(Run({"SORT", "s", "BY", "none_*", "ALPHA", "LIMIT", "0", "2", "STORE", "to"}),
            ":2\r\n");
  EXPECT_EQ(Effects(), "DEL to, RPUSH to c a");
  EXPECT_EQ(Run({"SORT", "none", "STORE", "to"}), ":0\r\n");
  EXPECT_EQ(Effects(), "DEL to");
  EXPECT_EQ(Run({"SORT", "none", "STORE", "to"}), ":0\r\n");
  EXPECT_EQ(Effects(), "");
  for (int i = 0; i < 600; ++i) Run({"RPUSH", "l", std::to_string(i)});
  EXPECT_EQ(Run({"SORT", "l", "STORE", "to"}), ":600\r\n");
  const std::string effects = Effects();
  EXPECT_EQ(effects.substr(0, 13), "RPUSH to 0 1 ");
  EXPECT_NE(effects.find(" 511, RPUSH to 512 "), std::string::npos);
}

TEST_F(SetFamily, Chooses) {
  for (int i = 0; i < 300; ++i) Run({"SADD", "s", "m" + std::to_string(i)});
  EXPECT_EQ(Run({"SRANDMEMBER", "s", "5"}).substr(0, 4), "*5\r\n");
  EXPECT_EQ(Run({"SRANDMEMBER", "s", "250"}).substr(0, 6), "*250\r\n");
  EXPECT_EQ(Run({"SRANDMEMBER", "s", "900"}).substr(0, 6), "*300\r\n");
  EXPECT_EQ(Run({"SRANDMEMBER", "s", "-900"}).substr(0, 6), "*900\r\n");
  EXPECT_EQ(Run({"SRANDMEMBER", "s", "0"}), "*0\r\n");
  EXPECT_EQ(Run({"SRANDMEMBER", "none"}), "$-1\r\n");
  EXPECT_EQ(Run({"SRANDMEMBER", "s", "-9223372036854775808"}),
            "-ERR value is out of range, value must between -9223372036854775807 and "
            "9223372036854775807\r\n");
  EXPECT_EQ(Run({"SRANDMEMBER", "s", "1", "2"}), "-ERR syntax error\r\n");
}

TEST_F(SetFamily, Combines) {
  Run({"SADD", "a", "1", "2", "3", "4"});
  Run({"SADD", "b", "2", "3", "x"});
  Run({"SADD", "c", "3"});
  EXPECT_EQ(Run({"SINTER", "a", "b"}), "*2\r\n$1\r\n2\r\n$1\r\n3\r\n");
  EXPECT_EQ(Run({"SINTERCARD", "2", "a", "b"}), ":2\r\n");
  EXPECT_EQ(Run({"SINTERCARD", "2", "a", "b", "LIMIT", "1"}), ":1\r\n");
  EXPECT_EQ(Run({"SINTERCARD", "2", "a", "b", "LIMIT", "0"}), ":2\r\n");
  EXPECT_EQ(Run({"SINTERCARD", "0", "a"}), "-ERR numkeys should be greater than 0\r\n");
  EXPECT_EQ(Run({"SINTERCARD", "3", "a", "b"}),
            "-ERR Number of keys can't be greater than number of args\r\n");
  EXPECT_EQ(Run({"SINTERCARD", "1", "a", "LIMIT", "-1"}), "-ERR LIMIT can't be negative\r\n");
  EXPECT_EQ(Run({"SDIFF", "a", "b", "none"}), "*2\r\n$1\r\n1\r\n$1\r\n4\r\n");
  EXPECT_EQ(Run({"SDIFF", "a", "a"}), "*0\r\n");
  EXPECT_EQ(Run({"SUNION", "c", "none", "c"}), "*1\r\n$1\r\n3\r\n");
  Events();
  EXPECT_EQ(Run({"SINTERSTORE", "to", "b", "a"}), ":2\r\n");
  EXPECT_EQ(Events(), "sinterstore to");
  EXPECT_EQ(Run({"OBJECT", "ENCODING", "to"}), "$6\r\nintset\r\n");
  EXPECT_EQ(Run({"SUNIONSTORE", "to", "to", "b"}), ":3\r\n");
  EXPECT_EQ(Run({"OBJECT", "ENCODING", "to"}), "$8\r\nlistpack\r\n");
  Events();
  EXPECT_EQ(Run({"SDIFFSTORE", "to", "c", "a"}), ":0\r\n");
  EXPECT_EQ(Events(), "del to");
  Run({"SET", "text", "x"});
  EXPECT_EQ(Run({"SINTER", "none", "text"}), "-" + std::string(errors::kWrongType) + "\r\n");
  // A destination may be anything.
  EXPECT_EQ(Run({"SUNIONSTORE", "text", "a"}), ":4\r\n");
}

TEST_F(SetFamily, Scans) {
  EXPECT_EQ(Run({"SSCAN", "none", "0", "COUNT", "0"}), "*2\r\n$1\r\n0\r\n*0\r\n");
  Run({"SADD", "s", "a", "bb"});
  EXPECT_EQ(Run({"SSCAN", "s", "0", "MATCH", "b*"}), "*2\r\n$1\r\n0\r\n*1\r\n$2\r\nbb\r\n");
  EXPECT_EQ(Run({"SSCAN", "s", "x"}), "-ERR invalid cursor\r\n");
  EXPECT_EQ(Run({"SSCAN", "s", "0", "COUNT", "0"}), "-ERR syntax error\r\n");
  EXPECT_EQ(Run({"SSCAN", "s", "0", "NOVALUES"}), "-ERR syntax error\r\n");
}

TEST_F(HashFamily, SetsAndGets) {
  EXPECT_EQ(Run({"HSET", "h", "a", "1", "b", "2"}), ":2\r\n");
  EXPECT_EQ(Events(), "hset h");
  EXPECT_EQ(context_.TakeChanges(), 2);
  EXPECT_EQ(Run({"HSET", "h", "a", "3", "c", "4"}), ":1\r\n");
  EXPECT_EQ(Run({"HSET", "h", "a"}), "-ERR wrong number of arguments for 'hset' command\r\n");
  EXPECT_EQ(Run({"HSET", "h", "a", "1", "b"}),
            "-ERR wrong number of arguments for 'hset' command\r\n");
  EXPECT_EQ(Run({"HMSET", "h", "a", "1"}), "+OK\r\n");
  EXPECT_EQ(Run({"HSETNX", "h", "a", "9"}), ":0\r\n");
  EXPECT_EQ(Run({"HSETNX", "h", "n", "9"}), ":1\r\n");
  EXPECT_EQ(Run({"HGET", "h", "a"}), "$1\r\n1\r\n");
  EXPECT_EQ(Run({"HMGET", "h", "a", "x"}), "*2\r\n$1\r\n1\r\n$-1\r\n");
  EXPECT_EQ(Run({"HMGET", "none", "a"}), "*1\r\n$-1\r\n");
  EXPECT_EQ(Run({"HLEN", "h"}), ":4\r\n");
  EXPECT_EQ(Run({"HSTRLEN", "h", "a"}), ":1\r\n");
  EXPECT_EQ(Run({"HEXISTS", "h", "x"}), ":0\r\n");
  Run({"HDEL", "h", "b", "c"});
  EXPECT_EQ(Run({"HKEYS", "h"}), "*2\r\n$1\r\na\r\n$1\r\nn\r\n");
  EXPECT_EQ(Run({"HVALS", "h"}), "*2\r\n$1\r\n1\r\n$1\r\n9\r\n");
  EXPECT_EQ(Run({"HGETALL", "h"}), "*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nn\r\n$1\r\n9\r\n");
  EXPECT_EQ(Run({"HSCAN", "h", "0", "NOVALUES"}), "*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$1\r\nn\r\n");
  context_.set_resp(3);
  EXPECT_EQ(Run({"HGETALL", "h"}), "%2\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nn\r\n$1\r\n9\r\n");
  EXPECT_EQ(Run({"HGETALL", "none"}), "%0\r\n");
  EXPECT_EQ(Run({"HGET", "h", "x"}), "_\r\n");
  Events();
  EXPECT_EQ(Run({"HDEL", "h", "a", "n"}), ":2\r\n");
  EXPECT_EQ(Events(), "hdel h, del h");
}

TEST_F(HashFamily, Counts) {
  EXPECT_EQ(Run({"HINCRBY", "h", "n", "5"}), ":5\r\n");
  EXPECT_EQ(Events(), "hincrby h");
  EXPECT_EQ(Run({"HINCRBY", "h", "n", "9223372036854775807"}),
            "-ERR increment or decrement would overflow\r\n");
  EXPECT_EQ(Run({"HINCRBY", "h", "n", "x"}), "-ERR value is not an integer or out of range\r\n");
  EXPECT_EQ(Run({"HINCRBYFLOAT", "h", "n", "0.5"}), "$3\r\n5.5\r\n");
  EXPECT_EQ(Effects(), "HSET h n 5.5");
  EXPECT_EQ(Run({"HINCRBY", "h", "n", "1"}), "-ERR hash value is not an integer\r\n");
  Run({"HSET", "h", "t", "text"});
  EXPECT_EQ(Run({"HINCRBYFLOAT", "h", "t", "1"}), "-ERR hash value is not a float\r\n");
  EXPECT_EQ(Run({"HINCRBYFLOAT", "h", "n", "x"}), "-ERR value is not a valid float\r\n");
}

TEST_F(HashFamily, ChoosesFields) {
  EXPECT_EQ(Run({"HRANDFIELD", "none"}), "$-1\r\n");
  EXPECT_EQ(Run({"HRANDFIELD", "none", "1"}), "*0\r\n");
  Run({"HSET", "h", "a", "1"});
  EXPECT_EQ(Run({"HRANDFIELD", "h"}), "$1\r\na\r\n");
  EXPECT_EQ(Run({"HRANDFIELD", "h", "-2"}), "*2\r\n$1\r\na\r\n$1\r\na\r\n");
  EXPECT_EQ(Run({"HRANDFIELD", "h", "5", "WITHVALUES"}), "*2\r\n$1\r\na\r\n$1\r\n1\r\n");
  EXPECT_EQ(Run({"HRANDFIELD", "h", "5", "WITH"}), "-ERR syntax error\r\n");
  EXPECT_EQ(Run({"HRANDFIELD", "h", "-9223372036854775807", "WITHVALUES"}),
            "-ERR value is out of range\r\n");
  context_.set_resp(3);
  EXPECT_EQ(Run({"HRANDFIELD", "h", "5", "WITHVALUES"}), "*1\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n");
}

TEST_F(HashFamily, AFieldPastItsTimeIsNotNewWhileItIsThere) {
  Run({"HSET", "h", "a", "1", "b", "2"});
  Run({"HPEXPIRE", "h", "10", "FIELDS", "1", "a"});
  context_.set_now_ms(context_.now_ms() + 100);
  EXPECT_EQ(Run({"HLEN", "h"}), ":2\r\n");
  EXPECT_EQ(Run({"HSET", "h", "a", "3", "c", "4"}), ":1\r\n");
  EXPECT_EQ(Run({"HTTL", "h", "FIELDS", "1", "a"}), "*1\r\n:-1\r\n");
  EXPECT_EQ(Run({"HLEN", "h"}), ":3\r\n");
}

TEST_F(HashFamily, FieldsExpire) {
  const int64_t now = context_.now_ms();
  Run({"HSET", "h", "a", "1", "b", "2", "c", "3"});
  Effects();
  Events();
  EXPECT_EQ(Run({"HEXPIRE", "h", "10", "FIELDS", "2", "a", "x"}), "*2\r\n:1\r\n:-2\r\n");
  EXPECT_EQ(Effects(), "HPEXPIREAT h " + std::to_string(now + 10000) + " FIELDS 1 a");
  EXPECT_EQ(Events(), "hexpire h");
  EXPECT_EQ(Run({"HTTL", "h", "FIELDS", "3", "a", "b", "x"}), "*3\r\n:10\r\n:-1\r\n:-2\r\n");
  EXPECT_EQ(Run({"HPTTL", "h", "FIELDS", "1", "a"}), "*1\r\n:10000\r\n");
  EXPECT_EQ(Run({"HPEXPIRETIME", "h", "FIELDS", "1", "a"}),
            "*1\r\n:" + std::to_string(now + 10000) + "\r\n");
  EXPECT_EQ(Run({"HEXPIRETIME", "h", "FIELDS", "1", "a"}),
            "*1\r\n:" + std::to_string((now + 10999) / 1000) + "\r\n");
  EXPECT_EQ(Run({"HEXPIRE", "h", "20", "NX", "FIELDS", "2", "a", "b"}), "*2\r\n:0\r\n:1\r\n");
  EXPECT_EQ(Run({"HEXPIRE", "h", "15", "XX", "FIELDS", "2", "a", "c"}), "*2\r\n:1\r\n:0\r\n");
  EXPECT_EQ(Run({"HEXPIRE", "h", "18", "GT", "FIELDS", "3", "a", "b", "c"}),
            "*3\r\n:1\r\n:0\r\n:0\r\n");
  EXPECT_EQ(Run({"HEXPIRE", "h", "19", "LT", "FIELDS", "3", "a", "b", "c"}),
            "*3\r\n:0\r\n:1\r\n:1\r\n");
  Effects();
  Events();
  EXPECT_EQ(Run({"HPERSIST", "h", "FIELDS", "3", "c", "c", "x"}), "*3\r\n:1\r\n:-1\r\n:-2\r\n");
  EXPECT_EQ(Effects(), "HPERSIST h FIELDS 1 c");
  EXPECT_EQ(Events(), "hpersist h");
  EXPECT_EQ(Run({"HEXPIREAT", "h", "1", "FIELDS", "1", "c"}), "*1\r\n:2\r\n");
  EXPECT_EQ(Effects(), "HDEL h c");
  EXPECT_EQ(Events(), "hdel h");
  context_.set_now_ms(now + 18001);
  EXPECT_EQ(Run({"HGETALL", "h"}), "*2\r\n$1\r\nb\r\n$1\r\n2\r\n");
  EXPECT_EQ(Run({"HGET", "h", "a"}), "$-1\r\n");
  EXPECT_EQ(Run({"HLEN", "h"}), ":2\r\n");
  EXPECT_EQ(Run({"HSET", "h", "a", "5"}), ":0\r\n");
  EXPECT_EQ(Run({"HTTL", "h", "FIELDS", "1", "a"}), "*1\r\n:-1\r\n");
  EXPECT_EQ(Run({"HTTL", "none", "FIELDS", "1", "a"}), "*1\r\n:-2\r\n");
}

TEST_F(HashFamily, BadTimesAreRefused) {
  Run({"HSET", "h", "a", "1"});
  EXPECT_EQ(Run({"HEXPIRE", "h", "-1", "FIELDS", "1", "a"}),
            "-ERR invalid expire time, must be >= 0\r\n");
  EXPECT_EQ(Run({"HEXPIRE", "h", "99999999999999", "FIELDS", "1", "a"}),
            "-ERR invalid expire time in 'hexpire' command\r\n");
  EXPECT_EQ(Run({"HEXPIRE", "h", "x", "FIELDS", "1", "a"}),
            "-ERR value is not an integer or out of range\r\n");
  EXPECT_EQ(Run({"HEXPIRE", "h", "1", "FIELDS", "0", "a"}),
            "-ERR Parameter `numFields` should be greater than 0\r\n");
  EXPECT_EQ(Run({"HEXPIRE", "h", "1", "FIELDS", "2", "a"}),
            "-ERR The `numfields` parameter must match the number of arguments\r\n");
  EXPECT_EQ(Run({"HEXPIRE", "h", "1", "NX", "GT", "FIELDS", "1", "a"}),
            "-ERR Mandatory argument FIELDS is missing or not at the right position\r\n");
  EXPECT_EQ(Run({"HTTL", "h", "FIELDS", "x", "a"}),
            "-ERR Number of fields must be a positive integer\r\n");
  EXPECT_EQ(Run({"HSETEX", "h", "EX", "5", "KEEPTTL", "FIELDS", "1", "a", "1"}),
            "-ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified\r\n");
  EXPECT_EQ(Run({"HSETEX", "h", "FNX", "FXX", "FIELDS", "1", "a", "1"}),
            "-ERR Only one of FXX or FNX arguments can be specified\r\n");
  EXPECT_EQ(Run({"HGETEX", "h", "EX", "5", "PERSIST", "FIELDS", "1", "a"}),
            "-ERR Only one of EX, PX, EXAT, PXAT or PERSIST arguments can be specified\r\n");
  EXPECT_EQ(Run({"HTTL", "h", "FIELDS", "1", "a"}), "*1\r\n:-1\r\n");
}

TEST_F(HashFamily, GetsAndSetsWithTimes) {
  const int64_t now = context_.now_ms();
  const std::string later = std::to_string(now + 5000);
  EXPECT_EQ(Run({"HSETEX", "h", "FXX", "FIELDS", "1", "a", "1"}), ":0\r\n");
  EXPECT_EQ(Run({"HSETEX", "h", "FNX", "EX", "5", "FIELDS", "2", "a", "1", "b", "2"}), ":1\r\n");
  EXPECT_EQ(Effects(), "HSETEX h PXAT " + later + " FIELDS 2 a 1 b 2");
  EXPECT_EQ(Events(), "hset h, hexpire h");
  EXPECT_EQ(Run({"HSETEX", "h", "KEEPTTL", "FIELDS", "1", "a", "3"}), ":1\r\n");
  EXPECT_EQ(Effects(), "HSETEX h KEEPTTL FIELDS 1 a 3");
  EXPECT_EQ(Run({"HPEXPIRETIME", "h", "FIELDS", "1", "a"}), "*1\r\n:" + later + "\r\n");
  EXPECT_EQ(Run({"HSETEX", "h", "FIELDS", "1", "a", "4"}), ":1\r\n");
  EXPECT_EQ(Effects(), "HSET h a 4");
  EXPECT_EQ(Run({"HPEXPIRETIME", "h", "FIELDS", "1", "a"}), "*1\r\n:-1\r\n");
  EXPECT_EQ(Run({"HGETEX", "h", "PX", "5000", "FIELDS", "2", "a", "x"}),
            "*2\r\n$1\r\n4\r\n$-1\r\n");
  EXPECT_EQ(Effects(), "HPEXPIREAT h " + later + " FIELDS 1 a");
  EXPECT_EQ(Run({"HGETEX", "h", "FIELDS", "1", "a"}), "*1\r\n$1\r\n4\r\n");
  EXPECT_EQ(Effects(), "");
  EXPECT_EQ(Run({"HGETEX", "h", "PERSIST", "FIELDS", "1", "a"}), "*1\r\n$1\r\n4\r\n");
  EXPECT_EQ(Effects(), "HPERSIST h FIELDS 1 a");
  Events();
  EXPECT_EQ(Run({"HGETDEL", "h", "FIELDS", "2", "a", "x"}), "*2\r\n$1\r\n4\r\n$-1\r\n");
  EXPECT_EQ(Effects(), "HDEL h a");
  EXPECT_EQ(Events(), "hdel h");
  EXPECT_EQ(Run({"HGETDEL", "h", "FIELDS", "1", "b"}), "*1\r\n$1\r\n2\r\n");
  EXPECT_EQ(Events(), "hdel h, del h");
  EXPECT_EQ(Run({"HGETDEL", "h", "FIELDS", "1", "b"}), "*1\r\n$-1\r\n");
  Effects();
  EXPECT_EQ(Run({"HSETEX", "gone", "EXAT", "1", "FIELDS", "1", "a", "1"}), ":1\r\n");
  EXPECT_EQ(Run({"EXISTS", "gone"}), ":0\r\n");
}

TEST_F(Collections, DumpsAreRestored) {
  Run({"SADD", "s", "1", "2", "text"});
  Run({"HSETEX", "h", "EX", "100", "FIELDS", "1", "f", "v"});
  for (const std::string key : {"s", "h"}) {
    const std::string reply = Run({"DUMP", key});
    const size_t at = reply.find("\r\n") + 2;
    const std::string payload = reply.substr(at, reply.size() - at - 2);
    EXPECT_EQ(Run({"RESTORE", key + "2", "0", payload}), "+OK\r\n");
    // A payload with times of fields says that it is of the version that knows them.
    EXPECT_EQ(payload[payload.size() - 10], key == "h" ? 12 : 10);
  }
  EXPECT_EQ(Run({"SMEMBERS", "s2"}), Run({"SMEMBERS", "s"}));
  EXPECT_EQ(Run({"HPTTL", "h2", "FIELDS", "1", "f"}), "*1\r\n:100000\r\n");
}

TEST_F(Collections, OtherTypesAreRefused) {
  Run({"SET", "text", "x"});
  const std::string wrong = "-" + std::string(errors::kWrongType) + "\r\n";
  for (const auto& words :
       std::vector<std::vector<std::string>>{{"SADD", "text", "a"},
                                             {"SPOP", "text"},
                                             {"SSCAN", "text", "0"},
                                             {"HSET", "text", "a", "b"},
                                             {"HGETALL", "text"},
                                             {"HINCRBY", "text", "a", "1"},
                                             {"HEXPIRE", "text", "1", "FIELDS", "1", "a"},
                                             {"HGETDEL", "text", "FIELDS", "1", "a"},
                                             {"HSETEX", "text", "FIELDS", "1", "a", "b"},
                                             {"HRANDFIELD", "text"}}) {
    EXPECT_EQ(Run(words), wrong) << words[0];
  }
}

}  // namespace
}  // namespace sava::commands
