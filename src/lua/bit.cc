// bit: operations on 32-bit integers, as the library BitOp names them. Numbers are taken modulo
// 2^32; results are signed.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "lua/vm.h"

namespace sava::lua {
namespace {

uint32_t Argument(lua_State* lua, int index) {
  // Adding 2^52 + 2^51 leaves the rounded integer in the low bits.
  const double shifted = luaL_checknumber(lua, index) + 6755399441055744.0;
  uint64_t bits = 0;
  std::memcpy(&bits, &shifted, sizeof bits);
  return static_cast<uint32_t>(bits);
}

int Push(lua_State* lua, uint32_t value) {
  lua_pushnumber(lua, static_cast<int32_t>(value));
  return 1;
}

int ToBit(lua_State* lua) { return Push(lua, Argument(lua, 1)); }
int Not(lua_State* lua) { return Push(lua, ~Argument(lua, 1)); }
int Swap(lua_State* lua) { return Push(lua, __builtin_bswap32(Argument(lua, 1))); }

template <typename Operation>
int Fold(lua_State* lua, Operation operation) {
  uint32_t value = Argument(lua, 1);
  for (int i = lua_gettop(lua); i > 1; --i) value = operation(value, Argument(lua, i));
  return Push(lua, value);
}

int And(lua_State* lua) {
  return Fold(lua, [](uint32_t a, uint32_t b) { return a & b; });
}
int Or(lua_State* lua) {
  return Fold(lua, [](uint32_t a, uint32_t b) { return a | b; });
}
int Xor(lua_State* lua) {
  return Fold(lua, [](uint32_t a, uint32_t b) { return a ^ b; });
}

uint32_t Distance(lua_State* lua) { return Argument(lua, 2) & 31; }

int ShiftLeft(lua_State* lua) { return Push(lua, Argument(lua, 1) << Distance(lua)); }
int ShiftRight(lua_State* lua) { return Push(lua, Argument(lua, 1) >> Distance(lua)); }
int ShiftArithmetic(lua_State* lua) {
  return Push(lua, static_cast<uint32_t>(static_cast<int32_t>(Argument(lua, 1)) >> Distance(lua)));
}
int RotateLeft(lua_State* lua) {
  return Push(lua, std::rotl(Argument(lua, 1), static_cast<int>(Distance(lua))));
}
int RotateRight(lua_State* lua) {
  return Push(lua, std::rotr(Argument(lua, 1), static_cast<int>(Distance(lua))));
}

int ToHex(lua_State* lua) {
  uint32_t value = Argument(lua, 1);
  const auto given = static_cast<int32_t>(lua_isnone(lua, 2) ? 8 : Argument(lua, 2));
  const char* digits = given < 0 ? "0123456789ABCDEF" : "0123456789abcdef";
  const int count = static_cast<int>(std::min<int64_t>(given < 0 ? -int64_t{given} : given, 8));
  char text[8];
  for (int i = count; i-- > 0; value >>= 4) text[i] = digits[value & 15];
  lua_pushlstring(lua, text, count);
  return 1;
}

constexpr luaL_Reg kFunctions[] = {
    {"tobit", Guarded<ToBit>},       {"bnot", Guarded<Not>},
    {"band", Guarded<And>},          {"bor", Guarded<Or>},
    {"bxor", Guarded<Xor>},          {"lshift", Guarded<ShiftLeft>},
    {"rshift", Guarded<ShiftRight>}, {"arshift", Guarded<ShiftArithmetic>},
    {"rol", Guarded<RotateLeft>},    {"ror", Guarded<RotateRight>},
    {"bswap", Guarded<Swap>},        {"tohex", Guarded<ToHex>}};

}  // namespace

void OpenBit(lua_State* lua) {
  lua_newtable(lua);
  SetFunctions(lua, kFunctions);
}

}  // namespace sava::lua
