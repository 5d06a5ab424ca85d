// `sava serve`: starts the server in this process.
#pragma once

#include <span>
#include <string>

namespace sava::cli {

// What follows "serve" on the command line; returns the process's exit code.
int Serve(std::span<const std::string> args, const std::string& executable);

}  // namespace sava::cli
