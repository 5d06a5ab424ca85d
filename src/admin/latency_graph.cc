#include "admin/latency_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

namespace sava::admin {

namespace {

constexpr size_t kColumns = 80;
constexpr int kRows = 4;
// Three heights within a row; a column below its top is filled.
constexpr std::string_view kTops = "_o#";

struct Column {
  int height;  // in thirds of a row
  std::string age;
};

void AppendLine(std::string* text, const std::vector<Column>& columns, auto&& character) {
  for (const Column& column : columns) *text += character(column);
  *text += '\n';
}

// One band of at most 80 samples.
std::string Band(const std::vector<Column>& columns) {
  const auto tops = static_cast<int>(kTops.size());
  std::string text;
  for (int row = kRows - 1; row >= 0; --row) {
    AppendLine(&text, columns, [&](const Column& column) {
      if (column.height / tops == row) return kTops[static_cast<size_t>(column.height % tops)];
      return column.height / tops > row ? '|' : ' ';
    });
  }
  AppendLine(&text, columns, [](const Column&) { return ' '; });
  size_t longest = 0;
  for (const Column& column : columns) longest = std::max(longest, column.age.size());
  for (size_t i = 0; i < longest; ++i) {
    AppendLine(&text, columns,
               [&](const Column& column) { return i < column.age.size() ? column.age[i] : ' '; });
  }
  return text;
}

}  // namespace

std::string ShortAge(int64_t seconds) {
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m", seconds / 60);
  if (seconds < 86400) return fmt::format("{}h", seconds / 3600);
  return fmt::format("{}d", seconds / 86400);
}

std::string LatencyGraph(const engine::LatencyMonitor::Series& series, int64_t now_seconds) {
  uint32_t low = UINT32_MAX;
  uint32_t high = 0;
  for (const engine::LatencySample& sample : series.samples) {
    low = std::min(low, sample.millis);
    high = std::max(high, sample.millis);
  }
  std::string text = fmt::format("{} - high {} ms, low {} ms (all time high {} ms)\n{:-<80}\n",
                                 series.event, high, low, series.max, "");
  const auto steps = static_cast<uint64_t>(kRows) * kTops.size();
  const std::span<const engine::LatencySample> all = series.samples;
  for (size_t from = 0; from < all.size(); from += kColumns) {
    std::vector<Column> columns;
    for (const auto& sample : all.subspan(from, std::min(kColumns, all.size() - from))) {
      const uint64_t range = high > low ? high - low : 1;
      const uint64_t step = std::min((sample.millis - low) * steps / range, steps - 1);
      columns.push_back({static_cast<int>(step), ShortAge(now_seconds - sample.unix_time)});
    }
    text += Band(columns);
  }
  return text;
}

}  // namespace sava::admin
