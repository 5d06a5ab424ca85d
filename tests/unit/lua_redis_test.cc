// redis.*, the conversions of RESP3, and what libraries register.
#include "lua_fixture.h"

namespace sava::lua {
namespace {

TEST_F(LuaTest, RepliesOfRespThreeBecomeTables) {
  const auto get = [&](const std::string& raw, const std::string& expression) {
    host_.answer = [raw](std::span<const std::string_view>) { return raw; };
    return Eval("redis.setresp(3) local r = redis.call('x') return " + expression, {}, {}, 3);
  };
  EXPECT_EQ(get("%1\r\n+a\r\n:5\r\n", "type(r.map)"), "$5\r\ntable\r\n");
  EXPECT_EQ(get("%2\r\n$1\r\na\r\n:5\r\n$1\r\nb\r\n,1.5\r\n", "r.map.a + r.map.b.double * 2"),
            ":8\r\n");
  EXPECT_EQ(get("~2\r\n$1\r\na\r\n:5\r\n", "r.set.a and r.set[5]"), "#t\r\n");
  EXPECT_EQ(get(",inf\r\n", "r"), ",inf\r\n");
  EXPECT_EQ(get(",-1.5e3\r\n", "r"), ",-1500\r\n");
  EXPECT_EQ(get("#t\r\n", "r"), "#t\r\n");
  EXPECT_EQ(get("#f\r\n", "r"), "#f\r\n");
  EXPECT_EQ(get("_\r\n", "r == nil"), "#t\r\n");
  EXPECT_EQ(get("(12345678901234567890\r\n", "r"), "(12345678901234567890\r\n");
  EXPECT_EQ(get("=7\r\nmkd:abc\r\n", "r"), "=7\r\nmkd:abc\r\n");
  EXPECT_EQ(get("|1\r\n+k\r\n*1\r\n:1\r\n*1\r\n:7\r\n", "r"), "*1\r\n:7\r\n");
  EXPECT_EQ(get("%1\r\n_\r\n:5\r\n", "next(r.map) == nil"), "#t\r\n");
  EXPECT_EQ(get("*3\r\n:1\r\n_\r\n:3\r\n", "r[3]"), ":3\r\n");
  EXPECT_EQ(get("!9\r\nSYNTAX no\r\n", "1"), Failure("SYNTAX no"));
  EXPECT_EQ(get("$5\r\nab", "r"), Failure("ERR user_script:1: the reply is broken"));
  EXPECT_EQ(get("*1000000000\r\n:1\r\n", "r"), Failure("ERR user_script:1: the reply is broken"));
  EXPECT_EQ(host_.resps.back(), 3);
}

TEST_F(LuaTest, ResultsTakeTheFormOfTheClientsProtocol) {
  EXPECT_EQ(Eval("return {map={a=1}}", {}, {}, 3), "%1\r\n$1\r\na\r\n:1\r\n");
  EXPECT_EQ(Eval("return {map={a=1}}"), "*2\r\n$1\r\na\r\n:1\r\n");
  EXPECT_EQ(Eval("return {set={a=true}}", {}, {}, 3), "~1\r\n$1\r\na\r\n");
  EXPECT_EQ(Eval("return {double=0.1}", {}, {}, 3), ",0.1\r\n");
  EXPECT_EQ(Eval("return {double=0.1}"), "$3\r\n0.1\r\n");
  EXPECT_EQ(Eval("return {double=1e300}"), "$6\r\n1e+300\r\n");
  EXPECT_EQ(Eval("return {double=0/0}"), "$3\r\nnan\r\n");
  EXPECT_EQ(Eval("return {double=-0.0}"), "$2\r\n-0\r\n");
  EXPECT_EQ(Eval("return {verbatim_string={string='abc',format='m'}}", {}, {}, 3),
            "=7\r\nm  :abc\r\n");
  EXPECT_EQ(Eval("return {big_number='12\\r\\n3'}", {}, {}, 3), "(12  3\r\n");
  EXPECT_EQ(Eval("return nil", {}, {}, 3), "_\r\n");
  // Booleans go by the script's protocol first.
  EXPECT_EQ(Eval("return {true, false}", {}, {}, 3), "*2\r\n:1\r\n_\r\n");
  EXPECT_EQ(Eval("redis.setresp(3) return {true, false}", {}, {}, 3), "*2\r\n#t\r\n#f\r\n");
  EXPECT_EQ(Eval("redis.setresp(3) return {true, false}"), "*2\r\n:1\r\n:0\r\n");
  // The first of the names counts.
  EXPECT_EQ(Eval("return {err='A b', ok='c', double=1, map={}}"), "-A b\r\n");
  EXPECT_EQ(Eval("return {double=1, map={}, set={}, 5}"), "$1\r\n1\r\n");
}

TEST_F(LuaTest, TheServerIsToldOfLogsAndReplication) {
  EXPECT_EQ(Eval("redis.log(redis.LOG_NOTICE, 'a', 5, 'b') redis.set_repl(redis.REPL_AOF) "
                 "redis.set_repl(redis.REPL_NONE)"),
            "$-1\r\n");
  EXPECT_EQ(host_.logged, std::vector<std::string>{"2:a 5 b"});
  EXPECT_EQ(host_.replication, (std::vector<int>{1, 0}));
  EXPECT_EQ(Eval("return {redis.acl_check_cmd('get'), redis.acl_check_cmd('set')}"),
            "*2\r\n:1\r\n$-1\r\n");
  EXPECT_EQ(Eval("return redis.acl_check_cmd('nosuch')"),
            Failure("ERR Invalid command passed to redis.acl_check_cmd()"));
  EXPECT_EQ(Eval("return redis.set_repl()"),
            Failure("ERR redis.set_repl() requires one argument."));
  EXPECT_EQ(Eval("return {redis.REDIS_VERSION, redis.REDIS_VERSION_NUM}"),
            "*2\r\n$5\r\n7.2.4\r\n:459268\r\n");
}

TEST_F(LuaTest, NumbersBecomeTheirShortestText) {
  Eval(
      "redis.call('x', 0.1, 1e17, -0.0, 2^62, 2^63, 1e-7, 123456.789, 5e-324, 0/0, -math.huge, "
      "1.7976931348623157e308)");
  EXPECT_EQ(host_.calls.at(0),
            (std::vector<std::string>{"x", "0.1", "100000000000000000", "0", "4611686018427387904",
                                      "9223372036854776000", "1e-7", "123456.789", "5e-324", "nan",
                                      "-inf", "1.7976931348623157e+308"}));
}

class LuaLibraries : public LuaTest {
 protected:
  std::string Load(std::string_view body) {
    std::string error;
    return interpreter_.LoadLibrary(body, {}, &functions_, &error) ? "OK" : error;
  }
  std::string Call(size_t index, std::vector<std::string_view> keys = {},
                   std::vector<std::string_view> args = {}) {
    return Run(&interpreter_, {.handle = functions_.at(index).handle,
                               .name = functions_.at(index).name,
                               .function = true,
                               .keys = keys,
                               .args = args});
  }
  std::vector<Function> functions_;
};

TEST_F(LuaLibraries, RegisterFunctionsThatRun) {
  EXPECT_EQ(
      Load("local n = 0\n"
           "redis.register_function('count', function(keys, args) n = n + #keys + #args return n "
           "end)\n"
           "redis.register_function{function_name='fail', description='d', flags={'no-writes', "
           "'allow-stale'}, callback=function() error('x') end}\n"
           "redis.register_function('call', function(k, a) return redis.call('echo', k[1] .. a[1]) "
           "end)"),
      "OK");
  ASSERT_EQ(functions_.size(), 3u);
  EXPECT_EQ(Call(0, {"a"}, {"b", "c"}), ":3\r\n");
  EXPECT_EQ(Call(0, {"a"}), ":4\r\n");
  EXPECT_EQ(Call(1), "FAILED ERR user_function:3: x script: fail, on @user_function:3.");
  EXPECT_EQ(functions_[1].description, "d");
  EXPECT_TRUE(functions_[1].has_description);
  EXPECT_EQ(functions_[1].flags, static_cast<int>(FunctionFlag::kNoWrites) |
                                     static_cast<int>(FunctionFlag::kAllowStale));
  EXPECT_EQ(Call(2, {"k"}, {"v"}), "$2\r\nkv\r\n");
  // Scripts and functions take turns.
  EXPECT_EQ(Eval("return {redis.replicate_commands(), KEYS[1]}", {"k"}), "*2\r\n:1\r\n$1\r\nk\r\n");
  EXPECT_EQ(Call(0), ":4\r\n");
}

TEST_F(LuaLibraries, SeeWhatBelongsToTheirPhase) {
  EXPECT_EQ(Load("redis.register_function('keys', function() return KEYS end)"
                 "redis.register_function('names', function() return {tostring(redis.breakpoint), "
                 "tostring(redis.register_function), type(redis.call), type(math.random)} end)"
                 "redis.register_function('register', function() redis.register_function('x', "
                 "print) end)"),
            "OK");
  EXPECT_EQ(
      Call(0),
      "FAILED ERR user_function:1: Script attempted to access nonexistent global variable 'KEYS' "
      "script: keys, on @user_function:1.");
  EXPECT_EQ(Call(1), "*4\r\n$3\r\nnil\r\n$3\r\nnil\r\n$8\r\nfunction\r\n$8\r\nfunction\r\n");
  EXPECT_TRUE(Call(2).starts_with("FAILED ERR user_function:1: Script attempted to access"))
      << Call(2);
  for (const char* name : {"math", "pcall", "string", "error", "KEYS", "x"}) {
    EXPECT_EQ(
        Load("local x = " + std::string(name)),
        "Error registering functions: ERR user_function:1: Script attempted to access nonexistent "
        "global variable '" +
            std::string(name) + "'");
  }
  EXPECT_EQ(
      Load("redis.call('x')"),
      "Error registering functions: ERR user_function:1: Script attempted to access nonexistent "
      "global variable 'call'");
  EXPECT_EQ(Load("a = 1"),
            "Error registering functions: ERR user_function:1: Attempt to modify a readonly table");
}

TEST_F(LuaLibraries, WrongRegistrationsAreToldInRedissWords) {
  const auto fails = [&](const char* arguments, const char* error) {
    EXPECT_EQ(Load(std::string("redis.register_function") + arguments),
              "Error registering functions: ERR " + std::string(error));
    EXPECT_TRUE(functions_.empty());
  };
  fails("()", "wrong number of arguments to redis.register_function");
  fails("(1)",
        "calling redis.register_function with a single argument is only applicable to Lua table "
        "(representing named arguments).");
  fails("('a', 1)", "second argument to redis.register_function must be a function");
  fails("(nil, nil)", "first argument to redis.register_function must be a string");
  fails("('a', function() end, 3)", "wrong number of arguments to redis.register_function");
  fails("{a=1}", "unknown argument given to redis.register_function");
  fails("{'a'}", "named argument key given to redis.register_function is not a string");
  fails("{function_name={}}",
        "function_name argument given to redis.register_function must be a string");
  fails("{description={}}",
        "description argument given to redis.register_function must be a string");
  fails("{callback=1}", "callback argument given to redis.register_function must be a function");
  fails("{flags=1}",
        "flags argument to redis.register_function must be a table representing function flags");
  fails("{flags={'x'}}", "unknown flag given");
  fails("{function_name='x'}", "redis.register_function must get a callback argument");
  fails("{callback=function() end}", "redis.register_function must get a function name argument");
  fails(
      "('a b', function() end)",
      "Library names can only contain letters, numbers, or underscores(_) and must be at least one "
      "character long");
  EXPECT_EQ(Load("local f = function() end redis.register_function('a', f) "
                 "redis.register_function('a', f)"),
            "Error registering functions: ERR Function already exists in the library");
  EXPECT_EQ(Load("return 1"), "No functions registered");
  EXPECT_EQ(Load("x y"), "Error compiling function: user_function:1: '=' expected near 'y'");
}

TEST_F(LuaLibraries, AnEndlessLoadIsEnded) {
  std::string error;
  int asked = 0;
  EXPECT_FALSE(interpreter_.LoadLibrary(
      "while true do end", [&] { return ++asked > 3; }, &functions_, &error));
  EXPECT_EQ(error, "Error registering functions: ERR FUNCTION LOAD timeout");
  EXPECT_EQ(asked, 4);
  EXPECT_EQ(
      Load(
          "redis.log(redis.LOG_NOTICE, 'x') redis.register_function('a', function() return 1 end)"),
      "OK");
  EXPECT_EQ(Call(0), ":1\r\n");
}

TEST_F(LuaLibraries, AReleasedHandleIsUsedAgain) {
  EXPECT_EQ(Load("redis.register_function('a', function() return 1 end)"), "OK");
  const int handle = functions_[0].handle;
  interpreter_.Release(handle);
  std::string error;
  EXPECT_EQ(interpreter_.Compile("return 2", &error), handle);
  interpreter_.Release(0);
  interpreter_.Release(-1);
  EXPECT_EQ(Run(&interpreter_, {.handle = 12345, .name = "SHA"}).substr(0, 7), "FAILED ");
}

}  // namespace
}  // namespace sava::lua
