// The locks of a data set's files: who gets them, who is told what, what is left behind.
#include "storage/data_lock.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace sava::storage {
namespace {

class DataLockTest : public ::testing::Test {
 protected:
  DataLockTest() {
    char name[] = "/tmp/sava-lock-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    directory_ = name;
    path_ = directory_ + "/" + DataLockName("dump.rdb");
  }
  ~DataLockTest() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
  std::string path_;
};

TEST_F(DataLockTest, OneHoldsItAndTheNextIsToldWho) {
  auto first = DataLock::Take(path_, "/a/place");
  ASSERT_TRUE(first) << first.error();
  EXPECT_EQ((*first)->trouble(), "");
  const auto second = DataLock::Take(path_);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().find("(process " + std::to_string(getpid()) + ")"), std::string::npos)
      << second.error();
  const auto holder = DataLock::HolderOf(path_);
  ASSERT_TRUE(holder.has_value());
  EXPECT_EQ(holder->pid, getpid());
  EXPECT_EQ(holder->place, "/a/place");
  first->reset();
  EXPECT_FALSE(DataLock::HolderOf(path_).has_value());
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_TRUE(DataLock::Take(path_));
}

TEST_F(DataLockTest, AFileWithoutAHolderHoldsNobodyUp) {
  std::ofstream(path_) << "1\n\n";
  EXPECT_FALSE(DataLock::HolderOf(path_).has_value());
  EXPECT_TRUE(DataLock::Take(path_));
}

// Closing another descriptor of the file leaves the lock.
TEST_F(DataLockTest, LookingDoesNotTakeItAway) {
  const auto lock = DataLock::Take(path_);
  ASSERT_TRUE(lock);
  EXPECT_TRUE(DataLock::HolderOf(path_).has_value());
  std::ifstream(path_).get();
  EXPECT_TRUE(DataLock::HolderOf(path_).has_value());
}

TEST_F(DataLockTest, OneProcessSharesIt) {
  DataLocks locks;
  auto first = locks.Take(path_);
  auto second = locks.Take(path_);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, *second);
  first->reset();
  EXPECT_TRUE(DataLock::HolderOf(path_).has_value());
  second->reset();
  EXPECT_FALSE(DataLock::HolderOf(path_).has_value());
}

TEST_F(DataLockTest, WhatIsNoRegularFileIsRefused) {
  const std::string victim = directory_ + "/victim";
  std::ofstream(victim) << "mine";
  ASSERT_EQ(symlink(victim.c_str(), path_.c_str()), 0);
  EXPECT_FALSE(DataLock::Take(path_));
  EXPECT_EQ(std::filesystem::file_size(victim), 4U);
  std::filesystem::remove(path_);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(DataLock::Take(path_));
  EXPECT_FALSE(DataLock::HolderOf(path_).has_value());
}

// Where no file can be made the server works without, and can say why.
TEST_F(DataLockTest, ADirectoryThatIsMissingIsTrouble) {
  const auto lock = DataLock::Take(directory_ + "/missing/dump.rdb.lock");
  ASSERT_TRUE(lock);
  EXPECT_NE(lock.value()->trouble(), "");
}

// Files come and go while many want the lock: never two have it.
TEST_F(DataLockTest, NeverTwoHaveIt) {
  std::atomic<int> holders{0};
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        auto lock = DataLock::Take(path_);
        if (!lock) continue;
        EXPECT_EQ(holders.fetch_add(1), 0);
        ++taken;
        holders.fetch_sub(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(taken.load(), 0);
}

}  // namespace
}  // namespace sava::storage
