// What families of administrative commands share: the flags of their rows, and one error.
#pragma once

#include <cstdint>

#include "commands/context.h"

namespace sava::commands {

inline constexpr uint32_t kAnytime = kLoading | kStale;
inline constexpr uint32_t kConnectionFlags = kNoscript | kAnytime;
inline constexpr uint32_t kAdminFlags = kAdmin | kNoscript | kAnytime;

// "ERR unknown subcommand or wrong number of arguments for 'x'. Try CLIENT HELP."
void WrongSubcommand(Context& ctx);

}  // namespace sava::commands
