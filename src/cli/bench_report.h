// What a benchmark found, for people (a table) and for programs (JSON), and the bar that shows how
// far it is.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/bench_client.h"
#include "cli/bench_options.h"

namespace sava::cli {

struct BenchReport {
  struct Phase {
    std::string name;
    PhaseResult result;
  };
  struct Verification {
    uint64_t associators = 0;   // sampled
    uint64_t associations = 0;  // compared
    std::string problem;        // empty: all were right
  };

  AssociationShape shape;
  LoadSettings load;
  std::vector<Phase> phases;
  std::optional<Verification> verification;
  std::optional<int64_t> memory_bytes;  // by how much the server's used_memory grew
  std::string failure;                  // why the run ended early, if it did

  bool ok() const;
};

std::string ReportText(const BenchReport& report);
std::string ReportJson(const BenchReport& report);

// On standard error: a bar that is redrawn if it is a terminal, else a line every five seconds.
class Progress {
 public:
  Progress();
  void Begin(std::string_view name, uint64_t total);
  void Update(uint64_t done);
  void End();

 private:
  using SteadyClock = std::chrono::steady_clock;

  bool terminal_;
  std::string name_;
  uint64_t total_ = 0;
  SteadyClock::time_point begun_;
  SteadyClock::time_point shown_;
};

}  // namespace sava::cli
