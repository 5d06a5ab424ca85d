// DEBUG: looks inside, makes data, waits. Open only where enable-debug-command allows it.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "admin/digest.h"
#include "admin/families.h"
#include "admin/process_facts.h"
#include "base/glob.h"
#include "base/process_memory.h"
#include "commands/family.h"
#include "config/config_table.h"
#include "engine/clients.h"
#include "engine/engine_context.h"
#include "engine/keys.h"
#include "engine/reloader.h"
#include "types/value/save.h"

namespace sava::admin {

namespace {

using commands::Access;
using commands::Context;
using commands::Value;
using engine::EngineContext;

// Everybody waits: it runs with the gate closed.
void Sleep(Context& ctx) {
  const double seconds = strtod(std::string(ctx.arg(2)).c_str(), nullptr);
  if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  ctx.reply().Ok();
}

std::string_view Encoding(const Value& value) {
  if (!value.is_string()) return value.object->encoding();
  switch (value.form) {
    case commands::StringForm::kInt:
      return "int";
    case commands::StringForm::kEmbstr:
      return "embstr";
    case commands::StringForm::kRaw:
      break;
  }
  return "raw";
}

// Bytes of the value in a snapshot, without its type.
size_t SerializedLength(const Value& value) {
  std::string bytes;
  {
    types::Writer writer(&bytes);
    if (value.is_int()) {
      writer.StringOf(value.integer);
    } else if (value.is_string()) {
      writer.String(value.bytes);
    } else {
      value.object->Save(writer);
    }
  }
  return bytes.size();
}

// What is kept, also when its time is over.
void Object(Context& ctx) {
  keyspace::Keyspace& keyspace = EngineContext::Of(ctx).engine().keyspace();
  const Value value = engine::Glance(keyspace, INT64_MIN, ctx.db(), ctx.arg(2));
  if (!value) return ctx.Error(commands::errors::kNoSuchKey);
  const int64_t idle = ctx.Age(ctx.arg(2)).idle_seconds;
  const void* address = value.is_string() ? static_cast<const void*>(value.bytes.data())
                                          : static_cast<const void*>(value.object);
  const uint32_t clock = EngineContext::Of(ctx).lane().batch.lru_clock;
  const size_t encoded = value.is_string() ? 0 : value.object->encoded_blocks();
  ctx.reply().Simple(fmt::format(
      "Value at:0x{:x} refcount:1 encoding:{} serializedlength:{} lru:{} lru_seconds_idle:{}{}",
      reinterpret_cast<uintptr_t>(address), Encoding(value), SerializedLength(value),
      (clock - static_cast<uint32_t>(idle)) & 0xffffff, idle,
      encoded == 0 ? "" : fmt::format(" encoded_blocks:{}", encoded)));
}

void SetActiveExpire(Context& ctx) {
  const bool on = atoi(std::string(ctx.arg(2)).c_str()) != 0;
  EngineContext::Of(ctx).engine().switches().active_expire.store(on, std::memory_order_relaxed);
  ctx.reply().Ok();
}

void ChangeReplId(Context& ctx) {
  ctx.part<ProcessFacts>().change_history();
  ctx.reply().Ok();
}

void Replicate(Context& ctx) {
  EngineContext& ec = EngineContext::Of(ctx);
  journal::Journal& journal = ec.engine().journal();
  if (journal.enabled()) {
    ec.invocation().effects().Add(journal, ec.lane().index, ctx.args().subspan(2), ctx.db(),
                                  journal::kToReplicas);
  }
  ctx.reply().Ok();
}

void SkipChecksums(Context& ctx) {
  const bool skip = atoi(std::string(ctx.arg(2)).c_str()) != 0;
  EngineContext::Of(ctx).engine().switches().skip_checksums.store(skip, std::memory_order_relaxed);
  ctx.reply().Ok();
}

void Digest(Context& ctx) {
  const keyspace::Keyspace& keyspace = EngineContext::Of(ctx).engine().keyspace();
  ctx.reply().Simple(KeyspaceDigest(keyspace, ctx.now_ms()).Hex());
}

void DigestValue(Context& ctx) {
  const commands::Args keys = ctx.args().subspan(2);
  ctx.reply().Array(static_cast<int64_t>(keys.size()));
  for (const std::string_view key : keys) {
    ctx.reply().Simple(ValueDigest(ctx.Find(key, Access::kPeek)).Hex());
  }
}

// count keys "prefix:n" with the value "value:n", cut or padded with zero bytes to a size. Keys
// that are there stay as they are.
void Populate(Context& ctx) {
  int64_t count = 0;
  int64_t size = 0;
  const bool sized = ctx.argc() == 5;
  const auto positive = [&](size_t i, int64_t* out) {
    if (base::ParseInt(ctx.arg(i), out) && *out >= 0) return true;
    ctx.Error(commands::errors::kMustBePositive);
    return false;
  };
  if (!positive(2, &count) || (sized && !positive(4, &size))) return;
  const std::string prefix = ctx.argc() > 3 ? std::string(ctx.arg(3)) + ':' : "key:";
  for (int64_t i = 0; i < count; ++i) {
    const std::string number = base::IntText(i);
    const std::string key = prefix + number;
    if (ctx.Exists(key)) continue;
    std::string value = "value:" + number;
    if (size > 0) value.resize(static_cast<size_t>(size), '\0');
    ctx.SetString(key, value);
  }
  ctx.reply().Ok();
}

void Numbers(protocol::Reply& reply) {
  for (int i = 0; i < 3; ++i) reply.Int(i);
}

// A value of each type of the protocol, for authors of clients.
void Protocol(Context& ctx) {
  protocol::Reply& reply = ctx.reply();
  if (ctx.ArgIs(2, "string")) {
    reply.Bulk("Hello World");
  } else if (ctx.ArgIs(2, "integer")) {
    reply.Int(12345);
  } else if (ctx.ArgIs(2, "double")) {
    reply.Double(3.141);
  } else if (ctx.ArgIs(2, "null")) {
    reply.Null();
  } else if (ctx.ArgIs(2, "array")) {
    reply.Array(3);
    Numbers(reply);
  } else if (ctx.ArgIs(2, "set")) {
    reply.Set(3);
    Numbers(reply);
  } else if (ctx.ArgIs(2, "map")) {
    reply.Map(3);
    for (int i = 0; i < 3; ++i) {
      reply.Int(i);
      reply.Bool(i == 1);
    }
  } else if (ctx.ArgIs(2, "attrib")) {
    if (reply.resp() == 3) {
      reply.Attribute(1);
      reply.Bulk("key-popularity");
      reply.Array(2);
      reply.Bulk("key:123");
      reply.Int(90);
    }
    reply.Bulk("Some real reply following the attribute");
  } else if (ctx.ArgIs(2, "push")) {
    if (reply.resp() != 3) return ctx.Error("ERR RESP2 is not supported by this command");
    const size_t mark = reply.Mark();
    reply.Push(2);
    reply.Bulk("server-cpu-usage");
    reply.Int(42);
    EngineContext::Of(ctx).client().KeepPush(mark);
    reply.Bulk("Some real reply following the push reply");
  } else if (ctx.ArgIs(2, "true") || ctx.ArgIs(2, "false")) {
    reply.Bool(ctx.ArgIs(2, "true"));
  } else if (ctx.ArgIs(2, "verbatim")) {
    reply.Verbatim("txt", "This is a verbatim\nstring");
  } else if (ctx.ArgIs(2, "bignum")) {
    reply.BigNumber("1234567999999999999999999999999999999");
  } else {
    ctx.Error(
        "ERR Wrong protocol type name. Please use one of the following: "
        "string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false");
  }
}

// Writes to a forbidden address: the process ends, and its log says how.
void Segfault(Context& /*ctx*/) {
  void* const page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *static_cast<volatile char*>(page) = 'x';
}

void Log(Context& ctx) {
  spdlog::warn("DEBUG LOG: {}", ctx.arg(2));
  ctx.reply().Ok();
}

void Error(Context& ctx) { ctx.Error(ctx.arg(2)); }
void Nothing(Context& ctx) { ctx.reply().Ok(); }

void StringmatchLen(Context& ctx) {
  ctx.reply().Int(base::GlobMatch(ctx.arg(2), ctx.arg(3)) ? 1 : 0);
}

void PackedThreshold(Context& ctx) {
  uint64_t bytes = 0;
  if (!config::ParseMemory(ctx.arg(2), &bytes) || bytes > UINT32_MAX) {
    return ctx.Error("ERR argument must be a memory value bigger than 1 and smaller than 4gb");
  }
  ctx.reply().Ok();
}

// Answers as if it had printed a value of this encoding.
void Printed(Context& ctx, std::string_view encoding, std::string_view name) {
  const Value value = ctx.Find(ctx.arg(2), Access::kPeek);
  if (!value) return ctx.Error(commands::errors::kNoSuchKey);
  if (Encoding(value) != encoding) {
    return ctx.Error(fmt::format("ERR Not a {} encoded object.", encoding));
  }
  ctx.reply().Simple(fmt::format("{} structure printed on stdout", name));
}

// As Redis heads it; what follows are figures of our tables, which have no chains.
std::string TableText(size_t elements, size_t bytes) {
  std::string text = "Hash table 0 stats (main hash table):\n";
  if (elements == 0) return text + "No stats available for empty dictionaries\n";
  text += fmt::format(" number of elements: {}\n", elements);
  return bytes == 0 ? text : text + fmt::format(" bytes: {}\n", bytes);
}

void Htstats(Context& ctx) {
  int64_t db = 0;
  if (!ctx.IntArg(2, &db)) return;
  const keyspace::Keyspace& keyspace = EngineContext::Of(ctx).engine().keyspace();
  if (db < 0 || db >= keyspace.databases()) return ctx.Error("ERR Out of range database");
  const int number = static_cast<int>(db);
  size_t bytes = 0;
  for (size_t stripe = 0; stripe < keyspace::Keyspace::kStripes; ++stripe) {
    const keyspace::Table* table = keyspace.table(number, stripe);
    if (table != nullptr) bytes += table->used_bytes();
  }
  ctx.reply().Verbatim("txt", "[Dictionary HT]\n" + TableText(keyspace.Size(number), bytes) +
                                  "[Expires HT]\n" + TableText(keyspace.Expiring(number), 0));
}

void HtstatsKey(Context& ctx) {
  const Value value = ctx.Find(ctx.arg(2), Access::kPeek);
  if (!value) return ctx.Error(commands::errors::kNoSuchKey);
  const std::string_view encoding = Encoding(value);
  if (encoding != "hashtable" && encoding != "skiplist") {
    return ctx.Error(
        "ERR The value stored at the specified key is not represented using an hash table");
  }
  ctx.reply().Verbatim("txt", TableText(value.object->size(), value.object->MemoryUsage(0)));
}

void PauseCron(Context& ctx) {
  const bool paused = atoi(std::string(ctx.arg(2)).c_str()) != 0;
  EngineContext::Of(ctx).engine().switches().cron_paused.store(paused, std::memory_order_relaxed);
  ctx.reply().Ok();
}

void AnyInScripts(Context& ctx) {
  const bool any = atoi(std::string(ctx.arg(2)).c_str()) != 0;
  EngineContext::Of(ctx).engine().switches().any_in_scripts.store(any, std::memory_order_relaxed);
  ctx.reply().Ok();
}

void ReplyBuffer(Context& ctx) {
  if (ctx.ArgIs(2, "RESIZING")) {
    const bool resizing = atoi(std::string(ctx.arg(3)).c_str()) != 0;
    EngineContext::Of(ctx).engine().switches().keeps_output.store(!resizing,
                                                                  std::memory_order_relaxed);
  } else if (!ctx.ArgIs(2, "PEAK-RESET-TIME")) {
    return commands::WrongSubcommand(ctx);
  } else if (int64_t millis = 0;
             !ctx.ArgIs(3, "NEVER") && !ctx.ArgIs(3, "RESET") && !ctx.IntArg(3, &millis)) {
    return;
  }
  ctx.reply().Ok();
}

void AllocatorError(Context& ctx, int error) { ctx.Error("ERR " + std::string(strerror(error))); }

// Numbers of the allocator have 8, 4 or 1 bytes: whatever it accepts.
void Mallctl(Context& ctx) {
  const std::string name(ctx.arg(2));
  int64_t fresh = 0;
  const bool writes = ctx.argc() > 3;
  if (writes && !ctx.IntArg(3, &fresh)) return;
  for (size_t size = sizeof fresh; size > 0; size /= 2) {
    int64_t old = 0;
    size_t length = size;
    int error = base::ControlAllocator(name.c_str(), &old, &length, writes ? &fresh : nullptr,
                                       writes ? size : 0);
    if (error == 0) return ctx.reply().Int(old);
    if (error == EPERM && writes) {  // it may be one that is only written
      error = base::ControlAllocator(name.c_str(), nullptr, nullptr, &fresh, size);
      if (error == 0) return ctx.reply().Ok();
    }
    if (error != EINVAL) return AllocatorError(ctx, error);
  }
  AllocatorError(ctx, EINVAL);
}

// What the allocator has as texts. It cannot tell itself, and a number taken for the address of a
// text would end the process.
bool IsAllocatorText(std::string_view name) {
  static constexpr std::string_view kTexts[] = {
      "version",          "config.malloc_conf", "opt.dss",
      "opt.metadata_thp", "opt.percpu_arena",   "opt.junk",
      "opt.thp",          "opt.zero_realloc",   "prof.dump"};
  return std::ranges::find(kTexts, name) != std::end(kTexts) ||
         (name.starts_with("arena.") && name.ends_with(".dss"));
}

void MallctlStr(Context& ctx) {
  const std::string name(ctx.arg(2));
  const bool writes = ctx.argc() > 3;
  const bool nothing = writes && ctx.arg(3) == "VOID";
  if (!IsAllocatorText(name)) {
    // What only does something takes neither text nor number.
    const int error =
        nothing ? base::ControlAllocator(name.c_str(), nullptr, nullptr, nullptr, 0) : ENOENT;
    return error == 0 ? ctx.reply().Ok() : AllocatorError(ctx, error);
  }
  const char* old = nullptr;
  size_t length = sizeof old;
  const int read = base::ControlAllocator(name.c_str(), &old, &length, nullptr, 0);
  if (read != 0 && !(read == EPERM && writes)) return AllocatorError(ctx, read);
  const std::string before = old == nullptr ? "" : old;
  int written = 0;
  if (writes) {
    const std::string text(ctx.arg(3));
    const char* fresh = text.c_str();
    written = base::ControlAllocator(name.c_str(), nullptr, nullptr, nothing ? nullptr : &fresh,
                                     nothing ? 0 : sizeof fresh);
  }
  if (read == 0) return ctx.reply().Bulk(before);
  written == 0 ? ctx.reply().Ok() : AllocatorError(ctx, written);
}

void Listpack(Context& ctx) { Printed(ctx, "listpack", "Listpack"); }
void Quicklist(Context& ctx) { Printed(ctx, "quicklist", "Quicklist"); }

// Answered when the keeper has done it; inside EXEC it could not wait.
bool MayWait(Context& ctx) {
  if (!EngineContext::Of(ctx).client().has(engine::kClientInExec)) return true;
  ctx.Error("ERR DEBUG RELOAD and LOADAOF are not allowed inside a transaction");
  return false;
}

void Reload(Context& ctx) {
  uint32_t options = 0;
  for (size_t i = 2; i < ctx.argc(); ++i) {
    if (ctx.ArgIs(i, "MERGE")) {
      options |= engine::Reloader::kMerge;
    } else if (ctx.ArgIs(i, "NOFLUSH")) {
      options |= engine::Reloader::kNoFlush;
    } else if (ctx.ArgIs(i, "NOSAVE")) {
      options |= engine::Reloader::kNoSave;
    } else {
      return ctx.Error("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.");
    }
  }
  if (!MayWait(ctx)) return;
  const engine::Client& client = engine::BlockForReply(ctx);
  ctx.part<engine::Reloader>().Reload({client.lane, client.id, client.wait.token}, options);
}

void LoadAof(Context& ctx) {
  if (!MayWait(ctx)) return;
  const engine::Client& client = engine::BlockForReply(ctx);
  ctx.part<engine::Reloader>().LoadAof({client.lane, client.id, client.wait.token});
}

void Help(Context& ctx);

// DEBUG has no subcommands of its own in COMMAND's view; this is what it understands.
struct Subcommand {
  std::string_view name;
  size_t least;  // arguments, the two words counted
  size_t most;
  commands::Handler handler;
  bool alone;  // with the gate closed
  std::string_view usage;
  std::string_view summary;
};

constexpr size_t kAny = SIZE_MAX;

constexpr Subcommand kSubcommands[] = {
    {"CHANGE-REPL-ID", 2, 2, ChangeReplId, true, "",
     "Gives the stream of changes another id: replicas that come back need a copy of the data."},
    {"DIGEST", 2, 2, Digest, true, "", "Shows a digest of all databases."},
    {"DIGEST-VALUE", 2, kAny, DigestValue, true, "[<key> ...]", "Shows digests of values."},
    {"ERROR", 3, 3, Error, false, "<string>", "Replies with this error."},
    {"HELP", 2, 2, Help, false, "", "Shows this help."},
    {"DICT-RESIZING", 3, 3, Nothing, false, "<0|1>", "Does nothing."},
    {"HTSTATS", 3, 4, Htstats, true, "<dbid> [full]",
     "Tells how many keys a database has, how many of them expire, and the bytes they take."},
    {"HTSTATS-KEY", 3, 4, HtstatsKey, true, "<key> [full]",
     "Tells the same of a value that is kept in a table."},
    {"JMAP", 2, 2, Nothing, false, "", "Does nothing."},
    {"LISTPACK", 3, 3, Listpack, true, "<key>",
     "Tells whether Redis would keep a value as a listpack."},
    {"LOADAOF", 2, 2, LoadAof, false, "", "Empties the databases and loads the append-only log."},
    {"LOG", 3, 3, Log, false, "<message>", "Writes a line to the server's log."},
    {"MALLCTL", 3, 4, Mallctl, false, "<name> [<value>]",
     "Shows a number of the allocator jemalloc, and sets it."},
    {"MALLCTL-STR", 3, 4, MallctlStr, false, "<name> [<value>]",
     "Shows a text of the allocator jemalloc, and sets it."},
    {"OBJECT", 3, 3, Object, true, "<key>", "Describes how a value is kept."},
    {"PAUSE-CRON", 3, 3, PauseCron, false, "<0|1>",
     "Stops what the server does now and then: expiry, save rules, statistics, timeouts."},
    {"POPULATE", 3, 5, Populate, true, "<count> [<prefix> [<size>]]",
     "Makes keys key:0, key:1, ... with values value:0, value:1, ..."},
    {"PROTOCOL", 3, 3, Protocol, false, "<type>",
     "Replies with a value of a type: string, integer, double, bignum, null, array, set, map, "
     "attrib, push, verbatim, true, false."},
    {"QUICKLIST", 3, 4, Quicklist, true, "<key>",
     "Tells whether Redis would keep a list as a quicklist."},
    {"QUICKLIST-PACKED-THRESHOLD", 3, 3, PackedThreshold, false, "<size>", "Does nothing."},
    {"RELOAD", 2, kAny, Reload, false, "[<option> ...]",
     "Saves a snapshot and loads it again. NOSAVE: loads the one there is; NOFLUSH, MERGE: without "
     "emptying the databases first."},
    {"REPLICATE", 3, kAny, Replicate, true, "<command> [<arg> ...]",
     "Sends a command to the replicas and does not run it here: their data may then differ."},
    {"REPLYBUFFER", 4, 4, ReplyBuffer, false, "RESIZING <0|1> | PEAK-RESET-TIME <never|reset|ms>",
     "RESIZING 0: clients keep the memory of answers that were sent. PEAK-RESET-TIME does nothing: "
     "otherwise it is given back at once."},
    {"SEGFAULT", 2, 2, Segfault, false, "", "Ends the server by an invalid access to memory."},
    {"SET-ACTIVE-EXPIRE", 3, 3, SetActiveExpire, false, "<0|1>",
     "Switches the background removal of expired keys off or on."},
    {"SET-DISABLE-DENY-SCRIPTS", 3, 3, AnyInScripts, false, "<0|1>",
     "Lets scripts call the commands that they may not call otherwise."},
    {"SET-SKIP-CHECKSUM-VALIDATION", 3, 3, SkipChecksums, false, "<0|1>",
     "Switches the comparison of checksums, of RDB files and of RESTORE, off or on."},
    {"SLEEP", 3, 3, Sleep, true, "<seconds>", "Makes the whole server wait; fractions are fine."},
    {"STRINGMATCH-LEN", 4, 4, StringmatchLen, false, "<pattern> <string>",
     "Tells whether a pattern matches a text."},
};

void Help(Context& ctx) {
  ctx.reply().Array(static_cast<int64_t>(std::size(kSubcommands)) * 2 + 1);
  ctx.reply().Simple("DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
  for (const Subcommand& sub : kSubcommands) {
    std::string line(sub.name);
    if (!sub.usage.empty()) line.append(" ").append(sub.usage);
    ctx.reply().Simple(line);
    ctx.reply().Simple("    " + std::string(sub.summary));
  }
}

const Subcommand* FindSubcommand(commands::Args args) {
  for (const Subcommand& sub : kSubcommands) {
    if (base::EqualsNoCase(args[1], sub.name) && args.size() >= sub.least &&
        args.size() <= sub.most) {
      return &sub;
    }
  }
  return nullptr;
}

void Debug(Context& ctx) {
  const Subcommand* sub = FindSubcommand(ctx.args());
  if (sub == nullptr) return commands::WrongSubcommand(ctx);
  sub->handler(ctx);
}

commands::LockClass DebugLock(commands::Args args) {
  const Subcommand* sub = FindSubcommand(args);
  return sub != nullptr && sub->alone ? commands::LockClass::kAll : commands::LockClass::kNone;
}

constexpr commands::CommandSpec kRows[] = {
    {.name = "debug",
     .handler = Debug,
     .arity = -2,
     .flags = commands::kAdminFlags | commands::kProtected,
     .traits = commands::kDebugging,
     .choose_lock = DebugLock,
     .group = "server",
     .since = "1.0.0",
     .summary = "Tools for testing the server; DEBUG HELP lists them.",
     .complexity = "Depends on the subcommand",
     .arguments = "subcommand [argument ...]",
     .reply = "depends on the subcommand",
     .example = "DEBUG HELP"},
};

}  // namespace

std::span<const commands::CommandSpec> DebugCommands() { return kRows; }

}  // namespace sava::admin
