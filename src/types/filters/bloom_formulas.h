// The formulas of the Bloom filter. Numbers 5, 6 and 9 are those of the document; the others say
// the same of filters whose bits stand in blocks of one cache line.
//
// No state; safe from any thread.
#pragma once

#include <cstdint>

namespace sava::types {

// (5) The share of other items that m bits answer for after n items with k hashes each.
double ClassicRate(double m, double n, double k);
// The same before its approximation by e: (1 - (1 - 1/m)^kn)^k. Figure 4 draws this one.
double ClassicRateExactly(double m, double n, double k);
// (6) The best number of hashes, at least 1.
uint32_t ClassicHashes(double m, double n);
// (9) How many bits n items need at rate p.
double ClassicBits(double n, double p);

// How the bits of a block are chosen: one or two in each of its words of 64 bits.
struct BlockShape {
  uint32_t words;
  uint32_t per_word;
  uint32_t hashes() const { return words * per_word; }
  bool operator==(const BlockShape&) const = default;
};
// The shapes there are, by number of hashes: 4, 8 and 16.
inline constexpr BlockShape kBlockShapes[] = {{4, 1}, {8, 1}, {8, 2}};

struct BlockedSize {
  BlockShape shape;
  uint64_t blocks;
  uint64_t bits() const { return blocks * shape.words * 64; }
};
// Items fall into blocks as by Poisson's law.
double BlockedRate(const BlockShape& shape, double blocks, double n);
// The fewest bits that keep n items at rate p.
BlockedSize SizeBlocked(double n, double p);

}  // namespace sava::types
