// Patterns and rep, against what Lua 5.1 answers, and their bounds.
#include "lua_fixture.h"

namespace sava::lua {
namespace {

TEST_F(LuaTest, PatternsMatchAsLuaDoes) {
  EXPECT_EQ(Eval("return {string.find('abc','b',1,true)}"), "*2\r\n:2\r\n:2\r\n");
  EXPECT_EQ(Eval("return {string.find('abc','()b()')}"), "*4\r\n:2\r\n:2\r\n:2\r\n:3\r\n");
  EXPECT_EQ(Eval("return {string.find('abc','b)')}"), "*0\r\n");
  EXPECT_EQ(Eval("return {string.find('aaa', '', 10)}"), "*2\r\n:4\r\n:3\r\n");
  EXPECT_EQ(Eval("return {string.find('aaa', 'a', -10)}"), "*2\r\n:1\r\n:1\r\n");
  EXPECT_EQ(Eval("return {string.find('a\\0b','%z')}"), "*2\r\n:2\r\n:2\r\n");
  EXPECT_EQ(Text("return string.match('  x ','^%s*(.-)%s*$')"), "x");
  EXPECT_EQ(Text("return string.match('[[x]]', '%b[]')"), "[[x]]");
  EXPECT_EQ(Text("return string.match('a-b]', '[]-]')"), "-");
  EXPECT_EQ(Text("return string.match('a^b', '[%^x]')"), "^");
  EXPECT_EQ(Text("return string.match('abc123-', '[%a-z%d]+')"), "abc123-");
  EXPECT_EQ(Text("return string.match('THE (quick) fox', '%f[%a]%l+%f[%A]')"), "quick");
  EXPECT_EQ(Text("return string.match('xyzzyx', '(.)%1')"), "z");
  EXPECT_EQ(Eval("return {string.match('key=val', '(%w+)=(%w+)')}"),
            "*2\r\n$3\r\nkey\r\n$3\r\nval\r\n");
  EXPECT_EQ(Text("local t = '' for k, v in ('a=1,b=2'):gmatch('(%w)=(%w)') do t = t .. k .. v end "
                 "return t"),
            "a1b2");
  EXPECT_EQ(Text("local t = 0 for k in ('abc'):gmatch('') do t = t + 1 end return tostring(t)"),
            "4");
}

TEST_F(LuaTest, SubstitutionsAreAsInLua) {
  EXPECT_EQ(Text("return string.gsub('abc', '', '-')"), "-a-b-c-");
  EXPECT_EQ(Text("return string.gsub('hello world','%w+','%0 %0',1)"), "hello hello world");
  EXPECT_EQ(Text("return string.gsub('abc','%w','%%%0')"), "%a%b%c");
  EXPECT_EQ(Text("return string.gsub('abc', 'b', '%0%1')"), "abbc");
  EXPECT_EQ(Text("return string.gsub('abc','b',1)"), "a1c");
  EXPECT_EQ(Text("return string.gsub('abc','b',{b=false})"), "abc");
  EXPECT_EQ(Text("return string.gsub('abc','(a)(b)(c)',{a='x'})"), "x");
  EXPECT_EQ(Text("return string.gsub('abc','%w',function(c) return c .. c end)"), "aabbcc");
  EXPECT_EQ(Text("return string.gsub('abc','^a','x')"), "xbc");
  EXPECT_EQ(Text("return (string.gsub('abc','b','%'))"), std::string("a\0c", 3));
  EXPECT_EQ(Text("return tostring(select(2, string.gsub('aaa','a','b',2)))"), "2");
}

TEST_F(LuaTest, BrokenPatternsAreToldInLuasWords) {
  const auto fails = [&](const char* body, const char* text) {
    EXPECT_EQ(Eval(body), Failure(std::string("ERR user_script:1: ") + text)) << body;
  };
  fails("return string.find('abc','(')", "unfinished capture");
  fails("return string.find('abc','%')", "malformed pattern (ends with '%')");
  fails("return string.find('abc','[a')", "malformed pattern (missing ']')");
  fails("return string.find('abc','[a%')", "malformed pattern (missing ']')");
  fails("return string.find('abc','[]')", "malformed pattern (missing ']')");
  fails("return string.find('abc','[^]')", "malformed pattern (missing ']')");
  fails("return string.match('abc','b)')", "invalid pattern capture");
  fails("return string.match('abc','%b')", "unbalanced pattern");
  fails("return string.find('abc','%f')", "missing '[' after '%f' in pattern");
  fails("return string.find('abc','%1')", "invalid capture index");
  fails("return string.gsub('abc','b','%2')", "invalid capture index");
  fails("return string.gsub('abc','b',nil)",
        "bad argument #3 to 'gsub' (string/function/table expected)");
  fails("return string.gsub('abc','b',function() return {} end)",
        "invalid replacement value (a table)");
  fails("return string.find('a', ('('):rep(33)..(')'):rep(33))", "too many captures");
}

TEST_F(LuaTest, DeepPatternsEndWithAnError) {
  EXPECT_EQ(Eval("return string.find(('x'):rep(220000),('x?'):rep(220000))"),
            Failure("ERR user_script:1: pattern too complex"));
  EXPECT_EQ(Eval("return string.find(('x'):rep(5000),'.-b')"), "$-1\r\n");
}

TEST_F(LuaTest, LongSearchesCanBeKilled) {
  host_.interrupt_after = 3;
  EXPECT_EQ(Eval("return ('a'):rep(40000):find(('a-'):rep(20) .. 'b')"), "KILLED");
}

TEST_F(LuaTest, RepeatingIsBoundedByMemory) {
  EXPECT_EQ(Text("return ('ab'):rep(3)"), "ababab");
  EXPECT_EQ(Text("return ('ab'):rep(-3)"), "");
  EXPECT_EQ(Text("return (''):rep(2147483647)"), "");
  EXPECT_EQ(Eval("return ('x'):rep(1e10)"),
            "FAILED ERR not enough memory script: SHA, on @user_script:1.");
  EXPECT_EQ(Eval("return #(('x'):rep(1000000))"), ":1000000\r\n");
  EXPECT_EQ(Eval("local s = ('x'):rep(1e8) return #(s:gsub('x', s))"),
            "FAILED ERR not enough memory script: SHA, on @user_script:1.");
}

}  // namespace
}  // namespace sava::lua
