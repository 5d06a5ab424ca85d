// The ring by way of which `always` syncs: what it takes, what it gives back after a power failure,
// and what it refuses.
#include "storage/aof_ring.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "../../fuzz/aof_ring_property.h"
#include "crash_recorder.h"

namespace sava::storage {
namespace {

const AofManifest kManifest{{{"log.3.incr.aof", 3, AofFile::Kind::kIncrement},
                             {"log.4.incr.aof", 4, AofFile::Kind::kIncrement}}};
const std::string kRing = "dir/log.ring";
const std::string kFile = "dir/log.4.incr.aof";

std::string Command(size_t number, size_t size = 10) {
  const std::string value = std::to_string(number) + std::string(size, 'v');
  return "*2\r\n$1\r\nX\r\n$" + std::to_string(value.size()) + "\r\n" + value + "\r\n";
}

std::string_view Before(std::string_view whole) {
  return whole.substr(whole.size() - std::min<size_t>(whole.size(), 100));
}

std::unique_ptr<AofRing> MakeRing(CrashRecorder& disk, uint64_t size = 64 << 10) {
  auto ring = AofRing::Make(disk, kRing, size);
  EXPECT_TRUE(ring);
  return std::move(*ring);
}

TEST(AofRingTest, GivesBackTheEndThatAFileLacks) {
  CrashRecorder disk;
  const auto ring = MakeRing(disk);
  std::string whole = "# before\r\n";
  const size_t before = whole.size();
  for (size_t i = 0; i < 5; ++i) {
    const std::string bytes = Command(i, 3000);
    ASSERT_TRUE(ring->Put(4, whole.size(), Before(whole), bytes, before).value());
    whole += bytes;
  }
  const std::string blocks = disk.ReadAll(kRing).value();
  for (size_t kept = before; kept <= whole.size(); kept += 97) {
    // Cut off, zeros, or something else from there on.
    for (const std::string& rest : {std::string(), std::string(500, '\0'), std::string("$9xx")}) {
      CrashRecorder after({{kRing, blocks}, {kFile, whole.substr(0, kept) + rest}});
      const auto look = RestoreFromRing(after, "dir", "log", kManifest, false);
      ASSERT_TRUE(look) << look.error();
      EXPECT_EQ(look.value().lacking, whole.size() - kept);
      EXPECT_EQ(after.ReadAll(kFile).value(), whole.substr(0, kept) + rest);
      ASSERT_TRUE(RestoreFromRing(after, "dir", "log", kManifest, true));
      EXPECT_EQ(after.ReadAll(kFile).value().substr(0, whole.size()), whole) << kept;
      const auto again = RestoreFromRing(after, "dir", "log", kManifest, true);
      EXPECT_EQ(again.value().lacking, 0U);
    }
  }
}

// Blocks of zeros within values: the commands are whole, and not what was written.
TEST(AofRingTest, FillsHoles) {
  CrashRecorder disk;
  const auto ring = MakeRing(disk);
  const std::string whole = Command(1, 20000) + Command(2, 20000);
  ASSERT_TRUE(ring->Put(4, 0, "", whole, 0).value());
  for (const size_t hole : {0, 4096, 8192, 36864}) {
    std::string found = whole;
    found.replace(hole, 2000, 2000, '\0');
    CrashRecorder after({{kRing, disk.ReadAll(kRing).value()}, {kFile, found + Command(3)}});
    const auto restored = RestoreFromRing(after, "dir", "log", kManifest, true);
    ASSERT_TRUE(restored) << restored.error();
    EXPECT_EQ(after.ReadAll(kFile).value(), whole);
  }
}

// What is restored is on the disk before anybody relies on it.
TEST(AofRingTest, SyncsWhatItRestores) {
  CrashRecorder disk;
  const auto ring = MakeRing(disk);
  ASSERT_TRUE(ring->Put(4, 0, "", Command(1), 0).value());
  CrashRecorder after({{kRing, disk.ReadAll(kRing).value()}, {kFile, ""}});
  ASSERT_TRUE(RestoreFromRing(after, "dir", "log", kManifest, true));
  std::mt19937_64 random(1);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(after.Crash(after.operations(), random).at(kFile), Command(1));
  }
}

TEST(AofRingTest, GoesRoundAndKeepsWhatIsNotSynced) {
  std::mt19937_64 random(7);
  CrashRecorder disk;
  const auto ring = MakeRing(disk);
  std::string whole;
  uint64_t synced = 0;
  size_t refused = 0;
  for (size_t i = 0; i < 2000; ++i) {
    const std::string bytes = Command(i, random() % 9000);
    const bool put = ring->Put(4, whole.size(), Before(whole), bytes, synced).value();
    if (!put) {
      // As the log does then: all of it is synced as a file.
      ++refused;
      whole += bytes;
      synced = whole.size();
      continue;
    }
    whole += bytes;
    const AofRingEnd end = ReadAofRing(disk.ReadAll(kRing).value());
    ASSERT_EQ(end.increment, 4U);
    ASSERT_LE(end.offset, synced);
    ASSERT_EQ(end.bytes, whole.substr(end.offset)) << i;
    if (random() % 8 == 0) synced = whole.size() - random() % bytes.size();
  }
  EXPECT_GT(refused, 10U);
  EXPECT_LT(refused, 1000U);
}

TEST(AofRingTest, EntriesOfAnEarlierIncrementMakeRoom) {
  CrashRecorder disk;
  const auto ring = MakeRing(disk, 12 << 10);
  ASSERT_TRUE(ring->Put(3, 0, "", Command(1), 0).value());
  ASSERT_TRUE(ring->Put(3, 50, "", Command(1), 0).value());
  ASSERT_FALSE(ring->Put(3, 100, "", Command(1), 0).value());
  EXPECT_TRUE(ring->half_full());
  ASSERT_TRUE(ring->Put(4, 0, "", Command(2), 0).value());
  const AofRingEnd end = ReadAofRing(disk.ReadAll(kRing).value());
  EXPECT_EQ(end.increment, 4U);
  EXPECT_EQ(end.bytes, Command(2));
}

// A value that looks like an entry is none, wherever it comes to stand: nobody knows the secret.
TEST(AofRingTest, ValuesAreNoEntries) {
  CrashRecorder elsewhere;
  const auto other = MakeRing(elsewhere);
  for (uint64_t i = 0; i < 9; ++i) {
    ASSERT_TRUE(other->Put(4, 0, "", "*1\r\n$8\r\nFLUSHALL\r\n", 0).value());
  }
  const std::string forged =
      elsewhere.ReadAll(kRing).value().substr(9 * Blocks::kSize, Blocks::kSize);
  CrashRecorder disk;
  const auto ring = MakeRing(disk, 20 << 10);
  const std::string bytes = std::string(Blocks::kSize - 56, 'x') + forged;
  ASSERT_TRUE(ring->Put(4, 0, "", bytes, 0).value());
  ASSERT_TRUE(ring->Put(4, bytes.size(), "", Command(1), bytes.size()).value());
  ASSERT_TRUE(ring->Put(4, bytes.size() + 50, "", Command(2), bytes.size()).value());
  ASSERT_TRUE(
      ring->Put(4, bytes.size() + 100, "", Command(3), bytes.size() + 99).value());  // again
  const std::string blocks = disk.ReadAll(kRing).value();
  ASSERT_NE(blocks.find("FLUSHALL"), std::string::npos);
  EXPECT_EQ(ReadAofRing(blocks).bytes, Command(3));
}

TEST(AofRingTest, RefusesWhatDoesNotFit) {
  CrashRecorder disk;
  const auto ring = MakeRing(disk);
  ASSERT_TRUE(ring->Put(4, 100, std::string(64, '#'), Command(1), 100).value());
  const std::string blocks = disk.ReadAll(kRing).value();
  const std::string before(100, '#');
  // A file that lost what had been synced, one with which somebody else has gone on, and one of
  // another log.
  for (const std::string& found :
       {before.substr(1), before + Command(2), std::string(100, 'x'), std::string(200, 'x')}) {
    CrashRecorder after({{kRing, blocks}, {kFile, found}});
    const auto restored = RestoreFromRing(after, "dir", "log", kManifest, true);
    ASSERT_FALSE(restored);
    EXPECT_NE(restored.error().find("To go on without them, remove dir/log.ring"),
              std::string::npos)
        << restored.error();
    EXPECT_EQ(after.ReadAll(kFile).value(), found);
  }
  // An increment that the manifest does not name any more, and no ring at all.
  CrashRecorder after(CrashRecorder::Contents{{kRing, blocks}});
  EXPECT_EQ(RestoreFromRing(after, "dir", "log", {}, true).value().file, "");
  CrashRecorder none;
  EXPECT_EQ(RestoreFromRing(none, "dir", "log", kManifest, true).value().file, "");
}

// Bits that are wrong in an entry end what joins there.
TEST(AofRingTest, DamagedEntriesAreLeftOut) {
  CrashRecorder disk;
  const auto ring = MakeRing(disk);
  std::string whole;
  for (size_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(ring->Put(4, whole.size(), Before(whole), Command(i), 0).value());
    whole += Command(i);
  }
  const std::string blocks = disk.ReadAll(kRing).value();
  for (size_t at = Blocks::kSize; at < 5 * Blocks::kSize; ++at) {
    if (at % Blocks::kSize >= 56 + Command(0).size()) continue;
    std::string damaged = blocks;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    const AofRingEnd end = ReadAofRing(damaged);
    const size_t entry = at / Blocks::kSize - 1;
    const size_t size = Command(0).size();
    EXPECT_EQ(end.bytes, entry == 3 ? whole.substr(0, 3 * size) : whole.substr((entry + 1) * size));
  }
}

TEST(AofRingTest, OnARealDisk) {
  const auto dir =
      std::filesystem::temp_directory_path() / ("sava_aof_ring_" + std::to_string(::getpid()));
  std::filesystem::remove_all(dir);
  std::filesystem::create_directory(dir);
  const std::string path = dir / "log.ring";
  FileSystem& files = FileSystem::Real();
  auto ring = AofRing::Make(files, path, 64 << 10);
  if (!ring) {
    std::filesystem::remove_all(dir);
    GTEST_SKIP() << ring.error();
  }
  std::string whole;
  for (size_t i = 0; i < 100; ++i) {
    const std::string bytes = Command(i, i * 90);
    ASSERT_TRUE((*ring)->Put(4, whole.size(), Before(whole), bytes, whole.size()).value());
    whole += bytes;
  }
  EXPECT_EQ(files.Size(path).value(), 64U << 10);
  const AofRingEnd end = ReadAofRing(files.ReadAll(path).value());
  EXPECT_EQ(end.bytes, whole.substr(end.offset));
  EXPECT_FALSE(AofRing::Make(files, dir / "no" / "log.ring", 64 << 10));
  std::filesystem::remove_all(dir);
}

TEST(AofRingTest, FuzzCorpusHoldsItsProperty) {
  const auto corpus = std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/aof_ring";
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    const std::string bytes = FileSystem::Real().ReadAll(entry.path()).value();
    EXPECT_EQ(CheckAofRing(bytes), "") << entry.path();
    ++files;
  }
  EXPECT_GT(files, 1U);
}

}  // namespace
}  // namespace sava::storage
