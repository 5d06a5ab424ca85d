// The base functions that differ from Lua's own: they respect read-only tables, load no bytecode,
// bound what they push, and let pass the errors that nobody may catch.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lua/vm.h"

namespace sava::lua {
namespace {

constexpr int kMostResults = 8000;

[[noreturn]] void RaiseReadOnly(lua_State* lua) {
  RaisePlain(lua, "Attempt to modify a readonly table");
}

int Next(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_settop(lua, 2);
  if (Vm::Of(lua).IsProtected(lua, 1)) {
    Vm::Of(lua).PushBehind(lua, 1);
    lua_replace(lua, 1);
  }
  if (lua_next(lua, 1) != 0) return 2;
  lua_pushnil(lua);
  return 1;
}

int Pairs(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_pushvalue(lua, 1);
  lua_pushnil(lua);
  return 3;
}

int RawGet(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  luaL_checkany(lua, 2);
  lua_settop(lua, 2);
  Vm::Of(lua).PushBehind(lua, 1);
  lua_replace(lua, 1);
  lua_rawget(lua, 1);
  return 1;
}

int RawSet(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  luaL_checkany(lua, 2);
  luaL_checkany(lua, 3);
  lua_settop(lua, 3);
  if (Vm::Of(lua).IsProtected(lua, 1)) RaiseReadOnly(lua);
  lua_rawset(lua, 1);
  return 1;
}

// Upvalues: what strings and the table of globals answer.
int GetMetatable(lua_State* lua) {
  luaL_checkany(lua, 1);
  if (lua_type(lua, 1) == LUA_TSTRING) {
    lua_pushvalue(lua, lua_upvalueindex(1));
    return 1;
  }
  if (Vm::Of(lua).IsProtected(lua, 1)) {
    // Only the globals' own table has one that scripts can see.
    lua_pushvalue(lua, lua_upvalueindex(3));
    if (lua_rawequal(lua, 1, -1) != 0) {
      lua_pushvalue(lua, lua_upvalueindex(2));
    } else {
      lua_pushnil(lua);
    }
    return 1;
  }
  if (lua_getmetatable(lua, 1) == 0) {
    lua_pushnil(lua);
    return 1;
  }
  lua_pushliteral(lua, "__metatable");
  lua_rawget(lua, -2);
  if (lua_isnil(lua, -1)) lua_pop(lua, 1);
  return 1;
}

int SetMetatable(lua_State* lua) {
  const int type = lua_type(lua, 2);
  luaL_checktype(lua, 1, LUA_TTABLE);
  luaL_argcheck(lua, type == LUA_TNIL || type == LUA_TTABLE, 2, "nil or table expected");
  if (Vm::Of(lua).IsProtected(lua, 1)) RaiseReadOnly(lua);
  if (luaL_getmetafield(lua, 1, "__metatable") != 0) {
    luaL_error(lua, "cannot change a protected metatable");
  }
  lua_settop(lua, 2);
  if (Vm::Of(lua).IsProtected(lua, 2)) {
    // As a metatable the empty outside would lack its fields.
    Vm::Of(lua).PushBehind(lua, 2);
    lua_newtable(lua);
    lua_pushnil(lua);
    while (lua_next(lua, -3) != 0) {
      lua_pushvalue(lua, -2);
      lua_insert(lua, -2);
      lua_rawset(lua, -4);
    }
    lua_replace(lua, 2);
    lua_settop(lua, 2);
  }
  lua_setmetatable(lua, 1);
  return 1;
}

int Unpack(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  const auto bound = [&](int index, int64_t fallback) -> int64_t {
    if (lua_isnoneornil(lua, index)) return fallback;
    // As a conversion to int, but defined for every number.
    const double value = luaL_checknumber(lua, index);
    return std::isnan(value) ? INT32_MIN
                             : static_cast<int64_t>(std::clamp(value, -2147483648.0, 2147483647.0));
  };
  const int64_t first = bound(2, 1);
  const int64_t last = bound(3, static_cast<int64_t>(lua_objlen(lua, 1)));
  if (first > last) return 0;
  const int64_t count = last - first + 1;
  if (count > kMostResults || lua_checkstack(lua, static_cast<int>(count)) == 0) {
    return luaL_error(lua, "too many results to unpack");
  }
  for (int64_t i = first; i <= last; ++i) lua_rawgeti(lua, 1, static_cast<int>(i));
  return static_cast<int>(count);
}

// An error table of Redis's shape is told by its text. Leaves the results of a failed call.
void TellError(lua_State* lua) {
  if (lua_type(lua, -1) != LUA_TTABLE) return;
  lua_pushliteral(lua, "err");
  lua_rawget(lua, -2);
  if (lua_isstring(lua, -1) != 0) lua_replace(lua, -2);
}

int ProtectedCall(lua_State* lua) {
  luaL_checkany(lua, 1);
  lua_pushboolean(lua, 1);
  lua_insert(lua, 1);
  if (lua_pcall(lua, lua_gettop(lua) - 2, LUA_MULTRET, 0) == 0) return lua_gettop(lua);
  Vm::PassStopOn(lua);
  lua_remove(lua, 1);
  TellError(lua);
  lua_pushboolean(lua, 0);
  lua_insert(lua, 1);
  return lua_gettop(lua);
}

// The script's handler, unless the error is one that nobody may see. Upvalue: the handler.
int HandleError(lua_State* lua) {
  if (Vm::Of(lua).stopping()) return 1;
  lua_settop(lua, 1);
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, 1, 1);
  return 1;
}

int ProtectedCallWithHandler(lua_State* lua) {
  luaL_checkany(lua, 2);
  lua_settop(lua, 2);
  lua_pushcclosure(lua, Guarded<HandleError>, 1);
  lua_insert(lua, 1);
  const int status = lua_pcall(lua, 0, LUA_MULTRET, 1);
  if (status != 0) Vm::PassStopOn(lua);
  lua_pushboolean(lua, status == 0 ? 1 : 0);
  lua_replace(lua, 1);
  return lua_gettop(lua);
}

struct Source {
  std::string_view text;
  bool begun = false;
};

const char* ReadSource(lua_State*, void* opaque, size_t* size) {
  auto& source = *static_cast<Source*>(opaque);
  if (!source.begun) {
    // Whatever follows a blank is taken for text, never for bytecode.
    source.begun = true;
    *size = 1;
    return " ";
  }
  *size = source.text.size();
  const char* bytes = *size == 0 ? nullptr : source.text.data();
  source.text = {};
  return bytes;
}

// The results of load and loadstring.
int Loaded(lua_State* lua, int status) {
  if (status == 0) return 1;
  Vm::PassStopOn(lua);
  lua_pushnil(lua);
  lua_insert(lua, -2);
  return 2;
}

int LoadString(lua_State* lua) {
  size_t size = 0;
  const char* text = luaL_checklstring(lua, 1, &size);
  const char* name = luaL_optstring(lua, 2, text);
  return Loaded(lua, LoadText(lua, {text, size}, name));
}

int Load(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TFUNCTION);
  const char* name = luaL_optstring(lua, 2, "=(load)");
  lua_settop(lua, 2);
  Bytes source(lua);
  for (;;) {
    lua_pushvalue(lua, 1);
    if (lua_pcall(lua, 0, 1, 0) != 0) return Loaded(lua, -1);
    if (lua_isnil(lua, -1)) break;
    if (lua_isstring(lua, -1) == 0) {
      lua_pushliteral(lua, "reader function must return a string");
      return Loaded(lua, -1);
    }
    size_t size = 0;
    const char* piece = lua_tolstring(lua, -1, &size);
    if (size == 0) break;
    source.Append({piece, size});
    lua_pop(lua, 1);
    if (source.text().size() > Vm::Of(lua).limits.source) break;
  }
  return Loaded(lua, LoadText(lua, source.text(), name));
}

int CollectGarbage(lua_State* lua) {
  static const char* const kNames[] = {"stop", "restart",  "collect",    "count",
                                       "step", "setpause", "setstepmul", nullptr};
  const int option = luaL_checkoption(lua, 1, "collect", kNames);
  switch (option) {
    case 2:
      Vm::Tick(lua, Vm::Of(lua).used() / 32);
      lua_pushnumber(lua, lua_gc(lua, LUA_GCCOLLECT, 0));
      return 1;
    case 3:
      lua_pushnumber(lua, lua_gc(lua, LUA_GCCOUNT, 0) + lua_gc(lua, LUA_GCCOUNTB, 0) / 1024.0);
      return 1;
    case 4: {
      const double size = std::clamp(luaL_optnumber(lua, 2, 0), 0.0, 1e6);
      Vm::Tick(lua, Vm::Of(lua).used() / 256);
      lua_pushboolean(lua, lua_gc(lua, LUA_GCSTEP, std::isnan(size) ? 0 : static_cast<int>(size)));
      return 1;
    }
    case 5:
    case 6:
      // The collector's pace is the interpreter's affair.
      lua_pushnumber(lua, 200);
      return 1;
    default:
      lua_pushnumber(lua, 0);
      return 1;
  }
}

// A value that equals only itself. It has no metatable: finalizers would run in other scripts.
int NewProxy(lua_State* lua) {
  lua_newuserdata(lua, 0);
  return 1;
}

constexpr luaL_Reg kOwn[] = {{"next", Guarded<Next>},
                             {"rawget", Guarded<RawGet>},
                             {"rawset", Guarded<RawSet>},
                             {"setmetatable", Guarded<SetMetatable>},
                             {"unpack", Guarded<Unpack>},
                             {"pcall", Guarded<ProtectedCall>},
                             {"xpcall", Guarded<ProtectedCallWithHandler>},
                             {"load", Guarded<Load>},
                             {"loadstring", Guarded<LoadString>},
                             {"collectgarbage", Guarded<CollectGarbage>}};

// Lua's own that need no change.
constexpr const char* kTaken[] = {"assert", "error",    "gcinfo",   "ipairs", "rawequal",
                                  "select", "tonumber", "tostring", "type",   "_VERSION"};

void CopyField(lua_State* lua, int from, int to, const char* name) {
  lua_getfield(lua, from, name);
  lua_setfield(lua, to, name);
}

}  // namespace

int LoadText(lua_State* lua, std::string_view text, const char* name) {
  lua_checkstack(lua, 4);
  // The parser does not hold on to its chunk's name: this copy does.
  lua_pushstring(lua, name);
  const int anchor = lua_gettop(lua);
  int status = 0;
  if (text.size() > Vm::Of(lua).limits.source) {
    lua_pushliteral(lua, "source is too long");
    status = LUA_ERRSYNTAX;
  } else {
    Source source{text};
    status = lua_load(lua, ReadSource, &source, lua_tostring(lua, anchor));
  }
  lua_remove(lua, anchor);
  return status;
}

void SetBaseFunctions(lua_State* lua, const BaseTables& tables) {
  lua_checkstack(lua, 10);
  const int target = lua_gettop(lua);
  // Lua's own go where the state's globals are: a table that is thrown away.
  lua_pushcfunction(lua, luaopen_base);
  lua_pushliteral(lua, "");
  lua_call(lua, 1, 0);
  for (const char* name : kTaken) CopyField(lua, LUA_GLOBALSINDEX, target, name);
  CopyField(lua, LUA_GLOBALSINDEX, LUA_REGISTRYINDEX, "getfenv");
  CopyField(lua, LUA_GLOBALSINDEX, LUA_REGISTRYINDEX, "setfenv");
  SetFunctions(lua, kOwn);
  lua_getfield(lua, target, "next");
  lua_pushcclosure(lua, Guarded<Pairs>, 1);
  lua_setfield(lua, target, "pairs");
  lua_pushvalue(lua, tables.string_metatable);
  lua_pushvalue(lua, tables.globals_metatable);
  lua_pushvalue(lua, tables.globals);
  lua_pushcclosure(lua, Guarded<GetMetatable>, 3);
  lua_setfield(lua, target, "getmetatable");
}

void SetDeprecatedFunctions(lua_State* lua, bool shown) {
  for (const char* name : {"getfenv", "setfenv"}) {
    if (shown) {
      lua_getfield(lua, LUA_REGISTRYINDEX, name);
    } else {
      lua_pushnil(lua);
    }
    lua_setfield(lua, -2, name);
  }
  if (shown) {
    lua_pushcfunction(lua, Guarded<NewProxy>);
  } else {
    lua_pushnil(lua);
  }
  lua_setfield(lua, -2, "newproxy");
}

}  // namespace sava::lua
