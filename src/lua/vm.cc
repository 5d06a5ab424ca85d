#include "lua/vm.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace sava::lua {
namespace {

// Its address marks errors that nobody may catch.
char stop_mark;
// Its address is the registry's key of the tables behind the read-only ones.
char behind_key;

int RefuseWrite(lua_State* lua) { return luaL_error(lua, "Attempt to modify a readonly table"); }

int RefuseUnknown(lua_State* lua) {
  const char* name = lua_type(lua, 2) == LUA_TSTRING ? lua_tostring(lua, 2) : nullptr;
  if (name == nullptr) name = luaL_typename(lua, 2);
  return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'", name);
}

}  // namespace

Vm::Vm() {
  main = lua_newstate(Allocate, this);
  if (main == nullptr) return;
  lua_sethook(main, Hook, LUA_MASKCOUNT, kHookEvery);
}

Vm::~Vm() {
  if (main == nullptr) return;
  UnboundMemory();
  const auto collect = [](lua_State* state) -> int {
    lua_gc(state, LUA_GCCOLLECT, 0);
    return 0;
  };
  lua_cpcall(main, collect, nullptr);
  lua_close(main);
}

void* Vm::Allocate(void* self, void* block, size_t old_size, size_t new_size) {
  Vm& vm = *static_cast<Vm*>(self);
  if (new_size == 0) {
    std::free(block);
    vm.used_ -= old_size;
    return nullptr;
  }
  if (new_size >= 4096) vm.Worked(new_size / 256);
  if (new_size > old_size) {
    const size_t more = new_size - old_size;
    if (more > vm.headroom()) return nullptr;
    if (vm.used_ + more > vm.collect_above_) [[unlikely]]
      vm.WantCollection();
  }
  void* moved = block == nullptr ? std::malloc(new_size) : std::realloc(block, new_size);
  // Lua expects that shrinking never fails.
  if (moved == nullptr) return new_size <= old_size ? block : nullptr;
  vm.used_ += new_size - old_size;
  return moved;
}

void Vm::BoundMemory(size_t bytes) {
  cap_ = bytes > SIZE_MAX - used_ ? SIZE_MAX : used_ + bytes;
  collect_above_ = bytes > SIZE_MAX - used_ ? SIZE_MAX : used_ + bytes / 4;
}

void Vm::UnboundMemory() {
  cap_ = SIZE_MAX;
  collect_above_ = SIZE_MAX;
}

void Vm::WantCollection() {
  if (running == nullptr) return;
  // Not here: an allocation is no place to collect. The hook comes at the next instruction.
  collect_above_ = SIZE_MAX;
  wants_collection_ = true;
  lua_sethook(running, Hook, LUA_MASKCOUNT, 1);
}

bool Vm::Take(size_t bytes) {
  if (bytes > headroom()) return false;
  used_ += bytes;
  if (used_ > collect_above_) WantCollection();
  return true;
}

void Vm::RaiseStop(lua_State* lua) {
  lua_pushlightuserdata(lua, &stop_mark);
  lua_error(lua);
  std::abort();  // lua_error does not return
}

void Vm::Hook(lua_State* lua, lua_Debug*) {
  Vm& vm = Of(lua);
  if (lua_gethookcount(lua) != kHookEvery) lua_sethook(lua, Hook, LUA_MASKCOUNT, kHookEvery);
  if (vm.wants_collection_) {
    vm.wants_collection_ = false;
    lua_gc(lua, LUA_GCCOLLECT, 0);
    // Halfway to the bound again, so that it is garbage only that is ever in the way.
    vm.collect_above_ = vm.cap_ == SIZE_MAX ? SIZE_MAX : vm.used_ + vm.headroom() / 2;
    vm.ticks_ += vm.used_ / 64;
    if (vm.ticks_ < kHookEvery) return;
  }
  vm.AskHost(lua);
}

void Vm::Worked(size_t steps) {
  ticks_ += steps;
  if (ticks_ < kHookEvery || running == nullptr) return;
  ticks_ = 0;
  lua_sethook(running, Hook, LUA_MASKCOUNT, 1);
}

void Vm::AskHost(lua_State* lua) {
  ticks_ = 0;
  if (stop == Stop::kNone) {
    if (host != nullptr && host->Interrupted()) {
      stop = Stop::kKilled;
    } else if (load_interrupted != nullptr && *load_interrupted && (*load_interrupted)()) {
      stop = Stop::kLoadTimeout;
    }
  }
  if (stopping()) RaiseStop(lua);
}

void Vm::Protect(lua_State* lua, bool fail_unknown) {
  lua_checkstack(lua, 6);
  const int real = lua_gettop(lua);
  if (fail_unknown) {
    lua_createtable(lua, 0, 1);
    lua_pushcfunction(lua, Guarded<RefuseUnknown>);
    lua_setfield(lua, -2, "__index");
    lua_setmetatable(lua, real);
  }
  lua_newtable(lua);
  lua_createtable(lua, 0, 3);
  lua_pushvalue(lua, real);
  lua_setfield(lua, -2, "__index");
  lua_pushcfunction(lua, Guarded<RefuseWrite>);
  lua_setfield(lua, -2, "__newindex");
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_setmetatable(lua, -2);

  lua_pushlightuserdata(lua, &behind_key);
  lua_rawget(lua, LUA_REGISTRYINDEX);
  if (lua_isnil(lua, -1)) {
    lua_pop(lua, 1);
    lua_newtable(lua);
    lua_pushlightuserdata(lua, &behind_key);
    lua_pushvalue(lua, -2);
    lua_rawset(lua, LUA_REGISTRYINDEX);
  }
  lua_pushvalue(lua, real);
  lua_rawseti(lua, -2, protected_count_ + 1);
  // The read-only table too, so that its address stays its own.
  lua_pushvalue(lua, -2);
  lua_rawseti(lua, -2, -(protected_count_ + 1));
  lua_pop(lua, 1);
  protected_.at(protected_count_++) = lua_topointer(lua, -1);
  lua_remove(lua, real);
}

bool Vm::IsProtected(lua_State* lua, int index) const {
  if (lua_type(lua, index) != LUA_TTABLE || lua_getmetatable(lua, index) == 0) return false;
  lua_pop(lua, 1);
  const auto end = protected_.begin() + protected_count_;
  return std::find(protected_.begin(), end, lua_topointer(lua, index)) != end;
}

void Vm::PushBehind(lua_State* lua, int index) const {
  if (!IsProtected(lua, index)) {
    lua_pushvalue(lua, index);
    return;
  }
  const auto end = protected_.begin() + protected_count_;
  const auto at = std::find(protected_.begin(), end, lua_topointer(lua, index));
  lua_pushlightuserdata(lua, &behind_key);
  lua_rawget(lua, LUA_REGISTRYINDEX);
  lua_rawgeti(lua, -1, static_cast<int>(at - protected_.begin()) + 1);
  lua_remove(lua, -2);
}

void Vm::ShowBehind(lua_State* lua, int index) {
  const int real = lua_gettop(lua);
  const auto end = protected_.begin() + protected_count_;
  const auto at = std::find(protected_.begin(), end, lua_topointer(lua, index));
  lua_getmetatable(lua, index);
  lua_pushvalue(lua, real);
  lua_setfield(lua, -2, "__index");
  lua_pop(lua, 1);
  lua_pushlightuserdata(lua, &behind_key);
  lua_rawget(lua, LUA_REGISTRYINDEX);
  lua_pushvalue(lua, real);
  lua_rawseti(lua, -2, static_cast<int>(at - protected_.begin()) + 1);
  lua_settop(lua, real - 1);
}

void Bytes::Grow(size_t size) {
  const size_t wanted = text_.size() + size;
  if (wanted < size) RaiseMemory(lua_);
  const size_t room = std::max(wanted, wanted > SIZE_MAX / 2 ? wanted : text_.capacity() * 2);
  // What small buffers hold is the interpreter's and not counted.
  const size_t more = room > kKept ? room - std::min(taken_, room) : 0;
  if (!vm_.Take(more)) {
    const size_t least = wanted - std::min(taken_, wanted);
    if (!vm_.Take(least)) RaiseMemory(lua_);
    taken_ += least;
    text_.reserve(wanted);
    return;
  }
  taken_ += more;
  text_.reserve(room);
}

void RaisePlain(lua_State* lua, std::string_view text) {
  lua_pushlstring(lua, text.data(), text.size());
  lua_error(lua);
  std::abort();  // lua_error does not return
}

void RaiseMemory(lua_State* lua) { RaisePlain(lua, "not enough memory"); }

void SetFunctions(lua_State* lua, const luaL_Reg* functions, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    lua_pushcfunction(lua, functions[i].func);
    lua_setfield(lua, -2, functions[i].name);
  }
}

}  // namespace sava::lua
