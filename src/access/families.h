// The commands of this room.
#pragma once

#include <span>

#include "commands/spec.h"

namespace sava::access {

std::span<const commands::CommandSpec> AuthCommands();  // AUTH
std::span<const commands::CommandSpec> AclCommands();   // ACL

}  // namespace sava::access
