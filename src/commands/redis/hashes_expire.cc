// Times of fields: HEXPIRE HPEXPIRE HEXPIREAT HPEXPIREAT HTTL HPTTL HEXPIRETIME HPEXPIRETIME
// HPERSIST, as in Redis 7.4. One number for each field:
//   setting     2 removed, its time is past · 1 set · 0 a condition is not met · -2 no such field
//   asking      the time · -1 it has none · -2 no such field
//   persisting  1 done · -1 it has none · -2 no such field
#include "base/text.h"
#include "commands/redis/families.h"
#include "commands/redis/hashes.h"
#include "commands/registry.h"

namespace sava::commands {

namespace {

using hashes::FieldsArg;
using hashes::FieldTime;
using hashes::kNeedPositiveCount;
using hashes::ParseFields;
using hashes::ParseFieldTime;
using hashes::TimesChange;
using types::Hash;

constexpr int64_t kNoField = -2;
constexpr int64_t kNoTime = -1;

enum class TimeCondition : uint8_t { kNone, kNx, kXx, kGt, kLt };

bool IsMet(TimeCondition condition, int64_t before, int64_t at) {
  switch (condition) {
    case TimeCondition::kNx:
      return before == Hash::kNoExpiry;
    case TimeCondition::kXx:
      return before != Hash::kNoExpiry;
    case TimeCondition::kGt:
      return before != Hash::kNoExpiry && at > before;
    case TimeCondition::kLt:
      return before == Hash::kNoExpiry || at < before;
    default:
      return true;
  }
}

TimeCondition ConditionArg(const Context& context, size_t i) {
  if (context.ArgIs(i, "NX")) return TimeCondition::kNx;
  if (context.ArgIs(i, "XX")) return TimeCondition::kXx;
  if (context.ArgIs(i, "GT")) return TimeCondition::kGt;
  return context.ArgIs(i, "LT") ? TimeCondition::kLt : TimeCondition::kNone;
}

void ReplySame(Context& context, size_t count, int64_t number) {
  context.reply().Array(static_cast<int64_t>(count));
  for (size_t i = 0; i < count; ++i) context.reply().Int(number);
}

void SetTimes(Context& context, bool seconds, bool absolute, std::string_view command) {
  const std::string_view key = context.arg(1);
  Hash* hash = nullptr;
  if (!FindObject(context, key, Access::kWrite, &hash)) return;
  int64_t at = 0;
  if (!ParseFieldTime(context, 2, seconds, absolute, command, &at)) return;
  const TimeCondition condition = ConditionArg(context, 3);
  FieldsArg fields;
  if (!ParseFields(context, condition == TimeCondition::kNone ? 3 : 4,
                   "ERR Parameter `numFields` should be greater than 0", &fields)) {
    return;
  }
  if (hash == nullptr) return ReplySame(context, fields.count, kNoField);
  TimesChange change(context, key, hash);
  const int64_t now = FieldTime(context);
  context.reply().Array(static_cast<int64_t>(fields.count));
  for (size_t i = fields.first; i < context.argc(); ++i) {
    const std::string_view field = context.arg(i);
    if (!hash->Find(field, now, nullptr)) {
      context.reply().Int(kNoField);
    } else if (!IsMet(condition, hash->ExpiryOf(field), at)) {
      context.reply().Int(0);
    } else {
      context.reply().Int(change.Set(field, at) ? 1 : 2);
    }
  }
  change.Finish(at);
}

void Hexpire(Context& context) { SetTimes(context, true, false, "hexpire"); }
void Hpexpire(Context& context) { SetTimes(context, false, false, "hpexpire"); }
void Hexpireat(Context& context) { SetTimes(context, true, true, "hexpireat"); }
void Hpexpireat(Context& context) { SetTimes(context, false, true, "hpexpireat"); }

void GetTimes(Context& context, bool seconds, bool absolute) {
  Hash* hash = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &hash)) return;
  FieldsArg fields;
  if (!ParseFields(context, 2, kNeedPositiveCount, &fields)) return;
  if (hash == nullptr) return ReplySame(context, fields.count, kNoField);
  const int64_t now = FieldTime(context);
  const int64_t base = absolute ? 0 : context.now_ms();
  context.reply().Array(static_cast<int64_t>(fields.count));
  for (size_t i = fields.first; i < context.argc(); ++i) {
    const std::string_view field = context.arg(i);
    if (!hash->Find(field, now, nullptr)) {
      context.reply().Int(kNoField);
      continue;
    }
    const int64_t at = hash->ExpiryOf(field);
    if (at == Hash::kNoExpiry) {
      context.reply().Int(kNoTime);
    } else {
      context.reply().Int(seconds ? (at - base + 999) / 1000 : at - base);
    }
  }
}

void Httl(Context& context) { GetTimes(context, true, false); }
void Hpttl(Context& context) { GetTimes(context, false, false); }
void Hexpiretime(Context& context) { GetTimes(context, true, true); }
void Hpexpiretime(Context& context) { GetTimes(context, false, true); }

void Hpersist(Context& context) {
  const std::string_view key = context.arg(1);
  Hash* hash = nullptr;
  if (!FindObject(context, key, Access::kWrite, &hash)) return;
  FieldsArg fields;
  if (!ParseFields(context, 2, kNeedPositiveCount, &fields)) return;
  if (hash == nullptr) return ReplySame(context, fields.count, kNoField);
  TimesChange change(context, key, hash);
  const int64_t now = FieldTime(context);
  context.reply().Array(static_cast<int64_t>(fields.count));
  for (size_t i = fields.first; i < context.argc(); ++i) {
    const std::string_view field = context.arg(i);
    if (!hash->Find(field, now, nullptr)) {
      context.reply().Int(kNoField);
    } else if (hash->ExpiryOf(field) == Hash::kNoExpiry) {
      context.reply().Int(kNoTime);
    } else {
      change.Persist(field);
      context.reply().Int(1);
    }
  }
  change.Finish(Hash::kNoExpiry);
}

// ---- rows ----

constexpr CommandSpec SetRow(std::string_view name, Handler handler, std::string_view summary,
                             std::string_view arguments, std::string_view example) {
  return {.name = name,
          .handler = handler,
          .arity = -6,
          .flags = kWrite | kDenyOom | kFast,
          .acl = kAclHash,
          .keys = {KeyAt(1, kKeyRw | kKeyUpdate)},
          .group = "hash",
          .since = "7.4.0",
          .summary = summary,
          .complexity = "O(N) for N fields given",
          .arguments = arguments,
          .reply =
              "array: for each field 1, 2 when it was removed, 0 when the condition is not "
              "met, -2 when it is not there",
          .example = example};
}

constexpr CommandSpec GetRow(std::string_view name, Handler handler, std::string_view summary,
                             std::string_view example) {
  return {.name = name,
          .handler = handler,
          .arity = -5,
          .flags = kReadonly | kFast,
          .acl = kAclHash,
          .keys = {KeyAt(1, kKeyRo | kKeyAccess)},
          .group = "hash",
          .since = "7.4.0",
          .summary = summary,
          .complexity = "O(N) for N fields given",
          .arguments = "key FIELDS numfields:integer field:string [field:string ...]",
          .reply = "array: for each field the time, -1 when it has none, -2 when it is not there",
          .example = example};
}

constexpr CommandSpec kRows[] = {
    SetRow("hexpire", Hexpire, "Makes fields expire in so many seconds.",
           "key seconds:integer [NX|XX|GT|LT] FIELDS numfields:integer field:string "
           "[field:string ...]",
           "HEXPIRE session:1 60 FIELDS 1 token"),
    SetRow("hpexpire", Hpexpire, "Makes fields expire in so many milliseconds.",
           "key milliseconds:integer [NX|XX|GT|LT] FIELDS numfields:integer field:string "
           "[field:string ...]",
           "HPEXPIRE session:1 60000 FIELDS 1 token"),
    SetRow("hexpireat", Hexpireat, "Makes fields expire at a Unix time in seconds.",
           "key unix-time-seconds:unix-time [NX|XX|GT|LT] FIELDS numfields:integer field:string "
           "[field:string ...]",
           "HEXPIREAT session:1 2000000000 FIELDS 1 token"),
    SetRow("hpexpireat", Hpexpireat, "Makes fields expire at a Unix time in milliseconds.",
           "key unix-time-milliseconds:unix-time [NX|XX|GT|LT] FIELDS numfields:integer "
           "field:string [field:string ...]",
           "HPEXPIREAT session:1 2000000000000 FIELDS 1 token"),
    GetRow("httl", Httl, "Tells in how many seconds fields expire.",
           "HTTL session:1 FIELDS 1 token"),
    GetRow("hpttl", Hpttl, "Tells in how many milliseconds fields expire.",
           "HPTTL session:1 FIELDS 1 token"),
    GetRow("hexpiretime", Hexpiretime, "Tells the Unix time in seconds at which fields expire.",
           "HEXPIRETIME session:1 FIELDS 1 token"),
    GetRow("hpexpiretime", Hpexpiretime,
           "Tells the Unix time in milliseconds at which fields expire.",
           "HPEXPIRETIME session:1 FIELDS 1 token"),
    {.name = "hpersist",
     .handler = Hpersist,
     .arity = -5,
     .flags = kWrite | kFast,
     .acl = kAclHash,
     .keys = {KeyAt(1, kKeyRw | kKeyUpdate)},
     .group = "hash",
     .since = "7.4.0",
     .summary = "Makes fields stay that would have expired.",
     .complexity = "O(N) for N fields given",
     .arguments = "key FIELDS numfields:integer field:string [field:string ...]",
     .reply = "array: for each field 1, -1 when it had no time, -2 when it is not there",
     .example = "HPERSIST session:1 FIELDS 1 token"},
};

}  // namespace

std::span<const CommandSpec> HashExpireCommands() { return kRows; }

}  // namespace sava::commands
