// Looks for a byte among up to 16 at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace sava::types {

// A bit for each of the `count` bytes that is `wanted`, 16 at a time from `from` on.
inline unsigned Matches(const uint8_t* bytes, size_t from, size_t count, uint8_t wanted) {
  const size_t rest = count - from;
#if defined(__SSE2__)
  const __m128i group = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + from));
  const __m128i same = _mm_cmpeq_epi8(group, _mm_set1_epi8(static_cast<char>(wanted)));
  auto mask = static_cast<unsigned>(_mm_movemask_epi8(same));
  if (rest < 16) mask &= (1U << rest) - 1;
  return mask;
#else
  unsigned mask = 0;
  for (size_t i = 0; i < std::min<size_t>(rest, 16); ++i) {
    mask |= static_cast<unsigned>(bytes[from + i] == wanted) << i;
  }
  return mask;
#endif
}

}  // namespace sava::types
