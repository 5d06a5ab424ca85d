// What a replica reads from its master, and what it does not do by itself.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "../../fuzz/replica_property.h"
#include "engine_fixture.h"
#include "replication/replica_apply.h"
#include "replication/replica_payload.h"

namespace sava::replication {
namespace {

using engine::TestClient;
using engine::TestEngine;
using Outcome = ReplicaPayload::Outcome;

std::string Command(std::initializer_list<std::string> words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return text;
}

struct Received {
  std::string file;
  size_t used = 0;
  Outcome outcome = Outcome::kMore;
  std::string error;
  bool refused = false;
};

Received Receive(std::string_view bytes) {
  Received received;
  ReplicaPayload payload([&](std::string_view part) {
    received.file += part;
    return base::Status();
  });
  received.outcome = payload.Take(bytes, &received.used);
  received.error = payload.error();
  received.refused = payload.refused();
  return received;
}

const std::string kFile = "REDIS0010 and what follows";
const std::string kMark(ReplicaPayload::kMark, 'm');

TEST(ReplicaPayload, BothFormsAndWhatFollows) {
  const std::string after = "*1\r\n$4\r\nPING\r\n";
  const std::string length = "\n\n$" + std::to_string(kFile.size()) + "\r\n";
  const std::string marked = "\n$EOF:" + kMark + "\r\n";
  for (const std::string& bytes : {length + kFile, marked + kFile + kMark}) {
    const Received received = Receive(bytes + after);
    EXPECT_EQ(received.outcome, Outcome::kDone) << received.error;
    EXPECT_EQ(received.file, kFile);
    EXPECT_EQ(received.used, bytes.size());
  }
}

TEST(ReplicaPayload, HalfAMarkIsData) {
  const std::string half = kMark.substr(0, 20);
  const Received received = Receive("$EOF:" + kMark + "\r\n" + kFile + half + "x" + kMark);
  EXPECT_EQ(received.outcome, Outcome::kDone);
  // 41 of the letter stand behind one another only at the end.
  EXPECT_EQ(received.file, kFile + half + "x");
}

TEST(ReplicaPayload, WhatIsRefused) {
  for (const std::string version : {"0000", "0013", "9999", "001x"}) {
    const Received received = Receive("$40\r\nREDIS" + version + std::string(31, 'x'));
    EXPECT_EQ(received.outcome, Outcome::kFailed) << version;
    EXPECT_TRUE(received.refused) << version;
    EXPECT_EQ(received.file, "") << "nothing is written of it";
  }
  EXPECT_TRUE(Receive("$40\r\nVALKEY080").refused);
  for (const std::string header :
       {"-ERR no", "$-1", "$", "$12x", "$99999999999999999999", "$EOF:short", "hello", "$0"}) {
    const Received received = Receive(header + "\r\n");
    EXPECT_EQ(received.outcome, Outcome::kFailed) << header;
    EXPECT_FALSE(received.refused) << header;
  }
  EXPECT_EQ(Receive(std::string(5000, 'x')).outcome, Outcome::kFailed);
  EXPECT_EQ(Receive(std::string(5000, '\n')).outcome, Outcome::kMore);
}

// A property that does not hold ends the process.
TEST(ReplicaFuzz, CorpusHolds) {
  const std::filesystem::path corpus =
      std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/replica";
  size_t seeds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    SCOPED_TRACE(entry.path().filename().string());
    fuzz::CheckReplica(bytes);
    ++seeds;
  }
  EXPECT_GE(seeds, 10U);
}

// ---- applying ----

using fuzz::RecordingStream;

struct Following {
  explicit Following(TestEngine& test) : engine(test.engine) {
    test.engine.role().set_replica(true);
    ReplicaApply::Options options;
    options.engine = &test.engine;
    options.stream = &stream;
    options.db = &db;
    options.wanted = [this] { return wanted && (looks < 0 || (looks > 0 && looks-- > 0)); };
    options.held = [] { return false; };
    apply = std::make_unique<ReplicaApply>(std::move(options));
  }
  ReplicaApply::Outcome Send(std::string_view bytes) {
    apply->Came(bytes);
    ReplicaApply::Outcome outcome;
    do {
      outcome = apply->Run();
    } while (outcome == ReplicaApply::Outcome::kMore);
    return outcome;
  }

  engine::Engine& engine;
  RecordingStream stream;
  std::atomic<int> db{0};
  bool wanted = true;
  int looks = -1;  // so often it is wanted; below zero: always
  std::unique_ptr<ReplicaApply> apply;
};

TEST(ReplicaApply, TheOffsetMovesWithWholeCommandsAndTransactions) {
  TestEngine test(1);
  TestClient client(test, 0);
  Following link(test);
  const std::string set = Command({"SET", "a", "1"});
  for (const char byte : set) EXPECT_EQ(link.Send({&byte, 1}), ReplicaApply::Outcome::kDone);
  EXPECT_EQ(link.stream.bytes, set);
  const std::string multi = Command({"MULTI"}) + Command({"INCR", "a"}) + Command({"SELECT", "3"}) +
                            Command({"SET", "b", "2"});
  link.Send(multi);
  EXPECT_EQ(link.stream.bytes, set) << "not inside of a transaction";
  EXPECT_EQ(client.Run({"GET", "a"}), "$1\r\n1\r\n");
  link.Send(Command({"EXEC"}));
  EXPECT_EQ(link.stream.bytes, set + multi + Command({"EXEC"}));
  EXPECT_EQ(client.Run({"GET", "a"}), "$1\r\n2\r\n");
  EXPECT_EQ(link.db.load(), 3);
  EXPECT_EQ(link.apply->behind(), 0U);
  link.Send(Command({"REPLCONF", "GETACK", "*"}));
  EXPECT_TRUE(link.apply->TakeAsked());
  EXPECT_FALSE(link.apply->TakeAsked());
}

TEST(ReplicaApply, NothingIsAppliedWhenItIsNotWanted) {
  TestEngine test(1);
  TestClient client(test, 0);
  Following link(test);
  link.Send(Command({"SET", "a", "1"}));
  link.wanted = false;
  EXPECT_EQ(link.Send(Command({"SET", "a", "2"})), ReplicaApply::Outcome::kOver);
  EXPECT_EQ(client.Run({"GET", "a"}), "$1\r\n1\r\n");
  EXPECT_EQ(link.stream.bytes, Command({"SET", "a", "1"}));
}

// Whoever closes the gate while a lock is waited for finds what was applied counted.
TEST(ReplicaApply, WhatWasAppliedCountsWhileTheNextWaits) {
  TestEngine test(1);
  Following link(test);
  const auto stripe_of = [&](std::string_view key) {
    return keyspace::Keyspace::StripeOf(test.engine.keyspace().Hash(key));
  };
  std::string other = "b";
  while (stripe_of(other) == stripe_of("a")) other += 'b';
  engine::Lane& lane = *test.engine.lanes()[0];
  test.engine.BeginBatch(lane);
  {
    using engine::StripeGuard;
    const StripeGuard guard(lane.locks, stripe_of(other), StripeGuard::How::kTry);
    ASSERT_TRUE(guard.locked());
    link.looks = 8;  // it ends while it waits
    EXPECT_EQ(link.Send(Command({"INCR", "a"}) + Command({"INCR", other})),
              ReplicaApply::Outcome::kOver);
  }
  test.engine.EndBatch(lane);
  EXPECT_EQ(link.stream.bytes, Command({"INCR", "a"}));
  TestClient client(test, 0);
  EXPECT_EQ(client.Run({"MGET", "a", other}), "*2\r\n$1\r\n1\r\n$-1\r\n");
}

TEST(ReplicaApply, AStreamThatIsNone) {
  for (const std::string bytes : {"SET a b\r\n", "*1\r\n$-3\r\n", "*9999999999\r\n", "*x\r\n"}) {
    TestEngine test(1);
    Following link(test);
    EXPECT_EQ(link.Send(Command({"SET", "a", "1"}) + bytes), ReplicaApply::Outcome::kBroken)
        << bytes;
    EXPECT_EQ(link.stream.bytes, Command({"SET", "a", "1"})) << "what came before it counts";
    EXPECT_FALSE(link.apply->error().empty());
  }
}

// ---- what would change data by itself ----

// Everything that writes without a client: on a replica none of it does, and once the server is a
// master all of it does.
TEST(Replica, NothingWritesByItself) {
  TestEngine test(1);
  engine::Engine& engine = test.engine;
  engine::Lane& lane = *engine.lanes()[0];
  TestClient client(test, 0);
  client.Run({"SET", "expiring", "v", "PX", "100"});
  client.Run({"HSET", "hash", "field", "v", "stays", "v"});
  client.Run({"HPEXPIRE", "hash", "100", "FIELDS", "1", "field"});
  client.Run({"SET", "other", "v", "PX", "100"});
  for (int i = 0; i < 2000; ++i)
    client.Run({"SET", "fill" + std::to_string(i), std::string(100, 'x')});
  engine.role().set_replica(true);
  test.clock.AdvanceMillis(1000);
  const auto digest = [&] { return client.Run({"DBSIZE"}) + std::to_string(engine.Dirty()); };
  const std::string before = digest();

  // Expiry of keys and fields in the background.
  for (int i = 0; i < 300; ++i) engine.Upkeep(lane);
  EXPECT_EQ(digest(), before) << "active expiry";
  // And by those who look.
  EXPECT_EQ(client.Run({"GET", "expiring"}), "$-1\r\n");
  EXPECT_EQ(client.Run({"HGET", "hash", "field"}), "$-1\r\n");
  EXPECT_EQ(client.Run({"HMGET", "hash", "field", "stays"}), "*2\r\n$-1\r\n$1\r\nv\r\n");
  EXPECT_EQ(client.Run({"EXISTS", "other"}), ":0\r\n");
  client.Run({"SCAN", "0", "COUNT", "10000"});
  client.Run({"RANDOMKEY"});
  client.Run({"KEYS", "*"});
  EXPECT_EQ(digest(), before) << "lazy expiry";
  // Eviction.
  test.settings.maxmemory = 1;
  test.settings.maxmemory_policy = config::MaxmemoryPolicy::kAllkeysRandom;
  client.Run({"GET", "fill1"});
  EXPECT_EQ(digest(), before) << "eviction";
  EXPECT_TRUE(client.Run({"SET", "a", "b"}).starts_with("-READONLY"));
  // Unless the settings say so.
  test.settings.replica_ignore_maxmemory = false;
  client.Run({"GET", "fill1"});
  EXPECT_NE(digest(), before) << "replica-ignore-maxmemory no";
  test.settings.maxmemory = 0;

  engine.role().set_replica(false);
  const uint64_t dirty = lane.stats.keys.expired.get() + lane.stats.keys.expired_parts.get();
  client.Run({"SET", "again", "v", "PX", "100"});
  test.clock.AdvanceMillis(1000);
  EXPECT_EQ(client.Run({"GET", "again"}), "$-1\r\n");
  EXPECT_GT(lane.stats.keys.expired.get() + lane.stats.keys.expired_parts.get(), dirty)
      << "a master expires them";
}

// The limiter's buckets count in memory, and are written to their keys by a master only.
TEST(Replica, BucketsStayInMemory) {
  TestEngine test(1);
  engine::Engine& engine = test.engine;
  test.settings.ratelimit_enabled = true;
  test.settings.ratelimit_default = types::RateRule{.limit = 100, .period_ms = 100000};
  engine.limiter().Configure(test.settings);
  TestClient client(test, 0);
  client.client.peer.addr = "10.0.0.1:1";
  engine.role().set_replica(true);
  for (int i = 0; i < 5; ++i) client.Run({"GET", "a"});
  test.clock.AdvanceMillis(1000);
  engine.Upkeep(*engine.lanes()[0]);
  EXPECT_EQ(engine.keyspace().Size(0), 0U);
  engine.role().set_replica(false);
  engine.Upkeep(*engine.lanes()[0]);
  EXPECT_EQ(engine.keyspace().Size(0), 1U) << "what was counted is written then";
}

}  // namespace
}  // namespace sava::replication
