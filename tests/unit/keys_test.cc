// The key family and COMMAND on a FakeContext: replies, notifications, changes, effects.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "all_families.h"
#include "base/text.h"
#include "commands/registry.h"
#include "fake_context.h"
#include "types/value/object.h"
#include "types/value/save.h"
#include "types/value/type_registry.h"

namespace sava::commands {
namespace {

constexpr int64_t kNow = 1'700'000'000'000;

class Keys : public testing::Test {
 protected:
  Keys() : context_(DataFamilies()) {
    for (const auto family : DataFamilies()) table_.Add(family);
    context_.set_command_table(&table_);
    context_.set_now_ms(kNow);
  }

  // Words separated by spaces, quoted as on a command line.
  std::string Run(std::string_view line) { return context_.Run(*base::SplitArgs(line)); }
  std::string Run(std::vector<std::string> words) { return context_.Run(std::move(words)); }

  // Forgets what was reported so far.
  void Forget() {
    context_.TakeChanges();
    context_.TakeEvents();
    context_.TakeEffects();
  }
  void ExpectReported(int64_t changes, std::string_view events, std::string_view effects) {
    EXPECT_EQ(context_.TakeChanges(), changes);
    EXPECT_EQ(context_.TakeEvents(), events);
    EXPECT_EQ(context_.TakeEffects(), effects);
  }

  FakeContext context_;
  CommandTable table_;
};

// ---- whole keys ----

TEST_F(Keys, DelAndUnlinkCountWhatWasThere) {
  Run("MSET a 1 b 2 c 3");
  Forget();
  EXPECT_EQ(Run("DEL a nope b a"), ":2\r\n");
  ExpectReported(2, "del a, del b", "");
  EXPECT_EQ(Run("UNLINK c c"), ":1\r\n");
  ExpectReported(1, "del c", "");
  EXPECT_EQ(Run("DEL a"), ":0\r\n");
  ExpectReported(0, "", "");
}

TEST_F(Keys, ExistsAndTouchCountRepetitions) {
  Run("MSET a 1 b 2");
  EXPECT_EQ(Run("EXISTS a a nope b"), ":3\r\n");
  EXPECT_EQ(context_.hits(), 3);
  EXPECT_EQ(context_.misses(), 1);
  EXPECT_EQ(Run("TOUCH a nope"), ":1\r\n");
}

TEST_F(Keys, TypeNamesTheValue) {
  Run("SET a 1");
  context_.AddObject("o");
  EXPECT_EQ(Run("TYPE a"), "+string\r\n");
  EXPECT_EQ(Run("TYPE o"), "+list\r\n");
  EXPECT_EQ(Run("TYPE nope"), "+none\r\n");
}

TEST_F(Keys, RenameTakesTheExpiryAlong) {
  Run("SET a 1 PX 5000");
  Run("SET b 2");
  Forget();
  EXPECT_EQ(Run("RENAME a b"), "+OK\r\n");
  ExpectReported(1, "rename_from a, rename_to b", "");
  EXPECT_EQ(context_.StringAt("b"), "1");
  EXPECT_EQ(context_.ExpiryAt("b"), kNow + 5000);
  EXPECT_EQ(Run("EXISTS a"), ":0\r\n");
}

TEST_F(Keys, RenameChecksTheSourceFirst) {
  EXPECT_EQ(Run("RENAME nope nope"), "-ERR no such key\r\n");
  EXPECT_EQ(Run("RENAMENX nope x"), "-ERR no such key\r\n");
  Run("SET a 1");
  Forget();
  EXPECT_EQ(Run("RENAME a a"), "+OK\r\n");
  EXPECT_EQ(Run("RENAMENX a a"), ":0\r\n");
  ExpectReported(0, "", "");
}

TEST_F(Keys, RenamenxSparesATakenName) {
  Run("MSET a 1 b 2");
  Forget();
  EXPECT_EQ(Run("RENAMENX a b"), ":0\r\n");
  EXPECT_EQ(Run("RENAMENX a c"), ":1\r\n");
  ExpectReported(1, "rename_from a, rename_to c", "");
}

TEST_F(Keys, CopyKeepsTheExpiry) {
  Run("SET a 1 PX 5000");
  Forget();
  EXPECT_EQ(Run("COPY a b"), ":1\r\n");
  ExpectReported(1, "copy_to b", "");
  EXPECT_EQ(context_.ExpiryAt("b"), kNow + 5000);
  EXPECT_EQ(Run("COPY a b"), ":0\r\n");
  EXPECT_EQ(Run("COPY nope x"), ":0\r\n");
  EXPECT_EQ(Run("SET a 2"), "+OK\r\n");
  EXPECT_EQ(Run("COPY a b replace"), ":1\r\n");
  EXPECT_EQ(context_.StringAt("b"), "2");
  EXPECT_EQ(context_.ExpiryAt("b"), kNoExpiry);
}

TEST_F(Keys, CopyToAnotherDatabase) {
  Run("SET a 1");
  Forget();
  EXPECT_EQ(Run("COPY a a DB 3"), ":1\r\n");
  ASSERT_EQ(context_.events().size(), 1U);
  EXPECT_EQ(context_.events()[0].db, 3);
  EXPECT_TRUE(context_.FindIn(3, "a", Access::kPeek));
}

TEST_F(Keys, CopyRefusesBadOptions) {
  EXPECT_EQ(Run("COPY a a"), "-ERR source and destination objects are the same\r\n");
  EXPECT_EQ(Run("COPY a a DB 0"), "-ERR source and destination objects are the same\r\n");
  EXPECT_EQ(Run("COPY a a FOO"), "-ERR syntax error\r\n");
  EXPECT_EQ(Run("COPY a b DB"), "-ERR syntax error\r\n");
  EXPECT_EQ(Run("COPY a b DB x"), "-ERR value is not an integer or out of range\r\n");
  EXPECT_EQ(Run("COPY a b DB 16"), "-ERR DB index is out of range\r\n");
  EXPECT_EQ(Run("COPY a b DB -1"), "-ERR DB index is out of range\r\n");
}

TEST_F(Keys, MoveNotifiesInBothDatabases) {
  Run("SET a 1");
  Forget();
  EXPECT_EQ(Run("MOVE a 2"), ":1\r\n");
  ASSERT_EQ(context_.events().size(), 2U);
  EXPECT_EQ(context_.events()[0].db, 0);
  EXPECT_EQ(context_.events()[1].db, 2);
  ExpectReported(1, "move_from a, move_to a", "");
  Run("SET a 2");
  EXPECT_EQ(Run("MOVE a 2"), ":0\r\n");
  EXPECT_EQ(context_.StringAt("a"), "2");
  EXPECT_EQ(Run("MOVE nope 2"), ":0\r\n");
}

TEST_F(Keys, MoveChecksTheDatabaseFirst) {
  EXPECT_EQ(Run("MOVE nope 0"), "-ERR source and destination objects are the same\r\n");
  EXPECT_EQ(Run("MOVE nope 16"), "-ERR DB index is out of range\r\n");
  EXPECT_EQ(Run("MOVE nope x"), "-ERR value is not an integer or out of range\r\n");
  EXPECT_EQ(Run("MOVE nope 99999999999"),
            "-ERR value is out of range, value must between -2147483648 and 2147483647\r\n");
}

// ---- databases ----

TEST_F(Keys, SelectChangesTheDatabase) {
  Run("SET a 1");
  EXPECT_EQ(Run("SELECT 1"), "+OK\r\n");
  EXPECT_EQ(Run("DBSIZE"), ":0\r\n");
  EXPECT_EQ(Run("SELECT 16"), "-ERR DB index is out of range\r\n");
  EXPECT_EQ(Run("SELECT -1"), "-ERR DB index is out of range\r\n");
  EXPECT_EQ(Run("SELECT x"), "-ERR value is not an integer or out of range\r\n");
  EXPECT_EQ(Run("SELECT 0"), "+OK\r\n");
  EXPECT_EQ(Run("DBSIZE"), ":1\r\n");
}

TEST_F(Keys, SwapdbSwaps) {
  Run("SET a 1");
  Forget();
  EXPECT_EQ(Run("SWAPDB 0 1"), "+OK\r\n");
  ExpectReported(1, "", "");
  EXPECT_EQ(Run("EXISTS a"), ":0\r\n");
  EXPECT_EQ(Run("SWAPDB 1 1"), "+OK\r\n");
  EXPECT_EQ(Run("SWAPDB x y"), "-ERR invalid first DB index\r\n");
  EXPECT_EQ(Run("SWAPDB 1 99999999999"), "-ERR invalid second DB index\r\n");
  EXPECT_EQ(Run("SWAPDB 0 16"), "-ERR DB index is out of range\r\n");
  EXPECT_EQ(Run("SWAPDB -1 0"), "-ERR DB index is out of range\r\n");
}

TEST_F(Keys, FlushdbSparesOtherDatabases) {
  Run("MSET a 1 b 2");
  Run("SELECT 1");
  Run("SET c 3");
  Forget();
  EXPECT_EQ(Run("FLUSHDB"), "+OK\r\n");
  ExpectReported(1, "", "FLUSHDB");
  Run("SELECT 0");
  EXPECT_EQ(Run("DBSIZE"), ":2\r\n");
  EXPECT_EQ(Run("FLUSHALL async"), "+OK\r\n");
  ExpectReported(3, "", "");
  EXPECT_EQ(Run("FLUSHALL SYNC"), "+OK\r\n");
  ExpectReported(1, "", "");
  EXPECT_EQ(Run("FLUSHDB foo"), "-ERR syntax error\r\n");
  EXPECT_EQ(Run("FLUSHALL ASYNC SYNC"), "-ERR syntax error\r\n");
}

// ---- looking for keys ----

TEST_F(Keys, KeysMatchesPatterns) {
  Run("MSET one 1 two 2 three 3");
  EXPECT_EQ(Run("KEYS t*"), "*2\r\n$5\r\nthree\r\n$3\r\ntwo\r\n");
  EXPECT_EQ(Run("KEYS *"), "*3\r\n$3\r\none\r\n$5\r\nthree\r\n$3\r\ntwo\r\n");
  EXPECT_EQ(Run("KEYS x"), "*0\r\n");
}

TEST_F(Keys, ScanWalksOverAll) {
  std::vector<std::string> words{"MSET"};
  for (int i = 10; i < 35; ++i) {
    words.push_back("key" + std::to_string(i));
    words.emplace_back("x");
  }
  Run(words);
  std::string first = "*2\r\n$2\r\n10\r\n*10\r\n";
  for (int i = 10; i < 20; ++i) first += "$5\r\nkey" + std::to_string(i) + "\r\n";
  EXPECT_EQ(Run("SCAN 0"), first);
  EXPECT_EQ(Run("SCAN 20 MATCH *3 COUNT 100"), "*2\r\n$1\r\n0\r\n*1\r\n$5\r\nkey33\r\n");
  EXPECT_EQ(Run("SCAN 20 COUNT 100 TYPE list"), "*2\r\n$1\r\n0\r\n*0\r\n");
  context_.AddObject("object");
  EXPECT_EQ(Run("SCAN 0 COUNT 100 TYPE LIST"), "*2\r\n$1\r\n0\r\n*1\r\n$6\r\nobject\r\n");
}

TEST_F(Keys, ScanReadsCursorsLeniently) {
  for (const char* cursor : {"-1", "007", "+0", "18446744073709551615", "\"\""}) {
    EXPECT_EQ(Run(std::string("SCAN ") + cursor), "*2\r\n$1\r\n0\r\n*0\r\n") << cursor;
  }
  for (const char* cursor : {"x", "1x", "\" 1\"", "18446744073709551616"}) {
    EXPECT_EQ(Run(std::string("SCAN ") + cursor), "-ERR invalid cursor\r\n") << cursor;
  }
}

TEST_F(Keys, ScanRefusesBadOptions) {
  EXPECT_EQ(Run("SCAN x FOO"), "-ERR invalid cursor\r\n");
  for (const char* bad : {"COUNT 0", "COUNT -1", "FOO", "MATCH", "COUNT", "TYPE"}) {
    EXPECT_EQ(Run(std::string("SCAN 0 ") + bad), "-ERR syntax error\r\n") << bad;
  }
  EXPECT_EQ(Run("SCAN 0 COUNT x"), "-ERR value is not an integer or out of range\r\n");
}

TEST_F(Keys, RandomkeyPicksOrIsNull) {
  EXPECT_EQ(Run("RANDOMKEY"), "$-1\r\n");
  Run("SET a 1");
  EXPECT_EQ(Run("RANDOMKEY"), "$1\r\na\r\n");
}

// ---- expiry ----

TEST_F(Keys, ExpireIsLoggedAsAnAbsoluteTime) {
  Run("SET a 1");
  Forget();
  EXPECT_EQ(Run("EXPIRE a 10"), ":1\r\n");
  ExpectReported(1, "expire a", "PEXPIREAT a 1700000010000");
  EXPECT_EQ(Run("PEXPIRE a 1500"), ":1\r\n");
  ExpectReported(1, "expire a", "PEXPIREAT a 1700000001500");
  EXPECT_EQ(Run("EXPIREAT a 1700000100"), ":1\r\n");
  ExpectReported(1, "expire a", "PEXPIREAT a 1700000100000");
  EXPECT_EQ(Run("PEXPIREAT a 1700000200123 XX"), ":1\r\n");
  ExpectReported(1, "expire a", "PEXPIREAT a 1700000200123");
  EXPECT_EQ(context_.ExpiryAt("a"), 1700000200123);
  EXPECT_EQ(Run("EXPIRE nope 10"), ":0\r\n");
  ExpectReported(0, "", "");
}

TEST_F(Keys, ExpiryInThePastDeletes) {
  for (const char* call : {"EXPIRE a 0", "EXPIRE a -1", "EXPIRE a -9223372036854775",
                           "EXPIREAT a 1", "PEXPIREAT a 1700000000000"}) {
    Run("SET a 1");
    Forget();
    EXPECT_EQ(Run(call), ":1\r\n") << call;
    ExpectReported(1, "del a", "DEL a");
    EXPECT_EQ(Run("EXISTS a"), ":0\r\n");
  }
}

TEST_F(Keys, ExpireConditions) {
  Run("SET a 1");
  EXPECT_EQ(Run("EXPIRE a 100 XX"), ":0\r\n");
  EXPECT_EQ(Run("EXPIRE a 100 GT"), ":0\r\n");
  EXPECT_EQ(Run("EXPIRE a 100 NX"), ":1\r\n");
  EXPECT_EQ(Run("EXPIRE a 200 NX"), ":0\r\n");
  EXPECT_EQ(Run("EXPIRE a 100 GT"), ":0\r\n");
  EXPECT_EQ(Run("EXPIRE a 101 xx gt"), ":1\r\n");
  EXPECT_EQ(Run("EXPIRE a 101 LT"), ":0\r\n");
  EXPECT_EQ(Run("EXPIRE a 50 LT"), ":1\r\n");
  EXPECT_EQ(Run("TTL a"), ":50\r\n");
  Run("SET b 1");
  EXPECT_EQ(Run("EXPIRE b 50 LT"), ":1\r\n");
  EXPECT_EQ(Run("EXPIRE b -50 XX LT"), ":1\r\n");
  EXPECT_EQ(Run("EXISTS b"), ":0\r\n");
}

TEST_F(Keys, ExpireRefusesBadArguments) {
  Run("SET a 1");
  EXPECT_EQ(Run("EXPIRE a x foo"), "-ERR Unsupported option foo\r\n");
  EXPECT_EQ(Run("EXPIRE a 1 NX XX"),
            "-ERR NX and XX, GT or LT options at the same time are not compatible\r\n");
  EXPECT_EQ(Run("EXPIRE a 1 GT LT"),
            "-ERR GT and LT options at the same time are not compatible\r\n");
  EXPECT_EQ(Run("EXPIRE a x"), "-ERR value is not an integer or out of range\r\n");
  EXPECT_EQ(Run("EXPIRE nope 9223372036854775807"),
            "-ERR invalid expire time in 'expire' command\r\n");
  EXPECT_EQ(Run("EXPIRE a 9223372036854775"), "-ERR invalid expire time in 'expire' command\r\n");
  EXPECT_EQ(Run("EXPIRE a -9223372036854775808"),
            "-ERR invalid expire time in 'expire' command\r\n");
  EXPECT_EQ(Run("PEXPIRE a 9223372036854775807"),
            "-ERR invalid expire time in 'pexpire' command\r\n");
  EXPECT_EQ(Run("EXPIREAT a 9223372036854776"),
            "-ERR invalid expire time in 'expireat' command\r\n");
  EXPECT_EQ(context_.ExpiryAt("a"), kNoExpiry);
}

TEST_F(Keys, TtlFamilyRoundsSeconds) {
  EXPECT_EQ(Run("TTL nope"), ":-2\r\n");
  Run("SET a 1");
  EXPECT_EQ(Run("PTTL a"), ":-1\r\n");
  EXPECT_EQ(Run("EXPIRETIME a"), ":-1\r\n");
  Run("PEXPIRE a 1500");
  EXPECT_EQ(Run("TTL a"), ":2\r\n");
  EXPECT_EQ(Run("PTTL a"), ":1500\r\n");
  EXPECT_EQ(Run("EXPIRETIME a"), ":1700000002\r\n");
  EXPECT_EQ(Run("PEXPIRETIME a"), ":1700000001500\r\n");
  Run("PEXPIRE a 1499");
  EXPECT_EQ(Run("TTL a"), ":1\r\n");
  context_.set_now_ms(kNow + 1499);
  EXPECT_EQ(Run("TTL a"), ":-2\r\n");
  Run("SET b 1");
  EXPECT_EQ(Run("PEXPIREAT b 9223372036854775807"), ":1\r\n");
  EXPECT_EQ(Run("EXPIRETIME b"), ":9223372036854776\r\n");
}

TEST_F(Keys, PersistTakesTheExpiryAway) {
  Run("SET a 1 PX 5000");
  Forget();
  EXPECT_EQ(Run("PERSIST a"), ":1\r\n");
  ExpectReported(1, "persist a", "");
  EXPECT_EQ(Run("PERSIST a"), ":0\r\n");
  EXPECT_EQ(Run("PERSIST nope"), ":0\r\n");
  ExpectReported(0, "", "");
}

// ---- OBJECT ----

TEST_F(Keys, ObjectEncoding) {
  Run("SET a 1");
  Run("SET b text");
  Run({"SET", "c", std::string(45, 'x')});
  context_.AddObject("o");
  EXPECT_EQ(Run("OBJECT ENCODING a"), "$3\r\nint\r\n");
  EXPECT_EQ(Run("object encoding b"), "$6\r\nembstr\r\n");
  EXPECT_EQ(Run("OBJECT ENCODING c"), "$3\r\nraw\r\n");
  EXPECT_EQ(Run("OBJECT ENCODING o"), "$8\r\nlistpack\r\n");
  EXPECT_EQ(Run("OBJECT ENCODING nope"), "$-1\r\n");
  context_.set_resp(3);
  EXPECT_EQ(Run("OBJECT ENCODING nope"), "_\r\n");
}

TEST_F(Keys, ObjectAgeDependsOnThePolicy) {
  Run("SET a 1");
  context_.SetAge("a", 77, 9);
  EXPECT_EQ(Run("OBJECT IDLETIME a"), ":77\r\n");
  EXPECT_EQ(Run("OBJECT IDLETIME a"), ":77\r\n");
  EXPECT_EQ(Run("OBJECT FREQ a").substr(0, 48), "-ERR An LFU maxmemory policy is not selected, ac");
  context_.set_lfu_policy(true);
  EXPECT_EQ(Run("OBJECT FREQ a"), ":9\r\n");
  EXPECT_EQ(Run("OBJECT IDLETIME a").substr(0, 44), "-ERR An LFU maxmemory policy is selected, id");
  EXPECT_EQ(Run("OBJECT FREQ nope"), "$-1\r\n");
}

TEST_F(Keys, ObjectRefcountOfSmallNumbersIsThatOfSharedOnes) {
  Run("MSET a 0 b 9999 c 10000 d -1 e text");
  EXPECT_EQ(Run("OBJECT REFCOUNT a"), ":2147483647\r\n");
  EXPECT_EQ(Run("OBJECT REFCOUNT b"), ":2147483647\r\n");
  EXPECT_EQ(Run("OBJECT REFCOUNT c"), ":1\r\n");
  EXPECT_EQ(Run("OBJECT REFCOUNT d"), ":1\r\n");
  EXPECT_EQ(Run("OBJECT REFCOUNT e"), ":1\r\n");
  context_.set_lfu_policy(true);
  EXPECT_EQ(Run("OBJECT REFCOUNT a"), ":1\r\n");
}

TEST_F(Keys, HelpIsWrittenFromTheRows) {
  const std::string help = Run("OBJECT HELP");
  EXPECT_EQ(help.substr(0, 5), "*11\r\n");
  EXPECT_NE(help.find("+OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\r\n"),
            std::string::npos);
  EXPECT_NE(help.find("+ENCODING <key>\r\n+    "), std::string::npos);
  EXPECT_NE(help.find("+HELP\r\n+    "), std::string::npos);
}

// ---- DUMP and RESTORE ----

TEST_F(Keys, DumpGivesRedisBytes) {
  Run("SET a hello");
  EXPECT_EQ(Run("DUMP a"), std::string("$17\r\n\x00\x05hello\n\x00"
                                       "cr\xdfve4 \n\r\n",
                                       24));
  EXPECT_EQ(Run("DUMP nope"), "$-1\r\n");
}

std::string Payload(std::string_view value) {
  std::string payload;
  types::Writer out(&payload);
  out.Byte(types::kRdbString);
  out.String(value);
  types::SealDump(&payload);
  return payload;
}

TEST_F(Keys, RestoreMakesTheKey) {
  const std::string payload = Payload("hello");
  EXPECT_EQ(Run({"RESTORE", "a", "0", payload}), "+OK\r\n");
  ExpectReported(1, "restore a", "");
  EXPECT_EQ(context_.StringAt("a"), "hello");
  EXPECT_EQ(context_.ExpiryAt("a"), kNoExpiry);
  EXPECT_EQ(Run({"RESTORE", "a", "0", payload}), "-BUSYKEY Target key name already exists.\r\n");
  EXPECT_EQ(Run({"RESTORE", "a", "0", Payload("12"), "replace"}), "+OK\r\n");
  EXPECT_EQ(context_.FormAt("a"), StringForm::kInt);
  EXPECT_EQ(Run({"RESTORE", "b", "0", Payload(std::string(1000, 'x'))}), "+OK\r\n");
  EXPECT_EQ(context_.StringAt("b"), std::string(1000, 'x'));
}

TEST_F(Keys, RestoreLogsTheAbsoluteTime) {
  const std::string payload = Payload("hello");
  EXPECT_EQ(Run({"RESTORE", "a", "5000", payload}), "+OK\r\n");
  EXPECT_EQ(context_.ExpiryAt("a"), kNow + 5000);
  ExpectReported(1, "restore a", "RESTORE a 1700000005000 " + payload + " REPLACE ABSTTL");
  EXPECT_EQ(Run({"RESTORE", "b", "1700000005000", payload, "ABSTTL"}), "+OK\r\n");
  EXPECT_EQ(context_.ExpiryAt("b"), kNow + 5000);
  ExpectReported(1, "restore b", "");
  // A time beyond all times is in the past, as in Redis.
  EXPECT_EQ(Run({"RESTORE", "c", "9223372036854775807", payload}), "+OK\r\n");
  EXPECT_EQ(Run("EXISTS c"), ":0\r\n");
}

TEST_F(Keys, RestoreOfWhatHasExpiredDeletesOnly) {
  const std::string payload = Payload("hello");
  EXPECT_EQ(Run({"RESTORE", "a", "1", payload, "ABSTTL"}), "+OK\r\n");
  ExpectReported(0, "", "");
  EXPECT_EQ(Run("EXISTS a"), ":0\r\n");
  Run("SET a 1");
  Forget();
  EXPECT_EQ(Run({"RESTORE", "a", "1", payload, "ABSTTL", "REPLACE"}), "+OK\r\n");
  ExpectReported(1, "del a", "DEL a");
  EXPECT_EQ(Run("EXISTS a"), ":0\r\n");
}

TEST_F(Keys, RestoreSetsTheAge) {
  EXPECT_EQ(Run({"RESTORE", "a", "0", Payload("x"), "IDLETIME", "1000"}), "+OK\r\n");
  EXPECT_EQ(Run("OBJECT IDLETIME a"), ":1000\r\n");
  context_.set_lfu_policy(true);
  EXPECT_EQ(Run({"RESTORE", "b", "0", Payload("x"), "FREQ", "200"}), "+OK\r\n");
  EXPECT_EQ(Run("OBJECT FREQ b"), ":200\r\n");
}

TEST_F(Keys, RestoreChecksInRedisOrder) {
  Run("SET a 1");
  EXPECT_EQ(Run("RESTORE a x x FOO"), "-ERR syntax error\r\n");
  EXPECT_EQ(Run("RESTORE a x x"), "-BUSYKEY Target key name already exists.\r\n");
  EXPECT_EQ(Run("RESTORE b x x"), "-ERR value is not an integer or out of range\r\n");
  EXPECT_EQ(Run("RESTORE b -1 x"), "-ERR Invalid TTL value, must be >= 0\r\n");
  EXPECT_EQ(Run("RESTORE b 0 x"), "-ERR DUMP payload version or checksum are wrong\r\n");
  EXPECT_EQ(Run("RESTORE b 0 x IDLETIME"), "-ERR syntax error\r\n");
  EXPECT_EQ(Run("RESTORE b 0 x IDLETIME -1"), "-ERR Invalid IDLETIME value, must be >= 0\r\n");
  EXPECT_EQ(Run("RESTORE b 0 x FREQ 256"), "-ERR Invalid FREQ value, must be >= 0 and <= 255\r\n");
  EXPECT_EQ(Run("RESTORE b 0 x FREQ 1 IDLETIME 1"), "-ERR syntax error\r\n");
  EXPECT_EQ(Run("EXISTS b"), ":0\r\n");
}

TEST_F(Keys, RestoreRefusesBadValues) {
  const auto seal = [](std::string body) {
    types::SealDump(&body);
    return body;
  };
  Run("SET a old");
  // No type, an unknown type, a string longer than the payload.
  for (const std::string& payload : {seal(""), seal("\x01\x01"), seal(std::string("\0\x05hell", 6)),
                                     seal(std::string("\0", 1))}) {
    EXPECT_EQ(Run({"RESTORE", "a", "0", payload, "REPLACE"}), "-ERR Bad data format\r\n");
  }
  EXPECT_EQ(context_.StringAt("a"), "old");
}

// A value of two strings, to see that a registered type needs nothing else.
class Couple final : public types::Object {
 public:
  static constexpr uint8_t kRdbTypes[] = {200};

  Couple(std::string first, std::string second)
      : first_(std::move(first)), second_(std::move(second)) {}

  static std::unique_ptr<types::Object> Load(uint8_t, types::Reader& in) {
    std::string first = in.String();
    std::string second = in.String();
    if (!in.ok()) return nullptr;
    return std::make_unique<Couple>(std::move(first), std::move(second));
  }
  static const types::TypeInfo& Info() {
    static constexpr types::TypeInfo kInfo{"couple", kRdbTypes, 1, Load};
    return kInfo;
  }

  const types::TypeInfo& type() const override { return Info(); }
  std::string_view encoding() const override { return "pair"; }
  size_t size() const override { return 2; }
  size_t MemoryUsage(size_t) const override { return sizeof(*this); }
  std::unique_ptr<types::Object> Copy() const override {
    return std::make_unique<Couple>(first_, second_);
  }
  uint8_t rdb_type() const override { return kRdbTypes[0]; }
  void Save(types::Writer& out) const override {
    out.String(first_);
    out.String(second_);
  }
  void Digest(const std::function<void(std::string_view)>& add) const override {
    add(first_);
    add(second_);
  }

 private:
  std::string first_;
  std::string second_;
};

TEST_F(Keys, DumpAndRestoreOfARegisteredType) {
  context_.SetObject("a", std::make_unique<Couple>("one", "22"));
  std::string dump = Run("DUMP a");
  const std::string payload =
      dump.substr(dump.find('\n') + 1, dump.size() - 2 - dump.find('\n') - 1);
  EXPECT_EQ(payload.substr(0, 7), "\xc8\x03one\xc0\x16");
  EXPECT_EQ(Run({"RESTORE", "b", "0", payload}), "-ERR Bad data format\r\n");
  types::TypeRegistry types;
  ASSERT_TRUE(types.Add(Couple::Info()).ok());
  context_.set_type_registry(&types);
  EXPECT_EQ(Run({"RESTORE", "b", "5000", payload}), "+OK\r\n");
  EXPECT_EQ(Run("TYPE b"), "+couple\r\n");
  EXPECT_EQ(Run("PTTL b"), ":5000\r\n");
  EXPECT_EQ(Run("DUMP b"), dump);
  std::string cut("\xc8\x03one", 5);
  types::SealDump(&cut);
  EXPECT_EQ(Run({"RESTORE", "c", "0", cut}), "-ERR Bad data format\r\n");
}

// ---- COMMAND ----

TEST_F(Keys, CommandInfoOfAPlainCommand) {
  EXPECT_EQ(Run("COMMAND INFO DEL"),
            "*1\r\n*10\r\n$3\r\ndel\r\n:-2\r\n*1\r\n+write\r\n:1\r\n:-1\r\n:1\r\n"
            "*3\r\n+@keyspace\r\n+@write\r\n+@slow\r\n"
            "*2\r\n$26\r\nrequest_policy:multi_shard\r\n$23\r\nresponse_policy:agg_sum\r\n"
            "*1\r\n*6\r\n$5\r\nflags\r\n*2\r\n+RM\r\n+delete\r\n"
            "$12\r\nbegin_search\r\n*4\r\n$4\r\ntype\r\n$5\r\nindex\r\n$4\r\nspec\r\n"
            "*2\r\n$5\r\nindex\r\n:1\r\n"
            "$9\r\nfind_keys\r\n*4\r\n$4\r\ntype\r\n$5\r\nrange\r\n$4\r\nspec\r\n"
            "*6\r\n$7\r\nlastkey\r\n:-1\r\n$7\r\nkeystep\r\n:1\r\n$5\r\nlimit\r\n:0\r\n*0\r\n");
  context_.set_resp(3);
  EXPECT_EQ(Run("COMMAND INFO TYPE"),
            "*1\r\n*10\r\n$4\r\ntype\r\n:2\r\n~2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n"
            "~3\r\n+@keyspace\r\n+@read\r\n+@fast\r\n~0\r\n"
            "~1\r\n%3\r\n$5\r\nflags\r\n~1\r\n+RO\r\n"
            "$12\r\nbegin_search\r\n%2\r\n$4\r\ntype\r\n$5\r\nindex\r\n$4\r\nspec\r\n"
            "%1\r\n$5\r\nindex\r\n:1\r\n"
            "$9\r\nfind_keys\r\n%2\r\n$4\r\ntype\r\n$5\r\nrange\r\n$4\r\nspec\r\n"
            "%3\r\n$7\r\nlastkey\r\n:0\r\n$7\r\nkeystep\r\n:1\r\n$5\r\nlimit\r\n:0\r\n~0\r\n");
}

TEST_F(Keys, CommandInfoOfUnknownNames) {
  EXPECT_EQ(Run("COMMAND INFO nope get|x object|encoding|x"), "*3\r\n$-1\r\n$-1\r\n$-1\r\n");
  context_.set_resp(3);
  EXPECT_EQ(Run("COMMAND INFO nope"), "*1\r\n_\r\n");
}

TEST_F(Keys, CommandInfoNestsSubcommands) {
  const std::string info = Run("COMMAND INFO object");
  EXPECT_NE(info.find("$6\r\nobject\r\n:-2\r\n*0\r\n:0\r\n:0\r\n:0\r\n*1\r\n+@slow\r\n*0\r\n*0\r\n"
                      "*5\r\n*10\r\n$15\r\nobject|encoding\r\n:3\r\n*1\r\n+readonly\r\n:2\r\n:2\r\n"
                      ":1\r\n*3\r\n+@keyspace\r\n+@read\r\n+@slow\r\n"),
            std::string::npos)
      << info;
  EXPECT_TRUE(
      Run("COMMAND INFO OBJECT|FREQ").starts_with("*1\r\n*10\r\n$11\r\nobject|freq\r\n:3\r\n"));
}

TEST_F(Keys, CommandDocsOfArguments) {
  context_.set_resp(3);
  const std::string docs = Run("COMMAND DOCS nope expire");
  EXPECT_TRUE(docs.starts_with("%1\r\n$6\r\nexpire\r\n%5\r\n$7\r\nsummary\r\n"));
  EXPECT_NE(docs.find("$9\r\narguments\r\n*3\r\n"
                      "%4\r\n$4\r\nname\r\n$3\r\nkey\r\n$4\r\ntype\r\n$3\r\nkey\r\n"
                      "$12\r\ndisplay_text\r\n$3\r\nkey\r\n$14\r\nkey_spec_index\r\n:0\r\n"
                      "%3\r\n$4\r\nname\r\n$7\r\nseconds\r\n$4\r\ntype\r\n$7\r\ninteger\r\n"
                      "$12\r\ndisplay_text\r\n$7\r\nseconds\r\n"
                      "%4\r\n$4\r\nname\r\n$9\r\ncondition\r\n$4\r\ntype\r\n$5\r\noneof\r\n"
                      "$5\r\nflags\r\n~1\r\n+optional\r\n$9\r\narguments\r\n*4\r\n"
                      "%4\r\n$4\r\nname\r\n$2\r\nnx\r\n$4\r\ntype\r\n$10\r\npure-token\r\n"
                      "$12\r\ndisplay_text\r\n$2\r\nnx\r\n$5\r\ntoken\r\n$2\r\nNX\r\n"),
            std::string::npos)
      << docs;
  EXPECT_EQ(Run("COMMAND DOCS nope"), "%0\r\n");
}

TEST_F(Keys, CommandDocsOfContainersAndDeprecation) {
  const std::string docs = Run("COMMAND DOCS object getset");
  EXPECT_NE(docs.find("$11\r\nsubcommands\r\n*10\r\n$15\r\nobject|encoding\r\n*10\r\n"),
            std::string::npos)
      << docs;
  EXPECT_NE(docs.find("$9\r\ndoc_flags\r\n*1\r\n+deprecated\r\n$16\r\ndeprecated_since\r\n"),
            std::string::npos);
}

TEST_F(Keys, CommandCountAndList) {
  const std::string count = base::IntText(static_cast<int64_t>(table_.all().size()));
  EXPECT_EQ(Run("COMMAND COUNT"), ":" + count + "\r\n");
  const std::string all = base::IntText(static_cast<int64_t>(table_.by_id().size()));
  EXPECT_EQ(Run("COMMAND LIST").substr(0, all.size() + 3), "*" + all + "\r\n");
  EXPECT_EQ(Run("COMMAND").substr(0, count.size() + 3), "*" + count + "\r\n");
  EXPECT_EQ(Run("COMMAND INFO"), Run("COMMAND"));
  EXPECT_EQ(Run("COMMAND LIST FILTERBY PATTERN EXPIRE*"),
            "*3\r\n$6\r\nexpire\r\n$8\r\nexpireat\r\n$10\r\nexpiretime\r\n");
  EXPECT_EQ(Run("COMMAND LIST filterby aclcat connection").substr(0, 18),
            "*9\r\n$6\r\nselect\r\n$7");
  EXPECT_EQ(Run("COMMAND LIST FILTERBY ACLCAT @hash"), "*0\r\n");
  EXPECT_EQ(Run("COMMAND LIST FILTERBY MODULE x"), "*0\r\n");
  for (const char* bad : {"FOO", "FILTERBY", "FILTERBY FOO x", "FILTERBY PATTERN x y"}) {
    EXPECT_EQ(Run(std::string("COMMAND LIST ") + bad), "-ERR syntax error\r\n") << bad;
  }
}

TEST_F(Keys, CommandGetkeys) {
  EXPECT_EQ(Run("COMMAND GETKEYS mset a 1 b 2"), "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
  EXPECT_EQ(Run("COMMAND GETKEYS object encoding k"), "*1\r\n$1\r\nk\r\n");
  EXPECT_EQ(Run("COMMAND GETKEYS nope a"), "-ERR Invalid command specified\r\n");
  EXPECT_EQ(Run("COMMAND GETKEYS object nope k"), "-ERR Invalid command specified\r\n");
  EXPECT_EQ(Run("COMMAND GETKEYS object|encoding k v"), "-ERR Invalid command specified\r\n");
  EXPECT_EQ(Run("COMMAND GETKEYS dbsize x y"), "-ERR The command has no key arguments\r\n");
  EXPECT_EQ(Run("COMMAND GETKEYS get a b"),
            "-ERR Invalid number of arguments specified for command\r\n");
  EXPECT_EQ(Run("COMMAND GETKEYS get"),
            "-ERR wrong number of arguments for 'command|getkeys' command\r\n");
  EXPECT_EQ(Run("COMMAND GETKEYSANDFLAGS rename a b"),
            "*2\r\n*2\r\n$1\r\na\r\n*3\r\n+RW\r\n+access\r\n+delete\r\n"
            "*2\r\n$1\r\nb\r\n*2\r\n+OW\r\n+update\r\n");
}

TEST_F(Keys, CommandWithAnUnknownSubcommand) {
  EXPECT_EQ(Run("COMMAND FOO"), "-ERR unknown subcommand 'FOO'. Try COMMAND HELP.\r\n");
  EXPECT_EQ(Run("COMMAND HELP x"), "-ERR wrong number of arguments for 'command|help' command\r\n");
}

}  // namespace
}  // namespace sava::commands
