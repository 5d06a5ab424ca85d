// Sketches in process, without a server: the search for near fingerprints through the index against
// a plain scan of all of them, and what counting costs. Nanoseconds of CPU, best of several rounds,
// taken in turns.
//
// The scan is as good as it gets: one array of fingerprints, XOR, popcount, compare.
//
//   sava_bench_sketches [--json] [--documents 1000000]
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "base/rng.h"
#include "types/sketches/count_min.h"
#include "types/sketches/simhash.h"
#include "types/sketches/top_k.h"

namespace {

using sava::base::Rng;
using sava::types::CountMin;
using sava::types::SimHash;
using sava::types::TopK;

constexpr int kRounds = 7;
constexpr int kDistance = 3;
constexpr size_t kQueries = 20'000;
constexpr size_t kScans = 50;
constexpr size_t kEvents = 1'000'000;

double CpuNanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Runs `work` `times` times; nanoseconds for each.
template <typename Work>
double Measure(size_t times, const Work& work) {
  const double begin = CpuNanoseconds();
  for (size_t i = 0; i < times; ++i) work(i);
  return (CpuNanoseconds() - begin) / static_cast<double>(times);
}

struct Figures {
  double index_ns = 1e18;
  double own_scan_ns = 1e18;  // distance 4, which the index does not serve
  double scan_ns = 1e18;
  double bytes = 0;  // a document, its id left out
  double cms_ns = 1e18;
  double topk_ns = 1e18;
};

void MeasureSimHash(size_t documents, Figures* figures) {
  Rng rng(1);
  SimHash all;
  std::vector<uint64_t> plain;
  size_t ids = 0;
  for (size_t i = 0; i < documents; ++i) {
    const std::string id = std::to_string(i);
    ids += id.size() + 1;
    plain.push_back(rng.Next());
    all.Add(id, plain.back());
  }
  figures->bytes = static_cast<double>(all.MemoryUsage(0) - ids) / static_cast<double>(documents);
  // Near one that is there, so that every search finds something.
  std::vector<uint64_t> queries;
  for (size_t i = 0; i < kQueries; ++i) {
    queries.push_back(plain[rng.Below(documents)] ^ (uint64_t{1} << rng.Below(64)));
  }
  size_t found = 0;
  size_t scanned = 0;
  for (int round = 0; round < kRounds; ++round) {
    found = 0;
    scanned = 0;
    figures->index_ns = std::min(figures->index_ns, Measure(kQueries, [&](size_t i) {
                                   found += all.Near(queries[i], kDistance, SIZE_MAX).size();
                                 }));
    figures->scan_ns = std::min(figures->scan_ns, Measure(kScans, [&](size_t i) {
                                  const uint64_t query = queries[i];
                                  for (const uint64_t fingerprint : plain) {
                                    scanned += std::popcount(fingerprint ^ query) <= kDistance;
                                  }
                                }));
    figures->own_scan_ns = std::min(figures->own_scan_ns, Measure(kScans, [&](size_t i) {
                                      found += all.Near(queries[i], 4, SIZE_MAX).size();
                                    }));
  }
  if (found < kQueries || scanned < kScans) {
    fmt::print(stderr, "a search found nothing\n");
    exit(1);
  }
}

// Items by Zipf's law with exponent 1 (by the inverse of its integral).
std::vector<std::string> Stream() {
  constexpr double kItems = 100'000;
  Rng rng(2);
  std::vector<std::string> stream;
  stream.reserve(kEvents);
  for (size_t i = 0; i < kEvents; ++i) {
    stream.push_back(fmt::format("item:{}", static_cast<uint64_t>(std::pow(kItems, rng.Unit()))));
  }
  return stream;
}

void MeasureCounting(Figures* figures) {
  const std::vector<std::string> stream = Stream();
  for (int round = 0; round < kRounds; ++round) {
    const auto sketch = CountMin::Make(2000, 7);
    TopK top({.k = 50, .width = 2000});
    figures->cms_ns =
        std::min(figures->cms_ns, Measure(kEvents, [&](size_t i) { sketch->Add(stream[i], 1); }));
    figures->topk_ns =
        std::min(figures->topk_ns, Measure(kEvents, [&](size_t i) { top.Add(stream[i], 1); }));
  }
}

}  // namespace

int main(int argc, char** argv) {
  size_t documents = 1'000'000;
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--json") == 0) {
      json = true;
    } else if (strcmp(argv[i], "--documents") == 0 && i + 1 < argc) {
      documents = std::max<size_t>(SimHash::kIndexFrom + 1, strtoull(argv[++i], nullptr, 10));
    } else {
      fmt::print(stderr, "usage: sava_bench_sketches [--json] [--documents N]\n");
      return 2;
    }
  }
  Figures figures;
  MeasureSimHash(documents, &figures);
  MeasureCounting(&figures);
  if (json) {
    fmt::print(
        "{{\"documents\":{},\"index_ns\":{:.1f},\"scan_ns\":{:.1f},\"own_scan_ns\":{:.1f},"
        "\"bytes\":{:.1f},\"cms_ns\":{:.1f},\"topk_ns\":{:.1f}}}\n",
        documents, figures.index_ns, figures.scan_ns, figures.own_scan_ns, figures.bytes,
        figures.cms_ns, figures.topk_ns);
    return 0;
  }
  fmt::print(
      "{} documents: index {:.0f} ns, scan {:.0f} ns, ratio {:.4f}; distance 4 {:.0f} ns; {:.1f} "
      "bytes a document\nCMS.INCRBY {:.0f} ns, TOPK.ADD {:.0f} ns\n",
      documents, figures.index_ns, figures.scan_ns, figures.index_ns / figures.scan_ns,
      figures.own_scan_ns, figures.bytes, figures.cms_ns, figures.topk_ns);
  return 0;
}
