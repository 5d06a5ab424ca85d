// The figures of a locality study as SVG.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sava::cli {

// "cells of the list of host 3", "hosts".
std::string StructureName(uint64_t id);
// "ADD_URLS", or "phase 9" for one the document does not have.
std::string PhaseName(uint64_t phase);

// Into which lists URLs were inserted, one after the other: as lines `insertion,list`, and as the
// document's table 1, a row for each list, of the first insertions.
std::string InsertionCsv(const std::vector<uint64_t>& lists);
void AppendInsertionTable(const std::vector<uint64_t>& lists, std::string* page);

// Where reads and writes fell: a grid of time and address.
class AccessMap {
 public:
  static constexpr size_t kColumns = 640;
  static constexpr size_t kRows = 320;

  AccessMap() : cells_(kColumns * kRows) {}

  // Shares of the whole, from 0 up to 1.
  void Mark(double time, double address, bool write);

  struct Labels {
    uint64_t id = 0;
    uint64_t accesses = 0;  // of this structure
    uint64_t lines = 0;     // of the log
    uint64_t lowest = 0;
    uint64_t highest = 0;
    // Where phases begin, as shares of the whole; empty when there are too many to show.
    std::vector<std::pair<double, uint64_t>> phases;
  };
  std::string Svg(const Labels& labels) const;

 private:
  static constexpr uint8_t kRead = 1;
  static constexpr uint8_t kWrite = 2;

  std::string Runs(uint8_t kind) const;

  std::vector<uint8_t> cells_;  // row by row, the lowest address in the last one
};

// Stack distances of one structure in one phase. Sums are doubles: they may be estimates.
class DistanceTable {
 public:
  // One access that stands for `weight` of them. REQUIRES: distance is not kFirst.
  void Reuse(double distance, double weight);
  void First(double weight) { addresses_ += weight; }

  double reuses() const { return reuses_; }
  double addresses() const { return addresses_; }
  double total() const { return total_; }
  double most() const { return most_; }
  double mean() const { return reuses_ > 0 ? total_ / reuses_ : 0; }

  std::string Svg(uint64_t phase, uint64_t id) const;

 private:
  static constexpr size_t kExact = 64;   // distances below are counted one by one
  static constexpr size_t kPowers = 64;  // and all by powers of two: 0, 1, 2-3, 4-7 ...

  struct Bar {
    std::string label;
    double count = 0;
  };
  std::vector<Bar> Bars() const;

  double reuses_ = 0;
  double addresses_ = 0;
  double total_ = 0;
  double most_ = 0;
  std::array<double, kExact> exact_{};
  std::array<double, kPowers> powers_{};
};

}  // namespace sava::cli
