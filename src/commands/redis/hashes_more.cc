// Commands on hashes that compute or choose: HINCRBY HINCRBYFLOAT HRANDFIELD.
#include <cmath>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/text.h"
#include "commands/redis/families.h"
#include "commands/redis/hashes.h"
#include "commands/registry.h"

namespace sava::commands {

namespace {

using hashes::DropOutlived;
using hashes::FieldTime;
using types::Hash;

// ---- numbers ----

// Sets argument 2 of the hash at argument 1, which may not be there, to `text`, keeping its time.
void SetNumber(Context& context, Hash* hash, std::string_view text, std::string_view event) {
  const std::string_view key = context.arg(1);
  std::unique_ptr<Hash> fresh;
  if (hash == nullptr) {
    fresh = std::make_unique<Hash>();
    hash = fresh.get();
  }
  hash->Set(context.arg(2), text, FieldTime(context), context.collection_limits(), true);
  if (fresh != nullptr) {
    context.SetObject(key, std::move(fresh));
  } else {
    context.Touched(key);
  }
  context.Notify(kNotifyHash, event, key);
  context.Changed();
}

void Hincrby(Context& context) {
  int64_t increment = 0;
  if (!context.IntArg(3, &increment)) return;
  Hash* hash = nullptr;
  if (!FindObject(context, context.arg(1), Access::kWrite, &hash)) return;
  int64_t number = 0;
  std::string_view value;
  if (hash != nullptr && hash->Find(context.arg(2), FieldTime(context), &value) &&
      !base::ParseInt(value, &number)) {
    return context.Error("ERR hash value is not an integer");
  }
  if (__builtin_add_overflow(number, increment, &number)) {
    return context.Error(errors::kOverflow);
  }
  char digits[24];
  const std::string_view text(digits, base::FormatInt(number, digits));
  const bool timed = hash != nullptr && hash->has_expiries();
  SetNumber(context, hash, text, "hincrby");
  // A field whose time has passed may still stand there when the log is replayed.
  if (timed && hash->ExpiryOf(context.arg(2)) != Hash::kNoExpiry) {
    context.Effect({"HSETEX", context.arg(1), "KEEPTTL", "FIELDS", "1", context.arg(2), text});
  } else if (timed) {
    context.Effect({"HSET", context.arg(1), context.arg(2), text});
  }
  context.reply().Int(number);
}

void Hincrbyfloat(Context& context) {
  long double increment = 0;
  if (!base::ParseLongDouble(context.arg(3), &increment)) {
    return context.Error(errors::kNotFloat);
  }
  if (std::isnan(increment) || std::isinf(increment)) {
    return context.Error("ERR value is NaN or Infinity");
  }
  const std::string_view key = context.arg(1);
  const std::string_view field = context.arg(2);
  Hash* hash = nullptr;
  if (!FindObject(context, key, Access::kWrite, &hash)) return;
  long double number = 0;
  std::string_view value;
  if (hash != nullptr && hash->Find(field, FieldTime(context), &value) &&
      !base::ParseLongDouble(value, &number)) {
    return context.Error("ERR hash value is not a float");
  }
  number += increment;
  if (std::isnan(number) || std::isinf(number)) return context.Error(errors::kNaN);
  const std::string text = base::LongDoubleText(number);
  SetNumber(context, hash, text, "hincrbyfloat");
  // The sum is logged, so that a reader whose floating point differs still gets the same.
  if (hash != nullptr && hash->ExpiryOf(field) != Hash::kNoExpiry) {
    context.Effect({"HSETEX", key, "KEEPTTL", "FIELDS", "1", field, text});
  } else {
    context.Effect({"HSET", key, field, text});
  }
  context.reply().Bulk(text);
}

// ---- choosing ----

struct ChosenField {
  std::string field;
  std::string value;
};

void ReplyChosen(Context& context, bool with_values, std::string_view field,
                 std::string_view value) {
  protocol::Reply& reply = context.reply();
  if (with_values && reply.resp() == 3) reply.Array(2);
  reply.Bulk(field);
  if (with_values) reply.Bulk(value);
}

void ReplyChosenHead(Context& context, bool with_values, int64_t count) {
  context.reply().Array(with_values && context.reply().resp() != 3 ? count * 2 : count);
}

// `count` different fields, or all when there are no more.
std::vector<ChosenField> SampleFields(Context& context, const Hash& hash, uint64_t count) {
  const int64_t now = FieldTime(context);
  std::vector<ChosenField> chosen;
  if (hash.has_expiries() || count >= hash.size() / 3) {
    hash.ForEach(now, [&](std::string_view field, std::string_view value) {
      chosen.push_back({std::string(field), std::string(value)});
    });
    if (count >= chosen.size()) return chosen;
    for (size_t i = 0; i < count; ++i) {
      std::swap(chosen[i], chosen[i + context.Random() % (chosen.size() - i)]);
    }
    chosen.resize(count);
    return chosen;
  }
  std::unordered_set<std::string> seen;
  while (chosen.size() < count) {
    std::string_view field;
    std::string_view value;
    hash.Random([&] { return context.Random(); }, now, &field, &value);
    if (seen.emplace(field).second) chosen.push_back({std::string(field), std::string(value)});
  }
  return chosen;
}

// The hash without fields that are past their time.
bool FindLiveHash(Context& context, Hash** hash) {
  if (!FindObject(context, context.arg(1), Access::kRead, hash)) return false;
  if (*hash == nullptr || !(*hash)->has_expiries()) return true;
  DropOutlived(context, context.arg(1), *hash, {});
  return FindObject(context, context.arg(1), Access::kPeek, hash);
}

void RandomFields(Context& context, int64_t count, bool with_values) {
  Hash* hash = nullptr;
  if (!FindLiveHash(context, &hash)) return;
  if (hash == nullptr || count == 0) return context.reply().Array(0);
  if (count > 0) {
    const std::vector<ChosenField> chosen =
        SampleFields(context, *hash, static_cast<uint64_t>(count));
    ReplyChosenHead(context, with_values, static_cast<int64_t>(chosen.size()));
    for (const ChosenField& each : chosen) {
      ReplyChosen(context, with_values, each.field, each.value);
    }
    return;
  }
  std::string_view field;
  std::string_view value;
  const int64_t now = FieldTime(context);
  const auto random = [&] { return context.Random(); };
  if (!hash->Random(random, now, &field, &value)) return context.reply().Array(0);
  ReplyChosenHead(context, with_values, -count);
  for (; count < 0 && !context.reply().over(); ++count) {
    hash->Random(random, now, &field, &value);
    ReplyChosen(context, with_values, field, value);
  }
}

void Hrandfield(Context& context) {
  if (context.argc() > 2) {
    int64_t count = 0;
    if (!context.IntArg(2, &count)) return;
    if (count == INT64_MIN) return context.Error(errors::kNoAbsolute);
    const bool with_values = context.argc() == 4 && context.ArgIs(3, "WITHVALUES");
    if (context.argc() > 3 && !with_values) return context.Error(errors::kSyntax);
    if (with_values && (count < -(INT64_MAX / 2) || count > INT64_MAX / 2)) {
      return context.Error(errors::kOutOfRange);
    }
    return RandomFields(context, count, with_values);
  }
  Hash* hash = nullptr;
  if (!FindLiveHash(context, &hash)) return;
  std::string_view field;
  std::string_view value;
  if (hash != nullptr &&
      hash->Random([&] { return context.Random(); }, FieldTime(context), &field, &value)) {
    context.reply().Bulk(field);
  } else {
    context.reply().Null();
  }
}

// ---- rows ----

constexpr CommandSpec kRows[] = {
    {.name = "hincrby",
     .handler = Hincrby,
     .arity = 4,
     .flags = kWrite | kDenyOom | kFast,
     .traits = kFindsElement,
     .acl = kAclHash,
     .keys = {KeyAt(1, kKeyRw | kKeyAccess | kKeyUpdate)},
     .group = "hash",
     .since = "2.0.0",
     .summary = "Adds to the whole number in a field.",
     .complexity = "O(1)",
     .arguments = "key field:string increment:integer",
     .reply = "integer: the sum",
     .example = "HINCRBY user:1 visits 1"},
    {.name = "hincrbyfloat",
     .handler = Hincrbyfloat,
     .arity = 4,
     .flags = kWrite | kDenyOom | kFast,
     .traits = kFindsElement,
     .acl = kAclHash,
     .keys = {KeyAt(1, kKeyRw | kKeyAccess | kKeyUpdate)},
     .group = "hash",
     .since = "2.6.0",
     .summary = "Adds to the number in a field.",
     .complexity = "O(1)",
     .arguments = "key field:string increment:double",
     .reply = "bulk string: the sum",
     .example = "HINCRBYFLOAT user:1 balance 0.5"},
    {.name = "hrandfield",
     .handler = Hrandfield,
     .arity = -2,
     .flags = kReadonly,
     .acl = kAclHash,
     .keys = {KeyAt(1, kKeyRo | kKeyAccess)},
     .group = "hash",
     .since = "6.2.0",
     .summary = "Gets fields chosen at random; with a negative count with repetitions.",
     .complexity = "O(N) for N fields asked for",
     .arguments = "key [count:integer [WITHVALUES]]",
     .reply = "bulk string or null; with count an array",
     .example = "HRANDFIELD user:1 2 WITHVALUES",
     .tips = "nondeterministic_output"},
};

}  // namespace

std::span<const CommandSpec> HashMoreCommands() { return kRows; }

}  // namespace sava::commands
