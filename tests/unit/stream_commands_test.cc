// The X* family on a FakeContext: replies in both protocols, errors, notifications, changes, and
// what goes to the log. Compared with a stock server in tests/e2e/stream_type_tests.py.
#include <gtest/gtest.h>

#include <string>

#include "base/text.h"
#include "commands/registry.h"
#include "fake_context.h"

namespace sava::commands {
namespace {

class Streams : public testing::Test {
 protected:
  Streams()
      : context_({StreamCommands(), StreamReadCommands(), StreamGroupCommands(),
                  StreamClaimCommands(), StreamInfoCommands()}) {}

  // The reply with spaces for line ends.
  std::string Run(std::string_view line) {
    std::string reply = context_.Run(*base::SplitArgs(line));
    for (size_t at = reply.find("\r\n"); at != std::string::npos; at = reply.find("\r\n", at)) {
      reply.replace(at, 2, " ");
    }
    if (!reply.empty()) reply.pop_back();
    return reply;
  }
  void ExpectReported(int64_t changes, std::string_view events, std::string_view effects = "") {
    EXPECT_EQ(context_.TakeChanges(), changes);
    EXPECT_EQ(context_.TakeEvents(), events);
    EXPECT_EQ(context_.TakeEffects(), effects);
  }

  FakeContext context_;
};

TEST_F(Streams, AddLogsTheIdThatWasGiven) {
  EXPECT_EQ(Run("XADD x 5-1 f v"), "$3 5-1");
  ExpectReported(1, "xadd x");
  EXPECT_EQ(Run("XADD x 5-* f v"), "$3 5-2");
  ExpectReported(1, "xadd x", "XADD x 5-2 f v");
  EXPECT_EQ(Run("XADD x * f v"), "$15 1700000000000-0");
  ExpectReported(1, "xadd x", "XADD x 1700000000000-0 f v");
  EXPECT_EQ(Run("XADD x MAXLEN ~ 2 LIMIT 5 1700000000001-0 f v"), "$15 1700000000001-0");
  ExpectReported(1, "xadd x", "XADD x MAXLEN = 4 1700000000001-0 f v");
  EXPECT_EQ(Run("XADD x MAXLEN 2 * f v"), "$15 1700000000001-1");
  ExpectReported(1, "xadd x, xtrim x", "XADD x MAXLEN 2 1700000000001-1 f v");
  EXPECT_EQ(Run("XADD none NOMKSTREAM * f v"), "$-1");
  ExpectReported(0, "");
  EXPECT_EQ(Run("XLEN x"), ":2");
}

TEST_F(Streams, AddRefusesWhatItCannotDo) {
  EXPECT_EQ(Run("XADD x 0-0 f v"), "-ERR The ID specified in XADD must be greater than 0-0");
  EXPECT_EQ(Run("XADD x 1-1-1 f v"), "-ERR Invalid stream ID specified as stream command argument");
  EXPECT_EQ(Run("XADD x - f v"), "-ERR Invalid stream ID specified as stream command argument");
  EXPECT_EQ(Run("XADD x * f v w"), "-ERR wrong number of arguments for 'xadd' command");
  EXPECT_EQ(Run("XADD x LIMIT 5 * f v"),
            "-ERR syntax error, LIMIT cannot be used without specifying a trimming strategy");
  EXPECT_EQ(Run("XADD x MAXLEN 5 LIMIT 5 * f v"),
            "-ERR syntax error, LIMIT cannot be used without the special ~ option");
  EXPECT_EQ(Run("XADD x MAXLEN 5 MINID 5 * f v"),
            "-ERR syntax error, MAXLEN and MINID options at the same time are not compatible");
  EXPECT_EQ(Run("XADD x MAXLEN -1 * f v"), "-ERR The MAXLEN argument must be >= 0.");
  EXPECT_EQ(Run("XLEN x"), ":0");
  ExpectReported(0, "");
  Run("XADD x 18446744073709551615-18446744073709551615 f v");
  EXPECT_EQ(Run("XADD x * f v"),
            "-ERR The stream has exhausted the last possible ID, unable to add more items");
}

TEST_F(Streams, RangesLeaveOutWhatTheyAreTold) {
  for (const char* id : {"1-1", "1-2", "3-0"}) Run("XADD x " + std::string(id) + " f v");
  EXPECT_EQ(Run("XRANGE x (1-1 + COUNT 1"), "*1 *2 $3 1-2 *2 $1 f $1 v");
  EXPECT_EQ(Run("XREVRANGE x (3-0 1"), "*2 *2 $3 1-2 *2 $1 f $1 v *2 $3 1-1 *2 $1 f $1 v");
  EXPECT_EQ(Run("XRANGE x - + COUNT 0"), "*-1");
  EXPECT_EQ(Run("XRANGE none - +"), "*0");
  EXPECT_EQ(Run("XRANGE x (18446744073709551615-18446744073709551615 +"),
            "-ERR invalid start ID for the interval");
  EXPECT_EQ(Run("XRANGE x - (0-0"), "-ERR invalid end ID for the interval");
}

TEST_F(Streams, ReadIsAMapInResp3) {
  Run("XADD x 1-1 f v");
  EXPECT_EQ(Run("XREAD STREAMS x y 0 0"), "*1 *2 $1 x *1 *2 $3 1-1 *2 $1 f $1 v");
  EXPECT_EQ(Run("XREAD STREAMS x $"), "*-1");
  EXPECT_EQ(Run("XREAD STREAMS x +"), "*1 *2 $1 x *1 *2 $3 1-1 *2 $1 f $1 v");
  EXPECT_EQ(Run("XREAD BLOCK 5 STREAMS x $"), "*-1") << "nobody can wait here";
  context_.set_resp(3);
  EXPECT_EQ(Run("XREAD STREAMS x 0"), "%1 $1 x *1 *2 $3 1-1 *2 $1 f $1 v");
  EXPECT_EQ(Run("XREAD STREAMS x $"), "_");
}

TEST_F(Streams, DeliveriesAreLoggedAsClaims) {
  Run("XADD x 1-1 f v");
  Run("XADD x 2-1 f v");
  EXPECT_EQ(Run("XGROUP CREATE x g 0"), "+OK");
  context_.TakeChanges();
  context_.TakeEvents();
  EXPECT_EQ(Run("XREADGROUP GROUP g alice COUNT 1 STREAMS x >"),
            "*1 *2 $1 x *1 *2 $3 1-1 *2 $1 f $1 v");
  EXPECT_TRUE(context_.no_effect());
  ExpectReported(2, "xgroup-createconsumer x",
                 "XCLAIM x g alice 0 1-1 TIME 1700000000000 RETRYCOUNT 1 FORCE JUSTID LASTID 1-1, "
                 "XGROUP SETID x g 1-1 ENTRIESREAD 1");
  EXPECT_EQ(Run("XREADGROUP GROUP g bob NOACK STREAMS x >"),
            "*1 *2 $1 x *1 *2 $3 2-1 *2 $1 f $1 v");
  ExpectReported(2, "xgroup-createconsumer x",
                 "XGROUP CREATECONSUMER x g bob, XGROUP SETID x g 2-1 ENTRIESREAD 2");
  EXPECT_EQ(Run("XREADGROUP GROUP g alice STREAMS x >"), "*-1");
  EXPECT_EQ(Run("XREADGROUP GROUP g alice STREAMS x 0"), "*1 *2 $1 x *1 *2 $3 1-1 *2 $1 f $1 v");
  EXPECT_EQ(Run("XREADGROUP GROUP g bob STREAMS x 0"), "*1 *2 $1 x *0");
  Run("XDEL x 1-1");
  EXPECT_EQ(Run("XREADGROUP GROUP g alice STREAMS x 0"), "*1 *2 $1 x *1 *2 $3 1-1 *-1");
  EXPECT_EQ(Run("XREADGROUP GROUP none alice STREAMS x >"),
            "-NOGROUP No such key 'x' or consumer group 'none' in XREADGROUP with GROUP option");
}

TEST_F(Streams, ConsumersThatGetNothingAreLogged) {
  Run("XADD x 1-0 f v");
  Run("XGROUP CREATE x g $");
  context_.TakeChanges();
  context_.TakeEvents();
  EXPECT_EQ(Run("XREADGROUP GROUP g reader STREAMS x >"), "*-1");
  ExpectReported(1, "xgroup-createconsumer x", "XGROUP CREATECONSUMER x g reader");
  EXPECT_EQ(Run("XREADGROUP GROUP g history STREAMS x 0"), "*1 *2 $1 x *0");
  ExpectReported(1, "xgroup-createconsumer x", "XGROUP CREATECONSUMER x g history");
  EXPECT_EQ(Run("XCLAIM x g claimer 0 1-0"), "*0");
  ExpectReported(1, "xgroup-createconsumer x", "XGROUP CREATECONSUMER x g claimer");
  EXPECT_EQ(Run("XAUTOCLAIM x g idle 0 -"), "*3 $3 0-0 *0 *0");
  ExpectReported(1, "xgroup-createconsumer x", "XGROUP CREATECONSUMER x g idle");
  EXPECT_EQ(Run("XREADGROUP GROUP g reader STREAMS x >"), "*-1");
  ExpectReported(0, "", "");
}

TEST_F(Streams, ClaimsChangeHands) {
  for (int i = 1; i <= 3; ++i) Run("XADD x " + std::to_string(i) + "-0 f v");
  Run("XGROUP CREATE x g 0");
  Run("XREADGROUP GROUP g alice STREAMS x >");
  Run("XDEL x 2-0");
  context_.TakeChanges();
  context_.TakeEvents();
  context_.TakeEffects();
  EXPECT_EQ(Run("XCLAIM x g bob 0 1-0 JUSTID"), "*1 $3 1-0");
  ExpectReported(2, "xgroup-createconsumer x",
                 "XCLAIM x g bob 0 1-0 TIME 1700000000000 RETRYCOUNT 1 FORCE JUSTID LASTID 3-0");
  EXPECT_EQ(Run("XAUTOCLAIM x g bob 0 - COUNT 2 JUSTID"), "*3 $3 3-0 *1 $3 1-0 *1 $3 2-0");
  EXPECT_EQ(Run("XAUTOCLAIM x g bob 0 3-0"), "*3 $3 0-0 *1 *2 $3 3-0 *2 $1 f $1 v *0");
  EXPECT_EQ(Run("XPENDING x g"), "*4 :2 $3 1-0 $3 3-0 *1 *2 $3 bob $1 2");
  EXPECT_EQ(Run("XPENDING x g - + 10 alice"), "*0");
  EXPECT_EQ(Run("XPENDING x g - + 10 bob"), "*2 *4 $3 1-0 $3 bob :0 :1 *4 $3 3-0 $3 bob :0 :2");
  EXPECT_EQ(Run("XACK x g 1-0 2-0 3-0"), ":2");
  EXPECT_EQ(Run("XPENDING x g"), "*4 :0 $-1 $-1 *-1");
  EXPECT_EQ(Run("XCLAIM x g bob 0 1-0 WHAT"), "-ERR Unrecognized XCLAIM option 'WHAT'");
  EXPECT_EQ(Run("XAUTOCLAIM x g bob 0 - COUNT 0"), "-ERR COUNT must be > 0");
}

TEST_F(Streams, GroupsAreMadeAndRemoved) {
  EXPECT_EQ(Run("XGROUP CREATE x g $"),
            "-ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may "
            "want to use the MKSTREAM option to create an empty stream automatically.");
  EXPECT_EQ(Run("XGROUP CREATE x g $ MKSTREAM ENTRIESREAD 3"), "+OK");
  ExpectReported(1, "xgroup-create x");
  EXPECT_EQ(Run("XGROUP CREATE x g $"), "-BUSYGROUP Consumer Group name already exists");
  EXPECT_EQ(Run("XGROUP CREATECONSUMER x g alice"), ":1");
  EXPECT_EQ(Run("XGROUP CREATECONSUMER x g alice"), ":0");
  EXPECT_EQ(Run("XGROUP SETID x none 0"),
            "-NOGROUP No such consumer group 'none' for key name 'x'");
  EXPECT_EQ(Run("XGROUP DELCONSUMER x g alice"), ":0");
  EXPECT_EQ(Run("XINFO GROUPS x"),
            "*1 *12 $4 name $1 g $9 consumers :0 $7 pending :0 $17 last-delivered-id $3 0-0 "
            "$12 entries-read :3 $3 lag :0");
  EXPECT_EQ(Run("XGROUP DESTROY x g"), ":1");
  EXPECT_EQ(Run("XGROUP DESTROY x g"), ":0");
  EXPECT_EQ(Run("XINFO STREAM none"), "-ERR no such key");
}

TEST_F(Streams, OtherTypesAreRefused) {
  context_.AddObject("list");
  for (const char* line :
       {"XADD list * f v", "XLEN list", "XRANGE list - +", "XDEL list 1-1", "XTRIM list MAXLEN 1",
        "XREAD STREAMS list 0", "XGROUP CREATE list g 0", "XACK list g 1-1", "XPENDING list g",
        "XCLAIM list g c 0 1-1", "XAUTOCLAIM list g c 0 -", "XINFO STREAM list", "XSETID list 1-1",
        "XREADGROUP GROUP g c STREAMS list >"}) {
    EXPECT_EQ(Run(line), "-WRONGTYPE Operation against a key holding the wrong kind of value")
        << line;
  }
}

}  // namespace
}  // namespace sava::commands
