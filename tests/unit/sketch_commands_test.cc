// CMS.*, TOPK.* and SIMHASH.* on a FakeContext: replies in both protocols, errors, notifications,
// changes, and what goes to the log.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/text.h"
#include "commands/registry.h"
#include "fake_context.h"
#include "types/value/type_registry.h"

namespace sava::commands {
namespace {

constexpr std::string_view kWrongType =
    "-WRONGTYPE Operation against a key holding the wrong kind of value";

class Sketches : public testing::Test {
 protected:
  Sketches()
      : context_({CountMinCommands(), TopKCommands(), SimHashCommands(), StringCommands(),
                  KeyCommands()}) {
    context_.set_type_registry(&types::AllTypes());
  }

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

// ---- CMS ----

TEST_F(Sketches, CmsCounts) {
  EXPECT_EQ(Run("CMS.INITBYDIM c 2000 5"), "+OK");
  ExpectReported(1, "cms.initbydim c");
  EXPECT_EQ(Run("CMS.INCRBY c a 5 b 2"), "*2 :5 :2");
  ExpectReported(2, "cms.incrby c");
  EXPECT_EQ(Run("CMS.INCRBY c a 0"), "*1 :5");
  ExpectReported(0, "");
  EXPECT_EQ(Run("CMS.QUERY c a b nope"), "*3 :5 :2 :0");
  EXPECT_EQ(Run("CMS.INFO c"), "*6 +width :2000 +depth :5 +count :7");
  context_.set_resp(3);
  EXPECT_EQ(Run("CMS.INFO c"), "%3 +width :2000 +depth :5 +count :7");
}

TEST_F(Sketches, CmsRefusesWhatIsNoIncrement) {
  Run("CMS.INITBYDIM c 100 3");
  ExpectReported(1, "cms.initbydim c");
  EXPECT_EQ(Run("CMS.INCRBY c a 1 b x"), "-CMS: Cannot parse number");
  EXPECT_EQ(Run("CMS.INCRBY c a 1 b -1"), "-CMS: Number cannot be negative");
  EXPECT_EQ(Run("CMS.INCRBY c a 1 b"), "-ERR wrong number of arguments for 'cms.incrby' command");
  EXPECT_EQ(Run("CMS.QUERY c a"), "*1 :0");
  ExpectReported(0, "");
  EXPECT_EQ(Run("CMS.INCRBY c a 4294967294"), "*1 :4294967294");
  EXPECT_EQ(Run("CMS.INCRBY c b 1 a 1"), "*2 :1 -CMS: INCRBY overflow");
  EXPECT_EQ(Run("CMS.QUERY c a"), "*1 :4294967295");
}

TEST_F(Sketches, CmsSizes) {
  EXPECT_EQ(Run("CMS.INITBYPROB p 0.001 0.01"), "+OK");
  EXPECT_EQ(Run("CMS.INFO p"), "*6 +width :2000 +depth :7 +count :0");
  EXPECT_EQ(Run("CMS.INITBYPROB q 0.1 0.1"), "+OK");
  EXPECT_EQ(Run("CMS.INFO q"), "*6 +width :20 +depth :4 +count :0");
  EXPECT_EQ(Run("CMS.INITBYPROB p 0.1 0.1"), "-CMS: key already exists");
  EXPECT_EQ(Run("CMS.INITBYDIM x 0 5"), "-CMS: invalid width");
  EXPECT_EQ(Run("CMS.INITBYDIM x 5 -1"), "-CMS: invalid depth");
  EXPECT_EQ(Run("CMS.INITBYDIM x 9223372036854775807 2"), "-CMS: invalid init arguments");
  EXPECT_EQ(Run("CMS.INITBYDIM x 1000000000 1000000000"),
            "-CMS: Insufficient memory to create the key");
  EXPECT_EQ(Run("CMS.INITBYPROB x 1e-300 0.5"), "-CMS: invalid init arguments");
  for (const char* bad : {"0", "1", "-1", "nan", "inf", "x"}) {
    EXPECT_EQ(Run("CMS.INITBYPROB x " + std::string(bad) + " 0.1"),
              "-CMS: invalid overestimation value");
    EXPECT_EQ(Run("CMS.INITBYPROB x 0.1 " + std::string(bad)), "-CMS: invalid prob value");
  }
  EXPECT_EQ(Run("EXISTS x"), ":0");
}

TEST_F(Sketches, CmsMerges) {
  for (const char* key : {"a", "b", "d"}) Run("CMS.INITBYDIM " + std::string(key) + " 1000 5");
  Run("CMS.INITBYDIM other 500 5");
  Run("CMS.INCRBY a x 10 y 5");
  Run("CMS.INCRBY b x 1 z 7");
  context_.TakeChanges();
  context_.TakeEvents();
  EXPECT_EQ(Run("CMS.MERGE d 2 a b weights 2 3"), "+OK");
  ExpectReported(1, "cms.merge d");
  EXPECT_EQ(Run("CMS.QUERY d x y z"), "*3 :23 :10 :21");
  EXPECT_EQ(Run("CMS.MERGE d 2 a b WEIGHTS 1 -1"), "-CMS: MERGE overflow");
  EXPECT_EQ(Run("CMS.MERGE d 2 a other"), "-CMS: width/depth is not equal");
  EXPECT_EQ(Run("CMS.MERGE d 2 a nokey"), "-CMS: key does not exist");
  EXPECT_EQ(Run("CMS.MERGE nokey x a"), "-CMS: key does not exist");
  EXPECT_EQ(Run("CMS.MERGE d x a"), "-CMS: invalid numkeys");
  EXPECT_EQ(Run("CMS.MERGE d 0 a"), "-CMS: Number of keys must be positive");
  EXPECT_EQ(Run("CMS.MERGE d 9223372036854775807 a"), "-CMS: wrong number of keys");
  EXPECT_EQ(Run("CMS.MERGE d 2 a b WEIGHTS 1"), "-CMS: wrong number of keys/weights");
  EXPECT_EQ(Run("CMS.MERGE d 9223372036854775807 a WEIGHTS 1"),
            "-CMS: wrong number of keys/weights");
  EXPECT_EQ(Run("CMS.MERGE d 1 a WEIGHTS x"), "-CMS: invalid weight value");
  ExpectReported(0, "");
  EXPECT_EQ(Run("CMS.QUERY d x y z"), "*3 :23 :10 :21");
}

// The keys are found whatever the number says, so that those which are looked at are locked.
TEST_F(Sketches, CmsMergeTellsItsKeys) {
  CommandTable table;
  table.Add(CountMinCommands());
  const auto keys = [&](const std::vector<std::string_view>& words) {
    std::vector<int> indexes;
    EXPECT_TRUE(KeyIndexes(*table.Resolve(words), words, &indexes));
    std::string text;
    for (const int index : indexes) text += std::to_string(index) + " ";
    return text;
  };
  EXPECT_EQ(keys({"CMS.MERGE", "d", "2", "a", "b", "WEIGHTS", "1", "2"}), "1 3 4 ");
  EXPECT_EQ(keys({"CMS.MERGE", "d", "x", "a"}), "1 ");
  EXPECT_EQ(keys({"CMS.MERGE", "d", "-1", "a"}), "1 ");
  EXPECT_EQ(keys({"CMS.MERGE", "d", "9223372036854775807", "a"}), "1 3 ");
}

// ---- TOPK ----

TEST_F(Sketches, TopkCounts) {
  EXPECT_EQ(Run("TOPK.RESERVE t 2 50 5 0.9"), "+OK");
  ExpectReported(1, "topk.reserve t");
  EXPECT_EQ(Run("TOPK.ADD t a b a"), "*3 $-1 $-1 $-1");
  ExpectReported(3, "topk.add t");
  EXPECT_EQ(Run("TOPK.INCRBY t c 10"), "*1 $1 b");
  ExpectReported(1, "topk.incrby t");
  EXPECT_EQ(Run("TOPK.LIST t"), "*2 $1 c $1 a");
  EXPECT_EQ(Run("TOPK.LIST t withcount"), "*4 $1 c :10 $1 a :2");
  EXPECT_EQ(Run("TOPK.LIST t WITH"), "-WITHCOUNT keyword expected");
  EXPECT_EQ(Run("TOPK.QUERY t a b"), "*2 :1 :0");
  EXPECT_EQ(Run("TOPK.COUNT t a b x"), "*3 :2 :1 :0");
  EXPECT_EQ(Run("TOPK.INCRBY t a 0"), "*1 $-1");
  ExpectReported(0, "");
  context_.set_resp(3);
  EXPECT_EQ(Run("TOPK.QUERY t a b"), "*2 #t #f");
  EXPECT_EQ(Run("TOPK.ADD t a"), "*1 _");
  EXPECT_TRUE(Run("TOPK.INFO t").starts_with("%4 +k :2 +width :50 +depth :5 +decay ,0.9"));
}

TEST_F(Sketches, TopkRefuses) {
  EXPECT_EQ(Run("TOPK.RESERVE t 0"), "-TopK: invalid k");
  EXPECT_EQ(Run("TOPK.RESERVE t x"), "-TopK: invalid k");
  EXPECT_EQ(Run("TOPK.RESERVE t 4294967296"), "-TopK: invalid k");
  EXPECT_EQ(Run("TOPK.RESERVE t 2 0 5 0.9"), "-TopK: invalid width");
  EXPECT_EQ(Run("TOPK.RESERVE t 2 5 0 0.9"), "-TopK: invalid depth");
  for (const char* decay : {"0", "1.1", "nan", "x", "-1"}) {
    EXPECT_EQ(Run("TOPK.RESERVE t 2 5 5 " + std::string(decay)),
              "-TopK: invalid decay value. must be '<= 1' & '> 0'");
  }
  for (const char* rest : {"2 5", "2 5 5", "2 5 5 0.9 1"}) {
    EXPECT_EQ(Run("TOPK.RESERVE t " + std::string(rest)),
              "-ERR wrong number of arguments for 'topk.reserve' command");
  }
  EXPECT_EQ(Run("EXISTS t"), ":0");
  EXPECT_EQ(Run("TOPK.RESERVE t 4294967295 4294967295 4294967295 1"), "+OK");
  EXPECT_EQ(Run("TOPK.RESERVE t 1"), "-TopK: key already exists");
  for (const char* line :
       {"ADD x a", "INCRBY x a 1", "QUERY x a", "COUNT x a", "LIST x", "INFO x"}) {
    EXPECT_EQ(Run("TOPK." + std::string(line)), "-TopK: key does not exist");
  }
  context_.TakeChanges();
  // A bad increment ends the array; what came before it counts.
  EXPECT_EQ(Run("TOPK.INCRBY t a 1 b 100001 c 1"),
            "*2 $-1 -TopK: increment must be an integer greater or equal to 0 and smaller or equal "
            "to 100,000");
  EXPECT_EQ(Run("TOPK.LIST t WITHCOUNT"), "*2 $1 a :1");
  EXPECT_EQ(context_.TakeChanges(), 1);
}

// ---- SIMHASH ----

TEST_F(Sketches, SimhashAddsAndFinds) {
  const std::string reply = Run("SIMHASH.ADD s fox TEXT 'the quick brown fox jumps over a dog'");
  ASSERT_TRUE(reply.starts_with("$16 ")) << reply;
  const std::string fingerprint = reply.substr(4);
  ExpectReported(1, "simhash.add s", "SIMHASH.ADD s fox HASH " + fingerprint);
  EXPECT_EQ(Run("SIMHASH.GET s fox"), reply);
  EXPECT_EQ(Run("SIMHASH.ADD s zero HASH 0000000000000000"), "$16 0000000000000000");
  EXPECT_EQ(Run("SIMHASH.ADD s one HASH 000000000000000F"), "$16 000000000000000f");
  EXPECT_EQ(Run("SIMHASH.DIST s zero one"), ":4");
  EXPECT_EQ(Run("SIMHASH.DIST s zero nope"), "$-1");
  EXPECT_EQ(Run("SIMHASH.CARD s"), ":3");
  EXPECT_EQ(Run("SIMHASH.QUERY s HASH 0000000000000001"), "*2 $4 zero $3 one");
  EXPECT_EQ(Run("SIMHASH.QUERY s HASH 0000000000000001 WITHDISTANCES distance 3"),
            "*4 $4 zero :1 $3 one :3");
  EXPECT_EQ(Run("SIMHASH.QUERY s HASH 0000000000000001 DISTANCE 2"), "*1 $4 zero");
  EXPECT_EQ(Run("SIMHASH.QUERY s HASH 0000000000000001 LIMIT 1"), "*1 $4 zero");
  EXPECT_EQ(Run("SIMHASH.QUERY s HASH 0000000000000001 LIMIT 0"), "*0");
  EXPECT_EQ(Run("SIMHASH.QUERY s TEXT 'The Quick brown -- fox jumps over a dog' DISTANCE 0"),
            "*1 $3 fox");
  context_.set_resp(3);
  EXPECT_EQ(Run("SIMHASH.QUERY s HASH 0000000000000001 WITHDISTANCES"),
            "*2 *2 $4 zero :1 *2 $3 one :3");
  EXPECT_TRUE(Run("SIMHASH.INFO s")
                  .starts_with("%4 $9 documents :3 $4 bits :64 $6 layout $5 plain $5 byt"));
}

TEST_F(Sketches, SimhashFeatures) {
  const std::string three = Run("SIMHASH.ADD s a FEATURES x 2 y 1 z 0.5");
  EXPECT_EQ(Run("SIMHASH.ADD s b FEATURES x 1"), Run("SIMHASH.ADD s c TEXT x"));
  EXPECT_EQ(three, Run("SIMHASH.GET s b"));  // x outweighs the others
  EXPECT_EQ(Run("SIMHASH.ADD s a FEATURES x"), "-ERR syntax error");
  EXPECT_EQ(Run("SIMHASH.ADD s a FEATURES x 1 y"), "-ERR syntax error");
  EXPECT_EQ(Run("SIMHASH.ADD s a FEATURES x nan"), "-ERR value is not a valid float");
  EXPECT_EQ(Run("SIMHASH.ADD s a FEATURES x inf"), "-ERR value is not a valid float");
}

TEST_F(Sketches, SimhashRemoves) {
  Run("SIMHASH.ADD s a HASH 0000000000000000");
  Run("SIMHASH.ADD s b HASH 0000000000000000");
  context_.TakeChanges();
  context_.TakeEvents();
  context_.TakeEffects();
  EXPECT_EQ(Run("SIMHASH.REM s nope"), ":0");
  ExpectReported(0, "");
  EXPECT_EQ(Run("SIMHASH.REM s a nope a"), ":1");
  ExpectReported(1, "simhash.rem s");
  EXPECT_EQ(Run("SIMHASH.REM s b"), ":1");
  ExpectReported(1, "simhash.rem s, del s");
  EXPECT_EQ(Run("EXISTS s"), ":0");
}

TEST_F(Sketches, SimhashRefuses) {
  constexpr std::string_view kBadHash = "-ERR fingerprint must be 16 hexadecimal digits";
  constexpr std::string_view kBadDistance = "-ERR distance must be an integer from 0 to 64";
  EXPECT_EQ(Run("SIMHASH.ADD s a HASH 123"), kBadHash);
  EXPECT_EQ(Run("SIMHASH.ADD s a WORDS 123"), "-ERR syntax error");
  EXPECT_EQ(Run("SIMHASH.ADD s a TEXT x y"), "-ERR syntax error");
  EXPECT_EQ(Run("SIMHASH.QUERY s HASH xyz"), kBadHash);
  EXPECT_EQ(Run("SIMHASH.QUERY s TEXT x DISTANCE 65"), kBadDistance);
  EXPECT_EQ(Run("SIMHASH.QUERY s TEXT x DISTANCE x"), kBadDistance);
  EXPECT_EQ(Run("SIMHASH.QUERY s TEXT x DISTANCE"), "-ERR syntax error");
  EXPECT_EQ(Run("SIMHASH.QUERY s TEXT x LIMIT -1"), "-ERR value is out of range, must be positive");
  EXPECT_EQ(Run("SIMHASH.QUERY s FEATURES x 1"), "-ERR syntax error");
  EXPECT_EQ(Run("EXISTS s"), ":0");
  EXPECT_EQ(Run("SIMHASH.QUERY s TEXT x"), "*0");
  EXPECT_EQ(Run("SIMHASH.GET s x"), "$-1");
  EXPECT_EQ(Run("SIMHASH.DIST s x y"), "$-1");
  EXPECT_EQ(Run("SIMHASH.CARD s"), ":0");
  EXPECT_EQ(Run("SIMHASH.REM s x"), ":0");
  EXPECT_EQ(Run("SIMHASH.INFO s"), "-ERR no such key");
  ExpectReported(0, "");
}

// ---- as keys ----

TEST_F(Sketches, OtherTypesAreLeftAlone) {
  Run("SET str x");
  for (const char* line :
       {"CMS.INCRBY str a 1", "CMS.QUERY str a", "CMS.INFO str", "CMS.MERGE str 1 str",
        "TOPK.ADD str a", "TOPK.INCRBY str a 1", "TOPK.QUERY str a", "TOPK.COUNT str a",
        "TOPK.LIST str", "TOPK.INFO str", "SIMHASH.ADD str a TEXT x", "SIMHASH.QUERY str TEXT x",
        "SIMHASH.DIST str a b", "SIMHASH.GET str a", "SIMHASH.REM str a", "SIMHASH.CARD str",
        "SIMHASH.INFO str"}) {
    EXPECT_EQ(Run(line), kWrongType) << line;
  }
  EXPECT_EQ(Run("CMS.INITBYDIM str 5 5"), "-CMS: key already exists");
  EXPECT_EQ(Run("TOPK.RESERVE str 5"), "-TopK: key already exists");
}

TEST_F(Sketches, DumpAndRestore) {
  Run("CMS.INITBYDIM c 100 3");
  Run("CMS.INCRBY c a 7");
  Run("TOPK.RESERVE t 2");
  Run("TOPK.ADD t a a b");
  Run("SIMHASH.ADD s id HASH 00000000000000ff");
  for (const char* key : {"c", "t", "s"}) {
    const std::string dumped = context_.Run({"DUMP", key});
    const size_t begin = dumped.find("\r\n") + 2;
    const std::string payload = dumped.substr(begin, dumped.size() - begin - 2);
    EXPECT_EQ(context_.Run({"RESTORE", std::string(key) + "2", "0", payload}), "+OK\r\n") << key;
    EXPECT_EQ(Run("TYPE " + std::string(key)), Run("TYPE " + std::string(key) + "2"));
  }
  EXPECT_EQ(Run("CMS.QUERY c2 a"), "*1 :7");
  EXPECT_EQ(Run("TOPK.LIST t2 WITHCOUNT"), "*4 $1 a :2 $1 b :1");
  EXPECT_EQ(Run("SIMHASH.GET s2 id"), "$16 00000000000000ff");
  EXPECT_EQ(Run("TYPE c"), "+CMSk-TYPE");
  EXPECT_EQ(Run("TYPE t"), "+TopK-TYPE");
  EXPECT_EQ(Run("TYPE s"), "+simhash");
}

}  // namespace
}  // namespace sava::commands
