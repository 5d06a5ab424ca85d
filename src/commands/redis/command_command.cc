// COMMAND and its subcommands: what the server's commands are, told from their rows.
#include <string>
#include <vector>

#include "base/glob.h"
#include "commands/context.h"
#include "commands/grammar.h"
#include "commands/help.h"
#include "commands/redis/families.h"
#include "commands/registry.h"

namespace sava::commands {

namespace {

using protocol::Reply;

void SimpleSet(Reply& reply, const std::vector<std::string_view>& words,
               std::string_view prefix = {}) {
  reply.Set(static_cast<int64_t>(words.size()));
  for (const std::string_view word : words) reply.Simple(std::string(prefix).append(word));
}

void Pair(Reply& reply, std::string_view field, std::string_view text) {
  reply.Bulk(field);
  reply.Bulk(text);
}

void Pair(Reply& reply, std::string_view field, int64_t number) {
  reply.Bulk(field);
  reply.Int(number);
}

std::vector<std::string_view> Tips(const CommandSpec& spec) {
  std::vector<std::string_view> tips;
  std::string_view rest = spec.tips;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    tips.push_back(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return tips;
}

// ---- COMMAND INFO ----

// {type: …, spec: {…}}, the fields of spec being the caller's.
void SearchHead(Reply& reply, std::string_view field, std::string_view type, int64_t fields) {
  reply.Bulk(field);
  reply.Map(2);
  Pair(reply, "type", type);
  reply.Bulk("spec");
  reply.Map(fields);
}

void ReplyKeySpec(Reply& reply, const KeySpec& key) {
  reply.Map(key.notes.empty() ? 3 : 4);
  if (!key.notes.empty()) Pair(reply, "notes", key.notes);
  reply.Bulk("flags");
  SimpleSet(reply, KeyFlagNames(key.flags));
  const bool unknown = key.keyword.empty() && key.first == 0;
  if (unknown) {
    SearchHead(reply, "begin_search", "unknown", 0);
    SearchHead(reply, "find_keys", "unknown", 0);
    return;
  }
  if (key.keyword.empty()) {
    SearchHead(reply, "begin_search", "index", 1);
    Pair(reply, "index", key.first);
  } else {
    SearchHead(reply, "begin_search", "keyword", 2);
    Pair(reply, "keyword", key.keyword);
    Pair(reply, "startfrom", key.keyword_from);
  }
  if (key.keynum) {
    SearchHead(reply, "find_keys", "keynum", 3);
    Pair(reply, "keynumidx", key.keynum_at);
    Pair(reply, "firstkey", key.keynum_first);
    Pair(reply, "keystep", key.step);
  } else {
    SearchHead(reply, "find_keys", "range", 3);
    Pair(reply, "lastkey", key.last);
    Pair(reply, "keystep", key.step);
    Pair(reply, "limit", key.limit);
  }
}

void ReplyInfo(Reply& reply, const Command& command) {
  const CommandSpec& spec = *command.spec;
  reply.Array(10);
  reply.Bulk(command.full_name);
  reply.Int(spec.arity);
  SimpleSet(reply, FlagNames(command));
  reply.Int(command.first_key);
  reply.Int(command.last_key);
  reply.Int(command.key_step);
  SimpleSet(reply, CategoryNames(command.acl), "@");
  const std::vector<std::string_view> tips = Tips(spec);
  reply.Set(static_cast<int64_t>(tips.size()));
  for (const std::string_view tip : tips) reply.Bulk(tip);
  reply.Set(spec.keys.count);
  for (uint8_t i = 0; i < spec.keys.count; ++i) ReplyKeySpec(reply, spec.keys.items[i]);
  if (command.subcommands.empty()) {
    reply.Set(0);
    return;
  }
  reply.Array(static_cast<int64_t>(command.subcommands.size()));
  for (const Command* sub : command.subcommands) ReplyInfo(reply, *sub);
}

void ReplyAllInfo(Context& context) {
  const auto& all = context.command_table().all();
  context.reply().Array(static_cast<int64_t>(all.size()));
  for (const Command* command : all) ReplyInfo(context.reply(), *command);
}

void Info(Context& context) {
  if (context.argc() == 2) return ReplyAllInfo(context);
  const Args names = context.args().subspan(2);
  context.reply().Array(static_cast<int64_t>(names.size()));
  for (const std::string_view name : names) {
    const Command* command = context.command_table().FindFullName(name);
    command == nullptr ? context.reply().Null() : ReplyInfo(context.reply(), *command);
  }
}

// ---- COMMAND DOCS ----

void ReplyArguments(Reply& reply, const std::vector<Argument>& arguments);

void ReplyArgument(Reply& reply, const Argument& argument) {
  const bool flags = argument.optional || argument.multiple || argument.multiple_token;
  // A leaf has a text to display where a group has arguments.
  reply.Map(3 + (argument.key_spec_index >= 0 ? 1 : 0) + (argument.token.empty() ? 0 : 1) +
            (flags ? 1 : 0));
  Pair(reply, "name", argument.name);
  Pair(reply, "type", argument.type);
  if (!argument.is_group()) Pair(reply, "display_text", argument.shown());
  if (argument.key_spec_index >= 0) Pair(reply, "key_spec_index", argument.key_spec_index);
  if (!argument.token.empty()) Pair(reply, "token", argument.token);
  if (flags) {
    std::vector<std::string_view> names;
    if (argument.optional) names.emplace_back("optional");
    if (argument.multiple) names.emplace_back("multiple");
    if (argument.multiple_token) names.emplace_back("multiple_token");
    reply.Bulk("flags");
    SimpleSet(reply, names);
  }
  if (argument.is_group()) {
    reply.Bulk("arguments");
    ReplyArguments(reply, argument.arguments);
  }
}

void ReplyArguments(Reply& reply, const std::vector<Argument>& arguments) {
  reply.Array(static_cast<int64_t>(arguments.size()));
  for (const Argument& argument : arguments) ReplyArgument(reply, argument);
}

void ReplyDocs(Reply& reply, const Command& command) {
  const CommandSpec& spec = *command.spec;
  const size_t mark = reply.Mark();
  int64_t fields = 0;
  const auto text = [&](std::string_view field, std::string_view value) {
    if (value.empty()) return;
    Pair(reply, field, value);
    ++fields;
  };
  text("summary", spec.summary);
  text("since", spec.since);
  text("group", spec.group);
  text("complexity", spec.complexity);
  if (!spec.deprecated_since.empty()) {
    reply.Bulk("doc_flags");
    SimpleSet(reply, {"deprecated"});
    ++fields;
    text("deprecated_since", spec.deprecated_since);
    text("replaced_by", spec.replaced_by);
  }
  const auto arguments = ParseGrammar(spec.arguments, spec.keys.count);
  if (arguments && !arguments.value().empty()) {
    reply.Bulk("arguments");
    ReplyArguments(reply, arguments.value());
    ++fields;
  }
  if (!command.subcommands.empty()) {
    reply.Bulk("subcommands");
    reply.Map(static_cast<int64_t>(command.subcommands.size()));
    for (const Command* sub : command.subcommands) {
      reply.Bulk(sub->full_name);
      ReplyDocs(reply, *sub);
    }
    ++fields;
  }
  reply.MapAt(mark, fields);
}

void Docs(Context& context) {
  std::vector<const Command*> found;
  if (context.argc() == 2) found = context.command_table().all();
  for (const std::string_view name : context.args().subspan(2)) {
    const Command* command = context.command_table().FindFullName(name);
    if (command != nullptr) found.push_back(command);
  }
  context.reply().Map(static_cast<int64_t>(found.size()));
  for (const Command* command : found) {
    context.reply().Bulk(command->full_name);
    ReplyDocs(context.reply(), *command);
  }
}

// ---- COMMAND COUNT, LIST, GETKEYS ----

void Count(Context& context) {
  context.reply().Int(static_cast<int64_t>(context.command_table().all().size()));
}

void ReplyNames(Context& context, const std::function<bool(const Command&)>& wanted) {
  Reply& reply = context.reply();
  const size_t mark = reply.Mark();
  int64_t count = 0;
  const auto look = [&](const Command& command) {
    if (!wanted(command)) return;
    reply.Bulk(command.full_name);
    ++count;
  };
  for (const Command* command : context.command_table().all()) {
    look(*command);
    for (const Command* sub : command->subcommands) look(*sub);
  }
  reply.ArrayAt(mark, count);
}

void List(Context& context) {
  if (context.argc() == 2) return ReplyNames(context, [](const Command&) { return true; });
  if (context.argc() != 5 || !context.ArgIs(2, "FILTERBY")) return context.Error(errors::kSyntax);
  const std::string_view what = context.arg(4);
  if (context.ArgIs(3, "MODULE")) {
    ReplyNames(context, [](const Command&) { return false; });
  } else if (context.ArgIs(3, "ACLCAT")) {
    const uint32_t category = CategoryByName(what);
    ReplyNames(context, [&](const Command& command) { return (command.acl & category) != 0; });
  } else if (context.ArgIs(3, "PATTERN")) {
    ReplyNames(context, [&](const Command& command) {
      return base::GlobMatch(what, command.full_name, true);
    });
  } else {
    context.Error(errors::kSyntax);
  }
}

bool MayHaveKeys(const Command& command) {
  const CommandSpec& spec = *command.spec;
  if (spec.find_keys != nullptr) return true;
  for (uint8_t i = 0; i < spec.keys.count; ++i) {
    if ((spec.keys.items[i].flags & kKeyNotKey) == 0) return true;
  }
  return false;
}

void ReplyKeys(Context& context, bool with_flags) {
  const Args call = context.args().subspan(2);
  const Command* command = context.command_table().Resolve(call);
  const bool unknown_subcommand = command != nullptr && !command->subcommands.empty() &&
                                  command->parent == nullptr && call.size() > 1;
  if (command == nullptr || unknown_subcommand) {
    return context.Error("ERR Invalid command specified");
  }
  if (!MayHaveKeys(*command)) return context.Error("ERR The command has no key arguments");
  if (!command->ArityOk(call.size())) {
    return context.Error("ERR Invalid number of arguments specified for command");
  }
  std::vector<int> indexes;
  std::vector<uint16_t> flags;
  const bool valid = KeyIndexesAndFlags(*command, call, &indexes, &flags);
  if (!valid || indexes.empty()) {
    if (command->has(kNoMandatoryKeys)) return context.reply().Array(0);
    return context.Error("ERR Invalid arguments specified for command");
  }
  context.reply().Array(static_cast<int64_t>(indexes.size()));
  for (size_t i = 0; i < indexes.size(); ++i) {
    if (with_flags) context.reply().Array(2);
    context.reply().Bulk(call[static_cast<size_t>(indexes[i])]);
    if (with_flags) SimpleSet(context.reply(), KeyFlagNames(flags[i]));
  }
}

void Getkeys(Context& context) { ReplyKeys(context, false); }
void Getkeysandflags(Context& context) { ReplyKeys(context, true); }

// COMMAND on its own. With a second word that is no subcommand the dispatcher may call it too.
void WholeCommand(Context& context) {
  if (context.argc() == 1) return ReplyAllInfo(context);
  context.Error("ERR unknown subcommand '" + std::string(context.arg(1).substr(0, 128)) +
                "'. Try COMMAND HELP.");
}

constexpr CommandSpec kSubcommands[] = {
    {.name = "count",
     .handler = Count,
     .arity = 2,
     .flags = kLoading | kStale,
     .acl = kAclConnection,
     .group = "server",
     .since = "2.8.13",
     .summary = "Counts the commands of this server.",
     .complexity = "O(1)",
     .reply = "integer: how many, subcommands not counted",
     .example = "COMMAND COUNT"},
    {.name = "list",
     .handler = List,
     .arity = -2,
     .flags = kLoading | kStale,
     .acl = kAclConnection,
     .group = "server",
     .since = "7.0.0",
     .summary = "Lists the names of the commands, of a module, a category or a pattern if wanted.",
     .complexity = "O(N) for N commands",
     .arguments = "[FILTERBY (filterby: MODULE module-name | ACLCAT category | PATTERN pattern)]",
     .reply = "array of names",
     .example = "COMMAND LIST FILTERBY PATTERN get*",
     .tips = "nondeterministic_output_order"},
    {.name = "info",
     .handler = Info,
     .arity = -2,
     .flags = kLoading | kStale,
     .acl = kAclConnection,
     .group = "server",
     .since = "2.8.13",
     .summary = "Tells arity, flags, categories and keys of some commands, or of all.",
     .complexity = "O(N) for N commands",
     .arguments = "[command-name ...]",
     .reply = "array: for each name an array of ten elements, or null when there is none",
     .example = "COMMAND INFO get set",
     .tips = "nondeterministic_output_order"},
    {.name = "docs",
     .handler = Docs,
     .arity = -2,
     .flags = kLoading | kStale,
     .acl = kAclConnection,
     .group = "server",
     .since = "7.0.0",
     .summary = "Tells what some commands, or all, are for and which arguments they take.",
     .complexity = "O(N) for N commands",
     .arguments = "[command-name ...]",
     .reply = "map: each name with a map of its documentation",
     .example = "COMMAND DOCS set",
     .tips = "nondeterministic_output_order"},
    {.name = "getkeys",
     .handler = Getkeys,
     .arity = -4,
     .flags = kLoading | kStale,
     .acl = kAclConnection,
     .group = "server",
     .since = "2.8.13",
     .summary = "Tells which arguments of a full command are keys.",
     .complexity = "O(N) for N arguments",
     .arguments = "command [arg ...]",
     .reply = "array of keys",
     .example = "COMMAND GETKEYS MSET one 1 two 2"},
    {.name = "getkeysandflags",
     .handler = Getkeysandflags,
     .arity = -4,
     .flags = kLoading | kStale,
     .acl = kAclConnection,
     .group = "server",
     .since = "7.0.0",
     .summary = "Tells which arguments of a full command are keys, and what it does to them.",
     .complexity = "O(N) for N arguments",
     .arguments = "command [arg ...]",
     .reply = "array: for each key an array of the key and its flags",
     .example = "COMMAND GETKEYSANDFLAGS RENAME one two"},
    {.name = "help",
     .handler = HelpCommand,
     .arity = 2,
     .flags = kLoading | kStale,
     .acl = kAclConnection,
     .group = "server",
     .since = "5.0.0",
     .summary = "Shows this help.",
     .complexity = "O(1)",
     .reply = "array of lines",
     .example = "COMMAND HELP"},
};

constexpr CommandSpec kRows[] = {
    {.name = "command",
     .handler = WholeCommand,
     .arity = -1,
     .flags = kLoading | kStale,
     .acl = kAclConnection,
     .group = "server",
     .since = "2.8.13",
     .summary = "Tells what commands there are.",
     .complexity = "O(N) for N commands",
     .reply = "array: for each command what COMMAND INFO tells",
     .example = "COMMAND",
     .tips = "nondeterministic_output_order",
     .subcommands = kSubcommands},
};

}  // namespace

std::span<const CommandSpec> CommandCommands() { return kRows; }

}  // namespace sava::commands
