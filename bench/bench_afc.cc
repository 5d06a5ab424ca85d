// Increments of association counters in process, without a server: counters of 100 members against
// counters of 100,000, with the same number of associations and increments in both. Members are
// UUID text out of one stock of 100,000. The figure is nanoseconds an increment, best of several
// rounds, taken in turns.
//
//   sava_bench_afc [--json] [--associations 10000000] [--increments 2000000]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "types/counters/afc.h"

extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0";
}

namespace {

using sava::types::Afc;

constexpr size_t kStock = 100'000;
constexpr int kRounds = 7;

struct Settings {
  size_t associations = 10'000'000;
  size_t increments = 2'000'000;
  bool json = false;
};

std::vector<std::string> Uuids() {
  sava::base::Rng rng(1);
  std::vector<std::string> texts;
  texts.reserve(kStock);
  for (size_t i = 0; i < kStock; ++i) {
    const uint64_t a = rng.Next();
    const uint64_t b = rng.Next();
    texts.push_back(fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", a >> 32, (a >> 16) & 0xffff,
                                a & 0xffff, b >> 48, b & 0xffffffffffff));
  }
  return texts;
}

// Counters of `members` each, as many as the associations need.
class Population {
 public:
  Population(const Settings& settings, const std::vector<std::string>& stock, size_t members)
      : stock_(stock), members_(members), rng_(members) {
    const size_t count = std::max<size_t>(1, settings.associations / members);
    for (size_t i = 0; i < count; ++i) afcs_.push_back(std::make_unique<Afc>());
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < members_; ++j) afcs_[i]->Add(MemberOf(i, j), 1, 0);
    }
  }

  double NanosecondsEach(size_t increments) {
    const auto begin = std::chrono::steady_clock::now();
    for (size_t i = 0; i < increments; ++i) {
      const size_t at = rng_.Below(afcs_.size());
      afcs_[at]->Add(MemberOf(at, rng_.Below(members_)), 1, 0);
    }
    const std::chrono::duration<double, std::nano> elapsed =
        std::chrono::steady_clock::now() - begin;
    return elapsed.count() / static_cast<double>(increments);
  }

  size_t size() const { return afcs_.size(); }
  std::string_view layout() const { return afcs_[0]->layout(); }

 private:
  // A walk through the stock; 7,919 meets every one of 100,000 once.
  const std::string& MemberOf(size_t associator, size_t j) const {
    return stock_[(associator * 104'729 + j * 7'919) % kStock];
  }

  const std::vector<std::string>& stock_;
  const size_t members_;
  sava::base::Rng rng_;
  std::vector<std::unique_ptr<Afc>> afcs_;
};

void Measure(const Settings& settings) {
  const std::vector<std::string> stock = Uuids();
  Population small(settings, stock, 100);
  Population large(settings, stock, kStock);
  double small_ns = 1e9;
  double large_ns = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    small_ns = std::min(small_ns, small.NanosecondsEach(settings.increments));
    large_ns = std::min(large_ns, large.NanosecondsEach(settings.increments));
  }
  if (settings.json) {
    fmt::print(
        "[{{\"name\":\"increment\",\"small_ns\":{:.1f},\"large_ns\":{:.1f},"
        "\"ratio\":{:.3f}}}]\n",
        small_ns, large_ns, large_ns / small_ns);
    return;
  }
  fmt::print("{} x 100 ({}): {:.1f} ns; {} x 100000 ({}): {:.1f} ns; ratio {:.2f}\n", small.size(),
             small.layout(), small_ns, large.size(), large.layout(), large_ns, large_ns / small_ns);
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--json") == 0) {
      settings.json = true;
    } else if (strcmp(argv[i], "--associations") == 0 && i + 1 < argc) {
      settings.associations = strtoull(argv[++i], nullptr, 10);
    } else if (strcmp(argv[i], "--increments") == 0 && i + 1 < argc) {
      settings.increments = strtoull(argv[++i], nullptr, 10);
    } else {
      fmt::print(stderr, "usage: sava_bench_afc [--json] [--associations N] [--increments N]\n");
      return 2;
    }
  }
  Measure(settings);
  return 0;
}
