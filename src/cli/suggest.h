// What a person is told who misspelt a word of the command line.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "base/nearest.h"

namespace sava::cli {

// "; did you mean 'check'?", or nothing when no known word is close.
inline std::string DidYouMean(std::string_view word, std::span<const std::string_view> known) {
  const std::string_view nearest = base::NearestWord(word, known);
  return nearest.empty() ? std::string() : fmt::format("; did you mean '{}'?", nearest);
}
inline std::string DidYouMean(std::string_view word,
                              std::initializer_list<std::string_view> known) {
  return DidYouMean(word, std::span(known.begin(), known.size()));
}

}  // namespace sava::cli
