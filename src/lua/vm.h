// Vm: what the C functions of one Lua state share: the host of the present run, its bounds, why it
// is to stop, and the tables that scripts may read only. Found from any lua_State by Vm::Of.
//
// Rules for every C function that scripts can reach:
//   * it is registered as Guarded<F>: no C++ exception but Lua's own passes its edge;
//   * it makes room on Lua's stack (lua_checkstack) before it pushes more than a few values;
//   * it takes lengths as size_t and bounds what it builds outside Lua's heap by Bytes;
//   * a loop whose length a script chooses and that runs no Lua code calls Tick.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <lua.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lua/interpreter.h"

namespace sava::lua {

// Which set of globals the state shows.
enum class Phase : uint8_t { kScript, kFunction, kLoad };
enum class Stop : uint8_t { kNone, kUnwound, kKilled, kLoadTimeout };

// The generator behind math.random: the 48-bit linear congruential one of drand48, so that equal
// seeds give the row that Redis gives.
class Random {
 public:
  // 31 bits.
  int32_t Next() {
    state_ = (state_ * 0x5DEECE66DULL + 0xB) & ((uint64_t{1} << 48) - 1);
    return static_cast<int32_t>(state_ >> 17);
  }
  void Seed(int32_t seed) { state_ = (uint64_t{static_cast<uint32_t>(seed)} << 16) | 0x330E; }

 private:
  uint64_t state_ = 0x1234ABCD330EULL;
};

// What cjson lets a script set; each run begins with the defaults.
struct JsonSettings {
  bool sparse_convert = false;
  int sparse_ratio = 2;
  int sparse_safe = 10;
  int encode_depth = 1000;
  int decode_depth = 1000;
  int precision = 14;
  bool keep_buffer = true;
  enum class Invalid : uint8_t { kRefused, kAllowed, kNull };
  Invalid encode_invalid = Invalid::kRefused;
  bool decode_invalid = true;
};

class Vm {
 public:
  Vm();
  ~Vm();
  Vm(const Vm&) = delete;
  Vm& operator=(const Vm&) = delete;

  static Vm& Of(lua_State* lua) {
    void* self = nullptr;
    lua_getallocf(lua, &self);
    return *static_cast<Vm*>(self);
  }

  // --- memory ---
  size_t used() const { return used_; }
  // No allocation may take the state above what it holds now plus `bytes`.
  void BoundMemory(size_t bytes);
  void UnboundMemory();
  // Bytes that may still be taken.
  size_t headroom() const { return used_ < cap_ ? cap_ - used_ : 0; }
  // Counts bytes held outside Lua's heap for the script. False: there is no room.
  bool Take(size_t bytes);
  void GiveBack(size_t bytes) { used_ -= bytes; }

  // --- stopping ---
  bool stopping() const { return stop != Stop::kNone; }
  // Ends the run, whatever pcall the script stands in. Does not return.
  [[noreturn]] static void RaiseStop(lua_State* lua);
  // To be called after any protected call: an error that nobody may catch goes on.
  static void PassStopOn(lua_State* lua) {
    if (Of(lua).stopping()) RaiseStop(lua);
  }
  // For loops outside Lua code: `steps` of work were done.
  static void Tick(lua_State* lua, size_t steps) {
    Vm& vm = Of(lua);
    vm.ticks_ += steps;
    if (vm.ticks_ >= kHookEvery) [[unlikely]]
      vm.AskHost(lua);
  }
  static constexpr int kHookEvery = 100'000;

  // --- read-only tables ---
  // Replaces the table on top of the stack by an empty one that shows its fields and takes none.
  // `fail_unknown`: reading an unknown name is an error.
  void Protect(lua_State* lua, bool fail_unknown);
  // Whether the value at `index` is such a table.
  bool IsProtected(lua_State* lua, int index) const;
  // Pushes the table whose fields the table at `index` shows: itself or the one behind it.
  void PushBehind(lua_State* lua, int index) const;
  // Has the read-only table at `index` show the fields of the table on top of the stack, which is
  // popped.
  void ShowBehind(lua_State* lua, int index);

  lua_State* main = nullptr;
  lua_State* running = nullptr;  // the coroutine that runs, or `main`
  Host* host = nullptr;
  const std::function<bool()>* load_interrupted = nullptr;
  Limits limits;
  Stop stop = Stop::kNone;
  // The error that ended the run, or that is its reply, was counted when an inner command gave it.
  bool error_counted = false;
  Phase phase = Phase::kScript;
  int resp = 2;  // the script's protocol
  Random random;
  JsonSettings json;
  // Where redis.register_function puts what a library registers.
  std::vector<Function>* registered = nullptr;
  // Memory that is used again.
  struct Scratch {
    std::vector<std::string_view> arguments;  // of redis.call
    std::vector<char> number_texts;           // the same
    std::string reply;                        // the same
    std::string spare;                        // of Bytes
  };
  Scratch scratch;

 private:
  static void* Allocate(void* self, void* block, size_t old_size, size_t new_size);
  static void Hook(lua_State* lua, lua_Debug* activation);
  void AskHost(lua_State* lua);
  // Large blocks are work too: the hook comes at the next instruction when there was enough of it.
  void Worked(size_t steps);
  void WantCollection();

  size_t used_ = 0;
  size_t cap_ = SIZE_MAX;
  // Lua's collector goes by objects, not by their size, and would let garbage in large strings fill
  // the bound: above this all garbage is collected.
  size_t collect_above_ = SIZE_MAX;
  bool wants_collection_ = false;
  size_t ticks_ = 0;
  static constexpr size_t kMostProtected = 24;
  std::array<const void*, kMostProtected> protected_{};
  int protected_count_ = 0;
};

// Bytes that a C function builds outside Lua's heap, counted against the script's memory. Lua's
// errors unwind C++ frames, so it is freed whatever ends the function.
class Bytes {
 public:
  explicit Bytes(lua_State* lua) : lua_(lua), vm_(Vm::Of(lua)) {
    text_.swap(vm_.scratch.spare);
    text_.clear();
  }
  ~Bytes() {
    vm_.GiveBack(taken_);
    if (text_.capacity() <= kKept) text_.swap(vm_.scratch.spare);
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  void Append(std::string_view bytes) {
    Need(bytes.size());
    text_.append(bytes);
  }
  void Append(char c) {
    Need(1);
    text_.push_back(c);
  }
  void Fill(size_t count, char c) {
    Need(count);
    text_.append(count, c);
  }
  // Room for `size` more bytes, made sure of before a loop that appends them.
  void Need(size_t size) {
    if (size > text_.capacity() - text_.size()) [[unlikely]]
      Grow(size);
  }
  void Push() const { lua_pushlstring(lua_, text_.data(), text_.size()); }
  std::string& text() { return text_; }

 private:
  void Grow(size_t size);
  static constexpr size_t kKept = 65536;

  lua_State* lua_;
  Vm& vm_;
  std::string text_;
  size_t taken_ = 0;
};

// Raises `text` as Lua's own errors are raised, but without a position.
[[noreturn]] void RaisePlain(lua_State* lua, std::string_view text);
// Raises "not enough memory".
[[noreturn]] void RaiseMemory(lua_State* lua);

// The edge of a C function.
template <int (*kBody)(lua_State*)>
int Guarded(lua_State* lua) {
  try {
    return kBody(lua);
  } catch (const std::exception&) {
    // bad_alloc and length_error are all that can come here.
  }
  RaiseMemory(lua);
}

// Registers functions in the table on top of the stack.
void SetFunctions(lua_State* lua, const luaL_Reg* functions, size_t count);
template <size_t kCount>
void SetFunctions(lua_State* lua, const luaL_Reg (&functions)[kCount]) {
  SetFunctions(lua, functions, kCount);
}

// The makers of the tables that scripts see: each leaves one table on the stack.
void OpenString(lua_State* lua);
void OpenTable(lua_State* lua);
void OpenMath(lua_State* lua);
void OpenCoroutine(lua_State* lua);
void OpenJson(lua_State* lua);
void OpenMessagePack(lua_State* lua);
void OpenStruct(lua_State* lua);
void OpenBit(lua_State* lua);
void OpenRedis(lua_State* lua, Phase phase);
// Where on the stack the tables stand that getmetatable must know.
struct BaseTables {
  int globals;
  int globals_metatable;  // what it shows of theirs
  int string_metatable;   // and of that of strings
};
// Sets the base functions in the table on top of the stack.
void SetBaseFunctions(lua_State* lua, const BaseTables& tables);
// Sets getfenv, setfenv and newproxy in the table on top of the stack, or takes them out.
void SetDeprecatedFunctions(lua_State* lua, bool shown);

// The registry's key of the table of compiled functions, by handle.
inline constexpr const char* kFunctionsKey = "sava.functions";

// Compiles text, never bytecode. Leaves the function or the error's text; returns Lua's status.
int LoadText(lua_State* lua, std::string_view text, const char* name);

// Pushes {err = text}; a text without a code word gets "ERR ". "-" before the code word is allowed.
void PushError(lua_State* lua, std::string_view text);
// Pushes one RESP value as Lua sees it. False: the bytes hold no whole value.
bool PushReply(lua_State* lua, std::string_view bytes);
// Appends the RESP form of the value on top of the stack and takes it off.
void AppendReply(lua_State* lua, int script_resp, int client_resp, std::string* out);

}  // namespace sava::lua
