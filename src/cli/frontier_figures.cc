#include "cli/frontier_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "cli/frontier_access_log.h"
#include "cli/frontier_script.h"

namespace sava::cli {

namespace {

constexpr int kLeft = 120;
constexpr int kTop = 48;
constexpr int kRight = 24;
constexpr int kBottom = 56;
constexpr std::string_view kReadColour = "#2860a8";
constexpr std::string_view kWriteColour = "#b03030";

std::string Head(int width, int height, std::string_view title) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#333333\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"20\" font-size=\"14\">{3}</text>\n",
      width, height, kLeft, title);
}

void AppendText(double x, double y, std::string_view anchor, std::string_view words,
                std::string* out) {
  fmt::format_to(std::back_inserter(*out),
                 "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                 words);
}

}  // namespace

std::string StructureName(uint64_t id) {
  if (id == kQueueCells) return "cells of the queue of hosts";
  if (id == kHostItems) return "hosts";
  if (id > kLateCells) return fmt::format("cells of the list of host {}", id - kLateCells);
  if (id > kHostItems) return fmt::format("URLs of host {}", id - kHostItems);
  return fmt::format("cells of the list of host {}", id);
}

std::string PhaseName(uint64_t phase) {
  if (phase >= kScriptVerbs) return fmt::format("phase {}", phase);
  return std::string(ScriptVerbName(static_cast<ScriptVerb>(phase)));
}

// ---- insertions ----

std::string InsertionCsv(const std::vector<uint64_t>& lists) {
  std::string csv = "insertion,list\n";
  for (size_t i = 0; i < lists.size(); ++i) {
    fmt::format_to(std::back_inserter(csv), "{},{}\n", i + 1, lists[i]);
  }
  return csv;
}

void AppendInsertionTable(const std::vector<uint64_t>& lists, std::string* page) {
  constexpr size_t kColumns = 60;
  if (lists.empty()) return;
  const std::vector<uint64_t> shown(
      lists.begin(), lists.begin() + static_cast<std::ptrdiff_t>(std::min(lists.size(), kColumns)));
  std::vector<uint64_t> rows = shown;
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  *page += "<h2>Insertions</h2>\n<table border=\"1\"><tr><th></th>";
  for (size_t i = 1; i <= shown.size(); ++i) *page += fmt::format("<th>{}</th>", i);
  *page += "</tr>\n";
  for (const uint64_t list : rows) {
    *page += fmt::format("<tr><th>L{}</th>", list);
    for (const uint64_t one : shown) *page += one == list ? "<td>X</td>" : "<td></td>";
    *page += "</tr>\n";
  }
  *page += "</table>\n";
}

// ---- maps ----

void AccessMap::Mark(double time, double address, bool write) {
  const auto column = std::min(kColumns - 1, static_cast<size_t>(time * kColumns));
  const auto row = std::min(kRows - 1, static_cast<size_t>(address * kRows));
  cells_[(kRows - 1 - row) * kColumns + column] |= write ? kWrite : kRead;
}

// Marked cells as a path of horizontal strokes.
std::string AccessMap::Runs(uint8_t kind) const {
  std::string path;
  for (size_t row = 0; row < kRows; ++row) {
    for (size_t column = 0; column < kColumns; ++column) {
      if ((cells_[row * kColumns + column] & kind) == 0) continue;
      size_t end = column + 1;
      while (end < kColumns && (cells_[row * kColumns + end] & kind) != 0) ++end;
      fmt::format_to(std::back_inserter(path), "M{} {}.5h{}", kLeft + column, kTop + row,
                     end - column);
      column = end;
    }
  }
  return path;
}

std::string AccessMap::Svg(const Labels& labels) const {
  constexpr int kWidth = kLeft + static_cast<int>(kColumns) + kRight;
  constexpr int kHeight = kTop + static_cast<int>(kRows) + kBottom;
  constexpr double kBase = kTop + kRows;
  std::string out =
      Head(kWidth, kHeight,
           fmt::format("Accesses to structure {}: {}", labels.id, StructureName(labels.id)));
  fmt::format_to(std::back_inserter(out),
                 "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" "
                 "stroke=\"#bbbbbb\"/>\n",
                 kLeft, kTop, kColumns, kRows);
  for (const auto& [share, phase] : labels.phases) {
    const double x = kLeft + share * kColumns;
    fmt::format_to(
        std::back_inserter(out),
        "<path d=\"M{0:.1f} {1}V{2:.1f}\" stroke=\"#999999\" stroke-dasharray=\"3 3\"/>\n", x, kTop,
        kBase);
    AppendText(x + 2, kTop - 6, "start", fmt::format("{}", phase), &out);
  }
  // A few accesses are drawn as points one can see, many as they fall.
  constexpr uint64_t kFew = 2000;
  const int stroke = labels.accesses < kFew ? 4 : 1;
  for (const auto& [kind, colour] : {std::pair(kRead, kReadColour), {kWrite, kWriteColour}}) {
    const std::string path = Runs(kind);
    if (path.empty()) continue;
    fmt::format_to(std::back_inserter(out),
                   "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" "
                   "stroke-linecap=\"{}\"/>\n",
                   path, colour, kind == kRead ? stroke : std::max(1, stroke - 1),
                   stroke > 1 ? "square" : "butt");
  }
  AppendText(kLeft - 6, kTop + 10, "end", fmt::format("{:#x}", labels.highest), &out);
  AppendText(kLeft - 6, kBase, "end", fmt::format("{:#x}", labels.lowest), &out);
  AppendText(kLeft, kBase + 18, "start", "1", &out);
  AppendText(kLeft + kColumns, kBase + 18, "end", fmt::format("{}", labels.lines), &out);
  AppendText(kLeft + kColumns / 2.0, kBase + 18, "middle", "access (line of the log)", &out);
  fmt::format_to(std::back_inserter(out),
                 "<text x=\"{}\" y=\"{}\"><tspan fill=\"{}\">reads</tspan>, "
                 "<tspan fill=\"{}\">writes</tspan>: {}; pages never touched are left out; "
                 "dashed: where a phase begins</text>\n</svg>\n",
                 kLeft, kBase + 40, kReadColour, kWriteColour, labels.accesses);
  return out;
}

// ---- distances ----

void DistanceTable::Reuse(double distance, double weight) {
  reuses_ += weight;
  total_ += distance * weight;
  most_ = std::max(most_, distance);
  if (distance < kExact) exact_[static_cast<size_t>(distance)] += weight;
  const auto power = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(distance)));
  powers_[std::min(power, kPowers - 1)] += weight;
}

std::vector<DistanceTable::Bar> DistanceTable::Bars() const {
  std::vector<Bar> bars;
  if (most_ < kExact) {
    for (size_t i = 0; i <= static_cast<size_t>(most_); ++i) {
      bars.push_back({fmt::format("{}", i), exact_[i]});
    }
    return bars;
  }
  const auto powers = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(most_)));
  for (size_t i = 0; i <= std::min(powers, kPowers - 1); ++i) {
    bars.push_back({i == 0 ? "0" : fmt::format("{}", uint64_t{1} << (i - 1)), powers_[i]});
  }
  return bars;
}

std::string DistanceTable::Svg(uint64_t phase, uint64_t id) const {
  constexpr int kPlotWidth = 560;
  constexpr int kPlotHeight = 220;
  constexpr double kBase = kTop + kPlotHeight;
  const std::vector<Bar> bars = Bars();
  double highest = 1;
  for (const Bar& bar : bars) highest = std::max(highest, bar.count);
  std::string out = Head(kLeft + kPlotWidth + kRight, kTop + kPlotHeight + kBottom + 20,
                         fmt::format("Stack distance of structure {} ({}), phase {}: {}", id,
                                     StructureName(id), phase, PhaseName(phase)));
  const double step = static_cast<double>(kPlotWidth) / static_cast<double>(bars.size());
  const size_t label_every = 1 + bars.size() / 24;
  for (size_t i = 0; i < bars.size(); ++i) {
    const double x = kLeft + step * static_cast<double>(i);
    const double height = bars[i].count / highest * kPlotHeight;
    fmt::format_to(std::back_inserter(out),
                   "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
                   "fill=\"{}\"/>\n",
                   x + step * 0.1, kBase - height, step * 0.8, height, kReadColour);
    if (i % label_every == 0) AppendText(x + step / 2, kBase + 16, "middle", bars[i].label, &out);
  }
  fmt::format_to(std::back_inserter(out),
                 "<path d=\"M{0} {1}V{2}H{3}\" fill=\"none\" stroke=\"#333333\"/>\n", kLeft, kTop,
                 kBase, kLeft + kPlotWidth);
  AppendText(kLeft - 6, kTop + 10, "end", fmt::format("{:.0f}", highest), &out);
  AppendText(kLeft - 6, kBase, "end", "0", &out);
  AppendText(kLeft + kPlotWidth / 2.0, kBase + 34, "middle",
             most_ < kExact ? "stack distance" : "stack distance, from the power of two on", &out);
  AppendText(
      kLeft, kBase + 58, "start",
      fmt::format("total {:.0f}, mean {:.2f}, greatest {:.0f}; {:.0f} accesses to an address "
                  "again, {:.0f} addresses",
                  total(), mean(), most(), reuses(), addresses()),
      &out);
  out += "</svg>\n";
  return out;
}

}  // namespace sava::cli
