// cmsgpack: values in the MessagePack format. Tables whose keys are 1 to n are arrays, others maps;
// whole numbers are integers; what lies deeper than 16 tables is nil.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "lua/vm.h"

namespace sava::lua {
namespace {

constexpr int kMostDepth = 16;

// --- packing ---

class Packer {
 public:
  Packer(lua_State* lua, Bytes* out) : lua_(lua), vm_(Vm::Of(lua)), out_(out) {}

  // Packs the value on top and takes it off.
  void Value(int depth) {
    luaL_checkstack(lua_, 6, "in function mp_encode_lua_type");
    switch (lua_type(lua_, -1)) {
      case LUA_TSTRING: {
        size_t size = 0;
        const char* text = lua_tolstring(lua_, -1, &size);
        Text({text, size});
        break;
      }
      case LUA_TBOOLEAN:
        Tag(lua_toboolean(lua_, -1) != 0 ? 0xC3 : 0xC2);
        break;
      case LUA_TNUMBER:
        Number(lua_tonumber(lua_, -1));
        break;
      case LUA_TTABLE:
        if (depth < kMostDepth) {
          Table(depth);
          break;
        }
        [[fallthrough]];
      default:
        Tag(0xC0);
        break;
    }
    lua_pop(lua_, 1);
  }

 private:
  void Tag(int tag) { out_->Append(static_cast<char>(tag)); }
  void Big(uint64_t value, size_t size) {
    char bytes[8];
    for (size_t i = 0; i < size; ++i) {
      bytes[i] = static_cast<char>(value >> (8 * (size - 1 - i)));
    }
    out_->Append({bytes, size});
  }
  void Tagged(int tag, uint64_t value, size_t size) {
    Tag(tag);
    Big(value, size);
  }
  void Number(double number) {
    if (number >= -9223372036854775808.0 && number < 9223372036854775808.0 &&
        static_cast<double>(static_cast<int64_t>(number)) == number) {
      Integer(static_cast<int64_t>(number));
      return;
    }
    const auto narrow = static_cast<float>(number);
    if (static_cast<double>(narrow) == number) {
      Tagged(0xCA, std::bit_cast<uint32_t>(narrow), 4);
    } else {
      Tagged(0xCB, std::bit_cast<uint64_t>(number), 8);
    }
  }
  void Integer(int64_t value) {
    const auto bits = static_cast<uint64_t>(value);
    if (value >= 0) {
      if (value <= 127) return Tag(static_cast<int>(value));
      if (value <= 0xFF) return Tagged(0xCC, bits, 1);
      if (value <= 0xFFFF) return Tagged(0xCD, bits, 2);
      if (value <= 0xFFFFFFFFLL) return Tagged(0xCE, bits, 4);
      return Tagged(0xCF, bits, 8);
    }
    if (value >= -32) return Tag(static_cast<int>(bits & 0xFF));
    if (value >= INT8_MIN) return Tagged(0xD0, bits, 1);
    if (value >= INT16_MIN) return Tagged(0xD1, bits, 2);
    if (value >= INT32_MIN) return Tagged(0xD2, bits, 4);
    Tagged(0xD3, bits, 8);
  }
  void Text(std::string_view text) {
    const size_t size = text.size();
    if (size < 32) {
      Tag(static_cast<int>(0xA0 | size));
    } else if (size <= 0xFF) {
      Tagged(0xD9, size, 1);
    } else if (size <= 0xFFFF) {
      Tagged(0xDA, size, 2);
    } else if (size <= 0xFFFFFFFF) {
      Tagged(0xDB, size, 4);
    } else {
      luaL_error(lua_, "string is too long for MessagePack");
    }
    out_->Append(text);
  }
  void Count(size_t count, int small, int tag16) {
    if (count <= 15) {
      Tag(small | static_cast<int>(count));
    } else if (count <= 0xFFFF) {
      Tagged(tag16, count, 2);
    } else {
      Tagged(tag16 + 1, count, 4);
    }
  }
  void Table(int depth) {
    vm_.PushBehind(lua_, -1);
    lua_replace(lua_, -2);
    // One walk finds the number of pairs, and whether the keys are 1 to n.
    size_t pairs = 0;
    double most = 0;
    bool array = true;
    lua_pushnil(lua_);
    while (lua_next(lua_, -2) != 0) {
      lua_pop(lua_, 1);
      ++pairs;
      if (!array) continue;
      const double key = lua_type(lua_, -1) == LUA_TNUMBER ? lua_tonumber(lua_, -1) : 0;
      array = key > 0 && key <= INT32_MAX && std::floor(key) == key;
      most = std::max(most, key);
    }
    if (array && most == static_cast<double>(pairs)) {
      Count(pairs, 0x90, 0xDC);
      for (size_t i = 1; i <= pairs; ++i) {
        lua_rawgeti(lua_, -1, static_cast<int>(i));
        Value(depth + 1);
      }
      return;
    }
    Count(pairs, 0x80, 0xDE);
    lua_pushnil(lua_);
    while (lua_next(lua_, -2) != 0) {
      lua_pushvalue(lua_, -2);
      Value(depth + 1);
      Value(depth + 1);
    }
  }

  lua_State* lua_;
  Vm& vm_;
  Bytes* out_;
};

int Pack(lua_State* lua) {
  const int count = lua_gettop(lua);
  if (count == 0) return luaL_argerror(lua, 0, "MessagePack pack needs input.");
  if (lua_checkstack(lua, count) == 0) {
    return luaL_argerror(lua, 0, "Too many arguments for MessagePack pack.");
  }
  Bytes out(lua);
  Packer packer(lua, &out);
  for (int i = 1; i <= count; ++i) {
    lua_pushvalue(lua, i);
    packer.Value(0);
  }
  out.Push();
  return 1;
}

// --- unpacking ---

class Unpacker {
 public:
  Unpacker(lua_State* lua, std::string_view bytes)
      : lua_(lua), at_(bytes.data()), end_(at_ + bytes.size()) {}

  size_t left() const { return end_ - at_; }

  // Pushes the next value.
  void Value() {
    const auto tag = static_cast<uint8_t>(Big(1));
    if (tag <= 0x7F) return Push(tag);
    if (tag >= 0xE0) return Push(static_cast<int8_t>(tag));
    if (tag <= 0x8F) return Map(tag & 0x0F);
    if (tag <= 0x9F) return Array(tag & 0x0F);
    if (tag <= 0xBF) return Text(tag & 0x1F);
    Tagged(tag);
  }

 private:
  void Need(uint64_t size) {
    if (size > left()) luaL_error(lua_, "Missing bytes in input.");
  }
  uint64_t Big(size_t size) {
    Need(size);
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value = (value << 8) | static_cast<unsigned char>(*at_++);
    return value;
  }
  void Push(double number) { lua_pushnumber(lua_, number); }
  void Tagged(uint8_t tag) {
    switch (tag) {
      case 0xC0:
        return lua_pushnil(lua_);
      case 0xC2:
      case 0xC3:
        return lua_pushboolean(lua_, tag == 0xC3 ? 1 : 0);
      case 0xCA:
        return Push(std::bit_cast<float>(static_cast<uint32_t>(Big(4))));
      case 0xCB:
        return Push(std::bit_cast<double>(Big(8)));
      case 0xCC:
      case 0xCD:
      case 0xCE:
        return Push(static_cast<double>(Big(size_t{1} << (tag - 0xCC))));
      case 0xD0:
        return Push(static_cast<int8_t>(Big(1)));
      case 0xD1:
        return Push(static_cast<int16_t>(Big(2)));
      case 0xD2:
        return Push(static_cast<int32_t>(Big(4)));
      // Larger ones than a signed integer holds come out negative, as they always did.
      case 0xCF:
      case 0xD3:
        return Push(static_cast<double>(static_cast<int64_t>(Big(8))));
      case 0xD9:
      case 0xDA:
      case 0xDB:
        return Text(Big(size_t{1} << (tag - 0xD9)));
      case 0xDC:
      case 0xDD:
        return Array(Big(tag == 0xDC ? 2 : 4));
      case 0xDE:
      case 0xDF:
        return Map(Big(tag == 0xDE ? 2 : 4));
      default:
        luaL_error(lua_, "Bad data format in input.");
    }
  }
  void Text(uint64_t size) {
    Need(size);
    lua_pushlstring(lua_, at_, size);
    at_ += size;
  }
  // Room is reserved for what the input can hold, not for what it says.
  int Room(uint64_t count) const { return static_cast<int>(std::min<uint64_t>(count, left())); }
  void Array(uint64_t count) {
    luaL_checkstack(lua_, 8, "in function mp_decode_to_lua_array");
    lua_createtable(lua_, std::min(Room(count), 1 << 20), 0);
    for (uint64_t i = 1; i <= count; ++i) {
      Value();
      lua_rawseti(lua_, -2, static_cast<int>(i));
    }
  }
  void Map(uint64_t count) {
    luaL_checkstack(lua_, 8, "in function mp_decode_to_lua_hash");
    lua_createtable(lua_, 0, std::min(Room(count) / 2, 1 << 16));
    for (uint64_t i = 0; i < count; ++i) {
      Value();
      Value();
      lua_rawset(lua_, -3);
    }
  }

  lua_State* lua_;
  const char* at_;
  const char* end_;
};

// Unpacks up to `limit` values from `offset` on; all of them if both are zero.
int UnpackFrom(lua_State* lua, int limit, int offset) {
  size_t size = 0;
  const char* text = luaL_checklstring(lua, 1, &size);
  if (offset < 0 || limit < 0) {
    return luaL_error(lua, "Invalid request to unpack with offset of %d and limit of %d.", offset,
                      static_cast<int>(std::min<size_t>(size, INT32_MAX)));
  }
  if (static_cast<size_t>(offset) > size) {
    return luaL_error(lua, "Start offset %d greater than input length %d.", offset,
                      static_cast<int>(std::min<size_t>(size, INT32_MAX)));
  }
  const bool all = limit == 0 && offset == 0;
  if (all) limit = INT32_MAX;
  lua_settop(lua, 1);
  Unpacker unpacker(lua, {text + offset, size - offset});
  int count = 0;
  while (unpacker.left() > 0 && count < limit) {
    luaL_checkstack(lua, 4,
                    "too many return values at once; use unpack_one or unpack_limit instead.");
    unpacker.Value();
    ++count;
  }
  if (all) return count;
  luaL_checkstack(lua, 2, "in function mp_unpack_full");
  lua_pushnumber(lua, unpacker.left() == 0 ? -1 : static_cast<double>(size - unpacker.left()));
  lua_insert(lua, 2);
  return count + 1;
}

int Unpack(lua_State* lua) { return UnpackFrom(lua, 0, 0); }
int UnpackOne(lua_State* lua) { return UnpackFrom(lua, 1, luaL_optint(lua, 2, 0)); }
int UnpackLimit(lua_State* lua) {
  return UnpackFrom(lua, luaL_checkint(lua, 2), luaL_optint(lua, 3, 0));
}

constexpr luaL_Reg kFunctions[] = {{"pack", Guarded<Pack>},
                                   {"unpack", Guarded<Unpack>},
                                   {"unpack_one", Guarded<UnpackOne>},
                                   {"unpack_limit", Guarded<UnpackLimit>}};

}  // namespace

void OpenMessagePack(lua_State* lua) {
  lua_newtable(lua);
  SetFunctions(lua, kFunctions);
  lua_pushliteral(lua, "cmsgpack");
  lua_setfield(lua, -2, "_NAME");
  lua_pushliteral(lua, "lua-cmsgpack 0.4.0");
  lua_setfield(lua, -2, "_VERSION");
}

}  // namespace sava::lua
