// CLIENT: its rows, and the subcommands that concern only the connection that calls them. The
// others are in client_others.cc.
#include "front/client_commands.h"

#include <string>

#include "commands/blocking.h"
#include "commands/errors.h"
#include "commands/family.h"
#include "commands/help.h"
#include "engine/client_list.h"
#include "engine/clients.h"
#include "engine/engine_context.h"
#include "front/families.h"
#include "front/front_host.h"

namespace sava::front {

namespace client {

namespace {

using commands::Context;
using engine::EngineContext;

engine::Client& Self(Context& ctx) { return EngineContext::Of(ctx).client(); }

// ON or OFF in argument 2 sets a flag of the connection.
void SwitchFlag(Context& ctx, engine::ClientFlag flag) {
  const bool on = ctx.ArgIs(2, "ON");
  if (!on && !ctx.ArgIs(2, "OFF")) return ctx.Error(commands::errors::kSyntax);
  Self(ctx).set(flag, on);
  ctx.reply().Ok();
}

}  // namespace

void Id(Context& ctx) { ctx.reply().Int(static_cast<int64_t>(Self(ctx).id)); }

void Info(Context& ctx) {
  Self(ctx).activity.last_command = ctx.command_table().ResolveOwnName(ctx.args());
  ctx.reply().Verbatim("txt", engine::ClientLine(Self(ctx), ctx.now_ms()) + '\n');
}

void Setname(Context& ctx) {
  if (!IsPlainName(ctx.arg(2))) {
    return ctx.Error(commands::errors::kClientName);
  }
  Self(ctx).name = ctx.arg(2);
  ctx.reply().Ok();
}

void Getname(Context& ctx) {
  const std::string& name = Self(ctx).name;
  name.empty() ? ctx.reply().Null() : ctx.reply().Bulk(name);
}

void Setinfo(Context& ctx) {
  const bool name = ctx.ArgIs(2, "LIB-NAME");
  if (!name && !ctx.ArgIs(2, "LIB-VER")) {
    return ctx.Error("ERR Unrecognized option '" + std::string(ctx.arg(2)) + "'");
  }
  if (!IsPlainName(ctx.arg(3))) {
    return ctx.Error("ERR " + std::string(ctx.arg(2)) +
                     " cannot contain spaces, newlines or special characters.");
  }
  (name ? Self(ctx).peer.lib_name : Self(ctx).peer.lib_ver) = ctx.arg(3);
  ctx.reply().Ok();
}

void NoEvict(Context& ctx) { SwitchFlag(ctx, engine::kClientNoEvict); }
void NoTouch(Context& ctx) { SwitchFlag(ctx, engine::kClientNoTouch); }

void Reply(Context& ctx) {
  engine::Client& self = Self(ctx);
  if (ctx.ArgIs(2, "ON")) {
    self.set(engine::kClientReplyOff | engine::kClientReplySkip | engine::kClientReplySkipNext,
             false);
    ctx.reply().Ok();
  } else if (ctx.ArgIs(2, "OFF")) {
    self.set(engine::kClientReplyOff);
  } else if (ctx.ArgIs(2, "SKIP")) {
    if (!self.has(engine::kClientReplyOff)) self.set(engine::kClientReplySkipNext);
  } else {
    ctx.Error(commands::errors::kSyntax);
  }
}

}  // namespace client

namespace {

constexpr uint32_t kOwn = commands::kConnectionFlags;
constexpr uint32_t kOthers = commands::kAdminFlags;

constexpr commands::CommandSpec kSubcommands[] = {
    {.name = "caching",
     .handler = client::Caching,
     .arity = 3,
     .flags = kOwn,
     .acl = commands::kAclConnection,
     .group = "connection",
     .since = "6.0.0",
     .summary = "Says whether the next command's keys shall be tracked.",
     .complexity = "O(1)",
     .arguments = "(mode: YES | NO)",
     .reply = "OK",
     .example = "CLIENT CACHING YES"},
    {.name = "getname",
     .handler = client::Getname,
     .arity = 2,
     .flags = kOwn,
     .acl = commands::kAclConnection,
     .group = "connection",
     .since = "2.6.9",
     .summary = "Tells the name of the connection.",
     .complexity = "O(1)",
     .reply = "bulk string, or null when it has none",
     .example = "CLIENT GETNAME"},
    {.name = "getredir",
     .handler = client::Getredir,
     .arity = 2,
     .flags = kOwn,
     .acl = commands::kAclConnection,
     .group = "connection",
     .since = "6.0.0",
     .summary = "Tells which connection gets the messages about tracked keys.",
     .complexity = "O(1)",
     .reply = "integer: a client's number, or -1 when nothing is tracked",
     .example = "CLIENT GETREDIR"},
    {.name = "help",
     .handler = commands::HelpCommand,
     .arity = 2,
     .flags = commands::kAnytime,
     .acl = commands::kAclConnection,
     .group = "connection",
     .since = "5.0.0",
     .summary = "Shows this help.",
     .complexity = "O(1)",
     .reply = "array of lines",
     .example = "CLIENT HELP"},
    {.name = "id",
     .handler = client::Id,
     .arity = 2,
     .flags = kOwn,
     .acl = commands::kAclConnection,
     .group = "connection",
     .since = "5.0.0",
     .summary = "Tells the number of the connection.",
     .complexity = "O(1)",
     .reply = "integer: grows with every connection",
     .example = "CLIENT ID"},
    {.name = "info",
     .handler = client::Info,
     .arity = 2,
     .flags = kOwn,
     .acl = commands::kAclConnection,
     .group = "connection",
     .since = "6.2.0",
     .summary = "Describes the connection in one line of CLIENT LIST.",
     .complexity = "O(1)",
     .reply = "text: one line of name=value pairs",
     .example = "CLIENT INFO",
     .tips = "nondeterministic_output"},
    {.name = "kill",
     .handler = client::Kill,
     .arity = -3,
     .flags = kOthers,
     .acl = commands::kAclConnection,
     .lock = commands::LockClass::kAll,
     .group = "connection",
     .since = "2.4.0",
     .summary = "Closes connections: the one with an address, or all that fit the filters.",
     .complexity = "O(N) for N connections",
     .arguments = "(filter: ip-port | (new-format: ID client-id | "
                  "TYPE (type: NORMAL | MASTER | SLAVE | REPLICA | PUBSUB) | USER username | "
                  "ADDR ip-port | LADDR ip-port | SKIPME yes-no | MAXAGE maxage:integer)...)",
     .reply = "OK for an address; with filters an integer: how many were closed",
     .example = "CLIENT KILL TYPE pubsub"},
    {.name = "list",
     .handler = client::List,
     .arity = -2,
     .flags = kOthers,
     .acl = commands::kAclConnection,
     .lock = commands::LockClass::kAll,
     .group = "connection",
     .since = "2.4.0",
     .summary = "Describes the open connections, a line each.",
     .complexity = "O(N) for N connections",
     .arguments = "[TYPE (type: NORMAL | MASTER | REPLICA | PUBSUB)] [ID client-id...]",
     .reply = "text: lines of name=value pairs",
     .example = "CLIENT LIST TYPE normal",
     .tips = "nondeterministic_output"},
    {.name = "no-evict",
     .handler = client::NoEvict,
     .arity = 3,
     .flags = kOthers,
     .acl = commands::kAclConnection,
     .group = "connection",
     .since = "7.0.0",
     .summary = "Spares the connection when connections are closed to save memory.",
     .complexity = "O(1)",
     .arguments = "(enabled: ON | OFF)",
     .reply = "OK",
     .example = "CLIENT NO-EVICT ON"},
    {.name = "no-touch",
     .handler = client::NoTouch,
     .arity = 3,
     .flags = kOwn,
     .acl = commands::kAclConnection,
     .group = "connection",
     .since = "7.2.0",
     .summary = "Keeps the connection's reads from making keys look recently used.",
     .complexity = "O(1)",
     .arguments = "(enabled: ON | OFF)",
     .reply = "OK",
     .example = "CLIENT NO-TOUCH ON"},
    {.name = "pause",
     .handler = client::Pause,
     .arity = -3,
     .flags = kOthers,
     .acl = commands::kAclConnection,
     .lock = commands::LockClass::kAll,
     .group = "connection",
     .since = "2.9.50",
     .summary = "Lets the commands of all clients, or only writes, wait for some milliseconds.",
     .complexity = "O(1)",
     .arguments = "timeout [mode: WRITE | ALL]",
     .reply = "OK",
     .example = "CLIENT PAUSE 10 WRITE"},
    {.name = "reply",
     .handler = client::Reply,
     .arity = 3,
     .flags = kOwn,
     .acl = commands::kAclConnection,
     .group = "connection",
     .since = "3.2.0",
     .summary = "Switches replies off, on again, or leaves out the next one.",
     .complexity = "O(1)",
     .arguments = "(action: ON | OFF | SKIP)",
     .reply = "OK for ON, nothing otherwise",
     .example = "CLIENT REPLY ON"},
    {.name = "setinfo",
     .handler = client::Setinfo,
     .arity = 4,
     .flags = kOwn,
     .acl = commands::kAclConnection,
     .group = "connection",
     .since = "7.2.0",
     .summary = "Notes which client library the connection uses.",
     .complexity = "O(1)",
     .arguments = "(attr: LIB-NAME libname | LIB-VER libver)",
     .reply = "OK",
     .example = "CLIENT SETINFO LIB-NAME mylib",
     .tips = "request_policy:all_nodes,response_policy:all_succeeded"},
    {.name = "setname",
     .handler = client::Setname,
     .arity = 3,
     .flags = kOwn,
     .acl = commands::kAclConnection,
     .group = "connection",
     .since = "2.6.9",
     .summary = "Gives the connection a name, or takes it away with an empty one.",
     .complexity = "O(1)",
     .arguments = "connection-name",
     .reply = "OK",
     .example = "CLIENT SETNAME worker-1"},
    {.name = "tracking",
     .handler = client::Tracking,
     .arity = -3,
     .flags = kOwn,
     .acl = commands::kAclConnection,
     .choose_lock = client::TrackingLock,
     .group = "connection",
     .since = "6.0.0",
     .summary = "Asks for messages about changes of the keys that were read.",
     .complexity = "O(1); with REDIRECT O(N) for N connections",
     .arguments = "(status: ON | OFF) [REDIRECT client-id] [PREFIX prefix ...] [BCAST] [OPTIN] "
                  "[OPTOUT] [NOLOOP]",
     .reply = "OK",
     .example = "CLIENT TRACKING OFF"},
    {.name = "trackinginfo",
     .handler = client::Trackinginfo,
     .arity = 2,
     .flags = kOwn,
     .acl = commands::kAclConnection,
     .group = "connection",
     .since = "6.2.0",
     .summary = "Tells whether and how keys are tracked for the connection.",
     .complexity = "O(1)",
     .reply = "map: flags, redirect, prefixes",
     .example = "CLIENT TRACKINGINFO"},
    {.name = "unblock",
     .handler = client::Unblock,
     .arity = -3,
     .flags = kOthers,
     .acl = commands::kAclConnection,
     .lock = commands::LockClass::kAll,
     .group = "connection",
     .since = "5.0.0",
     .summary = "Ends a waiting client's waiting, as if its time were over or with an error.",
     .complexity = "O(N) for N connections",
     .arguments = "client-id [unblock-type: TIMEOUT | ERROR]",
     .reply = "integer: 1 when it waited, else 0",
     .example = "CLIENT UNBLOCK 12345 ERROR"},
    {.name = "unpause",
     .handler = client::Unpause,
     .arity = 2,
     .flags = kOthers,
     .acl = commands::kAclConnection,
     .lock = commands::LockClass::kAll,
     .group = "connection",
     .since = "6.2.0",
     .summary = "Lets the commands that CLIENT PAUSE held back go on.",
     .complexity = "O(N) for N paused clients",
     .reply = "OK",
     .example = "CLIENT UNPAUSE"},
};

constexpr commands::CommandSpec kRows[] = {
    {.name = "client",
     .arity = -2,
     .group = "connection",
     .since = "2.4.0",
     .summary = "Shows and governs the connections of clients.",
     .complexity = "Depends on the subcommand",
     .subcommands = kSubcommands},
};

}  // namespace

std::span<const commands::CommandSpec> ClientCommands() { return kRows; }

}  // namespace sava::front
