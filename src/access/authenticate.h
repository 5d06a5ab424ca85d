// Authenticate: checks a user name and a password. For AUTH and HELLO.
#pragma once

#include <string_view>

#include "commands/context.h"

namespace sava::access {

// Makes the session the user's, or replies the error, notes the attempt and returns false.
bool Authenticate(commands::Context& ctx, std::string_view user, std::string_view password);

}  // namespace sava::access
