// `sava backup` and `sava restore`: a running server's data set as one file, and a file as a
// directory that a server starts from.
#pragma once

#include <string>
#include <vector>

namespace sava::cli {

// `words` are the arguments after the subcommand. The exit code: 0 done, 1 not.
int RunBackup(const std::vector<std::string>& words);
int RunRestore(const std::vector<std::string>& words);

}  // namespace sava::cli
