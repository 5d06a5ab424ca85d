// `sava serve`: starts the server in this process.
#pragma once

#include <span>
#include <string>

namespace sava::cli {

struct Program {
  std::string path;  // of the executable
  std::string name;  // as it was called
};

// What follows "serve" on the command line; returns the process's exit code.
int Serve(std::span<const std::string> args, const Program& program);

}  // namespace sava::cli
