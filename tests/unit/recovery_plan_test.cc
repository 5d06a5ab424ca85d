// What a start makes of the files of a data directory: decided without writing anything, then
// carried out.
#include "storage/recovery_plan.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "crash_recorder.h"
#include "storage/data_set.h"
#include "storage/rdb_writer.h"

namespace sava::storage {
namespace {

using Cure = RecoveryPlan::Cure;
using Kind = AofEnd::Kind;
using Source = RecoveryPlan::Source;
using Contents = CrashRecorder::Contents;

const DataPlaces kPlaces{"dump.rdb", "log", "dir", "log"};
const std::string kFirstLine = AofSyncedLine(0);
const std::string kSet = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";
const std::string kLater = kFirstLine + "#AFTER:1:";

// What was read, and by whom; a part whose text begins with "damaged" cannot be used.
class Recorder final : public PartReader {
 public:
  AofEnd Read(const RecoveryPlan::Part& part, const base::MappedFile& file) override {
    read_.push_back(part.path);
    if (file.bytes().starts_with("damaged")) {
      AofEnd end;
      end.kind = Kind::kRefused;
      end.text = part.path + ": damaged";
      return end;
    }
    return ReadAof(file.bytes(), [](const AofCommand&) { return base::Status(); });
  }
  const std::vector<std::string>& read() const { return read_; }

 private:
  std::vector<std::string> read_;
};

// A start that reads everything it may.
struct Start {
  explicit Start(const Contents& contents, ReadRules rules = {}, bool use_log = true)
      : disk(contents), plan(PlanStart(disk, kPlaces, use_log)) {
    Recorder reader;
    status = ReadParts(disk, &plan, reader, rules);
    read = reader.read();
    EXPECT_EQ(disk.Live(), contents) << "planning has written";
  }
  std::string error() const { return status ? "" : status.error(); }

  CrashRecorder disk;
  RecoveryPlan plan;
  std::vector<std::string> read;
  base::Status status;
};

std::string Manifest(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool base = c == 'b';
    out += base ? "file base seq 1 type b\n"
                : std::string("file incr.") + c + " seq " + c + " type i\n";
  }
  return out;
}

// A log of these increments, 1 and so on, behind a base if there is one.
Contents LogOf(const std::vector<std::string>& increments, const std::string& base = "") {
  Contents contents;
  std::string parts = base.empty() ? "" : "b";
  if (!base.empty()) contents["dir/base"] = base;
  for (size_t i = 0; i < increments.size(); ++i) {
    parts += static_cast<char>('1' + i);
    contents["dir/incr." + std::to_string(i + 1)] = increments[i];
  }
  contents["dir/log.manifest"] = Manifest(parts);
  return contents;
}

std::string Dump(const std::string& id) {
  std::string bytes;
  RdbWriter writer([&](std::string_view part) { bytes += part; }, {});
  RdbWriter::Origin origin;
  origin.data_set = id;
  writer.Begin(origin);
  writer.End();
  return bytes;
}

using Names = std::vector<std::string>;

TEST(RecoveryPlanTest, NothingAtAllBeginsAnEmptyDataSet) {
  for (const bool use_log : {false, true}) {
    const Start start({}, {}, use_log);
    EXPECT_EQ(start.error(), "");
    EXPECT_EQ(start.plan.source, Source::kNothing);
    EXPECT_TRUE(start.read.empty());
  }
}

TEST(RecoveryPlanTest, ADumpAloneIsLoadedWithItsId) {
  const std::string id = NewDataSetId();
  for (const bool use_log : {false, true}) {
    const Start start({{"dump.rdb", Dump(id)}}, {}, use_log);
    EXPECT_EQ(start.plan.source, Source::kDump);
    EXPECT_EQ(start.plan.data_set, id);
    EXPECT_FALSE(start.plan.foreign_dump);
  }
}

TEST(RecoveryPlanTest, WithoutALogInUseTheDumpIsLoadedThoughThereIsALog) {
  Contents contents = LogOf({kSet});
  EXPECT_EQ(Start(contents, {}, false).plan.source, Source::kNothing);
  contents["dump.rdb"] = Dump("");
  EXPECT_EQ(Start(contents, {}, false).plan.source, Source::kDump);
}

TEST(RecoveryPlanTest, ADumpBesideALogIsForeignUnlessItHasTheSameId) {
  const std::string id = NewDataSetId();
  const std::string other = NewDataSetId();
  for (const std::string& dump_id : {id, other, std::string()}) {
    Contents contents = LogOf({kSet});
    contents["dir/log.manifest"] += "# sava-data-set " + id + "\n";
    contents["dump.rdb"] = Dump(dump_id);
    const Start start(contents);
    EXPECT_EQ(start.plan.source, Source::kLog);
    EXPECT_EQ(start.plan.data_set, id);
    EXPECT_EQ(start.plan.foreign_dump, dump_id != id);
    if (dump_id != id) {
      EXPECT_EQ(start.plan.dump_data_set, dump_id);
    }
  }
}

TEST(RecoveryPlanTest, AWholeLogIsReadInOrder) {
  Start start(LogOf({kFirstLine + kSet, kFirstLine + kSet, ""}, kSet));
  EXPECT_EQ(start.error(), "");
  EXPECT_EQ(start.read, (Names{"dir/base", "dir/incr.1", "dir/incr.2", "dir/incr.3"}));
  EXPECT_TRUE(start.plan.findings.empty());
  const Contents before = start.disk.Live();
  ASSERT_TRUE(RepairLog(start.disk, start.plan));
  EXPECT_EQ(start.disk.Live(), before);
}

TEST(RecoveryPlanTest, ACutTailIsCutOffWhereThatIsAllowed) {
  const std::string whole = kFirstLine + kSet;
  for (size_t size = 1; size < kSet.size(); ++size) {
    const Contents contents = LogOf({whole + kSet.substr(0, size)}, kSet);
    Start start(contents);
    EXPECT_EQ(start.error(), "");
    ASSERT_TRUE(RepairLog(start.disk, start.plan));
    EXPECT_EQ(start.disk.Live().at("dir/incr.1"), whole);
    const Start refused(contents, {.cut_tails = false});
    EXPECT_NE(refused.error().find("Unexpected end of file reading the append only file "
                                   "dir/incr.1: at offset " +
                                   std::to_string(whole.size())),
              std::string::npos)
        << refused.error();
    EXPECT_NE(refused.error().find("set aof-load-truncated to yes"), std::string::npos);
  }
}

TEST(RecoveryPlanTest, ABaseMayEndEarlyOnlyWhenItIsAlone) {
  const std::string cut = kSet + "*3\r\n$3";
  Start alone(LogOf({}, cut));
  EXPECT_EQ(alone.error(), "");
  ASSERT_TRUE(RepairLog(alone.disk, alone.plan));
  EXPECT_EQ(alone.disk.Live().at("dir/base"), kSet);
  // With increments of which nothing was ever written a repair may cut it.
  for (const auto& [increment, cure] :
       {std::pair{std::string(), Cure::kRepair}, std::pair{kFirstLine, Cure::kAlone}}) {
    const Start followed(LogOf({increment}, cut));
    EXPECT_NE(followed.error().find("Unexpected end of file"), std::string::npos);
    ASSERT_EQ(followed.plan.findings.size(), 1U);
    EXPECT_EQ(followed.plan.findings[0].cure, cure);
    EXPECT_EQ(followed.plan.findings[0].cuts.size(), cure == Cure::kRepair ? 1U : 0U);
    EXPECT_EQ(followed.read, Names{"dir/base"});
  }
}

TEST(RecoveryPlanTest, ADamagedMiddleIsRefused) {
  const std::string damaged = kSet + "rubbish" + kSet;
  Start last(LogOf({damaged}, kSet));
  EXPECT_NE(last.error().find("Bad file format reading the append only file dir/incr.1: at offset"),
            std::string::npos)
      << last.error();
  EXPECT_EQ(last.plan.findings.at(0).cure, Cure::kRepair);
  const Start earlier(LogOf({damaged, kSet}));
  EXPECT_EQ(earlier.plan.findings.at(0).cure, Cure::kAlone);
  EXPECT_TRUE(earlier.plan.findings[0].cuts.empty());
  EXPECT_EQ(earlier.read, Names{"dir/incr.1"});
  EXPECT_NE(earlier.error().find("'sava check --repair dir/incr.1'"), std::string::npos);
  const Start nothing(LogOf({"rubbish"}));
  EXPECT_EQ(nothing.plan.findings.at(0).cure, Cure::kNone);
}

TEST(RecoveryPlanTest, WhatIsDamagedBeyondRepairIsRefusedWithItsOwnWords) {
  const Start start(LogOf({kSet}, "damaged"));
  EXPECT_EQ(start.error(), "dir/base: damaged");
  EXPECT_EQ(start.read, Names{"dir/base"});
  EXPECT_EQ(start.plan.findings.at(0).cure, Cure::kNone);
  const Start all(LogOf({kSet}, "damaged"), {.read_on = true});
  EXPECT_EQ(all.error(), "dir/base: damaged");
  EXPECT_EQ(all.read, (Names{"dir/base", "dir/incr.1"}));
}

TEST(RecoveryPlanTest, AMissingFileIsRefusedBeforeAnythingIsRead) {
  Contents contents = LogOf({kSet, kSet}, kSet);
  contents.erase("dir/incr.2");
  const Start start(contents);
  EXPECT_NE(start.error().find("dir/incr.2"), std::string::npos) << start.error();
  EXPECT_TRUE(start.read.empty());
  const Start all(contents, {.read_on = true});
  EXPECT_EQ(all.read, (Names{"dir/base", "dir/incr.1"}));
  EXPECT_EQ(all.plan.findings.size(), 1U);
  // What it had is not known, so nothing before it may be cut off.
  contents["dir/incr.1"] = kSet + "*3";
  const Start cut(contents, {.read_on = true});
  ASSERT_EQ(cut.plan.findings.size(), 2U);
  EXPECT_EQ(cut.plan.findings[0].cure, Cure::kAlone);
}

TEST(RecoveryPlanTest, ABadManifestIsRefused) {
  EXPECT_NE(Start(Contents{{"dir/log.manifest", "rubbish\n"}}).error(), "");
  const std::string last = std::to_string(AofManifest::kLastSequence);
  const Start numbers({{"dir/log.manifest", "file i seq " + last + " type i\n"}, {"dir/i", kSet}});
  EXPECT_NE(numbers.error().find("no sequence number is left"), std::string::npos);
  EXPECT_TRUE(numbers.read.empty());
}

TEST(RecoveryPlanTest, ADeviceOrAPipeIsNoManifestAndNoPart) {
  const std::string directory = std::filesystem::temp_directory_path() / "sava_plan.XXXXXX";
  std::string made = directory;
  ASSERT_NE(mkdtemp(made.data()), nullptr);
  const std::string manifest = made + "/log.manifest";
  const DataPlaces places{made + "/dump.rdb", made + "/old", made, "log"};
  FileSystem& files = FileSystem::Real();
  std::filesystem::create_symlink("/dev/zero", manifest);
  EXPECT_NE(PlanStart(files, places, true).refused.find("not a regular file"), std::string::npos);
  std::filesystem::remove(manifest);
  ASSERT_EQ(mkfifo(manifest.c_str(), 0600), 0);
  EXPECT_NE(PlanStart(files, places, true).refused.find("not a regular file"), std::string::npos);
  std::filesystem::remove(manifest);
  ASSERT_TRUE(WriteAtomically(files, manifest, Manifest("1")));
  ASSERT_EQ(mkfifo((made + "/incr.1").c_str(), 0600), 0);
  RecoveryPlan plan = PlanStart(files, places, true);
  Recorder reader;
  const base::Status status = ReadParts(files, &plan, reader, {});
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().find("not a regular file"), std::string::npos);
  EXPECT_TRUE(reader.read().empty());
  std::filesystem::remove_all(made);
}

TEST(RecoveryPlanTest, AnUnsyncedLaterIncrementLetsTheLogEndInAnEarlierOne) {
  const std::string first = kFirstLine + kSet + kSet;
  const std::string later = kLater + std::to_string(first.size()) + "\r\n" + kSet;
  // Cut within a command, and between two.
  for (const size_t size : {first.size() - 3, first.size() - kSet.size()}) {
    const Contents contents = LogOf({first.substr(0, size), later, kFirstLine});
    Start start(contents);
    EXPECT_EQ(start.error(), "");
    EXPECT_EQ(start.read, Names{"dir/incr.1"});
    EXPECT_TRUE(start.plan.findings.at(0).lost);
    ASSERT_TRUE(RepairLog(start.disk, start.plan));
    const Contents live = start.disk.Live();
    EXPECT_EQ(live.at("dir/incr.1"), kFirstLine + kSet);
    EXPECT_EQ(live.at("dir/incr.2"), kFirstLine);
    EXPECT_EQ(live.at("dir/incr.3"), kFirstLine);
    EXPECT_NE(Start(contents, {.cut_tails = false}).error(), "");
  }
  // One that was synced shows that the earlier one was whole.
  std::string synced = later;
  synced += AofSyncedLine(synced.size());
  const Start damaged(LogOf({first.substr(0, first.size() - kSet.size()), synced}));
  EXPECT_NE(damaged.error().find("it has " + std::to_string(first.size() - kSet.size()) +
                                 " bytes, and had " + std::to_string(first.size())),
            std::string::npos)
      << damaged.error();
  EXPECT_TRUE(damaged.read.empty());
  EXPECT_EQ(Start(LogOf({first, synced})).error(), "");
}

TEST(RecoveryPlanTest, LinesOfTimeAreReadOver) {
  const Start start(LogOf({"#TS:1700000000\r\n" + kSet + "#TS:1700000001\r\n" + kSet}));
  EXPECT_EQ(start.error(), "");
  EXPECT_TRUE(start.plan.findings.empty());
}

TEST(RecoveryPlanTest, WhatOnlyTheRingHasIsReadFirstAndThenWritten) {
  const std::string known = kFirstLine + kSet;
  const std::string synced = kSet + kSet;
  Contents contents = LogOf({known + synced.substr(0, 10)}, kSet);
  {
    CrashRecorder scratch(contents);
    auto ring = AofRing::Make(scratch, "dir/log.ring", 64 << 10);
    ASSERT_TRUE(ring);
    ASSERT_TRUE((*ring)->Put(1, known.size(), known, synced, known.size()).value());
    contents["dir/log.ring"] = scratch.ReadAll("dir/log.ring").value();
  }
  Start start(contents);
  EXPECT_EQ(start.error(), "");
  EXPECT_TRUE(start.plan.findings.empty());
  EXPECT_EQ(start.plan.ring.lacking, synced.size() - 10);
  EXPECT_EQ(start.plan.parts.at(1).size, known.size() + synced.size());
  ASSERT_TRUE(RepairLog(start.disk, start.plan));
  EXPECT_EQ(start.disk.Live().at("dir/incr.1"), known + synced);
  // With a base that is damaged nothing of it is written; with other commands there it is refused.
  contents["dir/base"] = "damaged";
  EXPECT_EQ(Start(contents).error(), "dir/base: damaged");
  contents["dir/incr.1"] = known + "*2\r\n$3\r\nDEL\r\n$1\r\nz\r\n";
  const Start other(contents);
  EXPECT_NE(other.error().find("To go on without them, remove dir/log.ring"), std::string::npos)
      << other.error();
  EXPECT_TRUE(other.read.empty());
}

TEST(RecoveryPlanTest, ALogOfOneFileIsLoadedUnlessThereIsANewerOne) {
  Start alone({{"log", kSet + "*1\r\n$4"}});
  EXPECT_EQ(alone.plan.source, Source::kOldLog);
  EXPECT_EQ(alone.read, Names{"log"});
  EXPECT_EQ(alone.error(), "");
  ASSERT_TRUE(RepairLog(alone.disk, alone.plan));
  EXPECT_EQ(alone.disk.Live().at("log"), kSet);
  // The manifest names it, and it is still to be moved.
  Contents contents{{"log", kSet}, {"dir/log.manifest", "file log seq 1 type b\n"}};
  EXPECT_EQ(Start(contents).plan.source, Source::kOldLog);
  contents["dir/log"] = kSet;
  EXPECT_EQ(Start(contents).plan.source, Source::kLog);
  Contents newer = LogOf({kSet});
  newer["log"] = kSet;
  EXPECT_EQ(Start(newer).read, Names{"dir/incr.1"});
}

TEST(RecoveryPlanTest, AManifestOfHistoryOnlyBeginsWithTheDump) {
  Contents contents{{"dir/log.manifest", "file old seq 1 type h\n"}, {"dump.rdb", Dump("")}};
  const Start start(contents);
  EXPECT_EQ(start.plan.source, Source::kDump);
  EXPECT_EQ(start.plan.manifest.files.size(), 1U);
}

}  // namespace
}  // namespace sava::storage
