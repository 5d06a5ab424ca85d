// The BF.* and CF.* families on a FakeContext: replies in both protocols, errors, notifications,
// changes, and what goes to the log.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "commands/registry.h"
#include "fake_context.h"
#include "types/filters/bloom.h"
#include "types/value/type_registry.h"

namespace sava::commands {
namespace {

constexpr std::string_view kWrongType =
    "-WRONGTYPE Operation against a key holding the wrong kind of value";

// "*2 $1 a :2": a reply with spaces for line ends.
std::string Flat(std::string reply) {
  for (size_t at = reply.find("\r\n"); at != std::string::npos; at = reply.find("\r\n", at)) {
    reply.replace(at, 2, " ");
  }
  if (!reply.empty()) reply.pop_back();
  return reply;
}

class Filters : public testing::Test {
 protected:
  Filters() : context_({BloomCommands(), CuckooCommands(), StringCommands(), KeyCommands()}) {}

  std::string Run(std::string_view line) { return Flat(context_.Run(*base::SplitArgs(line))); }
  std::string Run(std::vector<std::string> words) { return Flat(context_.Run(std::move(words))); }
  void Forget() {
    context_.TakeChanges();
    context_.TakeEvents();
    context_.TakeEffects();
  }
  void ExpectReported(int64_t changes, std::string_view events) {
    EXPECT_EQ(context_.TakeChanges(), changes);
    EXPECT_EQ(context_.TakeEvents(), events);
    EXPECT_EQ(context_.TakeEffects(), "");
  }
  const types::Object& At(std::string_view key) {
    return *context_.Find(key, Access::kPeek).object;
  }
  // Carries a filter over as clients do; how many chunks it took.
  int CarryOver(const std::string& family, const std::string& from, const std::string& to) {
    std::string iterator = "0";
    for (int chunks = 0;; ++chunks) {
      const std::string reply = context_.Run({family + ".SCANDUMP", from, iterator});
      const size_t number_at = reply.find(':') + 1;
      iterator = reply.substr(number_at, reply.find('\r', number_at) - number_at);
      if (iterator == "0") return chunks;
      const size_t length_at = reply.find('$') + 1;
      const size_t data_at = reply.find("\r\n", length_at) + 2;
      const std::string data = reply.substr(data_at, reply.size() - data_at - 2);
      EXPECT_EQ(context_.Run({family + ".LOADCHUNK", to, iterator, data}), "+OK\r\n");
    }
  }

  FakeContext context_;
};

// ---- Bloom ----

TEST_F(Filters, BloomAddsAndAsks) {
  EXPECT_EQ(Run("BF.ADD b a"), ":1");
  ExpectReported(2, "bf.add b");  // made, and an item
  EXPECT_EQ(Run("BF.ADD b a"), ":0");
  ExpectReported(0, "");
  EXPECT_EQ(Run("BF.MADD b a b c"), "*3 :0 :1 :1");
  ExpectReported(2, "bf.add b");
  EXPECT_EQ(Run("BF.EXISTS b a"), ":1");
  EXPECT_EQ(Run("BF.EXISTS b x"), ":0");
  EXPECT_EQ(Run("BF.MEXISTS b a x c"), "*3 :1 :0 :1");
  EXPECT_EQ(Run("BF.EXISTS nope a"), ":0");
  EXPECT_EQ(Run("BF.MEXISTS nope a b"), "*2 :0 :0");
  EXPECT_EQ(Run("BF.CARD b"), ":3");
  EXPECT_EQ(Run("BF.CARD nope"), ":0");
  ExpectReported(0, "");
  EXPECT_EQ(Run("TYPE b"), "+MBbloom--");
}

TEST_F(Filters, BloomInResp3) {
  context_.reply().set_resp(3);
  EXPECT_EQ(Run("BF.ADD b a"), "#t");
  EXPECT_EQ(Run("BF.MADD b a b"), "*2 #f #t");
  EXPECT_EQ(Run("BF.MEXISTS b a x"), "*2 #t #f");
  EXPECT_TRUE(Run("BF.INFO b").starts_with("%5 +Capacity :100 +Size :"));
  EXPECT_EQ(Run("BF.INFO b ITEMS"), "*1 :2");
  EXPECT_TRUE(Run("BF.STATS b").starts_with("%11 $1 m :"));
  EXPECT_EQ(Run("CF.ADD c a"), "#t");
  EXPECT_EQ(Run("CF.COUNT c a"), ":1");
  EXPECT_TRUE(Run("CF.INFO c").starts_with("%8 +Size :"));
}

TEST_F(Filters, BloomReserve) {
  EXPECT_EQ(Run("BF.RESERVE b 0.01 1000"), "+OK");
  ExpectReported(1, "bf.reserve b");
  EXPECT_EQ(Run("BF.RESERVE b 0.01 1000"), "-ERR item exists");
  EXPECT_EQ(Run("BF.RESERVE x abc 100"), "-ERR bad error rate");
  EXPECT_EQ(Run("BF.RESERVE x nan 100"), "-ERR bad error rate");
  EXPECT_EQ(Run("BF.RESERVE x 0 100"), "-ERR (0 < error rate range < 1) ");
  EXPECT_EQ(Run("BF.RESERVE x 1 100"), "-ERR (0 < error rate range < 1) ");
  EXPECT_EQ(Run("BF.RESERVE x 0.01 abc"), "-ERR bad capacity");
  EXPECT_EQ(Run("BF.RESERVE x 0.01 0"), "-ERR (capacity should be larger than 0)");
  EXPECT_EQ(Run("BF.RESERVE x 0.01 100 EXPANSION"), "-ERR no expansion");
  EXPECT_EQ(Run("BF.RESERVE x 0.01 100 EXPANSION z"), "-ERR bad expansion");
  EXPECT_EQ(Run("BF.RESERVE x 0.01 100 EXPANSION 0"),
            "-ERR expansion should be greater or equal to 1");
  EXPECT_EQ(Run("BF.RESERVE x 0.01 100 EXPANSION 2 NONSCALING"),
            "-Nonscaling filters cannot expand");
  EXPECT_EQ(Run("BF.RESERVE x 0.01 100 LAYOUT"), "-ERR bad layout");
  EXPECT_EQ(Run("BF.RESERVE x 0.01 100 LAYOUT ROUND"), "-ERR bad layout");
  EXPECT_EQ(Run("BF.RESERVE x 0.01 100 LAYOUT CLASSIC DELETABLE"),
            "-ERR a deletable filter has no layout");
  EXPECT_EQ(Run("BF.RESERVE x 0.01 100 BOGUS"), "-ERR syntax error");
  EXPECT_EQ(Run("BF.RESERVE x 0.01 9000000000000000000"),
            "-ERR Insufficient memory to create filter");
  EXPECT_EQ(Run("EXISTS x"), ":0");
  ExpectReported(0, "");
  EXPECT_EQ(Run("BF.RESERVE c 0.01 1000 LAYOUT CLASSIC EXPANSION 4"), "+OK");
  EXPECT_EQ(Run("BF.INFO c EXPANSION"), "*1 :4");
  EXPECT_EQ(Run("OBJECT ENCODING c"), "$7 classic");
  EXPECT_EQ(Run("BF.RESERVE d 0.01 1000 layout blocked"), "+OK");
  EXPECT_EQ(Run("OBJECT ENCODING d"), "$5 exact");
}

TEST_F(Filters, BloomInsert) {
  EXPECT_EQ(Run("BF.INSERT i ITEMS a b"), "*2 :1 :1");
  EXPECT_EQ(Run("BF.INSERT i NOCREATE ITEMS a c"), "*2 :0 :1");
  EXPECT_EQ(Run("BF.INSERT none NOCREATE ITEMS a"), "-ERR not found");
  EXPECT_EQ(Run("BF.INSERT j CAPACITY 500 ERROR 0.001 EXPANSION 4 ITEMS a"), "*1 :1");
  EXPECT_EQ(Run("BF.INFO j CAPACITY"), "*1 :500");
  EXPECT_EQ(Run("BF.INSERT l NONSCALING CAPACITY 2 ITEMS a b c d"),
            "*3 :1 :1 -ERR non scaling filter is full");
  EXPECT_EQ(Run("BF.INFO l EXPANSION"), "*1 $-1");
  EXPECT_EQ(Run("BF.INSERT d DELETABLE ITEMS a"), "*1 :1");
  EXPECT_EQ(Run("BF.DEL d a"), ":1");
  for (const char* line :
       {"BF.INSERT i ITEMS", "BF.INSERT i CAPACITY 4", "BF.INSERT i a CAPACITY"}) {
    EXPECT_TRUE(Run(line).starts_with('-')) << line;
  }
  EXPECT_EQ(Run("BF.INSERT n CAPACITY z ITEMS a"), "-Bad capacity");
  EXPECT_EQ(Run("BF.INSERT n CAPACITY 0 ITEMS a"), "-Bad argument received");
  EXPECT_EQ(Run("BF.INSERT n ERROR z ITEMS a"), "-Bad error rate");
  EXPECT_EQ(Run("BF.INSERT n ERROR 2 ITEMS a"), "-Bad argument received");
  EXPECT_EQ(Run("BF.INSERT n EXPANSION z ITEMS a"), "-Bad expansion");
  EXPECT_EQ(Run("BF.INSERT n BOGUS 1 ITEMS a"), "-Unknown argument received");
  EXPECT_EQ(Run("EXISTS n"), ":0");
}

TEST_F(Filters, BloomDeletes) {
  EXPECT_EQ(Run("BF.DEL nope a"), "-ERR not found");
  EXPECT_EQ(Run("BF.ADD plain a"), ":1");
  EXPECT_EQ(Run("BF.DEL plain a"), "-ERR filter is not deletable");
  EXPECT_EQ(Run("BF.RESERVE d 0.01 100 DELETABLE"), "+OK");
  EXPECT_EQ(Run("BF.MADD d a b a"), "*3 :1 :1 :0");
  Forget();
  EXPECT_EQ(Run("BF.DEL d a"), ":1");
  ExpectReported(1, "bf.del d");
  EXPECT_EQ(Run("BF.EXISTS d a"), ":1");  // it was added twice
  EXPECT_EQ(Run("BF.DEL d a"), ":1");
  EXPECT_EQ(Run("BF.EXISTS d a"), ":0");
  Forget();
  EXPECT_EQ(Run("BF.DEL d a"), ":0");
  ExpectReported(0, "");
  EXPECT_EQ(Run("BF.CARD d"), ":1");
}

TEST_F(Filters, BloomMerges) {
  EXPECT_EQ(Run("BF.MADD a 1 2 3"), "*3 :1 :1 :1");
  EXPECT_EQ(Run("BF.INSERT b CAPACITY 5000 ITEMS 3 4"), "*2 :1 :1");
  Forget();
  EXPECT_EQ(Run("BF.MERGE m a b"), "+OK");
  ExpectReported(1, "bf.merge m");
  EXPECT_EQ(Run("BF.MEXISTS m 1 2 3 4 5"), "*5 :1 :1 :1 :1 :0");
  EXPECT_EQ(Run("BF.MERGE a a b"), "+OK");
  EXPECT_EQ(Run("BF.MEXISTS a 1 4"), "*2 :1 :1");
  EXPECT_EQ(Run("BF.MERGE a nope"), "-ERR not found");
  EXPECT_EQ(Run("BF.MERGE new a nope"), "-ERR not found");
  EXPECT_EQ(Run("EXISTS new"), ":0");
  EXPECT_EQ(Run("BF.INSERT d DELETABLE ITEMS 9"), "*1 :1");
  EXPECT_EQ(Run("BF.MERGE a d"), "-ERR filters cannot be merged");
  EXPECT_EQ(Run("BF.INSERT f NONSCALING CAPACITY 3 ITEMS 9"), "*1 :1");
  EXPECT_EQ(Run("BF.MERGE f a"), "-ERR non scaling filter is full");
  EXPECT_EQ(Run("BF.CARD f"), ":1");
}

TEST_F(Filters, BloomInfo) {
  EXPECT_EQ(Run("BF.INFO nope"), "-ERR not found");
  EXPECT_EQ(Run("BF.STATS nope"), "-ERR not found");
  EXPECT_EQ(Run("BF.RESERVE b 0.001 2 EXPANSION 3"), "+OK");
  EXPECT_EQ(Run("BF.MADD b a b c"), "*3 :1 :1 :1");
  EXPECT_EQ(Run("BF.INFO b Capacity"), "*1 :8");
  EXPECT_EQ(Run("BF.INFO b filters"), "*1 :2");
  EXPECT_EQ(Run("BF.INFO b items"), "*1 :3");
  EXPECT_EQ(Run("BF.INFO b bogus"), "-Invalid information value");
  EXPECT_EQ(Run("BF.INFO b items items"), "-ERR wrong number of arguments for 'bf.info' command");
  EXPECT_TRUE(Run("BF.INFO b").starts_with("*10 +Capacity :8 +Size :"));
  EXPECT_TRUE(
      Run("BF.INFO b")
          .ends_with("+Number of filters :2 +Number of items inserted :3 +Expansion rate :3"));
}

TEST_F(Filters, BloomIsCarriedOver) {
  const std::vector<std::string> kinds[] = {
      {"BF.RESERVE", "k", "0.01", "20000000"},
      {"BF.RESERVE", "k", "0.01", "100"},
      {"BF.RESERVE", "k", "0.01", "3000", "LAYOUT", "CLASSIC"},
      {"BF.RESERVE", "k", "0.01", "3000", "DELETABLE"},
  };
  for (const auto& kind : kinds) {
    EXPECT_EQ(Run("DEL k copy"), kind == kinds[0] ? ":0" : ":2");
    EXPECT_EQ(Run(kind), "+OK");
    for (int i = 0; i < 6000; ++i) context_.Run({"BF.ADD", "k", std::to_string(i)});
    EXPECT_GE(CarryOver("BF", "k", "copy"), 2);
    for (int i = 0; i < 6000; ++i) {
      ASSERT_EQ(context_.Run({"BF.EXISTS", "copy", std::to_string(i)}), ":1\r\n");
    }
    for (const std::string field : {"CAPACITY", "FILTERS", "ITEMS", "EXPANSION"}) {
      EXPECT_EQ(Run("BF.INFO copy " + field), Run("BF.INFO k " + field));
    }
  }
  EXPECT_EQ(Run("BF.SCANDUMP nope 0"), "-ERR not found");
  EXPECT_EQ(Run("BF.SCANDUMP k abc"), "-Second argument must be numeric");
  EXPECT_EQ(Run("BF.SCANDUMP k -5"), "*2 :0 $0 ");
  EXPECT_EQ(Run("BF.SCANDUMP k 9223372036854775807"), "*2 :0 $0 ");
  EXPECT_EQ(Run("BF.LOADCHUNK z abc data"), "-ERR Second argument must be numeric");
  EXPECT_EQ(Run("BF.LOADCHUNK z 1 data"), "-ERR received bad data");
  EXPECT_EQ(Run("BF.LOADCHUNK z 5 data"), "-ERR not found");
  EXPECT_EQ(Run("BF.LOADCHUNK k 5 data"), "-ERR received bad data");
}

// ---- cuckoo ----

TEST_F(Filters, CuckooCounts) {
  EXPECT_EQ(Run("CF.ADD c a"), ":1");
  ExpectReported(2, "cf.add c");
  EXPECT_EQ(Run("CF.ADD c a"), ":1");
  EXPECT_EQ(Run("CF.COUNT c a"), ":2");
  Forget();
  EXPECT_EQ(Run("CF.ADDNX c a"), ":0");
  ExpectReported(0, "");
  EXPECT_EQ(Run("CF.ADDNX c b"), ":1");
  EXPECT_EQ(Run("CF.MEXISTS c a b z"), "*3 :1 :1 :0");
  EXPECT_EQ(Run("CF.EXISTS nope a"), ":0");
  EXPECT_EQ(Run("CF.COUNT nope a"), ":0");
  Forget();
  EXPECT_EQ(Run("CF.DEL c a"), ":1");
  ExpectReported(1, "cf.del c");
  EXPECT_EQ(Run("CF.DEL c a"), ":1");
  EXPECT_EQ(Run("CF.DEL c a"), ":0");
  EXPECT_EQ(Run("CF.DEL nope a"), "-Not found");
  EXPECT_TRUE(Run("CF.INFO c")
                  .ends_with("+Number of buckets :512 +Number of filters :1 +Number of items "
                             "inserted :1 +Number of items "
                             "deleted :2 +Bucket size :2 +Expansion rate :1 +Max iterations :20"));
  EXPECT_EQ(Run("CF.INFO nope"), "-ERR not found");
  EXPECT_EQ(Run("TYPE c"), "+MBbloomCF");
}

TEST_F(Filters, CuckooReserve) {
  EXPECT_EQ(Run("CF.RESERVE c 1000 BUCKETSIZE 4 MAXITERATIONS 10 EXPANSION 2"), "+OK");
  EXPECT_EQ(Run("CF.RESERVE c 1000"), "-ERR item exists");
  EXPECT_EQ(Run("CF.RESERVE x abc"), "-Bad capacity");
  EXPECT_EQ(Run("CF.RESERVE x 1"), "-Capacity must be at least (BucketSize * 2)");
  EXPECT_EQ(Run("CF.RESERVE x -5"), "-Capacity must be at least (BucketSize * 2)");
  EXPECT_EQ(Run("CF.RESERVE x 100 BUCKETSIZE a"), "-Couldn't parse BUCKETSIZE");
  EXPECT_EQ(Run("CF.RESERVE x 100 BUCKETSIZE 0"),
            "-BUCKETSIZE: value must be an integer between 1 and 255, inclusive.");
  EXPECT_EQ(Run("CF.RESERVE x 100 MAXITERATIONS a"), "-Couldn't parse MAXITERATIONS");
  EXPECT_EQ(Run("CF.RESERVE x 100 MAXITERATIONS 0"),
            "-MAXITERATIONS: value must be an integer between 1 and 65535, inclusive.");
  EXPECT_EQ(Run("CF.RESERVE x 100 EXPANSION a"), "-Couldn't parse EXPANSION");
  EXPECT_EQ(Run("CF.RESERVE x 100 EXPANSION -1"),
            "-EXPANSION: value must be an integer between 0 and 32768, inclusive.");
  EXPECT_EQ(Run("CF.RESERVE x 100 EXPANSION"),
            "-ERR wrong number of arguments for 'cf.reserve' command");
  EXPECT_EQ(Run("EXISTS x"), ":0");
}

TEST_F(Filters, CuckooFull) {
  EXPECT_EQ(Run("CF.RESERVE f 4 EXPANSION 0"), "+OK");
  EXPECT_EQ(Run("CF.INSERT f ITEMS 1 2 3 4"), "*4 :1 :1 :1 :1");
  Forget();
  EXPECT_EQ(Run("CF.INSERT f ITEMS 5 6"), "*2 :-1 :-1");
  EXPECT_EQ(Run("CF.INSERTNX f ITEMS 1 6"), "*2 :0 :-1");
  EXPECT_EQ(Run("CF.ADD f 7"), "-Filter is full");
  EXPECT_EQ(Run("CF.ADDNX f 8"), "-Filter is full");
  ExpectReported(0, "");
  EXPECT_EQ(Run("CF.INSERT none NOCREATE ITEMS a"), "-ERR not found");
  EXPECT_EQ(Run("CF.INSERT n CAPACITY 1 ITEMS a"), "-Capacity must be at least (BucketSize * 2)");
  EXPECT_EQ(Run("CF.INSERT n CAPACITY a ITEMS a"), "-Bad capacity");
  EXPECT_EQ(Run("CF.INSERT n BOGUS ITEMS a"), "-Unknown argument received");
  EXPECT_EQ(Run("CF.INSERT n CAPACITY 4 ITEMS"),
            "-ERR wrong number of arguments for 'cf.insert' command");
}

TEST_F(Filters, CuckooIsCarriedOver) {
  EXPECT_EQ(Run("CF.RESERVE k 100"), "+OK");
  EXPECT_EQ(Run("CF.SCANDUMP k 0"), "*2 :0 $-1");
  for (int i = 0; i < 9000; ++i) context_.Run({"CF.ADD", "k", std::to_string(i % 6000)});
  EXPECT_GE(CarryOver("CF", "k", "copy"), 2);
  for (int i = 0; i < 6000; ++i) {
    const std::string count = i < 3000 ? ":2\r\n" : ":1\r\n";
    ASSERT_EQ(context_.Run({"CF.COUNT", "copy", std::to_string(i)}), count);
  }
  const auto counts = [this](const std::string& key) {
    const std::string info = Run("CF.INFO " + key);
    return info.substr(info.find("+Number of buckets"));  // behind the size, which may differ
  };
  EXPECT_EQ(counts("copy"), counts("k"));
  EXPECT_EQ(Run("CF.SCANDUMP k abc"), "-Invalid position");
  EXPECT_EQ(Run("CF.LOADCHUNK z 0 data"), "-Invalid position");
  EXPECT_EQ(Run("CF.LOADCHUNK z 1 data"), "-Invalid header");
  EXPECT_EQ(Run("CF.LOADCHUNK z 5 data"), "-ERR not found");
  EXPECT_EQ(Run("CF.LOADCHUNK k 5 data"), "-Couldn't load chunk!");
  EXPECT_EQ(Run("CF.LOADCHUNK k 1 data"), "-ERR item exists");
}

// ---- as keys ----

TEST_F(Filters, OtherTypesAreRefused) {
  EXPECT_EQ(Run("SET s x"), "+OK");
  EXPECT_EQ(Run("BF.ADD b x"), ":1");
  EXPECT_EQ(Run("CF.ADD c x"), ":1");
  Forget();
  for (const char* line :
       {"BF.RESERVE s 0.1 10", "BF.ADD s a",         "BF.MADD s a",         "BF.INSERT s ITEMS a",
        "BF.EXISTS s a",       "BF.MEXISTS s a",     "BF.CARD s",           "BF.INFO s",
        "BF.STATS s",          "BF.DEL s a",         "BF.MERGE b s",        "BF.MERGE s b",
        "BF.SCANDUMP s 0",     "BF.LOADCHUNK s 1 x", "BF.ADD c a",          "CF.RESERVE s 10",
        "CF.ADD s a",          "CF.ADDNX s a",       "CF.INSERT s ITEMS a", "CF.EXISTS s a",
        "CF.MEXISTS s a",      "CF.COUNT s a",       "CF.DEL s a",          "CF.INFO s",
        "CF.SCANDUMP s 0",     "CF.LOADCHUNK s 1 x", "CF.ADD b a"}) {
    EXPECT_EQ(Run(line), kWrongType) << line;
  }
  ExpectReported(0, "");
}

TEST_F(Filters, EveryExampleRuns) {
  for (const auto family : {BloomCommands(), CuckooCommands()}) {
    for (const CommandSpec& spec : family) {
      EXPECT_NE(Run(spec.example), "-ERR unknown command") << spec.name;
      EXPECT_EQ(Run(spec.example).find("wrong number"), std::string::npos) << spec.name;
    }
  }
}

}  // namespace
}  // namespace sava::commands
