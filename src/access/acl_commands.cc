// ACL, as far as there is one user: "default", who may do everything, with the password of
// requirepass if there is one.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "access/acl_log.h"
#include "access/families.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "commands/family.h"
#include "commands/help.h"
#include "commands/registry.h"
#include "config/settings.h"

namespace sava::access {

namespace {

using commands::Context;

constexpr std::string_view kNoAclFile =
    "ERR This Redis instance is not configured to use an ACL file. You may want to specify users "
    "via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis "
    "configuration file set) in order to store users in the Redis configuration.";

const std::string& Password(Context& ctx) { return ctx.part<const config::Settings>().requirepass; }

void Whoami(Context& ctx) { ctx.reply().Bulk(ctx.session().user); }

void Users(Context& ctx) {
  ctx.reply().Array(1);
  ctx.reply().Bulk("default");
}

void List(Context& ctx) {
  const std::string& password = Password(ctx);
  ctx.reply().Array(1);
  ctx.reply().Bulk(fmt::format("user default on {} ~* &* +@all",
                               password.empty()
                                   ? "nopass sanitize-payload"
                                   : "sanitize-payload #" + base::Sha256Hex(password)));
}

void Getuser(Context& ctx) {
  if (ctx.arg(2) != "default") return ctx.reply().Null();
  const std::string& password = Password(ctx);
  protocol::Reply& reply = ctx.reply();
  reply.Map(6);
  reply.Bulk("flags");
  reply.Set(password.empty() ? 3 : 2);
  reply.Bulk("on");
  if (password.empty()) reply.Bulk("nopass");
  reply.Bulk("sanitize-payload");
  reply.Bulk("passwords");
  reply.Array(password.empty() ? 0 : 1);
  if (!password.empty()) reply.Bulk(base::Sha256Hex(password));
  reply.Bulk("commands");
  reply.Bulk("+@all");
  reply.Bulk("keys");
  reply.Bulk("~*");
  reply.Bulk("channels");
  reply.Bulk("&*");
  reply.Bulk("selectors");
  reply.Array(0);
}

void Cat(Context& ctx) {
  protocol::Reply& reply = ctx.reply();
  if (ctx.argc() > 3) return commands::WrongSubcommand(ctx);
  if (ctx.argc() == 2) {
    const auto names = commands::AllCategories();
    reply.Array(static_cast<int64_t>(names.size()));
    for (const std::string_view name : names) reply.Bulk(name);
    return;
  }
  const uint32_t category = commands::CategoryByName(ctx.arg(2));
  if (category == 0) return ctx.Error("ERR Unknown category '" + std::string(ctx.arg(2)) + "'");
  const size_t mark = reply.Mark();
  int64_t count = 0;
  for (const auto& command : ctx.command_table().by_id()) {
    if ((command->acl & category) == 0) continue;
    reply.Bulk(command->full_name);
    ++count;
  }
  reply.ArrayAt(mark, count);
}

void Genpass(Context& ctx) {
  if (ctx.argc() > 3) return commands::WrongSubcommand(ctx);
  int64_t bits = 256;
  if (ctx.argc() == 3 && !ctx.IntArg(2, &bits)) return;
  if (bits <= 0 || bits > 4096) {
    return ctx.Error(
        "ERR ACL GENPASS argument must be the number of bits for the output password, a positive "
        "number up to 4096");
  }
  const auto digits = static_cast<size_t>(bits + 3) / 4;
  std::vector<uint8_t> bytes((digits + 1) / 2);
  base::SecureRandom(bytes.data(), bytes.size());
  ctx.reply().Bulk(base::HexText(bytes.data(), bytes.size()).substr(0, digits));
}

void ReplyLogEntry(protocol::Reply& reply, const AclLogEntry& entry, int64_t now_ms) {
  const auto text = [&reply](std::string_view name, std::string_view value) {
    reply.Bulk(name);
    reply.Bulk(value);
  };
  const auto number = [&reply](std::string_view name, int64_t value) {
    reply.Bulk(name);
    reply.Int(value);
  };
  reply.Map(10);
  number("count", entry.count);
  text("reason", "auth");
  text("context", entry.context);
  text("object", entry.object);
  text("username", entry.username);
  reply.Bulk("age-seconds");
  reply.Double(static_cast<double>(now_ms - entry.updated_ms) / 1000);
  text("client-info", entry.client_info);
  number("entry-id", entry.id);
  number("timestamp-created", entry.created_ms);
  number("timestamp-last-updated", entry.updated_ms);
}

void Log(Context& ctx) {
  if (ctx.argc() > 3) return commands::WrongSubcommand(ctx);
  AclLog& log = ctx.part<AclLog>();
  int64_t count = 10;
  if (ctx.argc() == 3) {
    if (ctx.ArgIs(2, "RESET")) {
      log.Reset();
      return ctx.reply().Ok();
    }
    if (!ctx.IntArg(2, &count)) return;
  }
  const auto entries = log.Newest(count < 0 ? 0 : static_cast<size_t>(count));
  ctx.reply().Array(static_cast<int64_t>(entries.size()));
  for (const AclLogEntry& entry : entries) ReplyLogEntry(ctx.reply(), entry, ctx.now_ms());
}

// The one user may do everything, if it makes sense at all.
void Dryrun(Context& ctx) {
  if (ctx.arg(2) != "default") {
    return ctx.Error("ERR User '" + std::string(ctx.arg(2)) + "' not found");
  }
  const commands::Args call = ctx.args().subspan(3);
  const commands::Command* command = ctx.command_table().Resolve(call);
  const bool unknown_sub =
      command != nullptr && command->spec->handler == nullptr && call.size() > 1;
  if (command == nullptr || unknown_sub) {
    return ctx.Error("ERR Command '" + std::string(call[0]) + "' not found");
  }
  if (!command->ArityOk(call.size())) {
    return ctx.Error("ERR wrong number of arguments for '" + command->full_name + "' command");
  }
  ctx.reply().Ok();
}

void Deluser(Context& ctx) {
  for (const std::string_view name : ctx.args().subspan(2)) {
    if (name == "default") return ctx.Error("ERR The 'default' user cannot be removed");
  }
  ctx.reply().Int(0);
}

void Setuser(Context& ctx) {
  for (size_t i = 3; i < ctx.argc(); ++i) ctx.Redact(i);
  ctx.Error(
      "ERR users cannot be made or changed: this server has only the user 'default', whose "
      "password is the setting requirepass");
}

void NoFile(Context& ctx) { ctx.Error(kNoAclFile); }

constexpr commands::CommandSpec kSubcommands[] = {
    {.name = "cat",
     .handler = Cat,
     .arity = -2,
     .flags = commands::kConnectionFlags,
     .group = "server",
     .since = "6.0.0",
     .summary = "Lists the categories of commands, or the commands of a category.",
     .complexity = "O(N) for N commands",
     .arguments = "[categoryname]",
     .reply = "array of names",
     .example = "ACL CAT string"},
    {.name = "deluser",
     .handler = Deluser,
     .arity = -3,
     .flags = commands::kAdminFlags,
     .group = "server",
     .since = "6.0.0",
     .summary = "Removes users; there are none but the default one, which stays.",
     .complexity = "O(N) for N names",
     .arguments = "username ...",
     .reply = "integer: how many were removed",
     .example = "ACL DELUSER nobody"},
    {.name = "dryrun",
     .handler = Dryrun,
     .arity = -4,
     .flags = commands::kAdminFlags,
     .group = "server",
     .since = "7.0.0",
     .summary = "Tells whether a user might call a command, without calling it.",
     .complexity = "O(1)",
     .arguments = "username command [arg ...]",
     .reply = "OK, or why not",
     .example = "ACL DRYRUN default GET greeting"},
    {.name = "genpass",
     .handler = Genpass,
     .arity = -2,
     .flags = commands::kConnectionFlags,
     .group = "server",
     .since = "6.0.0",
     .summary = "Makes a random password, of 256 bits or as many as wanted.",
     .complexity = "O(1)",
     .arguments = "[bits:integer]",
     .reply = "bulk string of hexadecimal digits",
     .example = "ACL GENPASS 128"},
    {.name = "getuser",
     .handler = Getuser,
     .arity = 3,
     .flags = commands::kAdminFlags,
     .group = "server",
     .since = "6.0.0",
     .summary = "Shows what a user may do.",
     .complexity = "O(1)",
     .arguments = "username",
     .reply = "map: flags, passwords, commands, keys, channels, selectors; null for nobody",
     .example = "ACL GETUSER default"},
    {.name = "help",
     .handler = commands::HelpCommand,
     .arity = 2,
     .flags = commands::kAnytime,
     .group = "server",
     .since = "6.0.0",
     .summary = "Shows this help.",
     .complexity = "O(1)",
     .reply = "array of lines",
     .example = "ACL HELP"},
    {.name = "list",
     .handler = List,
     .arity = 2,
     .flags = commands::kAdminFlags,
     .group = "server",
     .since = "6.0.0",
     .summary = "Shows the users with their rules, a line each.",
     .complexity = "O(N) for N users",
     .reply = "array of lines",
     .example = "ACL LIST"},
    {.name = "load",
     .handler = NoFile,
     .arity = 2,
     .flags = commands::kAdminFlags,
     .group = "server",
     .since = "6.0.0",
     .summary = "Reads the users from the ACL file; there is none.",
     .complexity = "O(N) for N users",
     .reply = "an error",
     .example = "ACL LOAD"},
    {.name = "log",
     .handler = Log,
     .arity = -2,
     .flags = commands::kAdminFlags,
     .group = "server",
     .since = "6.0.0",
     .summary = "Shows refused attempts to authenticate, or forgets them.",
     .complexity = "O(N) for N entries",
     .arguments = "[operation: count | RESET]",
     .reply = "array of maps, newest first; OK for RESET",
     .example = "ACL LOG 5"},
    {.name = "save",
     .handler = NoFile,
     .arity = 2,
     .flags = commands::kAdminFlags,
     .group = "server",
     .since = "6.0.0",
     .summary = "Writes the users to the ACL file; there is none.",
     .complexity = "O(N) for N users",
     .reply = "an error",
     .example = "ACL SAVE"},
    {.name = "setuser",
     .handler = Setuser,
     .arity = -3,
     .flags = commands::kAdminFlags,
     .group = "server",
     .since = "6.0.0",
     .summary = "Makes or changes a user; not built.",
     .complexity = "O(N) for N rules",
     .arguments = "username [rule ...]",
     .reply = "an error",
     .example = "ACL SETUSER alice on"},
    {.name = "users",
     .handler = Users,
     .arity = 2,
     .flags = commands::kAdminFlags,
     .group = "server",
     .since = "6.0.0",
     .summary = "Lists the names of the users.",
     .complexity = "O(N) for N users",
     .reply = "array of names",
     .example = "ACL USERS"},
    {.name = "whoami",
     .handler = Whoami,
     .arity = 2,
     .flags = commands::kConnectionFlags,
     .group = "server",
     .since = "6.0.0",
     .summary = "Tells the name of the connection's user.",
     .complexity = "O(1)",
     .reply = "bulk string",
     .example = "ACL WHOAMI"},
};

constexpr commands::CommandSpec kRows[] = {
    {.name = "acl",
     .arity = -2,
     .group = "server",
     .since = "6.0.0",
     .summary = "Shows who may do what.",
     .complexity = "Depends on the subcommand",
     .subcommands = kSubcommands},
};

}  // namespace

std::span<const commands::CommandSpec> AclCommands() { return kRows; }

}  // namespace sava::access
