// Dictionary encoding of a list of byte strings: every distinct value once, then one number in the
// fewest bits for each element. Worth it where values are long and repeat.
//
//   const std::vector<std::string_view> values = {"open", "open", "closed"};
//   const std::string bytes = sava::EncodeDictionary(values);
//   sava::DecodeDictionary(bytes)->at(2);   // "closed"
//
// Cost: O(bytes). No state; safe from any thread.
#pragma once

#include <sava/export.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sava {

// REQUIRES: fewer than 2^32 values.
SAVA_EXPORT std::string EncodeDictionary(std::span<const std::string_view> values);
// What EncodeDictionary would give, in bytes, and what the values take one after the other.
struct DictionarySizes {
  std::size_t encoded;
  std::size_t plain;
};
SAVA_EXPORT DictionarySizes MeasureDictionary(std::span<const std::string_view> values);
// The values, which point into `bytes`. Nothing when the bytes are not exactly what
// EncodeDictionary writes, or stand for more than `max_values` or for values of more than
// `max_bytes` together.
SAVA_EXPORT std::optional<std::vector<std::string_view>> DecodeDictionary(
    std::string_view bytes, std::size_t max_values = std::size_t{1} << 24,
    std::size_t max_bytes = std::size_t{1} << 30);

}  // namespace sava
