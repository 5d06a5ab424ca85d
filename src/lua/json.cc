// cjson: its table and its settings.

#include "lua/json.h"

#include <cstdio>
#include <new>

namespace sava::lua {
namespace {

// Fills up to `count` arguments with nil.
void TakeArguments(lua_State* lua, int count) {
  luaL_argcheck(lua, lua_gettop(lua) <= count, count + 1, "found too many arguments");
  lua_settop(lua, count);
}

// Sets what argument `index` says, if it is not nil, and pushes what holds now.
void IntegerOption(lua_State* lua, int index, int* setting, int least, int most) {
  if (!lua_isnil(lua, index)) {
    const double value = luaL_checknumber(lua, index);
    char problem[64];
    std::snprintf(problem, sizeof problem, "expected integer between %d and %d", least, most);
    luaL_argcheck(lua, value >= least && value <= most, 1, problem);
    *setting = static_cast<int>(value);
  }
  lua_pushinteger(lua, *setting);
}

// Likewise a switch: a boolean, "off" or "on".
void SwitchOption(lua_State* lua, int index, bool* setting) {
  static const char* const kWords[] = {"off", "on", nullptr};
  if (lua_isboolean(lua, index)) {
    *setting = lua_toboolean(lua, index) != 0;
  } else if (!lua_isnil(lua, index)) {
    *setting = luaL_checkoption(lua, index, nullptr, kWords) == 1;
  }
  lua_pushboolean(lua, *setting ? 1 : 0);
}

int EncodeSparseArray(lua_State* lua) {
  JsonSettings& settings = JsonSettingsOf(lua);
  TakeArguments(lua, 3);
  SwitchOption(lua, 1, &settings.sparse_convert);
  IntegerOption(lua, 2, &settings.sparse_ratio, 0, INT32_MAX);
  IntegerOption(lua, 3, &settings.sparse_safe, 0, INT32_MAX);
  return 3;
}

int EncodeMaxDepth(lua_State* lua) {
  TakeArguments(lua, 1);
  IntegerOption(lua, 1, &JsonSettingsOf(lua).encode_depth, 1, INT32_MAX);
  return 1;
}

int DecodeMaxDepth(lua_State* lua) {
  TakeArguments(lua, 1);
  IntegerOption(lua, 1, &JsonSettingsOf(lua).decode_depth, 1, INT32_MAX);
  return 1;
}

int EncodeNumberPrecision(lua_State* lua) {
  TakeArguments(lua, 1);
  IntegerOption(lua, 1, &JsonSettingsOf(lua).precision, 1, 14);
  return 1;
}

int EncodeKeepBuffer(lua_State* lua) {
  TakeArguments(lua, 1);
  SwitchOption(lua, 1, &JsonSettingsOf(lua).keep_buffer);
  return 1;
}

int EncodeInvalidNumbers(lua_State* lua) {
  static const char* const kWords[] = {"off", "on", "null", nullptr};
  JsonSettings& settings = JsonSettingsOf(lua);
  TakeArguments(lua, 1);
  if (lua_isboolean(lua, 1)) {
    settings.encode_invalid = lua_toboolean(lua, 1) != 0 ? JsonSettings::Invalid::kAllowed
                                                         : JsonSettings::Invalid::kRefused;
  } else if (!lua_isnil(lua, 1)) {
    settings.encode_invalid =
        static_cast<JsonSettings::Invalid>(luaL_checkoption(lua, 1, nullptr, kWords));
  }
  if (settings.encode_invalid == JsonSettings::Invalid::kNull) {
    lua_pushliteral(lua, "null");
  } else {
    lua_pushboolean(lua, settings.encode_invalid == JsonSettings::Invalid::kAllowed ? 1 : 0);
  }
  return 1;
}

int DecodeInvalidNumbers(lua_State* lua) {
  TakeArguments(lua, 1);
  SwitchOption(lua, 1, &JsonSettingsOf(lua).decode_invalid);
  return 1;
}

int New(lua_State* lua);

constexpr luaL_Reg kFunctions[] = {{"encode", Guarded<JsonEncode>},
                                   {"decode", Guarded<JsonDecode>},
                                   {"encode_sparse_array", Guarded<EncodeSparseArray>},
                                   {"encode_max_depth", Guarded<EncodeMaxDepth>},
                                   {"decode_max_depth", Guarded<DecodeMaxDepth>},
                                   {"encode_number_precision", Guarded<EncodeNumberPrecision>},
                                   {"encode_keep_buffer", Guarded<EncodeKeepBuffer>},
                                   {"encode_invalid_numbers", Guarded<EncodeInvalidNumbers>},
                                   {"decode_invalid_numbers", Guarded<DecodeInvalidNumbers>},
                                   {"new", Guarded<New>}};

// Makes a table of functions with the settings on top of the stack, which are popped.
void MakeTable(lua_State* lua) {
  lua_newtable(lua);
  for (const luaL_Reg& function : kFunctions) {
    lua_pushvalue(lua, -2);
    lua_pushcclosure(lua, function.func, 1);
    lua_setfield(lua, -2, function.name);
  }
  lua_pushlightuserdata(lua, nullptr);
  lua_setfield(lua, -2, "null");
  lua_pushliteral(lua, "cjson");
  lua_setfield(lua, -2, "_NAME");
  lua_pushliteral(lua, "2.1.0");
  lua_setfield(lua, -2, "_VERSION");
  lua_remove(lua, -2);
}

int New(lua_State* lua) {
  new (lua_newuserdata(lua, sizeof(JsonSettings))) JsonSettings();
  MakeTable(lua);
  return 1;
}

}  // namespace

void OpenJson(lua_State* lua) {
  lua_pushnil(lua);
  MakeTable(lua);
}

}  // namespace sava::lua
