// What checking and adding a value does to a filter, as text: figures 1 to 3 of document S2.
//
// No state; safe from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/bloom_file.h"

namespace sava::cli {

// The bits before and after a value with these positions is added, lowest first, with its hashes
// between them. Of filters with more than 64 bits only the rows that the positions are in.
// REQUIRES: positions are below `bits`, and there is at least one.
std::string DrawBits(uint64_t bits, const std::vector<uint64_t>& positions,
                     const std::function<bool(uint64_t)>& is_set);
// The whole explanation: positions, what `check` answers, what `add` changes, and the drawing.
std::string ExplainBits(uint64_t bits, const std::vector<uint64_t>& positions,
                        const std::function<bool(uint64_t)>& is_set);

}  // namespace sava::cli
