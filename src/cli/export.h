// `sava export`: reads a data set from its files, without a server, and writes it as one RDB file.
#pragma once

#include <string>
#include <vector>

namespace sava::cli {

// `words` are the arguments after "export". The exit code: 0 the file is written, 1 it is not.
int RunExport(const std::vector<std::string>& words);

}  // namespace sava::cli
