// How a string is kept: as a number, in its entry, or in a block of its own.
#pragma once

#include <string_view>

#include "base/text.h"
#include "keyspace/table.h"

namespace sava::engine {

// Longer strings are raw (what OBJECT ENCODING tells).
inline constexpr size_t kEmbstrMax = 44;

// The form of a string; with as_number one that is a number in canonical form becomes that. Its
// bytes are a view of `text`; see KeptOutside.
inline keyspace::NewValue StringValue(std::string_view text, bool as_number) {
  keyspace::NewValue value;
  if (as_number && text.size() <= 20 && base::ParseInt(text, &value.integer)) {
    value.form = keyspace::Form::kInt;
  } else {
    value.form = text.size() <= kEmbstrMax ? keyspace::Form::kEmbstr : keyspace::Form::kRaw;
    value.bytes = text;
  }
  return value;
}

// Whether the text must be kept as a Blob. Room for an expiry is counted in, so that EXPIRE never
// has to move a value out.
inline bool KeptOutside(std::string_view key, std::string_view text) {
  return text.size() > 64 &&
         keyspace::Entry::SizeFor(key.size(), true, text.size()) > keyspace::Entry::kMaxInline;
}

}  // namespace sava::engine
