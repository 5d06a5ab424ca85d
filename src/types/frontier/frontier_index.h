// What a Frontier finds hosts by: the set of those that may be served, and the one among them with
// the highest number. Both by host number, both grow with the hosts. Thread safety: none.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sava::types {

inline constexpr uint32_t kNoHost = UINT32_MAX;

// A set of numbers, with one summary bit per 64 of them, and so on upwards.
class HostBitmap {
 public:
  bool Has(uint32_t host) const {
    return !levels_.empty() && host / 64 < levels_[0].size() &&
           (levels_[0][host / 64] >> (host % 64) & 1) != 0;
  }

  void Set(uint32_t host) {
    Grow(host);
    size_t at = host;
    for (auto& level : levels_) {
      uint64_t& word = level[at / 64];
      const bool was_empty = word == 0;
      word |= uint64_t{1} << (at % 64);
      if (!was_empty) break;
      at /= 64;
    }
  }

  // Takes the memory that Set needs.
  void Reserve(uint32_t host) { Grow(host); }

  // REQUIRES: Has(host).
  void Reset(uint32_t host) {
    size_t at = host;
    for (auto& level : levels_) {
      uint64_t& word = level[at / 64];
      word &= ~(uint64_t{1} << (at % 64));
      if (word != 0) break;
      at /= 64;
    }
  }

  // The lowest one that is not below `from`; kNoHost when there is none.
  uint32_t From(uint32_t from) const {
    size_t at = from;
    for (size_t level = 0; level < levels_.size(); ++level) {
      const auto& words = levels_[level];
      if (at / 64 >= words.size()) return kNoHost;
      const uint64_t rest = words[at / 64] & (~uint64_t{0} << (at % 64));
      if (rest != 0) return Descend(level, at / 64 * 64 + Lowest(rest));
      at = at / 64 + 1;
    }
    return kNoHost;
  }

  // Where a host's bit stands.
  const uint64_t* Word(uint32_t host) const { return &levels_[0][host / 64]; }
  void Clear() { levels_.clear(); }
  size_t bytes() const {
    size_t bytes = 0;
    for (const auto& level : levels_) bytes += level.capacity() * sizeof(uint64_t);
    return bytes;
  }

 private:
  static size_t Lowest(uint64_t word) { return static_cast<size_t>(std::countr_zero(word)); }

  uint32_t Descend(size_t level, size_t at) const {
    while (level-- > 0) at = at * 64 + Lowest(levels_[level][at]);
    return static_cast<uint32_t>(at);
  }

  void Grow(uint32_t host) {
    size_t words = size_t{host} / 64 + 1;
    if (!levels_.empty() && words <= levels_[0].size()) return;
    for (size_t level = 0;; ++level) {
      if (level == levels_.size()) {
        levels_.emplace_back(words);
        // A new level on top knows what is below it.
        for (size_t i = 0; level != 0 && i < levels_[level - 1].size(); ++i) {
          if (levels_[level - 1][i] != 0) levels_[level][i / 64] |= uint64_t{1} << (i % 64);
        }
      } else if (levels_[level].size() < words) {
        levels_[level].resize(words);
      }
      if (words == 1) break;
      words = (words + 63) / 64;
    }
  }

  std::vector<std::vector<uint64_t>> levels_;  // the last has one word
};

// A number per host; finds the highest, of equal ones that of the lowest host.
class HostMaximum {
 public:
  static constexpr int64_t kNothing = -1;

  // `value` is kNothing or more, and fits in 32 bits.
  void Set(uint32_t host, int64_t value) {
    Grow(host);
    size_t at = leaves_ + host;
    nodes_[at] = static_cast<uint32_t>(value + 1);
    for (at /= 2; at != 0; at /= 2) {
      const uint32_t higher = std::max(nodes_[at * 2], nodes_[at * 2 + 1]);
      if (nodes_[at] == higher) break;
      nodes_[at] = higher;
    }
  }

  // Takes the memory that Set needs.
  void Reserve(uint32_t host) { Grow(host); }

  uint32_t Top() const {
    if (nodes_.empty() || nodes_[1] == 0) return kNoHost;
    size_t at = 1;
    while (at < leaves_) at = nodes_[at * 2] >= nodes_[at * 2 + 1] ? at * 2 : at * 2 + 1;
    return static_cast<uint32_t>(at - leaves_);
  }

  size_t bytes() const { return nodes_.capacity() * sizeof(uint32_t); }

 private:
  void Grow(uint32_t host) {
    if (host < leaves_) return;
    const size_t wider = std::bit_ceil(std::max<size_t>(size_t{host} + 1, 64));
    std::vector<uint32_t> nodes(wider * 2);
    for (size_t i = 0; i < leaves_; ++i) nodes[wider + i] = nodes_[leaves_ + i];
    for (size_t i = wider; i-- > 1;) nodes[i] = std::max(nodes[i * 2], nodes[i * 2 + 1]);
    nodes_ = std::move(nodes);
    leaves_ = wider;
  }

  std::vector<uint32_t> nodes_;  // a tree: the children of i are 2i and 2i + 1
  size_t leaves_ = 0;
};

}  // namespace sava::types
