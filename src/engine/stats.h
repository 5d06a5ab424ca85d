// Counters a lane keeps without sharing: one writer each, readable by anyone at any time. INFO adds
// the lanes up.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace sava::engine {

// Written by one thread, read by all.
class Counter {
 public:
  void Add(uint64_t n = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void Max(uint64_t n) {
    if (n > get()) value_.store(n, std::memory_order_relaxed);
  }
  void Reset() { value_.store(0, std::memory_order_relaxed); }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// Durations in nanoseconds, four buckets to the octave (error below 25 %).
class Histogram {
 public:
  static constexpr size_t kBuckets = 160;

  static size_t BucketOf(uint64_t nanos) {
    if (nanos < 4) return static_cast<size_t>(nanos);
    const auto octave = static_cast<size_t>(std::bit_width(nanos)) - 1;
    const size_t index = octave * 4 + ((nanos >> (octave - 2)) & 3) - 4;
    return index < kBuckets ? index : kBuckets - 1;
  }
  // The largest duration that falls into the bucket.
  static uint64_t UpperBound(size_t bucket) {
    if (bucket < 4) return bucket;
    const size_t octave = bucket / 4 + 1;
    const size_t quarter = bucket % 4;
    return ((4 + quarter + 1) << (octave - 2)) - 1;
  }

  void Record(uint64_t nanos) { buckets_[BucketOf(nanos)].Add(); }
  uint64_t at(size_t bucket) const { return buckets_[bucket].get(); }
  void Reset() {
    for (Counter& bucket : buckets_) bucket.Reset();
  }

 private:
  std::array<Counter, kBuckets> buckets_;
};

struct CommandStats {
  Counter calls;
  Counter nanos;
  Counter rejected;
  Counter failed;
  // Made at the first call by its lane.
  std::atomic<Histogram*> histogram{nullptr};

  ~CommandStats() { delete histogram.load(); }
  // Without memory for a histogram it is not noted.
  void Record(uint64_t of_nanos) {
    Histogram* made = histogram.load(std::memory_order_relaxed);
    if (made == nullptr) {
      made = new (std::nothrow) Histogram;
      if (made == nullptr) return;
      histogram.store(made, std::memory_order_release);
    }
    made->Record(of_nanos);
  }
};

// The largest value noted in the last eight seconds. One thread notes, others read while it
// does nothing.
class RecentMax {
 public:
  void Note(int64_t second, uint64_t value) {
    Slot& slot = slots_[static_cast<size_t>(second) % slots_.size()];
    if (slot.second != second) slot = {second, 0};
    slot.value = slot.value < value ? value : slot.value;
  }
  uint64_t Get(int64_t second) const {
    uint64_t most = 0;
    for (const Slot& slot : slots_) {
      const bool recent = slot.second > second - static_cast<int64_t>(slots_.size());
      if (recent && slot.value > most) most = slot.value;
    }
    return most;
  }

 private:
  struct Slot {
    int64_t second = INT64_MIN;
    uint64_t value = 0;
  };
  std::array<Slot, 8> slots_;
};

struct KeyStats {
  Counter hits;
  Counter misses;
  Counter expired;
  Counter expired_parts;  // fields of hashes
  Counter evicted;
  Counter dirty;  // changes since start: not one that CONFIG RESETSTAT resets

  std::array<Counter*, 5> resettable() {
    return {&hits, &misses, &expired, &expired_parts, &evicted};
  }
};

struct ClientStats {
  Counter connections;
  Counter rejected;
  Counter evicted;
  Counter over_output_limit;  // closed for it
  Counter over_query_limit;   // the same

  std::array<Counter*, 5> resettable() {
    return {&connections, &rejected, &evicted, &over_output_limit, &over_query_limit};
  }
};

struct NetStats {
  Counter input;  // bytes
  Counter output;
  Counter reads;  // calls
  Counter writes;

  std::array<Counter*, 4> resettable() { return {&input, &output, &reads, &writes}; }
};

struct UpkeepStats {
  Counter compacted;
  Counter expire_cycles_capped;
  Counter expire_nanos;
  Counter eviction_stalls_nanos;

  std::array<Counter*, 4> resettable() {
    return {&compacted, &expire_cycles_capped, &expire_nanos, &eviction_stalls_nanos};
  }
};

// The time between two returns to epoll: what other connections of the loop had to wait.
struct RoundStats {
  Histogram nanos;
  Counter max_nanos;
  Counter over_5ms;
  Counter count;
  Counter busy_nanos;

  std::array<Counter*, 4> resettable() { return {&max_nanos, &over_5ms, &count, &busy_nanos}; }
};

struct LaneStats {
  explicit LaneStats(size_t command_count) : by_command(command_count) {}
  // All but `dirty`. REQUIRES: the gate is closed, or on the lane's thread.
  void Reset();

  Counter commands;
  Counter error_replies;
  Counter unexpected_errors;
  Counter published;
  Counter ratelimit_refused;
  Counter parked;
  KeyStats keys;
  ClientStats clients;
  NetStats net;
  UpkeepStats upkeep;
  RoundStats rounds;
  std::vector<CommandStats> by_command;  // by Command::id
};

}  // namespace sava::engine
