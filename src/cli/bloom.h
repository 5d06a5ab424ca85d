// `sava bloom`: a Bloom filter in a file, without a server. Alone it is the menu of the document;
// its subcommands do the same for scripts.
#pragma once

#include <string>
#include <vector>

namespace sava::cli {

// `words` are the arguments after "bloom". The exit code: 0 done (check: every value may be there),
// 1 check: some value is not there, 2 it could not be done.
int RunBloom(const std::vector<std::string>& words);

}  // namespace sava::cli
