#include "base/nearest.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"

namespace sava::base {

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

std::string_view NearestWord(std::string_view word, std::span<const std::string_view> known) {
  if (word.size() > 64) return {};
  const std::string lower = ToLower(word);
  std::string_view nearest;
  size_t best = std::min<size_t>(3, lower.size() / 2 + 1);
  for (const std::string_view one : known) {
    if (one.size() >= lower.size() + best || lower.size() >= one.size() + best) continue;
    const size_t distance = EditDistance(lower, one);
    if (distance < best) {
      best = distance;
      nearest = one;
    }
  }
  return nearest;
}

}  // namespace sava::base
