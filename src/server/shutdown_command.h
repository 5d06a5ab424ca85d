// SHUTDOWN.
#pragma once

#include <span>

#include "commands/spec.h"

namespace sava::server {

std::span<const commands::CommandSpec> ShutdownCommands();

}  // namespace sava::server
