// The HELP subcommand of every container, written from the rows of its subcommands.
#pragma once

#include "commands/context.h"

namespace sava::commands {

// Handler for a row named "help": one line for each subcommand of the container in argument 0, and
// what it is for in an indented line below.
void HelpCommand(Context& context);

}  // namespace sava::commands
