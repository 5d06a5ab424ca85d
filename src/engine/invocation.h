// Invocation: one run of a command, or a piece of the server's own work on keys. It lives on the
// stack of the thread that runs it.
//
// Invocations nest: a command of a transaction runs inside the invocation of its EXEC. What all of
// them leave behind is one EffectGroup, which belongs to the outermost and is committed when that
// one ends.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/blob.h"
#include "commands/context.h"
#include "commands/registry.h"
#include "engine/effects.h"
#include "engine/engine.h"

namespace sava::engine {

// Copies of arguments that are too large to be copied under a lock.
class LargeArguments {
 public:
  LargeArguments() = default;
  ~LargeArguments();
  LargeArguments(const LargeArguments&) = delete;
  LargeArguments& operator=(const LargeArguments&) = delete;

  // REQUIRES: no lock is held.
  void Copy(commands::Args args);
  // The copy of this argument, once; nullptr when there is none.
  base::Blob* Take(std::string_view argument);

 private:
  std::vector<std::pair<const char*, base::Blob*>> copies_;
};

class Invocation;

// What to run, and for whom.
struct Work {
  Client* client = nullptr;                    // nullptr: for the server itself
  const commands::Command* command = nullptr;  // nullptr: no command
  commands::Args args = {};
  std::span<const uint64_t> hashes = {};  // of its keys, when they are at fixed places; or none
  LargeArguments* large = nullptr;
  Invocation* outer = nullptr;  // of which it is a part
  Waiter* waiter = nullptr;     // whose command is tried again
  // With a waiter: because of this key, the only one that is locked. None: all its keys are locked.
  std::optional<std::string_view> ready_key = {};
  journal::Destinations to = journal::kToAll;  // of its effects, when they are logged
};

class Invocation {
 public:
  Invocation(Lane& lane, const Work& work)
      : lane_(lane),
        engine_(*lane.engine),
        work_(work),
        origin_(work.client != nullptr ? work.client->origin : kFromServer),
        effects_(work.outer != nullptr ? work.outer->effects_ : lane.batch.effects),
        db_(work.client != nullptr ? work.client->db : 0),
        now_ms_(lane.now_ms) {}
  // The server's own work.
  explicit Invocation(Lane& lane, Invocation* outer = nullptr)
      : Invocation(lane, Work{.outer = outer}) {}
  Invocation(const Invocation&) = delete;
  Invocation& operator=(const Invocation&) = delete;

  Engine& engine() const { return engine_; }
  Lane& lane() const { return lane_; }
  const Work& work() const { return work_; }
  // REQUIRES: there is one.
  Client& client() const { return *work_.client; }
  const Origin& origin() const { return origin_; }
  EffectGroup& effects() const { return effects_; }
  bool outermost() const { return work_.outer == nullptr; }
  int db() const { return db_; }
  int64_t now_ms() const { return now_ms_; }
  // Keys expire at this time and before.
  int64_t past_ms() const { return origin_.expires ? now_ms_ : INT64_MIN; }

  // The invocation whose handler this thread runs now, or nullptr. For a crash report.
  static const Invocation* Running() { return running_; }
  // Runs a handler.
  void Run(commands::Handler handler, commands::Context& context) {
    struct Scope {
      ~Scope() { running_ = before; }  // also when there is no memory
      const Invocation* const before;
    } const scope{std::exchange(running_, this)};
    handler(context);
  }

  // ---- its effects ----
  void Changed(int64_t changes) { dirty_ += changes; }
  // The command as it was sent is not what is logged.
  void NotVerbatim() { verbatim_ = false; }
  void Effect(commands::Args words) {
    verbatim_ = false;
    effects_.NoteChange();
    Propagate(words, db_);
  }
  // For the journal, if it wants to know.
  void Propagate(commands::Args words, int db) {
    if (engine_.journal().enabled() && origin_.logged)
      effects_.Add(engine_.journal(), lane_.index, words, db, work_.to);
  }
  void Notify(int db, commands::NotifyClass cls, std::string_view event, std::string_view key);
  // The end: the outermost commits the effects. REQUIRES: locks still held.
  void End();
  // Instead, when there was no memory to come to an end: commits the effects so far, if it can.
  void Abandon();
  // Commits the effects so far, in between. REQUIRES: outermost.
  void Commit() { effects_.Commit(engine_, lane_, work_.client); }

  // ---- waiting ----
  void Block(const commands::Context::BlockRequest& request);
  // Whether it has made its client wait.
  bool blocked() const { return blocked_; }

  // ---- what may be shown of it ----
  // Keeps an argument out of MONITOR and the slow log.
  void Redact(size_t index) {
    if (shown_.empty()) shown_.assign(work_.args.begin(), work_.args.end());
    shown_[index] = "(redacted)";
  }
  commands::Args shown_args() const { return shown_.empty() ? work_.args : commands::Args(shown_); }

 private:
  static constinit thread_local const Invocation* running_;

  Lane& lane_;
  Engine& engine_;
  const Work work_;
  const Origin origin_;
  EffectGroup& effects_;
  const int db_;
  const int64_t now_ms_;
  int64_t dirty_ = 0;
  bool verbatim_ = true;
  bool blocked_ = false;
  std::vector<std::string_view> shown_;  // empty: nothing was redacted
};

}  // namespace sava::engine
