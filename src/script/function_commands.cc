// FCALL, FCALL_RO, and FUNCTION.
#include <fmt/format.h>

#include <functional>

#include "base/glob.h"
#include "base/text.h"
#include "commands/errors.h"
#include "commands/family.h"
#include "commands/help.h"
#include "script/scripts.h"

namespace sava::script {

namespace {

using commands::CommandSpec;
using commands::Context;
using engine::EngineContext;

void Fcall(Context& ctx) { ctx.part<Scripts>().Run(EngineContext::Of(ctx)); }

// A change of the libraries: with the gate closed, and logged as it was sent before it opens.
// `change` returns the error, complete.
void Change(Context& ctx, const std::function<base::Status()>& change) {
  EngineContext& ec = EngineContext::Of(ctx);
  base::Status status;
  ec.engine().Exclusively(ec.lane(), [&] {
    status = change();
    if (!status) return;
    ec.invocation().Effect(ctx.args());
    ec.invocation().Changed(1);
    if (ec.invocation().outermost()) ec.invocation().Commit();
  });
  if (!status) ctx.Error(status.error());
}

// A catalog to be changed. REQUIRES: the gate is closed.
std::shared_ptr<Catalog> Copy(Scripts& scripts, engine::Lane& lane) {
  return std::make_shared<Catalog>(*scripts.CatalogNow(lane));
}

std::string AlreadyThere(std::string_view library) {
  return fmt::format("ERR Library '{}' already exists", library);
}

base::Status AddLibrary(Catalog& catalog, const LibraryPtr& library, bool replace) {
  if (catalog.libraries.contains(library->name)) {
    if (!replace) return base::Error{AlreadyThere(library->name)};
    catalog.Remove(library->name);
  }
  base::Status status = catalog.Add(library);
  return status ? status : base::Error{"ERR " + status.error()};
}

void FunctionLoad(Context& ctx) {
  bool replace = false;
  for (size_t i = 2; i + 1 < ctx.argc(); ++i) {
    if (!ctx.ArgIs(i, "REPLACE")) {
      return ctx.Error(fmt::format("ERR Unknown option given: {}", ctx.arg(i)));
    }
    replace = true;
  }
  Scripts& scripts = ctx.part<Scripts>();
  EngineContext& ec = EngineContext::Of(ctx);
  const std::string_view code = ctx.arg(ctx.argc() - 1);
  const CatalogPtr present = scripts.CatalogNow(ec.lane());  // compiled before the gate is closed
  // What is there is told before what is wrong with the rest of the source.
  if (const auto head = ReadLibraryHead(code);
      head && !replace && present->libraries.contains(head.value().name)) {
    return ctx.Error(AlreadyThere(head.value().name));
  }
  const auto library = scripts.CompileLibrary(ec.lane(), code, ec.client().origin.admitted);
  if (!library) return ctx.Error("ERR " + library.error());
  Change(ctx, [&]() -> base::Status {
    const auto catalog = Copy(scripts, ec.lane());
    if (base::Status status = AddLibrary(*catalog, library.value(), replace); !status) {
      return status;
    }
    ec.engine().libraries().Add(code);
    scripts.libraries().Replace(catalog);
    ctx.reply().Bulk(library.value()->name);
    return {};
  });
}

void FunctionDelete(Context& ctx) {
  Scripts& scripts = ctx.part<Scripts>();
  EngineContext& ec = EngineContext::Of(ctx);
  const std::string name(ctx.arg(2));
  scripts.CatalogNow(ec.lane());
  Change(ctx, [&]() -> base::Status {
    const auto catalog = Copy(scripts, ec.lane());
    if (!ec.engine().libraries().Delete(name)) {
      return base::Error{std::string(commands::errors::kNoLibrary)};
    }
    catalog->Remove(name);
    scripts.libraries().Replace(catalog);
    ctx.reply().Ok();
    return {};
  });
}

void FunctionFlush(Context& ctx) {
  if (ctx.argc() > 3) return commands::WrongSubcommand(ctx);
  const bool good =
      ctx.argc() == 2 || (ctx.argc() == 3 && (ctx.ArgIs(2, "SYNC") || ctx.ArgIs(2, "ASYNC")));
  if (!good) return ctx.Error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
  Scripts& scripts = ctx.part<Scripts>();
  Change(ctx, [&]() -> base::Status {
    EngineContext::Of(ctx).engine().libraries().Clear();
    scripts.libraries().Replace(std::make_shared<Catalog>());
    ctx.reply().Ok();
    return {};
  });
}

void FunctionDump(Context& ctx) {
  ctx.reply().Bulk(EngineContext::Of(ctx).engine().libraries().Pack());
}

void FunctionRestore(Context& ctx) {
  if (ctx.argc() > 4) return commands::WrongSubcommand(ctx);
  const bool flush = ctx.argc() == 4 && ctx.ArgIs(3, "FLUSH");
  const bool replace = ctx.argc() == 4 && ctx.ArgIs(3, "REPLACE");
  if (ctx.argc() == 4 && !flush && !replace && !ctx.ArgIs(3, "APPEND")) {
    return ctx.Error(
        "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.");
  }
  const auto codes = engine::FunctionLibraries::Unpack(ctx.arg(2));
  if (!codes) return ctx.Error("ERR " + codes.error());
  Scripts& scripts = ctx.part<Scripts>();
  EngineContext& ec = EngineContext::Of(ctx);
  scripts.CatalogNow(ec.lane());
  std::vector<LibraryPtr> libraries;
  for (const std::string& code : codes.value()) {
    const auto library = scripts.CompileLibrary(ec.lane(), code, ec.client().origin.admitted);
    if (!library) return ctx.Error("ERR " + library.error());
    libraries.push_back(library.value());
  }
  Change(ctx, [&]() -> base::Status {
    const auto catalog = flush ? std::make_shared<Catalog>() : Copy(scripts, ec.lane());
    for (const LibraryPtr& library : libraries) {
      if (!replace && catalog->libraries.contains(library->name)) {
        return base::Error{fmt::format("ERR Library {} already exists", library->name)};
      }
      if (base::Status status = AddLibrary(*catalog, library, replace); !status) return status;
    }
    ec.engine().libraries().Put(codes.value(), flush);
    scripts.libraries().Replace(catalog);
    ctx.reply().Ok();
    return {};
  });
}

void FunctionKill(Context& ctx) {
  switch (ctx.part<Scripts>().running().Kill(Kind::kFunction)) {
    case Running::Outcome::kYes:
      return ctx.reply().Ok();
    case Running::Outcome::kNothingRuns:
      return ctx.Error("NOTBUSY No scripts in execution right now.");
    case Running::Outcome::kHasWritten:
      return ctx.Error(kUnkillable);
    case Running::Outcome::kOtherKind:
      return ctx.Error(kBusyScript);
  }
}

void ListFunction(protocol::Reply& reply, const Function& function) {
  reply.Map(3);
  reply.Bulk("name");
  reply.Bulk(function.info.name);
  reply.Bulk("description");
  function.info.has_description ? reply.Bulk(function.info.description) : reply.Null();
  reply.Bulk("flags");
  int64_t count = 0;
  ForEachFlagName(function.info.flags, [&](std::string_view) { ++count; });
  reply.Set(count);
  ForEachFlagName(function.info.flags, [&](std::string_view name) { reply.Simple(name); });
}

void FunctionList(Context& ctx) {
  bool with_code = false;
  std::string_view pattern;
  for (size_t i = 2; i < ctx.argc(); ++i) {
    if (!with_code && ctx.ArgIs(i, "WITHCODE")) {
      with_code = true;
    } else if (pattern.data() == nullptr && ctx.ArgIs(i, "LIBRARYNAME")) {
      if (++i == ctx.argc()) return ctx.Error("ERR library name argument was not given");
      pattern = ctx.arg(i);
    } else {
      return ctx.Error(fmt::format("ERR Unknown argument {}", ctx.arg(i)));
    }
  }
  const CatalogPtr catalog = ctx.part<Scripts>().CatalogNow(EngineContext::Of(ctx).lane());
  std::vector<const Library*> shown;
  for (const auto& [name, library] : catalog->libraries) {
    if (pattern.data() == nullptr || base::GlobMatch(base::ToLower(pattern), base::ToLower(name))) {
      shown.push_back(library.get());
    }
  }
  protocol::Reply& reply = ctx.reply();
  reply.Array(static_cast<int64_t>(shown.size()));
  for (const Library* library : shown) {
    reply.Map(with_code ? 4 : 3);
    reply.Bulk("library_name");
    reply.Bulk(library->name);
    reply.Bulk("engine");
    reply.Bulk("LUA");
    reply.Bulk("functions");
    reply.Array(static_cast<int64_t>(library->functions.size()));
    for (const auto& function : library->functions) ListFunction(reply, *function);
    if (!with_code) continue;
    reply.Bulk("library_code");
    reply.Bulk(library->code);
  }
}

void FunctionStats(Context& ctx) {
  Scripts& scripts = ctx.part<Scripts>();
  const std::optional<Kind> busy = scripts.running().LongKind();
  const auto running = scripts.running().LongFunction();
  if (busy && !running) return ctx.Error(kBusyScript);
  protocol::Reply& reply = ctx.reply();
  reply.Map(2);
  reply.Bulk("running_script");
  if (running) {
    reply.Map(3);
    reply.Bulk("name");
    reply.Bulk(running->name);
    reply.Bulk("command");
    reply.Array(static_cast<int64_t>(running->words.size()));
    for (const std::string& word : running->words) reply.Bulk(word);
    reply.Bulk("duration_ms");
    const base::Clock& clock = EngineContext::Of(ctx).engine().clock();
    reply.Int((clock.MonotonicMicros() - running->began_us) / 1000);
  } else {
    reply.Null();
  }
  // While a script is busy nothing is compiled.
  const CatalogPtr catalog =
      busy ? scripts.libraries().last() : scripts.CatalogNow(EngineContext::Of(ctx).lane());
  reply.Bulk("engines");
  reply.Map(1);
  reply.Bulk("LUA");
  reply.Map(2);
  reply.Bulk("libraries_count");
  reply.Int(static_cast<int64_t>(catalog->libraries.size()));
  reply.Bulk("functions_count");
  reply.Int(static_cast<int64_t>(catalog->functions.size()));
}

constexpr uint32_t kEvalFlags = commands::kNoscript | commands::kStale | commands::kSkipMonitor |
                                commands::kNoMandatoryKeys | commands::kMovableKeys;

constexpr CommandSpec CallRow(std::string_view name, uint32_t flags, uint16_t key_flags,
                              std::string_view notes, std::string_view summary,
                              std::string_view example) {
  return {.name = name,
          .handler = Fcall,
          .arity = -3,
          .flags = kEvalFlags | flags,
          .traits = commands::kRunsScript,
          .acl = commands::kAclScripting,
          .keys = {{.flags = key_flags, .first = 2, .keynum = true, .notes = notes}},
          .group = "scripting",
          .since = "7.0.0",
          .summary = summary,
          .complexity = "Depends on the function that is executed.",
          .arguments = "function numkeys:integer [key ...] [arg ...]",
          .reply = "what the function returns",
          .example = example};
}

constexpr CommandSpec Row(std::string_view name, commands::Handler handler, int16_t arity,
                          uint32_t flags, std::string_view summary, std::string_view complexity,
                          std::string_view arguments, std::string_view reply,
                          std::string_view example, std::string_view tips = {}) {
  return {.name = name,
          .handler = handler,
          .arity = arity,
          .flags = flags,
          .acl = commands::kAclScripting,
          .group = "scripting",
          .since = "7.0.0",
          .summary = summary,
          .complexity = complexity,
          .arguments = arguments,
          .reply = reply,
          .example = example,
          .tips = tips};
}

constexpr uint32_t kChange = commands::kWrite | commands::kNoscript;
constexpr std::string_view kEverywhere = "request_policy:all_shards,response_policy:all_succeeded";

constexpr CommandSpec kFunctionSubcommands[] = {
    Row("delete", FunctionDelete, 3, kChange, "Deletes a library and its functions.", "O(1)",
        "library-name", "OK", "FUNCTION DELETE mylib", kEverywhere),
    Row("dump", FunctionDump, 2, commands::kNoscript, "Packs all libraries into a payload.",
        "O(N) where N is the number of functions", {}, "the payload for FUNCTION RESTORE",
        "FUNCTION DUMP"),
    Row("flush", FunctionFlush, -2, kChange, "Deletes all libraries.",
        "O(N) where N is the number of functions deleted", "[flush-type: ASYNC | SYNC]", "OK",
        "FUNCTION FLUSH", kEverywhere),
    Row("help", commands::HelpCommand, 2, commands::kLoading | commands::kStale, "Shows this help.",
        "O(1)", {}, "array of lines", "FUNCTION HELP"),
    Row("kill", FunctionKill, 2, commands::kNoscript | commands::kAllowBusy,
        "Ends a function that takes long and has not written.", "O(1)", {}, "OK", "FUNCTION KILL",
        "request_policy:all_shards,response_policy:one_succeeded"),
    Row("list", FunctionList, -2, commands::kNoscript, "Lists the libraries and their functions.",
        "O(N) where N is the number of functions",
        "[LIBRARYNAME library-name-pattern:pattern] [WITHCODE]", "array of maps", "FUNCTION LIST",
        "nondeterministic_output_order"),
    Row("load", FunctionLoad, -3, kChange | commands::kDenyOom,
        "Creates a library from its source.", "O(1) (considering compilation time is redundant)",
        "[REPLACE] function-code", "the library's name",
        "FUNCTION LOAD \"#!lua name=mylib\\nredis.register_function('hello', function() return "
        "'hi' end)\"",
        kEverywhere),
    Row("restore", FunctionRestore, -3, kChange | commands::kDenyOom,
        "Restores the libraries of a payload.",
        "O(N) where N is the number of functions on the payload",
        "serialized-value [policy: FLUSH | APPEND | REPLACE]", "OK", "FUNCTION RESTORE payload",
        kEverywhere),
    Row("stats", FunctionStats, 2, commands::kNoscript | commands::kAllowBusy,
        "Tells of the function that runs, and of the engines.", "O(1)", {}, "map", "FUNCTION STATS",
        "nondeterministic_output,request_policy:all_shards,response_policy:special"),
};

constexpr CommandSpec kRows[] = {
    CallRow("fcall", commands::kMayReplicate,
            commands::kKeyRw | commands::kKeyAccess | commands::kKeyUpdate,
            "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE",
            "Calls a function.", "FCALL hello 0"),
    CallRow("fcall_ro", commands::kReadonly, commands::kKeyRo | commands::kKeyAccess,
            "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS",
            "Calls a function that only reads.", "FCALL_RO hello 0"),
    {.name = "function",
     .arity = -2,
     .group = "scripting",
     .since = "7.0.0",
     .summary = "Commands about libraries of functions.",
     .complexity = "Depends on subcommand.",
     .subcommands = kFunctionSubcommands},
};

}  // namespace

std::span<const CommandSpec> FunctionCommands() { return kRows; }

}  // namespace sava::script
