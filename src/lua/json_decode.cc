// cjson.decode. Beyond the standard it reads what the library always read: infinities,
// not-a-numbers, hexadecimal and signed numbers (until decode_invalid_numbers is off), and control
// characters in strings.

#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "lua/json.h"

namespace sava::lua {
namespace {

class Decoder {
 public:
  // REQUIRES: a zero byte follows `text`.
  Decoder(lua_State* lua, const JsonSettings& settings, std::string_view text, Bytes* scratch)
      : lua_(lua), settings_(settings), begin_(text.data()), at_(text.data()), scratch_(scratch) {}

  void Whole() {
    Next();
    Value();
    Next();
    if (token_ != Token::kEnd) Fail("the end");
  }

 private:
  enum class Token : uint8_t {
    kObjectBegin,
    kObjectEnd,
    kArrayBegin,
    kArrayEnd,
    kString,
    kNumber,
    kBoolean,
    kNull,
    kColon,
    kComma,
    kEnd,
    kError
  };
  static constexpr const char* kNames[] = {"T_OBJ_BEGIN", "T_OBJ_END", "T_ARR_BEGIN", "T_ARR_END",
                                           "T_STRING",    "T_NUMBER",  "T_BOOLEAN",   "T_NULL",
                                           "T_COLON",     "T_COMMA",   "T_END"};

  // --- tokens ---

  void Next() {
    while (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r') ++at_;
    start_ = at_;
    switch (*at_) {
      case '{':
        return One(Token::kObjectBegin);
      case '}':
        return One(Token::kObjectEnd);
      case '[':
        return One(Token::kArrayBegin);
      case ']':
        return One(Token::kArrayEnd);
      case ':':
        return One(Token::kColon);
      case ',':
        return One(Token::kComma);
      case '\0':
        token_ = Token::kEnd;
        return;
      case '"':
        return String();
      default:
        return Word();
    }
  }
  void One(Token token) {
    token_ = token;
    ++at_;
  }
  void Broken(const char* text) {
    token_ = Token::kError;
    problem_ = text;
    start_ = at_;
  }
  bool Skip(std::string_view word) {
    if (std::strncmp(at_, word.data(), word.size()) != 0) return false;
    at_ += word.size();
    return true;
  }
  void Word() {
    const char c = *at_;
    if (c == '-' || (c >= '0' && c <= '9')) {
      if (!settings_.decode_invalid && IsInvalidNumber()) return Broken("invalid number");
      return Number();
    }
    token_ = Token::kBoolean;
    boolean_ = true;
    if (Skip("true")) return;
    boolean_ = false;
    if (Skip("false")) return;
    token_ = Token::kNull;
    if (Skip("null")) return;
    const bool may_be = c == '+' || c == 'i' || c == 'I' || c == 'n' || c == 'N';
    if (may_be && settings_.decode_invalid && IsInvalidNumber()) return Number();
    Broken("invalid token");
  }
  // Whether what stands here is a number to strtod, but not to the standard.
  bool IsInvalidNumber() const {
    const char* at = at_;
    if (*at == '+') return true;
    if (*at == '-') ++at;
    if (*at == '0') {
      const char next = at[1];
      return next == 'x' || next == 'X' || (next >= '0' && next <= '9');
    }
    if (*at <= '9') return false;
    return strncasecmp(at, "inf", 3) == 0 || strncasecmp(at, "nan", 3) == 0;
  }
  void Number() {
    if (ShortNumber()) return;
    char* end = nullptr;
    number_ = std::strtod(at_, &end);
    if (end == at_) return Broken("invalid number");
    token_ = Token::kNumber;
    at_ = end;
  }
  // A whole number of few digits, which strtod would take longer for.
  bool ShortNumber() {
    const char* at = at_;
    const bool negative = *at == '-';
    if (negative) ++at;
    int64_t value = 0;
    const char* first = at;
    for (; *at >= '0' && *at <= '9'; ++at) {
      if (at - first == 15) return false;
      value = value * 10 + (*at - '0');
    }
    if (at == first || *at == '.' || *at == 'e' || *at == 'E' || *at == 'x' || *at == 'X')
      return false;
    number_ = negative ? -static_cast<double>(value) : static_cast<double>(value);
    token_ = Token::kNumber;
    at_ = at;
    return true;
  }

  void String() {
    ++at_;
    std::string& text = scratch_->text();
    text.clear();
    for (;;) {
      const char* from = at_;
      while (*at_ != '"' && *at_ != '\\' && *at_ != '\0') ++at_;
      scratch_->Append({from, static_cast<size_t>(at_ - from)});
      if (*at_ == '\0') return Broken("unexpected end of string");
      if (*at_ == '"') break;
      if (at_[1] == 'u') {
        if (!Unicode()) return Broken("invalid unicode escape code");
        continue;
      }
      const char escaped = Unescaped(at_[1]);
      if (escaped == '\0') return Broken("invalid escape code");
      scratch_->Append(escaped);
      at_ += 2;
    }
    ++at_;
    token_ = Token::kString;
  }
  static char Unescaped(char c) {
    switch (c) {
      case '"':
      case '\\':
      case '/':
        return c;
      case 'b':
        return '\b';
      case 'f':
        return '\f';
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      default:
        return '\0';
    }
  }
  // Four hexadecimal digits; -1: there are none. Stops at the text's end.
  static int Hex(const char* at) {
    int value = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = at[i];
      int digit = 0;
      if (c >= '0' && c <= '9') {
        digit = c - '0';
      } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
        digit = (c | 0x20) - 'a' + 10;
      } else {
        return -1;
      }
      value = value * 16 + digit;
    }
    return value;
  }
  // \uXXXX, or a pair of surrogates.
  bool Unicode() {
    int code = Hex(at_ + 2);
    if (code < 0) return false;
    int size = 6;
    if ((code & 0xF800) == 0xD800) {
      if ((code & 0x400) != 0 || at_[6] != '\\' || at_[7] != 'u') return false;
      const int low = Hex(at_ + 8);
      if (low < 0 || (low & 0xFC00) != 0xDC00) return false;
      code = (((code & 0x3FF) << 10) | (low & 0x3FF)) + 0x10000;
      size = 12;
    }
    at_ += size;
    Utf8(code);
    return true;
  }
  void Utf8(int code) {
    const auto byte = [&](int bits) { scratch_->Append(static_cast<char>(bits)); };
    const auto more = [&](int shift) { byte(0x80 | ((code >> shift) & 0x3F)); };
    if (code < 0x80) {
      byte(code);
    } else if (code < 0x800) {
      byte(0xC0 | (code >> 6));
      more(0);
    } else if (code < 0x10000) {
      byte(0xE0 | (code >> 12));
      more(6);
      more(0);
    } else {
      byte(0xF0 | (code >> 18));
      more(12);
      more(6);
      more(0);
    }
  }

  // --- values ---

  [[noreturn]] void Fail(const char* expected) {
    const char* found = token_ == Token::kError ? problem_ : kNames[static_cast<size_t>(token_)];
    lua_pushfstring(lua_, "Expected %s but found %s at character ", expected, found);
    lua_pushnumber(lua_, static_cast<double>(start_ - begin_ + 1));
    lua_concat(lua_, 2);
    luaL_error(lua_, "%s", lua_tostring(lua_, -1));
    std::abort();  // luaL_error does not return
  }
  void Descend() {
    ++depth_;
    if (depth_ <= std::min(settings_.decode_depth, kJsonMostDepth) && lua_checkstack(lua_, 10) != 0)
      return;
    luaL_error(lua_, "Found too many nested data structures (%d) at character %d", depth_,
               static_cast<int>(start_ - begin_ + 1));
  }
  // Pushes the value that begins with the present token.
  void Value() {
    switch (token_) {
      case Token::kString:
        PushString();
        return;
      case Token::kNumber:
        lua_pushnumber(lua_, number_);
        return;
      case Token::kBoolean:
        lua_pushboolean(lua_, boolean_ ? 1 : 0);
        return;
      case Token::kNull:
        lua_pushlightuserdata(lua_, nullptr);
        return;
      case Token::kObjectBegin:
        Object();
        return;
      case Token::kArrayBegin:
        Array();
        return;
      default:
        Fail("value");
    }
  }
  void PushString() { lua_pushlstring(lua_, scratch_->text().data(), scratch_->text().size()); }
  void Object() {
    Descend();
    lua_newtable(lua_);
    Next();
    while (token_ != Token::kObjectEnd) {
      if (token_ != Token::kString) Fail("object key string");
      PushString();
      Next();
      if (token_ != Token::kColon) Fail("colon");
      Next();
      Value();
      lua_rawset(lua_, -3);
      Next();
      if (token_ == Token::kObjectEnd) break;
      if (token_ != Token::kComma) Fail("comma or object end");
      Next();
      // A comma announces a key.
      if (token_ == Token::kObjectEnd) Fail("object key string");
    }
    --depth_;
  }
  void Array() {
    Descend();
    lua_newtable(lua_);
    Next();
    for (int i = 1; token_ != Token::kArrayEnd; ++i) {
      Value();
      lua_rawseti(lua_, -2, i);
      Next();
      if (token_ == Token::kArrayEnd) break;
      if (token_ != Token::kComma) Fail("comma or array end");
      Next();
      if (token_ == Token::kArrayEnd) Fail("value");
    }
    --depth_;
  }

  lua_State* lua_;
  const JsonSettings& settings_;
  const char* begin_;
  const char* at_;
  Bytes* scratch_;
  Token token_ = Token::kEnd;
  const char* start_ = nullptr;  // of the token
  const char* problem_ = nullptr;
  double number_ = 0;
  bool boolean_ = false;
  int depth_ = 0;
};

}  // namespace

int JsonDecode(lua_State* lua) {
  luaL_argcheck(lua, lua_gettop(lua) == 1, 1, "expected 1 argument");
  size_t size = 0;
  const char* text = luaL_checklstring(lua, 1, &size);
  if (size >= 2 && (text[0] == '\0' || text[1] == '\0')) {
    return luaL_error(lua, "JSON parser does not support UTF-16 or UTF-32");
  }
  Vm::Tick(lua, size / 16);
  Bytes scratch(lua);
  Decoder(lua, JsonSettingsOf(lua), {text, size}, &scratch).Whole();
  return 1;
}

}  // namespace sava::lua
