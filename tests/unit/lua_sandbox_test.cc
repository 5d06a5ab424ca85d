// What scripts must not be able to do: every known hole of Lua 5.1 and its libraries, and the
// bounds of memory, stack and time.
#include "lua_fixture.h"

namespace sava::lua {
namespace {

std::string ReadOnly() { return Failure("ERR Attempt to modify a readonly table"); }
std::string ReadOnlyAt() {
  return Failure("ERR user_script:1: Attempt to modify a readonly table");
}

class LuaSandbox : public LuaTest {
 protected:
  // The state still works, and nothing of what scripts share has changed.
  void ExpectSound() {
    EXPECT_EQ(Eval("return {type(redis.call), type(cjson.encode), ('a'):upper(), math.abs(-1), "
                   "type(_G.redis), KEYS[1], #ARGV}",
                   {"k"}),
              "*7\r\n$8\r\nfunction\r\n$8\r\nfunction\r\n$1\r\nA\r\n:1\r\n$5\r\ntable\r\n$"
              "1\r\nk\r\n:0\r\n");
    host_ = FakeHost{};
  }
  void TearDown() override { ExpectSound(); }
};

TEST_F(LuaSandbox, GlobalsAndLibrariesAreReadOnly) {
  for (const char* body :
       {"a = 10", "redis = 1", "_G.x = 1", "_G = {}", "redis.call = 1", "string.upper = 1",
        "table.insert = 1", "math.abs = 1", "coroutine.wrap = 1", "cjson.encode = 1",
        "cmsgpack.pack = 1", "struct.pack = 1", "bit.band = 1", "redis.x = 1",
        "getmetatable(_G).__index = 1", "getmetatable('').__index = 1", "getmetatable('').x = 1",
        "string.x = 1"}) {
    EXPECT_EQ(Eval(body), ReadOnlyAt()) << body;
  }
  for (const char* library :
       {"_G", "redis", "string", "table", "math", "coroutine", "cjson", "cmsgpack", "struct", "bit",
        "getmetatable('')", "getmetatable(_G)"}) {
    for (const std::string& body : {"rawset(" + std::string(library) + ", 'x', 1)",
                                    "setmetatable(" + std::string(library) + ", {})",
                                    "setmetatable(" + std::string(library) + ", nil)",
                                    "table.insert(" + std::string(library) + ", 1)",
                                    "table.insert(" + std::string(library) + ", 1, 1)"}) {
      EXPECT_EQ(Eval(body), ReadOnly()) << body;
    }
  }
  EXPECT_EQ(Eval("table.sort(redis, function() return true end) return table.remove(redis)"),
            "$-1\r\n");
}

TEST_F(LuaSandbox, BasicTypesHaveNoMetatablesToPoison) {
  for (const char* value : {"nil", "123", "true", "function() end",
                            "coroutine.create(function() end)", "redis", "cjson", "cjson.null"}) {
    EXPECT_EQ(Eval("return getmetatable(" + std::string(value) + ")"), "$-1\r\n") << value;
  }
}

TEST_F(LuaSandbox, ReadOnlyTablesAreReadAsOthers) {
  EXPECT_EQ(Eval("local n = 0 for k, v in pairs(bit) do n = n + 1 end return n"), ":12\r\n");
  EXPECT_EQ(Eval("local n = 0 for k, v in next, bit do n = n + 1 end return n"), ":12\r\n");
  EXPECT_EQ(Eval("local n = 0 table.foreach(bit, function() n = n + 1 end) return n"), ":12\r\n");
  EXPECT_EQ(Eval("return rawget(redis, 'LOG_WARNING')"), ":3\r\n");
  EXPECT_EQ(Eval("return setmetatable({}, {__index = string}).upper('a')"), "$1\r\nA\r\n");
  EXPECT_EQ(Eval("local t = setmetatable({}, getmetatable('')) return t.upper('a')"),
            "$1\r\nA\r\n");
  EXPECT_EQ(Eval("return next(getmetatable(_G)) == nil"), ":1\r\n");
}

TEST_F(LuaSandbox, WhatIsUnsafeIsAbsent) {
  for (const char* name : {"print", "dofile", "loadfile", "require", "module", "package", "io",
                           "os", "debug", "getfenv", "setfenv", "newproxy"}) {
    EXPECT_EQ(
        Eval("return " + std::string(name)),
        Failure("ERR user_script:1: Script attempted to access nonexistent global variable '" +
                std::string(name) + "'"));
  }
}

TEST_F(LuaSandbox, ANameThatIsNoTextIsRefusedToo) {
  EXPECT_EQ(
      Eval("return _G[12]"),
      Failure(
          "ERR user_script:1: Script attempted to access nonexistent global variable 'number'"));
  EXPECT_EQ(
      Eval("return _G[{}]"),
      Failure("ERR user_script:1: Script attempted to access nonexistent global variable 'table'"));
}

TEST_F(LuaSandbox, NoBytecodeIsLoaded) {
  EXPECT_EQ(Eval("return loadstring(string.dump(function() end))"), "$-1\r\n");
  EXPECT_EQ(Eval("return load(function() local s = string.dump(function() end) return s end)"),
            "$-1\r\n");
  EXPECT_EQ(Eval("local a = {'\\27', 'Lua'} local i = 0 "
                 "return load(function() i = i + 1 return a[i] end)"),
            "$-1\r\n");
  EXPECT_TRUE(Eval("\x1bLua").starts_with("COMPILE user_script:1: unexpected symbol"))
      << Eval("\x1bLua");
}

TEST_F(LuaSandbox, CollectingWhileASourceIsReadIsHarmless) {
  EXPECT_EQ(
      Eval("local n = 0 "
           "local f = load(function() n = n + 1 collectgarbage() "
           "  if n < 300 then return 'local a' .. n .. ' = ' .. n .. ' do end a' .. n .. ' = nil ' "
           "  end end, ('x'):rep(5000) .. '\\0' .. n) "
           "collectgarbage() return type(f)"),
      "$3\r\nnil\r\n");
  EXPECT_EQ(
      Eval("for i = 1, 200 do "
           "  loadstring(('local x = {1,2,3} '):rep(100), '@' .. ('name' .. i):rep(100) .. '\\0x') "
           "  collectgarbage('step', 100) end return 1"),
      ":1\r\n");
  EXPECT_EQ(Eval("local f, e = loadstring('x x', '=' .. ('n'):rep(10000)) return #e < 200"),
            ":1\r\n");
}

TEST_F(LuaSandbox, UnpackTakesNoWildBounds) {
  const std::string error = Failure("ERR user_script:1: too many results to unpack");
  EXPECT_EQ(Eval("return {unpack({}, -2147483648, 2147483647)}"), error);
  EXPECT_EQ(Eval("return {unpack({}, 0, 2147483647)}"), error);
  EXPECT_EQ(Eval("return {unpack({}, -1e300, 1e300)}"), error);
  EXPECT_EQ(Eval("return {unpack({}, 1, 8001)}"), error);
  EXPECT_EQ(Eval("return {unpack({}, 2147483647, -2147483648)}"), "*0\r\n");
  EXPECT_EQ(Eval("return {unpack({1}, 0/0, 0/0)}"), "*0\r\n");
  EXPECT_EQ(Eval("return select('#', unpack({}, 2147483640, 2147483647))"), ":8\r\n");
}

TEST_F(LuaSandbox, BitTakesNoWildWidth) {
  EXPECT_EQ(Text("return bit.tohex(65535, -2147483648)"), "0000FFFF");
  EXPECT_EQ(Text("return bit.tohex(65535, 2147483647)"), "0000ffff");
}

TEST_F(LuaSandbox, LongBracketsAreBounded) {
  Interpreter small(Limits{.memory = 1 << 24, .source = 1 << 16});
  EXPECT_EQ(EvalIn(&small, std::string(70000, '=')), "COMPILE source is too long");
  EXPECT_TRUE(
      EvalIn(&small, "return [" + std::string(60000, '=')).starts_with("COMPILE user_script:1:"));
  EXPECT_EQ(EvalIn(&small, "return loadstring('return [' .. ('='):rep(100000) .. '[')"), "$-1\r\n");
  EXPECT_EQ(EvalIn(&small, "local f, e = load(function() return ('='):rep(10000) end) return e"),
            "$18\r\nsource is too long\r\n");
  EXPECT_TRUE(EvalIn(&small, "return " + std::string(1000, '('))
                  .starts_with("COMPILE user_script:1: "
                               "chunk has too many syntax levels"));
}

TEST_F(LuaSandbox, StructTakesNoWildSizes) {
  EXPECT_EQ(Eval("return struct.pack('i2147483648', 1)"),
            Failure("ERR user_script:1: integral size overflow"));
  EXPECT_EQ(Eval("return struct.unpack('c2147483647', 'x')"),
            Failure("ERR user_script:1: bad argument #2 to 'unpack' (data string too short)"));
  EXPECT_EQ(Eval("return struct.unpack('!8i8', 'abcdefgh', 2^53)"),
            Failure("ERR user_script:1: bad argument #2 to 'unpack' (data string too short)"));
  EXPECT_EQ(Eval("return struct.unpack('dc0', ('x'):rep(20))"),
            Failure("ERR user_script:1: bad argument #2 to 'unpack' (data string too short)"));
  EXPECT_EQ(Eval("return #struct.pack('c0', ('x'):rep(100000))"), ":100000\r\n");
  EXPECT_EQ(Eval("return select('#', struct.unpack(('b'):rep(7000), ('x'):rep(7000)))"),
            ":7001\r\n");
  EXPECT_EQ(Eval("return select('#', struct.unpack(('b'):rep(9000), ('x'):rep(9000)))"),
            Failure("ERR user_script:1: stack overflow (too many results)"));
}

TEST_F(LuaSandbox, MessagePackTakesNoWildSizesOrDepth) {
  EXPECT_EQ(Eval("return cmsgpack.unpack('\\221\\255\\255\\255\\255')"),
            Failure("ERR user_script:1: Missing bytes in input."));
  EXPECT_EQ(Eval("return cmsgpack.unpack('\\223\\255\\255\\255\\255')"),
            Failure("ERR user_script:1: Missing bytes in input."));
  EXPECT_EQ(Eval("return cmsgpack.unpack('\\219\\255\\255\\255\\255')"),
            Failure("ERR user_script:1: Missing bytes in input."));
  EXPECT_EQ(Eval("return cmsgpack.unpack(('\\145'):rep(1000000))"),
            Failure("ERR user_script:1: stack overflow (in function mp_decode_to_lua_array)"));
  EXPECT_EQ(Eval("return cmsgpack.unpack(('\\129'):rep(1000000))"),
            Failure("ERR user_script:1: stack overflow (in function mp_decode_to_lua_hash)"));
  EXPECT_EQ(Eval("local t = {} t[1] = t return #cmsgpack.pack(t)"), ":17\r\n");
  EXPECT_EQ(
      Eval("return cmsgpack.unpack(('\\1'):rep(100000))"),
      Failure(
          "ERR user_script:1: stack overflow (too many return values at once; use unpack_one or "
          "unpack_limit instead.)"));
}

TEST_F(LuaSandbox, JsonTakesNoWildDepthOrHoles) {
  EXPECT_EQ(Eval("local t = {} t[1] = t return cjson.encode(t)"),
            Failure("ERR user_script:1: Cannot serialise, excessive nesting (1001)"));
  EXPECT_TRUE(
      Eval("cjson.encode_max_depth(2147483647) local t = {} t[1] = t return cjson.encode(t)")
          .starts_with("FAILED ERR user_script:1: Cannot serialise, excessive nesting ("));
  EXPECT_TRUE(
      Eval("cjson.decode_max_depth(2147483647) return cjson.decode(('['):rep(1000000))")
          .starts_with("FAILED ERR user_script:1: Found too many nested data structures ("));
  Interpreter small(Limits{.memory = 16 << 20});
  for (const char* body :
       {"cjson.encode_sparse_array(false, 0) return #cjson.encode({[2147483647] = 1})",
        "cjson.encode_sparse_array(false, 0) return #cjson.encode({[1e300] = 1})",
        "local s = ('\"'):rep(1e6) local t = {} for i = 1, 10 do t[i] = s end return "
        "#cjson.encode(t)"}) {
    EXPECT_EQ(EvalIn(&small, body), Failure("ERR not enough memory")) << body;
  }
}

TEST_F(LuaSandbox, EachRunBeginsWithTheDefaultsOfJson) {
  EXPECT_EQ(Eval("cjson.encode_max_depth(1) cjson.encode_number_precision(2) "
                 "cjson.encode_invalid_numbers(true) return cjson.encode(1/3)"),
            "$4\r\n0.33\r\n");
  EXPECT_EQ(Eval("return cjson.encode({{1/3}})"), "$20\r\n[[0.33333333333333]]\r\n");
}

TEST_F(LuaSandbox, MemoryIsBoundedAndTheStateLivesOn) {
  Interpreter small(Limits{.memory = 4 << 20});
  const size_t before = small.memory();
  EXPECT_EQ(EvalIn(&small, "local t = {} while true do t[#t + 1] = {} end"),
            "FAILED ERR Error running script SHA, not enough memory");
  EXPECT_EQ(EvalIn(&small, "local s = 'x' while true do s = s .. s end"),
            "FAILED ERR Error running script SHA, not enough memory");
  // Garbage is collected before the bound is reached.
  EXPECT_EQ(EvalIn(&small, "for i = 1, 300000 do local t = {i, i, i} end return 1"), ":1\r\n");
  EXPECT_EQ(
      EvalIn(&small, "return (pcall(function() local s = 'x' while true do s = s .. s end end))"),
      "$-1\r\n");
  EXPECT_EQ(EvalIn(&small, "return redis.call('echo', ('x'):rep(1000000)) .. 'y'").size(),
            1000001u + 12);
  EXPECT_EQ(EvalIn(&small, "local t = {} for i = 1, 100 do t[i] = ('x'):rep(100000 + i) end"),
            "FAILED ERR Error running script SHA, not enough memory");
  small.CollectAll();
  EXPECT_LT(small.memory(), before + (256 << 10));
}

TEST_F(LuaSandbox, MemoryMayEndAtAnyPlace) {
  constexpr std::string_view kBody =
      "local t = cjson.decode('[1,{\"a\":[2,\"x\"]}]') local p = cmsgpack.pack(t, KEYS, ARGV) "
      "local s = struct.pack('<i4s', 5, 'abc') .. ('ab'):gsub('(a)', '%1%1') .. bit.tohex(1) "
      "local c = coroutine.wrap(function(a) return pcall(function() return a .. redis.call('echo', "
      "'y') end) end) "
      "local ok, r = c('x') local f = loadstring('return ' .. #p) "
      "if not ok then error(r, 0) end return {cjson.encode(t), s, r, f(), redis.sha1hex('')}";
  std::string wanted;
  int failed = 0;
  for (size_t memory = 0; memory < 24000; memory += 61) {
    interpreter_.SetLimits(Limits{.memory = memory});
    const std::string reply = Eval(kBody, {"key"}, {"argument"});
    if (reply.starts_with('*')) {
      if (wanted.empty()) wanted = reply;
      EXPECT_EQ(reply, wanted) << memory;
    } else {
      EXPECT_NE(reply.find("not enough memory"), std::string::npos) << memory << reply;
      EXPECT_TRUE(wanted.empty() || memory < 20000) << memory;
      ++failed;
    }
    interpreter_.SetLimits(Limits{});
    interpreter_.CollectAll();
    ASSERT_EQ(Eval("return {type(redis.call), KEYS[1]}", {"k"}),
              "*2\r\n$8\r\nfunction\r\n$1\r\nk\r\n")
        << memory;
  }
  EXPECT_GT(failed, 50);
  EXPECT_FALSE(wanted.empty());
}

TEST_F(LuaSandbox, GarbageInLargeStringsDoesNotFillTheBound) {
  Interpreter small(Limits{.memory = 16 << 20});
  EXPECT_EQ(EvalIn(&small,
                   "local l = {} for i = 1, 20000 do l[i] = {i} end local s = ('x'):rep(1e6) "
                   "for i = 1, 500 do local t = s .. i end return 1"),
            ":1\r\n");
  EXPECT_EQ(EvalIn(&small,
                   "local s = ('x'):rep(1e6) for i = 1, 300 do "
                   "local t = coroutine.wrap(function() return s .. i end)() end return 1"),
            ":1\r\n");
}

TEST_F(LuaSandbox, ALargeReplyOrArgumentIsBoundedToo) {
  Interpreter small(Limits{.memory = 4 << 20});
  host_.answer = [](std::span<const std::string_view>) {
    std::string reply = "*100000\r\n";
    for (int i = 0; i < 100000; ++i)
      reply += "$40\r\n" + std::string(30, 'x') + std::to_string(1000000000 + i) + "\r\n";
    return reply;
  };
  EXPECT_TRUE(
      EvalIn(&small, "return #redis.call('x')").starts_with("FAILED ERR Error running script"));
  const std::string large(5 << 20, 'x');
  EXPECT_TRUE(EvalIn(&small, "return 1", {large}).starts_with("FAILED ERR Error running script"));
  EXPECT_EQ(EvalIn(&small, "return 1"), ":1\r\n");
}

TEST_F(LuaSandbox, RecursionEndsWithAnError) {
  EXPECT_EQ(Eval("local function f() return f() + 1 end return f()"),
            Failure("ERR user_script:1: stack overflow"));
  for (const char* body :
       {"local function f() return coroutine.wrap(f)() end return f()",
        "local function f() return string.gsub('a', 'a', f) end return f()",
        "local function f() return pcall(f) end local a, b = f() return error(b)",
        "local t = {} setmetatable(t, {__tostring = function(x) return tostring(x) end}) return "
        "tostring(t)",
        "local t = setmetatable({}, {__index = function(t, k) return t[k + 1] end}) return t[1]",
        "local function f() return load(f) end return error(select(2, f()))",
        "local function f() table.sort({1, 2, 3}, f) end f()",
        "local t = {} for i = 1, 5000 do t = setmetatable({}, {__index = t}) end return t.x"}) {
    EXPECT_TRUE(Eval(body).starts_with("FAILED ERR ")) << body << Eval(body).substr(0, 100);
  }
}

TEST_F(LuaSandbox, ResultsOfAnyDepthAreWritten) {
  const std::string reply = Eval("local t = {} t[1] = t return t");
  EXPECT_TRUE(reply.ends_with("-ERR reached lua stack limit\r\n"));
  EXPECT_TRUE(Eval("local t = {} t.map = t return t", {}, {}, 3).ends_with("\r\n"));
  EXPECT_EQ(Eval("return setmetatable({}, {__index = function() error('never') end})"), "*0\r\n");
}

TEST_F(LuaSandbox, NothingOfOneRunReachesTheNext) {
  Interpreter open(Limits{.deprecated_api = true});
  for (const char* body :
       {"setfenv(0, {}) return 1", "setfenv(1, {}) return 1",
        "local g = getfenv(0) setfenv(0, setmetatable({}, {__index = g})) return 1",
        "setfenv(coroutine.running() or 0, {}) return 1"}) {
    EXPECT_EQ(EvalIn(&open, body), ":1\r\n") << body;
    EXPECT_EQ(EvalIn(&open, "return type(redis.call)"), "$8\r\nfunction\r\n") << body;
    EXPECT_EQ(EvalIn(&open, "return loadstring('return type(redis.call)')()"),
              "$8\r\nfunction\r\n");
  }
  std::string error;
  const int handle = open.Compile("local t = type(redis) setfenv(1, {}) return t", &error);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(Run(&open, {.handle = handle, .name = "SHA"}), "$5\r\ntable\r\n");
  EXPECT_EQ(EvalIn(&open, "rawset(getfenv(redis.call), 'x', 1)"), ReadOnly());
  EXPECT_EQ(EvalIn(&open, "setfenv(redis.call, {})"),
            Failure("ERR user_script:1: 'setfenv' cannot change environment of given object"));
  EXPECT_EQ(Eval("KEYS[1] = 'changed' ARGV = nil", {"k"}), ReadOnlyAt());
  EXPECT_EQ(Eval("return KEYS[1]", {"k"}), "$1\r\nk\r\n");
  EXPECT_EQ(Eval("redis.setresp(3) return redis.call('x')"), "+OK\r\n");
  EXPECT_EQ(Eval("return redis.call('x')"), "+OK\r\n");
  EXPECT_EQ(host_.resps.back(), 2);
}

TEST_F(LuaSandbox, ThereAreNoFinalizers) {
  Interpreter open(Limits{.deprecated_api = true});
  EXPECT_EQ(EvalIn(&open, "return getmetatable(newproxy(true))"), "$-1\r\n");
  EXPECT_EQ(EvalIn(&open, "return type(newproxy(newproxy(true)))"), "$8\r\nuserdata\r\n");
  EXPECT_EQ(
      EvalIn(&open,
             "setmetatable({}, {__gc = function() redis.call('never') end}) collectgarbage()"),
      "$-1\r\n");
  EXPECT_TRUE(host_.calls.empty());
}

TEST_F(LuaSandbox, TheDeprecatedFunctionsCanBeSwitched) {
  Interpreter interpreter(Limits{});
  interpreter.SetLimits(Limits{.deprecated_api = true});
  EXPECT_EQ(EvalIn(&interpreter, "return type(getfenv) .. type(setfenv) .. type(newproxy)"),
            "$24\r\nfunctionfunctionfunction\r\n");
  interpreter.SetLimits(Limits{});
  EXPECT_TRUE(EvalIn(&interpreter, "return getfenv").starts_with("FAILED"));
}

TEST_F(LuaSandbox, WorkOutsideOfLuaCodeCanBeKilled) {
  for (const char* body :
       {"while true do collectgarbage() end",
        "local t = {} for i = 1, 1e5 do t[i] = i end "
        "while true do table.insert(t, 1, 0) table.remove(t, 1) end",
        "local s = ('x'):rep(1e6) local i = 0 while true do i = i + 1 local t = s .. i end",
        "table.insert({}, -2147483648, 1)",
        "local s = ('x'):rep(1e6) while true do s:find('y', 1, true) end",
        "local s = ('x'):rep(1e6) while true do redis.sha1hex(s) end"}) {
    host_ = FakeHost{};
    host_.interrupt_after = 5;
    EXPECT_EQ(Eval(body), "KILLED") << body;
  }
}

TEST_F(LuaSandbox, AHandlerCannotHoldUpAKill) {
  host_.interrupt_after = 2;
  EXPECT_EQ(Eval("xpcall(function() while true do end end, function() while true do end end)"),
            "KILLED");
  host_ = FakeHost{};
  host_.interrupt_after = 2;
  EXPECT_EQ(
      Eval("local c = coroutine.wrap(function() "
           "  xpcall(function() while true do end end, function() while true do end end) end) "
           "while true do pcall(c) end"),
      "KILLED");
}

TEST_F(LuaSandbox, ErrorsOfAnyShapeAreTold) {
  EXPECT_EQ(Eval("error(redis)"), "FAILED ERR unknown error");
  EXPECT_EQ(Eval("error(_G)"), "FAILED ERR unknown error");
  EXPECT_EQ(Eval("error({err = 5})"), Failure("5"));
  EXPECT_EQ(Eval("error({err = {}})"), Failure("ERR unknown error"));
  EXPECT_EQ(
      Eval(
          "error(setmetatable({}, {__index = function() error('never') end, __newindex = error}))"),
      Failure("ERR unknown error"));
  EXPECT_EQ(Eval("error(function() end)"), Failure("ERR function"));
  EXPECT_EQ(Eval("error({err = 'A b', source = 'x', line = 9})"), Failure("A b"));
}

}  // namespace
}  // namespace sava::lua
