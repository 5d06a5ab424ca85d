// Commands on the fields of hashes: HSET HSETNX HGET HMGET HMSET HGETALL HDEL HLEN HSTRLEN HEXISTS
// HKEYS HVALS HSCAN. A field past its time is not there for any of them, but HLEN counts it and
// HDEL says that it was there, until it has been taken away, as in Redis.
#include "commands/redis/hashes.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "commands/redis/element_scan.h"
#include "commands/redis/families.h"
#include "commands/registry.h"

namespace sava::commands {

namespace hashes {

void FinishRemoval(Context& context, std::string_view key, const types::Hash& hash,
                   int64_t removed) {
  if (removed == 0) return;
  const bool empty = hash.size() == 0;
  context.Notify(kNotifyHash, "hdel", key);
  if (empty) {
    context.Delete(key);
    context.Notify(kNotifyGeneric, "del", key);
  } else {
    context.Touched(key);
  }
  context.Changed(removed);
}

void LogFields(Context& context, std::string_view name, std::string_view key,
               std::vector<std::string_view> more, const std::vector<std::string_view>& fields) {
  if (!context.wants_effects()) return context.NoEffect();
  std::vector<std::string_view> words = {name, key};
  words.insert(words.end(), more.begin(), more.end());
  words.insert(words.end(), fields.begin(), fields.end());
  context.Effect(Args(words));
}

}  // namespace hashes

namespace {

using hashes::DropOutlived;
using hashes::FieldTime;
using hashes::FinishRemoval;
using types::Hash;

// Sets the pairs from argument 2 on; how many fields are new, -1 when an error was replied.
int64_t SetPairs(Context& context) {
  const std::string_view key = context.arg(1);
  const types::CollectionLimits& limits = context.collection_limits();
  const int64_t now = FieldTime(context);
  Hash* hash = nullptr;
  if (!FindObject(context, key, Access::kWrite, &hash)) return -1;
  std::unique_ptr<Hash> fresh;
  if (hash == nullptr) {
    fresh = std::make_unique<Hash>();
    hash = fresh.get();
  }
  size_t longest = 0;
  for (size_t i = 2; i < context.argc(); ++i) longest = std::max(longest, context.arg(i).size());
  const size_t pairs = (context.argc() - 2) / 2;
  hash->Expect(pairs, longest, limits);
  int64_t created = 0;
  for (size_t i = 2; i < context.argc(); i += 2) {
    created += hash->Set(context.arg(i), context.arg(i + 1), now, limits) ? 1 : 0;
  }
  if (fresh != nullptr) {
    context.SetObject(key, std::move(fresh));
  } else {
    context.Touched(key);
  }
  context.Notify(kNotifyHash, "hset", key);
  context.Changed(static_cast<int64_t>(pairs));
  return created;
}

void Hset(Context& context) {
  if (context.argc() % 2 == 1) return context.ArityError();
  const int64_t created = SetPairs(context);
  if (created >= 0) context.reply().Int(created);
}

void Hmset(Context& context) {
  if (context.argc() % 2 == 1) return context.ArityError();
  if (SetPairs(context) >= 0) context.reply().Ok();
}

void Hsetnx(Context& context) {
  Hash* hash = nullptr;
  if (!FindObject(context, context.arg(1), Access::kWrite, &hash)) return;
  if (hash != nullptr && hash->Find(context.arg(2), FieldTime(context), nullptr)) {
    return context.reply().Int(0);
  }
  if (SetPairs(context) < 0) return;
  // A field whose time has passed may still stand there when the log is replayed.
  context.Effect({"HSET", context.arg(1), context.arg(2), context.arg(3)});
  context.reply().Int(1);
}

void ReplyField(Context& context, const Hash* hash, std::string_view field) {
  std::string_view value;
  if (hash != nullptr && hash->Find(field, FieldTime(context), &value)) {
    context.reply().Bulk(value);
  } else {
    context.reply().Null();
  }
}

void Hget(Context& context) {
  Hash* hash = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &hash)) return;
  ReplyField(context, hash, context.arg(2));
  DropOutlived(context, context.arg(1), hash, context.args().subspan(2, 1));
}

void Hmget(Context& context) {
  Hash* hash = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &hash)) return;
  context.reply().Array(static_cast<int64_t>(context.argc() - 2));
  for (size_t i = 2; i < context.argc(); ++i) ReplyField(context, hash, context.arg(i));
  DropOutlived(context, context.arg(1), hash, context.args().subspan(2));
}

// Fields, values or both.
void ReplyAll(Context& context, bool fields, bool values) {
  Hash* hash = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &hash)) return;
  protocol::Reply& reply = context.reply();
  const bool map = fields && values;
  const size_t mark = reply.Mark();
  int64_t count = 0;
  const auto write = [&](std::string_view field, std::string_view value) {
    if (fields) reply.Bulk(field);
    if (values) reply.Bulk(value);
    ++count;
  };
  if (hash != nullptr && !hash->has_expiries()) {
    // The number is known: nothing has to be moved afterwards.
    const auto size = static_cast<int64_t>(hash->size());
    map ? reply.Map(size) : reply.Array(size);
    return hash->ForEach(Hash::kNever, write);
  }
  if (hash != nullptr) hash->ForEach(FieldTime(context), write);
  map ? reply.MapAt(mark, count) : reply.ArrayAt(mark, count);
}

void Hgetall(Context& context) { ReplyAll(context, true, true); }
void Hkeys(Context& context) { ReplyAll(context, true, false); }
void Hvals(Context& context) { ReplyAll(context, false, true); }

void Hdel(Context& context) {
  const std::string_view key = context.arg(1);
  Hash* hash = nullptr;
  if (!FindObject(context, key, Access::kWrite, &hash)) return;
  if (hash == nullptr) return context.reply().Int(0);
  int64_t removed = 0;
  for (size_t i = 2; i < context.argc() && hash->size() > 0; ++i) {
    removed += hash->Remove(context.arg(i)) ? 1 : 0;
  }
  context.reply().Int(removed);
  FinishRemoval(context, key, *hash, removed);
}

void Hlen(Context& context) {
  Hash* hash = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &hash)) return;
  context.reply().Int(hash == nullptr ? 0 : static_cast<int64_t>(hash->size()));
}

void Hstrlen(Context& context) {
  Hash* hash = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &hash)) return;
  std::string_view value;
  const bool found = hash != nullptr && hash->Find(context.arg(2), FieldTime(context), &value);
  context.reply().Int(found ? static_cast<int64_t>(value.size()) : 0);
  DropOutlived(context, context.arg(1), hash, context.args().subspan(2, 1));
}

void Hexists(Context& context) {
  Hash* hash = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &hash)) return;
  const bool found = hash != nullptr && hash->Find(context.arg(2), FieldTime(context), nullptr);
  context.reply().Int(found ? 1 : 0);
  DropOutlived(context, context.arg(1), hash, context.args().subspan(2, 1));
}

void Hscan(Context& context) {
  ElementScan scan;
  if (!ScanCursorArg(context, &scan)) return;
  Hash* hash = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &hash)) return;
  if (hash == nullptr) return ReplyEmptyScan(context);
  if (!ScanOptionArgs(context, true, &scan)) return;
  protocol::Reply& reply = context.reply();
  const size_t mark = reply.Mark();
  int64_t found = 0;
  const uint64_t next = hash->Scan(scan.cursor, static_cast<size_t>(scan.count), FieldTime(context),
                                   [&](std::string_view field, std::string_view value) {
                                     if (!scan.Passes(field)) return;
                                     reply.Bulk(field);
                                     if (!scan.no_values) reply.Bulk(value);
                                     found += scan.no_values ? 1 : 2;
                                   });
  FinishScan(context, mark, found, next);
}

// ---- rows ----

constexpr KeySpec kReadKey = KeyAt(1, kKeyRo | kKeyAccess);
constexpr KeySpec kLookKey = KeyAt(1, kKeyRo);

constexpr CommandSpec kRows[] = {
    {.name = "hset",
     .handler = Hset,
     .arity = -4,
     .flags = kWrite | kDenyOom | kFast,
     .traits = kFindsElement,
     .acl = kAclHash,
     .keys = {KeyAt(1, kKeyRw | kKeyUpdate)},
     .group = "hash",
     .since = "2.0.0",
     .summary = "Sets fields of a hash, which is made when it is not there.",
     .complexity = "O(N) for N fields given",
     .arguments = "key (field:string value:string) [(field:string value:string) ...]",
     .reply = "integer: how many fields are new",
     .example = "HSET user:1 name Ada born 1815"},
    {.name = "hmset",
     .handler = Hmset,
     .arity = -4,
     .flags = kWrite | kDenyOom | kFast,
     .traits = kFindsElement,
     .acl = kAclHash,
     .keys = {KeyAt(1, kKeyRw | kKeyUpdate)},
     .group = "hash",
     .since = "2.0.0",
     .summary = "Sets fields of a hash.",
     .complexity = "O(N) for N fields given",
     .arguments = "key (field:string value:string) [(field:string value:string) ...]",
     .reply = "OK",
     .example = "HMSET user:1 name Ada born 1815",
     .deprecated_since = "4.0.0",
     .replaced_by = "`HSET` with multiple field-value pairs"},
    {.name = "hsetnx",
     .handler = Hsetnx,
     .arity = 4,
     .flags = kWrite | kDenyOom | kFast,
     .traits = kFindsElement,
     .acl = kAclHash,
     .keys = {KeyAt(1, kKeyRw | kKeyInsert)},
     .group = "hash",
     .since = "2.0.0",
     .summary = "Sets a field of a hash that is not there yet.",
     .complexity = "O(1)",
     .arguments = "key field:string value:string",
     .reply = "integer: 1 when it was set, else 0",
     .example = "HSETNX user:1 name Ada"},
    {.name = "hget",
     .handler = Hget,
     .arity = 3,
     .flags = kReadonly | kFast,
     .traits = kFindsElement,
     .acl = kAclHash,
     .keys = {kReadKey},
     .group = "hash",
     .since = "2.0.0",
     .summary = "Gets the value of a field.",
     .complexity = "O(1)",
     .arguments = "key field:string",
     .reply = "bulk string, or null when it is not there",
     .example = "HGET user:1 name"},
    {.name = "hmget",
     .handler = Hmget,
     .arity = -3,
     .flags = kReadonly | kFast,
     .traits = kFindsElement,
     .acl = kAclHash,
     .keys = {kReadKey},
     .group = "hash",
     .since = "2.0.0",
     .summary = "Gets the values of several fields.",
     .complexity = "O(N) for N fields given",
     .arguments = "key field:string [field:string ...]",
     .reply = "array of values, null for a field that is not there",
     .example = "HMGET user:1 name born"},
    {.name = "hgetall",
     .handler = Hgetall,
     .arity = 2,
     .flags = kReadonly,
     .acl = kAclHash,
     .keys = {kReadKey},
     .group = "hash",
     .since = "2.0.0",
     .summary = "Gets all fields of a hash with their values.",
     .complexity = "O(N) for N fields in the hash",
     .arguments = "key",
     .reply = "map of fields to values",
     .example = "HGETALL user:1",
     .tips = "nondeterministic_output_order"},
    {.name = "hdel",
     .handler = Hdel,
     .arity = -3,
     .flags = kWrite | kFast,
     .traits = kFindsElement,
     .acl = kAclHash,
     .keys = {KeyAt(1, kKeyRw | kKeyDelete)},
     .group = "hash",
     .since = "2.0.0",
     .summary = "Removes fields; the key goes with the last of them.",
     .complexity = "O(N) for N fields given",
     .arguments = "key field:string [field:string ...]",
     .reply = "integer: how many were there",
     .example = "HDEL user:1 born"},
    {.name = "hlen",
     .handler = Hlen,
     .arity = 2,
     .flags = kReadonly | kFast,
     .acl = kAclHash,
     .keys = {kLookKey},
     .group = "hash",
     .since = "2.0.0",
     .summary = "Counts the fields of a hash.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "integer",
     .example = "HLEN user:1"},
    {.name = "hstrlen",
     .handler = Hstrlen,
     .arity = 3,
     .flags = kReadonly | kFast,
     .traits = kFindsElement,
     .acl = kAclHash,
     .keys = {kLookKey},
     .group = "hash",
     .since = "3.2.0",
     .summary = "Tells how long the value of a field is.",
     .complexity = "O(1)",
     .arguments = "key field:string",
     .reply = "integer, 0 when it is not there",
     .example = "HSTRLEN user:1 name"},
    {.name = "hexists",
     .handler = Hexists,
     .arity = 3,
     .flags = kReadonly | kFast,
     .traits = kFindsElement,
     .acl = kAclHash,
     .keys = {kLookKey},
     .group = "hash",
     .since = "2.0.0",
     .summary = "Tells whether a hash has a field.",
     .complexity = "O(1)",
     .arguments = "key field:string",
     .reply = "integer: 1 when it has, else 0",
     .example = "HEXISTS user:1 name"},
    {.name = "hkeys",
     .handler = Hkeys,
     .arity = 2,
     .flags = kReadonly,
     .acl = kAclHash,
     .keys = {kReadKey},
     .group = "hash",
     .since = "2.0.0",
     .summary = "Gets the fields of a hash.",
     .complexity = "O(N) for N fields in the hash",
     .arguments = "key",
     .reply = "array of fields",
     .example = "HKEYS user:1",
     .tips = "nondeterministic_output_order"},
    {.name = "hvals",
     .handler = Hvals,
     .arity = 2,
     .flags = kReadonly,
     .acl = kAclHash,
     .keys = {kReadKey},
     .group = "hash",
     .since = "2.0.0",
     .summary = "Gets the values of a hash.",
     .complexity = "O(N) for N fields in the hash",
     .arguments = "key",
     .reply = "array of values",
     .example = "HVALS user:1",
     .tips = "nondeterministic_output_order"},
    {.name = "hscan",
     .handler = Hscan,
     .arity = -3,
     .flags = kReadonly,
     .acl = kAclHash,
     .keys = {kReadKey},
     .group = "hash",
     .since = "2.8.0",
     .summary = "Walks over the fields of a hash in small steps.",
     .complexity = "O(1) for each call, O(N) for the whole walk over N fields",
     .arguments = "key cursor:integer [MATCH pattern] [COUNT count:integer] [NOVALUES]",
     .reply = "array: the cursor for the next call (0: the walk is over) and an array of fields "
              "and values",
     .example = "HSCAN user:1 0 MATCH n*",
     .tips = "nondeterministic_output"},
};

}  // namespace

std::span<const CommandSpec> HashCommands() { return kRows; }

}  // namespace sava::commands
