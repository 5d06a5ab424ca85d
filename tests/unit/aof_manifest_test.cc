// The manifest of the append-only log: what is written reads back; what Redis refuses is refused.
#include "storage/aof_manifest.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "../../fuzz/aof_manifest_property.h"

namespace sava::storage {
namespace {

using Kind = AofFile::Kind;

TEST(AofManifest, ReadsWhatStockServersWrite) {
  const auto manifest = AofManifest::Parse(
      "file appendonly.aof.2.base.rdb seq 2 type b\n"
      "file appendonly.aof.1.incr.aof seq 1 type h\n"
      "file appendonly.aof.2.incr.aof seq 2 type i\n"
      "file appendonly.aof.3.incr.aof seq 3 type i\n");
  ASSERT_TRUE(manifest);
  ASSERT_NE(manifest.value().base(), nullptr);
  EXPECT_EQ(*manifest.value().base(), (AofFile{"appendonly.aof.2.base.rdb", 2, Kind::kBase}));
  EXPECT_EQ(manifest.value().increments(),
            (std::vector<AofFile>{{"appendonly.aof.2.incr.aof", 2, Kind::kIncrement},
                                  {"appendonly.aof.3.incr.aof", 3, Kind::kIncrement}}));
  EXPECT_EQ(manifest.value().highest(Kind::kIncrement), 3U);
  EXPECT_EQ(manifest.value().highest(Kind::kHistory), 1U);
  EXPECT_EQ(manifest.value().Text(),
            "file appendonly.aof.2.base.rdb seq 2 type b\n"
            "file appendonly.aof.2.incr.aof seq 2 type i\n"
            "file appendonly.aof.3.incr.aof seq 3 type i\n"
            "file appendonly.aof.1.incr.aof seq 1 type h\n");
}

TEST(AofManifest, TheLogInUseIsInTheLastLine) {
  AofManifest manifest;
  manifest.data_set = "6f0c6f0c6f0c6f0c6f0c6f0c6f0c6f0c";
  const std::string comment = "# sava-data-set " + manifest.data_set + "\n";
  manifest.files = {{"log.1.incr.aof", 1, Kind::kIncrement}};
  EXPECT_EQ(manifest.Text(), "file log.1.incr.aof seq 1 type i\n" + comment);
  manifest.files.insert(manifest.files.begin(), {"log.1.base.rdb", 1, Kind::kBase});
  EXPECT_EQ(manifest.Text(),
            "file log.1.base.rdb seq 1 type b\n" + comment + "file log.1.incr.aof seq 1 type i\n");
  const auto again = AofManifest::Parse(manifest.Text());
  ASSERT_TRUE(again);
  EXPECT_EQ(again.value().data_set, manifest.data_set);
}

TEST(AofManifest, TakesWhatStockServersTake) {
  const AofFile file{"a", 2, Kind::kIncrement};
  for (const char* text :
       {"seq 2 file a type i\n", "FILE a SEQ 2 TYPE i\n", "  file a seq 2 type i  \n",
        "file \"a\" seq 2 type i\n", "file a seq 2 type i\r\n", "file a seq 2 type incr\n",
        "# a comment\nfile a seq 2 type i\n", "file a seq 2 type i startoffset 10\n"}) {
    const auto manifest = AofManifest::Parse(text);
    ASSERT_TRUE(manifest) << text;
    EXPECT_EQ(manifest.value().files, std::vector<AofFile>{file}) << text;
  }
  EXPECT_TRUE(AofManifest::Parse("# only a comment\n"));
}

TEST(AofManifest, RefusesWhatStockServersRefuse) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "Found an empty AOF manifest"},
      {"\n", "Invalid AOF manifest file format"},
      {"file a seq 2 type b", "too long line"},  // no end of line
      {"file a seq 2 type b\n\n", "at line 2"},
      {"file a seq 2\n", "Invalid AOF manifest file format"},
      {"file a seq 2 type b more\n", "Invalid AOF manifest file format"},
      {"file a seq 2 kind b\n", "Invalid AOF manifest file format"},
      {"name a seq 2 type b\n", "Invalid AOF manifest file format"},
      {"file \"a seq 2 type b\n", "Invalid AOF manifest file format"},
      {"file \"\" seq 2 type b\n", "Invalid AOF manifest file format"},
      {"file a seq 0 type b\n", "Invalid AOF manifest file format"},
      {"file a seq x type b\n", "Invalid AOF manifest file format"},
      {"file a seq -1 type b\n", "Invalid AOF manifest file format"},
      {"file a seq 1 type z\n", "Unknown AOF file type"},
      {"file a/b seq 1 type b\n", "File can't be a path, just a filename"},
      {"file ../b seq 1 type b\n", "File can't be a path, just a filename"},
      {"file .. seq 1 type b\n", "File can't be a path, just a filename"},
      {"file a seq 1 type b\nfile b seq 2 type b\n", "Found duplicate base file information"},
      {"file a seq 2 type i\nfile b seq 1 type i\n", "Found a non-monotonic sequence number"},
      {"file a seq 1 type i\nfile b seq 1 type i\n", "Found a non-monotonic sequence number"},
      {"file a seq 1 type i\nfile a seq 2 type i\n", "Found a file twice"},
  };
  for (const auto& [text, error] : cases) {
    const auto manifest = AofManifest::Parse(text);
    ASSERT_FALSE(manifest) << text;
    EXPECT_NE(manifest.error().find(error), std::string::npos) << text << manifest.error();
  }
  EXPECT_FALSE(AofManifest::Parse("file " + std::string(1100, 'a') + " seq 1 type b\n"));
}

// A number after which there is none is not read, so it cannot begin again at 0.
TEST(AofManifest, RefusesNumbersThatCannotBeCountedOn) {
  EXPECT_TRUE(AofManifest::Parse("file a seq 9223372036854775807 type i\n"));
  EXPECT_FALSE(AofManifest::Parse("file a seq 9223372036854775808 type i\n"));
  EXPECT_FALSE(AofManifest::Parse("file a seq 18446744073709551615 type b\n"));
}

TEST(AofManifest, ReadsBackWhateverTheNames) {
  EXPECT_TRUE(rc::check([](const std::set<std::string>& names, bool base) {
    AofManifest manifest;
    uint64_t sequence = 1;
    for (const std::string& name : names) {
      if (name.empty() || name.size() > 200 || name == "." || name == ".." ||
          name.find('/') != std::string::npos || name.find('\0') != std::string::npos) {
        continue;
      }
      const Kind kind = base && manifest.files.empty() ? Kind::kBase : Kind::kIncrement;
      manifest.files.push_back({name, sequence++, kind});
    }
    RC_PRE(!manifest.files.empty());
    const auto again = AofManifest::Parse(manifest.Text());
    RC_ASSERT(again.ok());
    RC_ASSERT(again.value().files == manifest.files);
  }));
}

TEST(AofManifest, NamesFilesAsStockServersDo) {
  EXPECT_EQ(AofManifestName("appendonly.aof"), "appendonly.aof.manifest");
  EXPECT_EQ(AofBaseName("appendonly.aof", 3, true), "appendonly.aof.3.base.rdb");
  EXPECT_EQ(AofBaseName("appendonly.aof", 3, false), "appendonly.aof.3.base.aof");
  EXPECT_EQ(AofIncrementName("appendonly.aof", 4), "appendonly.aof.4.incr.aof");
}

TEST(AofManifest, FuzzCorpusHoldsItsProperty) {
  const auto corpus = std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/aof_manifest";
  int replayed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)),
                            std::istreambuf_iterator<char>());
    EXPECT_EQ(CheckAofManifest(bytes), "") << entry.path();
    ++replayed;
  }
  EXPECT_GE(replayed, 6);
}

}  // namespace
}  // namespace sava::storage
