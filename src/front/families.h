// What this room adds to the server: its commands and its section of INFO.
#pragma once

#include <span>

#include "commands/spec.h"
#include "engine/info.h"

namespace sava::front {

std::span<const commands::CommandSpec> ConnectionCommands();  // HELLO PING QUIT RESET …
std::span<const commands::CommandSpec> ClientCommands();      // CLIENT
extern const engine::InfoSection kClientsInfo;

}  // namespace sava::front
