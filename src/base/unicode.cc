#include "base/unicode.h"

#include <algorithm>
#include <iterator>

#include "base/unicode_tables.h"

namespace sava::base {

namespace {

// The range that could hold a code point: the last that does not begin after it.
template <typename Ranges>
auto RangeOf(const Ranges& ranges, uint32_t point) {
  const auto* after =
      std::upper_bound(std::begin(ranges), std::end(ranges), point,
                       [](uint32_t value, const auto& range) { return value < range.first; });
  return after == std::begin(ranges) ? std::end(ranges) : after - 1;
}

}  // namespace

uint32_t TakeCodePoint(std::string_view* text) {
  const auto first = static_cast<uint8_t>(text->front());
  if (first < 0x80) {
    text->remove_prefix(1);
    return first;
  }
  size_t more = 0;
  uint32_t point = 0;
  uint32_t least = 0;
  if ((first & 0xe0) == 0xc0) {
    more = 1;
    point = first & 0x1fU;
    least = 0x80;
  } else if ((first & 0xf0) == 0xe0) {
    more = 2;
    point = first & 0x0fU;
    least = 0x800;
  } else if ((first & 0xf8) == 0xf0) {
    more = 3;
    point = first & 0x07U;
    least = 0x10000;
  }
  bool good = more != 0 && text->size() > more;
  for (size_t i = 1; good && i <= more; ++i) {
    const auto byte = static_cast<uint8_t>((*text)[i]);
    good = (byte & 0xc0) == 0x80;
    point = (point << 6) | (byte & 0x3fU);
  }
  good = good && point >= least && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
  text->remove_prefix(good ? more + 1 : 1);
  return good ? point : kNoCodePoint;
}

void AppendCodePoint(std::string* out, uint32_t point) {
  const auto tail = [&](unsigned shift) {
    out->push_back(static_cast<char>(0x80 | ((point >> shift) & 0x3f)));
  };
  if (point < 0x80) {
    out->push_back(static_cast<char>(point));
  } else if (point < 0x800) {
    out->push_back(static_cast<char>(0xc0 | (point >> 6)));
    tail(0);
  } else if (point < 0x10000) {
    out->push_back(static_cast<char>(0xe0 | (point >> 12)));
    tail(6);
    tail(0);
  } else {
    out->push_back(static_cast<char>(0xf0 | (point >> 18)));
    tail(12);
    tail(6);
    tail(0);
  }
}

bool IsWordPart(uint32_t point) {
  if (point < 0x80) {
    const uint32_t folded = point | 0x20;
    return (point >= '0' && point <= '9') || (folded >= 'a' && folded <= 'z');
  }
  const auto* range = RangeOf(unicode_tables::kWord, point);
  return range != std::end(unicode_tables::kWord) && point <= range->last;
}

uint32_t LowerCase(uint32_t point) {
  if (point < 0x80) return point >= 'A' && point <= 'Z' ? point + 32 : point;
  const auto* range = RangeOf(unicode_tables::kLower, point);
  if (range == std::end(unicode_tables::kLower) || point > range->last) return point;
  if ((point - range->first) % range->step != 0) return point;
  return point + static_cast<uint32_t>(range->distance);
}

}  // namespace sava::base
