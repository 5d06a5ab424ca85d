#include "types/filters/bloom_formulas.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sava::types {

namespace {

constexpr double kLn2 = std::numbers::ln2;

double Power(double base, uint32_t exponent) {
  double result = 1;
  for (; exponent != 0; exponent /= 2, base *= base) {
    if (exponent % 2 != 0) result *= base;
  }
  return result;
}

// The chance that an item finds its bits set in a block that `items` others have set bits in. Two
// bits of one word may be the same one, and where they are not, that both are set is a little more
// likely than the square: how many bits of a word are set varies.
double RateInBlock(const BlockShape& shape, double empty, double empty_pair) {
  const double full = 1 - empty;
  if (shape.per_word == 1) return Power(full, shape.words);
  const double both = 1 - 2 * empty + empty_pair;
  return Power(full / 64 + both * 63 / 64, shape.words);
}

}  // namespace

double ClassicRate(double m, double n, double k) { return std::pow(-std::expm1(-k * n / m), k); }

double ClassicRateExactly(double m, double n, double k) {
  return std::pow(-std::expm1(k * n * std::log1p(-1 / m)), k);
}

uint32_t ClassicHashes(double m, double n) {
  return static_cast<uint32_t>(std::clamp(std::round(m / n * kLn2), 1.0, 255.0));
}

double ClassicBits(double n, double p) { return std::ceil(-n * std::log(p) / (kLn2 * kLn2)); }

double BlockedRate(const BlockShape& shape, double blocks, double n) {
  const double mean = n / blocks;
  // Far from the mean nothing matters: twelve deviations to either side.
  const double spread = 12 * std::sqrt(mean) + 12;
  const double first = std::max(0.0, std::floor(mean - spread));
  const double last = std::ceil(mean + spread);
  // That one bit, and that two bits of a word, are still empty after one more hash.
  const double empty_step = Power(63.0 / 64, shape.per_word);
  const double pair_step = Power(62.0 / 64, shape.per_word);
  double chance = std::exp(first * std::log(mean) - mean - std::lgamma(first + 1));
  double empty = std::pow(empty_step, first);
  double pair = std::pow(pair_step, first);
  double rate = 0;
  for (double items = first; items <= last; ++items) {
    rate += chance * RateInBlock(shape, empty, pair);
    chance *= mean / (items + 1);
    empty *= empty_step;
    pair *= pair_step;
  }
  return rate;
}

BlockedSize SizeBlocked(double n, double p) {
  constexpr double kMostBits = 512;  // per item
  BlockedSize best{kBlockShapes[0], 0};
  for (const BlockShape& shape : kBlockShapes) {
    const double block = shape.words * 64.0;
    uint64_t low = 0;
    auto high = static_cast<uint64_t>(std::ceil(n * kMostBits / block));
    while (low + 1 < high) {
      const uint64_t middle = low + (high - low) / 2;
      (BlockedRate(shape, static_cast<double>(middle), n) <= p ? high : low) = middle;
    }
    const BlockedSize size{shape, high};
    if (best.blocks == 0 || size.bits() < best.bits()) best = size;
  }
  return best;
}

}  // namespace sava::types
