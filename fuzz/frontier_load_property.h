// What must hold for any bytes given to the loader of frontiers: they are refused, or they are a
// frontier, which saves and loads equal and serves each of its URLs once. Shared by the fuzz target
// and by the unit test that replays its corpus.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "types/frontier/frontier.h"
#include "types/value/save.h"

namespace sava::types {

// What follows the type byte and the module id of a saved frontier.
inline std::unique_ptr<Frontier> LoadFrontier(std::string_view body) {
  Reader in(body);
  std::unique_ptr<Object> object = Frontier::Type().load(kRdbModule, in);
  if (object == nullptr || !in.ok() || in.remaining() != 0) return nullptr;
  return std::unique_ptr<Frontier>(static_cast<Frontier*>(object.release()));
}

inline std::string FrontierBody(std::string_view saved) {
  Reader in(saved);
  in.Length();
  return std::string(saved.substr(saved.size() - in.remaining()));
}

inline std::string SaveFrontier(const Frontier& frontier) {
  std::string bytes;
  {
    Writer out(&bytes);
    frontier.Save(out);
  }
  return FrontierBody(bytes);
}

inline std::string FrontierDigest(const Object& frontier) {
  std::string all;
  frontier.Digest([&all](std::string_view part) { all.append(part).append(1, '\n'); });
  return all;
}

// Takes everything out of it; empty if all is well.
inline std::string UseFrontier(Frontier& frontier) {
  const int64_t now = Frontier::kMaxTime;
  const uint64_t urls = frontier.size();
  uint64_t exported = 0;
  for (uint64_t cursor = 0;;) {
    cursor = frontier.Export(cursor, 100, [&](const Frontier::Entry&) { ++exported; });
    if (cursor == 0) break;
  }
  if (exported != urls) return "exports another number of URLs";
  Frontier::NextRequest request;
  request.count = 3;
  request.lease_ms = 1;
  std::vector<uint64_t> ids;
  frontier.Next(request, 1, [&](const Frontier::Served& served) { ids.push_back(served.lease); });
  if (frontier.Nack(ids, 2, 1) != ids.size()) return "a lease is not known";
  if (frontier.AddOne({"another host", "/", 1}, {}, 1) != Frontier::Verdict::kAdded &&
      frontier.stats().seen == 0) {
    return "takes nothing";
  }
  request.count = SIZE_MAX;
  request.lease_ms = 0;
  for (int i = 0; i < 4; ++i) {
    request.strategy = static_cast<Frontier::Strategy>(i);
    request.per_host = i == 3 ? 0 : 2;
    frontier.Next(request, now, [](const Frontier::Served&) {});
  }
  std::vector<std::string> hosts;
  frontier.Hosts(0, UINT64_MAX,
                 [&](const Frontier::HostInfo& host) { hosts.emplace_back(host.name); });
  for (const std::string& host : hosts) frontier.Purge(host, now);
  frontier.ForgetDead(now);
  return frontier.size() == 0 ? "" : "URLs are left";
}

// Empty if all is well, otherwise what went wrong.
inline std::string CheckFrontierLoad(std::string_view bytes) {
  const std::unique_ptr<Frontier> frontier = LoadFrontier(bytes);
  if (frontier == nullptr) return "";
  const std::string digest = FrontierDigest(*frontier);
  const std::unique_ptr<Frontier> again = LoadFrontier(SaveFrontier(*frontier));
  if (again == nullptr) return "what was saved does not load";
  if (FrontierDigest(*again) != digest) return "what was saved loads differently";
  if (again->size() != frontier->size()) return "what was saved has another size";
  const std::unique_ptr<Object> copy = frontier->Copy();
  if (copy == nullptr || FrontierDigest(*copy) != digest) return "the copy differs";
  std::string problem = UseFrontier(*frontier);
  return problem.empty() ? UseFrontier(*again) : problem;
}

}  // namespace sava::types
