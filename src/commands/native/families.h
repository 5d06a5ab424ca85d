// The families of the types Redis does not have.
#pragma once

#include <span>
#include <vector>

#include "commands/spec.h"

namespace sava::commands {

std::span<const CommandSpec> LimitCommands();
std::span<const CommandSpec> AfcCommands();
std::span<const CommandSpec> CountMinCommands();
std::span<const CommandSpec> TopKCommands();
std::span<const CommandSpec> SimHashCommands();
std::span<const CommandSpec> BloomCommands();
std::span<const CommandSpec> CuckooCommands();
std::span<const CommandSpec> FrontierCommands();
std::span<const CommandSpec> UrlCommands();
std::vector<std::span<const CommandSpec>> NativeFamilies();

}  // namespace sava::commands
