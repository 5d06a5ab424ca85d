// Dated names of snapshots, and which of them stay.
#include "storage/kept_snapshots.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace sava::storage {
namespace {

namespace fs = std::filesystem;

class KeptSnapshots : public ::testing::Test {
 protected:
  KeptSnapshots() {
    directory_ = (fs::temp_directory_path() / ("kept-" + std::to_string(getpid()))).string();
    fs::remove_all(directory_);
    fs::create_directory(directory_);
  }
  ~KeptSnapshots() override { fs::remove_all(directory_); }

  void Write(const std::string& name, const std::string& text) {
    // As a snapshot is written: another file gets the name.
    std::ofstream(PathIn(directory_, "temporary")) << text;
    fs::rename(PathIn(directory_, "temporary"), PathIn(directory_, name));
  }
  std::string Text(const std::string& name) const {
    std::ifstream in(PathIn(directory_, name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::vector<std::string> Names() const { return FileSystem::Real().List(directory_); }

  std::string directory_;
};

TEST_F(KeptSnapshots, NamesAreDates) {
  EXPECT_EQ(KeptSnapshotName("dump.rdb", 0), "197001010000000000-dump.rdb");
  EXPECT_EQ(KeptSnapshotName("afc.bin", 1629758096123), "202108232234561230-afc.bin");
}

TEST_F(KeptSnapshots, TheLastStay) {
  constexpr int64_t kTime = 1629758096000;
  for (int i = 0; i < 5; ++i) {
    Write("dump.rdb", "snapshot " + std::to_string(i));
    auto kept = KeepSnapshot(FileSystem::Real(), directory_, "dump.rdb", kTime + i, 3);
    ASSERT_TRUE(kept) << kept.error();
    EXPECT_EQ(*kept, KeptSnapshotName("dump.rdb", kTime + i));
  }
  EXPECT_EQ(Names(),
            (std::vector<std::string>{KeptSnapshotName("dump.rdb", kTime + 2),
                                      KeptSnapshotName("dump.rdb", kTime + 3),
                                      KeptSnapshotName("dump.rdb", kTime + 4), "dump.rdb"}));
  EXPECT_EQ(Text(KeptSnapshotName("dump.rdb", kTime + 2)), "snapshot 2");
  EXPECT_EQ(Text("dump.rdb"), "snapshot 4");
}

TEST_F(KeptSnapshots, OneInstantGivesTwoNames) {
  Write("dump.rdb", "a");
  auto first = KeepSnapshot(FileSystem::Real(), directory_, "dump.rdb", 7, 10);
  auto second = KeepSnapshot(FileSystem::Real(), directory_, "dump.rdb", 7, 10);
  ASSERT_TRUE(first && second);
  EXPECT_LT(*first, *second);
}

TEST_F(KeptSnapshots, OtherFilesStay) {
  const std::vector<std::string> others = {"202108232234561230-other.rdb", "20210823-dump.rdb",
                                           "2021082322345612x0-dump.rdb", "dump.rdb.2021-08-23"};
  for (const std::string& name : others) Write(name, "x");
  Write("dump.rdb", "a");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(KeepSnapshot(FileSystem::Real(), directory_, "dump.rdb", 100 + i, 1));
  }
  EXPECT_EQ(Names().size(), others.size() + 2);
}

TEST_F(KeptSnapshots, WhatCannotBeLinkedIsSaid) {
  auto kept = KeepSnapshot(FileSystem::Real(), directory_, "dump.rdb", 7, 1);
  ASSERT_FALSE(kept);
  EXPECT_NE(kept.error().find("dump.rdb"), std::string::npos);
}

}  // namespace
}  // namespace sava::storage
