// The append-only log: what it writes replays to the same commands; nothing below durable() is lost
// when calls fail or power does.
#include "storage/aof_log.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <thread>

#include "crash_recorder.h"
#include "journal_text.h"
#include "storage/aof_reader.h"
#include "storage/recovery_plan.h"

namespace sava::storage {
namespace {

using journal::MadeRecord;
using journal::RespText;
using Words = std::vector<std::string>;
using Group = std::pair<uint32_t, Words>;  // database, command
using Groups = std::vector<Group>;

// Not shrunk: the threads make each run a little different.
constexpr uint64_t kRuns = 100;

// Goes on where it was, so that repeating the tests tries others.
uint64_t NextSeed() {
  static uint64_t seed = 0;
  return seed++;
}

// The commands of a file with the database each ran in; a transaction's are one element.
AofEnd Replay(std::string_view file, std::vector<Groups>* out) {
  uint32_t db = 0;
  Groups open;
  return ReadAof(file, [&](const AofCommand& command) -> base::Status {
    const Words words(command.words.begin(), command.words.end());
    if (words[0] == "SELECT") {
      db = static_cast<uint32_t>(std::stoul(words.at(1)));
    } else {
      open.emplace_back(db, words);
    }
    if (!command.in_transaction || command.last) {
      if (!open.empty()) out->push_back(std::exchange(open, {}));
    }
    return {};
  });
}

class Replayer final : public PartReader {
 public:
  explicit Replayer(std::vector<Groups>* out) : out_(*out) {}
  AofEnd Read(const RecoveryPlan::Part& /*part*/, const base::MappedFile& file) override {
    return Replay(file.bytes(), &out_);
  }

 private:
  std::vector<Groups>& out_;
};

// What a start would read: empty text, or what stands in its way. Afterwards the files are as a
// start leaves them.
std::string Recover(CrashRecorder& disk, std::vector<Groups>* out) {
  RecoveryPlan plan = PlanStart(disk, {"dump", "log", "dir", "log"}, true);
  Replayer reader(out);
  base::Status status = ReadParts(disk, &plan, reader, {});
  if (status) status = RepairLog(disk, plan);
  return status ? "" : status.error();
}

// A log on a recorder, with a record's number in its commands.
class Driver {
 public:
  Driver(CrashRecorder* disk, AofLog::Policy policy, uint64_t next = 0, bool ring = true)
      : disk_(*disk) {
    AofLog::Options options;
    options.files = disk;
    options.directory = "dir";
    options.name = "log";
    options.policy = policy;
    options.retry_after = std::chrono::milliseconds(1);
    options.ring = ring;
    options.ring_size = 16 << 10;
    options.changed = [this] {
      if (log_ != nullptr) disk_.Note(log_->durable());
    };
    log_ = std::make_unique<AofLog>(std::move(options));
    records_.resize(next);
  }

  AofLog& log() { return *log_; }
  const std::vector<Groups>& records() const { return records_; }
  void set_records(std::vector<Groups> records) { records_ = std::move(records); }

  void Append(Groups groups) {
    records_.push_back(std::move(groups));
    const MadeRecord made(records_.size() - 1, records_.back());
    log_->BeginRun();
    log_->Receive(made.record());
    log_->EndRun(records_.size());
  }

  void BeginRewrite() {
    log_->SwitchAt(records_.size());
    cut_ = records_.size();
  }
  base::Status WriteBase() {
    auto file = disk_.Open(log_->TemporaryBase(), FileSystem::Mode::kNew);
    if (!file) return base::Error{file.error()};
    std::string text;
    for (size_t i = 0; i < cut_; ++i) {
      if (records_[i].size() > 1) text += RespText({"MULTI"});
      for (const auto& [db, words] : records_[i]) {
        text += RespText({"SELECT", std::to_string(db)}) + RespText(words);
      }
      if (records_[i].size() > 1) text += RespText({"EXEC"});
    }
    if (base::Status status = (*file)->Append(text); !status) return status;
    return (*file)->Sync();
  }
  bool FinishRewrite() {
    if (!WriteBase()) {
      log_->AbortRewrite();
      return false;
    }
    return log_->FinishRewrite(false).ok();
  }
  bool Rewrite() {
    BeginRewrite();
    return FinishRewrite();
  }

  // Until syncs go by way of the ring.
  bool AwaitRing() {
    const uint64_t before = log_->ring_syncs();
    for (int i = 0; i < 5000 && log_->ring_syncs() == before; ++i) {
      Append({{0, {"SET", "await", std::to_string(i)}}});
      log_->Pause();
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return log_->ring_syncs() > before;
  }
  // Until everything is durable; rewrites when the log asks for it.
  bool Settle() {
    for (int i = 0; i < 5000; ++i) {
      if (log_->state() == AofLog::State::kNeedsBase) Rewrite();
      log_->RequestSync();
      log_->Pause();
      if (log_->state() == AofLog::State::kGood && log_->durable() == records_.size()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

 private:
  CrashRecorder& disk_;
  std::unique_ptr<AofLog> log_;
  std::vector<Groups> records_;
  size_t cut_ = 0;
};

Groups RandomGroups(std::mt19937_64& random, size_t number) {
  const auto below = [&random](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  Groups groups;
  const size_t count = below(4) == 0 ? 2 + below(3) : 1;
  const auto start_db = static_cast<uint32_t>(below(3));
  for (size_t i = 0; i < count; ++i) {
    const auto db = below(5) == 0 ? static_cast<uint32_t>(below(16)) : start_db;
    groups.emplace_back(db, Words{"SET", "key" + std::to_string(number) + "." + std::to_string(i),
                                  std::string(below(60), "\r\n$*#\0x"[below(7)])});
  }
  return groups;
}

// `first`: operations that made the disk what it was. `least`: records that were there then.
void CheckCrashes(const CrashRecorder& disk, const std::vector<Groups>& records,
                  std::mt19937_64& random, int times, size_t first = 0, size_t least = 0) {
  for (int i = 0; i < times; ++i) {
    const size_t at = std::uniform_int_distribution<size_t>(first, disk.operations())(random);
    const uint64_t durable = disk.NoteAt(at);
    CrashRecorder after(disk.Crash(at, random));
    std::vector<Groups> recovered;
    const std::string problem = Recover(after, &recovered);
    ASSERT_EQ(problem, "") << "crash after " << at;
    ASSERT_LE(recovered.size(), records.size());
    ASSERT_GE(recovered.size(), std::max<uint64_t>(durable, least)) << "crash after " << at;
    for (size_t j = 0; j < recovered.size(); ++j) ASSERT_EQ(recovered[j], records[j]) << j;
  }
}

AofLog::Policy RandomPolicy(std::mt19937_64& random) {
  return static_cast<AofLog::Policy>(std::uniform_int_distribution<int>(0, 2)(random));
}

// Appends, pauses, syncs and rewrites in any order.
void RunScript(Driver& driver, std::mt19937_64& random, int steps) {
  bool rewriting = false;
  for (int step = 0; step < steps; ++step) {
    switch (std::uniform_int_distribution<int>(0, 12)(random)) {
      case 0:
        if (!rewriting) driver.BeginRewrite();
        rewriting = true;
        break;
      case 1:
        if (rewriting) driver.FinishRewrite();
        rewriting = false;
        break;
      case 2:
        if (rewriting) driver.log().AbortRewrite();
        rewriting = false;
        break;
      case 3:
        driver.log().RequestSync();
        break;
      case 4:
        std::this_thread::sleep_for(std::chrono::microseconds(300));
        break;
      case 5:
        (void)driver.log().PrepareSwitch();
        break;
      case 6:
      case 7:
      case 8:
        driver.log().Pause();
        break;
      default:
        driver.Append(RandomGroups(random, driver.records().size()));
    }
  }
  if (rewriting) driver.log().AbortRewrite();
}

class AofLogTest : public ::testing::Test {
 protected:
  AofLogTest() { spdlog::set_level(spdlog::level::off); }
  ~AofLogTest() override { spdlog::set_level(spdlog::level::info); }
};

TEST_F(AofLogTest, WritesWhatStockServersRead) {
  CrashRecorder disk;
  {
    Driver driver(&disk, AofLog::Policy::kAlways);
    ASSERT_TRUE(driver.log().Open({}, 0));
    ASSERT_TRUE(driver.Rewrite());
    driver.Append({{0, {"SET", "a", "1"}}});
    driver.Append({{0, {"SET", "b", "2"}}});
    driver.Append({{3, {"SET", "c", "3"}}, {3, {"DEL", "d"}}});
    driver.log().Pause();
    EXPECT_EQ(driver.log().durable(), 3U);
    EXPECT_EQ(driver.log().buffered(), 0U);
  }
  const auto live = disk.Live();
  EXPECT_EQ(live.at("dir/log.manifest"),
            "file log.1.base.aof seq 1 type b\nfile log.1.incr.aof seq 1 type i\n");
  const std::string text = RespText({"SELECT", "0"}) + RespText({"SET", "a", "1"}) +
                           RespText({"SET", "b", "2"}) + RespText({"SELECT", "3"}) +
                           RespText({"MULTI"}) + RespText({"SET", "c", "3"}) +
                           RespText({"DEL", "d"}) + RespText({"EXEC"});
  const std::string line = "#SYNCED:0\r\n";
  EXPECT_EQ(live.at("dir/log.1.incr.aof"),
            line + text + "#SYNCED:" + std::to_string(line.size() + text.size()) + "\r\n");
  EXPECT_EQ(live.size(), 3U);
}

TEST_F(AofLogTest, WritesTimestampsWhenAsked) {
  CrashRecorder disk;
  Driver driver(&disk, AofLog::Policy::kAlways);
  driver.log().set_timestamps(true);
  ASSERT_TRUE(driver.log().Open({}, 0));
  ASSERT_TRUE(driver.Rewrite());
  driver.Append({{0, {"SET", "a", "1"}}});
  driver.log().Pause();
  EXPECT_NE(disk.Live().at("dir/log.1.incr.aof").find("#TS:"), std::string::npos);
}

TEST_F(AofLogTest, GoesOnInTheLastIncrement) {
  CrashRecorder disk;
  const std::string path = "dir/log.1.incr.aof";
  const auto open = [&disk](uint64_t next, bool append) {
    AofManifest manifest;
    ASSERT_TRUE(AofLog::FindManifest(disk, "dir", "log", &manifest));
    Driver driver(&disk, AofLog::Policy::kEverysec, next);
    ASSERT_TRUE(driver.log().Open(manifest, next));
    if (manifest.files.empty()) {
      ASSERT_TRUE(driver.Rewrite());
    }
    if (append) driver.Append({{0, {"SET", "a", "1"}}});
  };
  open(0, false);
  EXPECT_EQ(disk.Live().at(path), AofSyncedLine(0));
  open(0, true);
  const std::string after_first = disk.Live().at(path);
  open(1, false);
  EXPECT_EQ(disk.Live().at(path), after_first) << "a start that records nothing";
  open(1, true);
  EXPECT_TRUE(disk.Live().at(path).starts_with(after_first));
  EXPECT_EQ(disk.Live().at("dir/log.manifest"),
            "file log.1.base.aof seq 1 type b\nfile log.1.incr.aof seq 1 type i\n");
  std::vector<Groups> recovered;
  EXPECT_EQ(Recover(disk, &recovered), "");
  EXPECT_EQ(recovered.size(), 2U);
}

// A process that was killed left no line about what is synced: the next start writes one, once.
TEST_F(AofLogTest, AStartAfterAKillSaysThatAllIsSynced) {
  const std::string killed = AofSyncedLine(0) + "#AFTER:1:11\r\n" + RespText({"SET", "a", "1"});
  CrashRecorder disk(
      {{"dir/log.manifest", "file log.1.incr.aof seq 1 type i\nfile log.2.incr.aof seq 2 type i\n"},
       {"dir/log.1.incr.aof", AofSyncedLine(0)},
       {"dir/log.2.incr.aof", killed}});
  for (int start = 0; start < 3; ++start) {
    AofManifest manifest;
    ASSERT_TRUE(AofLog::FindManifest(disk, "dir", "log", &manifest));
    Driver driver(&disk, AofLog::Policy::kEverysec, 1);
    ASSERT_TRUE(driver.log().Open(manifest, 1));
    EXPECT_EQ(disk.Live().at("dir/log.2.incr.aof"), killed + AofSyncedLine(killed.size()));
    EXPECT_TRUE(AofProvesSync(disk.Live().at("dir/log.2.incr.aof")));
    std::mt19937_64 random(7);
    const auto crashed = disk.Crash(disk.operations(), random);
    EXPECT_EQ(crashed.at("dir/log.2.incr.aof"), killed + AofSyncedLine(killed.size()));
  }
}

// A file of another server has no lines by which a start knows what a crash left.
TEST_F(AofLogTest, BehindAnotherServersIncrementBeginsItsOwn) {
  for (const std::string& theirs : {RespText({"SET", "a", "1"}), std::string()}) {
    CrashRecorder disk({{"dir/log.manifest", "file log.1.incr.aof seq 1 type i\n"},
                        {"dir/log.1.incr.aof", theirs}});
    for (int start = 0; start < 2; ++start) {
      AofManifest manifest;
      ASSERT_TRUE(AofLog::FindManifest(disk, "dir", "log", &manifest));
      Driver driver(&disk, AofLog::Policy::kEverysec, 1);
      ASSERT_TRUE(driver.log().Open(manifest, 1));
      driver.Append({{0, {"SET", "b", "1"}}});
    }
    EXPECT_EQ(disk.Live().at("dir/log.1.incr.aof"), theirs);
    EXPECT_EQ(disk.Live().at("dir/log.manifest"),
              "file log.1.incr.aof seq 1 type i\nfile log.2.incr.aof seq 2 type i\n");
  }
}

TEST_F(AofLogTest, ReplaysToTheSameCommands) {
  for (uint64_t run = 0; run < kRuns && !HasFailure(); ++run) {
    const uint64_t seed = NextSeed();
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    CrashRecorder disk;
    std::vector<Groups> records;
    {
      Driver driver(&disk, RandomPolicy(random));
      ASSERT_TRUE(driver.log().Open({}, 0));
      ASSERT_TRUE(driver.Rewrite());
      RunScript(driver, random, 60);
      records = driver.records();
      ASSERT_EQ(driver.log().state(), AofLog::State::kGood);
    }
    std::vector<Groups> recovered;
    ASSERT_EQ(Recover(disk, &recovered), "");
    ASSERT_EQ(recovered, records);
    // Nothing lies about that nobody names.
    AofManifest manifest;
    ASSERT_TRUE(AofLog::FindManifest(disk, "dir", "log", &manifest).value());
    ASSERT_EQ(disk.List("dir").size(), manifest.files.size() + 1);
  }
}

TEST_F(AofLogTest, BecomesDurableWithEachPolicy) {
  for (const auto policy :
       {AofLog::Policy::kAlways, AofLog::Policy::kEverysec, AofLog::Policy::kNo}) {
    CrashRecorder disk;
    Driver driver(&disk, policy);
    ASSERT_TRUE(driver.log().Open({}, 0));
    ASSERT_TRUE(driver.Rewrite());
    std::mt19937_64 random(1);
    for (size_t i = 0; i < 100; ++i) driver.Append(RandomGroups(random, i));
    driver.log().Pause();
    if (policy == AofLog::Policy::kAlways) {
      EXPECT_EQ(driver.log().durable(), 100U);
    }
    // The second passes by itself.
    if (policy == AofLog::Policy::kNo) driver.log().RequestSync();
    for (int i = 0; i < 5000 && driver.log().durable() < 100; ++i) {
      driver.log().Pause();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    EXPECT_EQ(driver.log().durable(), 100U);
  }
}

// What was appended is sent on its way to the disk in steps, each once more when the next one is.
TEST_F(AofLogTest, WritesBehindWhateverThePolicy) {
  constexpr uint64_t kMega = 1 << 20;
  for (const auto policy :
       {AofLog::Policy::kAlways, AofLog::Policy::kEverysec, AofLog::Policy::kNo}) {
    CrashRecorder disk;
    Driver driver(&disk, policy);
    ASSERT_TRUE(driver.log().Open({}, 0));
    ASSERT_TRUE(driver.Rewrite());
    uint64_t asked = 0;
    for (uint64_t megas = 3; megas <= 15; megas += 3) {
      driver.Append({{0, {"SET", "key", std::string(3 * kMega, 'x')}}});
      driver.log().Pause();
      const uint64_t wanted = megas * kMega / (4 * kMega) * (4 * kMega);
      for (int i = 0; i < 5000 && wanted > asked; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const auto behind = disk.behind();
        if (behind.empty() || behind.back().end == asked) continue;
        EXPECT_LE(behind.back().begin, asked);
        EXPECT_LE(behind.back().end, behind.back().size);
        asked = behind.back().end;
      }
      EXPECT_EQ(asked, wanted) << megas;
    }
    EXPECT_EQ(disk.behind().size(), 3U);
  }
}

// An answer may leave when its record is on disk (always) or in the file, in trouble, too.
TEST_F(AofLogTest, KeepsWhatAnswersWaitFor) {
  for (const auto policy :
       {AofLog::Policy::kAlways, AofLog::Policy::kEverysec, AofLog::Policy::kNo}) {
    const bool always = policy == AofLog::Policy::kAlways;
    CrashRecorder disk;
    Driver driver(&disk, policy);
    ASSERT_TRUE(driver.log().Open({}, 0));
    ASSERT_TRUE(driver.Rewrite());
    EXPECT_EQ(driver.log().quick(), !always);
    driver.Append({{0, {"SET", "a", "1"}}});
    EXPECT_EQ(driver.log().kept(), 0U);
    driver.log().Pause();
    EXPECT_EQ(driver.log().kept(), 1U);
    std::vector<Groups> recovered;
    EXPECT_EQ(Recover(disk, &recovered), "");
    EXPECT_EQ(recovered, driver.records());

    disk.set_faults([](CrashRecorder::Kind kind) { return kind == CrashRecorder::Kind::kWrite; });
    driver.Append({{0, {"SET", "b", "2"}}});
    driver.log().Pause();
    EXPECT_EQ(driver.log().kept(), 1U);
    disk.set_faults({});
    EXPECT_TRUE(driver.Settle());
    EXPECT_EQ(driver.log().kept(), 2U);
  }
}

// What comes after a sync that failed stands in no file that counts until there is a new base; what
// was written before is answered.
TEST_F(AofLogTest, KeepsNothingMoreWhileItNeedsABase) {
  CrashRecorder disk;
  Driver driver(&disk, AofLog::Policy::kEverysec);
  ASSERT_TRUE(driver.log().Open({}, 0));
  ASSERT_TRUE(driver.Rewrite());
  driver.Append({{0, {"SET", "a", "1"}}});
  driver.log().Pause();
  disk.set_faults([](CrashRecorder::Kind kind) { return kind == CrashRecorder::Kind::kSync; });
  driver.log().RequestSync();
  for (int i = 0; i < 5000 && driver.log().state() == AofLog::State::kGood; ++i) {
    driver.log().Pause();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_EQ(driver.log().state(), AofLog::State::kNeedsBase);
  driver.Append({{0, {"SET", "b", "2"}}});
  driver.log().Pause();
  EXPECT_EQ(driver.log().kept(), 1U);
  disk.set_faults({});
  driver.BeginRewrite();
  driver.Append({{0, {"SET", "c", "3"}}});
  driver.log().Pause();
  EXPECT_EQ(driver.log().kept(), 1U);
  EXPECT_TRUE(driver.FinishRewrite());
  EXPECT_TRUE(driver.Settle());
  EXPECT_EQ(driver.log().kept(), 3U);
}

// Power fails anywhere: what comes back is a beginning of what was recorded, with all that was
// called durable.
TEST_F(AofLogTest, SurvivesPowerFailuresAnywhere) {
  for (uint64_t run = 0; run < kRuns && !HasFailure(); ++run) {
    const uint64_t seed = NextSeed();
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    CrashRecorder disk;
    Driver driver(&disk, RandomPolicy(random));
    ASSERT_TRUE(driver.log().Open({}, 0));
    ASSERT_TRUE(driver.Rewrite());
    RunScript(driver, random, 80);
    ASSERT_TRUE(driver.Settle());
    CheckCrashes(disk, driver.records(), random, 60);
  }
}

// Each start goes on in what the power failure before it left.
TEST_F(AofLogTest, SurvivesOnePowerFailureAfterAnother) {
  for (uint64_t run = 0; run < kRuns / 4 && !HasFailure(); ++run) {
    const uint64_t seed = NextSeed();
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    auto disk = std::make_unique<CrashRecorder>();
    std::vector<Groups> records;
    for (int start = 0; start < 6 && !HasFailure(); ++start) {
      const size_t first = disk->operations();
      const size_t least = records.size();
      {
        AofManifest manifest;
        ASSERT_TRUE(AofLog::FindManifest(*disk, "dir", "log", &manifest));
        const AofLog::Policy policy = RandomPolicy(random);
        Driver driver(disk.get(), policy, least);
        driver.set_records(records);
        ASSERT_TRUE(driver.log().Open(manifest, least));
        if (manifest.files.empty()) {
          ASSERT_TRUE(driver.Rewrite());
        }
        if (policy == AofLog::Policy::kAlways) {
          ASSERT_TRUE(driver.AwaitRing());
        }
        RunScript(driver, random, 40);
        ASSERT_TRUE(driver.Settle());
        records = driver.records();
      }
      CheckCrashes(*disk, records, random, 10, first, least);
      const size_t at = std::uniform_int_distribution<size_t>(first, disk->operations())(random);
      const uint64_t durable = disk->NoteAt(at);
      CrashRecorder after(disk->Crash(at, random));
      std::vector<Groups> recovered;
      ASSERT_EQ(Recover(after, &recovered), "");
      ASSERT_GE(recovered.size(), std::max<uint64_t>(durable, least));
      records = std::move(recovered);
      disk = std::make_unique<CrashRecorder>(after.Live());
    }
  }
}

// The same by way of the ring, which is so small that it goes round often.
TEST_F(AofLogTest, SurvivesPowerFailuresByWayOfTheRing) {
  uint64_t by_ring = 0;
  for (uint64_t run = 0; run < kRuns && !HasFailure(); ++run) {
    const uint64_t seed = NextSeed();
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    CrashRecorder disk;
    Driver driver(&disk, AofLog::Policy::kAlways);
    ASSERT_TRUE(driver.log().Open({}, 0));
    ASSERT_TRUE(driver.Rewrite());
    ASSERT_TRUE(driver.AwaitRing());
    if (random() % 4 == 0) {
      disk.set_faults([n = random() % 20](CrashRecorder::Kind kind) mutable {
        return kind == CrashRecorder::Kind::kPut && n-- == 0;
      });
    }
    RunScript(driver, random, 200);
    disk.set_faults({});
    ASSERT_TRUE(driver.Settle());
    by_ring += driver.log().ring_syncs();
    CheckCrashes(disk, driver.records(), random, 60);
  }
  EXPECT_GT(by_ring, 10 * kRuns);
}

// Without one, each of them is the file's, and there is no other file.
TEST_F(AofLogTest, SurvivesPowerFailuresWithoutARing) {
  for (uint64_t run = 0; run < kRuns && !HasFailure(); ++run) {
    const uint64_t seed = NextSeed();
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    CrashRecorder disk;
    Driver driver(&disk, AofLog::Policy::kAlways, 0, false);
    ASSERT_TRUE(driver.log().Open({}, 0));
    ASSERT_TRUE(driver.Rewrite());
    RunScript(driver, random, 80);
    ASSERT_TRUE(driver.Settle());
    EXPECT_EQ(driver.log().ring_syncs(), 0U);
    EXPECT_FALSE(disk.Exists("dir/log.ring"));
    CheckCrashes(disk, driver.records(), random, 60);
  }
}

// The way changes while records come: nothing that was durable depends on a ring that goes.
TEST_F(AofLogTest, SurvivesPowerFailuresWhileTheRingComesAndGoes) {
  std::mt19937_64 random(NextSeed());
  CrashRecorder disk;
  Driver driver(&disk, AofLog::Policy::kAlways);
  ASSERT_TRUE(driver.log().Open({}, 0));
  ASSERT_TRUE(driver.Rewrite());
  for (int i = 0; i < 5 && !HasFailure(); ++i) {
    ASSERT_TRUE(driver.AwaitRing());
    RunScript(driver, random, 20);
    driver.log().SetRing(false);
    for (int tries = 0; tries < 10000 && disk.Exists("dir/log.ring"); ++tries) {
      driver.Append({{0, {"SET", "gone", std::to_string(tries)}}});
      driver.log().Pause();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_FALSE(disk.Exists("dir/log.ring"));
    const uint64_t by_ring = driver.log().ring_syncs();
    RunScript(driver, random, 20);
    EXPECT_EQ(driver.log().ring_syncs(), by_ring);
    driver.log().SetRing(true);
  }
  ASSERT_TRUE(driver.Settle());
  CheckCrashes(disk, driver.records(), random, 200);
}

// After a sync that failed the file seems to have what the ring has, and it is in memory only: a
// start writes it again before the ring goes.
TEST_F(AofLogTest, ARestartAfterAFailedSyncKeepsWhatTheRingHas) {
  CrashRecorder disk;
  std::vector<Groups> records;
  uint64_t durable = 0;
  {
    Driver driver(&disk, AofLog::Policy::kAlways);
    ASSERT_TRUE(driver.log().Open({}, 0));
    ASSERT_TRUE(driver.Rewrite());
    ASSERT_TRUE(driver.AwaitRing());
    driver.Append({{0, {"SET", "a", "1"}}});
    driver.log().Pause();
    records = driver.records();
    durable = driver.log().durable();
    ASSERT_EQ(durable, records.size());
    // The disk fails for good, and the process ends.
    disk.set_faults([](CrashRecorder::Kind) { return true; });
    driver.log().RequestSync();
    for (int i = 0; i < 5000 && driver.log().state() == AofLog::State::kGood; ++i) {
      driver.log().Pause();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_EQ(driver.log().state(), AofLog::State::kNeedsBase);
  }
  AofManifest manifest;
  ASSERT_TRUE(AofLog::FindManifest(disk, "dir", "log", &manifest));
  // A first start fails, too, and the disk is well again for the second.
  EXPECT_FALSE(RestoreFromRing(disk, "dir", "log", manifest, true));
  disk.set_faults({});
  ASSERT_TRUE(RestoreFromRing(disk, "dir", "log", manifest, true));
  Driver again(&disk, AofLog::Policy::kEverysec, records.size());
  ASSERT_TRUE(again.log().Open(manifest, records.size()));
  EXPECT_FALSE(disk.Exists("dir/log.ring"));
  std::mt19937_64 random(3);
  for (int i = 0; i < 50; ++i) {
    CrashRecorder after(disk.Crash(disk.operations(), random));
    std::vector<Groups> recovered;
    ASSERT_EQ(Recover(after, &recovered), "");
    ASSERT_EQ(recovered, records);
  }
}

// Calls fail for a while, in any combination: nothing that was durable is lost meanwhile, and in
// the end all is well again by itself.
TEST_F(AofLogTest, SurvivesFailingCallsAndPower) {
  for (uint64_t run = 0; run < kRuns && !HasFailure(); ++run) {
    const uint64_t seed = NextSeed();
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    CrashRecorder disk;
    const AofLog::Policy policy = RandomPolicy(random);
    Driver driver(&disk, policy);
    ASSERT_TRUE(driver.log().Open({}, 0));
    ASSERT_TRUE(driver.Rewrite());
    if (policy == AofLog::Policy::kAlways) {
      ASSERT_TRUE(driver.AwaitRing());
    }
    for (int round = 0; round < 3; ++round) {
      auto weather = std::make_shared<std::mt19937_64>(random());
      const auto which = static_cast<unsigned>(random() % 512);
      disk.set_faults([weather, which](CrashRecorder::Kind kind) {
        return ((which >> static_cast<unsigned>(kind)) & 1U) != 0 && (*weather)() % 3 == 0;
      });
      RunScript(driver, random, 30);
      disk.set_faults({});
      RunScript(driver, random, 10);
    }
    ASSERT_TRUE(driver.Settle());
    CheckCrashes(disk, driver.records(), random, 60);
    std::vector<Groups> recovered;
    ASSERT_EQ(Recover(disk, &recovered), "");
    ASSERT_EQ(recovered, driver.records());
  }
}

TEST_F(AofLogTest, KeepsWhatCouldNotBeWritten) {
  CrashRecorder disk;
  Driver driver(&disk, AofLog::Policy::kAlways);
  ASSERT_TRUE(driver.log().Open({}, 0));
  ASSERT_TRUE(driver.Rewrite());
  driver.Append({{0, {"SET", "a", "1"}}});
  driver.log().Pause();
  disk.set_faults([](CrashRecorder::Kind kind) { return kind == CrashRecorder::Kind::kWrite; });
  driver.Append({{0, {"SET", "b", "2"}}});
  driver.log().Pause();
  EXPECT_EQ(driver.log().state(), AofLog::State::kWriteFailed);
  EXPECT_EQ(driver.log().last_error(), "writing: no");
  EXPECT_EQ(driver.log().durable(), 1U);
  EXPECT_GT(driver.log().buffered(), 0U);
  std::vector<Groups> recovered;
  EXPECT_EQ(Recover(disk, &recovered), "");
  EXPECT_EQ(recovered.size(), 1U);
  disk.set_faults({});
  EXPECT_TRUE(driver.Settle());
  recovered.clear();
  EXPECT_EQ(Recover(disk, &recovered), "");
  EXPECT_EQ(recovered, driver.records());
}

// A manifest that could not be written may be on the disk all the same after a power failure: the
// increment that it names must not be another one, half made, by then.
TEST_F(AofLogTest, ANameThatAManifestMayHaveIsNotUsedAgain) {
  CrashRecorder disk;
  Driver driver(&disk, AofLog::Policy::kAlways);
  ASSERT_TRUE(driver.log().Open({}, 0));
  ASSERT_TRUE(driver.Rewrite());
  const auto last = [&disk] {
    AofManifest manifest;
    EXPECT_TRUE(AofLog::FindManifest(disk, "dir", "log", &manifest));
    return manifest.increments().back().sequence;
  };
  const uint64_t before = last();
  // The second time is the manifest's.
  disk.set_faults([times = 0](CrashRecorder::Kind kind) mutable {
    return kind == CrashRecorder::Kind::kSyncDirectory && ++times == 2;
  });
  EXPECT_FALSE(driver.log().PrepareSwitch());
  disk.set_faults({});
  driver.log().Pause();  // the manifest is made certain again
  EXPECT_EQ(last(), before);
  EXPECT_TRUE(driver.log().PrepareSwitch());
  EXPECT_EQ(last(), before + 2);
}

TEST_F(AofLogTest, ABaseFreesItFromAFullDisk) {
  CrashRecorder disk;
  Driver driver(&disk, AofLog::Policy::kAlways);
  ASSERT_TRUE(driver.log().Open({}, 0));
  ASSERT_TRUE(driver.Rewrite());
  disk.set_faults([](CrashRecorder::Kind kind) { return kind == CrashRecorder::Kind::kWrite; });
  driver.Append({{0, {"SET", "a", "1"}}});
  driver.log().Pause();
  driver.BeginRewrite();
  driver.Append({{0, {"SET", "b", "2"}}});
  driver.log().Pause();
  disk.set_faults({});
  EXPECT_TRUE(driver.FinishRewrite());
  EXPECT_EQ(driver.log().state(), AofLog::State::kGood);
  EXPECT_GE(driver.log().durable(), 1U);
  driver.log().Pause();
  EXPECT_EQ(driver.log().durable(), 2U);
  std::vector<Groups> recovered;
  EXPECT_EQ(Recover(disk, &recovered), "");
  EXPECT_EQ(recovered, driver.records());
}

TEST_F(AofLogTest, AFailedSyncNeedsABase) {
  CrashRecorder disk;
  Driver driver(&disk, AofLog::Policy::kAlways);
  ASSERT_TRUE(driver.log().Open({}, 0));
  ASSERT_TRUE(driver.Rewrite());
  driver.Append({{0, {"SET", "a", "1"}}});
  driver.log().Pause();
  disk.set_faults([](CrashRecorder::Kind kind) { return kind == CrashRecorder::Kind::kSync; });
  driver.Append({{0, {"SET", "b", "2"}}});
  driver.log().Pause();
  EXPECT_EQ(driver.log().state(), AofLog::State::kNeedsBase);
  disk.set_faults({});
  driver.log().Pause();
  EXPECT_EQ(driver.log().durable(), 1U);  // a sync that works now says nothing
  EXPECT_FALSE(driver.log().FinishRewrite());
  driver.BeginRewrite();
  driver.Append({{0, {"SET", "c", "3"}}});
  driver.log().Pause();
  EXPECT_EQ(driver.log().durable(), 1U);
  EXPECT_TRUE(driver.FinishRewrite());
  EXPECT_EQ(driver.log().state(), AofLog::State::kGood);
  EXPECT_TRUE(driver.Settle());
  std::vector<Groups> recovered;
  EXPECT_EQ(Recover(disk, &recovered), "");
  EXPECT_EQ(recovered, driver.records());
}

TEST_F(AofLogTest, NoticesVanishedFiles) {
  const auto dir =
      std::filesystem::temp_directory_path() / ("sava_aof_log_" + std::to_string(::getpid()));
  std::filesystem::remove_all(dir);
  std::filesystem::create_directory(dir);
  {
    AofLog::Options options;
    options.directory = dir / "aof";
    options.name = "a b.aof";  // quoted in the manifest
    AofLog log(std::move(options));
    const auto rewrite = [&log](uint64_t ticket) {
      log.SwitchAt(ticket);
      ASSERT_TRUE(WriteAtomically(FileSystem::Real(), log.TemporaryBase(), ""));
      const base::Status status = log.FinishRewrite(false);
      ASSERT_TRUE(status) << status.error();
    };
    ASSERT_TRUE(log.Open({}, 0));
    rewrite(0);
    log.BeginRun();
    const MadeRecord made(0, {{0, {"SET", "a", "1"}}});
    log.Receive(made.record());
    log.EndRun(1);
    log.Pause();
    EXPECT_GT(log.size(), log.base_size());
    std::filesystem::remove_all(dir / "aof");
    for (int i = 0; i < 2000 && log.state() != AofLog::State::kNeedsBase; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ASSERT_EQ(log.state(), AofLog::State::kNeedsBase);
    rewrite(1);
    EXPECT_EQ(log.state(), AofLog::State::kGood);
    EXPECT_EQ(log.durable(), 1U);
    // The manifest alone: it is written again.
    std::filesystem::remove(dir / "aof" / "a b.aof.manifest");
    for (int i = 0; i < 2000 && !std::filesystem::exists(dir / "aof" / "a b.aof.manifest"); ++i) {
      log.Pause();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    AofManifest manifest;
    const auto found = AofLog::FindManifest(FileSystem::Real(), dir / "aof", "a b.aof", &manifest);
    ASSERT_TRUE(found);
    EXPECT_TRUE(found.value());
    EXPECT_EQ(manifest.files.size(), 2U);
    EXPECT_EQ(log.state(), AofLog::State::kGood);
  }
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace sava::storage
