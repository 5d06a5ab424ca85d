// What must hold for any bytes given to the readers of packed forms: they are refused, or what was
// read, written again, reads the same. The first byte says which form is meant.
// Shared by the fuzz target and by the unit test that replays its corpus.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "types/collections/packed_forms.h"

namespace sava::types {

inline bool ReadPacked(int form, std::string_view bytes, std::vector<std::string>* texts) {
  const auto item = [texts](const PackedItem& packed) {
    PackedItem::Scratch scratch;
    texts->emplace_back(packed.Text(scratch));
    return true;
  };
  if (form == 0) return ForEachListpack(bytes, item);
  if (form == 1) return ForEachZiplist(bytes, item);
  if (form == 2) {
    return ForEachZipmap(bytes, [texts](std::string_view field, std::string_view value) {
      texts->emplace_back(field);
      texts->emplace_back(value);
      return true;
    });
  }
  return ForEachIntset(bytes, [texts](int64_t value) {
    texts->push_back(std::to_string(value));
    return true;
  });
}

// Empty if all is well, otherwise what went wrong.
inline std::string CheckPackedForm(std::string_view bytes) {
  if (bytes.empty()) return "";
  const int form = static_cast<uint8_t>(bytes[0]) % 4;
  const std::string_view body = bytes.substr(1);
  std::vector<std::string> texts;
  if (!ReadPacked(form, body, &texts)) return "";
  if (texts.size() > body.size()) return "more elements than bytes";
  std::string written;
  if (form == 3) {
    std::vector<int64_t> values;
    for (const std::string& text : texts) values.push_back(std::stoll(text));
    written = WriteIntset(values);
  } else {
    ListpackWriter writer;
    for (const std::string& text : texts) writer.Add(text);
    const size_t size = writer.size();
    written = writer.Finish();
    if (written.size() != size) return "the size is not what it was said to be";
  }
  std::vector<std::string> again;
  if (!ReadPacked(form == 3 ? 3 : 0, written, &again)) return "what was written is refused";
  return again == texts ? "" : "what was written reads differently";
}

}  // namespace sava::types
