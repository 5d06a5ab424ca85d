// INFO: which sections are wanted, and the text of all of them. This room's sections are in
// info_server.cc (the process), info_memory.cc and info_stats.cc (what was counted).
#include "admin/info.h"

#include <algorithm>

#include "admin/families.h"
#include "admin/info_sections.h"
#include "base/text.h"
#include "commands/family.h"
#include "engine/engine_context.h"

namespace sava::admin {

namespace {

using commands::Context;
using engine::EngineContext;

// Sections whose figures come from every connection.
constexpr std::string_view kAboutClients[] = {"clients", "memory"};

bool Wanted(const engine::InfoSection& section, std::span<const std::string_view> names) {
  if (names.empty()) return section.by_default;
  return std::ranges::any_of(names, [&](std::string_view name) {
    if (base::EqualsNoCase(name, section.name)) return true;
    if (base::EqualsNoCase(name, "default")) return section.by_default;
    return base::EqualsNoCase(name, "all") || base::EqualsNoCase(name, "everything");
  });
}

void Info(Context& ctx) {
  EngineContext& ec = EngineContext::Of(ctx);
  ctx.reply().Verbatim("txt", InfoText(ec.engine(), ec.lane(), ctx.args().subspan(1)));
}

constexpr commands::CommandSpec kRows[] = {
    {.name = "info",
     .handler = Info,
     .arity = -1,
     .flags = commands::kAnytime,
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

std::string InfoText(engine::Engine& engine, engine::Lane& lane,
                     std::span<const std::string_view> names) {
  engine::InfoWriter out{engine, lane, engine.clock().WallMillis(), {}};
  for (const engine::InfoSection& section : out.part<InfoSections>().all) {
    if (!Wanted(section, names)) continue;
    if (!out.text.empty()) out.text += "\r\n";
    out.Line("# {}", section.title);
    section.write(out);
  }
  return std::move(out.text);
}

commands::LockClass InfoLock(commands::Args args) {
  const bool clients = std::ranges::any_of(kAboutClients, [&](std::string_view name) {
    return Wanted({name, {}, nullptr, true}, args.subspan(1));
  });
  return clients ? commands::LockClass::kAll : commands::LockClass::kNone;
}

InfoSections::InfoSections(engine::InfoSection clients, engine::InfoSection persistence,
                           engine::InfoSection replication)
    : all{{"server", "Server", ServerSection},
          clients,
          {"memory", "Memory", MemorySection},
          persistence,
          {"stats", "Stats", StatsSection},
          replication,
          {"cpu", "CPU", CpuSection},
          {"modules", "Modules", ModulesSection},
          {"commandstats", "Commandstats", CommandstatsSection, false},
          {"errorstats", "Errorstats", ErrorstatsSection},
          {"latencystats", "Latencystats", LatencystatsSection, false},
          {"cluster", "Cluster", ClusterSection},
          {"sava", "Sava", SavaSection, false},
          {"ratelimit", "Ratelimit", RatelimitSection, false},
          {"keyspace", "Keyspace", KeyspaceSection}} {}

std::span<const commands::CommandSpec> InfoCommands() { return kRows; }

}  // namespace sava::admin
