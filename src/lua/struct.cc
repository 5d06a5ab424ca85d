// struct: C structures as strings. A format is a row of letters:
//   < > endianness; !n alignment; blank; x a byte of padding; b B h H l L T integers of 1, 2, 8 and
//   8 bytes; in In integers of n bytes (at most 32); f d floating point; cn a string of n bytes
//   (c0: as long as the integer before it says); s a string that a zero byte ends. Capitals are
//   unsigned.

#include <bit>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "lua/numbers.h"
#include "lua/vm.h"

namespace sava::lua {
namespace {

constexpr int kMostInteger = 32;
constexpr int kMostAlignment = 8;

class Format {
 public:
  Format(lua_State* lua, const char* text) : lua_(lua), at_(text) {}

  // The next option and what it takes. False: there is none.
  bool Next(char* option, size_t* size) {
    if (*at_ == '\0') return false;
    *option = *at_++;
    *size = SizeOf(*option);
    return true;
  }
  // Padding before a value of `size` bytes at `offset`.
  size_t Padding(size_t offset, char option, size_t size) const {
    if (size == 0 || option == 'c') return 0;
    const size_t unit = std::min(size, alignment_);
    return (unit - (offset & (unit - 1))) & (unit - 1);
  }
  // An option that stands for no value.
  void Control(char option) {
    switch (option) {
      case ' ':
        return;
      case '>':
        big_ = true;
        return;
      case '<':
        big_ = false;
        return;
      case '!': {
        const int unit = ReadNumber(kMostAlignment);
        if (unit <= 0 || !std::has_single_bit(static_cast<unsigned>(unit))) {
          luaL_error(lua_, "alignment %d is not a power of 2", unit);
        }
        alignment_ = static_cast<size_t>(unit);
        return;
      }
      default:
        lua_pushfstring(lua_, "invalid format option '%c'", option);
        luaL_argerror(lua_, 1, lua_tostring(lua_, -1));
    }
  }
  bool big() const { return big_; }

 private:
  int ReadNumber(int fallback) {
    if (std::isdigit(static_cast<unsigned char>(*at_)) == 0) return fallback;
    int64_t number = 0;
    while (std::isdigit(static_cast<unsigned char>(*at_)) != 0) {
      number = number * 10 + (*at_++ - '0');
      if (number > INT32_MAX) luaL_error(lua_, "integral size overflow");
    }
    return static_cast<int>(number);
  }
  size_t SizeOf(char option) {
    switch (option) {
      case 'b':
      case 'B':
      case 'x':
        return 1;
      case 'h':
      case 'H':
        return sizeof(int16_t);
      case 'l':
      case 'L':
      case 'T':
      case 'd':
        return sizeof(int64_t);
      case 'f':
        return sizeof(float);
      case 'c':
        return static_cast<size_t>(ReadNumber(1));
      case 'i':
      case 'I': {
        const int size = ReadNumber(sizeof(int32_t));
        if (size > kMostInteger) {
          luaL_error(lua_, "integral size %d is larger than limit of %d", size, kMostInteger);
        }
        return static_cast<size_t>(size);
      }
      default:
        return 0;
    }
  }

  lua_State* lua_;
  const char* at_;
  bool big_ = false;
  size_t alignment_ = 1;
};

bool IsInteger(char option) {
  return option != '\0' && std::strchr("bBhHlLTiI", option) != nullptr;
}

void AppendInteger(lua_State* lua, int index, bool big, size_t size, Bytes* out) {
  const double number = luaL_checknumber(lua, index);
  uint64_t value = 0;
  if (number < 0) {
    value = static_cast<uint64_t>(TruncateNumber(number));
  } else if (number < 18446744073709551616.0) {
    value = static_cast<uint64_t>(number);
  }
  char bytes[kMostInteger];
  for (size_t i = 0; i < size; ++i) {
    bytes[big ? size - 1 - i : i] = static_cast<char>(value & 0xFF);
    value >>= 8;
  }
  out->Append({bytes, size});
}

double ReadInteger(const char* data, bool big, size_t size, bool is_signed) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) {
    value = (value << 8) | static_cast<unsigned char>(data[big ? i : size - 1 - i]);
  }
  if (!is_signed) return static_cast<double>(value);
  if (size > 0 && size < sizeof value) {
    const uint64_t sign = ~uint64_t{0} << (size * 8 - 1);
    if ((value & sign) != 0) value |= sign;
  }
  return static_cast<double>(static_cast<int64_t>(value));
}

template <typename Float>
void AppendFloat(double number, bool big, Bytes* out) {
  // A double beyond a float's range becomes infinite.
  const auto value = static_cast<Float>(number);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  if (big) std::reverse(bytes, bytes + sizeof bytes);
  out->Append({bytes, sizeof bytes});
}

template <typename Float>
double ReadFloat(const char* data, bool big) {
  char bytes[sizeof(Float)];
  std::memcpy(bytes, data, sizeof bytes);
  if (big) std::reverse(bytes, bytes + sizeof bytes);
  Float value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

int Pack(lua_State* lua) {
  Format format(lua, luaL_checkstring(lua, 1));
  // What is told of the first argument that is missing.
  lua_pushnil(lua);
  Bytes out(lua);
  size_t total = 0;
  int index = 2;
  char option = 0;
  size_t size = 0;
  while (format.Next(&option, &size)) {
    const size_t padding = format.Padding(total, option, size);
    out.Fill(padding, '\0');
    if (IsInteger(option)) {
      AppendInteger(lua, index++, format.big(), size, &out);
    } else if (option == 'x') {
      out.Append('\0');
    } else if (option == 'f') {
      AppendFloat<float>(luaL_checknumber(lua, index++), format.big(), &out);
    } else if (option == 'd') {
      AppendFloat<double>(luaL_checknumber(lua, index++), format.big(), &out);
    } else if (option == 'c' || option == 's') {
      size_t length = 0;
      const char* text = luaL_checklstring(lua, index++, &length);
      if (size == 0) size = length;
      luaL_argcheck(lua, length >= size, index, "string too short");
      out.Append({text, size});
      if (option == 's') out.Append('\0');
    } else {
      format.Control(option);
    }
    total = out.text().size();
  }
  out.Push();
  return 1;
}

int Unpack(lua_State* lua) {
  Format format(lua, luaL_checkstring(lua, 1));
  size_t length = 0;
  const char* data = luaL_checklstring(lua, 2, &length);
  const ptrdiff_t start = luaL_optinteger(lua, 3, 1);
  luaL_argcheck(lua, start != 0, 3, "offset must be 1 or greater");
  // A negative one is far beyond the data.
  size_t at = static_cast<size_t>(start) - 1;
  int results = 0;
  char option = 0;
  size_t size = 0;
  const auto need = [&] {
    luaL_argcheck(lua, size <= length && at <= length - size, 2, "data string too short");
  };
  while (format.Next(&option, &size)) {
    at += format.Padding(at, option, size);
    need();
    luaL_checkstack(lua, 3, "too many results");
    if (IsInteger(option)) {
      const bool is_signed = std::islower(static_cast<unsigned char>(option)) != 0;
      lua_pushnumber(lua, ReadInteger(data + at, format.big(), size, is_signed));
      ++results;
    } else if (option == 'f') {
      lua_pushnumber(lua, ReadFloat<float>(data + at, format.big()));
      ++results;
    } else if (option == 'd') {
      lua_pushnumber(lua, ReadFloat<double>(data + at, format.big()));
      ++results;
    } else if (option == 'c') {
      if (size == 0) {
        if (results == 0 || lua_isnumber(lua, -1) == 0) {
          luaL_error(lua, "format 'c0' needs a previous size");
        }
        const double given = lua_tonumber(lua, -1);
        size = given >= 0 && given < 9e15 ? static_cast<size_t>(given) : SIZE_MAX;
        lua_pop(lua, 1);
        --results;
        need();
      }
      lua_pushlstring(lua, data + at, size);
      ++results;
    } else if (option == 's') {
      const void* end = std::memchr(data + at, '\0', length - at);
      if (end == nullptr) luaL_error(lua, "unfinished string in data");
      size = static_cast<size_t>(static_cast<const char*>(end) - (data + at)) + 1;
      lua_pushlstring(lua, data + at, size - 1);
      ++results;
    } else if (option != 'x') {
      format.Control(option);
    }
    at += size;
  }
  lua_pushnumber(lua, static_cast<double>(at) + 1);
  return results + 1;
}

int Size(lua_State* lua) {
  Format format(lua, luaL_checkstring(lua, 1));
  size_t total = 0;
  char option = 0;
  size_t size = 0;
  while (format.Next(&option, &size)) {
    total += format.Padding(total, option, size);
    if (option == 's') {
      luaL_argerror(lua, 1, "option 's' has no fixed size");
    } else if (option == 'c' && size == 0) {
      luaL_argerror(lua, 1, "option 'c0' has no fixed size");
    } else if (std::isalnum(static_cast<unsigned char>(option)) == 0) {
      format.Control(option);
    }
    total += size;
  }
  lua_pushnumber(lua, static_cast<double>(total));
  return 1;
}

constexpr luaL_Reg kFunctions[] = {
    {"pack", Guarded<Pack>}, {"unpack", Guarded<Unpack>}, {"size", Guarded<Size>}};

}  // namespace

void OpenStruct(lua_State* lua) {
  lua_newtable(lua);
  SetFunctions(lua, kFunctions);
}

}  // namespace sava::lua
