// INFO: which sections are wanted, and the text of all of them. The sections stand in
// info_server.cc (the process), info_persistence.cc, info_memory.cc and info_stats.cc (what was
// counted).
#include "server/info.h"

#include <algorithm>

#include "base/text.h"
#include "engine/engine_context.h"
#include "server/families.h"
#include "server/info_sections.h"

namespace sava::server {

namespace {

using commands::Context;
using engine::EngineContext;

struct Section {
  std::string_view name;
  std::string_view title;
  void (*write)(info::Writer&);
  bool by_default;
  bool about_clients;  // looks at every connection
};

constexpr Section kSections[] = {
    {"server", "Server", info::ServerSection, true, false},
    {"clients", "Clients", info::ClientsSection, true, true},
    {"memory", "Memory", info::MemorySection, true, true},
    {"persistence", "Persistence", info::PersistenceSection, true, false},
    {"stats", "Stats", info::StatsSection, true, false},
    {"replication", "Replication", info::ReplicationSection, true, false},
    {"cpu", "CPU", info::CpuSection, true, false},
    {"modules", "Modules", info::ModulesSection, true, false},
    {"commandstats", "Commandstats", info::CommandstatsSection, false, false},
    {"errorstats", "Errorstats", info::ErrorstatsSection, true, false},
    {"latencystats", "Latencystats", info::LatencystatsSection, false, false},
    {"cluster", "Cluster", info::ClusterSection, true, false},
    {"sava", "Sava", info::SavaSection, false, false},
    {"ratelimit", "Ratelimit", info::RatelimitSection, false, false},
    {"keyspace", "Keyspace", info::KeyspaceSection, true, false},
};

bool Wanted(const Section& section, std::span<const std::string_view> names) {
  if (names.empty()) return section.by_default;
  return std::ranges::any_of(names, [&](std::string_view name) {
    if (base::EqualsNoCase(name, section.name)) return true;
    if (base::EqualsNoCase(name, "default")) return section.by_default;
    return base::EqualsNoCase(name, "all") || base::EqualsNoCase(name, "everything");
  });
}

void Info(Context& ctx) {
  EngineContext& ec = EngineContext::Of(ctx);
  ctx.reply().Verbatim("txt", InfoText(Server::Of(ctx), ec.lane(), ctx.args().subspan(1)));
}

constexpr commands::CommandSpec kRows[] = {
    {.name = "info",
     .handler = Info,
     .arity = -1,
     .flags = kAnytime,
     .acl = commands::kAclDangerous,
     .choose_lock = InfoLock,
     .group = "server",
     .since = "1.0.0",
     .summary = "Tells how the server is and what it did: all that it counts, in sections.",
     .complexity = "O(N) for N connections and commands",
     .arguments = "[section ...]",
     .reply = "text: headings and name:value lines",
     .example = "INFO server memory",
     .tips = "nondeterministic_output,request_policy:all_shards,response_policy:special"},
};

}  // namespace

std::string InfoText(Server& server, engine::Lane& lane,
                     std::span<const std::string_view> sections) {
  info::Writer out{server, server.engine(), lane, server.engine().clock().WallMillis(), {}};
  for (const Section& section : kSections) {
    if (!Wanted(section, sections)) continue;
    if (!out.text.empty()) out.text += "\r\n";
    out.Line("# {}", section.title);
    section.write(out);
  }
  return std::move(out.text);
}

commands::LockClass InfoLock(commands::Args args) {
  const bool clients = std::ranges::any_of(kSections, [&](const Section& section) {
    return section.about_clients && Wanted(section, args.subspan(1));
  });
  return clients ? commands::LockClass::kAll : commands::LockClass::kNone;
}

std::span<const commands::CommandSpec> InfoCommands() { return kRows; }

}  // namespace sava::server
