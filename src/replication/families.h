// What this room adds to the server: its commands and its section of INFO.
#pragma once

#include <span>

#include "commands/spec.h"
#include "engine/info.h"

namespace sava::replication {

std::span<const commands::CommandSpec> MasterCommands();  // PSYNC SYNC REPLCONF WAIT ROLE …
std::span<const commands::CommandSpec> MigrationCommands();
extern const engine::InfoSection kReplicationInfo;

}  // namespace sava::replication
