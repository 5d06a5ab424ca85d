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
  // Time does not move while a script runs.
  const int64_t now =
      ctx.in_script() ? ctx.now_ms() * 1000 : EngineContext::Of(ctx).engine().clock().WallMicros();
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
