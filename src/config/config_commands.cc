// CONFIG: reads and changes the settings of the running server.
#include "config/config_commands.h"

#include <string>
#include <vector>

#include "commands/family.h"
#include "commands/help.h"
#include "config/config.h"

namespace sava::config {

namespace {

using commands::Context;

void Get(Context& ctx) {
  const auto found = ctx.part<Config>().Get(ctx.args().subspan(2));
  ctx.reply().Map(static_cast<int64_t>(found.size()));
  for (const auto& [name, value] : found) {
    ctx.reply().Bulk(name);
    ctx.reply().Bulk(value);
  }
}

void Set(Context& ctx) {
  for (size_t i = 2; i + 1 < ctx.argc(); i += 2) {
    const Setting* setting = FindSetting(ctx.arg(i));
    if (setting != nullptr && setting->has(kSensitive)) ctx.Redact(i + 1);
  }
  const base::Status status = ctx.part<Config>().Set(ctx.args().subspan(2), ctx.is_local());
  status.ok() ? ctx.reply().Ok() : ctx.Error(status.error());
}

void Rewrite(Context& ctx) {
  const base::Status status = ctx.part<Config>().Rewrite();
  status.ok() ? ctx.reply().Ok() : ctx.Error(status.error());
}

void Resetstat(Context& ctx) {
  ctx.part<Config>().ResetStats();
  ctx.reply().Ok();
}

constexpr commands::CommandSpec kSubcommands[] = {
    {.name = "get",
     .handler = Get,
     .arity = -3,
     .flags = commands::kAdminFlags,
     .group = "server",
     .since = "2.0.0",
     .summary = "Shows the settings whose names match any of some patterns.",
     .complexity = "O(N*M) for N patterns and M settings",
     .arguments = "parameter ...",
     .reply = "map: name and value",
     .example = "CONFIG GET maxmemory*"},
    {.name = "help",
     .handler = commands::HelpCommand,
     .arity = 2,
     .flags = commands::kAnytime,
     .group = "server",
     .since = "5.0.0",
     .summary = "Shows this help.",
     .complexity = "O(1)",
     .reply = "array of lines",
     .example = "CONFIG HELP"},
    {.name = "resetstat",
     .handler = Resetstat,
     .arity = 2,
     .flags = commands::kAdminFlags,
     .lock = commands::LockClass::kAll,
     .group = "server",
     .since = "2.0.0",
     .summary = "Puts the counters that INFO shows back to zero.",
     .complexity = "O(1)",
     .reply = "OK",
     .example = "CONFIG RESETSTAT"},
    {.name = "rewrite",
     .handler = Rewrite,
     .arity = 2,
     .flags = commands::kAdminFlags,
     .group = "server",
     .since = "2.8.0",
     .summary = "Writes the settings in effect into the configuration file.",
     .complexity = "O(N) for N lines of the file",
     .reply = "OK",
     .example = "CONFIG REWRITE"},
    {.name = "set",
     .handler = Set,
     .arity = -4,
     .flags = commands::kAdminFlags,
     .lock = commands::LockClass::kAll,
     .group = "server",
     .since = "2.0.0",
     .summary = "Changes settings of the running server, all of those given or none.",
     .complexity = "O(N) for N settings",
     .arguments = "(parameter value)...",
     .reply = "OK",
     .example = "CONFIG SET maxmemory 100mb maxmemory-policy allkeys-lru",
     .tips = "request_policy:all_nodes,response_policy:all_succeeded"},
};

constexpr commands::CommandSpec kRows[] = {
    {.name = "config",
     .arity = -2,
     .group = "server",
     .since = "2.0.0",
     .summary = "Shows, changes and saves the settings of the server.",
     .complexity = "Depends on the subcommand",
     .subcommands = kSubcommands},
};

}  // namespace

std::span<const commands::CommandSpec> ConfigCommands() { return kRows; }

}  // namespace sava::config
