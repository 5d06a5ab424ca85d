// What must hold for any bytes given to the decoders of base/varint.h, base/bit_packing.h and
// base/dictionary_encoding.h. Shared by the fuzz target and by the unit test that replays its
// corpus. The first byte chooses what is decoded.

#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bit_packing.h"
#include "base/dictionary_encoding.h"
#include "base/varint.h"

namespace sava::base {

inline std::string CheckVarintBytes(std::span<const uint8_t> bytes) {
  const uint8_t* end = bytes.data() + bytes.size();
  uint64_t value = 0;
  const uint8_t* after = GetVarint(bytes.data(), end, &value);
  if (after == nullptr) return {};
  const size_t used = static_cast<size_t>(after - bytes.data());
  if (used == 0 || used > bytes.size() || used > kMaxVarintBytes) return "a length that cannot be";
  std::string again;
  AppendVarint(&again, value);
  if (again.size() != VarintSize(value) || again.size() > used) return "a longer varint";
  if (UnZigZag(ZigZag(static_cast<int64_t>(value))) != static_cast<int64_t>(value)) {
    return "zigzag lost a value";
  }
  return {};
}

inline std::string CheckHybridBytes(std::span<const uint8_t> bytes) {
  if (bytes.size() < 3) return {};
  const unsigned width = bytes[0];
  std::vector<uint64_t> values(bytes[1] | bytes[2] << 8);
  const uint8_t* end = bytes.data() + bytes.size();
  const uint8_t* after = DecodeHybrid(bytes.data() + 3, end, width, std::span<uint64_t>(values));
  if (after == nullptr) return {};
  if (after > end) return "read past the end";
  std::string again;
  EncodeHybrid(std::span<const uint64_t>(values), width, &again);
  if (again.size() > kMaxVarintBytes + PackedSize(values.size(), width))
    return "longer than packed";
  std::vector<uint64_t> copy(values.size());
  const auto* p = reinterpret_cast<const uint8_t*>(again.data());
  if (DecodeHybrid(p, p + again.size(), width, std::span<uint64_t>(copy)) != p + again.size()) {
    return "our own hybrid was refused";
  }
  return copy == values ? "" : "the hybrid changed a value";
}

inline std::string CheckDictionaryRoundTrip(std::span<const std::string_view> values) {
  const DictionaryEncoder encoder(values);
  std::string bytes;
  encoder.AppendTo(&bytes);
  if (bytes.size() != encoder.encoded_size()) return "a size that is not true";
  const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
  const uint8_t* end = p + bytes.size();
  const auto decoded = DecodeDictionary(&p, end, {values.size(), SIZE_MAX});
  if (!decoded) return "our own dictionary was refused";
  if (p != end || decoded->size() != values.size()) return "the dictionary lost values";
  for (size_t i = 0; i < values.size(); ++i) {
    if ((*decoded)[i] != values[i]) return "the dictionary changed a value";
  }
  return {};
}

inline std::string CheckDictionaryBytes(std::span<const uint8_t> bytes) {
  constexpr DictionaryLimits kLimits{4096, 1 << 16};
  const uint8_t* p = bytes.data();
  const auto decoded = DecodeDictionary(&p, bytes.data() + bytes.size(), kLimits);
  if (!decoded) return p == bytes.data() ? "" : "a refused dictionary moved the pointer";
  std::vector<std::string_view> values;
  size_t total = 0;
  for (size_t i = 0; i < decoded->size(); ++i) {
    values.push_back((*decoded)[i]);
    total += values.back().size();
  }
  if (values.size() > kLimits.max_values || total > kLimits.max_bytes) return "past a limit";
  return CheckDictionaryRoundTrip(values);
}

inline std::string CheckPlainBytes(std::span<const uint8_t> bytes) {
  const uint8_t* p = bytes.data();
  const auto decoded = DecodePlainStrings(&p, bytes.data() + bytes.size(), {4096, 1 << 16});
  return decoded ? CheckDictionaryRoundTrip(*decoded) : "";
}

// Empty if all is well, otherwise what went wrong.
inline std::string CheckEncodings(std::string_view input) {
  if (input.empty()) return {};
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(input.data()) + 1,
                                       input.size() - 1);
  switch (input[0]) {
    case 'v':
      return CheckVarintBytes(bytes);
    case 'h':
      return CheckHybridBytes(bytes);
    case 'd':
      return CheckDictionaryBytes(bytes);
    case 'p':
      return CheckPlainBytes(bytes);
    default:
      return {};
  }
}

}  // namespace sava::base
