// EVAL, EVALSHA, their _RO forms, and SCRIPT.
#include "base/text.h"
#include "commands/help.h"
#include "script/scripts.h"

namespace sava::script {

namespace {

using commands::CommandSpec;
using commands::Context;
using engine::EngineContext;

void Eval(Context& ctx) { ctx.part<Scripts>().Run(EngineContext::Of(ctx)); }

void ScriptLoad(Context& ctx) {
  const auto sha = ctx.part<Scripts>().Load(EngineContext::Of(ctx).lane(), ctx.arg(2));
  if (!sha) return ctx.Error(sha.error());
  ctx.reply().Bulk(sha.value());
}

void ScriptExists(Context& ctx) {
  const ScriptCache& cache = ctx.part<Scripts>().cache();
  ctx.reply().Array(static_cast<int64_t>(ctx.argc()) - 2);
  for (size_t i = 2; i < ctx.argc(); ++i) {
    ctx.reply().Int(cache.Find(base::ToLower(ctx.arg(i))) != nullptr ? 1 : 0);
  }
}

void ScriptFlush(Context& ctx) {
  const bool good =
      ctx.argc() == 2 || (ctx.argc() == 3 && (ctx.ArgIs(2, "SYNC") || ctx.ArgIs(2, "ASYNC")));
  if (!good) return ctx.Error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
  ctx.part<Scripts>().cache().Flush();
  ctx.reply().Ok();
}

void ScriptKill(Context& ctx) {
  switch (ctx.part<Scripts>().running().Kill(Kind::kScript)) {
    case Running::Outcome::kYes:
      return ctx.reply().Ok();
    case Running::Outcome::kNothingRuns:
      return ctx.Error("NOTBUSY No scripts in execution right now.");
    case Running::Outcome::kHasWritten:
      return ctx.Error(kUnkillable);
    case Running::Outcome::kOtherKind:
      return ctx.Error(kBusyFunction);
  }
}

// There is no debugger: a script runs as it always does.
void ScriptDebug(Context& ctx) {
  if (ctx.ArgIs(2, "NO")) return ctx.reply().Ok();
  if (!ctx.ArgIs(2, "YES") && !ctx.ArgIs(2, "SYNC")) {
    return ctx.Error("ERR Use SCRIPT DEBUG YES/SYNC/NO");
  }
  const config::Allow allow = ctx.part<const config::Settings>().enable_debug_command;
  if (allow == config::Allow::kYes || (allow == config::Allow::kLocal && ctx.is_local())) {
    return ctx.reply().Ok();
  }
  ctx.Error("ERR SCRIPT DEBUG is not allowed: set enable-debug-command");
}

constexpr uint32_t kEvalFlags =
    commands::kNoscript | commands::kStale | commands::kSkipMonitor | commands::kNoMandatoryKeys;
constexpr uint32_t kEvalWrites = kEvalFlags | commands::kMayReplicate | commands::kMovableKeys;
constexpr uint32_t kEvalReads = kEvalFlags | commands::kReadonly | commands::kMovableKeys;

constexpr commands::KeySpec KeysOfCall(uint16_t flags, std::string_view notes) {
  return {.flags = flags,
          .first = 2,
          .keynum = true,
          .keynum_at = 0,
          .keynum_first = 1,
          .notes = notes};
}

constexpr std::string_view kWorst =
    "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE";
constexpr std::string_view kWorstRead =
    "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS";
constexpr uint16_t kRw = commands::kKeyRw | commands::kKeyAccess | commands::kKeyUpdate;
constexpr uint16_t kRo = commands::kKeyRo | commands::kKeyAccess;

constexpr CommandSpec Row(std::string_view name, uint32_t flags, commands::KeySpec keys,
                          std::string_view since, std::string_view summary,
                          std::string_view arguments, std::string_view example) {
  return {.name = name,
          .handler = Eval,
          .arity = -3,
          .flags = flags,
          .traits = commands::kRunsScript,
          .acl = commands::kAclScripting,
          .keys = {keys},
          .group = "scripting",
          .since = since,
          .summary = summary,
          .complexity = "Depends on the script that is executed.",
          .arguments = arguments,
          .reply = "what the script returns",
          .example = example};
}

constexpr CommandSpec kScriptSubcommands[] = {
    {.name = "debug",
     .handler = ScriptDebug,
     .arity = 3,
     .flags = commands::kNoscript,
     .acl = commands::kAclScripting,
     .group = "scripting",
     .since = "3.2.0",
     .summary = "Accepted for what asks for it: there is no debugger.",
     .complexity = "O(1)",
     .arguments = "<mode: YES | SYNC | NO>",
     .reply = "OK",
     .example = "SCRIPT DEBUG NO"},
    {.name = "exists",
     .handler = ScriptExists,
     .arity = -3,
     .flags = commands::kNoscript,
     .acl = commands::kAclScripting,
     .group = "scripting",
     .since = "2.6.0",
     .summary = "Tells which scripts can be run by their SHA-1.",
     .complexity = "O(N), N being the number of scripts to check",
     .arguments = "sha1 ...",
     .reply = "array of 1 and 0",
     .example = "SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db",
     .tips = "request_policy:all_shards,response_policy:agg_logical_and"},
    {.name = "flush",
     .handler = ScriptFlush,
     .arity = -2,
     .flags = commands::kNoscript,
     .acl = commands::kAclScripting,
     .group = "scripting",
     .since = "2.6.0",
     .summary = "Forgets all scripts.",
     .complexity = "O(N), N being the number of scripts",
     .arguments = "[flush-type: ASYNC | SYNC]",
     .reply = "OK",
     .example = "SCRIPT FLUSH",
     .tips = "request_policy:all_nodes,response_policy:all_succeeded"},
    {.name = "help",
     .handler = commands::HelpCommand,
     .arity = 2,
     .flags = commands::kLoading | commands::kStale,
     .acl = commands::kAclScripting,
     .group = "scripting",
     .since = "5.0.0",
     .summary = "Shows this help.",
     .complexity = "O(1)",
     .reply = "array of lines",
     .example = "SCRIPT HELP"},
    {.name = "kill",
     .handler = ScriptKill,
     .arity = 2,
     .flags = commands::kNoscript | commands::kAllowBusy,
     .acl = commands::kAclScripting,
     .group = "scripting",
     .since = "2.6.0",
     .summary = "Ends a script that takes long and has not written.",
     .complexity = "O(1)",
     .reply = "OK",
     .example = "SCRIPT KILL",
     .tips = "request_policy:all_shards,response_policy:one_succeeded"},
    {.name = "load",
     .handler = ScriptLoad,
     .arity = 3,
     .flags = commands::kNoscript | commands::kStale,
     .acl = commands::kAclScripting,
     .group = "scripting",
     .since = "2.6.0",
     .summary = "Keeps a script, to be run by its SHA-1.",
     .complexity = "O(N), N being the length of the script",
     .arguments = "script",
     .reply = "the script's SHA-1",
     .example = "SCRIPT LOAD return(1)",
     .tips = "request_policy:all_nodes,response_policy:all_succeeded"},
};

constexpr std::string_view kEvalArguments = "script numkeys:integer [key ...] [arg ...]";
constexpr std::string_view kShaArguments = "sha1 numkeys:integer [key ...] [arg ...]";
constexpr std::string_view kShaExample = "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0";

constexpr CommandSpec kRows[] = {
    Row("eval", kEvalWrites, KeysOfCall(kRw, kWorst), "2.6.0", "Runs a Lua script.", kEvalArguments,
        "EVAL \"return ARGV[1]\" 0 hello"),
    Row("evalsha", kEvalWrites, KeysOfCall(kRw, {}), "2.6.0",
        "Runs a Lua script that the server knows.", kShaArguments, kShaExample),
    Row("eval_ro", kEvalReads, KeysOfCall(kRo, kWorstRead), "7.0.0",
        "Runs a Lua script that only reads.", kEvalArguments,
        "EVAL_RO \"return redis.call('GET', KEYS[1])\" 1 key"),
    Row("evalsha_ro", kEvalReads, KeysOfCall(kRo, {}), "7.0.0",
        "Runs a Lua script that the server knows and that only reads.", kShaArguments,
        "EVALSHA_RO e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0"),
    {.name = "script",
     .arity = -2,
     .group = "scripting",
     .since = "2.6.0",
     .summary = "Commands about scripts.",
     .complexity = "Depends on subcommand.",
     .subcommands = kScriptSubcommands},
};

}  // namespace

std::span<const CommandSpec> ScriptCommands() { return kRows; }

}  // namespace sava::script
