#include "script/scripts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "commands/errors.h"
#include "script/script_run.h"

namespace sava::script {

using commands::Args;
using commands::Command;
using commands::LockClass;
using engine::Lane;

namespace {

constexpr std::string_view kNoScript = "NOSCRIPT No matching script. Please use EVAL.";
constexpr size_t kShaDigits = 40;
constexpr size_t kMostCompiled = 1024;  // for each thread
constexpr unsigned kRunsPerStep = 50;   // of garbage collection

bool IsFunction(const Command& command) { return command.spec->name.starts_with("fcall"); }
// Those of the loops, of the house, and of the thread that follows a master, which has the last
// index.
size_t LaneCount(engine::Engine& engine) { return engine.apply_lane().index + 1; }

bool IsSha(const Command& command) { return command.spec->name.starts_with("evalsha"); }
bool IsReadOnly(const Command& command) { return command.spec->name.ends_with("_ro"); }

// The number of keys in the third word; the error is complete.
base::Result<size_t> KeyCount(Args args, std::string_view no_number) {
  int64_t count = 0;
  if (!base::ParseInt(args[2], &count)) return base::Error{std::string(no_number)};
  if (count > static_cast<int64_t>(args.size()) - 3) {
    return base::Error{std::string(commands::errors::kTooManyKeys)};
  }
  if (count < 0) return base::Error{"ERR Number of keys can't be negative"};
  return static_cast<size_t>(count);
}

uint32_t WithFlags(uint32_t row, uint8_t flags) {
  const bool writes = (flags & static_cast<uint8_t>(lua::FunctionFlag::kNoWrites)) == 0;
  const bool allow_oom = (flags & static_cast<uint8_t>(lua::FunctionFlag::kAllowOom)) != 0;
  const bool allow_stale = (flags & static_cast<uint8_t>(lua::FunctionFlag::kAllowStale)) != 0;
  row &= ~(commands::kStale | commands::kDenyOom | commands::kWrite | commands::kMayReplicate);
  if (writes) row |= commands::kWrite;
  if (writes && !allow_oom) row |= commands::kDenyOom;
  if (allow_stale) row |= commands::kStale;
  return row;
}

}  // namespace

Scripts::Scripts(engine::Engine* engine)
    : engine_(*engine),
      libraries_(&engine->libraries(),
                 [this](std::string_view source) { return NeedsEverything(source); }),
      running_(LaneCount(*engine)) {
  for (size_t i = 0; i < LaneCount(*engine); ++i) lanes_.push_back(std::make_unique<LaneScripts>());
  for (const Command* const command : engine->table().all()) {
    const bool wide = command->spec->choose_lock != nullptr ||
                      WantsEverything(*command, command->lock) ||
                      std::ranges::any_of(command->subcommands, [](const Command* one) {
                        return one->spec->name != "help" && WantsEverything(*one, one->lock);
                      });
    if (wide) everything_.emplace(command->spec->name);
  }
}

Scripts::~Scripts() = default;

bool WantsEverything(const Command& command, LockClass lock) {
  if (lock != LockClass::kNone) return lock == LockClass::kAll;
  return command.has(commands::kReadonly | commands::kWrite | commands::kNoscript) ||
         !command.has(commands::kFast);
}

// ---- what a call is ----

uint32_t Scripts::FlagsOf(const Command& command, Args args) {
  const uint32_t row = command.spec->flags;
  if (args.size() < 3) return row;
  if (IsFunction(command)) {
    CatalogPtr catalog = libraries_.last();
    if (catalog->generation != engine_.libraries().generation()) {  // a data set was loaded
      const config::Settings& settings = engine_.settings();
      lua::Interpreter interpreter({.memory = settings.script_max_memory,
                                    .deprecated_api = settings.lua_enable_deprecated_api});
      catalog = libraries_.Now(interpreter);
    }
    const Function* const function = catalog->Find(args[1]);
    return function == nullptr ? row : WithFlags(row, function->info.flags);
  }
  // A script that says nothing is not for a replica whose data is stale.
  const uint32_t silent = row & ~static_cast<uint32_t>(commands::kStale);
  if (IsSha(command)) {
    const ScriptPtr script = cache_.Find(base::ToLower(args[1]));
    if (script == nullptr) return row;
    return script->head.present ? WithFlags(row, script->head.flags) : silent;
  }
  if (!args[1].starts_with("#!")) return silent;
  const auto head = ReadScriptHead(args[1]);
  return head && head.value().present ? WithFlags(row, head.value().flags) : row;
}

// Whether the source names a command, in quotes, that needs more than its keys: nothing can be
// learned about such a script, since it may do so after it has written.
bool Scripts::NeedsEverything(std::string_view source) const {
  for (size_t at = source.find_first_of("'\"["); at != std::string_view::npos;
       at = source.find_first_of("'\"[", at + 1)) {
    size_t end = at + 1;
    while (end < source.size() && end - at <= 16 &&
           ((source[end] >= 'a' && source[end] <= 'z') ||
            (source[end] >= 'A' && source[end] <= 'Z') || source[end] == '_')) {
      ++end;
    }
    if (end < source.size() && (source[end] == '\'' || source[end] == '"' || source[end] == ']') &&
        everything_.contains(base::ToLower(source.substr(at + 1, end - at - 1)))) {
      return true;
    }
  }
  return false;
}

ScriptPtr Scripts::MakeScript(std::string_view source, std::string* error) const {
  const auto head = ReadScriptHead(source);
  if (!head) {
    *error = "ERR " + head.error();
    return nullptr;
  }
  auto script = std::make_shared<Script>();
  script->sha = ShaOf(source);
  script->source = source;
  script->head = head.value();
  if (NeedsEverything(source)) script->conduct = Conduct::kStrays;
  return script;
}

// ---- interpreters ----

lua::Interpreter& Scripts::Interpreter(LaneScripts& own, std::unique_ptr<lua::Interpreter>& place) {
  const config::Settings& settings = engine_.settings();
  if (own.limits.memory != settings.script_max_memory ||
      own.limits.deprecated_api != settings.lua_enable_deprecated_api) {
    own.limits.memory = settings.script_max_memory;
    own.limits.deprecated_api = settings.lua_enable_deprecated_api;
    if (own.scripts != nullptr) own.scripts->SetLimits(own.limits);
    if (own.functions != nullptr) own.functions->SetLimits(own.limits);
  }
  if (place == nullptr) place = std::make_unique<lua::Interpreter>(own.limits);
  return *place;
}

// Between two scripts, when no lock is held.
void Scripts::Tidy(Lane& lane) {
  LaneScripts& own = of(lane);
  if (own.generation != cache_.generation()) {
    own.compiled.clear();
    own.scripts.reset();
    own.generation = cache_.generation();
  }
  if (++own.runs % kRunsPerStep == 0) {
    if (own.scripts != nullptr) own.scripts->CollectStep();
    if (own.functions != nullptr) own.functions->CollectStep();
  }
}

// Whether the script can be run on this lane; the error is complete.
bool Scripts::Compiled(Lane& lane, const ScriptPtr& script, std::string* error) {
  LaneScripts& own = of(lane);
  lua::Interpreter& interpreter = Interpreter(own, own.scripts);
  const auto it = own.compiled.find(script->sha);
  if (it != own.compiled.end()) return true;
  std::string reason;
  const int handle = interpreter.Compile(script->body(), &reason);
  if (handle == 0) {
    *error = "ERR Error compiling script (new function): " + reason;
    return false;
  }
  if (own.compiled.size() >= kMostCompiled) {
    const auto oldest = std::ranges::min_element(own.compiled, {}, [](const auto& one) {
      return one.second.script->used_ms.load(std::memory_order_relaxed);
    });
    interpreter.Release(oldest->second.handle);
    own.compiled.erase(oldest);
  }
  own.compiled.emplace(script->sha, LaneScripts::Compiled{script, handle});
  return true;
}

base::Result<std::string> Scripts::Load(Lane& lane, std::string_view source) {
  Tidy(lane);
  std::string error;
  ScriptPtr script = MakeScript(source, &error);
  if (script == nullptr) return base::Error{std::move(error)};
  if (ScriptPtr known = cache_.Find(script->sha)) script = known;
  if (!Compiled(lane, script, &error)) return base::Error{std::move(error)};
  script = cache_.Add(script, true, lane.now_ms);
  of(lane).compiled.find(script->sha)->second.script = script;
  return script->sha;
}

CatalogPtr Scripts::CatalogNow(Lane& lane) {
  LaneScripts& own = of(lane);
  return libraries_.Now(Interpreter(own, own.functions));
}

base::Result<LibraryPtr> Scripts::CompileLibrary(Lane& lane, std::string_view code, bool admitted) {
  constexpr int64_t kMostMicros = 500000;
  LaneScripts& own = of(lane);
  lua::Interpreter& interpreter = Interpreter(own, own.functions);
  const int64_t end = engine_.clock().MonotonicMicros() + kMostMicros;
  std::vector<int> handles;
  const auto late = [&] { return !admitted && engine_.clock().MonotonicMicros() > end; };
  auto library = script::Compile(interpreter, code, late, &handles);
  for (const int handle : handles) interpreter.Release(handle);
  own.counters.vm_functions.Reset();
  own.counters.vm_functions.Add(interpreter.memory());
  if (library) library = libraries_.Judged(library.value());
  return library;
}

// ---- before a run ----

LockClass Scripts::Prepare(Lane& lane, const Command& command, Args args) {
  MakeReady(lane, command, args);
  Ready& ready = of(lane).ready;
  return ready.error.empty() ? NeededBy(ready) : LockClass::kNone;
}

// What is wrong now may be right when its turn comes, by what the transaction does before.
LockClass Scripts::PrepareQueued(Lane& lane, const Command& command, Args args) {
  MakeReady(lane, command, args);
  Ready& ready = of(lane).ready;
  return ready.error.empty() ? NeededBy(ready) : LockClass::kAll;
}

LockClass Scripts::NeededBy(Ready& ready) const {
  switch (engine_.settings().script_keys) {
    case config::ScriptKeys::kExclusive:
      return LockClass::kAll;
    case config::ScriptKeys::kStrict:
      ready.declared = true;
      return LockClass::kKeys;
    case config::ScriptKeys::kLearn:
      break;
  }
  ready.declared = ready.conduct().load(std::memory_order_relaxed) == Conduct::kDeclared;
  return ready.declared ? LockClass::kKeys : LockClass::kAll;
}

void Scripts::MakeReady(Lane& lane, const Command& command, Args args, bool in_transaction) {
  Tidy(lane);
  Ready& ready = of(lane).ready;
  ready = Ready();
  ready.words = args.data();
  ready.read_only = IsReadOnly(command);
  const bool found =
      IsFunction(command) ? ReadyFunction(lane, args) : ReadyScript(lane, command, args);
  if (!found) return;
  const bool flagged = ready.function != nullptr || ready.script->head.present;
  const uint8_t flags =
      ready.function != nullptr ? ready.function->info.flags : ready.script->head.flags;
  if ((flags & static_cast<uint8_t>(lua::FunctionFlag::kNoWrites)) != 0) {
    ready.read_only = true;
  } else if (flagged && ready.read_only) {
    ready.error = "ERR Can not execute a script with write flag using *_ro command.";
  }
  // A script that allows it writes although there is no room; others ask once, now.
  if (lane.memory.limited && (flags & static_cast<uint8_t>(lua::FunctionFlag::kAllowOom)) == 0) {
    // Within a transaction nothing is evicted.
    ready.no_room = in_transaction ? lane.memory.over : !engine_.memory().HasRoom(lane, {});
  }
}

bool Scripts::ReadyScript(Lane& lane, const Command& command, Args args) {
  LaneScripts& own = of(lane);
  Ready& ready = own.ready;
  const bool by_sha = IsSha(command);
  if (by_sha && args[1].size() != kShaDigits) {
    ready.error = kNoScript;
    return false;
  }
  const auto keys = KeyCount(args, commands::errors::kNotInteger);
  if (!keys) {
    ready.error = keys.error();
    return false;
  }
  ready.keys = keys.value();
  own.sha = by_sha ? base::ToLower(args[1]) : ShaOf(args[1]);
  if (const auto it = own.compiled.find(own.sha);
      it != own.compiled.end() && !it->second.script->evicted.load(std::memory_order_acquire)) {
    ready.script = it->second.script;
  } else {
    ready.script = cache_.Find(own.sha);
    if (it != own.compiled.end() && ready.script != it->second.script) {
      own.scripts->Release(it->second.handle);  // it was dropped, and may have come again
      own.compiled.erase(it);
    }
  }
  const bool known = ready.script != nullptr;
  if (!known && by_sha) {
    ready.error = kNoScript;
    return false;
  }
  if (!known) ready.script = MakeScript(args[1], &ready.error);
  if (ready.script == nullptr || !Compiled(lane, ready.script, &ready.error)) return false;
  ready.handle = own.compiled.find(ready.script->sha)->second.handle;
  ready.interpreter = own.scripts.get();
  if (known) {
    ready.script->used_ms.store(lane.now_ms, std::memory_order_relaxed);
  } else {  // another thread may have come first
    ready.script = cache_.Add(ready.script, false, lane.now_ms);
    own.compiled.find(ready.script->sha)->second.script = ready.script;
  }
  return true;
}

bool Scripts::ReadyFunction(Lane& lane, Args args) {
  LaneScripts& own = of(lane);
  Ready& ready = own.ready;
  ready.catalog = CatalogNow(lane);
  ready.function = ready.catalog->Find(args[1]);
  if (ready.function == nullptr) {
    ready.error = "ERR Function not found";
    return false;
  }
  const auto keys = KeyCount(args, "ERR Bad number of keys provided");
  if (!keys) {
    ready.error = keys.error();
    return false;
  }
  ready.keys = keys.value();
  if (own.catalog != ready.catalog->generation) {
    std::erase_if(own.loaded, [&](const auto& one) {
      const LibraryPtr& library = one.second.first;
      const auto it = ready.catalog->libraries.find(library->name);
      if (it != ready.catalog->libraries.end() && it->second == library) return false;
      for (const int handle : one.second.second) own.functions->Release(handle);
      return true;
    });
    own.catalog = ready.catalog->generation;
  }
  Library& library = *ready.function->library;
  auto it = own.loaded.find(&library);
  if (it == own.loaded.end()) {
    std::vector<int> handles;
    const auto again = Compile(*own.functions, library.code, nullptr, &handles);
    const bool same = again && std::ranges::equal(
                                   again.value()->functions, library.functions, {},
                                   [](const auto& one) { return one->info.name; },
                                   [](const auto& one) { return one->info.name; });
    if (!same) {
      for (const int handle : handles) own.functions->Release(handle);
      ready.error = fmt::format(
          "ERR The library '{}' did not register the same functions as when it was loaded",
          library.name);
      return false;
    }
    it = own.loaded.emplace(&library, std::pair(ready.catalog->libraries.at(library.name), handles))
             .first;
  }
  ready.handle = it->second.second[ready.function->index];
  ready.interpreter = own.functions.get();
  return true;
}

// ---- a run ----

void Scripts::Run(engine::EngineContext& context) {
  Lane& lane = context.lane();
  LaneScripts& own = of(lane);
  engine::Invocation& invocation = context.invocation();
  engine_.observer().FeedMonitors(context.client(), invocation.shown_args(), &invocation.effects());
  if (own.ready.words != context.args().data()) {
    MakeReady(lane, *invocation.work().command, context.args(), true);
  }
  own.ready.words = nullptr;
  if (!own.ready.error.empty()) return context.Error(own.ready.error);
  ScriptRun run(*this, context);
  run.Go();
}

engine::ScriptFigures Scripts::Figures() const {
  engine::ScriptFigures figures;
  for (const auto& own : lanes_) {
    figures.vm_eval += own->counters.vm_eval.get();
    figures.vm_functions += own->counters.vm_functions.get();
    figures.declared += own->counters.declared.get();
    figures.exclusive += own->counters.exclusive.get();
    figures.restarted += own->counters.restarted.get();
    figures.extended += own->counters.extended.get();
    figures.clashed += own->counters.clashed.get();
  }
  figures.scripts = cache_.count();
  figures.script_bytes = cache_.bytes();
  figures.evicted = cache_.evicted();
  figures.functions = libraries_.last()->functions.size();
  return figures;
}

}  // namespace sava::script
