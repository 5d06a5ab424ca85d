// `sava check`: reads data files from end to end, says what is in them and what is wrong with them,
// and with --repair cuts off the broken end of an append-only log.
#pragma once

#include <string>
#include <vector>

namespace sava::cli {

// `words` are the arguments after "check". The exit code: 0 all is good (or repaired), 1 something
// is not or could not be read, 2 all is good but --portable found what a stock Redis 7.0 refuses.
int RunCheck(const std::vector<std::string>& words);

}  // namespace sava::cli
