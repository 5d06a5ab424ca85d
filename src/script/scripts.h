// Scripts: EVAL and FCALL in this server. Each thread has interpreters of its own, made when it
// runs its first script, so no thread waits for one; what they have compiled is thrown away after
// SCRIPT FLUSH or a change of the libraries.
//
// A script that is known to keep to the keys it is given runs under the locks of their stripes,
// beside others; any other runs with the gate closed, and is known afterwards (Conduct).
//
// Threads: what takes a lane on the lane's thread; the rest on any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/engine.h"
#include "engine/engine_context.h"
#include "engine/scripting.h"
#include "lua/interpreter.h"
#include "protocol/out_buffer.h"
#include "script/libraries.h"
#include "script/running.h"
#include "script/script_cache.h"

namespace sava::script {

// A call that was made ready before its locks were taken.
struct Ready {
  const std::string_view* words = nullptr;  // of the command it is for
  std::string error;                        // it is answered with this instead; empty: none
  ScriptPtr script;                         // or
  Function* function = nullptr;             // which its catalog keeps alive
  CatalogPtr catalog;
  lua::Interpreter* interpreter = nullptr;
  int handle = 0;
  bool read_only = false;  // it may not write
  bool no_room = false;    // memory was over its limit before it began
  bool declared = false;   // runs under the locks of its keys
  size_t keys = 0;

  std::string_view name() const {
    return function != nullptr ? std::string_view(function->info.name) : script->sha;
  }
  std::atomic<Conduct>& conduct() const {
    return function != nullptr ? function->conduct : script->conduct;
  }
};

struct ScriptCounters {
  engine::Counter vm_eval;  // bytes
  engine::Counter vm_functions;
  engine::Counter declared;  // runs
  engine::Counter exclusive;
  engine::Counter restarted;
  engine::Counter extended;
  engine::Counter clashed;
};

// What a thread has for its scripts.
struct LaneScripts {
  struct Compiled {
    ScriptPtr script;
    int handle = 0;
  };
  std::unique_ptr<lua::Interpreter> scripts;
  uint64_t generation = 0;                             // of the cache, when `scripts` was made
  std::unordered_map<std::string, Compiled> compiled;  // by the script's sha
  std::unique_ptr<lua::Interpreter> functions;
  std::unordered_map<const Library*, std::pair<LibraryPtr, std::vector<int>>> loaded;
  uint64_t catalog = 0;  // generation for which `loaded` was cleared
  lua::Limits limits;
  Ready ready;
  std::string sha;  // scratch
  std::string reply;
  std::string inner;
  protocol::OutBuffer replies;  // in the client's place while a script's command runs
  unsigned runs = 0;
  ScriptCounters counters;
};

class Scripts final : public engine::Scripting {
 public:
  explicit Scripts(engine::Engine* engine);
  ~Scripts() override;

  uint32_t FlagsOf(const commands::Command& command, commands::Args args) override;
  commands::LockClass Prepare(engine::Lane& lane, const commands::Command& command,
                              commands::Args args) override;
  commands::LockClass PrepareQueued(engine::Lane& lane, const commands::Command& command,
                                    commands::Args args) override;
  engine::ScriptFigures Figures() const override;
  void EndAll(bool on) override { running_.KillAll(on); }

  // EVAL and FCALL in all their forms.
  void Run(engine::EngineContext& context);
  // SCRIPT LOAD; the error is complete.
  base::Result<std::string> Load(engine::Lane& lane, std::string_view source);
  // FUNCTION LOAD's part without locks. The error is without "ERR ". admitted: it was loaded once
  // before, and may take as long as it takes.
  base::Result<LibraryPtr> CompileLibrary(engine::Lane& lane, std::string_view code, bool admitted);
  CatalogPtr CatalogNow(engine::Lane& lane);

  engine::Engine& engine() { return engine_; }
  ScriptCache& cache() { return cache_; }
  Libraries& libraries() { return libraries_; }
  Running& running() { return running_; }
  LaneScripts& of(const engine::Lane& lane) { return *lanes_[lane.index]; }

 private:
  void MakeReady(engine::Lane& lane, const commands::Command& command, commands::Args args,
                 bool in_transaction = false);
  commands::LockClass NeededBy(Ready& ready) const;
  bool ReadyScript(engine::Lane& lane, const commands::Command& command, commands::Args args);
  bool ReadyFunction(engine::Lane& lane, commands::Args args);
  bool Compiled(engine::Lane& lane, const ScriptPtr& script, std::string* error);
  ScriptPtr MakeScript(std::string_view source, std::string* error) const;
  lua::Interpreter& Interpreter(LaneScripts& own, std::unique_ptr<lua::Interpreter>& place);
  void Tidy(engine::Lane& lane);
  bool NeedsEverything(std::string_view source) const;

  engine::Engine& engine_;
  ScriptCache cache_;
  Libraries libraries_;
  Running running_;
  std::vector<std::unique_ptr<LaneScripts>> lanes_;
  std::unordered_set<std::string> everything_;  // commands that need more than keys
};

// Whether a script that calls the command with this lock class has to run alone: it touches more
// than keys, or may close the gate or lock stripes itself. Fast commands without keys do not.
bool WantsEverything(const commands::Command& command, commands::LockClass lock);

// The rows of EVAL, SCRIPT and their like; FCALL and FUNCTION.
std::span<const commands::CommandSpec> ScriptCommands();
std::span<const commands::CommandSpec> FunctionCommands();

}  // namespace sava::script
