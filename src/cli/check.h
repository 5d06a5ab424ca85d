// `sava check`: reads a data file from end to end, says what is in it and what is wrong with it.
#pragma once

#include <string>
#include <vector>

namespace sava::cli {

// `words` are the arguments after "check". The exit code: 0 the file is good, 1 it is not or could
// not be read, 2 it is good but --portable found what a stock Redis 7.0 refuses.
int RunCheck(const std::vector<std::string>& words);

}  // namespace sava::cli
