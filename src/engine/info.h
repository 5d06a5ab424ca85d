// INFO's parts: facts of a room, as a section of name:value lines.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "engine/engine.h"

namespace sava::engine {

// The sources of a section, and the text it is written to.
struct InfoWriter {
  Engine& engine;
  Lane& lane;
  int64_t now_ms;
  std::string text;

  // "name:value" and a line end.
  template <typename T>
  void Field(std::string_view name, const T& value) {
    fmt::format_to(std::back_inserter(text), "{}:{}\r\n", name, value);
  }
  template <typename... T>
  void Line(fmt::format_string<T...> format, T&&... values) {
    fmt::format_to(std::back_inserter(text), format, std::forward<T>(values)...);
    text += "\r\n";
  }
  // Fields of features that are not built, all with one value.
  void Fields(std::initializer_list<std::string_view> names, std::string_view value) {
    for (const std::string_view name : names) Field(name, value);
  }
  uint64_t Total(Counter LaneStats::*counter) const { return engine.Total(counter); }
  template <typename Group>
  uint64_t Total(Group LaneStats::*group, Counter Group::*counter) const {
    return engine.Total(group, counter);
  }
  // REQUIRES: the server has such a part.
  template <typename T>
  T& part() const {
    return engine.host()->parts().Get<T>();
  }
};

// Figures of replication for other sections than its own.
struct ReplicationFigures {
  uint64_t full_syncs = 0;
  uint64_t partial_syncs = 0;
  uint64_t partial_refused = 0;
  uint64_t input_bytes = 0;
  uint64_t output_bytes = 0;
  int64_t backlog_bytes = 0;   // memory of the backlog, as far as repl-backlog-size goes
  int64_t buffer_bytes = 0;    // of all that is kept of the stream
  int64_t transfer_bytes = 0;  // of copies of the data set on their way
};

struct InfoSection {
  std::string_view name;
  std::string_view title;
  void (*write)(InfoWriter&);
  bool by_default = true;
};

// a / b, or 0 when there is nothing to divide by.
inline double Ratio(size_t a, size_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}
inline int64_t Difference(size_t a, size_t b) {
  return static_cast<int64_t>(a) - static_cast<int64_t>(b);
}

}  // namespace sava::engine
