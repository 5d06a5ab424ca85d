#include "base/dictionary_encoding.h"

#include <sava/dictionary_encoding.h>

namespace sava {

std::string EncodeDictionary(std::span<const std::string_view> values) {
  std::string bytes;
  base::DictionaryEncoder(values).AppendTo(&bytes);
  return bytes;
}

DictionarySizes MeasureDictionary(std::span<const std::string_view> values) {
  const base::DictionaryEncoder encoder(values);
  return {encoder.encoded_size(), encoder.plain_size()};
}

std::optional<std::vector<std::string_view>> DecodeDictionary(std::string_view bytes,
                                                              std::size_t max_values,
                                                              std::size_t max_bytes) {
  const auto* at = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const std::uint8_t* const end = at + bytes.size();
  const std::optional<base::DictionaryValues> decoded =
      base::DecodeDictionary(&at, end, {.max_values = max_values, .max_bytes = max_bytes});
  if (!decoded || at != end) return std::nullopt;
  std::vector<std::string_view> values;
  values.reserve(decoded->size());
  for (std::size_t i = 0; i < decoded->size(); ++i) values.push_back((*decoded)[i]);
  return values;
}

}  // namespace sava
