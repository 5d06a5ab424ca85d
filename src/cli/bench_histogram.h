// LatencyHistogram: how long many operations took, in a fixed 9 KB, exact to 3 %.
//
// Below 64 every value has its own bucket; above, each power of two is cut into 32 buckets of equal
// width. Values beyond 2^40 ns (18 minutes) are counted as that. Not thread safe: one per thread,
// merged at the end.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace sava::cli {

class LatencyHistogram {
 public:
  void Record(uint64_t nanos) { RecordMany(nanos, 1); }

  void RecordMany(uint64_t nanos, uint64_t times) {
    if (times == 0) return;
    counts_[BucketOf(std::min(nanos, kMax))] += times;
    count_ += times;
    sum_ += static_cast<double>(nanos) * static_cast<double>(times);
    max_ = std::max(max_, nanos);
  }

  void Merge(const LatencyHistogram& other) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    sum_ += other.sum_;
    max_ = std::max(max_, other.max_);
  }

  uint64_t count() const { return count_; }
  uint64_t max() const { return max_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

  // The value that `percent` of all are not above, rounded up to its bucket's end; 0 if empty.
  uint64_t Percentile(double percent) const {
    constexpr double kRounding = 1 - 1e-12;  // 99.9 % of 1,000 are 999, not a hair more
    const double wanted = percent / 100 * static_cast<double>(count_) * kRounding;
    uint64_t seen = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (counts_[i] > 0 && static_cast<double>(seen) >= wanted) {
        return std::min(BucketEnd(i), max_);
      }
    }
    return max_;
  }

 private:
  static constexpr unsigned kSubBits = 5;
  static constexpr unsigned kMaxBits = 40;
  static constexpr uint64_t kMax = (uint64_t{1} << kMaxBits) - 1;

  // 0 … 63 as they are; then 32 buckets for each width from 7 bits on.
  static size_t BucketOf(uint64_t value) {
    const unsigned width = static_cast<unsigned>(std::bit_width(value));
    if (width <= kSubBits + 1) return static_cast<size_t>(value);
    const unsigned shift = width - kSubBits - 1;
    return (size_t{shift} << kSubBits) + static_cast<size_t>(value >> shift);
  }
  // The largest value of a bucket.
  static uint64_t BucketEnd(size_t bucket) {
    if (bucket < (size_t{2} << kSubBits)) return bucket;
    const unsigned shift = static_cast<unsigned>(bucket >> kSubBits) - 1;
    const uint64_t start = (bucket & ((size_t{1} << kSubBits) - 1)) + (size_t{1} << kSubBits);
    return ((start + 1) << shift) - 1;
  }

  std::array<uint64_t, size_t{kMaxBits - kSubBits + 1} << kSubBits> counts_{};
  uint64_t count_ = 0;
  double sum_ = 0;
  uint64_t max_ = 0;
};

}  // namespace sava::cli
