// Client-side caching: who is told of what, and that no reader keeps a value that is not the
// server's. Run under ThreadSanitizer by `./dev tsan`.
#include "engine/tracking.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "engine_fixture.h"
#include "journal/journal.h"
#include "journal/record.h"

namespace sava::engine {
namespace {

#ifdef SAVA_SANITIZED
constexpr int kRounds = 400;
#else
constexpr int kRounds = 20000;
#endif

std::string Invalidate(const std::vector<std::string>& keys) {
  std::string text = ">2\r\n$10\r\ninvalidate\r\n*" + std::to_string(keys.size()) + "\r\n";
  for (const std::string& key : keys) {
    text += "$" + std::to_string(key.size()) + "\r\n" + key + "\r\n";
  }
  return text;
}
const std::string kForget = ">2\r\n$10\r\ninvalidate\r\n_\r\n";

struct Tracker : TestClient {
  Tracker(TestEngine& engine, size_t lane_index, const TrackingState& state = {})
      : TestClient(engine, lane_index) {
    client.resp = 3;
    engine.engine.tracking().Enable(client, state);
  }
  // What it was sent besides replies.
  std::string Mail() {
    test.engine.BeginRound(lane);
    test.engine.ReceiveMail(lane);
    lane.to_flush.clear();
    client.set(kClientFlushQueued, false);
    test.engine.EndRound(lane);
    return TakeOutput();
  }
};

TrackingState Broadcast(std::initializer_list<std::string> prefixes, bool no_loop = false) {
  TrackingState state;
  state.broadcast = true;
  state.no_loop = no_loop;
  state.prefixes = prefixes;
  return state;
}

TEST(Tracking, WhoReadIsToldOfTheNextChangeOnce) {
  TestEngine test(2);
  Tracker reader(test, 0);
  TestClient writer(test, 1);
  writer.Run({"SET", "b", "0"});
  reader.Run({"MGET", "a", "b"});
  writer.Run({"SET", "a", "1"});
  EXPECT_EQ(reader.Mail(), Invalidate({"a"}));
  writer.Run({"SET", "a", "2"});
  EXPECT_EQ(reader.Mail(), "");
  reader.Run({"GET", "a"});
  writer.Run({"DEL", "a", "b"});
  EXPECT_EQ(reader.Mail(), Invalidate({"a"}) + Invalidate({"b"}));
  EXPECT_EQ(test.engine.tracking().keys(), 0);
  EXPECT_EQ(test.engine.tracking().items(), 0);
}

TEST(Tracking, WritesAreNotReads) {
  TestEngine test(1);
  Tracker client(test, 0);
  client.Run({"SET", "a", "1"});
  client.Run({"INCR", "a"});
  EXPECT_EQ(test.engine.tracking().keys(), 0);
}

TEST(Tracking, OwnChangesAreToldUnlessUnwanted) {
  TestEngine test(1);
  Tracker client(test, 0);
  TrackingState quiet_state;
  quiet_state.no_loop = true;
  Tracker quiet(test, 0, quiet_state);
  client.Run({"GET", "a"});
  quiet.Run({"GET", "a"});
  EXPECT_EQ(quiet.Run({"SET", "a", "1"}), "+OK\r\n");
  EXPECT_EQ(quiet.Mail(), "");
  EXPECT_EQ(client.Mail(), Invalidate({"a"}));
  client.Run({"GET", "b"});
  EXPECT_EQ(client.Run({"SET", "b", "1"}), "+OK\r\n");
  EXPECT_EQ(client.Mail(), Invalidate({"b"}));
}

TEST(Tracking, TransactionsReadAndChangeAsTheirCommandsDo) {
  TestEngine test(1);
  Tracker reader(test, 0);
  TestClient writer(test, 0);
  reader.Run({"MULTI"});
  reader.Run({"GET", "a"});
  reader.Run({"GET", "b"});
  EXPECT_EQ(test.engine.tracking().keys(), 0);
  reader.Run({"EXEC"});
  EXPECT_EQ(test.engine.tracking().keys(), 2);
  writer.Run({"MULTI"});
  writer.Run({"SET", "b", "1"});
  writer.Run({"SET", "a", "1"});
  EXPECT_EQ(reader.Mail(), "");
  writer.Run({"EXEC"});
  EXPECT_EQ(reader.Mail(), Invalidate({"b"}) + Invalidate({"a"}));
}

TEST(Tracking, BroadcastTellsOfAllKeysWithAPrefixTogether) {
  TestEngine test(1);
  Tracker all(test, 0, Broadcast({}));
  Tracker some(test, 0, Broadcast({"a", "c"}));
  Tracker writer(test, 0, Broadcast({"a"}, true));
  writer.Run({"MSET", "b1", "x", "a2", "x", "a1", "x", "c1", "x"});
  EXPECT_EQ(all.Mail(), Invalidate({"a1", "a2", "b1", "c1"}));
  EXPECT_EQ(some.Mail(), Invalidate({"a1", "a2"}) + Invalidate({"c1"}));
  EXPECT_EQ(writer.Mail(), "");
  some.Run({"SET", "a1", "y"});
  EXPECT_EQ(writer.Mail(), Invalidate({"a1"}));
  EXPECT_EQ(test.engine.tracking().prefixes(), 3U);
}

// A writer knows its own value only: what another did to the key before it is news.
TEST(Tracking, WhoWritesAfterAnotherHearsOfTheOther) {
  const std::vector<std::string_view> first = {"HSET", "h", "f", "1"};
  const std::vector<std::string_view> second = {"HSET", "h", "g", "2"};
  bool together = false;  // a batch that takes long leaves the second for the next one
  for (int tries = 0; tries < 100 && !together; ++tries) {
    TestEngine test(1);
    Tracker quiet(test, 0, Broadcast({}, true));
    TestClient writer(test, 0);
    Request requests[2];
    requests[0].client = &writer.client;
    requests[0].args = first;
    requests[1].client = &quiet.client;
    requests[1].args = second;
    test.engine.BeginBatch(quiet.lane);
    test.engine.Prepare(quiet.lane, requests);
    test.engine.RunBatch(quiet.lane, requests);
    test.engine.EndBatch(quiet.lane);
    together = requests[1].outcome == Request::Outcome::kDone;
    if (!together) continue;
    EXPECT_EQ(quiet.Mail(), ":1\r\n" + Invalidate({"h"}));
    quiet.Run({"HSET", "h", "g", "3"});
    EXPECT_EQ(quiet.Mail(), "");
  }
  EXPECT_TRUE(together);
}

TEST(Tracking, TimeIsNobodysOwnChange) {
  TestEngine test(1);
  TestClient writer(test, 0);
  TrackingState state;
  state.no_loop = true;
  for (const TrackingState& mode : {state, Broadcast({}, true)}) {
    Tracker quiet(test, 0, mode);
    writer.Run({"SET", "a", "1", "PX", "10"});
    quiet.Run({"GET", "a"});
    quiet.Mail();
    test.clock.AdvanceMillis(20);
    quiet.Run({"EXISTS", "a"});
    EXPECT_EQ(quiet.Mail(), Invalidate({"a"}));
  }
}

TEST(Tracking, OnlyWhatIsAskedForIsTracked) {
  TestEngine test(1);
  TrackingState in;
  in.opt_in = true;
  Tracker client(test, 0, in);
  client.Run({"GET", "a"});
  EXPECT_EQ(test.engine.tracking().keys(), 0);
  client.client.tracking->caching = true;
  client.Run({"MULTI"});
  client.Run({"GET", "a"});
  client.Run({"GET", "b"});
  client.Run({"EXEC"});
  EXPECT_EQ(test.engine.tracking().keys(), 2);
  client.Run({"GET", "c"});
  EXPECT_EQ(test.engine.tracking().keys(), 2);
  TrackingState out;
  out.opt_out = true;
  Tracker other(test, 0, out);
  other.client.tracking->caching = true;
  other.Run({"GET", "d"});
  other.Run({"GET", "e"});
  EXPECT_EQ(test.engine.tracking().keys(), 3);
}

TEST(Tracking, ExpiryAndFlushAreToldToo) {
  TestEngine test(2);
  Tracker reader(test, 0);
  TestClient writer(test, 1);
  writer.Run({"SET", "a", "1", "PX", "10"});
  reader.Run({"GET", "a"});
  test.clock.AdvanceMillis(20);
  writer.Run({"GET", "a"});
  EXPECT_EQ(reader.Mail(), Invalidate({"a"}));
  writer.Run({"SET", "b", "1", "PX", "10"});
  reader.Run({"GET", "b"});
  test.clock.AdvanceMillis(2000);
  for (int i = 0; i < 4; ++i) {
    for (auto& lane : test.engine.lanes()) test.engine.Upkeep(*lane);
  }
  EXPECT_EQ(reader.Mail(), Invalidate({"b"}));
  reader.Run({"GET", "c"});
  writer.Run({"FLUSHALL"});
  EXPECT_EQ(reader.Mail(), kForget);
  EXPECT_EQ(test.engine.tracking().keys(), 0);
  writer.Run({"SET", "c", "1"});
  EXPECT_EQ(reader.Mail(), "");
}

// Nobody hears of a flush that a crash takes back.
TEST(Tracking, FlushesAreToldWithTheirTickets) {
  TestEngine test(2);
  Tracker reader(test, 0);
  TestClient writer(test, 1);
  struct : journal::Consumer {
    void Receive(const journal::Record& record) override { last = record.ticket(); }
    uint64_t last = 0;
  } sink;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"FLUSHALL"}, {"SWAPDB", "0", "1"}}) {
    writer.Run({"SET", "a", "1"});
    reader.Run({"GET", "a"});
    test.engine.journal().Attach(sink);
    writer.Run(words);
    test.engine.journal().Flush();
    test.engine.journal().Detach(sink);
    EXPECT_EQ(reader.Mail(), kForget);
    EXPECT_GT(sink.last, 0U);
    EXPECT_GT(reader.client.sending.wrote, sink.last);
  }
}

TEST(Tracking, RedirectionReachesASubscriberAndEndsWithIt) {
  TestEngine test(2);
  TestClient writer(test, 0);
  auto subscriber = std::make_unique<TestClient>(test, 1);
  TrackingState state;
  state.redirect = subscriber->client.id;
  state.redirect_lane = 1;
  Tracker reader(test, 0, state);
  const auto mail = [&] {
    reader.Mail();
    test.engine.ReceiveMail(subscriber->lane);
    subscriber->lane.to_flush.clear();
    subscriber->client.set(kClientFlushQueued, false);
    return subscriber->TakeOutput();
  };
  reader.Run({"GET", "a"});
  writer.Run({"SET", "a", "1"});
  EXPECT_EQ(mail(), "") << "RESP2, and it listens to nothing";
  subscriber->Run({"SUBSCRIBE", "__redis__:invalidate"});
  reader.Run({"GET", "a"});
  writer.Run({"SET", "a", "2"});
  EXPECT_EQ(mail(), "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n$1\r\na\r\n");
  subscriber.reset();
  reader.Run({"GET", "a"});
  writer.Run({"SET", "a", "3"});
  reader.Mail();
  test.engine.ReceiveMail(*test.engine.lanes()[1]);
  EXPECT_EQ(reader.Mail(),
            ">2\r\n$21\r\ntracking-redir-broken\r\n:" + std::to_string(state.redirect) + "\r\n");
  EXPECT_TRUE(reader.client.tracking->broken);
}

TEST(Tracking, TheTableStaysWithinItsLimit) {
  TestEngine test(1);
  test.settings.tracking_table_max_keys = 100;
  Tracker reader(test, 0);
  for (int i = 0; i < 1000; ++i) reader.Run({"GET", "k" + std::to_string(i)});
  // A stripe with one key keeps it until the next visit.
  EXPECT_LE(test.engine.tracking().keys(), 100 + 128);
  for (int i = 0; i < 50; ++i) test.engine.Upkeep(reader.lane);
  EXPECT_LE(test.engine.tracking().keys(), 100);
  const std::string told = reader.Mail();
  size_t messages = 0;
  for (size_t at = told.find('>'); at != std::string::npos; at = told.find('>', at + 1)) ++messages;
  EXPECT_EQ(static_cast<int64_t>(messages) + test.engine.tracking().keys(), 1000);
}

TEST(Tracking, NothingIsLeftOfClientsThatAreGone) {
  TestEngine test(1);
  {
    Tracker reader(test, 0);
    Tracker listener(test, 0, Broadcast({"a", "b"}));
    reader.Run({"GET", "a"});
    EXPECT_EQ(test.engine.tracking().clients(), 2);
  }
  EXPECT_FALSE(test.engine.tracking().any());
  EXPECT_EQ(test.engine.tracking().prefixes(), 0U);
  for (int i = 0; i < 4; ++i) test.engine.Upkeep(*test.engine.lanes()[0]);
  EXPECT_EQ(test.engine.tracking().keys(), 0);
  EXPECT_EQ(test.engine.tracking().items(), 0);
}

// A client with a cache: what it has read, until it is told otherwise.
struct Cache {
  void Take(const std::string& output) {
    std::string_view text = output;
    while (!text.empty()) {
      if (text.starts_with(kForget)) {
        values.clear();
        text.remove_prefix(kForget.size());
      } else if (text.front() == '>') {
        TakeInvalidation(&text);
      } else {
        TakeReply(&text);
      }
    }
  }
  static std::string Line(std::string_view* text) {
    const size_t end = text->find("\r\n");
    std::string line(text->substr(0, end));
    text->remove_prefix(end + 2);
    return line;
  }
  void TakeInvalidation(std::string_view* text) {
    for (int i = 0; i < 3; ++i) Line(text);
    const int count = std::stoi(Line(text).substr(1));
    for (int i = 0; i < count; ++i) {
      Line(text);
      values.erase(Line(text));
    }
  }
  void TakeReply(std::string_view* text) {
    const std::string head = Line(text);
    if (awaited.empty()) return;
    if (head == "_") {
      values[awaited] = "";
    } else if (head[0] == '$') {
      values[awaited] = Line(text);
    }
    awaited.clear();
  }

  std::map<std::string, std::string> values;
  std::string awaited;
};

void ChangeSomething(TestClient& client, std::mt19937& random, const std::string& key, int i) {
  const std::string value = std::to_string(client.client.id) + "-" + std::to_string(i);
  switch (random() % 16) {
    case 0:
      client.RunPatiently({"DEL", key});
      break;
    case 1:
      client.RunPatiently({"MULTI"});
      client.RunPatiently({"SET", key, value});
      client.RunPatiently({"GET", key});
      client.RunPatiently({"DEL", key});
      client.RunPatiently({"EXEC"});
      break;
    case 2:
      client.RunPatiently({"RENAME", key, "k" + std::to_string(random() % 8)});
      break;
    case 3:
      if (random() % 8 == 0) client.RunPatiently({"FLUSHALL"});
      break;
    case 4:
      client.RunPatiently({"SET", key, value, "PX", "1"});
      break;
    default:
      client.RunPatiently({"SET", key, value});
  }
}

// No cache line is left that is not the server's once all mail is read: a message that overtook its
// value, or was missed, would leave one.
void RunModel(const TrackingState& state) {
  constexpr size_t kLanes = 3;
  TestEngine test(kLanes);
  std::vector<std::unique_ptr<Tracker>> readers;
  std::vector<Cache> caches(kLanes);
  for (size_t i = 0; i < kLanes; ++i) readers.push_back(std::make_unique<Tracker>(test, i, state));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kLanes; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937 random(static_cast<unsigned>(i) + 7);
      Tracker& reader = *readers[i];
      TestClient writer(test, i);
      for (int round = 0; round < kRounds; ++round) {
        const std::string key = "k" + std::to_string(random() % 8);
        if (random() % 3 == 0) ChangeSomething(writer, random, key, round);
        if (i == 0 && random() % 64 == 0) test.clock.AdvanceMillis(2);
        if (random() % 16 == 0) test.engine.Upkeep(reader.lane);
        caches[i].Take(reader.Mail());
        if (!caches[i].values.contains(key)) {
          caches[i].awaited = key;
          caches[i].Take(reader.RunPatiently({"GET", key}));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  TestClient plain(test, 0);
  plain.client.resp = 3;
  std::map<std::string, std::string> now;  // reading them removes what has expired
  for (int i = 0; i < 8; ++i) {
    const std::string key = "k" + std::to_string(i);
    now[key] = plain.Run({"GET", key});
  }
  size_t lines = 0;
  for (size_t i = 0; i < kLanes; ++i) {
    caches[i].Take(readers[i]->Mail());
    for (const auto& [key, value] : caches[i].values) {
      const std::string expected =
          value.empty() ? "_\r\n" : "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n";
      EXPECT_EQ(now[key], expected) << key << " in the cache of lane " << i;
      ++lines;
    }
  }
  EXPECT_GT(lines, 0U);
}

TEST(Tracking, NoStaleLineIsLeftWithManyThreads) { RunModel({}); }

TEST(Tracking, NoStaleLineIsLeftByBroadcasts) { RunModel(Broadcast({"k"})); }

}  // namespace
}  // namespace sava::engine
