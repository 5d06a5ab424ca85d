// Bloom filters in process, without a server: bits per item, rates, and what a batch of 32
// questions costs in the blocked layout against the document's.
//
//   sava_bench_filters [--json] [--items 10000000] [--capacity 100000000]
//   sava_bench_filters --figure
//
// The second prints the points of the document's figure 4, a line each: m, n, k, the rate by
// formula and as measured on 200 filters.
//
// Bits per item are what the filter holds in all, by the allocator's account. The questions are
// asked of filters full to their capacity, half about items that are there, in turns; the figure is
// CPU nanoseconds per item, hashing included, best of several rounds.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>

#include "base/rng.h"
#include "types/filters/bloom.h"
#include "types/filters/bloom_formulas.h"

extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0";
}

namespace {

using sava::types::Bloom;
using sava::types::BloomLayout;
using sava::types::FilterHash;

constexpr size_t kBatch = 32;
constexpr int kRounds = 7;

struct Settings {
  uint64_t items = 10'000'000;
  uint64_t capacity = 100'000'000;
  bool json = false;
};

// Of CPU time: others may share the machine.
double Now() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The text of item i, at `out`.
std::string_view ItemText(uint64_t i, char* out) {
  return {out, fmt::format_to_n(out, 32, "item:{:016x}", i).size};
}

uint64_t HashOf(uint64_t i) {
  char text[32];
  return FilterHash(ItemText(i, text));
}

void Fill(Bloom& bloom, uint64_t items) {
  uint64_t hashes[kBatch];
  for (uint64_t first = 0; first < items; first += kBatch) {
    const size_t count = std::min<uint64_t>(kBatch, items - first);
    for (size_t i = 0; i < count; ++i) {
      hashes[i] = HashOf(first + i);
      bloom.Prefetch(hashes[i]);
    }
    for (size_t i = 0; i < count; ++i) bloom.Add(hashes[i]);
  }
}

struct Figure {
  double bits_per_item;
  double rate;  // measured on a million items that are not there
  double lost;  // items that are not found: none
  double add_ns;
};

Figure Measure(const Bloom::Options& options, uint64_t items) {
  const std::unique_ptr<Bloom> bloom = Bloom::Make(options);
  const double start = Now();
  Fill(*bloom, items);
  const double seconds = Now() - start;
  constexpr uint64_t kAsked = 1'000'000;
  uint64_t known = 0;
  uint64_t lost = 0;
  for (uint64_t i = 0; i < kAsked; ++i)
    known += bloom->Has(HashOf((uint64_t{1} << 60) + i)) ? 1 : 0;
  for (uint64_t i = 0; i < items; ++i) lost += bloom->Has(HashOf(i)) ? 0 : 1;
  const auto n = static_cast<double>(items);
  return {static_cast<double>(bloom->MemoryUsage(0)) * 8 / n,
          static_cast<double>(known) / static_cast<double>(kAsked), static_cast<double>(lost),
          seconds / n * 1e9};
}

// Questions as a request holds them: texts of one length, one behind the other.
struct Questions {
  std::string texts;
  size_t length = 0;

  size_t size() const { return texts.size() / length; }
  std::string_view at(size_t i) const { return {texts.data() + i * length, length}; }
};

// Nanoseconds per item of batches as BF.MEXISTS asks them.
double AskInBatches(const Bloom& bloom, const Questions& questions) {
  uint64_t hashes[kBatch];
  uint64_t known = 0;
  const double start = Now();
  for (size_t first = 0; first + kBatch <= questions.size(); first += kBatch) {
    for (size_t i = 0; i < kBatch; ++i) {
      hashes[i] = FilterHash(questions.at(first + i));
      bloom.Prefetch(hashes[i]);
    }
    for (const uint64_t hash : hashes) known += bloom.Has(hash) ? 1 : 0;
  }
  const double seconds = Now() - start;
  if (known < questions.size() / 2) fmt::print(stderr, "items are missing\n");
  return seconds / static_cast<double>(questions.size()) * 1e9;
}

struct Batches {
  double blocked_ns = 1e9;
  double classic_ns = 1e9;
};

Batches CompareLayouts(uint64_t capacity) {
  std::unique_ptr<Bloom> blooms[2];
  for (const BloomLayout layout : {BloomLayout::kBlocked, BloomLayout::kClassic}) {
    auto& bloom = blooms[static_cast<size_t>(layout)];
    bloom = Bloom::Make({.capacity = capacity, .layout = layout, .reserved = true});
    Fill(*bloom, capacity);
  }
  Questions questions;
  sava::base::Rng rng(1);
  char text[32];
  for (int i = 0; i < 1 << 20; ++i) {
    const uint64_t item = rng.Below(capacity) + (i % 2 == 0 ? 0 : uint64_t{1} << 60);
    const std::string_view question = ItemText(item, text);
    questions.length = question.size();
    questions.texts += question;
  }
  Batches best;
  for (int round = 0; round < kRounds; ++round) {
    best.blocked_ns = std::min(best.blocked_ns, AskInBatches(*blooms[0], questions));
    best.classic_ns = std::min(best.classic_ns, AskInBatches(*blooms[1], questions));
  }
  return best;
}

// The rate over n for several m, with the best k.
void PrintFigure() {
  constexpr int kFilters = 200;
  constexpr int kAsked = 2000;
  sava::base::Rng rng(4);
  for (const uint64_t m : {64, 512, 1024, 2048, 4096}) {
    for (uint64_t n = 10; n <= 200; n += 10) {
      const uint32_t k = sava::types::ClassicHashes(static_cast<double>(m), static_cast<double>(n));
      uint64_t known = 0;
      for (int i = 0; i < kFilters; ++i) {
        const std::unique_ptr<Bloom> bloom = Bloom::MakeClassic(m, k);
        for (uint64_t item = 0; item < n; ++item) bloom->Add(rng.Next());
        for (int asked = 0; asked < kAsked; ++asked) known += bloom->Has(rng.Next()) ? 1 : 0;
      }
      fmt::print("{} {} {} {:.6g} {:.6g}\n", m, n, k,
                 sava::types::ClassicRateExactly(static_cast<double>(m), static_cast<double>(n), k),
                 static_cast<double>(known) / (kFilters * kAsked));
    }
  }
}

struct Filter {
  const char* name;
  Bloom::Options options;
};

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--json") == 0) settings.json = true;
    if (strcmp(argv[i], "--figure") == 0) {
      PrintFigure();
      return 0;
    }
    if (strcmp(argv[i], "--items") == 0 && i + 1 < argc)
      settings.items = strtoull(argv[++i], nullptr, 10);
    if (strcmp(argv[i], "--capacity") == 0 && i + 1 < argc) {
      settings.capacity = strtoull(argv[++i], nullptr, 10);
    }
  }
  const uint64_t n = settings.items;
  const Filter filters[] = {
      {"blocked_1", {.capacity = n, .reserved = true}},
      {"blocked_01", {.error = 0.001, .capacity = n, .reserved = true}},
      {"classic_1", {.capacity = n, .layout = BloomLayout::kClassic, .reserved = true}},
      {"grown_1", {}},
      {"beyond_1", {.capacity = n / 2, .reserved = true}},
      {"deletable_1", {.deletable = true}},
  };
  std::string json;
  for (const Filter& filter : filters) {
    const Figure figure = Measure(filter.options, n);
    json += fmt::format(
        "\"{0}_bits\": {1:.3f}, \"{0}_rate\": {2:.6f}, \"{0}_lost\": {3:.0f}, "
        "\"{0}_add_ns\": {4:.1f}, ",
        filter.name, figure.bits_per_item, figure.rate, figure.lost, figure.add_ns);
    if (!settings.json) {
      fmt::print("{:<12} {:6.2f} bits/item  rate {:.5f}  lost {:.0f}  add {:.0f} ns\n", filter.name,
                 figure.bits_per_item, figure.rate, figure.lost, figure.add_ns);
    }
  }
  if (settings.capacity == 0) return 0;
  const Batches batches = CompareLayouts(settings.capacity);
  if (settings.json) {
    fmt::print("{{{}\"blocked_ns\": {:.2f}, \"classic_ns\": {:.2f}}}\n", json, batches.blocked_ns,
               batches.classic_ns);
  } else {
    fmt::print("batches of 32 at {} items: blocked {:.1f} ns, classic {:.1f} ns, ratio {:.3f}\n",
               settings.capacity, batches.blocked_ns, batches.classic_ns,
               batches.blocked_ns / batches.classic_ns);
  }
  return 0;
}
