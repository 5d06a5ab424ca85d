// The frontiers that the golden files hold (tests/golden/frontier_type/NAME.bin), and how to make
// them anew. A file is written once, by the version that introduced its format, and never again:
// later versions must read it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "types/frontier/frontier.h"

namespace sava::types {

struct GoldenFrontier {
  const char* name;
  std::unique_ptr<Frontier> (*make)();
};

// URLs in all states: some queued at several depths and priorities, some delayed, leased, dead.
inline std::unique_ptr<Frontier> MakeFrontier(const Frontier::Options& options, int urls) {
  auto frontier = std::make_unique<Frontier>(options);
  for (int i = 0; i < urls; ++i) {
    const std::string host = "host" + std::to_string(i % 13) + ".example";
    std::string rest = "/path/" + std::to_string(i);
    if (i % 50 == 49) rest.append(static_cast<size_t>(i), 'x');
    Frontier::Attributes attributes;
    attributes.priority = static_cast<int16_t>(i % 7 == 3 ? i % 5 - 2 : 0);
    attributes.not_before = i % 11 == 5 ? 5000 + i : 0;
    attributes.meta = i % 9 == 4 ? "meta" : "";
    frontier->AddOne({host, rest, static_cast<uint32_t>(i % 6)}, attributes, 1000 + i);
  }
  Frontier::HostChange change;
  change.delay_ms = 250;
  change.blocked_until = 9000;
  change.limit = 77;
  frontier->ChangeHost("host3.example", change, 1000 + urls);
  Frontier::NextRequest request;
  request.count = static_cast<size_t>(urls) / 4;
  request.strategy = Frontier::Strategy::kBreadth;
  request.lease_ms = 60000;
  std::vector<uint64_t> ids;
  frontier->Next(request, 1001 + urls,
                 [&ids](const Frontier::Served& served) { ids.push_back(served.lease); });
  const size_t third = ids.size() / 3;
  frontier->Ack({ids.data(), third}, 70000, 1002 + urls);
  frontier->Nack({ids.data() + third, third}, 0, 1003 + urls);
  return frontier;
}

inline const GoldenFrontier kGoldenFrontiers[] = {
    {"empty", [] { return std::make_unique<Frontier>(Frontier::Options{}); }},
    {"pending", [] { return MakeFrontier({}, 300); }},
    {"seen",
     [] {
       Frontier::Options options;
       options.strategy = Frontier::Strategy::kBest;
       options.dedup = Frontier::Dedup::kSeen;
       options.delay_ms = 20;
       options.max_per_host = 200;
       options.lease_ms = 30000;
       options.retries = 0;
       options.norm = 1;
       return MakeFrontier(options, 1500);
     }},
    {"bloom",
     [] {
       Frontier::Options options;
       options.strategy = Frontier::Strategy::kPriority;
       options.dedup = Frontier::Dedup::kBloom;
       options.bloom_error = 0.001;
       return MakeFrontier(options, 200);
     }},
};

}  // namespace sava::types
