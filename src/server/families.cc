#include "server/families.h"

#include <algorithm>
#include <string>

#include "engine/engine_context.h"
#include "server/server.h"

namespace sava::server {

std::vector<std::span<const commands::CommandSpec>> ServerFamilies() {
  return {ConnectionCommands(), ClientCommands(),  ConfigCommands(), InfoCommands(),
          SlowlogCommands(),    LatencyCommands(), MemoryCommands(), DebugCommands(),
          AclCommands(),        ClusterCommands(), AdminCommands(),  PersistenceCommands()};
}

void WrongSubcommand(commands::Context& ctx) {
  std::string text = "ERR unknown subcommand or wrong number of arguments for '";
  text += ctx.arg(1).substr(0, 128);
  text += "'. Try " + base::ToUpper(ctx.arg(0)) + " HELP.";
  ctx.Error(text);
}

bool TimeoutArg(commands::Context& ctx, size_t i, int64_t* until) {
  int64_t millis = 0;
  if (!ctx.IntArg(i, &millis, "ERR timeout is not an integer or out of range")) return false;
  if (millis < 0) {
    ctx.Error("ERR timeout is negative");
    return false;
  }
  *until = 0;
  if (millis > 0 && __builtin_add_overflow(millis, ctx.now_ms(), until)) {
    ctx.Error("ERR timeout is out of range");
    return false;
  }
  return true;
}

engine::Client& BlockForReply(commands::Context& ctx, int64_t until,
                              void (*on_timeout)(engine::Client&)) {
  engine::EngineContext& ec = engine::EngineContext::Of(ctx);
  engine::Client& client = ec.client();
  ec.lane().waits.AwaitAnswer(client, until, on_timeout);
  return client;
}

bool IsPlainName(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return c >= '!' && c <= '~'; });
}

}  // namespace sava::server
