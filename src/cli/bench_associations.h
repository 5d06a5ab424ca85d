// `sava bench associations`: the load generator of the association counter's document, its phases
// (insert, top K for several K, delete) and the check that the server counted right.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/bench_load.h"
#include "cli/bench_options.h"
#include "cli/bench_report.h"

namespace sava::cli {

// Runs all phases. An error when the server could not be reached at all; what goes wrong later
// stands in the report. Ctrl-C ends the phase under way and goes on with deleting.
base::Result<BenchReport> RunAssociations(const BenchOptions& options);

// A top list as a server gave it.
using CountedMembers = std::vector<std::pair<std::string, uint64_t>>;

// From AFC.TOP's reply (RESP2) or the body of GET /associations/{key}.
base::Result<CountedMembers> ParseTopReply(std::string_view reply);
base::Result<CountedMembers> ParseTopJson(std::string_view body);

// Empty when the `k` most frequent members of an associator are what the load sent; else what is
// wrong.
std::string CheckCounts(const AssociationLoad& load, uint64_t associator, uint64_t k,
                        const CountedMembers& counted);

}  // namespace sava::cli
