// StackDistance: how many other addresses were touched since an address was touched last, as the
// document's chapter 5.2.2 defines it.
//
// Every address has a mark at the time of its last touch; the distance is the number of marks
// behind it, which a Fenwick tree counts in O(log n). When the times run out they are numbered
// anew, in the same order: memory is O(addresses), not O(touches). Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace sava::cli {

class StackDistance {
 public:
  static constexpr uint64_t kFirst = UINT64_MAX;

  // kFirst when the address was not touched before.
  uint64_t Touch(uint64_t address) {
    if (now_ + 1 >= tree_.size()) Renumber(0);
    const uint32_t time = ++now_;
    address_at_[time] = address;
    const auto [place, first] = last_.try_emplace(address, time);
    uint64_t distance = kFirst;
    if (!first) {
      distance = last_.size() - Marks(place->second);
      Mark(place->second, -1);
      place->second = time;
    }
    Mark(time, 1);
    return distance;
  }

  // Forgets every address whose Hash has a bit of `mask`.
  void Keep(uint64_t mask) { Renumber(mask); }

  // Of addresses that are remembered.
  size_t size() const { return last_.size(); }

  static uint64_t Hash(uint64_t address) {
    address = (address ^ (address >> 31)) * 0x9e3779b97f4a7c15ULL;
    address = (address ^ (address >> 29)) * 0xbf58476d1ce4e5b9ULL;
    return address ^ (address >> 32);
  }

 private:
  // How many marks there are at times up to this one.
  uint64_t Marks(uint32_t time) const {
    uint64_t sum = 0;
    for (uint32_t i = time; i > 0; i &= i - 1) sum += tree_[i];
    return sum;
  }
  void Mark(uint32_t time, int by) {
    for (size_t i = time; i < tree_.size(); i += i & (0 - i)) {
      tree_[i] += static_cast<uint32_t>(by);
    }
  }
  void Renumber(uint64_t mask) {
    constexpr size_t kLeast = 64;
    uint32_t kept = 0;
    for (uint32_t time = 1; time <= now_; ++time) {
      const uint64_t address = address_at_[time];
      const auto place = last_.find(address);
      if (place == last_.end() || place->second != time) continue;
      if ((Hash(address) & mask) != 0) {
        last_.erase(place);
        continue;
      }
      address_at_[++kept] = address;
      place->second = kept;
    }
    now_ = kept;
    const size_t size = 2 * size_t{kept} + kLeast;
    address_at_.resize(size);
    tree_.assign(size, 0);
    for (size_t i = 1; i < size; ++i) {
      if (i <= kept) ++tree_[i];
      const size_t parent = i + (i & (0 - i));
      if (parent < size) tree_[parent] += tree_[i];
    }
  }

  std::unordered_map<uint64_t, uint32_t> last_;
  std::vector<uint64_t> address_at_;  // by time; those with a mark are in last_
  std::vector<uint32_t> tree_;        // of marks, from 1
  uint32_t now_ = 0;
};

}  // namespace sava::cli
