// BloomFilter<T, Bits>: the Bloom filter of document S2 as a value: a fixed number of bits, and
// three of them for each item, chosen by one hash h of std::hash<T>: h % Bits, (h >> 16) % Bits and
// (h >> 32) % Bits. Its text is that of the document's bloom.txt: all bits as characters, the
// highest first, so that files of the document's program are read and written.
//
//   sava::BloomFilter<std::string> filter;       // 1000 bits
//   filter.Insert("duffy@acme.com");
//   filter.IsElement("roger@acme.com");          // false, or by chance true
//   std::ofstream("bloom.txt") << filter;
//
// Header only. std::hash<T> may differ between standard libraries, and with it the meaning of the
// text. Insert and IsElement are O(1). Thread safety: as a std::bitset: one thread at a time for
// each object; const functions of one object may run at the same time.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <istream>
#include <ostream>

namespace sava {

template <typename T, std::size_t Bits = 1000>
class BloomFilter {
  static_assert(Bits > 0, "a Bloom filter has at least one bit");

 public:
  static constexpr std::size_t kBits = Bits;
  static constexpr std::size_t kHashes = 3;

  // Where an item's bits are; some may be equal.
  static std::array<std::size_t, kHashes> PositionsOf(const T& item) {
    const std::uint64_t hash = std::hash<T>{}(item);
    return {static_cast<std::size_t>(hash % Bits), static_cast<std::size_t>((hash >> 16) % Bits),
            static_cast<std::size_t>((hash >> 32) % Bits)};
  }

  // As new: no bit is set.
  void Create() { bits_.reset(); }
  void Insert(const T& item) {
    for (const std::size_t position : PositionsOf(item)) bits_.set(position);
  }
  // False: it was certainly not inserted. True: it may have been.
  bool IsElement(const T& item) const {
    for (const std::size_t position : PositionsOf(item)) {
      if (!bits_.test(position)) return false;
    }
    return true;
  }

  const std::bitset<Bits>& bits() const { return bits_; }

  friend bool operator==(const BloomFilter& a, const BloomFilter& b) { return a.bits_ == b.bits_; }
  friend std::ostream& operator<<(std::ostream& out, const BloomFilter& filter) {
    return out << filter.bits_;
  }
  // Fails, as std::bitset does, when no bit stands there; fewer than Bits are the lowest ones.
  friend std::istream& operator>>(std::istream& in, BloomFilter& filter) {
    return in >> filter.bits_;
  }

 private:
  std::bitset<Bits> bits_;
};

}  // namespace sava
