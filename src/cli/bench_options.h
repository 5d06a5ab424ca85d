// The command line of `sava bench associations`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/bench_client.h"
#include "cli/bench_load.h"

namespace sava::cli {

// The most that one GET of the HTTP service gives.
inline constexpr uint64_t kMostOverHttp = 10000;

struct BenchOptions {
  LoadSettings load;
  AssociationShape shape;
  // The document's list of K.
  std::vector<uint64_t> top = {20, 50, 100, 200, 1000, 2000};
  uint64_t reads = 10000;  // for each K
  std::string prefix = "assoc:";
  bool keep = false;
  bool exclusive = false;  // 1 to R - 1 repetitions; shape.repetitions is the most there are
  bool json = false;
  bool help = false;
};

// `words` are the arguments after "bench associations". A seed that is not given is random.
base::Result<BenchOptions> ParseBenchOptions(const std::vector<std::string>& words);

std::string_view BenchUsage();

}  // namespace sava::cli
