// The commands of this room.
#pragma once

#include <span>

#include "commands/spec.h"

namespace sava::admin {

std::span<const commands::CommandSpec> AdminCommands();    // TIME MONITOR ROLE LOLWUT …
std::span<const commands::CommandSpec> ClusterCommands();  // CLUSTER READONLY READWRITE ASKING
std::span<const commands::CommandSpec> DebugCommands();    // DEBUG
std::span<const commands::CommandSpec> InfoCommands();     // INFO
std::span<const commands::CommandSpec> LatencyCommands();  // LATENCY
std::span<const commands::CommandSpec> MemoryCommands();   // MEMORY
std::span<const commands::CommandSpec> SlowlogCommands();  // SLOWLOG

}  // namespace sava::admin
