// redis.*: what a script, a function and a library that loads may ask of the server. Wrong use is
// answered in Redis's words, as a table {err = …} that is raised or, where Redis does so, returned.

#include <algorithm>

#include "base/sha1.h"
#include "base/text.h"
#include "base/version.h"
#include "lua/numbers.h"
#include "lua/vm.h"

namespace sava::lua {
namespace {

int Raise(lua_State* lua, std::string_view text) {
  PushError(lua, text);
  return lua_error(lua);
}

// The arguments from 1 on as texts, in Vm::arguments. Empty and an error table on top: they are
// wrong.
bool ReadArguments(lua_State* lua, Vm& vm) {
  const int count = lua_gettop(lua);
  vm.scratch.arguments.clear();
  if (count == 0) {
    PushError(lua, "Please specify at least one argument for this redis lib call");
    return false;
  }
  vm.scratch.arguments.reserve(count);
  size_t numbers = 0;
  for (int i = 1; i <= count; ++i) {
    switch (lua_type(lua, i)) {
      case LUA_TSTRING: {
        size_t size = 0;
        const char* text = lua_tolstring(lua, i, &size);
        vm.scratch.arguments.emplace_back(text, size);
        break;
      }
      case LUA_TNUMBER: {
        // Room for all that may follow, so that the texts stay where they are.
        if (numbers == 0) vm.scratch.number_texts.resize((count - i + 1) * kNumberText);
        char* out = vm.scratch.number_texts.data() + kNumberText * numbers++;
        // Adding zero takes the sign off a zero.
        vm.scratch.arguments.emplace_back(out, FormatNumber(lua_tonumber(lua, i) + 0.0, out));
        break;
      }
      default:
        PushError(lua, "Lua redis lib command arguments must be strings or integers");
        return false;
    }
  }
  return true;
}

// Runs a command and pushes its reply. True: it is an error.
bool RunCommand(lua_State* lua) {
  Vm& vm = Vm::Of(lua);
  if (!ReadArguments(lua, vm)) return true;
  vm.scratch.reply.clear();
  if (vm.host->Call(vm.scratch.arguments, vm.resp, &vm.scratch.reply) ==
      Host::CallResult::kUnwind) {
    vm.stop = Stop::kUnwound;
    Vm::RaiseStop(lua);
  }
  if (!PushReply(lua, vm.scratch.reply)) luaL_error(lua, "the reply is broken");
  return !vm.scratch.reply.empty() && (vm.scratch.reply[0] == '-' || vm.scratch.reply[0] == '!');
}

int RedisCall(lua_State* lua) {
  if (RunCommand(lua)) return lua_error(lua);
  return 1;
}

int RedisPcall(lua_State* lua) {
  RunCommand(lua);
  return 1;
}

int ErrorReply(lua_State* lua) {
  if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING) {
    PushError(lua, "wrong number or type of arguments");
    return 1;
  }
  size_t size = 0;
  const char* text = lua_tolstring(lua, 1, &size);
  std::string_view words(text, size);
  if (words.starts_with('-')) words.remove_prefix(1);
  Bytes error(lua);
  error.Append('-');
  error.Append(words);
  PushError(lua, error.text());
  return 1;
}

int StatusReply(lua_State* lua) {
  if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING) {
    PushError(lua, "wrong number or type of arguments");
    return 1;
  }
  lua_createtable(lua, 0, 1);
  lua_pushvalue(lua, 1);
  lua_setfield(lua, -2, "ok");
  return 1;
}

int Sha1Hex(lua_State* lua) {
  if (lua_gettop(lua) != 1) return Raise(lua, "wrong number of arguments");
  size_t size = 0;
  const char* text = lua_tolstring(lua, 1, &size);
  Vm::Tick(lua, size / 16);
  const base::Sha1Digest digest = base::Sha1({text == nullptr ? "" : text, size});
  char hex[40];
  for (size_t i = 0; i < digest.size(); ++i) {
    hex[2 * i] = "0123456789abcdef"[digest[i] >> 4];
    hex[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
  }
  lua_pushlstring(lua, hex, sizeof hex);
  return 1;
}

int Log(lua_State* lua) {
  const int count = lua_gettop(lua);
  if (count < 2) return Raise(lua, "redis.log() requires two arguments or more.");
  if (lua_isnumber(lua, 1) == 0) {
    return Raise(lua, "First argument must be a number (log level).");
  }
  const double level = lua_tonumber(lua, 1);
  if (!(level > -1 && level < 4)) return Raise(lua, "Invalid debug level.");
  Bytes text(lua);
  for (int i = 2; i <= count; ++i) {
    size_t size = 0;
    const char* part = lua_tolstring(lua, i, &size);
    if (part == nullptr) continue;
    if (i > 2) text.Append(' ');
    text.Append({part, size});
  }
  // A library that loads has no host.
  if (Vm& vm = Vm::Of(lua); vm.host != nullptr) vm.host->Log(static_cast<int>(level), text.text());
  return 0;
}

int SetResp(lua_State* lua) {
  if (lua_gettop(lua) != 1) return Raise(lua, "redis.setresp() requires one argument.");
  const double version = lua_tonumber(lua, 1);
  if (version != 2 && version != 3) return Raise(lua, "RESP version must be 2 or 3.");
  Vm::Of(lua).resp = static_cast<int>(version);
  return 0;
}

int SetRepl(lua_State* lua) {
  if (lua_gettop(lua) != 1) return Raise(lua, "redis.set_repl() requires one argument.");
  const int64_t flags = TruncateNumber(lua_tonumber(lua, 1));
  if ((flags & ~int64_t{3}) != 0) {
    return Raise(lua,
                 "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.");
  }
  Vm::Of(lua).host->SetReplication(static_cast<int>(flags));
  return 0;
}

int AclCheckCmd(lua_State* lua) {
  Vm& vm = Vm::Of(lua);
  if (!ReadArguments(lua, vm)) return lua_error(lua);
  switch (vm.host->CheckAccess(vm.scratch.arguments)) {
    case Host::Access::kUnknown:
      return Raise(lua, "Invalid command passed to redis.acl_check_cmd()");
    case Host::Access::kAllowed:
      lua_pushboolean(lua, 1);
      return 1;
    default:
      lua_pushboolean(lua, 0);
      return 1;
  }
}

// There is no debugger here.
int Breakpoint(lua_State* lua) {
  lua_pushboolean(lua, 0);
  return 1;
}

int Debug(lua_State*) { return 0; }

// Effects are all that is ever replicated.
int ReplicateCommands(lua_State* lua) {
  lua_pushboolean(lua, 1);
  return 1;
}

// --- redis.register_function ---

#define SAVA_REGISTER "redis.register_function"

// A function as it is registered; the callback stays on the stack.
struct Registration {
  Function function;
  int callback = 0;
};

std::string_view TextAt(lua_State* lua, int index) {
  size_t size = 0;
  const char* text = lua_tolstring(lua, index, &size);
  return {text, size};
}

// The flags in the table on top of the stack.
bool ReadFlags(lua_State* lua, uint8_t* flags) {
  constexpr struct {
    std::string_view name;
    FunctionFlag flag;
  } kFlags[] = {{"no-writes", FunctionFlag::kNoWrites},
                {"allow-oom", FunctionFlag::kAllowOom},
                {"allow-stale", FunctionFlag::kAllowStale},
                {"no-cluster", FunctionFlag::kNoCluster},
                {"allow-cross-slot-keys", FunctionFlag::kAllowCrossSlotKeys}};
  for (int i = 1;; ++i) {
    lua_rawgeti(lua, -1, i);
    const int type = lua_type(lua, -1);
    if (type == LUA_TNIL) {
      lua_pop(lua, 1);
      return true;
    }
    bool known = false;
    if (type == LUA_TSTRING) {
      const std::string_view name = TextAt(lua, -1);
      for (const auto& flag : kFlags) {
        if (!base::EqualsNoCase(name, flag.name)) continue;
        *flags |= static_cast<uint8_t>(flag.flag);
        known = true;
      }
    }
    lua_pop(lua, 1);
    if (!known) return false;
  }
}

// One named argument: its key at -2, its value at -1. Empty, or what is wrong with it.
const char* ReadNamed(lua_State* lua, Registration* out) {
  if (lua_type(lua, -2) != LUA_TSTRING) {
    return "named argument key given to " SAVA_REGISTER " is not a string";
  }
  const std::string_view key = TextAt(lua, -2);
  if (base::EqualsNoCase(key, "function_name")) {
    if (lua_type(lua, -1) != LUA_TSTRING) {
      return "function_name argument given to " SAVA_REGISTER " must be a string";
    }
    out->function.name = TextAt(lua, -1);
  } else if (base::EqualsNoCase(key, "description")) {
    if (lua_type(lua, -1) != LUA_TSTRING) {
      return "description argument given to " SAVA_REGISTER " must be a string";
    }
    out->function.description = TextAt(lua, -1);
    out->function.has_description = true;
  } else if (base::EqualsNoCase(key, "callback")) {
    if (lua_type(lua, -1) != LUA_TFUNCTION) {
      return "callback argument given to " SAVA_REGISTER " must be a function";
    }
    lua_pushvalue(lua, -1);
    lua_replace(lua, out->callback);
  } else if (base::EqualsNoCase(key, "flags")) {
    if (lua_type(lua, -1) != LUA_TTABLE) {
      return "flags argument to " SAVA_REGISTER " must be a table representing function flags";
    }
    if (!ReadFlags(lua, &out->function.flags)) return "unknown flag given";
  } else {
    return "unknown argument given to " SAVA_REGISTER;
  }
  return nullptr;
}

const char* ReadNamedArguments(lua_State* lua, Registration* out) {
  lua_settop(lua, 1);
  lua_pushnil(lua);
  out->callback = 2;
  bool named = false;
  lua_pushnil(lua);
  while (lua_next(lua, 1) != 0) {
    if (const char* problem = ReadNamed(lua, out); problem != nullptr) return problem;
    named = named || base::EqualsNoCase(TextAt(lua, -2), "function_name");
    lua_pop(lua, 1);
  }
  if (!named) return SAVA_REGISTER " must get a function name argument";
  if (lua_isnil(lua, 2)) return SAVA_REGISTER " must get a callback argument";
  return nullptr;
}

const char* ReadPositional(lua_State* lua, Registration* out) {
  if (lua_type(lua, 1) != LUA_TSTRING)
    return "first argument to " SAVA_REGISTER " must be a string";
  if (lua_type(lua, 2) != LUA_TFUNCTION) {
    return "second argument to " SAVA_REGISTER " must be a function";
  }
  out->function.name = TextAt(lua, 1);
  out->callback = 2;
  return nullptr;
}

bool IsFunctionName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

const char* ReadRegistration(lua_State* lua, Registration* out) {
  const int count = lua_gettop(lua);
  if (count < 1 || count > 2) return "wrong number of arguments to " SAVA_REGISTER;
  if (count == 1 && lua_type(lua, 1) != LUA_TTABLE) {
    return "calling " SAVA_REGISTER
           " with a single argument is only applicable to Lua table (representing named "
           "arguments).";
  }
  const char* problem = count == 1 ? ReadNamedArguments(lua, out) : ReadPositional(lua, out);
  if (problem != nullptr) return problem;
  if (!IsFunctionName(out->function.name)) {
    return "Library names can only contain letters, numbers, or underscores(_) and must be at "
           "least "
           "one character long";
  }
  return nullptr;
}

int RegisterFunction(lua_State* lua) {
  Vm& vm = Vm::Of(lua);
  if (vm.registered == nullptr) {
    return Raise(lua, SAVA_REGISTER " can only be called on FUNCTION LOAD command");
  }
  Registration registration;
  if (const char* problem = ReadRegistration(lua, &registration); problem != nullptr) {
    return Raise(lua, problem);
  }
  // Functions are found ignoring case, yet within a library names that differ by it are two.
  for (const Function& other : *vm.registered) {
    if (other.name == registration.function.name) {
      return Raise(lua, "Function already exists in the library");
    }
  }
  lua_getfield(lua, LUA_REGISTRYINDEX, kFunctionsKey);
  lua_pushvalue(lua, registration.callback);
  registration.function.handle = luaL_ref(lua, -2);
  vm.registered->push_back(std::move(registration.function));
  return 0;
}

constexpr luaL_Reg kAlways[] = {{"log", Guarded<Log>}};
constexpr luaL_Reg kRunning[] = {
    {"call", Guarded<RedisCall>},         {"pcall", Guarded<RedisPcall>},
    {"error_reply", Guarded<ErrorReply>}, {"status_reply", Guarded<StatusReply>},
    {"sha1hex", Guarded<Sha1Hex>},        {"setresp", Guarded<SetResp>},
    {"set_repl", Guarded<SetRepl>},       {"acl_check_cmd", Guarded<AclCheckCmd>}};
constexpr luaL_Reg kScriptsOnly[] = {{"breakpoint", Guarded<Breakpoint>},
                                     {"debug", Guarded<Debug>},
                                     {"replicate_commands", Guarded<ReplicateCommands>}};
constexpr luaL_Reg kLoading[] = {{"register_function", Guarded<RegisterFunction>}};

struct Constant {
  const char* name;
  int value;
};
constexpr Constant kLogLevels[] = {
    {"LOG_DEBUG", 0}, {"LOG_VERBOSE", 1}, {"LOG_NOTICE", 2}, {"LOG_WARNING", 3}};
constexpr Constant kReplication[] = {
    {"REPL_NONE", 0}, {"REPL_AOF", 1}, {"REPL_SLAVE", 2}, {"REPL_REPLICA", 2}, {"REPL_ALL", 3}};

template <size_t kCount>
void SetConstants(lua_State* lua, const Constant (&constants)[kCount]) {
  for (const Constant& constant : constants) {
    lua_pushinteger(lua, constant.value);
    lua_setfield(lua, -2, constant.name);
  }
}

// "7.2.4" as 0x00070204.
int VersionNumber() {
  int number = 0;
  int part = 0;
  for (const char c : base::kRedisVersion) {
    if (c == '.') {
      number = (number << 8) | part;
      part = 0;
    } else {
      part = part * 10 + (c - '0');
    }
  }
  return (number << 8) | part;
}

}  // namespace

void PushError(lua_State* lua, std::string_view text) {
  luaL_checkstack(lua, 4, nullptr);
  while (!text.empty() && (text.back() == '\r' || text.back() == '\n')) text.remove_suffix(1);
  bool has_code = false;
  if (text.starts_with('-')) {
    text.remove_prefix(1);
    has_code = text.find(' ') != std::string_view::npos;
  }
  lua_createtable(lua, 0, 4);
  lua_pushliteral(lua, "err");
  if (has_code) {
    lua_pushlstring(lua, text.data(), text.size());
  } else {
    lua_pushliteral(lua, "ERR ");
    lua_pushlstring(lua, text.data(), text.size());
    lua_concat(lua, 2);
  }
  lua_rawset(lua, -3);
}

void OpenRedis(lua_State* lua, Phase phase) {
  lua_newtable(lua);
  SetFunctions(lua, kAlways);
  SetConstants(lua, kLogLevels);
  lua_pushlstring(lua, base::kRedisVersion.data(), base::kRedisVersion.size());
  lua_setfield(lua, -2, "REDIS_VERSION");
  lua_pushinteger(lua, VersionNumber());
  lua_setfield(lua, -2, "REDIS_VERSION_NUM");
  if (phase == Phase::kLoad) {
    SetFunctions(lua, kLoading);
    return;
  }
  SetFunctions(lua, kRunning);
  SetConstants(lua, kReplication);
  if (phase == Phase::kScript) SetFunctions(lua, kScriptsOnly);
}

}  // namespace sava::lua
