// A small graph of latency samples in characters, four rows high, and how long ago things were.
// Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "engine/observe.h"

namespace sava::admin {

// "command - high 40 ms, low 20 ms (all time high 40 ms)", a rule, and below it a column for each
// sample, oldest left, with its age written downwards.
std::string LatencyGraph(const engine::LatencyMonitor::Series& series, int64_t now_seconds);

// "5s", "3m", "2h", "7d".
std::string ShortAge(int64_t seconds);

}  // namespace sava::admin
