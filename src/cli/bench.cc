#include "cli/bench.h"

#include <fmt/format.h>

#include <cstdio>
#include <string_view>

#include "cli/bench_associations.h"
#include "cli/bench_options.h"
#include "cli/bench_report.h"
#include "cli/suggest.h"

namespace sava::cli {
namespace {

constexpr std::string_view kHelp = R"(Usage: sava bench NAME [OPTION ...]

  sava bench associations    count which keys go together: write, read the most frequent,
                             delete, over RESP or HTTP (sava bench associations --help)

Example:
  sava bench associations -p 6379 --associators 100 --clients 50
)";

int BenchAssociations(const std::vector<std::string>& words) {
  const base::Result<BenchOptions> options = ParseBenchOptions(words);
  if (!options) {
    fmt::print(stderr, "sava bench associations: {}\n", options.error());
    return 1;
  }
  if (options.value().help) {
    fmt::print("{}", BenchUsage());
    return 0;
  }
  const base::Result<BenchReport> report = RunAssociations(options.value());
  if (!report) {
    fmt::print(stderr, "sava bench associations: {}\n", report.error());
    return 1;
  }
  fmt::print("{}", options.value().json ? ReportJson(report.value()) : ReportText(report.value()));
  return report.value().ok() ? 0 : 1;
}

}  // namespace

int RunBench(const std::vector<std::string>& words) {
  if (!words.empty() && words[0] == "associations") {
    return BenchAssociations({words.begin() + 1, words.end()});
  }
  if (!words.empty() && (words[0] == "--help" || words[0] == "-h" || words[0] == "help")) {
    fmt::print("{}", kHelp);
    return 0;
  }
  if (!words.empty()) {
    const std::string hint = DidYouMean(words[0], {"associations", "help"});
    fmt::print(stderr, "sava bench: there is no '{}'{}\n\n", words[0], hint);
  }
  fmt::print(stderr, "{}", kHelp);
  return 1;
}

}  // namespace sava::cli
