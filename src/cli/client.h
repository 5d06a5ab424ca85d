// `sava cli`: speaks with a server from a terminal, a script or a pipe. See docs/cli.md.
#pragma once

#include <string>
#include <vector>

namespace sava::cli {

// What follows "cli" on the command line. Returns the process's exit code: 0, or 1 if the server
// could not be reached, refused a command, or the command line is wrong.
int RunClient(const std::vector<std::string>& words);

}  // namespace sava::cli
