// The known word that a misspelt one probably meant.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace sava::base {

// How many letters have to be added, removed or replaced to turn one word into the other.
size_t EditDistance(std::string_view a, std::string_view b);

// The word of `known` that is nearest to `word`, whatever its case; empty if none is close: at most
// two changes, and fewer for short words. REQUIRES: `known` is in lower case.
std::string_view NearestWord(std::string_view word, std::span<const std::string_view> known);

}  // namespace sava::base
