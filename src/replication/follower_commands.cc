// REPLICAOF and SLAVEOF: whom this server follows.
#include <spdlog/spdlog.h>

#include "base/text.h"
#include "commands/family.h"
#include "engine/client_list.h"
#include "engine/engine_context.h"
#include "replication/follower.h"

namespace sava::replication {

namespace {

using commands::Context;
using engine::EngineContext;

void Replicaof(Context& ctx) {
  Follower& follower = ctx.part<Follower>();
  EngineContext& ec = EngineContext::Of(ctx);
  const auto who = [&] { return engine::ClientLine(ec.client(), ctx.now_ms()); };
  if (ctx.ArgIs(1, "NO") && ctx.ArgIs(2, "ONE")) {
    if (follower.is_replica()) {
      follower.Promote(ec.lane());
      spdlog::info("MASTER MODE enabled (user request from '{}')", who());
    }
    return ctx.reply().Ok();
  }
  if (ec.client().has(engine::kClientReplica)) {
    return ctx.Error("ERR Command is not valid when client is a replica.");
  }
  int64_t port = 0;
  if (!base::ParseInt(ctx.arg(2), &port) || port < 0 || port > 65535) {
    return ctx.Error("ERR Invalid master port");
  }
  if (follower.Follows(ctx.arg(1), static_cast<int>(port))) {
    spdlog::info(
        "REPLICAOF would result into synchronization with the master we are already "
        "connected with. No operation performed.");
    return ctx.reply().Simple("OK Already connected to specified master");
  }
  follower.Follow(ec.lane(), std::string(ctx.arg(1)), static_cast<int>(port));
  spdlog::info("REPLICAOF {}:{} enabled (user request from '{}')", ctx.arg(1), port, who());
  ctx.reply().Ok();
}

constexpr uint32_t kFlags =
    commands::kAdmin | commands::kNoscript | commands::kStale | commands::kNoAsyncLoading;

constexpr commands::CommandSpec kRows[] = {
    {.name = "replicaof",
     .handler = Replicaof,
     .arity = 3,
     .flags = kFlags,
     .lock = commands::LockClass::kAll,
     .group = "server",
     .since = "5.0.0",
     .summary = "Makes the server a replica of another or, with NO ONE, a master.",
     .complexity = "O(1)",
     .arguments = "(args: host port | NO ONE)",
     .reply = "OK",
     .example = "REPLICAOF NO ONE"},
    {.name = "slaveof",
     .handler = Replicaof,
     .arity = 3,
     .flags = kFlags,
     .lock = commands::LockClass::kAll,
     .group = "server",
     .since = "1.0.0",
     .summary = "The old name of REPLICAOF.",
     .complexity = "O(1)",
     .arguments = "(args: host port | NO ONE)",
     .reply = "OK",
     .example = "SLAVEOF NO ONE",
     .deprecated_since = "5.0.0",
     .replaced_by = "`REPLICAOF`"},
};

}  // namespace

std::span<const commands::CommandSpec> FollowerCommands() { return kRows; }

}  // namespace sava::replication
