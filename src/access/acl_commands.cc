// ACL: the users, what each may do, what was refused. Commands that change users run with the gate
// closed.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "access/acl_log.h"
#include "access/families.h"
#include "access/users.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "commands/errors.h"
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

void Whoami(Context& ctx) { ctx.reply().Bulk(ctx.session().user); }

void UserNames(Context& ctx) {
  const Users::Map& users = ctx.part<Users>().all();
  ctx.reply().Array(static_cast<int64_t>(users.size()));
  for (const auto& [name, user] : users) ctx.reply().Bulk(name);
}

void List(Context& ctx) {
  const Users::Map& users = ctx.part<Users>().all();
  ctx.reply().Array(static_cast<int64_t>(users.size()));
  for (const auto& [name, user] : users) {
    ctx.reply().Bulk(fmt::format("user {} {}", name, user->Text()));
  }
}

void ReplyRules(protocol::Reply& reply, const Selector& selector) {
  reply.Bulk("commands");
  reply.Bulk(selector.CommandsText());
  reply.Bulk("keys");
  reply.Bulk(selector.KeysText());
  reply.Bulk("channels");
  reply.Bulk(selector.ChannelsText());
}

void Getuser(Context& ctx) {
  const User* const user = ctx.part<Users>().Find(ctx.arg(2));
  if (user == nullptr) return ctx.reply().Null();
  protocol::Reply& reply = ctx.reply();
  reply.Map(6);
  reply.Bulk("flags");
  reply.Set(user->nopass ? 3 : 2);
  reply.Bulk(user->on ? "on" : "off");
  if (user->nopass) reply.Bulk("nopass");
  reply.Bulk(user->skips_sanitizing ? "skip-sanitize-payload" : "sanitize-payload");
  reply.Bulk("passwords");
  reply.Array(static_cast<int64_t>(user->hashes.size()));
  for (const std::string& hash : user->hashes) reply.Bulk(hash);
  ReplyRules(reply, user->selectors.front());
  reply.Bulk("selectors");
  reply.Array(static_cast<int64_t>(user->selectors.size() - 1));
  for (size_t i = 1; i < user->selectors.size(); ++i) {
    reply.Map(3);
    ReplyRules(reply, user->selectors[i]);
  }
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
  static constexpr std::string_view kReasons[] = {"", "command", "key", "auth", "channel"};
  text("reason", kReasons[static_cast<size_t>(entry.reason)]);
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

void Dryrun(Context& ctx) {
  const User* const user = ctx.part<Users>().Find(ctx.arg(2));
  if (user == nullptr) {
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
    return ctx.Error(commands::errors::WrongArity(command->full_name));
  }
  const Verdict verdict = user->Check(*command, call);
  if (verdict.allowed()) return ctx.reply().Ok();
  ctx.reply().Bulk(RefusalText(verdict, user->name, *command, call, true));
}

void Deluser(Context& ctx) {
  const std::vector<std::string_view> names(ctx.args().begin() + 2, ctx.args().end());
  for (const std::string_view name : names) {
    if (name == "default") return ctx.Error("ERR The 'default' user cannot be removed");
  }
  ctx.reply().Int(static_cast<int64_t>(ctx.part<Users>().Delete(names, ctx.session().id)));
}

void Setuser(Context& ctx) {
  for (size_t i = 2; i < ctx.argc(); ++i) ctx.Redact(i);
  if (ctx.arg(2).empty() || HasBlank(ctx.arg(2))) {
    return ctx.Error("ERR Usernames can't contain spaces or null characters");
  }
  const std::vector<std::string> rules(ctx.args().begin() + 3, ctx.args().end());
  const base::Status status = ctx.part<Users>().Set(ctx.arg(2), rules, ctx.session().id);
  status.ok() ? ctx.reply().Ok() : ctx.Error("ERR " + status.error());
}

void Load(Context& ctx) {
  Users& users = ctx.part<Users>();
  if (!users.has_file()) return ctx.Error(kNoAclFile);
  const base::Status status = users.Load(ctx.session().id);
  status.ok() ? ctx.reply().Ok() : ctx.Error("ERR " + status.error());
}

void Save(Context& ctx) {
  const Users& users = ctx.part<Users>();
  if (!users.has_file()) return ctx.Error(kNoAclFile);
  const base::Status status = users.Save();
  if (status.ok()) return ctx.reply().Ok();
  ctx.Warn("Saving the ACL file: " + status.error());
  ctx.Error(
      "ERR There was an error trying to save the ACLs. Please check the server logs for more "
      "information");
}

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
     .lock = commands::LockClass::kAll,
     .group = "server",
     .since = "6.0.0",
     .summary = "Removes users, and closes their connections.",
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
     .reply =
         "map: flags, passwords, commands, keys, channels, selectors; null for an unknown user",
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
     .handler = Load,
     .arity = 2,
     .flags = commands::kAdminFlags,
     .lock = commands::LockClass::kAll,
     .group = "server",
     .since = "6.0.0",
     .summary = "Replaces the users by those of the ACL file.",
     .complexity = "O(N) for N users",
     .reply = "OK, or what is wrong with the file",
     .example = "ACL LOAD"},
    {.name = "log",
     .handler = Log,
     .arity = -2,
     .flags = commands::kAdminFlags,
     .group = "server",
     .since = "6.0.0",
     .summary = "Shows what was refused, newest first, or forgets it.",
     .complexity = "O(N) for N entries",
     .arguments = "[operation: count | RESET]",
     .reply = "array of maps, newest first; OK for RESET",
     .example = "ACL LOG 5"},
    {.name = "save",
     .handler = Save,
     .arity = 2,
     .flags = commands::kAdminFlags,
     .group = "server",
     .since = "6.0.0",
     .summary = "Writes the users to the ACL file.",
     .complexity = "O(N) for N users",
     .reply = "OK, or an error",
     .example = "ACL SAVE"},
    {.name = "setuser",
     .handler = Setuser,
     .arity = -3,
     .flags = commands::kAdminFlags,
     .lock = commands::LockClass::kAll,
     .group = "server",
     .since = "6.0.0",
     .summary = "Makes or changes a user: password, commands, keys, channels.",
     .complexity = "O(N) for N rules",
     .arguments = "username [rule ...]",
     .reply = "OK, or which rule is wrong",
     .example = "ACL SETUSER alice on"},
    {.name = "users",
     .handler = UserNames,
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
     .summary = "Says who may do what.",
     .complexity = "Depends on the subcommand",
     .subcommands = kSubcommands},
};

}  // namespace

std::span<const commands::CommandSpec> AclCommands() { return kRows; }

}  // namespace sava::access
