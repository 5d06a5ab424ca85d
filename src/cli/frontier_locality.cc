#include "cli/frontier_locality.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "cli/frontier_access_log.h"
#include "cli/frontier_figures.h"
#include "cli/frontier_files.h"
#include "cli/frontier_script.h"
#include "cli/frontier_stack_distance.h"
#include "cli/progress.h"

namespace sava::cli {

namespace {

constexpr uint64_t kPage = 4096;
constexpr size_t kMostPages = size_t{1} << 20;  // of one structure
constexpr size_t kMostStructures = size_t{4} << 20;
constexpr int kPasses = 3;

// One phase of one structure.
struct PhaseStudy {
  uint64_t reads = 0;
  uint64_t writes = 0;
  StackDistance stack;
  DistanceTable distances;
};

// One structure that is drawn.
struct StructureStudy {
  uint64_t accesses = 0;
  uint64_t lowest = UINT64_MAX;
  uint64_t highest = 0;
  // The pages it touches, and later the place of each among them. Empty when there are too many:
  // then addresses are drawn as they are.
  std::unordered_map<uint64_t, uint64_t> pages;
  bool many_pages = false;
  uint64_t first = 0;  // places of the lowest and of the highest address
  uint64_t last = 0;
  std::map<uint64_t, PhaseStudy> phases;
  std::unique_ptr<AccessMap> map;

  uint64_t Place(uint64_t address) const {
    if (many_pages) return address;
    const auto page = pages.find(address / kPage);
    return page == pages.end() ? address : page->second * kPage + address % kPage;
  }

  void NumberPages() {
    std::vector<uint64_t> sorted;
    sorted.reserve(pages.size());
    for (const auto& [page, place] : pages) sorted.push_back(page);
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < sorted.size(); ++i) pages[sorted[i]] = i;
    first = Place(lowest);
    last = Place(highest);
  }
};

class Study {
 public:
  Study(const LocalityOptions& options, std::string_view log)
      : options_(options), log_(log), progress_(options.log, log.size() * kPasses, kLargeFile) {}

  base::Status Run() {
    bool too_many = false;
    std::unordered_map<uint64_t, uint64_t> used;
    ForEachAccess([&](uint64_t, const Access& access) {
      NoteInsertion(access);
      if (used.size() < kMostStructures || used.contains(access.id)) {
        ++used[access.id];
      } else {
        too_many = true;
      }
    });
    if (too_many) return base::Error{fmt::format("{}: too many structures", options_.log)};
    accesses_ = counted_;
    if (accesses_ == 0) return base::Error{fmt::format("{}: no accesses in it", options_.log)};
    Choose(used);
    ForEachAccess([this](uint64_t number, const Access& access) { Measure(number, access); });
    for (auto& [id, study] : studies_) study.NumberPages();
    ForEachAccess([this](uint64_t number, const Access& access) { Draw(number, access); });
    return Write();
  }

  uint64_t accesses() const { return accesses_; }
  uint64_t bad_lines() const { return bad_lines_; }
  uint64_t left_out() const { return left_out_; }
  uint64_t structures() const { return studies_.size(); }
  bool sampled() const { return mask_ != 0; }

 private:
  // `visit` is given the access's number, from 0, and the access.
  template <typename Visit>
  void ForEachAccess(const Visit& visit) {
    constexpr uint64_t kUpdateEvery = 1 << 14;
    counted_ = 0;
    bad_lines_ = 0;
    const char* at = log_.data();
    const char* const end = at + log_.size();
    while (at != end) {
      const auto* stop = static_cast<const char*>(std::memchr(at, '\n', end - at));
      if (stop == nullptr) stop = end;
      Access access;
      if (ParseAccess({at, static_cast<size_t>(stop - at)}, &access)) {
        visit(counted_++, access);
      } else if (stop != at) {
        ++bad_lines_;
      }
      at = stop == end ? end : stop + 1;
      if (counted_ % kUpdateEvery == 0) {
        progress_.Update(log_.size() * pass_ + static_cast<uint64_t>(at - log_.data()));
      }
    }
    ++pass_;
  }

  // A URL is written when it is added, and never before: the document's table 1.
  void NoteInsertion(const Access& access) {
    if (access.phase != static_cast<uint64_t>(ScriptVerb::kAddUrls) || !access.write) return;
    if (access.id <= kHostItems || access.id > kLateCells) return;
    if (insertions_.size() < kMostInsertions) insertions_.push_back(access.id - kHostItems);
  }

  void Choose(const std::unordered_map<uint64_t, uint64_t>& used) {
    std::vector<std::pair<uint64_t, uint64_t>> order(used.begin(), used.end());
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    left_out_ = order.size();
    order.resize(std::min(order.size(), options_.structures));
    left_out_ -= order.size();
    for (const auto& [id, count] : order) {
      StructureStudy& study = studies_[id];
      study.accesses = count;
      study.map = std::make_unique<AccessMap>();
    }
  }

  void Measure(uint64_t number, const Access& access) {
    if (access.phase != phase_ || number == 0) {
      phase_ = access.phase;
      phases_.emplace_back(Share(number), phase_);
      constexpr size_t kMostShown = 40;
      if (phases_.size() > kMostShown) many_phases_ = true;
      if (many_phases_) phases_.resize(1);
    }
    const auto place = studies_.find(access.id);
    if (place == studies_.end()) return;
    StructureStudy& study = place->second;
    study.lowest = std::min(study.lowest, access.address);
    study.highest = std::max(study.highest, access.address);
    if (!study.many_pages) {
      study.pages.try_emplace(access.address / kPage, 0);
      if (study.pages.size() > kMostPages) {
        study.many_pages = true;
        study.pages = {};
      }
    }
    PhaseStudy& phase = study.phases[access.phase];
    ++(access.write ? phase.writes : phase.reads);
    if ((StackDistance::Hash(access.address) & mask_) != 0) return;
    const auto weight = static_cast<double>(mask_ + 1);
    const uint64_t distance = phase.stack.Touch(access.address);
    if (distance == StackDistance::kFirst) {
      phase.distances.First(weight);
      if (++addresses_ > kMostAddresses) Thin();
    } else {
      phase.distances.Reuse(static_cast<double>(distance) * weight, weight);
    }
  }

  // Follows half of the addresses from now on.
  void Thin() {
    mask_ = mask_ * 2 + 1;
    addresses_ = 0;
    for (auto& [id, study] : studies_) {
      for (auto& [phase, one] : study.phases) {
        one.stack.Keep(mask_);
        addresses_ += one.stack.size();
      }
    }
  }

  void Draw(uint64_t number, const Access& access) {
    const auto place = studies_.find(access.id);
    if (place == studies_.end()) return;
    const StructureStudy& study = place->second;
    const uint64_t range = study.last - study.first;
    const double height = range == 0
                              ? 0.5
                              : static_cast<double>(study.Place(access.address) - study.first) /
                                    static_cast<double>(range);
    study.map->Mark(Share(number), height, access.write);
  }

  double Share(uint64_t number) const {
    return static_cast<double>(number) / static_cast<double>(accesses_);
  }

  base::Status Write() {
    std::string csv =
        "phase,phase name,structure,structure name,reads,writes,addresses,reuses,"
        "total stack distance,mean,greatest\n";
    std::string page = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Locality of "
        "reference</title></head><body>\n<h1>Locality of reference</h1>\n<p>{} accesses.{}</p>\n",
        accesses_,
        sampled() ? fmt::format(" Stack distances are estimates from 1 of {} addresses.", mask_ + 1)
                  : "");
    AppendInsertionTable(insertions_, &page);
    for (const auto& [id, study] : studies_) {
      if (base::Status status = WriteStructure(id, study, &csv, &page); !status) return status;
    }
    page += "</body></html>\n";
    if (base::Status status = WriteFile("summary.csv", csv); !status) return status;
    if (base::Status status = WriteFile("insertions.csv", InsertionCsv(insertions_)); !status) {
      return status;
    }
    return WriteFile("index.html", page);
  }

  base::Status WriteStructure(uint64_t id, const StructureStudy& study, std::string* csv,
                              std::string* page) {
    AccessMap::Labels labels;
    labels.id = id;
    labels.accesses = study.accesses;
    labels.lines = accesses_;
    labels.lowest = study.lowest;
    labels.highest = study.highest;
    if (!many_phases_) labels.phases = phases_;
    const std::string name = fmt::format("map-{}.svg", id);
    if (base::Status status = WriteFile(name, study.map->Svg(labels)); !status) return status;
    fmt::format_to(std::back_inserter(*page), "<h2>{}: {}</h2>\n<p><img src=\"{}\" alt=\"\"></p>\n",
                   id, StructureName(id), name);
    for (const auto& [phase, one] : study.phases) {
      const DistanceTable& table = one.distances;
      fmt::format_to(std::back_inserter(*csv),
                     "{},{},{},{},{},{},{:.0f},{:.0f},{:.0f},{:.3f},{:.0f}\n", phase,
                     PhaseName(phase), id, StructureName(id), one.reads, one.writes,
                     table.addresses(), table.reuses(), table.total(), table.mean(), table.most());
      if (table.reuses() == 0) continue;
      const std::string figure = fmt::format("distance-{}-{}.svg", phase, id);
      if (base::Status status = WriteFile(figure, table.Svg(phase, id)); !status) return status;
      fmt::format_to(std::back_inserter(*page), "<p><img src=\"{}\" alt=\"\"></p>\n", figure);
    }
    return {};
  }

  base::Status WriteFile(const std::string& name, std::string_view text) {
    OutFile file;
    const std::filesystem::path path = std::filesystem::path(options_.directory) / name;
    if (base::Status status = file.Open(path.string()); !status) return status;
    file.Append(text);
    return file.Close();
  }

  const LocalityOptions& options_;
  std::string_view log_;
  ProgressLine progress_;
  std::map<uint64_t, StructureStudy> studies_;  // of the structures that are drawn
  std::vector<std::pair<double, uint64_t>> phases_;
  bool many_phases_ = false;
  std::vector<uint64_t> insertions_;  // the list of each, from 1
  uint64_t phase_ = 0;
  uint64_t mask_ = 0;       // addresses whose hash has one of these bits are not followed
  uint64_t addresses_ = 0;  // in all stacks
  uint64_t pass_ = 0;
  uint64_t counted_ = 0;
  uint64_t accesses_ = 0;
  uint64_t bad_lines_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace

base::Status DrawLocality(const LocalityOptions& options) {
  auto log = base::MappedFile::Open(options.log);
  if (!log) return base::Error{log.error()};
  std::error_code error;
  std::filesystem::create_directories(options.directory, error);
  if (error) return base::Error{fmt::format("{}: {}", options.directory, error.message())};
  Study study(options, log->bytes());
  if (base::Status status = study.Run(); !status) return status;
  fmt::print(
      "{}: {} accesses to {} structures{}{}\n", options.directory, study.accesses(),
      study.structures(),
      study.left_out() > 0 ? fmt::format(", {} less used ones left out", study.left_out()) : "",
      study.sampled() ? "; stack distances are estimates" : "");
  if (study.bad_lines() > 0) {
    fmt::print(stderr, "{}: {} lines are no accesses\n", options.log, study.bad_lines());
  }
  return {};
}

}  // namespace sava::cli
