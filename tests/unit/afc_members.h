// Members and histories for the tests of counters: names of every kind, skewed choices, and the
// whole content of a counter.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "afc_oracle.h"
#include "types/counters/afc.h"

namespace sava::types {

using MemberName = std::string (*)(int i);

// Scrambles a number, so that names that differ little do not follow each other.
inline uint64_t Scrambled(int i, uint64_t salt) {
  uint64_t x = static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15ULL + salt;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

inline std::string UuidName(int i) {
  const uint64_t a = Scrambled(i, 1);
  const uint64_t b = Scrambled(i, 2);
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", a >> 32, (a >> 16) & 0xffff, a & 0xffff,
                     b >> 48, b & 0xffffffffffff);
}

inline std::string WordName(int i) { return "word" + std::to_string(i); }

// 16 bytes of anything.
inline std::string BinaryName(int i) {
  const uint64_t words[] = {Scrambled(i, 3), Scrambled(i, 4)};
  std::string bytes(sizeof words, '\0');
  memcpy(bytes.data(), words, sizeof words);
  return bytes;
}

// All kinds beside each other, short, long, and empty.
inline std::string MixedName(int i) {
  switch (i % 7) {
    case 0:
      return i == 0 ? "" : UuidName(i);
    case 1:
      return BinaryName(i);
    case 2:
      return std::string(static_cast<size_t>(i % 300), 'x') + std::to_string(i);
    case 3:
      return i % 5 == 3 ? std::string(1100, 'y') + std::to_string(i) : std::to_string(i);
    default:
      return WordName(i);
  }
}

inline constexpr MemberName kMemberKinds[] = {UuidName, WordName, BinaryName, MixedName};

// 0 … members-1, the small ones far more often.
inline int Skewed(std::mt19937& random, int members) {
  const double u = std::uniform_real_distribution<double>(0, 1)(random);
  if (random() % 4 == 0) return static_cast<int>(u * members);
  return static_cast<int>(std::pow(members, u)) - 1;
}

// Zipf's law over 0 … members-1.
class Zipf {
 public:
  Zipf(int members, double exponent) {
    double sum = 0;
    for (int i = 1; i <= members; ++i) sums_.push_back(sum += std::pow(i, -exponent));
  }
  int Draw(std::mt19937& random) const {
    const double u = std::uniform_real_distribution<double>(0, sums_.back())(random);
    return static_cast<int>(std::lower_bound(sums_.begin(), sums_.end(), u) - sums_.begin());
  }

 private:
  std::vector<double> sums_;
};

inline Counted All(const Afc& afc, int64_t now_ms = 1'700'000'000'000) {
  Counted all;
  afc.Top(SIZE_MAX, now_ms,
          [&all](std::string_view member, uint64_t count) { all.emplace_back(member, count); });
  return all;
}

}  // namespace sava::types
