// The URL frontier in process, without a server: what adding and serving cost in batches of 100,
// and what it holds in memory per pending URL, per host and per URL seen.
//
// URLs are ~70 bytes: host (~20), path and query; hosts at random, depths 1 to 5. CPU time of the
// calls alone.
//
//   sava_bench_frontier [--json] [--urls 10000000] [--hosts 100000]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "base/rng.h"
#include "types/frontier/frontier.h"
#include "types/frontier/frontier_set.h"

namespace {

using sava::base::Rng;
using sava::types::Frontier;
using sava::types::FrontierSet;

constexpr size_t kBatch = 100;
constexpr size_t kRound = 10'000;  // URLs made at a time

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// URLs by number, the same for every run.
class Urls {
 public:
  explicit Urls(uint64_t hosts) : hosts_(hosts) {}

  // `count` more; the views are good until the next call.
  const std::vector<Frontier::Url>& Make(size_t count) {
    urls_.clear();
    texts_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      Text& text = texts_[i];
      const uint64_t host = rng_.Below(hosts_);
      text.host = fmt::format("www{:06}.example.com", host);
      const auto depth = static_cast<uint32_t>(1 + rng_.Below(5));
      text.rest.clear();
      for (uint32_t d = 1; d < depth; ++d) text.rest += fmt::format("/part{}", rng_.Below(10));
      ++made_;
      text.rest += fmt::format("/page-{:08x}.html?n={}", made_ * 2654435761U & 0xffffffff, made_);
      if (text.rest.size() < 43) text.rest.append(43 - text.rest.size(), 'x');
      bytes_ += text.rest.size();
      urls_.push_back({text.host, text.rest, depth});
    }
    return urls_;
  }
  uint64_t rest_bytes() const { return bytes_; }

 private:
  struct Text {
    std::string host;
    std::string rest;
  };
  uint64_t hosts_;
  uint64_t made_ = 0;
  uint64_t bytes_ = 0;
  Rng rng_{1};
  std::vector<Text> texts_;
  std::vector<Frontier::Url> urls_;
};

// Adds `count`; CPU seconds of the calls.
double Fill(Frontier& frontier, Urls& urls, size_t count) {
  double spent = 0;
  std::vector<Frontier::Verdict> verdicts(kBatch);
  for (size_t done = 0; done < count; done += kRound) {
    const auto& made = urls.Make(std::min(kRound, count - done));
    const double begin = CpuSeconds();
    for (size_t i = 0; i < made.size(); i += kBatch) {
      const auto batch = std::span(made).subspan(i, std::min(kBatch, made.size() - i));
      frontier.Add(batch, {}, 1, verdicts);
    }
    spent += CpuSeconds() - begin;
  }
  return spent;
}

// URLs per CPU-second.
double Serve(Frontier& frontier, Frontier::Strategy strategy, size_t count) {
  Frontier::NextRequest request;
  request.count = kBatch;
  request.strategy = strategy;
  size_t bytes = 0;
  size_t served = 0;
  const double begin = CpuSeconds();
  while (served < count) {
    const size_t got = frontier.Next(request, 1, [&bytes](const Frontier::Served& url) {
      bytes += url.url.rest.size() + url.url.host.size();
    });
    if (got == 0) break;
    served += got;
  }
  const double spent = CpuSeconds() - begin;
  return bytes == 0 ? 0 : static_cast<double>(served) / spent;
}

struct Figures {
  double add_small = 0;   // URLs a CPU-second, the first tenth
  double add_large = 0;   // the last tenth
  double next[4] = {};    // by strategy, from a long queue
  double next_short = 0;  // depth, from a short one
  double pending_bytes = 0;
  double pending_bytes_seen = 0;  // the fingerprints not counted
  double host_bytes = 0;
  double seen_bytes = 0;
};

void MeasureAdd(size_t count, uint64_t hosts, Figures* figures) {
  Frontier::Options options;
  options.dedup = Frontier::Dedup::kSeen;
  Frontier frontier(options);
  Urls urls(hosts);
  const size_t tenth = count / 10;
  figures->add_small = static_cast<double>(tenth) / Fill(frontier, urls, tenth);
  Fill(frontier, urls, count - 2 * tenth);
  figures->add_large = static_cast<double>(tenth) / Fill(frontier, urls, tenth);
  for (int i = 0; i < 4; ++i) {
    figures->next[i] = Serve(frontier, static_cast<Frontier::Strategy>(i), tenth);
  }
  Frontier small(options);
  Urls few(hosts / 10 + 1);
  Fill(small, few, tenth);
  figures->next_short = Serve(small, Frontier::Strategy::kBreadth, tenth / 2);
}

void MeasureMemory(size_t count, uint64_t hosts, Figures* figures) {
  for (const auto dedup : {Frontier::Dedup::kPending, Frontier::Dedup::kSeen}) {
    Frontier::Options options;
    options.dedup = dedup;
    Frontier frontier(options);
    for (uint64_t i = 0; i < hosts; ++i) {
      frontier.ChangeHost(fmt::format("www{:06}.example.com", i), {}, 1);
    }
    const size_t before = frontier.MemoryUsage(0);
    figures->host_bytes = static_cast<double>(before) / static_cast<double>(hosts);
    Urls urls(hosts);
    Fill(frontier, urls, count);
    const double own = static_cast<double>(frontier.MemoryUsage(0) - before - urls.rest_bytes());
    const double each = own / static_cast<double>(count);
    if (dedup == Frontier::Dedup::kPending) figures->pending_bytes = each;
    if (dedup == Frontier::Dedup::kSeen) figures->pending_bytes_seen = each;
  }
  Rng rng(7);
  FrontierSet set(64);
  for (size_t n = 1; n <= 16'000'000; ++n) {
    set.Insert(rng.Next());
    if (n < 8'000'000 || n % 100'000 != 0) continue;
    figures->seen_bytes =
        std::max(figures->seen_bytes, static_cast<double>(set.bytes()) / static_cast<double>(n));
  }
  figures->pending_bytes_seen -= figures->seen_bytes;
}

}  // namespace

int main(int argc, char** argv) {
  bool json = false;
  size_t count = 10'000'000;
  uint64_t hosts = 100'000;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--json") == 0) json = true;
    if (strcmp(argv[i], "--urls") == 0 && i + 1 < argc) count = strtoull(argv[++i], nullptr, 10);
    if (strcmp(argv[i], "--hosts") == 0 && i + 1 < argc) hosts = strtoull(argv[++i], nullptr, 10);
  }
  if (count < 10 || hosts == 0) {
    fmt::print(stderr, "usage: sava_bench_frontier [--json] [--urls N] [--hosts N]\n");
    return 2;
  }
  Figures figures;
  MeasureAdd(count, hosts, &figures);
  MeasureMemory(count, hosts, &figures);
  if (json) {
    fmt::print(
        "{{\"urls\": {}, \"hosts\": {}, \"add_first_tenth\": {:.0f}, \"add_last_tenth\": {:.0f}, "
        "\"next_depth\": {:.0f}, \"next_breadth\": {:.0f}, \"next_best\": {:.0f}, "
        "\"next_priority\": {:.0f}, \"next_breadth_short\": {:.0f}, \"bytes_pending\": {:.2f}, "
        "\"bytes_pending_beside_seen\": {:.2f}, \"bytes_host\": {:.1f}, \"bytes_seen_worst\": "
        "{:.2f}}}\n",
        count, hosts, figures.add_small, figures.add_large, figures.next[0], figures.next[1],
        figures.next[2], figures.next[3], figures.next_short, figures.pending_bytes,
        figures.pending_bytes_seen, figures.host_bytes, figures.seen_bytes);
    return 0;
  }
  fmt::print("{} URLs, {} hosts, batches of {}; URLs per CPU-second\n", count, hosts, kBatch);
  fmt::print("add, dedup seen: first tenth {:.2f}M, last tenth {:.2f}M\n", figures.add_small / 1e6,
             figures.add_large / 1e6);
  fmt::print(
      "next: depth {:.2f}M, breadth {:.2f}M, best {:.2f}M, priority {:.2f}M; breadth from a "
      "tenth as many {:.2f}M\n",
      figures.next[0] / 1e6, figures.next[1] / 1e6, figures.next[2] / 1e6, figures.next[3] / 1e6,
      figures.next_short / 1e6);
  fmt::print(
      "bytes: a pending URL beyond path and query {:.2f} (dedup pending), {:.2f} beside its "
      "fingerprint (dedup seen); a host {:.1f}; a URL seen, worst of 8-16M, {:.2f}\n",
      figures.pending_bytes, figures.pending_bytes_seen, figures.host_bytes, figures.seen_bytes);
  return 0;
}
