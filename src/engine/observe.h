// Records of slow and failed work: the slow log, latency events, error counts. Each has
// one small lock of its own (leaf locks), taken only when there is something to record.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "commands/spec.h"

namespace sava::engine {

struct SlowEntry {
  int64_t id;
  int64_t unix_time;  // seconds
  int64_t micros;
  std::vector<std::string> args;
  std::string peer;
  std::string client_name;
};

class SlowLog {
 public:
  // Long arguments and long lists are shortened as Redis does (32 arguments, 128 bytes each).
  void Add(int64_t unix_time, int64_t micros, commands::Args args, std::string_view peer,
           std::string_view client_name, size_t max_length);
  std::vector<SlowEntry> Newest(int64_t count) const;  // count < 0: all
  size_t size() const;
  void Reset();

 private:
  mutable std::mutex mutex_;
  std::deque<SlowEntry> entries_;  // newest first; guarded by mutex_
  int64_t next_id_ = 0;
};

struct LatencySample {
  int64_t unix_time;
  uint32_t millis;
};

class LatencyMonitor {
 public:
  // Records when millis >= threshold > 0; one sample a second is kept, the worst.
  void Add(std::string_view event, int64_t unix_time, int64_t millis, int64_t threshold);

  struct Series {
    std::string event;
    std::vector<LatencySample> samples;  // oldest first, at most 160
    uint32_t max = 0;
  };
  std::vector<Series> All() const;
  bool Get(std::string_view event, Series* out) const;
  // Empty: all. Returns how many series were dropped.
  int64_t Reset(const std::vector<std::string>& events);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Series, std::less<>> series_;  // guarded by mutex_
};

// Error replies by their first word (INFO errorstats).
class ErrorStats {
 public:
  void Add(std::string_view code);
  std::vector<std::pair<std::string, uint64_t>> All() const;
  void Reset();

 private:
  mutable std::mutex mutex_;
  std::map<std::string, uint64_t, std::less<>> counts_;  // guarded by mutex_
};

}  // namespace sava::engine
