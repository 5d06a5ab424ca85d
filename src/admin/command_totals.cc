#include "admin/command_totals.h"

#include <cmath>

namespace sava::admin {

void AddHistogram(const engine::Histogram& histogram, CommandTotals* totals) {
  for (size_t i = 0; i < engine::Histogram::kBuckets; ++i) {
    const uint64_t count = histogram.at(i);
    totals->buckets[i] += count;
    totals->samples += count;
  }
}

CommandTotals TotalsOf(engine::Engine& engine, const commands::Command& command) {
  CommandTotals totals;
  uint64_t nanos = 0;
  engine.ForEachLane([&](const engine::Lane& lane) {
    const engine::CommandStats& stats = lane.stats.by_command[static_cast<size_t>(command.id)];
    totals.calls += stats.calls.get();
    nanos += stats.nanos.get();
    totals.rejected += stats.rejected.get();
    totals.failed += stats.failed.get();
    const engine::Histogram* histogram = stats.histogram.load(std::memory_order_acquire);
    if (histogram != nullptr) AddHistogram(*histogram, &totals);
  });
  totals.micros = nanos / 1000;
  return totals;
}

double CommandTotals::Percentile(double percent) const {
  if (samples == 0) return 0;
  const auto wanted =
      static_cast<uint64_t>(std::ceil(percent / 100 * static_cast<double>(samples)));
  uint64_t seen = 0;
  for (size_t i = 0; i < buckets.size(); ++i) {
    seen += buckets[i];
    if (seen > 0 && seen >= wanted) {
      return static_cast<double>(engine::Histogram::UpperBound(i)) / 1000;
    }
  }
  return 0;
}

std::vector<std::pair<int64_t, int64_t>> CommandTotals::Cumulative() const {
  std::vector<std::pair<int64_t, int64_t>> steps;
  uint64_t seen = 0;
  size_t i = 0;
  for (uint64_t bound = 1024; seen < samples; bound *= 2) {
    const uint64_t before = seen;
    while (i < buckets.size() && engine::Histogram::UpperBound(i) <= bound) seen += buckets[i++];
    if (seen == before) continue;
    // Named by the largest duration that a histogram of two digits does not tell from the bound.
    const uint64_t named = bound + bound / 128 - 1;
    steps.emplace_back(static_cast<int64_t>(named / 1000), static_cast<int64_t>(seen));
  }
  return steps;
}

}  // namespace sava::admin
