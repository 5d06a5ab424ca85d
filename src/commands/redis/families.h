// The families of Redis's own types.
#pragma once

#include <span>
#include <vector>

#include "commands/spec.h"

namespace sava::commands {

std::span<const CommandSpec> StringCommands();
std::span<const CommandSpec> BitmapCommands();
std::span<const CommandSpec> KeyCommands();
std::span<const CommandSpec> CommandCommands();
std::span<const CommandSpec> ListCommands();
std::span<const CommandSpec> ListEditCommands();
std::span<const CommandSpec> ListMoveCommands();
std::span<const CommandSpec> ListBlockingCommands();
std::span<const CommandSpec> HyperLogLogCommands();
std::span<const CommandSpec> SortCommands();
std::span<const CommandSpec> StreamCommands();
std::span<const CommandSpec> StreamReadCommands();
std::span<const CommandSpec> StreamGroupCommands();
std::span<const CommandSpec> StreamClaimCommands();
std::span<const CommandSpec> StreamInfoCommands();
std::span<const CommandSpec> SortedSetCommands();
std::span<const CommandSpec> SortedSetRangeCommands();
std::span<const CommandSpec> SortedSetPopCommands();
std::span<const CommandSpec> SortedSetAlgebraCommands();
std::span<const CommandSpec> SetCommands();
std::span<const CommandSpec> SetRandomCommands();
std::span<const CommandSpec> SetAlgebraCommands();
std::span<const CommandSpec> GeoCommands();
std::span<const CommandSpec> GeoSearchCommands();
std::span<const CommandSpec> HashCommands();
std::span<const CommandSpec> HashMoreCommands();
std::span<const CommandSpec> HashExpireCommands();
std::span<const CommandSpec> HashGetSetCommands();
std::vector<std::span<const CommandSpec>> RedisFamilies();

}  // namespace sava::commands
