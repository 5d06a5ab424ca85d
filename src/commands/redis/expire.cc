// When keys expire: EXPIRE PEXPIRE EXPIREAT PEXPIREAT, TTL PTTL EXPIRETIME PEXPIRETIME, PERSIST.
//
// Whatever way a time was written, it is logged as PEXPIREAT with Unix milliseconds; a time that
// has passed deletes the key at once and is logged as DEL.
#include <string>

#include "commands/redis/keys.h"

namespace sava::commands::keys {

namespace {

struct Conditions {
  bool nx = false;
  bool xx = false;
  bool gt = false;
  bool lt = false;
};

bool ParseConditions(Context& context, Conditions* conditions) {
  for (size_t i = 3; i < context.argc(); ++i) {
    if (context.ArgIs(i, "NX")) {
      conditions->nx = true;
    } else if (context.ArgIs(i, "XX")) {
      conditions->xx = true;
    } else if (context.ArgIs(i, "GT")) {
      conditions->gt = true;
    } else if (context.ArgIs(i, "LT")) {
      conditions->lt = true;
    } else {
      context.Error("ERR Unsupported option " + std::string(context.arg(i)));
      return false;
    }
  }
  if (conditions->nx && (conditions->xx || conditions->gt || conditions->lt)) {
    context.Error("ERR NX and XX, GT or LT options at the same time are not compatible");
    return false;
  }
  if (conditions->gt && conditions->lt) {
    context.Error("ERR GT and LT options at the same time are not compatible");
    return false;
  }
  return true;
}

// A key without expiry counts as one that expires at the end of time.
bool Hold(const Conditions& conditions, int64_t current, int64_t when) {
  const bool expires = current != kNoExpiry;
  if (conditions.nx && expires) return false;
  if (conditions.xx && !expires) return false;
  if (conditions.gt && (!expires || when <= current)) return false;
  if (conditions.lt && expires && when >= current) return false;
  return true;
}

// base_ms: what the argument counts from; unit_ms: 1000 for seconds.
void SetTime(Context& context, int64_t base_ms, int64_t unit_ms, std::string_view name) {
  const std::string_view key = context.arg(1);
  Conditions conditions;
  if (!ParseConditions(context, &conditions)) return;
  int64_t when = 0;
  if (!context.IntArg(2, &when)) return;
  if (__builtin_mul_overflow(when, unit_ms, &when) ||
      __builtin_add_overflow(when, base_ms, &when)) {
    return context.Error(errors::BadExpireTime(name));
  }
  const Value value = context.Find(key, Access::kWrite);
  if (!value || !Hold(conditions, value.expire_at, when)) return context.reply().Int(0);
  if (context.Past(when)) {
    context.Delete(key);
    context.Notify(kNotifyGeneric, "del", key);
    context.Effect({"DEL", key});
  } else {
    context.SetExpiry(key, when);
    context.Notify(kNotifyGeneric, "expire", key);
    context.Effect({"PEXPIREAT", key, base::IntText(when)});
  }
  context.Changed();
  context.reply().Int(1);
}

void Expire(Context& context) { SetTime(context, context.now_ms(), 1000, "expire"); }
void Pexpire(Context& context) { SetTime(context, context.now_ms(), 1, "pexpire"); }
void Expireat(Context& context) { SetTime(context, 0, 1000, "expireat"); }
void Pexpireat(Context& context) { SetTime(context, 0, 1, "pexpireat"); }

// Milliseconds to the nearest second.
int64_t Seconds(int64_t ms) { return ms / 1000 + (ms % 1000 >= 500 ? 1 : 0); }

void TellTime(Context& context, bool absolute, bool seconds) {
  const Value value = context.Find(context.arg(1), Access::kReadQuiet);
  if (!value) return context.reply().Int(-2);
  if (value.expire_at == kNoExpiry) return context.reply().Int(-1);
  int64_t ms = absolute ? value.expire_at : value.expire_at - context.now_ms();
  if (ms < 0) ms = 0;
  context.reply().Int(seconds ? Seconds(ms) : ms);
}

void Ttl(Context& context) { TellTime(context, false, true); }
void Pttl(Context& context) { TellTime(context, false, false); }
void Expiretime(Context& context) { TellTime(context, true, true); }
void Pexpiretime(Context& context) { TellTime(context, true, false); }

void Persist(Context& context) {
  const std::string_view key = context.arg(1);
  const Value value = context.Find(key, Access::kWrite);
  if (!value || value.expire_at == kNoExpiry) return context.reply().Int(0);
  context.SetExpiry(key, kNoExpiry);
  context.Notify(kNotifyGeneric, "persist", key);
  context.Changed();
  context.reply().Int(1);
}

constexpr KeySpec kChanged = KeyAt(1, kKeyRw | kKeyUpdate);
constexpr KeySpec kRead = KeyAt(1, kKeyRo | kKeyAccess);
constexpr std::string_view kSetReply =
    "integer: 1 when the expiry was set, 0 when the key is missing or a condition did not hold";

constexpr CommandSpec kRows[] = {
    {.name = "expire",
     .handler = Expire,
     .arity = -3,
     .flags = kWrite | kFast,
     .acl = kAclKeyspace,
     .keys = {kChanged},
     .group = "generic",
     .since = "1.0.0",
     .summary = "Lets a key expire after some seconds.",
     .complexity = "O(1)",
     .arguments = "key seconds [condition: NX | XX | GT | LT]",
     .reply = kSetReply,
     .example = "EXPIRE session 60"},
    {.name = "pexpire",
     .handler = Pexpire,
     .arity = -3,
     .flags = kWrite | kFast,
     .acl = kAclKeyspace,
     .keys = {kChanged},
     .group = "generic",
     .since = "2.6.0",
     .summary = "Lets a key expire after some milliseconds.",
     .complexity = "O(1)",
     .arguments = "key milliseconds [condition: NX | XX | GT | LT]",
     .reply = kSetReply,
     .example = "PEXPIRE session 60000"},
    {.name = "expireat",
     .handler = Expireat,
     .arity = -3,
     .flags = kWrite | kFast,
     .acl = kAclKeyspace,
     .keys = {kChanged},
     .group = "generic",
     .since = "1.2.0",
     .summary = "Lets a key expire at a Unix time in seconds.",
     .complexity = "O(1)",
     .arguments = "key unix-time-seconds [condition: NX | XX | GT | LT]",
     .reply = kSetReply,
     .example = "EXPIREAT session 4102444800"},
    {.name = "pexpireat",
     .handler = Pexpireat,
     .arity = -3,
     .flags = kWrite | kFast,
     .acl = kAclKeyspace,
     .keys = {kChanged},
     .group = "generic",
     .since = "2.6.0",
     .summary = "Lets a key expire at a Unix time in milliseconds.",
     .complexity = "O(1)",
     .arguments = "key unix-time-milliseconds [condition: NX | XX | GT | LT]",
     .reply = kSetReply,
     .example = "PEXPIREAT session 4102444800000"},
    {.name = "ttl",
     .handler = Ttl,
     .arity = 2,
     .flags = kReadonly | kFast,
     .acl = kAclKeyspace,
     .keys = {kRead},
     .group = "generic",
     .since = "1.0.0",
     .summary = "Tells how many seconds a key has to live.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "integer: seconds, -1 without expiry, -2 for a missing key",
     .example = "TTL session",
     .tips = "nondeterministic_output"},
    {.name = "pttl",
     .handler = Pttl,
     .arity = 2,
     .flags = kReadonly | kFast,
     .acl = kAclKeyspace,
     .keys = {kRead},
     .group = "generic",
     .since = "2.6.0",
     .summary = "Tells how many milliseconds a key has to live.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "integer: milliseconds, -1 without expiry, -2 for a missing key",
     .example = "PTTL session",
     .tips = "nondeterministic_output"},
    {.name = "expiretime",
     .handler = Expiretime,
     .arity = 2,
     .flags = kReadonly | kFast,
     .acl = kAclKeyspace,
     .keys = {kRead},
     .group = "generic",
     .since = "7.0.0",
     .summary = "Tells the Unix time in seconds at which a key expires.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "integer: Unix seconds, -1 without expiry, -2 for a missing key",
     .example = "EXPIRETIME session"},
    {.name = "pexpiretime",
     .handler = Pexpiretime,
     .arity = 2,
     .flags = kReadonly | kFast,
     .acl = kAclKeyspace,
     .keys = {kRead},
     .group = "generic",
     .since = "7.0.0",
     .summary = "Tells the Unix time in milliseconds at which a key expires.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "integer: Unix milliseconds, -1 without expiry, -2 for a missing key",
     .example = "PEXPIRETIME session"},
    {.name = "persist",
     .handler = Persist,
     .arity = 2,
     .flags = kWrite | kFast,
     .acl = kAclKeyspace,
     .keys = {kChanged},
     .group = "generic",
     .since = "2.2.0",
     .summary = "Takes a key's expiry away.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "integer: 1 when there was an expiry, 0 when not",
     .example = "PERSIST session"},
};

}  // namespace

std::span<const CommandSpec> ExpireRows() { return kRows; }

}  // namespace sava::commands::keys
