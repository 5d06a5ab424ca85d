// Scripting: the runner's view of the room that runs scripts, for a command that is a script
// (kRunsScript). The room is above this one; the composition root puts the two together.
#pragma once

#include <cstdint>
#include <string>

#include "commands/registry.h"

namespace sava::engine {

struct Client;
struct Lane;

struct ScriptFigures {
  uint64_t vm_eval = 0;  // bytes that all threads' interpreters hold
  uint64_t vm_functions = 0;
  uint64_t scripts = 0;
  uint64_t script_bytes = 0;
  uint64_t evicted = 0;
  uint64_t functions = 0;
  uint64_t declared = 0;   // runs under the locks of the declared keys
  uint64_t exclusive = 0;  // runs alone
  uint64_t restarted = 0;  // runs that began again, alone
  uint64_t extended = 0;   // stripes locked while a script ran
  uint64_t clashed = 0;    // runs ended because the locks they asked for could not be had
};

class Scripting {
 public:
  virtual ~Scripting() = default;

  // Flags (CommandFlag) that replace those of the command's row: what the script has said of
  // itself.
  virtual uint32_t FlagsOf(const commands::Command& command, commands::Args args) = 0;
  // Makes the script ready to run on this lane, and says what it needs: nothing, when it will be
  // answered with an error; its keys; or everything. REQUIRES: no lock is held; on the lane's
  // thread.
  virtual commands::LockClass Prepare(Lane& lane, const commands::Command& command,
                                      commands::Args args) = 0;
  // The same for a script that is queued in a transaction.
  virtual commands::LockClass PrepareQueued(Lane& lane, const commands::Command& command,
                                            commands::Args args) = 0;
  virtual ScriptFigures Figures() const = 0;
  // Scripts that run are ended, whatever they have done, and so are those that come; until it is
  // switched off again.
  virtual void EndAll(bool on) = 0;
};

}  // namespace sava::engine
