// The filter of document S2: m bits as characters 0 and 1, the highest first, as a std::bitset
// writes itself, and three positions of one std::hash h: h mod m, (h >> 16) mod m, (h >> 32) mod m.
//
// No state; a filter belongs to one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cli/bloom_file.h"

namespace sava::cli {

inline constexpr uint32_t kTextHashes = 3;
// A file of 1 GB.
inline constexpr uint64_t kMostTextBits = uint64_t{1} << 30;

// The positions for the hash h. REQUIRES: bits > 0.
std::array<uint64_t, kTextHashes> TextPositions(uint64_t h, uint64_t bits);

base::Result<std::unique_ptr<FileFilter>> MakeTextFilter(uint64_t bits);
// Whether a file may be in text form, by how it begins.
bool LooksLikeTextFilter(std::string_view file);
// The file's characters are its bits; one line end behind them is passed over.
base::Result<std::unique_ptr<FileFilter>> ParseTextFilter(std::string_view file);

}  // namespace sava::cli
