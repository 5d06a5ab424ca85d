// The menu of document S2: create a filter, add a value, check a value, exit; on bloom.txt in the
// current directory.
#pragma once

#include "cli/bloom_options.h"

namespace sava::cli {

// Until choice 4 or the end of standard input. What could not be done goes to standard error.
// REQUIRES: bits and hashes are settled.
void RunBloomMenu(const BloomOptions& options);

}  // namespace sava::cli
