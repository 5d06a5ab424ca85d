// HELLO, PING, ECHO, QUIT, RESET and WAIT: what a client says about its own connection.
#include <string>

#include "access/authenticate.h"
#include "base/version.h"
#include "commands/errors.h"
#include "commands/family.h"
#include "engine/access_check.h"
#include "engine/engine_context.h"
#include "front/client_commands.h"
#include "front/families.h"

namespace sava::front {

namespace {

using commands::Context;
using engine::EngineContext;

struct HelloOptions {
  int64_t version = 0;  // 0: stay with the version in use
  size_t user_arg = 0;  // where AUTH's user is, the password follows; 0: no AUTH
  size_t name_arg = 0;  // where SETNAME's name is; 0: no SETNAME
};

// Replies the error and returns false when the arguments are not right.
bool ParseHello(Context& ctx, HelloOptions* options) {
  if (ctx.argc() == 1) return true;
  if (!ctx.IntArg(1, &options->version, "ERR Protocol version is not an integer or out of range")) {
    return false;
  }
  if (options->version < 2 || options->version > 3) {
    ctx.Error("NOPROTO unsupported protocol version");
    return false;
  }
  for (size_t i = 2; i < ctx.argc(); ++i) {
    const size_t more = ctx.argc() - i - 1;
    if (ctx.ArgIs(i, "AUTH") && more >= 2) {
      options->user_arg = i + 1;
      ctx.Redact(i + 1);
      ctx.Redact(i + 2);
      i += 2;
    } else if (ctx.ArgIs(i, "SETNAME") && more >= 1) {
      options->name_arg = ++i;
      if (!IsPlainName(ctx.arg(i))) {
        ctx.Error(commands::errors::kClientName);
        return false;
      }
    } else {
      ctx.Error("ERR Syntax error in HELLO option '" + std::string(ctx.arg(i)) + "'");
      return false;
    }
  }
  return true;
}

void Hello(Context& ctx) {
  HelloOptions options;
  if (!ParseHello(ctx, &options)) return;
  engine::Client& client = EngineContext::Of(ctx).client();
  if (options.user_arg != 0 &&
      !access::Authenticate(ctx, ctx.arg(options.user_arg), ctx.arg(options.user_arg + 1))) {
    return;
  }
  if (!client.authenticated) {
    return ctx.Error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "AUTH <user> <pass> option can be used to authenticate the client and select the RESP "
        "protocol version at the same time");
  }
  if (options.name_arg != 0) client.name = ctx.arg(options.name_arg);
  if (options.version != 0) client.resp = static_cast<int>(options.version);

  protocol::Reply& reply = ctx.reply();
  reply.set_resp(client.resp);
  reply.Map(7);
  reply.Bulk("server");
  reply.Bulk("redis");
  reply.Bulk("version");
  reply.Bulk(base::kRedisVersion);
  reply.Bulk("proto");
  reply.Int(client.resp);
  reply.Bulk("id");
  reply.Int(static_cast<int64_t>(client.id));
  reply.Bulk("mode");
  reply.Bulk("standalone");
  reply.Bulk("role");
  reply.Bulk("master");
  reply.Bulk("modules");
  reply.Array(0);
}

void Ping(Context& ctx) {
  if (ctx.argc() > 2) return ctx.ArityError();
  const engine::Client& client = EngineContext::Of(ctx).client();
  if (client.subscribed() && client.resp == 2) {
    ctx.reply().Array(2);
    ctx.reply().Bulk("pong");
    ctx.reply().Bulk(ctx.argc() == 2 ? ctx.arg(1) : "");
  } else if (ctx.argc() == 2) {
    ctx.reply().Bulk(ctx.arg(1));
  } else {
    ctx.reply().Simple("PONG");
  }
}

void Echo(Context& ctx) { ctx.reply().Bulk(ctx.arg(1)); }

void Quit(Context& ctx) {
  ctx.reply().Ok();
  EngineContext::Of(ctx).client().set(engine::kClientCloseAfterReply);
}

void Reset(Context& ctx) {
  EngineContext& ec = EngineContext::Of(ctx);
  ec.engine().ResetClient(ec.lane(), ec.client());
  engine::BecomeDefaultUser(ec.engine(), ec.client());
  ctx.reply().set_resp(ec.client().resp);
  ctx.reply().Simple("RESET");
}

constexpr uint32_t kHandshake =
    commands::kConnectionFlags | commands::kFast | commands::kNoAuth | commands::kAllowBusy;

constexpr commands::CommandSpec kRows[] = {
    {.name = "hello",
     .handler = Hello,
     .arity = -1,
     .flags = kHandshake,
     .acl = commands::kAclConnection,
     .group = "connection",
     .since = "6.0.0",
     .summary = "Chooses the protocol, if wanted with a password and a name, and asks who serves.",
     .complexity = "O(1)",
     .arguments = "[protover:integer [AUTH username password] [SETNAME clientname]]",
     .reply = "map: server, version, proto, id, mode, role, modules",
     .example = "HELLO 3 SETNAME worker"},
    {.name = "ping",
     .handler = Ping,
     .arity = -1,
     .flags = commands::kFast,
     .traits = commands::kWhileSubscribed | commands::kTellsHealth,
     .acl = commands::kAclConnection,
     .group = "connection",
     .since = "1.0.0",
     .summary = "Asks the server whether it is there.",
     .complexity = "O(1)",
     .arguments = "[message]",
     .reply = "PONG, or the message as a bulk string",
     .example = "PING",
     .tips = "request_policy:all_shards,response_policy:all_succeeded"},
    {.name = "echo",
     .handler = Echo,
     .arity = 2,
     .flags = commands::kAnytime | commands::kFast,
     .acl = commands::kAclConnection,
     .group = "connection",
     .since = "1.0.0",
     .summary = "Sends a text back.",
     .complexity = "O(1)",
     .arguments = "message",
     .reply = "bulk string: the message",
     .example = "ECHO hello"},
    {.name = "quit",
     .handler = Quit,
     .arity = -1,
     .flags = kHandshake,
     .traits = commands::kInsideMulti | commands::kWhileSubscribed,
     .acl = commands::kAclConnection,
     .group = "connection",
     .since = "1.0.0",
     .summary = "Closes the connection after the replies that are still due.",
     .complexity = "O(1)",
     .reply = "OK",
     .example = "QUIT",
     .deprecated_since = "7.2.0",
     .replaced_by = "closing the connection"},
    {.name = "reset",
     .handler = Reset,
     .arity = 1,
     .flags = kHandshake,
     .traits = commands::kInsideMulti | commands::kWhileSubscribed,
     .acl = commands::kAclConnection,
     .group = "connection",
     .since = "6.2.0",
     .summary = "Makes the connection as if it were new: no transaction, no subscriptions, "
                "database 0, RESP2.",
     .complexity = "O(N) for N watched keys and subscriptions",
     .reply = "RESET",
     .example = "RESET"},
};

}  // namespace

std::span<const commands::CommandSpec> ConnectionCommands() { return kRows; }

}  // namespace sava::front
