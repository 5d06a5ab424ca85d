// `sava module-path`: where sava.so is, for the loadmodule line of a stock server.
#pragma once

#include <string>
#include <vector>

namespace sava::cli {

int RunModulePath(const std::vector<std::string>& words);

}  // namespace sava::cli
