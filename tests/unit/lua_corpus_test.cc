// Replays the corpus of the interpreter's fuzz target.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "../../fuzz/lua_property.h"
#include "lua/interpreter.h"

namespace sava::lua {
namespace {

TEST(LuaCorpus, HoldsItsProperty) {
  int replayed = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(SAVA_SOURCE_DIR) + "/fuzz/corpus/lua")) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)),
                            std::istreambuf_iterator<char>());
    EXPECT_EQ(CheckLua(bytes), "") << entry.path();
    ++replayed;
  }
  EXPECT_GE(replayed, 30);
}

}  // namespace
}  // namespace sava::lua
