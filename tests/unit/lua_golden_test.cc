// Replies of many scripts, equal to what redis-server gives them: conversions, errors, base
// functions, and the libraries cjson, cmsgpack, struct and bit.
#include <fstream>

#include "base/text.h"
#include "lua_fixture.h"

namespace sava::lua {
namespace {

TEST_F(LuaTest, ScriptsAnswerAsInRedis) {
  host_.answer = [](std::span<const std::string_view> args) -> std::string {
    if (args[0] == "ping") return "+PONG\r\n";
    if (args[0] == "echo") {
      return "$" + std::to_string(args[1].size()) + "\r\n" + std::string(args[1]) + "\r\n";
    }
    return "-ERR Unknown Redis command called from script\r\n";
  };
  std::ifstream file(std::string(SAVA_SOURCE_DIR) + "/tests/unit/lua_golden.txt");
  int compared = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    const size_t tab = line.find('\t');
    ASSERT_NE(tab, std::string::npos) << line;
    const auto wanted = base::SplitArgs(line.substr(tab + 1));
    ASSERT_TRUE(wanted && wanted->size() == 1) << line;
    // Each in the state that the others leave.
    std::string reply = Eval(line.substr(0, tab));
    if (reply.starts_with("FAILED ")) reply = "-" + reply.substr(7) + "\r\n";
    if (reply.starts_with("COMPILE ")) {
      reply = "-ERR Error compiling script (new function): " + reply.substr(8) + "\r\n";
    }
    EXPECT_EQ(reply, wanted->front()) << line.substr(0, tab);
    ++compared;
  }
  EXPECT_GE(compared, 860);
}

}  // namespace
}  // namespace sava::lua
