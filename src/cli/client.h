// `sava cli`: speaks with a server from a terminal, a script or a pipe. See docs/cli.md.
#pragma once

namespace sava::cli {

// `argv[0]` is the word "cli". Returns the process's exit code: 0, or 1 if the server could not be
// reached, refused a command, or the command line is wrong.
int RunClient(int argc, char** argv);

}  // namespace sava::cli
