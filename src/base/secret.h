// Comparing secrets without telling how much of a guess was right.
#pragma once

#include <cstddef>
#include <string_view>

namespace sava::base {

// Takes the same time wherever the texts differ.
inline bool SameSecret(std::string_view given, std::string_view wanted) {
  unsigned char difference = given.size() == wanted.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    const char expected = i < wanted.size() ? wanted[i] : '\0';
    difference = static_cast<unsigned char>(difference | (given[i] ^ expected));
  }
  return difference == 0;
}

}  // namespace sava::base
