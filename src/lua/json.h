// What cjson's two halves share: the settings of the table that a function belongs to.
#pragma once

#include "lua/vm.h"

namespace sava::lua {

// Upvalue 1: the settings of a table that cjson.new made; the global cjson's are the run's.
inline JsonSettings& JsonSettingsOf(lua_State* lua) {
  void* own = lua_touserdata(lua, lua_upvalueindex(1));
  return own == nullptr ? Vm::Of(lua).json : *static_cast<JsonSettings*>(own);
}

// However deep a script allows: what the thread's stack surely holds.
inline constexpr int kJsonMostDepth = 4000;

int JsonEncode(lua_State* lua);
int JsonDecode(lua_State* lua);

}  // namespace sava::lua
