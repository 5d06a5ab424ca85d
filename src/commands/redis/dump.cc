// DUMP and RESTORE: a value as bytes that any Redis understands (docs/formats/dump.md).
#include "commands/dump.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "base/text.h"
#include "commands/redis/keys.h"
#include "types/value/save.h"
#include "types/value/type_registry.h"

namespace sava::commands::keys {

namespace {

void Dump(Context& context) {
  const Value value = context.Find(context.arg(1), Access::kRead);
  if (!value) return context.reply().Null();
  context.reply().Bulk(DumpOf(value));
}

struct RestoreOptions {
  bool replace = false;
  bool absolute_ttl = false;
  int64_t idle_seconds = -1;
  int64_t frequency = -1;
};

bool ParseRestoreOptions(Context& context, RestoreOptions* options) {
  for (size_t i = 4; i < context.argc(); ++i) {
    const bool has_value = i + 1 < context.argc();
    if (context.ArgIs(i, "REPLACE")) {
      options->replace = true;
    } else if (context.ArgIs(i, "ABSTTL")) {
      options->absolute_ttl = true;
    } else if (context.ArgIs(i, "IDLETIME") && has_value && options->frequency == -1) {
      if (!context.IntArg(++i, &options->idle_seconds)) return false;
      if (options->idle_seconds < 0) {
        context.Error("ERR Invalid IDLETIME value, must be >= 0");
        return false;
      }
    } else if (context.ArgIs(i, "FREQ") && has_value && options->idle_seconds == -1) {
      if (!context.IntArg(++i, &options->frequency)) return false;
      if (options->frequency < 0 || options->frequency > 255) {
        context.Error("ERR Invalid FREQ value, must be >= 0 and <= 255");
        return false;
      }
    } else {
      context.Error(errors::kSyntax);
      return false;
    }
  }
  return true;
}

// What a payload holds: an object, or else a string.
struct Restored {
  std::unique_ptr<types::Object> object;
  std::string scratch;
  std::string_view string;
};

// As much of a key as the log shows.
constexpr size_t kShownKey = 100;

void WarnRefused(Context& context, std::string_view what) {
  context.Warn(fmt::format("RESTORE of key {} is refused: {}",
                           base::Quoted(context.arg(1).substr(0, kShownKey)), what));
}

// False when the bytes are no value of a type that is known here; the log then says why.
bool Load(Context& context, std::string_view body, Restored* restored) {
  types::Reader in(body);
  in.set_limits(context.collection_limits());
  const uint8_t type = in.Byte();
  const types::TypeRegistry* known = context.type_registry();
  if (in.ok() && type == types::kRdbString) {
    restored->string = in.StringView(&restored->scratch);
  } else if (in.ok() && known != nullptr) {
    restored->object = known->Load(type, in);
  } else {
    in.Fail();
  }
  if (in.ok()) return true;
  WarnRefused(context,
              fmt::format("at byte {}: integrity check failed for a value of RDB type {}: {}",
                          in.failed_at(), type, in.failed_check()));
  return false;
}

// The moment at which a TTL that counts from now runs out. Beyond all times the sum is negative: in
// Redis such a key has run out already.
int64_t Moment(int64_t now, int64_t ttl) {
  return static_cast<int64_t>(static_cast<uint64_t>(now) + static_cast<uint64_t>(ttl));
}

// The payload was outlived by its own TTL: only what stood at the key is to go.
void DropExpired(Context& context, std::string_view key, bool replace) {
  if (replace && context.Delete(key)) {
    context.Notify(kNotifyGeneric, "del", key);
    context.Effect({"DEL", key});
    context.Changed();
  }
  context.reply().Ok();
}

void Restore(Context& context) {
  const std::string_view key = context.arg(1);
  const std::string_view payload = context.arg(3);
  RestoreOptions options;
  if (!ParseRestoreOptions(context, &options)) return;
  if (!options.replace && context.Find(key, Access::kWrite)) return context.Error(errors::kBusyKey);
  int64_t ttl = 0;
  if (!context.IntArg(2, &ttl)) return;
  if (ttl < 0) return context.Error("ERR Invalid TTL value, must be >= 0");
  std::string_view body;
  std::string fault;
  if (!types::OpenDump(payload, &body, !context.skips_checksums(), &fault)) {
    WarnRefused(context, fault);
    return context.Error(errors::kBadPayload);
  }
  Restored restored;
  if (!Load(context, body, &restored)) return context.Error(errors::kBadData);

  int64_t expire_at = kNoExpiry;
  if (ttl != 0) {
    expire_at = options.absolute_ttl ? ttl : Moment(context.now_ms(), ttl);
    if (context.Past(expire_at)) return DropExpired(context, key, options.replace);
  }
  const bool replaced = options.replace && context.Find(key, Access::kPeek);
  if (restored.object) {
    context.SetObject(key, std::move(restored.object), expire_at);
  } else {
    context.SetString(key, restored.string, expire_at);
  }
  if (replaced) context.CountAsNew(key);
  if (options.idle_seconds >= 0 || options.frequency >= 0) {
    context.SetAge(key, options.idle_seconds, static_cast<int>(options.frequency));
  }
  if (ttl != 0 && !options.absolute_ttl) {
    context.Effect({"RESTORE", key, base::IntText(expire_at), payload, "REPLACE", "ABSTTL"});
  }
  context.Notify(kNotifyGeneric, "restore", key);
  context.Changed();
  context.reply().Ok();
}

constexpr CommandSpec kRows[] = {
    {.name = "dump",
     .handler = Dump,
     .arity = 2,
     .flags = kReadonly,
     .acl = kAclKeyspace,
     .keys = {KeyAt(1, kKeyRo | kKeyAccess)},
     .group = "generic",
     .since = "2.6.0",
     .summary = "Gives what a key holds as bytes that RESTORE takes, here or on a Redis.",
     .complexity = "O(N) for a value of N bytes",
     .arguments = "key",
     .reply = "bulk string, or null for a missing key",
     .example = "DUMP greeting",
     .tips = "nondeterministic_output"},
    {.name = "restore",
     .handler = Restore,
     .arity = -4,
     .flags = kWrite | kDenyOom,
     .acl = kAclKeyspace | kAclDangerous,
     .keys = {KeyAt(1, kKeyOw | kKeyUpdate)},
     .group = "generic",
     .since = "2.6.0",
     .summary = "Makes a key from the bytes that DUMP gave.",
     .complexity = "O(N) for a value of N bytes",
     .arguments = "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
     .reply = "OK",
     .example = R"(RESTORE greeting 0 "\x00\x05hello\n\x00cr\xdfve4 \n")"},
};

}  // namespace

std::span<const CommandSpec> DumpRows() { return kRows; }

}  // namespace sava::commands::keys
