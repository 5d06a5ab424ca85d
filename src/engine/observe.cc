#include "engine/observe.h"

#include <algorithm>

#include "base/if_memory.h"

namespace sava::engine {

namespace {

// What the slow log keeps of a command: as many arguments, of each as many bytes.
constexpr size_t kSlowArgs = 32;
constexpr size_t kSlowBytes = 128;
constexpr size_t kLatencySamples = 160;

std::string Shortened(std::string_view arg) {
  if (arg.size() <= kSlowBytes) return std::string(arg);
  std::string text(arg.substr(0, kSlowBytes));
  text += "... (" + std::to_string(arg.size() - kSlowBytes) + " more bytes)";
  return text;
}

}  // namespace

void SlowLog::Add(int64_t unix_time, int64_t micros, commands::Args args, std::string_view peer,
                  std::string_view client_name, size_t max_length) {
  SlowEntry entry{.id = 0,
                  .unix_time = unix_time,
                  .micros = micros,
                  .args = {},
                  .peer = std::string(peer),
                  .client_name = std::string(client_name)};
  const bool too_many = args.size() > kSlowArgs;
  const size_t kept = too_many ? kSlowArgs - 1 : args.size();
  entry.args.reserve(std::min(args.size(), kSlowArgs));
  for (size_t i = 0; i < kept; ++i) entry.args.push_back(Shortened(args[i]));
  if (too_many) {
    entry.args.push_back("... (" + std::to_string(args.size() - kept) + " more arguments)");
  }
  const std::lock_guard lock(mutex_);
  entry.id = next_id_++;
  entries_.push_front(std::move(entry));
  while (entries_.size() > max_length) entries_.pop_back();
}

std::vector<SlowEntry> SlowLog::Newest(int64_t count) const {
  const std::lock_guard lock(mutex_);
  const size_t n =
      count < 0 ? entries_.size() : std::min(entries_.size(), static_cast<size_t>(count));
  return {entries_.begin(), entries_.begin() + static_cast<ptrdiff_t>(n)};
}

size_t SlowLog::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

void SlowLog::Reset() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
}

void LatencyMonitor::Add(std::string_view event, int64_t unix_time, int64_t millis,
                         int64_t threshold) {
  if (threshold <= 0 || millis < threshold) return;
  const auto latency = static_cast<uint32_t>(std::min<int64_t>(millis, UINT32_MAX));
  const std::lock_guard lock(mutex_);
  auto it = series_.find(event);
  if (it == series_.end()) {
    it = series_.emplace(event, Series{.event = std::string(event), .samples = {}}).first;
  }
  Series& series = it->second;
  series.max = std::max(series.max, latency);
  if (!series.samples.empty() && series.samples.back().unix_time == unix_time) {
    uint32_t& worst = series.samples.back().millis;
    worst = std::max(worst, latency);
    return;
  }
  if (series.samples.size() == kLatencySamples) series.samples.erase(series.samples.begin());
  series.samples.push_back({unix_time, latency});
}

std::vector<LatencyMonitor::Series> LatencyMonitor::All() const {
  const std::lock_guard lock(mutex_);
  std::vector<Series> all;
  all.reserve(series_.size());
  for (const auto& [event, series] : series_) all.push_back(series);
  return all;
}

bool LatencyMonitor::Get(std::string_view event, Series* out) const {
  const std::lock_guard lock(mutex_);
  const auto it = series_.find(event);
  if (it == series_.end()) return false;
  *out = it->second;
  return true;
}

int64_t LatencyMonitor::Reset(const std::vector<std::string>& events) {
  const std::lock_guard lock(mutex_);
  if (events.empty()) {
    const auto dropped = static_cast<int64_t>(series_.size());
    series_.clear();
    return dropped;
  }
  int64_t dropped = 0;
  for (const std::string& event : events) dropped += static_cast<int64_t>(series_.erase(event));
  return dropped;
}

void ErrorStats::Add(std::string_view code) {
  const std::lock_guard lock(mutex_);
  if (const auto it = counts_.find(code); it != counts_.end()) {
    ++it->second;
  } else {
    base::IfMemory([&] { counts_.emplace(code, 1); });
  }
}

std::vector<std::pair<std::string, uint64_t>> ErrorStats::All() const {
  const std::lock_guard lock(mutex_);
  return {counts_.begin(), counts_.end()};
}

void ErrorStats::Reset() {
  const std::lock_guard lock(mutex_);
  counts_.clear();
}

}  // namespace sava::engine
