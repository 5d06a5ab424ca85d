// Runs, arguments, errors and bounds of the interpreter.
#include "lua_fixture.h"

namespace sava::lua {
namespace {

TEST_F(LuaTest, RunsAScriptWithKeysAndArguments) {
  EXPECT_EQ(Eval("return KEYS[1] .. ARGV[2]", {"k"}, {"a", "b"}), "$2\r\nkb\r\n");
  EXPECT_EQ(Eval("return {#KEYS, #ARGV}", {"k"}, {"a", "b"}), "*2\r\n:1\r\n:2\r\n");
  EXPECT_EQ(Eval("return KEYS[1]"), "$-1\r\n");
}

TEST_F(LuaTest, CallsTheHostWithTextsOfNumbers) {
  EXPECT_EQ(Eval("return redis.call('set', KEYS[1], 12, 1.5, 1e20, -0.1)", {"k"}), "+OK\r\n");
  EXPECT_EQ(host_.calls.at(0),
            (std::vector<std::string>{"set", "k", "12", "1.5", "1e+20", "-0.1"}));
}

TEST_F(LuaTest, AnErrorNamesScriptAndLine) {
  EXPECT_EQ(Eval("error('x')"), Failure("ERR user_script:1: x"));
  EXPECT_EQ(Eval("\n\nerror('x')"), "FAILED ERR user_script:3: x script: SHA, on @user_script:3.");
  EXPECT_EQ(Eval("error({err='a b'})"), Failure("a b"));
  EXPECT_EQ(Eval("error({})"), Failure("ERR unknown error"));
  EXPECT_EQ(Eval("x y"), "COMPILE user_script:1: '=' expected near 'y'");
}

TEST_F(LuaTest, CommandErrorsAreRaisedOrReturned) {
  EXPECT_EQ(Eval("return redis.call('raw', '-WRONGTYPE no\\r\\n')"), Failure("WRONGTYPE no"));
  EXPECT_TRUE(interpreter_.error_counted());
  EXPECT_EQ(Eval("return redis.pcall('raw', '-WRONGTYPE no\\r\\n')"), "-WRONGTYPE no\r\n");
  EXPECT_TRUE(interpreter_.error_counted());
  EXPECT_EQ(Eval("return redis.pcall('raw', '-WRONGTYPE no\\r\\n').err"),
            "$12\r\nWRONGTYPE no\r\n");
  EXPECT_FALSE(interpreter_.error_counted());
  EXPECT_EQ(Eval("return {pcall(redis.call, 'raw', '-A b\\r\\n')}"), "*2\r\n$-1\r\n$3\r\nA b\r\n");
  EXPECT_EQ(Eval("local _, e = pcall(redis.call, 'raw', '-A b\\r\\n') return e"), "$3\r\nA b\r\n");
  EXPECT_EQ(Eval("redis.call()"),
            Failure("ERR Please specify at least one argument for this redis lib call"));
  EXPECT_FALSE(interpreter_.error_counted());
}

TEST_F(LuaTest, NoPcallSurvivesUnwindingOrKilling) {
  const std::string_view stubborn =
      "local f = function() redis.call('x') end "
      "xpcall(function() while true do pcall(f) coroutine.wrap(f)() end end, "
      "       function() while true do end end) "
      "while true do coroutine.resume(coroutine.create(f)) end";
  host_.unwind_at = 3;
  EXPECT_EQ(Eval(stubborn), "UNWOUND");
  EXPECT_EQ(host_.calls.size(), 3u);
  host_.unwind_at = 0;
  host_.interrupt_after = 2;
  EXPECT_EQ(Eval("while true do pcall(function() while true do end end) end"), "KILLED");
  EXPECT_EQ(Eval("xpcall(function() while true do end end, function() while true do end end)"),
            "KILLED");
  EXPECT_EQ(Eval("while true do coroutine.wrap(function() while true do end end)() end"), "KILLED");
  host_.interrupt_after = 0;
  EXPECT_EQ(Eval("return 1"), ":1\r\n");
}

TEST_F(LuaTest, AnUnwoundRunGivesItsRandomNumbersBack) {
  host_.unwind_at = 1;
  EXPECT_EQ(Eval("math.random() redis.call('x')"), "UNWOUND");
  EXPECT_EQ(Text("return tostring(math.random())"), "0.39646477363839");
}

}  // namespace
}  // namespace sava::lua
