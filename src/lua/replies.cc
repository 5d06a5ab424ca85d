// RESP as Lua values and back. Tables are read by raw access only, so nothing of a script runs
// while its result is written.

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "lua/numbers.h"
#include "lua/vm.h"

namespace sava::lua {
namespace {

// --- RESP to Lua ---

class ReplyReader {
 public:
  ReplyReader(lua_State* lua, std::string_view bytes)
      : lua_(lua), at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  // Pushes the next value.
  bool Value() {
    if (at_ == end_) return false;
    const char kind = *at_++;
    switch (kind) {
      case '+':
        return Status();
      case '-':
        return Error();
      case ':': {
        int64_t number = 0;
        if (!Number(&number)) return false;
        lua_pushnumber(lua_, static_cast<double>(number));
        return true;
      }
      case '$':
        return Bulk();
      case '*':
      case '>':
        return Array();
      default:
        return Resp3(kind);
    }
  }

 private:
  // The rest of a line.
  bool Line(std::string_view* line) {
    const char* start = at_;
    const auto* stop = static_cast<const char*>(std::memchr(at_, '\r', end_ - at_));
    if (stop == nullptr || end_ - stop < 2 || stop[1] != '\n') return false;
    *line = {start, static_cast<size_t>(stop - start)};
    at_ = stop + 2;
    return true;
  }
  bool Number(int64_t* number) {
    std::string_view line;
    return Line(&line) && base::ParseInt(line, number);
  }
  // The bytes of a string whose length stands here.
  bool Text(std::string_view* text, bool* null) {
    int64_t size = 0;
    if (!Number(&size)) return false;
    *null = size == -1;
    if (*null) return true;
    if (size < 0 || end_ - at_ < 2 || size > end_ - at_ - 2) return false;
    *text = {at_, static_cast<size_t>(size)};
    at_ += size + 2;
    return true;
  }
  // How many values follow; each takes three bytes at least.
  bool Count(int64_t* count, bool* null) {
    if (!Number(count)) return false;
    *null = *count == -1;
    return *null || (*count >= 0 && *count <= (end_ - at_) / 3 && *count <= INT32_MAX / 2);
  }

  void Push(std::string_view text) { lua_pushlstring(lua_, text.data(), text.size()); }
  void MakeRoom() { luaL_checkstack(lua_, 16, "reached lua stack limit"); }

  bool Status() {
    std::string_view line;
    if (!Line(&line)) return false;
    lua_createtable(lua_, 0, 1);
    lua_pushliteral(lua_, "ok");
    Push(line);
    lua_rawset(lua_, -3);
    return true;
  }
  bool Error() {
    const char* start = at_ - 1;
    std::string_view line;
    if (!Line(&line)) return false;
    CountedError({start, line.size() + 1});
    return true;
  }
  // "-CODE text", counted when the command gave it.
  void CountedError(std::string_view text) {
    PushError(lua_, text);
    lua_pushliteral(lua_, "ignore_error_stats_update");
    lua_pushboolean(lua_, 1);
    lua_rawset(lua_, -3);
  }
  bool Bulk() {
    std::string_view text;
    bool null = false;
    if (!Text(&text, &null)) return false;
    if (null) {
      lua_pushboolean(lua_, 0);
    } else {
      Push(text);
    }
    return true;
  }
  bool Array() {
    int64_t count = 0;
    bool null = false;
    if (!Count(&count, &null)) return false;
    if (null) {
      lua_pushboolean(lua_, 0);
      return true;
    }
    MakeRoom();
    lua_createtable(lua_, static_cast<int>(count), 0);
    for (int64_t i = 1; i <= count; ++i) {
      if (!Value()) return false;
      lua_rawseti(lua_, -2, static_cast<int>(i));
    }
    return true;
  }

  bool Resp3(char kind) {
    std::string_view line;
    switch (kind) {
      case '_':
        if (!Line(&line)) return false;
        lua_pushnil(lua_);
        return true;
      case '#':
        if (!Line(&line)) return false;
        lua_pushboolean(lua_, line == "t" ? 1 : 0);
        return true;
      case ',':
        return Double();
      case '(':
        if (!Line(&line)) return false;
        PushField("big_number", line);
        return true;
      case '=':
        return Verbatim();
      case '!': {
        bool null = false;
        if (!Text(&line, &null) || null) return false;
        Bytes error(lua_);
        error.Append('-');
        error.Append(line);
        CountedError(error.text());
        return true;
      }
      case '%':
        return Map();
      case '~':
        return Set();
      case '|':
        return Attribute();
      default:
        return false;
    }
  }
  void PushField(const char* name, std::string_view text) {
    lua_createtable(lua_, 0, 1);
    lua_pushstring(lua_, name);
    Push(text);
    lua_rawset(lua_, -3);
  }
  bool Double() {
    std::string_view line;
    if (!Line(&line)) return false;
    double value = 0;
    if (line == "nan" || line == "-nan") {
      value = std::nan("");
    } else if (!base::ParseDouble(line, &value)) {
      return false;
    }
    lua_createtable(lua_, 0, 1);
    lua_pushliteral(lua_, "double");
    lua_pushnumber(lua_, value);
    lua_rawset(lua_, -3);
    return true;
  }
  bool Verbatim() {
    std::string_view text;
    bool null = false;
    if (!Text(&text, &null) || null || text.size() < 4 || text[3] != ':') return false;
    MakeRoom();
    lua_createtable(lua_, 0, 1);
    lua_pushliteral(lua_, "verbatim_string");
    lua_createtable(lua_, 0, 2);
    lua_pushliteral(lua_, "string");
    Push(text.substr(4));
    lua_rawset(lua_, -3);
    lua_pushliteral(lua_, "format");
    Push(text.substr(0, 3));
    lua_rawset(lua_, -3);
    lua_rawset(lua_, -3);
    return true;
  }
  // Whether the value on top can be a key.
  bool CanBeKey() const {
    return !lua_isnil(lua_, -1) &&
           !(lua_type(lua_, -1) == LUA_TNUMBER && std::isnan(lua_tonumber(lua_, -1)));
  }
  bool Map() {
    int64_t count = 0;
    bool null = false;
    if (!Count(&count, &null) || null) return false;
    MakeRoom();
    lua_createtable(lua_, 0, 1);
    lua_pushliteral(lua_, "map");
    lua_createtable(lua_, 0, static_cast<int>(count));
    for (int64_t i = 0; i < count; ++i) {
      if (!Value()) return false;
      const bool key = CanBeKey();
      if (!Value()) return false;
      if (key) {
        lua_rawset(lua_, -3);
      } else {
        lua_pop(lua_, 2);
      }
    }
    lua_rawset(lua_, -3);
    return true;
  }
  bool Set() {
    int64_t count = 0;
    bool null = false;
    if (!Count(&count, &null) || null) return false;
    MakeRoom();
    lua_createtable(lua_, 0, 1);
    lua_pushliteral(lua_, "set");
    lua_createtable(lua_, 0, static_cast<int>(count));
    for (int64_t i = 0; i < count; ++i) {
      if (!Value()) return false;
      if (CanBeKey()) {
        lua_pushboolean(lua_, 1);
        lua_rawset(lua_, -3);
      } else {
        lua_pop(lua_, 1);
      }
    }
    lua_rawset(lua_, -3);
    return true;
  }
  // Left out; the value after it is what counts.
  bool Attribute() {
    int64_t count = 0;
    bool null = false;
    if (!Count(&count, &null) || null) return false;
    MakeRoom();
    for (int64_t i = 0; i < 2 * count; ++i) {
      if (!Value()) return false;
      lua_pop(lua_, 1);
    }
    return Value();
  }

  lua_State* lua_;
  const char* at_;
  const char* end_;
};

// --- Lua to RESP ---

class ReplyWriter {
 public:
  ReplyWriter(lua_State* lua, int script_resp, int client_resp, std::string* out)
      : lua_(lua), script_resp_(script_resp), client_resp_(client_resp), out_(out) {}

  // Writes the value on top of the stack and takes it off.
  void Value() {
    if (depth_ > kMostDepth || lua_checkstack(lua_, 12) == 0) {
      out_->append("-ERR reached lua stack limit\r\n");
    } else {
      switch (lua_type(lua_, -1)) {
        case LUA_TSTRING:
          Bulk(Top());
          break;
        case LUA_TNUMBER:
          Number(':', TruncateNumber(lua_tonumber(lua_, -1)));
          break;
        case LUA_TBOOLEAN:
          Boolean(lua_toboolean(lua_, -1) != 0);
          break;
        case LUA_TTABLE:
          Table();
          break;
        default:
          Null();
          break;
      }
    }
    lua_pop(lua_, 1);
    Bound();
  }

 private:
  // About where Redis's Lua stack ends; the thread's own stack must hold as many of these.
  static constexpr int kMostDepth = 2600;

  // What is written is the server's memory: it is held to the script's bound too.
  void Bound() {
    if (out_->size() > written_limit_) RaiseMemory(lua_);
  }
  std::string_view Top() {
    size_t size = 0;
    const char* text = lua_tolstring(lua_, -1, &size);
    return {text, size};
  }
  void Number(char kind, int64_t number) {
    char text[24];
    text[0] = kind;
    const size_t size = base::FormatInt(number, text + 1);
    text[size + 1] = '\r';
    text[size + 2] = '\n';
    out_->append(text, size + 3);
  }
  void Bulk(std::string_view text) {
    Number('$', static_cast<int64_t>(text.size()));
    out_->append(text);
    out_->append("\r\n");
  }
  // A line's text must not end it.
  void Line(char kind, std::string_view text) {
    out_->push_back(kind);
    for (const char c : text) out_->push_back(c == '\r' || c == '\n' ? ' ' : c);
    out_->append("\r\n");
  }
  void Null() { out_->append(client_resp_ == 3 ? "_\r\n" : "$-1\r\n"); }
  void Boolean(bool value) {
    if (script_resp_ == 2) {
      if (value) {
        Number(':', 1);
      } else {
        Null();
      }
    } else if (client_resp_ == 3) {
      out_->append(value ? "#t\r\n" : "#f\r\n");
    } else {
      Number(':', value ? 1 : 0);
    }
  }

  // Pushes a field of the table on top, if it has the type.
  bool Field(const char* name, int type) {
    lua_pushstring(lua_, name);
    lua_rawget(lua_, -2);
    if (lua_type(lua_, -1) == type) return true;
    lua_pop(lua_, 1);
    return false;
  }
  void Table() {
    if (!NamedForms()) List();
  }
  bool NamedForms() {
    if (Field("err", LUA_TSTRING)) {
      std::string_view text = Top();
      while (!text.empty() && (text.back() == '\r' || text.back() == '\n')) text.remove_suffix(1);
      Line('-', text);
      lua_pop(lua_, 1);
      lua_pushliteral(lua_, "ignore_error_stats_update");
      lua_rawget(lua_, -2);
      if (depth_ == 0) Vm::Of(lua_).error_counted = lua_toboolean(lua_, -1) != 0;
    } else if (Field("ok", LUA_TSTRING)) {
      Line('+', Top());
    } else if (Field("double", LUA_TNUMBER)) {
      Double(lua_tonumber(lua_, -1));
    } else if (Field("big_number", LUA_TSTRING)) {
      if (client_resp_ == 3) {
        Line('(', Top());
      } else {
        BulkLine(Top());
      }
    } else if (Field("verbatim_string", LUA_TTABLE)) {
      if (!Verbatim()) return false;
    } else if (Field("map", LUA_TTABLE)) {
      Pairs(true);
    } else if (Field("set", LUA_TTABLE)) {
      Pairs(false);
    } else {
      return false;
    }
    lua_pop(lua_, 1);
    return true;
  }
  void Double(double value) {
    char text[kNumberText];
    const std::string_view number(text, FormatNumber(value, text));
    if (client_resp_ == 3) {
      Line(',', number);
    } else {
      Bulk(number);
    }
  }
  void BulkLine(std::string_view text) {
    Number('$', static_cast<int64_t>(text.size()));
    for (const char c : text) out_->push_back(c == '\r' || c == '\n' ? ' ' : c);
    out_->append("\r\n");
  }
  // The table on top describes it; it is taken off if it does not.
  bool Verbatim() {
    if (Field("string", LUA_TSTRING)) {
      const std::string_view text = Top();
      lua_pop(lua_, 1);  // the table holds it
      if (Field("format", LUA_TSTRING)) {
        char format[4] = {' ', ' ', ' ', ':'};
        Top().copy(format, 3);
        lua_pop(lua_, 1);
        if (client_resp_ == 3) {
          Number('=', static_cast<int64_t>(text.size()) + 4);
          out_->append(format, 4);
          out_->append(text);
          out_->append("\r\n");
        } else {
          Bulk(text);
        }
        return true;
      }
    }
    lua_pop(lua_, 1);
    return false;
  }
  // The keys of the table on top, or its keys and values.
  void Pairs(bool values) {
    int64_t count = 0;
    lua_pushnil(lua_);
    while (lua_next(lua_, -2) != 0) {
      ++count;
      lua_pop(lua_, 1);
    }
    if (client_resp_ == 3) {
      Number(values ? '%' : '~', count);
    } else {
      Number('*', values ? count * 2 : count);
    }
    ++depth_;
    lua_pushnil(lua_);
    while (lua_next(lua_, -2) != 0) {
      if (!values) lua_pop(lua_, 1);
      lua_pushvalue(lua_, values ? -2 : -1);
      Value();
      if (!values) continue;
      Value();
    }
    --depth_;
  }
  void List() {
    // Up to the first hole.
    int64_t count = 0;
    for (;; ++count) {
      lua_rawgeti(lua_, -1, static_cast<int>(count + 1));
      const bool hole = lua_isnil(lua_, -1);
      lua_pop(lua_, 1);
      if (hole || count >= INT32_MAX - 1) break;
    }
    Number('*', count);
    ++depth_;
    for (int64_t i = 1; i <= count; ++i) {
      lua_rawgeti(lua_, -1, static_cast<int>(i));
      Value();
    }
    --depth_;
  }

  lua_State* lua_;
  int script_resp_;
  int client_resp_;
  int depth_ = 0;
  std::string* out_;
  size_t written_limit_ = Vm::Of(lua_).limits.memory * 2 + (64 << 20);
};

}  // namespace

bool PushReply(lua_State* lua, std::string_view bytes) { return ReplyReader(lua, bytes).Value(); }

void AppendReply(lua_State* lua, int script_resp, int client_resp, std::string* out) {
  ReplyWriter(lua, script_resp, client_resp, out).Value();
}

}  // namespace sava::lua
