// string: Lua's own functions but for those that search by patterns and rep, which could exhaust
// the C stack, the memory or the host's patience.

#include <algorithm>
#include <cstring>
#include <functional>

#include "lua/patterns.h"
#include "lua/vm.h"

namespace sava::lua {
namespace {

std::string_view CheckText(lua_State* lua, int index) {
  size_t size = 0;
  const char* text = luaL_checklstring(lua, index, &size);
  return {text, size};
}

// Argument `index` as a place to begin in `size` bytes: negative ones count from the end.
size_t StartOf(lua_State* lua, int index, size_t size) {
  const ptrdiff_t given = luaL_optinteger(lua, index, 1);
  if (given > 0) return std::min(static_cast<size_t>(given) - 1, size);
  if (given == 0) return 0;
  const size_t back = 0 - static_cast<size_t>(given);
  return back > size ? 0 : size - back;
}

// The plain text from `start` on.
int FindPlain(lua_State* lua, std::string_view subject, std::string_view wanted, size_t start) {
  Vm::Tick(lua, (subject.size() - start) / 8);
  size_t at = std::string_view::npos;
  const std::string_view rest = subject.substr(start);
  if (wanted.empty()) {
    at = 0;
  } else if (wanted.size() == 1) {
    at = rest.find(wanted[0]);
  } else if (wanted.size() <= rest.size()) {
    const void* found = memmem(rest.data(), rest.size(), wanted.data(), wanted.size());
    if (found != nullptr) at = static_cast<const char*>(found) - rest.data();
  }
  if (at == std::string_view::npos) {
    lua_pushnil(lua);
    return 1;
  }
  lua_pushnumber(lua, static_cast<double>(start + at + 1));
  lua_pushnumber(lua, static_cast<double>(start + at + wanted.size()));
  return 2;
}

int FindOrMatch(lua_State* lua, bool find) {
  const std::string_view subject = CheckText(lua, 1);
  std::string_view pattern = CheckText(lua, 2);
  const size_t start = StartOf(lua, 3, subject.size());
  if (find && (lua_toboolean(lua, 4) != 0 ||
               pattern.find_first_of("^$*+?.([%-") == std::string_view::npos)) {
    return FindPlain(lua, subject, pattern, start);
  }
  const bool anchored = pattern.starts_with('^');
  if (anchored) pattern.remove_prefix(1);
  Matcher matcher(lua, subject, pattern);
  const char* const end = subject.data() + subject.size();
  for (const char* at = subject.data() + start;; ++at) {
    if (const char* stop = matcher.MatchAt(at, pattern.data()); stop != nullptr) {
      if (!find) return matcher.PushCaptures(at, stop);
      lua_pushnumber(lua, static_cast<double>(at - subject.data() + 1));
      lua_pushnumber(lua, static_cast<double>(stop - subject.data()));
      return matcher.PushCaptures(nullptr, nullptr) + 2;
    }
    if (at == end || anchored) break;
  }
  lua_pushnil(lua);
  return 1;
}

int Find(lua_State* lua) { return FindOrMatch(lua, true); }
int Match(lua_State* lua) { return FindOrMatch(lua, false); }

// Upvalues: subject, pattern, where to go on.
int NextMatch(lua_State* lua) {
  const std::string_view subject = CheckText(lua, lua_upvalueindex(1));
  const std::string_view pattern = CheckText(lua, lua_upvalueindex(2));
  const char* const end = subject.data() + subject.size();
  Matcher matcher(lua, subject, pattern);
  for (const char* at =
           subject.data() + static_cast<size_t>(lua_tonumber(lua, lua_upvalueindex(3)));
       at <= end; ++at) {
    const char* stop = matcher.MatchAt(at, pattern.data());
    if (stop == nullptr) continue;
    // An empty match would be found again and again.
    const size_t next = stop - subject.data() + (stop == at ? 1 : 0);
    lua_pushnumber(lua, static_cast<double>(next));
    lua_replace(lua, lua_upvalueindex(3));
    return matcher.PushCaptures(at, stop);
  }
  return 0;
}

int MatchAll(lua_State* lua) {
  CheckText(lua, 1);
  CheckText(lua, 2);
  lua_settop(lua, 2);
  lua_pushnumber(lua, 0);
  lua_pushcclosure(lua, Guarded<NextMatch>, 3);
  return 1;
}

// Appends the replacement text, its %0 to %9 filled in.
void AppendFilled(lua_State* lua, Bytes* out, Matcher* matcher, const char* start,
                  const char* stop) {
  const std::string_view text = CheckText(lua, 3);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out->Append(text[i]);
      continue;
    }
    ++i;
    const char c = i < text.size() ? text[i] : '\0';
    if (c < '0' || c > '9') {
      out->Append(c);
    } else if (c == '0') {
      out->Append({start, static_cast<size_t>(stop - start)});
    } else {
      matcher->PushCapture(c - '1', start, stop);
      size_t size = 0;
      const char* capture = lua_tolstring(lua, -1, &size);
      out->Append({capture, size});
      lua_pop(lua, 1);
    }
  }
}

void AppendReplacement(lua_State* lua, Bytes* out, Matcher* matcher, const char* start,
                       const char* stop) {
  switch (lua_type(lua, 3)) {
    case LUA_TNUMBER:
    case LUA_TSTRING:
      AppendFilled(lua, out, matcher, start, stop);
      return;
    case LUA_TFUNCTION:
      lua_pushvalue(lua, 3);
      lua_call(lua, matcher->PushCaptures(start, stop), 1);
      break;
    default:
      matcher->PushCapture(0, start, stop);
      lua_gettable(lua, 3);
      break;
  }
  if (lua_toboolean(lua, -1) == 0) {
    out->Append({start, static_cast<size_t>(stop - start)});
  } else if (lua_isstring(lua, -1) == 0) {
    luaL_error(lua, "invalid replacement value (a %s)", luaL_typename(lua, -1));
  } else {
    size_t size = 0;
    const char* text = lua_tolstring(lua, -1, &size);
    out->Append({text, size});
  }
  lua_pop(lua, 1);
}

int Substitute(lua_State* lua) {
  const std::string_view subject = CheckText(lua, 1);
  std::string_view pattern = CheckText(lua, 2);
  const int type = lua_type(lua, 3);
  luaL_argcheck(
      lua,
      type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION || type == LUA_TTABLE, 3,
      "string/function/table expected");
  // A number as replacement is text from here on.
  if (type == LUA_TNUMBER) lua_tolstring(lua, 3, nullptr);
  const double most = lua_isnoneornil(lua, 4) ? static_cast<double>(subject.size()) + 1
                                              : static_cast<double>(luaL_checkint(lua, 4));
  const bool anchored = pattern.starts_with('^');
  if (anchored) pattern.remove_prefix(1);
  Matcher matcher(lua, subject, pattern);
  const char* at = subject.data();
  const char* const end = at + subject.size();
  Bytes out(lua);
  double count = 0;
  while (count < most) {
    const char* stop = matcher.MatchAt(at, pattern.data());
    if (stop != nullptr) {
      ++count;
      AppendReplacement(lua, &out, &matcher, at, stop);
    }
    if (stop != nullptr && stop > at) {
      at = stop;
    } else if (at < end) {
      out.Append(*at++);
    } else {
      break;
    }
    if (anchored) break;
  }
  out.Append({at, static_cast<size_t>(end - at)});
  out.Push();
  lua_pushnumber(lua, count);
  return 2;
}

int Repeat(lua_State* lua) {
  const std::string_view text = CheckText(lua, 1);
  const int count = luaL_checkint(lua, 2);
  if (count <= 0 || text.empty()) {
    lua_pushliteral(lua, "");
    return 1;
  }
  if (static_cast<size_t>(count) > Vm::Of(lua).headroom() / text.size()) RaiseMemory(lua);
  const size_t size = text.size() * count;
  Bytes out(lua);
  out.Need(size);
  if (text.size() == 1) {
    out.text().assign(size, text[0]);
  } else {
    for (int i = 0; i < count; ++i) out.text().append(text);
  }
  out.Push();
  return 1;
}

constexpr luaL_Reg kOwn[] = {{"find", Guarded<Find>},
                             {"match", Guarded<Match>},
                             {"gmatch", Guarded<MatchAll>},
                             {"gsub", Guarded<Substitute>},
                             {"rep", Guarded<Repeat>}};

}  // namespace

void OpenString(lua_State* lua) {
  lua_pushcfunction(lua, luaopen_string);
  lua_pushstring(lua, LUA_STRLIBNAME);
  lua_call(lua, 1, 1);
  SetFunctions(lua, kOwn);
  lua_getfield(lua, -1, "gmatch");
  lua_setfield(lua, -2, "gfind");
}

}  // namespace sava::lua
