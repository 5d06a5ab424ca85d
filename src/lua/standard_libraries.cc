// table, math and coroutine: Lua's own functions, and in their place those that must respect
// read-only tables, give Redis's numbers, or let pass the errors that nobody may catch.

#include <algorithm>
#include <cmath>

#include "lua/vm.h"

namespace sava::lua {
namespace {

// Pushes the table that Lua's own opener makes.
void OpenStock(lua_State* lua, lua_CFunction opener, const char* name) {
  lua_pushcfunction(lua, opener);
  lua_pushstring(lua, name);
  lua_call(lua, 1, 1);
}

void RefuseProtected(lua_State* lua) {
  if (Vm::Of(lua).IsProtected(lua, 1)) RaisePlain(lua, "Attempt to modify a readonly table");
}

// --- table ---

int TableInsert(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  RefuseProtected(lua);
  const int64_t end = static_cast<int64_t>(lua_objlen(lua, 1)) + 1;
  const int count = lua_gettop(lua);
  if (count == 2) {
    lua_rawseti(lua, 1, static_cast<int>(end));
    return 0;
  }
  if (count != 3) return luaL_error(lua, "wrong number of arguments to " LUA_QL("insert"));
  const int64_t at = luaL_checkint(lua, 2);
  for (int64_t i = std::max(end, at); i > at; --i) {
    if ((i & 1023) == 0) Vm::Tick(lua, 8192);
    lua_rawgeti(lua, 1, static_cast<int>(i - 1));
    lua_rawseti(lua, 1, static_cast<int>(i));
  }
  lua_rawseti(lua, 1, static_cast<int>(at));
  return 0;
}

int TableRemove(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  const int64_t end = static_cast<int64_t>(lua_objlen(lua, 1));
  int64_t at = luaL_optint(lua, 2, static_cast<int>(end));
  if (at < 1 || at > end) return 0;
  lua_rawgeti(lua, 1, static_cast<int>(at));
  for (; at < end; ++at) {
    if ((at & 1023) == 0) Vm::Tick(lua, 8192);
    lua_rawgeti(lua, 1, static_cast<int>(at + 1));
    lua_rawseti(lua, 1, static_cast<int>(at));
  }
  lua_pushnil(lua);
  lua_rawseti(lua, 1, static_cast<int>(end));
  return 1;
}

int TableForEach(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  luaL_checktype(lua, 2, LUA_TFUNCTION);
  lua_settop(lua, 2);
  Vm::Of(lua).PushBehind(lua, 1);
  lua_pushnil(lua);
  while (lua_next(lua, 3) != 0) {
    lua_pushvalue(lua, 2);
    lua_pushvalue(lua, -3);
    lua_pushvalue(lua, -3);
    lua_call(lua, 2, 1);
    if (!lua_isnil(lua, -1)) return 1;
    lua_pop(lua, 2);
  }
  return 0;
}

constexpr luaL_Reg kTable[] = {{"insert", Guarded<TableInsert>},
                               {"remove", Guarded<TableRemove>},
                               {"foreach", Guarded<TableForEach>}};

// --- math ---

int MathRandom(lua_State* lua) {
  constexpr int32_t kMost = INT32_MAX;
  const double unit = static_cast<double>(Vm::Of(lua).random.Next() % kMost) / kMost;
  switch (lua_gettop(lua)) {
    case 0:
      lua_pushnumber(lua, unit);
      return 1;
    case 1: {
      const int high = luaL_checkint(lua, 1);
      luaL_argcheck(lua, 1 <= high, 1, "interval is empty");
      lua_pushnumber(lua, std::floor(unit * high) + 1);
      return 1;
    }
    case 2: {
      const int low = luaL_checkint(lua, 1);
      const int high = luaL_checkint(lua, 2);
      luaL_argcheck(lua, low <= high, 2, "interval is empty");
      const double width = static_cast<double>(int64_t{high} - low + 1);
      lua_pushnumber(lua, std::floor(unit * width) + low);
      return 1;
    }
    default:
      return luaL_error(lua, "wrong number of arguments");
  }
}

int MathRandomSeed(lua_State* lua) {
  Vm::Of(lua).random.Seed(luaL_checkint(lua, 1));
  return 0;
}

constexpr luaL_Reg kMath[] = {{"random", Guarded<MathRandom>},
                              {"randomseed", Guarded<MathRandomSeed>}};

// --- coroutine ---

enum class Condition : uint8_t { kRunning, kSuspended, kNormal, kDead };
constexpr const char* kConditionNames[] = {"running", "suspended", "normal", "dead"};

Condition ConditionOf(lua_State* lua, lua_State* other) {
  if (lua == other) return Condition::kRunning;
  switch (lua_status(other)) {
    case LUA_YIELD:
      return Condition::kSuspended;
    case 0: {
      lua_Debug activation;
      if (lua_getstack(other, 0, &activation) > 0) return Condition::kNormal;
      return lua_gettop(other) == 0 ? Condition::kDead : Condition::kSuspended;
    }
    default:
      return Condition::kDead;
  }
}

// Runs `other` with the topmost `count` values. The results' number, or -1 and an error's value.
int Resume(lua_State* lua, lua_State* other, int count) {
  const Condition condition = ConditionOf(lua, other);
  if (lua_checkstack(other, count) == 0) luaL_error(lua, "too many arguments to resume");
  if (condition != Condition::kSuspended) {
    lua_pushfstring(lua, "cannot resume %s coroutine",
                    kConditionNames[static_cast<size_t>(condition)]);
    return -1;
  }
  Vm& vm = Vm::Of(lua);
  lua_xmove(lua, other, count);
  lua_setlevel(lua, other);
  lua_State* const before = vm.running;
  vm.running = other;
  const int status = lua_resume(other, count);
  vm.running = before;
  if (vm.stopping()) Vm::RaiseStop(lua);
  if (status != 0 && status != LUA_YIELD) {
    lua_xmove(other, lua, 1);
    return -1;
  }
  const int results = lua_gettop(other);
  if (lua_checkstack(lua, results + 1) == 0) luaL_error(lua, "too many results to resume");
  lua_xmove(other, lua, results);
  return results;
}

int CoroutineResume(lua_State* lua) {
  lua_State* other = lua_tothread(lua, 1);
  luaL_argcheck(lua, other != nullptr, 1, "coroutine expected");
  const int results = Resume(lua, other, lua_gettop(lua) - 1);
  lua_pushboolean(lua, results < 0 ? 0 : 1);
  const int count = results < 0 ? 1 : results;
  lua_insert(lua, -(count + 1));
  return count + 1;
}

int CallWrapped(lua_State* lua) {
  lua_State* other = lua_tothread(lua, lua_upvalueindex(1));
  const int results = Resume(lua, other, lua_gettop(lua));
  if (results >= 0) return results;
  if (lua_type(lua, -1) == LUA_TSTRING) {
    luaL_where(lua, 1);
    lua_insert(lua, -2);
    lua_concat(lua, 2);
  }
  return lua_error(lua);
}

int CoroutineCreate(lua_State* lua) {
  luaL_argcheck(lua, lua_isfunction(lua, 1) && lua_iscfunction(lua, 1) == 0, 1,
                "Lua function expected");
  lua_State* other = lua_newthread(lua);
  lua_pushvalue(lua, 1);
  lua_xmove(lua, other, 1);
  return 1;
}

int CoroutineWrap(lua_State* lua) {
  CoroutineCreate(lua);
  lua_pushcclosure(lua, Guarded<CallWrapped>, 1);
  return 1;
}

constexpr luaL_Reg kCoroutine[] = {{"resume", Guarded<CoroutineResume>},
                                   {"create", Guarded<CoroutineCreate>},
                                   {"wrap", Guarded<CoroutineWrap>}};

}  // namespace

void OpenTable(lua_State* lua) {
  OpenStock(lua, luaopen_table, LUA_TABLIBNAME);
  SetFunctions(lua, kTable);
}

void OpenMath(lua_State* lua) {
  OpenStock(lua, luaopen_math, LUA_MATHLIBNAME);
  SetFunctions(lua, kMath);
}

void OpenCoroutine(lua_State* lua) {
  // Lua's own opener makes this table while it sets the base functions.
  lua_getfield(lua, LUA_GLOBALSINDEX, LUA_COLIBNAME);
  SetFunctions(lua, kCoroutine);
}

}  // namespace sava::lua
