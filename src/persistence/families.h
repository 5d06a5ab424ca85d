// What this room adds to the server: its commands and its section of INFO.
#pragma once

#include <span>

#include "commands/spec.h"
#include "engine/info.h"

namespace sava::persistence {

std::span<const commands::CommandSpec> PersistenceCommands();  // SAVE BGSAVE BGREWRITEAOF …
extern const engine::InfoSection kPersistenceInfo;

}  // namespace sava::persistence
