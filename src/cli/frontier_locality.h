// What an access log shows of locality, as the document's chapter 5.2: access maps and stack
// distances, by structure and phase.
//
// The log is read three times and never held in memory: first how much each structure is used, then
// which pages it touches and its stack distances, then its map, which is a grid of fixed size. When
// more than kMostAddresses addresses are remembered for the distances, only those whose hash has
// one more zero bit are followed, and every one of them stands for twice as many (so that memory is
// bounded, and figures of large logs are estimates; small ones are exact).
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace sava::cli {

struct LocalityOptions {
  std::string log;
  std::string directory;
  size_t structures = 64;  // the most used ones are drawn
};

inline constexpr size_t kMostAddresses = size_t{4} << 20;
inline constexpr size_t kMostInsertions = 1000;

// Writes into the directory, which it makes if need be:
//   map-ID.svg             a structure's accesses: time and address, reads and writes
//   distance-PHASE-ID.svg  how often which stack distance occurred, where an address was touched
//                          again
//   insertions.csv         into which host's list each URL of ADD_URLS went: the first
//   kMostInsertions summary.csv            the figures of all of them index.html             all of
//   it on one page
base::Status DrawLocality(const LocalityOptions& options);

}  // namespace sava::cli
