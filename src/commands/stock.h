// What a stock Redis 7.0, alone and with sava.so, knows of commands.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "commands/spec.h"

namespace sava::commands {

// Who is to read what a server sends or writes. Each knows what those before it know.
enum class Reader : uint8_t { kStock, kStockWithModule, kSava };

// A container's name stands for its subcommands. Any case.
bool StockKnows(std::string_view name);
// The least reader that knows the command.
Reader ReaderOf(std::string_view name);
// Whether the words are RESTORE of a value of a native type.
bool RestoresNative(Args words);

// What it would not understand of a command in a log; empty when it knows it.
std::string ForeignCommand(Args words);

}  // namespace sava::commands
