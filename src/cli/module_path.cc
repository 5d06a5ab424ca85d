#include "cli/module_path.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

namespace sava::cli {

namespace {

constexpr const char* kHelp = R"TEXT(Usage: sava module-path

Prints where sava.so is: the module that brings the native types into a stock
Redis (7.0 or later) or Valkey. The server loads it by a line of its configuration:

  loadmodule /usr/lib/sava/sava.so

Example:
  redis-server --loadmodule "$(sava module-path)"
)TEXT";

// Beside the program, as it is built, or where it is installed.
constexpr const char* kPlaces[] = {"sava.so", "../lib/sava/sava.so"};

}  // namespace

int RunModulePath(const std::vector<std::string>& words) {
  if (!words.empty()) {
    const bool asked = words[0] == "--help" || words[0] == "-h";
    fmt::print(asked ? stdout : stderr, "{}", kHelp);
    return asked ? 0 : 1;
  }
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* const place : kPlaces) {
    const auto path = std::filesystem::canonical(folder / place, error);
    if (error) continue;
    fmt::print("{}\n", path.string());
    return 0;
  }
  fmt::print(stderr, "sava: there is no sava.so beside {} or in ../lib/sava\n", folder.string());
  return 1;
}

}  // namespace sava::cli
