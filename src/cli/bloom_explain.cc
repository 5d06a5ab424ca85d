#include "cli/bloom_explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace sava::cli {

namespace {

constexpr uint64_t kDrawnWhole = 64;
constexpr std::string_view kIndent = "  ";

// One row of cells under a label.
class Line {
 public:
  Line(std::string_view label, size_t width)
      : text_(fmt::format("{}{:<8}", kIndent, label)), width_(width) {}
  void Cell(std::string_view cell) { text_ += fmt::format("{:>{}}", cell, width_); }
  std::string Take() {
    text_.erase(text_.find_last_not_of(' ') + 1);
    return text_ + '\n';
  }

 private:
  std::string text_;
  size_t width_;
};

std::string BitList(const std::set<uint64_t>& bits) {
  std::string text = bits.size() == 1 ? "bit " : "bits ";
  size_t i = 0;
  for (const uint64_t bit : bits) {
    if (i != 0) text += i + 1 == bits.size() ? " and " : ", ";
    text += fmt::to_string(bit);
    ++i;
  }
  return text;
}

struct Drawing {
  uint64_t bits;
  uint64_t columns;
  size_t width;  // of a cell
  std::map<uint64_t, std::vector<size_t>> hashes;
  const std::function<bool(uint64_t)>& is_set;

  // The hashes that meet at a bit, one below the other under an arrow.
  std::string Arrows(uint64_t first, uint64_t end) const {
    size_t height = 0;
    Line arrows("", width);
    for (uint64_t bit = first; bit < end; ++bit) {
      const auto found = hashes.find(bit);
      arrows.Cell(found == hashes.end() ? "" : "^");
      if (found != hashes.end()) height = std::max(height, found->second.size());
    }
    std::string text = arrows.Take();
    for (size_t level = 0; level < height; ++level) {
      Line names("", width);
      for (uint64_t bit = first; bit < end; ++bit) {
        const auto found = hashes.find(bit);
        const bool here = found != hashes.end() && level < found->second.size();
        names.Cell(here ? fmt::format("H{}", found->second[level]) : "");
      }
      text += names.Take();
    }
    return text;
  }

  std::string Row(uint64_t first) const {
    const uint64_t end = std::min(first + columns, bits);
    Line index("index", width);
    Line before("before", width);
    Line after("after", width);
    Line changes("", width);
    bool used = false;
    bool changed = false;
    for (uint64_t bit = first; bit < end; ++bit) {
      const bool was = is_set(bit);
      const bool chosen = hashes.contains(bit);
      used = used || chosen;
      changed = changed || (chosen && !was);
      index.Cell(fmt::to_string(bit));
      before.Cell(was ? "1" : "0");
      after.Cell(was || chosen ? "1" : "0");
      changes.Cell(chosen && !was ? "+" : "");
    }
    std::string text = index.Take() + before.Take();
    if (used) text += Arrows(first, end);
    text += after.Take();
    if (changed) text += changes.Take();
    return text;
  }
};

}  // namespace

std::string DrawBits(uint64_t bits, const std::vector<uint64_t>& positions,
                     const std::function<bool(uint64_t)>& is_set) {
  const size_t label = std::max(fmt::formatted_size("{}", bits - 1),
                                fmt::formatted_size("H{}", positions.size() - 1));
  Drawing drawing{.bits = bits,
                  .columns = label < 4 ? 16U : 8U,
                  .width = label + 1,
                  .hashes = {},
                  .is_set = is_set};
  for (size_t i = 0; i < positions.size(); ++i) drawing.hashes[positions[i]].push_back(i);
  std::set<uint64_t> rows;
  for (const uint64_t position : positions) rows.insert(position / drawing.columns);
  if (bits <= kDrawnWhole) {
    for (uint64_t row = 0; row * drawing.columns < bits; ++row) rows.insert(row);
  }
  std::string text;
  for (const uint64_t row : rows) {
    if (!text.empty()) text += '\n';
    text += drawing.Row(row * drawing.columns);
  }
  return text;
}

std::string ExplainBits(uint64_t bits, const std::vector<uint64_t>& positions,
                        const std::function<bool(uint64_t)>& is_set) {
  std::string text(kIndent);
  std::set<uint64_t> all;
  std::set<uint64_t> unset;
  for (size_t i = 0; i < positions.size(); ++i) {
    text += fmt::format("{}H{} = {}", i == 0 ? "" : ", ", i, positions[i]);
    all.insert(positions[i]);
    if (!is_set(positions[i])) unset.insert(positions[i]);
  }
  const bool one = unset.empty() ? all.size() == 1 : unset.size() == 1;
  text +=
      fmt::format("\n{}check: {}, {} {} {}\n", kIndent, unset.empty() ? "maybe" : "no",
                  BitList(unset.empty() ? all : unset), one ? "is" : "are", unset.empty() ? 1 : 0);
  text += unset.empty() ? fmt::format("{}add: changes nothing\n", kIndent)
                        : fmt::format("{}add: sets {}\n", kIndent, BitList(unset));
  return text + '\n' + DrawBits(bits, positions, is_set);
}

}  // namespace sava::cli
