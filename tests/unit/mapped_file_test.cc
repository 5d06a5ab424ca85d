// Files in memory: as they are, and as if they ended with other bytes.
#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace sava::base {
namespace {

class MappedFileTest : public ::testing::Test {
 protected:
  MappedFileTest() {
    char name[] = "/tmp/sava-mapped-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    directory_ = name;
    path_ = directory_ + "/file";
    for (size_t i = 0; i < 20000; ++i) whole_ += static_cast<char>('a' + i * 7 % 26);
    std::ofstream(path_) << whole_;
  }
  ~MappedFileTest() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
  std::string path_;
  std::string whole_;
};

TEST_F(MappedFileTest, HasTheBytesOfTheFile) {
  const auto file = MappedFile::Open(path_);
  ASSERT_TRUE(file);
  EXPECT_EQ(file.value().bytes(), whole_);
}

TEST_F(MappedFileTest, EndsWithOtherBytes) {
  for (const size_t offset : {0, 1, 4095, 4096, 4097, 19999, 20000}) {
    for (const size_t more : {0, 1, 5000, 40000}) {
      const std::string end(more, '!');
      const auto file = MappedFile::WithEnd(path_, offset, end);
      ASSERT_TRUE(file) << file.error();
      EXPECT_EQ(file.value().bytes(), whole_.substr(0, offset) + end);
      file.value().Release(0, offset + more);
      EXPECT_EQ(file.value().bytes(), whole_.substr(0, offset) + end) << "given back";
    }
  }
  std::ifstream in(path_);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), whole_) << "the file is as it was";
  EXPECT_FALSE(MappedFile::WithEnd(path_, 20001, "!"));
}

TEST_F(MappedFileTest, RefusesWhatIsNoRegularFile) {
  const std::string pipe = directory_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(MappedFile::Open(pipe));
  EXPECT_FALSE(MappedFile::WithEnd(pipe, 0, "x"));
  EXPECT_FALSE(MappedFile::Open(directory_ + "/missing"));
}

}  // namespace
}  // namespace sava::base
