// The commands of persistence: SAVE, BGSAVE, LASTSAVE, BGREWRITEAOF.
#include <string>

#include "commands/family.h"
#include "engine/clients.h"
#include "engine/engine_context.h"
#include "persistence/families.h"
#include "persistence/persistence.h"

namespace sava::persistence {

namespace {

using commands::Context;
using engine::EngineContext;
using Started = Persistence::Started;

bool InExec(Context& ctx) { return EngineContext::Of(ctx).client().has(engine::kClientInExec); }

void Save(Context& ctx) {
  Persistence& persistence = ctx.part<Persistence>();
  const Persistence::Figures now = persistence.figures();
  if (now.activity == Persistence::Activity::kBgsave && !now.save.runs_after_flush) {
    return ctx.Error("ERR Background save already in progress");
  }
  const engine::Client& client = engine::BlockForReply(ctx);
  persistence.Save({client.lane, client.id, client.wait.token});
}

void Bgsave(Context& ctx) {
  const bool schedule = ctx.argc() > 1;
  if (schedule && (ctx.argc() > 2 || !ctx.ArgIs(1, "SCHEDULE"))) {
    return ctx.Error(commands::errors::kSyntax);
  }
  switch (ctx.part<Persistence>().StartSave(schedule, InExec(ctx))) {
    case Started::kStarted:
      return ctx.reply().Simple("Background saving started");
    case Started::kScheduled:
      return ctx.reply().Simple("Background saving scheduled");
    case Started::kBusySame:
      return ctx.Error("ERR Background save already in progress");
    case Started::kBusyOther:
      return ctx.Error(
          "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE "
          "in order to schedule a BGSAVE whenever possible.");
  }
}

void Bgrewriteaof(Context& ctx) {
  switch (ctx.part<Persistence>().StartRewrite(InExec(ctx))) {
    case Started::kStarted:
      return ctx.reply().Simple("Background append only file rewriting started");
    case Started::kScheduled:
      return ctx.reply().Simple("Background append only file rewriting scheduled");
    case Started::kBusySame:
    case Started::kBusyOther:
      return ctx.Error("ERR Background append only file rewriting already in progress");
  }
}

void Lastsave(Context& ctx) { ctx.reply().Int(ctx.part<Persistence>().figures().save.last_s); }

constexpr uint32_t kSaveFlags = commands::kAdmin | commands::kNoscript | commands::kNoAsyncLoading;

constexpr commands::CommandSpec kRows[] = {
    {.name = "save",
     .handler = Save,
     .arity = 1,
     .flags = kSaveFlags | commands::kNoMulti,
     .group = "server",
     .since = "1.0.0",
     .summary = "Saves a snapshot and answers when it is on disk; others are served meanwhile.",
     .complexity = "O(N) for N keys",
     .reply = "OK",
     .example = "SAVE"},
    {.name = "bgsave",
     .handler = Bgsave,
     .arity = -1,
     .flags = kSaveFlags,
     .group = "server",
     .since = "1.0.0",
     .summary = "Saves a snapshot in the background.",
     .complexity = "O(1)",
     .arguments = "[SCHEDULE]",
     .reply = "a line that says so",
     .example = "BGSAVE"},
    {.name = "lastsave",
     .handler = Lastsave,
     .arity = 1,
     .flags = commands::kAnytime | commands::kFast,
     .acl = commands::kAclAdmin | commands::kAclDangerous,
     .group = "server",
     .since = "1.0.0",
     .summary = "Tells when the last snapshot was saved.",
     .complexity = "O(1)",
     .reply = "integer: Unix seconds",
     .example = "LASTSAVE",
     .tips = "nondeterministic_output"},
    {.name = "bgrewriteaof",
     .handler = Bgrewriteaof,
     .arity = 1,
     .flags = kSaveFlags,
     .group = "server",
     .since = "1.0.0",
     .summary =
         "Starts a new base of the append-only log from the present data, in the background.",
     .complexity = "O(1)",
     .reply = "a line that says so",
     .example = "BGREWRITEAOF"},
};

}  // namespace

std::span<const commands::CommandSpec> PersistenceCommands() { return kRows; }

}  // namespace sava::persistence
