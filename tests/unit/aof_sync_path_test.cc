// The two ways by which `always` brings the log's end to the disk: which syncs are the file's,
// which the ring's, and what the ring then has.
#include "storage/aof_sync_path.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "crash_recorder.h"

namespace sava::storage {
namespace {

const std::string kRing = "dir/log.ring";

// A log's increment as a sync path sees it.
class Log {
 public:
  explicit Log(SyncPath& path) : path_(path), lock_(mutex_) { path_.Restart(); }

  void Append(std::string_view bytes) {
    path_.Reserve(bytes.size());
    bytes_ += bytes;
    path_.Append(bytes);
  }
  bool MakeDurable() {
    return path_.MakeDurable({sequence, bytes_.size(), synced_, counts}, [this] {
      ++file_syncs;
      if (fails) return false;
      synced_ = bytes_.size();
      return true;
    });
  }
  // Whether it took a sync of the file.
  bool ByFile(std::string_view bytes) {
    const int before = file_syncs;
    Append(bytes);
    EXPECT_TRUE(MakeDurable());
    return file_syncs > before;
  }
  void Prepare() { path_.Prepare(lock_); }
  bool LookForFile() { return path_.LookForFile(lock_); }
  void Next() {
    ++sequence;
    bytes_.clear();
    synced_ = 0;
    path_.Restart();
  }
  const std::string& bytes() const { return bytes_; }
  SyncPath::Lock& lock() { return lock_; }

  uint64_t sequence = 4;
  bool counts = true;
  bool fails = false;
  int file_syncs = 0;

 private:
  SyncPath& path_;
  std::mutex mutex_;
  SyncPath::Lock lock_;
  std::string bytes_;
  uint64_t synced_ = 0;
};

class SyncPathTest : public ::testing::Test {
 protected:
  SyncPathTest() { spdlog::set_level(spdlog::level::off); }
  ~SyncPathTest() override { spdlog::set_level(spdlog::level::info); }

  AofRingEnd Ring() { return ReadAofRing(disk.ReadAll(kRing).value()); }

  CrashRecorder disk;
};

TEST_F(SyncPathTest, TheFileIsSyncedEachTime) {
  FileSyncPath path;
  Log log(path);
  EXPECT_FALSE(path.quick());
  EXPECT_FALSE(path.wants_preparation());
  for (int i = 1; i < 4; ++i) EXPECT_TRUE(log.ByFile("x"));
  log.fails = true;
  log.Append("y");
  EXPECT_FALSE(log.MakeDurable());
  EXPECT_TRUE(log.LookForFile());
  EXPECT_EQ(disk.operations(), 0U);
}

TEST_F(SyncPathTest, TheRingFollowsASyncOfTheFile) {
  RingSyncPath path(disk, kRing, 64 << 10);
  Log log(path);
  EXPECT_TRUE(log.ByFile("before;"));  // there is none yet
  ASSERT_TRUE(path.wants_preparation());
  log.Prepare();
  ASSERT_TRUE(path.has_ring());
  EXPECT_FALSE(path.wants_preparation());
  EXPECT_TRUE(log.ByFile("first;"));
  const size_t offset = log.bytes().size();
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(log.ByFile("command;"));
  EXPECT_EQ(path.syncs(), 5U);
  EXPECT_TRUE(log.MakeDurable());  // nothing is left to do
  EXPECT_EQ(path.syncs(), 5U);
  EXPECT_EQ(Ring().increment, 4U);
  EXPECT_EQ(Ring().offset, offset);
  EXPECT_EQ(Ring().bytes, log.bytes().substr(offset));
  // Each increment begins with a sync of the file.
  log.Next();
  EXPECT_FALSE(path.quick());
  EXPECT_TRUE(log.ByFile("another file;"));
  EXPECT_FALSE(log.ByFile("command;"));
  EXPECT_EQ(Ring().increment, 5U);
}

TEST_F(SyncPathTest, LargeAppendsAndFilesThatDoNotCountAreSyncedAsFiles) {
  RingSyncPath path(disk, kRing, 1 << 20);
  Log log(path);
  log.Prepare();
  EXPECT_TRUE(log.ByFile("first;"));
  EXPECT_FALSE(log.ByFile(std::string(AofRing::kMostBytes, 'x')));
  EXPECT_TRUE(log.ByFile(std::string(AofRing::kMostBytes + 1, 'x')));
  EXPECT_FALSE(log.ByFile("command;"));
  // Together they are too large.
  log.Append(std::string(AofRing::kMostBytes, 'x'));
  EXPECT_TRUE(log.ByFile("command;"));
  log.counts = false;
  EXPECT_TRUE(log.ByFile("command;"));
  log.counts = true;
  EXPECT_FALSE(log.ByFile("command;"));
}

// A path that was not told of some bytes does not know by what the file is to be known again.
TEST_F(SyncPathTest, AfterARestartTheFileComesFirst) {
  RingSyncPath path(disk, kRing, 64 << 10);
  Log log(path);
  log.Prepare();
  EXPECT_TRUE(log.ByFile("first;"));
  EXPECT_FALSE(log.ByFile("command;"));
  path.Restart();
  EXPECT_FALSE(path.quick());
  EXPECT_TRUE(log.MakeDurable());
  EXPECT_EQ(log.file_syncs, 2);
  EXPECT_TRUE(log.ByFile("second;"));
  EXPECT_FALSE(log.ByFile("command;"));
  EXPECT_GT(Ring().before, 0U);
}

TEST_F(SyncPathTest, AFailedSyncOfTheFileIsNoBeginning) {
  RingSyncPath path(disk, kRing, 64 << 10);
  Log log(path);
  log.Prepare();
  log.fails = true;
  log.Append("first;");
  EXPECT_FALSE(log.MakeDurable());
  log.fails = false;
  EXPECT_TRUE(log.ByFile("second;"));
  EXPECT_FALSE(log.ByFile("command;"));
}

TEST_F(SyncPathTest, AFullRingAsksForTheFile) {
  RingSyncPath path(disk, kRing, 32 << 10);
  Log log(path);
  log.Prepare();
  EXPECT_TRUE(log.ByFile("first;"));
  int by_ring = 0;
  bool asked = false;
  while (!log.ByFile("command;")) {
    ++by_ring;
    asked = asked || path.wants_file_sync();
  }
  EXPECT_EQ(by_ring, 7);  // a block each, but for the first
  EXPECT_TRUE(asked);
  EXPECT_FALSE(path.wants_file_sync());
  EXPECT_FALSE(log.ByFile("command;"));
}

TEST_F(SyncPathTest, WithoutARingAllSyncsAreTheFiles) {
  RingSyncPath path(disk, kRing, 64 << 10);
  Log log(path);
  disk.set_faults([](CrashRecorder::Kind kind) { return kind == CrashRecorder::Kind::kPut; });
  log.Prepare();
  EXPECT_FALSE(path.has_ring());
  EXPECT_FALSE(path.wants_preparation());  // it would not work the next time either
  EXPECT_TRUE(log.ByFile("first;"));
  EXPECT_TRUE(log.ByFile("command;"));
}

TEST_F(SyncPathTest, ARingThatFailsIsLeft) {
  RingSyncPath path(disk, kRing, 64 << 10);
  Log log(path);
  log.Prepare();
  EXPECT_TRUE(log.ByFile("first;"));
  EXPECT_FALSE(log.ByFile("command;"));
  disk.set_faults([](CrashRecorder::Kind kind) { return kind == CrashRecorder::Kind::kPut; });
  EXPECT_TRUE(log.ByFile("command;"));
  disk.set_faults({});
  EXPECT_TRUE(log.ByFile("command;"));
  EXPECT_FALSE(path.wants_preparation());
}

TEST_F(SyncPathTest, ARingThatVanishedIsMadeAgain) {
  RingSyncPath path(disk, kRing, 64 << 10);
  Log log(path);
  EXPECT_TRUE(log.LookForFile());  // there is none to be missed
  log.Prepare();
  EXPECT_TRUE(log.ByFile("first;"));
  EXPECT_FALSE(log.ByFile("command;"));
  EXPECT_TRUE(log.LookForFile());
  ASSERT_TRUE(disk.Remove(kRing));
  EXPECT_FALSE(log.LookForFile());
  EXPECT_TRUE(log.ByFile("command;"));
  ASSERT_TRUE(path.wants_preparation());
  log.Prepare();
  EXPECT_TRUE(log.ByFile("command;"));
  EXPECT_FALSE(log.ByFile("command;"));
  path.Remove(log.lock());
  EXPECT_FALSE(disk.Exists(kRing));
  EXPECT_TRUE(log.ByFile("command;"));
}

}  // namespace
}  // namespace sava::storage
