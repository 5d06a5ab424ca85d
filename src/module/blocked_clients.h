// Runs commands for the host, and those of clients that wait for keys again.
//
// A handler that blocks leaves its client waiting in the host (BlockClientOnKeys): the command is
// run again whenever one of its keys changed. What becomes due without a change has a timer, one
// for each client that waits, which ends with its waiting.
//
// Main thread only.
#pragma once

#include "commands/spec.h"
#include "module/host_api.h"

namespace sava::module {

int RunCommand(host::Ctx* ctx, host::String** argv, int argc, const commands::CommandSpec& spec);

}  // namespace sava::module
