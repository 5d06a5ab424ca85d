// The prompt: reads lines from a terminal until the user leaves.
#pragma once

#include "cli/client_format.h"
#include "cli/client_options.h"

namespace sava::cli {

// Returns the process's exit code. REQUIRES: standard input and output are terminals.
int RunInteractive(const Options& options, OutputMode mode);

}  // namespace sava::cli
