// SLOWLOG: the commands that took long.
#include "admin/families.h"
#include "commands/family.h"
#include "commands/help.h"
#include "engine/engine_context.h"

namespace sava::admin {

namespace {

using commands::Context;
using engine::EngineContext;

engine::SlowLog& LogOf(Context& ctx) {
  return EngineContext::Of(ctx).engine().observer().slowlog();
}

void Get(Context& ctx) {
  if (ctx.argc() > 3) return commands::WrongSubcommand(ctx);
  int64_t count = 10;
  if (ctx.argc() == 3 && (!base::ParseInt(ctx.arg(2), &count) || count < -1)) {
    return ctx.Error("ERR count should be greater than or equal to -1");
  }
  protocol::Reply& reply = ctx.reply();
  const std::vector<engine::SlowEntry> entries = LogOf(ctx).Newest(count);
  reply.Array(static_cast<int64_t>(entries.size()));
  for (const engine::SlowEntry& entry : entries) {
    reply.Array(6);
    reply.Int(entry.id);
    reply.Int(entry.unix_time);
    reply.Int(entry.micros);
    reply.Array(static_cast<int64_t>(entry.args.size()));
    for (const std::string& arg : entry.args) reply.Bulk(arg);
    reply.Bulk(entry.peer);
    reply.Bulk(entry.client_name);
  }
}

void Len(Context& ctx) { ctx.reply().Int(static_cast<int64_t>(LogOf(ctx).size())); }

void Reset(Context& ctx) {
  LogOf(ctx).Reset();
  ctx.reply().Ok();
}

constexpr uint32_t kFlags = commands::kAdmin | commands::kAnytime;

constexpr commands::CommandSpec kSubcommands[] = {
    {.name = "get",
     .handler = Get,
     .arity = -2,
     .flags = kFlags,
     .group = "server",
     .since = "2.2.12",
     .summary = "Shows the latest slow commands, ten or as many as wanted; -1 means all.",
     .complexity = "O(N) for N entries",
     .arguments = "[count]",
     .reply = "array of entries: number, time, microseconds, arguments, address, client name",
     .example = "SLOWLOG GET 5",
     .tips = "request_policy:all_nodes,nondeterministic_output"},
    {.name = "help",
     .handler = commands::HelpCommand,
     .arity = 2,
     .flags = commands::kAnytime,
     .group = "server",
     .since = "6.2.0",
     .summary = "Shows this help.",
     .complexity = "O(1)",
     .reply = "array of lines",
     .example = "SLOWLOG HELP"},
    {.name = "len",
     .handler = Len,
     .arity = 2,
     .flags = kFlags,
     .group = "server",
     .since = "2.2.12",
     .summary = "Counts the entries of the slow log.",
     .complexity = "O(1)",
     .reply = "integer",
     .example = "SLOWLOG LEN",
     .tips = "request_policy:all_nodes,response_policy:agg_sum,nondeterministic_output"},
    {.name = "reset",
     .handler = Reset,
     .arity = 2,
     .flags = kFlags,
     .group = "server",
     .since = "2.2.12",
     .summary = "Empties the slow log.",
     .complexity = "O(N) for N entries",
     .reply = "OK",
     .example = "SLOWLOG RESET",
     .tips = "request_policy:all_nodes,response_policy:all_succeeded"},
};

constexpr commands::CommandSpec kRows[] = {
    {.name = "slowlog",
     .arity = -2,
     .group = "server",
     .since = "2.2.12",
     .summary = "Shows which commands took long.",
     .complexity = "Depends on the subcommand",
     .subcommands = kSubcommands},
};

}  // namespace

std::span<const commands::CommandSpec> SlowlogCommands() { return kRows; }

}  // namespace sava::admin
