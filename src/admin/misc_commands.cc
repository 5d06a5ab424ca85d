// The administrative commands without a family of their own: TIME, MONITOR, MODULE, ROLE,
// REPLICAOF, FAILOVER, LOLWUT.
#include <fmt/format.h>

#include <string>

#include "admin/families.h"
#include "base/version.h"
#include "commands/family.h"
#include "commands/help.h"
#include "engine/engine_context.h"

namespace sava::admin {

namespace {

using commands::Context;
using engine::EngineContext;

void Time(Context& ctx) {
  const int64_t now = EngineContext::Of(ctx).engine().clock().WallMicros();
  ctx.reply().Array(2);
  ctx.reply().BulkInt(now / 1'000'000);
  ctx.reply().BulkInt(now % 1'000'000);
}

void Monitor(Context& ctx) {
  EngineContext& ec = EngineContext::Of(ctx);
  engine::Client& client = ec.client();
  if (client.has(engine::kClientInExec)) {
    return ctx.Error("ERR MONITOR isn't allowed for DENY BLOCKING client");
  }
  if (client.has(engine::kClientMonitor)) return;
  client.set(engine::kClientMonitor);
  ec.engine().observer().monitors().fetch_add(1, std::memory_order_relaxed);
  ctx.reply().Ok();
}

void Role(Context& ctx) {
  ctx.reply().Array(3);
  ctx.reply().Bulk("master");
  ctx.reply().Int(0);
  ctx.reply().Array(0);
}

void Replicaof(Context& ctx) {
  if (ctx.ArgIs(1, "NO") && ctx.ArgIs(2, "ONE")) return ctx.reply().Ok();
  int64_t port = 0;
  if (!base::ParseInt(ctx.arg(2), &port) || port < 0 || port > 65535) {
    return ctx.Error("ERR Invalid master port");
  }
  ctx.Error("ERR replication is not built yet: this server cannot follow another");
}

struct FailoverOptions {
  bool to = false;
  bool force = false;
  bool abort = false;
  bool timeout = false;
};

// Replies the error and returns false when the arguments are not right.
bool ParseFailover(Context& ctx, FailoverOptions* options) {
  for (size_t i = 1; i < ctx.argc(); ++i) {
    int64_t number = 0;
    const size_t more = ctx.argc() - i - 1;
    if (ctx.ArgIs(i, "TIMEOUT") && more >= 1 && !options->timeout) {
      if (!ctx.IntArg(++i, &number)) return false;
      if (number <= 0) {
        ctx.Error("ERR FAILOVER timeout must be greater than 0");
        return false;
      }
      options->timeout = true;
    } else if (ctx.ArgIs(i, "TO") && more >= 2 && !options->to) {
      i += 2;
      if (!ctx.IntArg(i, &number)) return false;
      options->to = true;
    } else if (ctx.ArgIs(i, "FORCE") && !options->force) {
      options->force = true;
    } else if (ctx.ArgIs(i, "ABORT") && !options->abort) {
      options->abort = true;
    } else {
      ctx.Error(commands::errors::kSyntax);
      return false;
    }
  }
  return true;
}

void Failover(Context& ctx) {
  FailoverOptions options;
  if (!ParseFailover(ctx, &options)) return;
  if (options.abort) {
    const bool others = options.to || options.force || options.timeout;
    return ctx.Error(others ? commands::errors::kSyntax : "ERR No failover in progress.");
  }
  ctx.Error("ERR FAILOVER requires connected replicas.");
}

void Lolwut(Context& ctx) {
  int64_t version = 0;
  if (ctx.argc() > 2 && ctx.ArgIs(1, "VERSION") && !ctx.IntArg(2, &version)) return;
  ctx.reply().Verbatim("txt", fmt::format("   ___\n"
                                          "  /   \\___    the river Sava, 990 km,\n"
                                          " /        \\__ from the Alps to the Danube\n"
                                          "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
                                          "Redis ver. {}, Sava ver. {}\n",
                                          base::kRedisVersion, base::kVersion));
}

// ---- MODULE ----

void ModuleList(Context& ctx) { ctx.reply().Array(0); }

void ModuleLoad(Context& ctx) {
  ctx.Error("ERR Error loading the extension: this server loads no modules");
}

void ModuleUnload(Context& ctx) {
  ctx.Error("ERR Error unloading module: no such module with that name");
}

constexpr uint32_t kModuleFlags = commands::kAdmin | commands::kNoscript;
constexpr uint32_t kModuleChange = kModuleFlags | commands::kNoAsyncLoading | commands::kProtected;

constexpr commands::CommandSpec kModuleSubcommands[] = {
    {.name = "help",
     .handler = commands::HelpCommand,
     .arity = 2,
     .flags = commands::kAnytime,
     .group = "server",
     .since = "5.0.0",
     .summary = "Shows this help.",
     .complexity = "O(1)",
     .reply = "array of lines",
     .example = "MODULE HELP"},
    {.name = "list",
     .handler = ModuleList,
     .arity = 2,
     .flags = kModuleFlags,
     .group = "server",
     .since = "4.0.0",
     .summary = "Lists the loaded modules: none.",
     .complexity = "O(1)",
     .reply = "array",
     .example = "MODULE LIST",
     .tips = "nondeterministic_output_order"},
    {.name = "load",
     .handler = ModuleLoad,
     .arity = -3,
     .flags = kModuleChange,
     .group = "server",
     .since = "4.0.0",
     .summary = "Loads a module; not built.",
     .complexity = "O(1)",
     .arguments = "path [arg ...]",
     .reply = "an error",
     .example = "MODULE LOAD module.so"},
    {.name = "loadex",
     .handler = ModuleLoad,
     .arity = -3,
     .flags = kModuleChange,
     .group = "server",
     .since = "7.0.0",
     .summary = "Loads a module with settings; not built.",
     .complexity = "O(1)",
     .arguments = "path [CONFIG name value ...] [ARGS arg...]",
     .reply = "an error",
     .example = "MODULE LOADEX module.so"},
    {.name = "unload",
     .handler = ModuleUnload,
     .arity = 3,
     .flags = kModuleChange,
     .group = "server",
     .since = "4.0.0",
     .summary = "Unloads a module; not built.",
     .complexity = "O(1)",
     .arguments = "name",
     .reply = "an error",
     .example = "MODULE UNLOAD module"},
};

constexpr uint32_t kReplicationFlags =
    commands::kAdmin | commands::kNoscript | commands::kStale | commands::kNoAsyncLoading;

constexpr commands::CommandSpec kRows[] = {
    {.name = "time",
     .handler = Time,
     .arity = 1,
     .flags = commands::kAnytime | commands::kFast,
     .group = "server",
     .since = "2.6.0",
     .summary = "Tells the server's time.",
     .complexity = "O(1)",
     .reply = "array: Unix seconds and microseconds",
     .example = "TIME",
     .tips = "nondeterministic_output"},
    {.name = "monitor",
     .handler = Monitor,
     .arity = 1,
     .flags = commands::kAdminFlags,
     .group = "server",
     .since = "1.0.0",
     .summary = "Shows every command that the server runs, until RESET or QUIT.",
     .complexity = "O(1)",
     .reply = "OK, then a line for each command",
     .example = "MONITOR"},
    {.name = "role",
     .handler = Role,
     .arity = 1,
     .flags = commands::kNoscript | commands::kAnytime | commands::kFast,
     .acl = commands::kAclAdmin | commands::kAclDangerous,
     .group = "server",
     .since = "2.8.12",
     .summary = "Tells whether the server is a master or a replica, and of whom.",
     .complexity = "O(1)",
     .reply = "array: master, offset, replicas",
     .example = "ROLE"},
    {.name = "replicaof",
     .handler = Replicaof,
     .arity = 3,
     .flags = kReplicationFlags,
     .group = "server",
     .since = "5.0.0",
     .summary = "Makes the server a replica or, with NO ONE, a master; only the latter is built.",
     .complexity = "O(1)",
     .arguments = "(args: host port | NO ONE)",
     .reply = "OK",
     .example = "REPLICAOF NO ONE"},
    {.name = "slaveof",
     .handler = Replicaof,
     .arity = 3,
     .flags = kReplicationFlags,
     .group = "server",
     .since = "1.0.0",
     .summary = "The old name of REPLICAOF.",
     .complexity = "O(1)",
     .arguments = "(args: host port | NO ONE)",
     .reply = "OK",
     .example = "SLAVEOF NO ONE",
     .deprecated_since = "5.0.0",
     .replaced_by = "`REPLICAOF`"},
    {.name = "failover",
     .handler = Failover,
     .arity = -1,
     .flags = commands::kAdmin | commands::kNoscript | commands::kStale,
     .group = "server",
     .since = "6.2.0",
     .summary = "Hands the mastership to a replica; there are none.",
     .complexity = "O(1)",
     .arguments = "[TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]",
     .reply = "an error",
     .example = "FAILOVER"},
    {.name = "lolwut",
     .handler = Lolwut,
     .arity = -1,
     .flags = commands::kReadonly | commands::kFast,
     .group = "server",
     .since = "5.0.0",
     .summary = "Shows a small picture and the version.",
     .complexity = "O(1)",
     .arguments = "[VERSION version:integer]",
     .reply = "text",
     .example = "LOLWUT"},
    {.name = "module",
     .arity = -2,
     .group = "server",
     .since = "4.0.0",
     .summary = "Shows and loads modules; there are none.",
     .complexity = "Depends on the subcommand",
     .subcommands = kModuleSubcommands},
};

}  // namespace

std::span<const commands::CommandSpec> AdminCommands() { return kRows; }

}  // namespace sava::admin
