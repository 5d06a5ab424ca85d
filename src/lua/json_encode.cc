// cjson.encode. A table whose keys are whole numbers from 1 on is an array (holes are null, unless
// there are too many), any other one an object.

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/text.h"
#include "lua/json.h"

namespace sava::lua {
namespace {

class Encoder {
 public:
  Encoder(lua_State* lua, const JsonSettings& settings, Bytes* out)
      : lua_(lua), vm_(Vm::Of(lua)), settings_(settings), out_(out) {}

  // Appends the value on top of the stack, which stays.
  void Value(int depth) {
    switch (lua_type(lua_, -1)) {
      case LUA_TSTRING:
        String();
        return;
      case LUA_TNUMBER:
        Number();
        return;
      case LUA_TBOOLEAN:
        out_->Append(lua_toboolean(lua_, -1) != 0 ? "true" : "false");
        return;
      case LUA_TNIL:
        out_->Append("null");
        return;
      case LUA_TTABLE:
        Table(depth + 1);
        return;
      case LUA_TLIGHTUSERDATA:
        if (lua_touserdata(lua_, -1) == nullptr) {
          out_->Append("null");
          return;
        }
        [[fallthrough]];
      default:
        Fail(-1, "type not supported");
    }
  }

 private:
  [[noreturn]] void Fail(int index, const char* reason) {
    luaL_error(lua_, "Cannot serialise %s: %s", luaL_typename(lua_, index), reason);
    std::abort();  // luaL_error does not return
  }

  void String() {
    size_t size = 0;
    const char* text = lua_tolstring(lua_, -1, &size);
    out_->Need(size + 2);
    out_->Append('"');
    size_t done = 0;
    for (size_t i = 0; i < size; ++i) {
      const auto c = static_cast<unsigned char>(text[i]);
      if (c >= 0x20 && c != '"' && c != '\\' && c != '/' && c != 0x7F) continue;
      out_->Append({text + done, i - done});
      Escape(c);
      done = i + 1;
    }
    out_->Append({text + done, size - done});
    out_->Append('"');
  }
  void Escape(unsigned char c) {
    switch (c) {
      case '"':
      case '\\':
      case '/':
        out_->Append('\\');
        out_->Append(static_cast<char>(c));
        return;
      case '\b':
        return out_->Append("\\b");
      case '\t':
        return out_->Append("\\t");
      case '\n':
        return out_->Append("\\n");
      case '\f':
        return out_->Append("\\f");
      case '\r':
        return out_->Append("\\r");
      default: {
        char text[8];
        std::snprintf(text, sizeof text, "\\u%04x", c);
        out_->Append({text, 6});
      }
    }
  }

  // The number on top of the stack.
  void Number() { Number(lua_tonumber(lua_, -1), -1); }
  void Number(double number, int index) {
    if (!std::isfinite(number)) {
      if (settings_.encode_invalid == JsonSettings::Invalid::kRefused) {
        Fail(index, "must not be NaN or Inf");
      }
      if (settings_.encode_invalid == JsonSettings::Invalid::kNull) return out_->Append("null");
      return out_->Append(std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
    }
    char text[48];
    // What "%.14g" writes for whole numbers of up to 14 digits.
    if (settings_.precision == 14 && std::fabs(number) < 1e14 && number != 0 &&
        std::floor(number) == number) {
      return out_->Append({text, base::FormatInt(static_cast<int64_t>(number), text)});
    }
    const int size = std::snprintf(text, sizeof text, "%.*g", settings_.precision, number);
    out_->Append({text, static_cast<size_t>(size)});
  }

  void Table(int depth) {
    if (depth > std::min(settings_.encode_depth, kJsonMostDepth) || lua_checkstack(lua_, 10) == 0) {
      luaL_error(lua_, "Cannot serialise, excessive nesting (%d)", depth);
    }
    const bool is_protected = vm_.IsProtected(lua_, -1);
    if (is_protected) vm_.PushBehind(lua_, -1);
    if (const double length = ArrayLength(); length > 0) {
      Array(length, depth);
    } else {
      Object(depth);
    }
    if (is_protected) lua_pop(lua_, 1);
  }
  // The largest key, if all keys are positive whole numbers; otherwise -1.
  double ArrayLength() {
    double most = 0;
    double items = 0;
    lua_pushnil(lua_);
    while (lua_next(lua_, -2) != 0) {
      lua_pop(lua_, 1);
      const double key = lua_type(lua_, -1) == LUA_TNUMBER ? lua_tonumber(lua_, -1) : 0;
      if (!(key >= 1) || std::floor(key) != key) {
        lua_pop(lua_, 1);
        return -1;
      }
      most = std::max(most, key);
      ++items;
    }
    if (settings_.sparse_ratio > 0 && most > items * settings_.sparse_ratio &&
        most > settings_.sparse_safe) {
      if (!settings_.sparse_convert) Fail(-1, "excessively sparse array");
      return -1;
    }
    // Only reached without a bound on sparse arrays.
    if (most > INT32_MAX) RaiseMemory(lua_);
    return most;
  }
  void Array(double length, int depth) {
    out_->Append('[');
    const int count = static_cast<int>(length);
    for (int i = 0; i < count; ++i) {
      if (i > 0) out_->Append(',');
      if ((i & 0xFFFF) == 0xFFFF) Vm::Tick(lua_, 0x10000);
      lua_rawgeti(lua_, -1, i + 1);
      Value(depth);
      lua_pop(lua_, 1);
    }
    out_->Append(']');
  }
  void Object(int depth) {
    out_->Append('{');
    bool first = true;
    lua_pushnil(lua_);
    while (lua_next(lua_, -2) != 0) {
      if (!first) out_->Append(',');
      first = false;
      Key();
      out_->Append(':');
      Value(depth);
      lua_pop(lua_, 1);
    }
    out_->Append('}');
  }
  // The key at -2.
  void Key() {
    switch (lua_type(lua_, -2)) {
      case LUA_TNUMBER:
        out_->Append('"');
        Number(lua_tonumber(lua_, -2), -2);
        out_->Append('"');
        return;
      case LUA_TSTRING:
        lua_pushvalue(lua_, -2);
        String();
        lua_pop(lua_, 1);
        return;
      default:
        Fail(-2, "table key must be a number or string");
    }
  }

  lua_State* lua_;
  Vm& vm_;
  const JsonSettings& settings_;
  Bytes* out_;
};

}  // namespace

int JsonEncode(lua_State* lua) {
  luaL_argcheck(lua, lua_gettop(lua) == 1, 1, "expected 1 argument");
  Bytes out(lua);
  Encoder(lua, JsonSettingsOf(lua), &out).Value(0);
  out.Push();
  return 1;
}

}  // namespace sava::lua
