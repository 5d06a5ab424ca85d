// `sava frontier`: the URL scheduler of the document, without a server: its program, a generator of
// files for it, and a study of its accesses to memory.
#pragma once

#include <string>
#include <vector>

namespace sava::cli {

// `words` are the arguments after "frontier". The exit code: 0 done, 2 it could not be done.
int RunFrontier(const std::vector<std::string>& words);

}  // namespace sava::cli
