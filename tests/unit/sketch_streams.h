// Streams for the tests of sketches: items by Zipf's law, with their true counts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.h"

namespace sava::types {

class ZipfStream {
 public:
  // Item i of `items` has a probability in proportion to 1 / (i + 1)^exponent.
  ZipfStream(size_t items, double exponent, uint64_t seed) : counts_(items), rng_(seed) {
    double sum = 0;
    for (size_t i = 0; i < items; ++i) {
      sum += std::pow(static_cast<double>(i + 1), -exponent);
      upto_.push_back(sum);
    }
  }

  // The number of the next item, counted.
  size_t Next() {
    const double at = rng_.Unit() * upto_.back();
    const auto found = std::upper_bound(upto_.begin(), upto_.end(), at);
    const auto item = std::min(static_cast<size_t>(found - upto_.begin()), upto_.size() - 1);
    ++counts_[item];
    ++total_;
    return item;
  }

  static std::string Name(size_t item) { return "item:" + std::to_string(item); }
  size_t items() const { return counts_.size(); }
  uint64_t count(size_t item) const { return counts_[item]; }
  uint64_t total() const { return total_; }

 private:
  std::vector<double> upto_;
  std::vector<uint64_t> counts_;
  uint64_t total_ = 0;
  base::Rng rng_;
};

}  // namespace sava::types
