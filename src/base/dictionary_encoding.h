// Dictionary encoding of a list of byte strings: every distinct value once, in order of first
// appearance, then one small number per element instead of the value. Worth it where values are
// long and repeat. docs/formats/encodings.md describes the bytes.
//
//   varint count · varint distinct · distinct times (varint length, bytes) · ids
//
// ids are `count` numbers below `distinct` in the hybrid of base/bit_packing.h, with the width that
// distinct - 1 needs; so one distinct value costs a single header, and no value at all is 00 00.
//
// No thread safety of its own: an encoder and a decoded list belong to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sava::base {

// Finds the distinct values and says what encoding them would cost, so that the caller chooses.
class DictionaryEncoder {
 public:
  // The bytes the views show must outlive the encoder. REQUIRES: fewer than 2^32 values.
  explicit DictionaryEncoder(std::span<const std::string_view> values);

  size_t encoded_size() const { return encoded_size_; }
  // What the values take one after the other, each behind its length (AppendPlainStrings).
  size_t plain_size() const { return plain_size_; }
  bool pays() const { return encoded_size_ < plain_size_; }

  std::span<const std::string_view> distinct() const { return distinct_; }

  void AppendTo(std::string* out) const;

 private:
  size_t count_;
  std::vector<std::string_view> distinct_;
  std::string ids_;  // as they will stand in the output
  size_t plain_size_ = 0;
  size_t encoded_size_ = 0;
};

// What a decoder may give back at most: values, and bytes of all values together, repeated ones
// counted each time (what copying them out would take).
struct DictionaryLimits {
  size_t max_values;
  size_t max_bytes;
};

struct DictionaryValues {
  std::vector<std::string_view> distinct;  // views into what was decoded
  std::vector<uint32_t> ids;

  size_t size() const { return ids.size(); }
  std::string_view operator[](size_t i) const { return distinct[ids[i]]; }
};

// Reads at *p, moves *p behind the last byte. Nothing, with *p as it was, when the bytes are cut
// off, pass a limit, or are not what an encoder writes: a value twice, one that is never used, or
// ids that are not in order of first appearance. Counts are checked before memory is reserved.
std::optional<DictionaryValues> DecodeDictionary(const uint8_t** p, const uint8_t* end,
                                                 const DictionaryLimits& limits);

// The plain form to choose when a dictionary does not pay: varint count, then (varint length,
// bytes) each.
void AppendPlainStrings(std::string* out, std::span<const std::string_view> values);
std::optional<std::vector<std::string_view>> DecodePlainStrings(const uint8_t** p,
                                                                const uint8_t* end,
                                                                const DictionaryLimits& limits);

}  // namespace sava::base
