// What a stock Redis 7.0 knows of commands.
//
// Thread safety: any thread.
#pragma once

#include <string>
#include <string_view>

#include "commands/spec.h"

namespace sava::commands {

// A container's name stands for its subcommands. Any case.
bool StockKnows(std::string_view name);

// What it would not understand of a command in a log; empty when it knows it.
std::string ForeignCommand(Args words);

}  // namespace sava::commands
