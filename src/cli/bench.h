// `sava bench`: load generators that run against a server.
#pragma once

#include <string>
#include <vector>

namespace sava::cli {

// `words` are the arguments after "bench". The exit code: 0 when everything went well.
int RunBench(const std::vector<std::string>& words);

}  // namespace sava::cli
