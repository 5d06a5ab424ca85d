#include "server/shutdown_command.h"

#include "commands/family.h"
#include "engine/clients.h"
#include "engine/engine_context.h"
#include "server/server.h"

namespace sava::server {

namespace {

using commands::Context;

struct ShutdownWord {
  std::string_view name;
  uint32_t flag;
};
constexpr uint32_t kAbort = 1U << 31;
constexpr ShutdownWord kShutdownWords[] = {{"SAVE", config::kShutdownSave},
                                           {"NOSAVE", config::kShutdownNosave},
                                           {"NOW", config::kShutdownNow},
                                           {"FORCE", config::kShutdownForce},
                                           {"ABORT", kAbort}};

bool ParseShutdown(Context& ctx, uint32_t* flags) {
  for (size_t i = 1; i < ctx.argc(); ++i) {
    uint32_t flag = 0;
    for (const ShutdownWord& word : kShutdownWords) {
      if (ctx.ArgIs(i, word.name)) flag = word.flag;
    }
    if (flag == 0) return false;
    *flags |= flag;
  }
  constexpr uint32_t kBoth = config::kShutdownSave | config::kShutdownNosave;
  return (*flags & kBoth) != kBoth && ((*flags & kAbort) == 0 || *flags == kAbort);
}

void Shutdown(Context& ctx) {
  uint32_t flags = 0;
  if (!ParseShutdown(ctx, &flags)) return ctx.Error(commands::errors::kSyntax);
  if (flags == kAbort) {
    if (!ctx.part<Server>().AbortShutdown()) return ctx.Error("ERR No shutdown in progress.");
    return ctx.reply().Ok();
  }
  // A script that takes long would be in the way of the save.
  engine::Admission& admission = engine::EngineContext::Of(ctx).engine().admission();
  if (admission.busy() && (flags & config::kShutdownNosave) == 0) {
    return ctx.Error(admission.busy_error());
  }
  // No reply, and nothing more from this client: it hears the connection close, or why not.
  const engine::Client& client = engine::BlockForReply(ctx);
  ctx.part<Server>().RequestShutdown(flags, client.lane, client.id, client.wait.token);
}

constexpr commands::CommandSpec kRows[] = {
    {.name = "shutdown",
     .handler = Shutdown,
     .arity = -1,
     .flags = commands::kAdminFlags | commands::kNoMulti | commands::kAllowBusy,
     .group = "server",
     .since = "1.0.0",
     .summary = "Ends the server.",
     .complexity = "O(N) for N keys when saving, else O(1)",
     .arguments = "[save-selector: NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
     .reply = "nothing: the connection closes; an error when it stays",
     .example = "SHUTDOWN NOSAVE"},
};

}  // namespace

std::span<const commands::CommandSpec> ShutdownCommands() { return kRows; }

}  // namespace sava::server
