#include "lua/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lua/vm.h"

namespace sava::lua {
namespace {

// The main state's stack holds these between calls, and nothing else.
constexpr int kRunner = 1;
constexpr int kHandler = 2;
constexpr int kWorder = 3;
constexpr int kBase = 3;

// What RunInside needs at hand.
constexpr int kFunctions = lua_upvalueindex(1);
constexpr int kGlobals = lua_upvalueindex(2);
constexpr int kScriptFields = lua_upvalueindex(3);
constexpr int kFunctionFields = lua_upvalueindex(4);
constexpr int kLoadFields = lua_upvalueindex(5);
constexpr int kKeysName = lua_upvalueindex(6);
constexpr int kArgsName = lua_upvalueindex(7);
constexpr int kUpvalues = 7;

constexpr const char* kScriptChunk = "@user_script";
constexpr const char* kFunctionChunk = "@user_function";
// Garbage of larger arguments and buffers is not kept until the next run.
constexpr size_t kKeptBytes = 1 << 20;

struct Job {
  enum class Kind : uint8_t { kRun, kLoad, kCompile, kRelease, kForget, kCollect };
  Kind kind;
  const Call* call = nullptr;
  std::string* reply = nullptr;
  std::string_view body{};
  int handle = 0;
  bool compiled = false;
  bool all = false;  // of kCollect
};

void PushStrings(lua_State* lua, std::span<const std::string_view> strings) {
  lua_createtable(lua, static_cast<int>(strings.size()), 0);
  int index = 0;
  for (const std::string_view text : strings) {
    lua_pushlstring(lua, text.data(), text.size());
    lua_rawseti(lua, -2, ++index);
  }
}

void SetArguments(lua_State* lua, const Call& call) {
  lua_pushvalue(lua, kKeysName);
  PushStrings(lua, call.keys);
  lua_rawset(lua, kScriptFields);
  lua_pushvalue(lua, kArgsName);
  PushStrings(lua, call.args);
  lua_rawset(lua, kScriptFields);
}

// The globals as each run finds them: what an earlier one may have put elsewhere comes back.
void ShowPhase(lua_State* lua, Phase phase) {
  lua_pushvalue(lua, kGlobals);
  if (Vm& vm = Vm::Of(lua); vm.phase != phase) {
    const int globals = lua_gettop(lua);
    lua_pushvalue(lua, phase == Phase::kScript     ? kScriptFields
                       : phase == Phase::kFunction ? kFunctionFields
                                                   : kLoadFields);
    vm.ShowBehind(lua, globals);
    vm.phase = phase;
  }
  lua_replace(lua, LUA_GLOBALSINDEX);
}

void DoRun(lua_State* lua, const Job& job) {
  const Call& call = *job.call;
  ShowPhase(lua, call.function ? Phase::kFunction : Phase::kScript);
  lua_rawgeti(lua, kFunctions, call.handle);
  if (call.function) {
    PushStrings(lua, call.keys);
    PushStrings(lua, call.args);
    lua_call(lua, 2, 1);
  } else {
    lua_pushvalue(lua, kGlobals);
    lua_setfenv(lua, -2);
    SetArguments(lua, call);
    lua_call(lua, 0, 1);
  }
  AppendReply(lua, Vm::Of(lua).resp, call.client_resp, job.reply);
}

void DoCompile(lua_State* lua, Job* job) {
  ShowPhase(lua, Phase::kScript);
  if (LoadText(lua, job->body, kScriptChunk) != 0) {
    size_t size = 0;
    const char* text = lua_tolstring(lua, -1, &size);
    job->reply->assign(text == nullptr ? "" : text, size);
    return;
  }
  job->handle = luaL_ref(lua, kFunctions);
}

void DoLoad(lua_State* lua, Job* job) {
  ShowPhase(lua, Phase::kLoad);
  if (LoadText(lua, job->body, kFunctionChunk) != 0) lua_error(lua);
  job->compiled = true;
  lua_call(lua, 0, 0);
}

int DoJob(lua_State* lua) {
  Job& job = *static_cast<Job*>(lua_touserdata(lua, 1));
  switch (job.kind) {
    case Job::Kind::kRun:
      DoRun(lua, job);
      break;
    case Job::Kind::kLoad:
      DoLoad(lua, &job);
      break;
    case Job::Kind::kCompile:
      DoCompile(lua, &job);
      break;
    case Job::Kind::kRelease:
      luaL_unref(lua, kFunctions, job.handle);
      break;
    case Job::Kind::kCollect:
      if (job.all) {
        lua_gc(lua, LUA_GCCOLLECT, 0);
      } else {
        lua_gc(lua, LUA_GCSTEP, 50);
      }
      break;
    case Job::Kind::kForget:
      for (const int name : {kKeysName, kArgsName}) {
        lua_pushvalue(lua, name);
        lua_pushnil(lua);
        lua_rawset(lua, kScriptFields);
      }
      break;
  }
  return 0;
}

// Makes an error a table that says where it was raised.
int HandleError(lua_State* lua) {
  Vm& vm = Vm::Of(lua);
  if (vm.stopping() || vm.IsProtected(lua, 1)) return 1;
  if (lua_type(lua, 1) != LUA_TTABLE) {
    lua_createtable(lua, 0, 3);
    const char* text = lua_tostring(lua, 1);
    if (text == nullptr) {
      text = lua_isnil(lua, 1)            ? "nil"
             : !lua_isboolean(lua, 1)     ? luaL_typename(lua, 1)
             : lua_toboolean(lua, 1) != 0 ? "true"
                                          : "false";
    }
    lua_pushliteral(lua, "err");
    lua_pushfstring(lua, "ERR %s", text);
    lua_rawset(lua, -3);
    lua_replace(lua, 1);
  }
  lua_settop(lua, 1);
  lua_Debug at;
  for (int level = 1; level <= 2; ++level) {
    if (lua_getstack(lua, level, &at) == 0) return 1;
    lua_getinfo(lua, "Sl", &at);
    if (at.what[0] != 'C') break;
  }
  lua_pushliteral(lua, "source");
  lua_pushstring(lua, at.source);
  lua_rawset(lua, 1);
  lua_pushliteral(lua, "line");
  lua_pushinteger(lua, at.currentline);
  lua_rawset(lua, 1);
  return 1;
}

// The string or number in a field of the table at `index`, without its metatable. Empty: there is
// none.
std::string FieldText(lua_State* lua, int index, const char* name, bool* found) {
  lua_pushstring(lua, name);
  lua_rawget(lua, index < 0 ? index - 1 : index);
  size_t size = 0;
  const char* text = lua_tolstring(lua, -1, &size);
  *found = text != nullptr;
  std::string copy(text == nullptr ? "" : text, size);
  lua_pop(lua, 1);
  return copy;
}

// Words the error on top of the stack.
struct ErrorWords {
  std::string text;
  std::string source;
  std::string line;
  bool is_table = false;
  bool counted = false;
};

int WordError(lua_State* lua) {
  ErrorWords& words = *static_cast<ErrorWords*>(lua_touserdata(lua, 2));
  words.is_table = lua_istable(lua, 1);
  if (!words.is_table) {
    size_t size = 0;
    const char* text = lua_tolstring(lua, 1, &size);
    words.text = text == nullptr ? std::string("execution failure") : std::string(text, size);
    return 0;
  }
  bool found = false;
  words.text = FieldText(lua, 1, "err", &found);
  if (!found) words.text = "ERR unknown error";
  words.source = FieldText(lua, 1, "source", &found);
  words.line = FieldText(lua, 1, "line", &found);
  lua_pushliteral(lua, "ignore_error_stats_update");
  lua_rawget(lua, 1);
  words.counted = lua_toboolean(lua, -1) != 0;
  return 0;
}

// Takes the error off the stack.
ErrorWords TakeError(lua_State* lua) {
  ErrorWords words;
  lua_pushvalue(lua, kWorder);
  lua_insert(lua, -2);
  lua_pushlightuserdata(lua, &words);
  if (lua_pcall(lua, 2, 0, 0) != 0) {
    words = {};
    words.text = "not enough memory";
    lua_pop(lua, 1);
  }
  return words;
}

void OneLine(std::string* text) {
  while (!text->empty() && (text->back() == '\r' || text->back() == '\n')) text->pop_back();
  std::replace(text->begin(), text->end(), '\r', ' ');
  std::replace(text->begin(), text->end(), '\n', ' ');
}

// Shows the library on top of the stack read-only under `name` in the table at `fields`.
void Publish(lua_State* lua, int fields, const char* name, bool fail_unknown = false) {
  Vm::Of(lua).Protect(lua, fail_unknown);
  lua_setfield(lua, fields, name);
}

void CopyFields(lua_State* lua, int from, int to) {
  lua_pushnil(lua);
  while (lua_next(lua, from) != 0) {
    lua_pushvalue(lua, -2);
    lua_insert(lua, -2);
    lua_rawset(lua, to);
  }
}

// The metatable of globals that scripts see.
void PushVisibleMetatable(lua_State* lua) {
  lua_newtable(lua);
  Vm::Of(lua).Protect(lua, false);
}

void FillFields(lua_State* lua, int fields, int globals) {
  lua_pushvalue(lua, globals);
  lua_setfield(lua, fields, "_G");
  OpenString(lua);
  Publish(lua, fields, LUA_STRLIBNAME);
  lua_createtable(lua, 0, 1);
  lua_getfield(lua, fields, LUA_STRLIBNAME);
  lua_setfield(lua, -2, "__index");
  Vm::Of(lua).Protect(lua, false);
  const int string_metatable = lua_gettop(lua);
  PushVisibleMetatable(lua);
  const int globals_metatable = lua_gettop(lua);
  lua_pushvalue(lua, fields);
  SetBaseFunctions(lua, {globals, globals_metatable, string_metatable});
  lua_pop(lua, 1);
  constexpr struct {
    const char* name;
    void (*open)(lua_State*);
  } kLibraries[] = {{LUA_TABLIBNAME, OpenTable},
                    {LUA_MATHLIBNAME, OpenMath},
                    {LUA_COLIBNAME, OpenCoroutine},
                    {"cjson", OpenJson},
                    {"cmsgpack", OpenMessagePack},
                    {"struct", OpenStruct},
                    {"bit", OpenBit}};
  for (const auto& library : kLibraries) {
    library.open(lua);
    Publish(lua, fields, library.name);
  }
  lua_settop(lua, globals_metatable);
}

// Its address is the registry's key of what the main state's stack holds.
char base_key;

// Makes the state's tables, and a list of the runner, the error handler and what words errors.
int BuildState(lua_State* lua) {
  lua_checkstack(lua, 40);
  lua_settop(lua, 0);
  lua_newtable(lua);
  const int script_fields = lua_gettop(lua);
  lua_newtable(lua);
  const int function_fields = lua_gettop(lua);
  lua_newtable(lua);
  const int load_fields = lua_gettop(lua);
  // The globals are one table that shows the fields of the present phase.
  Vm& vm = Vm::Of(lua);
  for (const int fields : {load_fields, function_fields, script_fields}) {
    lua_pushvalue(lua, fields);
    vm.Protect(lua, true);
  }
  const int globals = lua_gettop(lua);
  FillFields(lua, script_fields, globals);
  CopyFields(lua, script_fields, function_fields);
  OpenRedis(lua, Phase::kScript);
  Publish(lua, script_fields, "redis");
  OpenRedis(lua, Phase::kFunction);
  Publish(lua, function_fields, "redis");
  OpenRedis(lua, Phase::kLoad);
  Publish(lua, load_fields, "redis", true);

  lua_newtable(lua);
  lua_pushvalue(lua, -1);
  lua_setfield(lua, LUA_REGISTRYINDEX, kFunctionsKey);
  lua_pushvalue(lua, globals);
  lua_pushvalue(lua, script_fields);
  lua_pushvalue(lua, function_fields);
  lua_pushvalue(lua, load_fields);
  lua_pushliteral(lua, "KEYS");
  lua_pushliteral(lua, "ARGV");
  lua_pushcclosure(lua, Guarded<DoJob>, kUpvalues);
  lua_pushlightuserdata(lua, &base_key);
  lua_createtable(lua, kBase, 0);
  lua_pushvalue(lua, -3);
  lua_rawseti(lua, -2, kRunner);
  lua_pushcfunction(lua, Guarded<HandleError>);
  lua_rawseti(lua, -2, kHandler);
  lua_pushcfunction(lua, Guarded<WordError>);
  lua_rawseti(lua, -2, kWorder);
  lua_rawset(lua, LUA_REGISTRYINDEX);
  return 0;
}

// Pushes the list that BuildState made. Allocates nothing.
void PushBase(lua_State* lua) {
  lua_pushlightuserdata(lua, &base_key);
  lua_rawget(lua, LUA_REGISTRYINDEX);
}

int SwitchDeprecated(lua_State* lua) {
  PushBase(lua);
  lua_rawgeti(lua, -1, kRunner);
  const int runner = lua_gettop(lua);
  for (const int upvalue : {3, 4}) {
    lua_getupvalue(lua, runner, upvalue);
    SetDeprecatedFunctions(lua, Vm::Of(lua).limits.deprecated_api);
    lua_pop(lua, 1);
  }
  return 0;
}

}  // namespace

class Interpreter::State {
 public:
  explicit State(const Limits& limits) {
    vm.limits = limits;
    if (vm.main == nullptr) return;
    // Nothing of Lua's that may allocate is called outside of a protected call.
    ready_ = lua_cpcall(vm.main, Guarded<BuildState>, nullptr) == 0;
    vm.running = vm.main;
    if (!ready_) return;
    PushBase(vm.main);
    for (const int slot : {kRunner, kHandler, kWorder}) lua_rawgeti(vm.main, 1, slot);
    lua_remove(vm.main, 1);
    if (limits.deprecated_api) ShowDeprecated();
  }

  bool ready() const { return ready_; }

  // Does a job in the bounds of one run. On failure the error stays on the stack.
  bool Do(Job* job) {
    lua_State* lua = vm.main;
    vm.stop = Stop::kNone;
    vm.running = lua;
    vm.resp = 2;
    vm.BoundMemory(vm.limits.memory);
    lua_pushvalue(lua, kRunner);
    lua_pushlightuserdata(lua, job);
    const int status = lua_pcall(lua, 1, 0, kHandler);
    vm.UnboundMemory();
    vm.host = nullptr;
    return status == 0;
  }
  void DropError() { lua_settop(vm.main, kBase); }

  void Collect(bool all) {
    if (!ready_) return;
    Job job{.kind = Job::Kind::kCollect};
    job.all = all;
    if (!Do(&job)) DropError();
  }

  void ShowDeprecated() {
    lua_cpcall(vm.main, Guarded<SwitchDeprecated>, nullptr);
    lua_settop(vm.main, kBase);
  }

  Vm vm;

 private:
  bool ready_ = false;
};

Interpreter::Interpreter(const Limits& limits) : state_(std::make_unique<State>(limits)) {}
Interpreter::~Interpreter() = default;

int Interpreter::Compile(std::string_view body, std::string* error) {
  error->assign("not enough memory");
  if (!state_->ready()) return 0;
  Job job{.kind = Job::Kind::kCompile, .reply = error, .body = body};
  if (state_->Do(&job)) return job.handle;
  *error = TakeError(state_->vm.main).text;
  state_->DropError();
  return 0;
}

void Interpreter::Release(int handle) {
  if (handle <= 0 || !state_->ready()) return;
  Job job{.kind = Job::Kind::kRelease};
  job.handle = handle;
  if (!state_->Do(&job)) state_->DropError();
}

RunResult Interpreter::Run(const Call& call, Host* host, std::string* reply) {
  if (!state_->ready()) {
    *reply = "ERR Error running script: not enough memory";
    return RunResult::kFailed;
  }
  Vm& vm = state_->vm;
  const Random random = vm.random;
  vm.json = {};
  vm.host = host;
  vm.error_counted = false;
  reply->clear();
  Job job{.kind = Job::Kind::kRun, .call = &call, .reply = reply};
  RunResult result = RunResult::kReplied;
  if (!state_->Do(&job)) {
    reply->clear();
    if (vm.stop != Stop::kNone) {
      result = vm.stop == Stop::kUnwound ? RunResult::kUnwound : RunResult::kKilled;
      // It will be run again as if it had never begun.
      if (vm.stop == Stop::kUnwound) vm.random = random;
    } else {
      result = RunResult::kFailed;
      const ErrorWords words = TakeError(vm.main);
      if (!words.is_table) {
        *reply = fmt::format("ERR Error running script {}, {}", call.name,
                             std::string_view(words.text).substr(0, 100));
      } else {
        *reply = words.text;
        vm.error_counted = words.counted;
        if (!words.source.empty() && !words.line.empty()) {
          *reply += fmt::format(" script: {}, on {}:{}.", call.name, words.source, words.line);
        }
      }
      OneLine(reply);
    }
    state_->DropError();
  }
  size_t held = 0;
  for (const std::string_view text : call.keys) held += text.size();
  for (const std::string_view text : call.args) held += text.size();
  if (!call.function && held > kKeptBytes) {
    Job forget{.kind = Job::Kind::kForget};
    if (!state_->Do(&forget)) state_->DropError();
  }
  if (vm.scratch.reply.capacity() > kKeptBytes) std::string().swap(vm.scratch.reply);
  return result;
}

bool Interpreter::LoadLibrary(std::string_view body, const std::function<bool()>& interrupted,
                              std::vector<Function>* functions, std::string* error) {
  functions->clear();
  if (!state_->ready()) {
    *error = "Error registering functions: ERR not enough memory";
    return false;
  }
  Vm& vm = state_->vm;
  vm.load_interrupted = &interrupted;
  vm.registered = functions;
  vm.json = {};
  Job job{.kind = Job::Kind::kLoad, .body = body};
  const bool done = state_->Do(&job);
  vm.load_interrupted = nullptr;
  vm.registered = nullptr;
  if (done && !functions->empty()) return true;
  if (done) {
    *error = "No functions registered";
  } else if (vm.stop != Stop::kNone) {
    *error = "Error registering functions: ERR FUNCTION LOAD timeout";
  } else {
    std::string text = TakeError(vm.main).text;
    if (!job.compiled && text.starts_with("ERR ")) text.erase(0, 4);
    *error = (job.compiled ? "Error registering functions: " : "Error compiling function: ") + text;
    OneLine(error);
  }
  state_->DropError();
  for (const Function& function : *functions) Release(function.handle);
  functions->clear();
  return false;
}

void Interpreter::SetLimits(const Limits& limits) {
  const bool changed = limits.deprecated_api != state_->vm.limits.deprecated_api;
  state_->vm.limits = limits;
  if (changed && state_->ready()) state_->ShowDeprecated();
}

bool Interpreter::error_counted() const { return state_->vm.error_counted; }

size_t Interpreter::memory() const { return state_->vm.used(); }

void Interpreter::CollectStep() { state_->Collect(false); }

void Interpreter::CollectAll() { state_->Collect(true); }

}  // namespace sava::lua
