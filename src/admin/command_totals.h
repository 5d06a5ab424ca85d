// CommandTotals: what all threads together have measured of one command, for INFO's commandstats
// and latencystats and for LATENCY HISTOGRAM. Reads counters that others may be writing: every
// figure was true a moment ago.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace sava::admin {

struct CommandTotals {
  uint64_t calls = 0;
  uint64_t micros = 0;
  uint64_t rejected = 0;
  uint64_t failed = 0;
  std::array<uint64_t, engine::Histogram::kBuckets> buckets{};
  uint64_t samples = 0;  // sum of the buckets

  // The duration in microseconds that `percent` of the calls did not exceed.
  double Percentile(double percent) const;
  // Microseconds and how many calls took at most that long, by powers of two; only steps at which
  // the count rises.
  std::vector<std::pair<int64_t, int64_t>> Cumulative() const;
};

CommandTotals TotalsOf(engine::Engine& engine, const commands::Command& command);

// Adds a histogram's buckets.
void AddHistogram(const engine::Histogram& histogram, CommandTotals* totals);

}  // namespace sava::admin
