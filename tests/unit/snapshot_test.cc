// Snapshots while the data set changes: what is written is the data set of the instant at which
// the snapshot began, whatever writers do meanwhile. Run under ThreadSanitizer by `./dev tsan`.
#include "snapshot/snapshot.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/text.h"
#include "engine/cut_options.h"
#include "engine_fixture.h"
#include "storage/rdb_reader.h"
#include "storage/snapshot_file.h"

namespace sava::engine {
namespace {

#ifdef SAVA_SANITIZED
constexpr int kRuns = 6;
constexpr int kKeys = 1500;
#else
constexpr int kRuns = 20;
constexpr int kKeys = 5000;
#endif

struct Kept {
  std::string value;
  int64_t expire_at = -1;
  bool operator==(const Kept&) const = default;
};
using Dataset = std::map<std::pair<int, std::string>, Kept>;

std::string DigestOf(const types::Object& object) {
  std::string text = "object";
  object.Digest([&](std::string_view item) {
    text += '|';
    text += item;
  });
  return text;
}

// REQUIRES: nobody writes.
Dataset ReadAll(keyspace::Keyspace& keyspace) {
  Dataset all;
  for (int db = 0; db < keyspace.databases(); ++db) {
    for (size_t stripe = 0; stripe < keyspace::Keyspace::kStripes; ++stripe) {
      const keyspace::Table* table = keyspace.table(db, stripe);
      if (table == nullptr) continue;
      table->ForEach([&](keyspace::Entry* entry) {
        Kept kept{"", entry->expire_at()};
        if (entry->kind() == keyspace::Kind::kObject) {
          kept.value = DigestOf(*entry->object());
        } else if (entry->form() == keyspace::Form::kInt) {
          kept.value = base::IntText(entry->integer());
        } else {
          kept.value =
              entry->has(keyspace::kExternal) ? entry->blob()->view() : entry->inline_bytes();
        }
        all[{db, std::string(entry->key())}] = kept;
      });
    }
  }
  return all;
}

class Collector final : public storage::RdbSink {
 public:
  base::Status Version(int) override { return {}; }
  base::Status Aux(std::string_view, std::string_view) override { return {}; }
  base::Status SelectDb(uint64_t number) override {
    db = static_cast<int>(number);
    return {};
  }
  base::Status Resize(uint64_t, uint64_t) override { return {}; }
  base::Status String(const snapshot::CutKey& key, std::string_view value) override {
    return Add(key, std::string(value));
  }
  base::Status Object(const snapshot::CutKey& key, std::unique_ptr<types::Object> value) override {
    return Add(key, DigestOf(*value));
  }
  base::Status Function(std::string_view) override { return {}; }
  base::Status AuxData(const types::TypeInfo&) override { return {}; }
  base::Status ForeignAux(std::string_view) override { return {}; }
  base::Status ForeignValue(const snapshot::CutKey&, std::string_view) override { return {}; }

  base::Status Add(const snapshot::CutKey& key, std::string value) {
    const bool fresh =
        all.emplace(std::pair(db, std::string(key.key)), Kept{std::move(value), key.expire_at_ms})
            .second;
    if (!fresh) return base::Error{"a key stands twice in the file"};
    return {};
  }

  int db = 0;
  Dataset all;
};

Dataset Parse(std::string_view file) {
  Collector sink;
  const storage::RdbEnd end = storage::ReadRdb(file, types::AllTypes(), sink);
  EXPECT_FALSE(end.error.has_value()) << (end.error ? end.error->text : "");
  return sink.all;
}

std::string Key(std::mt19937& random) { return "key:" + std::to_string(random() % kKeys); }

// One of the things that can happen to keys.
void ChangeSomething(TestClient& client, std::mt19937& random) {
  const std::string key = Key(random);
  const std::string other = Key(random);
  const std::string number = std::to_string(random() % 1000);
  const auto run = [&](const std::vector<std::string>& words) { client.RunPatiently(words); };
  switch (random() % 22) {
    case 0:
      return run({"SET", key, number});
    case 1:
      return run({"SET", key, std::string(random() % 100, 'x')});
    case 2:
      return run({"SET", key, std::string(random() % 2000, 'y')});
    case 3:
      return run({"SET", key, number, "PX", std::to_string(1 + random() % 100000)});
    case 4:
      return run({"INCR", key});
    case 5:
      return run({"APPEND", key, std::string(random() % 600, 'z')});
    case 6:
      return run({"SETRANGE", key, std::to_string(random() % 700), "edit"});
    case 7:
      return run({"DEL", key});
    case 8:
      return run({"RENAME", key, other});
    case 9:
      return run({"COPY", key, other, "DB", std::to_string(random() % 3), "REPLACE"});
    case 10:
      return run({"MOVE", key, "2"});
    case 11:
      return run({"PEXPIRE", key, std::to_string(1 + random() % 100000)});
    case 12:
      return run({"PERSIST", key});
    case 13:
      return run({"SELECT", std::to_string(random() % 3)});
    case 14:
      return run({"SETBIT", key, std::to_string(random() % 4000), "1"});
    case 15:
    case 16:
    case 17:
      return run({"AFC.ADD", "few:" + std::to_string(random() % 50), number});
    case 18:
    case 19:
      return run({"AFC.ADD", "many:" + std::to_string(random() % 4),
                  "member" + std::to_string(random() % 20000)});
    case 20:
      return run({"RENAME", "many:" + std::to_string(random() % 4),
                  "many:" + std::to_string(random() % 4)});
    default:
      return run({"AFC.REM", "many:" + std::to_string(random() % 4),
                  "member" + std::to_string(random() % 20000)});
  }
}

void ChangeMuchAtOnce(TestClient& client, std::mt19937& random) {
  switch (random() % 3) {
    case 0:
      client.RunPatiently({"FLUSHDB"});
      return;
    case 1:
      client.RunPatiently({"SWAPDB", "0", "1"});
      return;
    default:
      client.RunPatiently({"DEL", "many:" + std::to_string(random() % 4)});
  }
}

void Fill(TestEngine& test, std::mt19937& random) {
  TestClient client(test, 0);
  for (int i = 0; i < 2 * kKeys; ++i) ChangeSomething(client, random);
  client.RunPatiently({"SELECT", "0"});
  for (int n = 0; n < 4; ++n) {
    const int members = n == 3 ? 200 : 5000;
    for (int i = 0; i < members; ++i) {
      client.RunPatiently({"AFC.ADD", "many:" + std::to_string(n), "member" + std::to_string(i)});
    }
  }
}

// Begins a snapshot and returns what the data set was at that instant.
Dataset Begin(TestEngine& test, bool abort_on_flush) {
  Dataset expected;
  test.engine.Exclusively(test.engine.house_lane(), [&] {
    expected = ReadAll(test.engine.keyspace());
    test.engine.snapshot().Begin(
        CutOptions(test.settings, test.clock.WallMillis(), abort_on_flush));
  });
  return expected;
}

std::string Write(TestEngine& test, bool* whole, bool exclusive = false, bool slowly = false) {
  std::string file;
  storage::RdbWriter writer(
      [&](std::string_view bytes) {
        file += bytes;
        if (slowly) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      },
      {});
  writer.Begin({});
  if (test.engine.snapshot().refers()) writer.AuxData();
  *whole = test.engine.snapshot().Walk(writer, exclusive);
  writer.End();
  return file;
}

void ExpectSame(const Dataset& got, const Dataset& expected) {
  EXPECT_EQ(got.size(), expected.size());
  for (const auto& [name, kept] : expected) {
    const auto found = got.find(name);
    if (found == got.end()) {
      ADD_FAILURE() << "missing: " << name.first << " " << name.second;
      return;
    }
    if (!(found->second == kept)) {
      ADD_FAILURE() << "differs: " << name.first << " " << name.second;
      return;
    }
  }
}

TEST(Snapshot, IsTheInstantItBeganWhateverHappensMeanwhile) {
  for (unsigned seed = 0; seed < kRuns; ++seed) {
    SCOPED_TRACE(seed);
    TestEngine test(3);
    std::mt19937 random(seed);
    Fill(test, random);
    std::atomic<bool> stop{false};
    std::vector<std::thread> writers;
    for (size_t lane = 0; lane < 2; ++lane) {
      writers.emplace_back([&, lane] {
        TestClient client(test, lane);
        std::mt19937 mine(seed * 7 + static_cast<unsigned>(lane));
        while (!stop.load()) ChangeSomething(client, mine);
      });
    }
    writers.emplace_back([&] {
      TestClient client(test, 2);
      std::mt19937 mine(seed * 13);
      while (!stop.load()) {
        client.RunPatiently({"SELECT", std::to_string(mine() % 3)});
        if (seed % 2 == 1) ChangeMuchAtOnce(client, mine);
        test.clock.AdvanceMillis(mine() % 50);
        test.engine.Upkeep(*test.engine.lanes()[2]);
        std::this_thread::yield();
      }
    });
    for (int cut = 0; cut < 3; ++cut) {
      const Dataset expected = Begin(test, false);
      bool whole = false;
      const std::string file = Write(test, &whole, false, cut == 1);
      EXPECT_TRUE(whole);
      ExpectSame(Parse(file), expected);
      if (testing::Test::HasFailure()) break;
    }
    stop = true;
    for (std::thread& writer : writers) writer.join();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Snapshot, WithTheGateClosed) {
  TestEngine test(1);
  std::mt19937 random(5);
  Fill(test, random);
  test.engine.Exclusively(test.engine.house_lane(), [&] {
    const Dataset expected = ReadAll(test.engine.keyspace());
    test.engine.snapshot().Begin(CutOptions(test.settings, test.clock.WallMillis(), true));
    bool whole = false;
    ExpectSame(Parse(Write(test, &whole, true)), expected);
    EXPECT_TRUE(whole);
  });
}

TEST(Snapshot, AnAbortedOneLeavesTheNextRight) {
  TestEngine test(1);
  std::mt19937 random(6);
  Fill(test, random);
  TestClient client(test, 0);
  bool whole = true;
  Begin(test, true);
  for (int i = 0; i < 500; ++i) ChangeSomething(client, random);
  test.engine.snapshot().Abort();
  for (int i = 0; i < 500; ++i) ChangeSomething(client, random);
  Write(test, &whole);
  EXPECT_FALSE(whole);
  EXPECT_EQ(test.engine.snapshot().image_bytes(), 0);
  const Dataset expected = Begin(test, true);
  for (int i = 0; i < 500; ++i) ChangeSomething(client, random);
  ExpectSame(Parse(Write(test, &whole)), expected);
  EXPECT_TRUE(whole);
}

TEST(Snapshot, FlushAllGivesItUpUnlessItIsForTheLog) {
  for (const bool give_up : {true, false}) {
    TestEngine test(1);
    std::mt19937 random(7);
    Fill(test, random);
    TestClient client(test, 0);
    const Dataset expected = Begin(test, give_up);
    client.RunPatiently({"FLUSHALL"});
    bool whole = false;
    const std::string file = Write(test, &whole);
    EXPECT_EQ(whole, !give_up);
    if (whole) ExpectSame(Parse(file), expected);
    EXPECT_EQ(ReadAll(test.engine.keyspace()).size(), 0U);
  }
}

TEST(Snapshot, WritersWaitWhenTooMuchWaitsForTheWalkerAndGiveUpAtLast) {
  TestEngine test(1);
  TestClient client(test, 0);
  const std::string value(1 << 20, 'v');
  const int count = static_cast<int>(snapshot::Snapshot::kImageLimit >> 20) + 10;
  for (int i = 0; i < count; ++i) client.Run({"SET", "large:" + std::to_string(i), value});
  const Dataset expected = Begin(test, true);
  int written = 0;
  while (written < count && client.Run({"SET", "large:" + std::to_string(written), "new"}) != "") {
    ++written;
  }
  EXPECT_LT(written, count);
  EXPECT_TRUE(client.client.waiting());
  // As long as the walker has patience so have they, after that the snapshot is given up.
  test.clock.AdvanceMillis(snapshot::Snapshot::kPatienceMs + 1);
  test.engine.ResumeWaiting(client.lane);
  client.lane.waits.TakeResumed();
  EXPECT_EQ(client.Run({"SET", "large:" + std::to_string(written), "new"}), "+OK\r\n");
  bool whole = true;
  Write(test, &whole);
  EXPECT_FALSE(whole);
}

}  // namespace
}  // namespace sava::engine
