// ScriptRun: one run of a script or function, and what its redis.* calls do here. Commands that it
// calls are invocations inside the invocation of EVAL: what all of them leave behind is one unit.
//
// On the lane's thread, under the locks that Scripts::Prepare asked for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/engine_context.h"
#include "engine/locks.h"
#include "lua/interpreter.h"
#include "script/scripts.h"

namespace sava::script {

class ScriptRun final : public lua::Host {
 public:
  ScriptRun(Scripts& scripts, engine::EngineContext& context);

  // Runs it and answers.
  void Go();

  // ---- for the interpreter ----
  CallResult Call(std::span<const std::string_view> args, int resp, std::string* reply) override;
  void Log(int level, std::string_view text) override;
  void SetReplication(int flags) override { replication_ = flags; }
  Access CheckAccess(std::span<const std::string_view> args) override;
  bool Interrupted() override;

 private:
  // Why a run has to stop.
  enum class Stop : uint8_t { kNone, kAlone, kClash, kKilled };

  lua::RunResult RunOnce();
  void BeginAlone();
  void Learn(lua::RunResult result);
  void Answer(lua::RunResult result);
  void AnswerError(std::string_view text);
  void Count();

  // Why the command is refused, without "ERR "; empty: it is not.
  std::string Objection(const commands::Command* command, commands::Args args);
  std::string WriteObjection(const commands::Command& command);
  // False when it may not go on; `refusal` is the error, or stop_ says why.
  bool MayTouch(const commands::Command& command, commands::Args args, std::string* refusal);
  bool Stray(const commands::Command& command, std::string_view key, std::string* refusal);
  bool Extend(std::string_view key, uint64_t hash);
  CallResult Refuse(const commands::Command* command, std::string_view error, std::string* reply);
  commands::Args OwnWords(const commands::Command& command, commands::Args args);
  void Perform(const commands::Command& command, commands::Args args, int resp, std::string* reply);
  bool killed() const { return scripts_.running().Killed(*slot_); }

  Scripts& scripts_;
  engine::EngineContext& context_;
  engine::Engine& engine_;
  engine::Lane& lane_;
  engine::Client& client_;
  LaneScripts& own_;
  const bool in_transaction_;
  Ready ready_;
  engine::LockSet declared_;  // the stripes of its keys
  Running::Slot* slot_ = nullptr;
  bool busy_ = false;    // it has declared itself
  bool writes_ = false;  // a command that writes was called
  bool left_ = false;    // it may have left something behind: it cannot begin again
  bool strayed_ = false;
  int replication_ = journal::kToAll;
  size_t lines_ = 0;  // notices of its group when it began
  Stop stop_ = Stop::kNone;
  std::string clash_;                    // the error of kClash
  std::vector<std::string_view> words_;  // of a renamed command
  std::vector<int> indexes_;
  std::vector<uint64_t> hashes_;
};

}  // namespace sava::script
