// CONFIG.
#pragma once

#include <span>

#include "commands/spec.h"

namespace sava::config {

std::span<const commands::CommandSpec> ConfigCommands();

}  // namespace sava::config
