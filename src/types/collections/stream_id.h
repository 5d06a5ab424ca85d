// StreamId: the id of a stream's entry, milliseconds and a number within them, ordered by both.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "base/text.h"

namespace sava::types {

struct StreamId {
  uint64_t ms = 0;
  uint64_t seq = 0;

  constexpr auto operator<=>(const StreamId&) const = default;
  constexpr bool zero() const { return ms == 0 && seq == 0; }

  // To the next or the previous id; false, and unchanged, when there is none.
  constexpr bool Increment() {
    if (seq == UINT64_MAX && ms == UINT64_MAX) return false;
    if (++seq == 0) ++ms;
    return true;
  }
  constexpr bool Decrement() {
    if (seq == 0 && ms == 0) return false;
    if (seq-- == 0) --ms;
    return true;
  }

  // "ms-seq".
  std::string Text() const {
    char text[41];
    size_t size = base::FormatUint(ms, text);
    text[size++] = '-';
    size += base::FormatUint(seq, text + size);
    return {text, size};
  }
};

inline constexpr StreamId kLeastStreamId{0, 0};
inline constexpr StreamId kGreatestStreamId{UINT64_MAX, UINT64_MAX};

}  // namespace sava::types
