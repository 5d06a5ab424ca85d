// MEMORY: where the memory goes.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "admin/families.h"
#include "admin/info.h"
#include "admin/process_facts.h"
#include "admin/process_monitor.h"
#include "base/process_memory.h"
#include "commands/family.h"
#include "commands/help.h"
#include "engine/engine_context.h"
#include "types/value/type_registry.h"

namespace sava::admin {

namespace {

using commands::Context;
using engine::EngineContext;

void Usage(Context& ctx) {
  int64_t samples = 5;
  for (size_t i = 3; i < ctx.argc(); i += 2) {
    if (!ctx.ArgIs(i, "SAMPLES") || i + 1 == ctx.argc()) {
      return ctx.Error(commands::errors::kSyntax);
    }
    if (!ctx.IntArg(i + 1, &samples)) return;
    if (samples < 0) return ctx.Error(commands::errors::kSyntax);
  }
  if (!ctx.Exists(ctx.arg(2))) return ctx.reply().Null();
  ctx.reply().Int(ctx.MemoryOf(ctx.arg(2), static_cast<size_t>(samples)));
}

// Counts the pairs it writes; Done puts the map's header before them.
class PairWriter {
 public:
  explicit PairWriter(protocol::Reply& reply) : reply_(reply), mark_(reply.Mark()) {}
  void Int(std::string_view name, size_t value) {
    Name(name);
    reply_.Int(static_cast<int64_t>(value));
  }
  void SignedInt(std::string_view name, int64_t value) {
    Name(name);
    reply_.Int(value);
  }
  void Double(std::string_view name, double value) {
    Name(name);
    reply_.Double(value);
  }
  void Name(std::string_view name) {
    reply_.Bulk(name);
    ++pairs_;
  }
  void Done() { reply_.MapAt(mark_, pairs_); }

 private:
  protocol::Reply& reply_;
  size_t mark_;
  int64_t pairs_ = 0;
};

// What the index and the expiries of a database's keys take: a slot each, a time and a wheel item
// each.
constexpr size_t kSlotBytes = 8;
constexpr size_t kExpiryBytes = 16;

void ReplyDatabases(PairWriter& out, protocol::Reply& reply, const keyspace::Keyspace& keyspace) {
  for (int db = 0; db < keyspace.databases(); ++db) {
    const size_t keys = keyspace.Size(db);
    if (keys == 0) continue;
    out.Name(fmt::format("db.{}", db));
    PairWriter fields(reply);
    fields.Int("overhead.hashtable.main", keys * kSlotBytes);
    fields.Int("overhead.hashtable.expires", keyspace.Expiring(db) * kExpiryBytes);
    fields.Int("overhead.hashtable.slot-to-keys", 0);
    fields.Done();
  }
}

void Stats(Context& ctx) {
  const MemoryFigures memory = ctx.part<ProcessMonitor>().Memory();
  engine::Engine& engine = EngineContext::Of(ctx).engine();
  const keyspace::Keyspace& keyspace = engine.keyspace();
  engine::ScriptFigures scripts;
  if (engine.scripting() != nullptr) scripts = engine.scripting()->Figures();
  const size_t net = memory.used > memory.startup ? memory.used - memory.startup : 0;
  const size_t keys = keyspace.AllKeys();

  PairWriter out(ctx.reply());
  out.Int("peak.allocated", memory.peak);
  out.Int("total.allocated", memory.used);
  out.Int("startup.allocated", memory.startup);
  const engine::ReplicationFigures replication = ctx.part<ProcessFacts>().replication();
  out.Int("replication.backlog", static_cast<size_t>(replication.backlog_bytes));
  out.Int("clients.slaves",
          static_cast<size_t>(replication.buffer_bytes - replication.backlog_bytes +
                              replication.transfer_bytes));
  out.Int("clients.normal", memory.clients);
  out.Int("cluster.links", 0);
  out.Int("aof.buffer", 0);
  out.Int("lua.caches", static_cast<int64_t>(scripts.vm_eval + scripts.script_bytes));
  out.Int("functions.caches",
          static_cast<int64_t>(scripts.vm_functions + engine.libraries().bytes()));
  ReplyDatabases(out, ctx.reply(), keyspace);
  out.Int("overhead.total", memory.overhead);
  out.Int("keys.count", keys);
  out.Int("keys.bytes-per-key", keys == 0 ? 0 : net / keys);
  out.Int("dataset.bytes", memory.dataset);
  out.Double("dataset.percentage", engine::Ratio(memory.dataset, net) * 100);
  out.Double("peak.percentage", engine::Ratio(memory.used, memory.peak) * 100);
  out.Int("allocator.allocated", memory.allocated);
  out.Int("allocator.active", memory.active);
  out.Int("allocator.resident", memory.resident);
  out.Double("allocator-fragmentation.ratio", engine::Ratio(memory.active, memory.allocated));
  out.SignedInt("allocator-fragmentation.bytes",
                engine::Difference(memory.active, memory.allocated));
  out.Double("allocator-rss.ratio", engine::Ratio(memory.resident, memory.active));
  out.SignedInt("allocator-rss.bytes", engine::Difference(memory.resident, memory.active));
  out.Double("rss-overhead.ratio", engine::Ratio(memory.rss, memory.resident));
  out.SignedInt("rss-overhead.bytes", engine::Difference(memory.rss, memory.resident));
  out.Double("fragmentation", engine::Ratio(memory.rss, memory.used));
  out.SignedInt("fragmentation.bytes", engine::Difference(memory.rss, memory.used));
  for (const types::SharedStore& store : types::AllTypes().shared_stores()) {
    out.Int(fmt::format("{}.count", store.name), store.count());
    out.Int(fmt::format("{}.bytes", store.name), store.bytes());
  }
  out.Done();
}

// Below this nothing can be said.
constexpr size_t kTooLittle = 5 << 20;

void Doctor(Context& ctx) {
  const MemoryFigures memory = ctx.part<ProcessMonitor>().Memory();
  std::string text;
  if (memory.used < kTooLittle) {
    text = "There is hardly any data here yet, so nothing can be said about its memory.\n";
    return ctx.reply().Verbatim("txt", text);
  }
  if (engine::Ratio(memory.peak, memory.used) > 1.5) {
    text += fmt::format(
        "- Once {} were in use, now only {}. The system may not have got all of the rest back; "
        "MEMORY PURGE gives back what can be given.\n",
        base::HumanBytes(memory.peak), base::HumanBytes(memory.used));
  }
  if (engine::Ratio(memory.rss, memory.used) > 1.4 &&
      engine::Difference(memory.rss, memory.used) > (10 << 20)) {
    text += fmt::format(
        "- The process holds {}, {:.2f} times what is in use. Free memory is scattered; it is "
        "compacted little by little.\n",
        base::HumanBytes(memory.rss), engine::Ratio(memory.rss, memory.used));
  }
  const size_t connections = std::max<size_t>(ctx.part<ProcessFacts>().client_count(), 1);
  if (memory.clients / connections > (200 << 10)) {
    text += fmt::format(
        "- Connections hold {} each on average. Some client sends or fetches a lot, or reads "
        "slowly: CLIENT LIST shows them (omem, qbuf).\n",
        base::HumanBytes(memory.clients / connections));
  }
  const uint64_t limit = EngineContext::Of(ctx).engine().settings().maxmemory;
  if (limit != 0 && memory.used > limit / 20 * 19) {
    text += "- Memory is nearly at maxmemory: keys will be evicted or writes refused.\n";
  }
  if (text.empty()) text = "No problem with memory was found.\n";
  ctx.reply().Verbatim("txt", text);
}

void Purge(Context& ctx) {
  ctx.part<ProcessMonitor>().Purge();
  ctx.reply().Ok();
}

void MallocStats(Context& ctx) { ctx.reply().Verbatim("txt", base::AllocatorReport()); }

constexpr std::string_view kReportTips =
    "nondeterministic_output,request_policy:all_shards,response_policy:special";

constexpr commands::CommandSpec kSubcommands[] = {
    {.name = "doctor",
     .handler = Doctor,
     .arity = 2,
     .group = "server",
     .since = "4.0.0",
     .summary = "Tells in words whether something is wrong with the memory.",
     .complexity = "O(1)",
     .reply = "text",
     .example = "MEMORY DOCTOR",
     .tips = kReportTips},
    {.name = "help",
     .handler = commands::HelpCommand,
     .arity = 2,
     .flags = commands::kAnytime,
     .group = "server",
     .since = "4.0.0",
     .summary = "Shows this help.",
     .complexity = "O(1)",
     .reply = "array of lines",
     .example = "MEMORY HELP"},
    {.name = "malloc-stats",
     .handler = MallocStats,
     .arity = 2,
     .group = "server",
     .since = "4.0.0",
     .summary = "Shows the allocator's own statistics.",
     .complexity = "O(N) for N arenas",
     .reply = "text",
     .example = "MEMORY MALLOC-STATS",
     .tips = kReportTips},
    {.name = "purge",
     .handler = Purge,
     .arity = 2,
     .group = "server",
     .since = "4.0.0",
     .summary = "Gives memory that is not in use back to the system.",
     .complexity = "O(N) for N free pages",
     .reply = "OK",
     .example = "MEMORY PURGE",
     .tips = "request_policy:all_shards,response_policy:all_succeeded"},
    {.name = "stats",
     .handler = Stats,
     .arity = 2,
     .group = "server",
     .since = "4.0.0",
     .summary = "Shows what the memory is used for.",
     .complexity = "O(1)",
     .reply = "map: name and number, for each database a map",
     .example = "MEMORY STATS",
     .tips = kReportTips},
    {.name = "usage",
     .handler = Usage,
     .arity = -3,
     .flags = commands::kReadonly,
     .keys = {commands::KeyAt(2, commands::kKeyRo)},
     .group = "server",
     .since = "4.0.0",
     .summary = "Estimates how many bytes a key and its value take.",
     .complexity = "O(N) for N samples",
     .arguments = "key [SAMPLES count]",
     .reply = "integer, or null when the key is missing",
     .example = "MEMORY USAGE greeting"},
};

constexpr commands::CommandSpec kRows[] = {
    {.name = "memory",
     .arity = -2,
     .group = "server",
     .since = "4.0.0",
     .summary = "Shows where the memory goes.",
     .complexity = "Depends on the subcommand",
     .subcommands = kSubcommands},
};

}  // namespace

std::span<const commands::CommandSpec> MemoryCommands() { return kRows; }

}  // namespace sava::admin
