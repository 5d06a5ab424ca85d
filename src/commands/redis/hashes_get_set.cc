// Commands that get or set fields together with their times: HGETDEL HGETEX HSETEX, as in Redis 8.
// The log gets HDEL, HSET, HPEXPIREAT and HPERSIST where these say the same.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "commands/options.h"
#include "commands/redis/families.h"
#include "commands/redis/hashes.h"
#include "commands/registry.h"

namespace sava::commands {

namespace {

using hashes::DropOutlived;
using hashes::FieldsArg;
using hashes::FieldTime;
using hashes::FinishRemoval;
using hashes::kNeedFields;
using hashes::kNeedPositiveCount;
using hashes::LogFields;
using hashes::ParseFields;
using hashes::ParseFieldTime;
using hashes::TimesChange;
using types::Hash;

void ReplyValues(Context& context, const Hash* hash, const FieldsArg& fields) {
  context.reply().Array(static_cast<int64_t>(fields.count));
  const int64_t now = FieldTime(context);
  for (size_t i = fields.first; i < context.argc(); ++i) {
    std::string_view value;
    if (hash != nullptr && hash->Find(context.arg(i), now, &value)) {
      context.reply().Bulk(value);
    } else {
      context.reply().Null();
    }
  }
}

void Hgetdel(Context& context) {
  const std::string_view key = context.arg(1);
  FieldsArg fields;
  if (!ParseFields(context, 2, kNeedPositiveCount, &fields)) return;
  Hash* hash = nullptr;
  if (!FindObject(context, key, Access::kWrite, &hash)) return;
  const int64_t now = FieldTime(context);
  std::vector<std::string_view> removed;
  context.reply().Array(static_cast<int64_t>(fields.count));
  for (size_t i = fields.first; i < context.argc(); ++i) {
    const std::string_view field = context.arg(i);
    std::string_view value;
    if (hash == nullptr || !hash->Find(field, now, &value)) {
      context.reply().Null();
      continue;
    }
    context.reply().Bulk(value);
    hash->Remove(field);
    removed.push_back(field);
  }
  if (!removed.empty()) {
    FinishRemoval(context, key, *hash, static_cast<int64_t>(removed.size()));
    LogFields(context, "HDEL", key, {}, removed);
  }
  if (hash != nullptr && context.Past(0)) {
    context.ExpireFields(key, context.args().subspan(fields.first));
  }
}

// ---- options ----

struct TimeOptions {
  ExpireUnit unit = ExpireUnit::kNone;
  int64_t at = 0;
  bool persist = false;
  bool keep = false;
  bool only_new = false;       // FNX
  bool only_existing = false;  // FXX

  bool has_time() const { return unit != ExpireUnit::kNone; }
};

constexpr std::string_view kOneOfGet =
    "ERR Only one of EX, PX, EXAT, PXAT or PERSIST arguments can be specified";
constexpr std::string_view kOneOfSet =
    "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified";

// EX, PX, EXAT or PXAT at *i and the number behind it, of which *i is then the place.
bool TimeOption(Context& context, ExpireUnit unit, std::string_view command, size_t* i,
                TimeOptions* options) {
  if (*i + 1 >= context.argc()) {
    context.Error("ERR missing expire time");
    return false;
  }
  options->unit = unit;
  const bool seconds = unit == ExpireUnit::kSeconds || unit == ExpireUnit::kAtSeconds;
  return ParseFieldTime(context, ++*i, seconds, IsAbsolute(unit), command, &options->at);
}

// From argument 2 to FIELDS.
bool ParseGetex(Context& context, TimeOptions* options, FieldsArg* fields) {
  for (size_t i = 2; i < context.argc(); ++i) {
    if (context.ArgIs(i, "FIELDS")) return ParseFields(context, i, kNeedPositiveCount, fields);
    const ExpireUnit unit = ExpireUnitNamed(context.arg(i));
    const bool persist = context.ArgIs(i, "PERSIST");
    if (unit == ExpireUnit::kNone && !persist) break;
    if (options->has_time() || options->persist) {
      context.Error(kOneOfGet);
      return false;
    }
    options->persist = persist;
    if (!persist && !TimeOption(context, unit, "hgetex", &i, options)) return false;
  }
  context.Error(kNeedFields);
  return false;
}

void Hgetex(Context& context) {
  TimeOptions options;
  FieldsArg fields;
  if (!ParseGetex(context, &options, &fields)) return;
  const std::string_view key = context.arg(1);
  Hash* hash = nullptr;
  if (!FindObject(context, key, Access::kWrite, &hash)) return;
  ReplyValues(context, hash, fields);
  if (hash == nullptr || (!options.has_time() && !options.persist)) {
    return DropOutlived(context, key, hash, context.args().subspan(fields.first));
  }
  TimesChange change(context, key, hash);
  const int64_t now = FieldTime(context);
  for (size_t i = fields.first; i < context.argc(); ++i) {
    const std::string_view field = context.arg(i);
    if (!hash->Find(field, now, nullptr)) continue;
    if (options.has_time()) {
      change.Set(field, options.at);
    } else if (hash->ExpiryOf(field) != Hash::kNoExpiry) {
      change.Persist(field);
    }
  }
  change.Finish(options.at);
}

// The pairs behind FIELDS at argument `at`.
bool ParsePairs(Context& context, size_t at, FieldsArg* fields) {
  if (at + 3 >= context.argc()) {
    context.ArityError();
    return false;
  }
  int64_t count = 0;
  if (!context.IntArg(at + 1, &count, "ERR invalid number of fields")) return false;
  if (count < 1 || count > INT32_MAX) {
    context.Error("ERR invalid number of fields");
    return false;
  }
  fields->first = at + 2;
  fields->count = static_cast<size_t>(count);
  if (context.argc() - fields->first == 2 * fields->count) return true;
  context.ArityError();
  return false;
}

bool ParseSetex(Context& context, TimeOptions* options, FieldsArg* fields) {
  for (size_t i = 2; i < context.argc(); ++i) {
    if (context.ArgIs(i, "FIELDS")) return ParsePairs(context, i, fields);
    const ExpireUnit unit = ExpireUnitNamed(context.arg(i));
    const bool keep = context.ArgIs(i, "KEEPTTL");
    if (unit != ExpireUnit::kNone || keep) {
      if (options->has_time() || options->keep) {
        context.Error(kOneOfSet);
        return false;
      }
      options->keep = keep;
      if (!keep && !TimeOption(context, unit, "hsetex", &i, options)) return false;
    } else if (context.ArgIs(i, "FNX") || context.ArgIs(i, "FXX")) {
      if (options->only_new || options->only_existing) {
        context.Error("ERR Only one of FXX or FNX arguments can be specified");
        return false;
      }
      options->only_new = context.ArgIs(i, "FNX");
      options->only_existing = !options->only_new;
    } else {
      std::string error = "ERR unknown argument: ";
      error.append(context.arg(i));
      context.Error(error);
      return false;
    }
  }
  context.Error(kNeedFields);
  return false;
}

bool ConditionMet(Context& context, const Hash* hash, const TimeOptions& options,
                  const FieldsArg& fields) {
  if (!options.only_new && !options.only_existing) return true;
  for (size_t i = fields.first; i < context.argc(); i += 2) {
    const bool found = hash != nullptr && hash->Find(context.arg(i), FieldTime(context), nullptr);
    if (found == options.only_new) return false;
  }
  return true;
}

void LogPairs(Context& context, const TimeOptions& options, const FieldsArg& fields,
              bool has_times) {
  if (!context.wants_effects()) return context.NoEffect();
  char time[24];
  char count[24];
  std::vector<std::string_view> words = {"HSET", context.arg(1)};
  if (options.has_time() || (options.keep && has_times)) {
    words[0] = "HSETEX";
    if (options.has_time()) {
      words.insert(words.end(), {"PXAT", {time, base::FormatInt(options.at, time)}});
    } else {
      words.emplace_back("KEEPTTL");
    }
    words.insert(words.end(), {"FIELDS", {count, base::FormatUint(fields.count, count)}});
  }
  const Args args = context.args();
  words.insert(words.end(), args.begin() + static_cast<ptrdiff_t>(fields.first), args.end());
  context.Effect(Args(words));
}

// When the log is replayed such fields may still stand there, with a time that is not to be kept.
void LogNoTimes(Context& context, std::string_view key,
                const std::vector<std::string_view>& fields) {
  if (fields.empty() || !context.wants_effects()) return;
  char count[24];
  std::vector<std::string_view> words = {
      "HPERSIST", key, "FIELDS", {count, base::FormatUint(fields.size(), count)}};
  words.insert(words.end(), fields.begin(), fields.end());
  context.Effect(Args(words));
}

void Hsetex(Context& context) {
  TimeOptions options;
  FieldsArg fields;
  if (!ParseSetex(context, &options, &fields)) return;
  const std::string_view key = context.arg(1);
  Hash* hash = nullptr;
  if (!FindObject(context, key, Access::kWrite, &hash)) return;
  if (!ConditionMet(context, hash, options, fields)) {
    context.reply().Int(0);
    std::vector<std::string_view> names;
    for (size_t i = fields.first; i < context.argc(); i += 2) names.push_back(context.arg(i));
    return DropOutlived(context, key, hash, Args(names));
  }
  context.reply().Int(1);
  if (hash == nullptr) {
    auto fresh = std::make_unique<Hash>();
    hash = fresh.get();
    context.SetObject(key, std::move(fresh));
  }
  const types::CollectionLimits& limits = context.collection_limits();
  const int64_t now = FieldTime(context);
  size_t longest = 0;
  for (size_t i = fields.first; i < context.argc(); ++i) {
    longest = std::max(longest, context.arg(i).size());
  }
  hash->Expect(fields.count, longest, limits);
  TimesChange change(context, key, hash);
  std::vector<std::string_view> outlived;  // fields whose time has passed
  for (size_t i = fields.first; options.keep && i < context.argc(); i += 2) {
    const int64_t at = hash->ExpiryOf(context.arg(i));
    if (at != Hash::kNoExpiry && at < now) outlived.push_back(context.arg(i));
  }
  for (size_t i = fields.first; i < context.argc(); i += 2) {
    hash->Set(context.arg(i), context.arg(i + 1), now, limits, options.has_time() || options.keep);
  }
  for (size_t i = fields.first; options.has_time() && i < context.argc(); i += 2) {
    change.Set(context.arg(i), options.at);
  }
  const bool past = !change.deleted().empty();
  const bool has_times = hash->has_expiries();
  context.Touched(key);
  context.Notify(kNotifyHash, "hset", key);
  if (change.timed().empty() && !past) context.Changed(static_cast<int64_t>(fields.count));
  change.LeaveTimedToCaller();
  change.Finish(options.at);
  // What is past was logged as removed.
  if (past) return;
  LogNoTimes(context, key, outlived);
  LogPairs(context, options, fields, has_times);
}

// ---- rows ----

constexpr CommandSpec kRows[] = {
    {.name = "hgetdel",
     .handler = Hgetdel,
     .arity = -5,
     .flags = kWrite | kFast,
     .acl = kAclHash,
     .keys = {KeyAt(1, kKeyRw | kKeyAccess | kKeyDelete)},
     .group = "hash",
     .since = "8.0.0",
     .summary = "Gets the values of fields and removes them.",
     .complexity = "O(N) for N fields given",
     .arguments = "key FIELDS numfields:integer field:string [field:string ...]",
     .reply = "array of values, null for a field that is not there",
     .example = "HGETDEL session:1 FIELDS 1 token"},
    {.name = "hgetex",
     .handler = Hgetex,
     .arity = -5,
     .flags = kWrite | kFast,
     .acl = kAclHash,
     .keys = {KeyAt(1, kKeyRw | kKeyAccess | kKeyUpdate)},
     .group = "hash",
     .since = "8.0.0",
     .summary = "Gets the values of fields and sets when they expire.",
     .complexity = "O(N) for N fields given",
     .arguments = "key [EX seconds:integer|PX milliseconds:integer|EXAT unix-time-seconds:unix-time"
                  "|PXAT unix-time-milliseconds:unix-time|PERSIST] FIELDS numfields:integer "
                  "field:string [field:string ...]",
     .reply = "array of values, null for a field that is not there",
     .example = "HGETEX session:1 EX 60 FIELDS 1 token"},
    {.name = "hsetex",
     .handler = Hsetex,
     .arity = -6,
     .flags = kWrite | kDenyOom | kFast,
     .acl = kAclHash,
     .keys = {KeyAt(1, kKeyRw | kKeyUpdate)},
     .group = "hash",
     .since = "8.0.0",
     .summary = "Sets fields of a hash and when they expire.",
     .complexity = "O(N) for N fields given",
     .arguments = "key [FNX|FXX] [EX seconds:integer|PX milliseconds:integer|EXAT "
                  "unix-time-seconds:unix-time|PXAT unix-time-milliseconds:unix-time|KEEPTTL] "
                  "FIELDS numfields:integer (field:string value:string) "
                  "[(field:string value:string) ...]",
     .reply = "integer: 1 when they were set, 0 when the condition is not met",
     .example = "HSETEX session:1 EX 60 FIELDS 1 token abc"},
};

}  // namespace

std::span<const CommandSpec> HashGetSetCommands() { return kRows; }

}  // namespace sava::commands
