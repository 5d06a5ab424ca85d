// Replays the request parser's fuzz corpus, so that what fuzzing found once stays found.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "../../fuzz/resp_property.h"

namespace sava {
namespace {

TEST(FuzzCorpus, RequestsHoldTheirProperty) {
  const std::filesystem::path corpus = std::filesystem::path(SAVA_SOURCE_DIR) / "fuzz/corpus/resp";
  int replayed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)),
                            std::istreambuf_iterator<char>());
    fuzz::CheckRequest(bytes);
    ++replayed;
  }
  EXPECT_GE(replayed, 8);
}

}  // namespace
}  // namespace sava
