// Commands on whole keys, whatever they hold: DEL UNLINK EXISTS TOUCH TYPE RENAME RENAMENX COPY
// MOVE. The family's other rows come from the files that keys.h names.
#include "commands/redis/keys.h"

#include <vector>

#include "commands/registry.h"

namespace sava::commands {

namespace keys {

bool Int32Arg(Context& context, size_t i, int* out, std::string_view error) {
  int64_t number = 0;
  if (!context.IntArg(i, &number, error.empty() ? errors::kNotInteger : error)) return false;
  if (number < INT32_MIN || number > INT32_MAX) {
    context.Error(!error.empty() ? error
                                 : "ERR value is out of range, value must between -2147483648 and "
                                   "2147483647");
    return false;
  }
  *out = static_cast<int>(number);
  return true;
}

bool DbArg(Context& context, size_t i, int* db) {
  if (!Int32Arg(context, i, db)) return false;
  if (*db >= 0 && *db < context.database_count()) return true;
  context.Error(errors::kDbIndex);
  return false;
}

namespace {

void Del(Context& context) {
  int64_t deleted = 0;
  for (const std::string_view key : context.args().subspan(1)) {
    if (!context.Delete(key)) continue;
    context.Notify(kNotifyGeneric, "del", key);
    ++deleted;
  }
  if (deleted > 0) context.Changed(deleted);
  context.reply().Int(deleted);
}

void CountExisting(Context& context, Access access) {
  int64_t count = 0;
  for (const std::string_view key : context.args().subspan(1)) {
    if (context.Find(key, access)) ++count;
  }
  context.reply().Int(count);
}

void Exists(Context& context) { CountExisting(context, Access::kReadQuiet); }
void Touch(Context& context) { CountExisting(context, Access::kRead); }

void Type(Context& context) {
  const Value value = context.Find(context.arg(1), Access::kReadQuiet);
  switch (value.kind) {
    case Value::Kind::kNone:
      return context.reply().Simple("none");
    case Value::Kind::kString:
      return context.reply().Simple("string");
    case Value::Kind::kObject:
      return context.reply().Simple(value.object->type().name);
  }
}

void RenameKey(Context& context, bool only_if_free) {
  const std::string_view from = context.arg(1);
  const std::string_view to = context.arg(2);
  if (!context.Find(from, Access::kWrite)) return context.Error(errors::kNoSuchKey);
  const bool same = from == to;
  if (same || (only_if_free && context.Find(to, Access::kWrite))) {
    only_if_free ? context.reply().Int(0) : context.reply().Ok();
    return;
  }
  context.Rename(from, to);
  context.Notify(kNotifyGeneric, "rename_from", from);
  context.Notify(kNotifyGeneric, "rename_to", to);
  context.Changed();
  only_if_free ? context.reply().Int(1) : context.reply().Ok();
}

void Rename(Context& context) { RenameKey(context, false); }
void Renamenx(Context& context) { RenameKey(context, true); }

constexpr size_t kCopySamples = 5;
constexpr int64_t kLargeCopy = 1 << 20;

void Copy(Context& context) {
  const std::string_view from = context.arg(1);
  const std::string_view to = context.arg(2);
  int db = context.db();
  bool replace = false;
  for (size_t i = 3; i < context.argc(); ++i) {
    if (context.ArgIs(i, "REPLACE")) {
      replace = true;
    } else if (context.ArgIs(i, "DB") && i + 1 < context.argc()) {
      if (!DbArg(context, ++i, &db)) return;
    } else {
      return context.Error(errors::kSyntax);
    }
  }
  if (db == context.db() && from == to) return context.Error(errors::kSameObject);
  const Value value = context.Find(from, Access::kRead);
  if (!value || (!replace && context.FindIn(db, to, Access::kPeek))) return context.reply().Int(0);
  // A large value is not begun to be copied when there is no room for it; strings are shared.
  const int64_t bytes =
      value.kind == Value::Kind::kObject ? context.MemoryOf(from, kCopySamples) : 0;
  if (bytes > kLargeCopy && !context.RoomFor(static_cast<uint64_t>(bytes))) {
    return context.Error(errors::kNoMemory);
  }
  if (!context.CopyKey(from, db, to, replace)) return context.reply().Int(0);
  context.NotifyIn(db, kNotifyGeneric, "copy_to", to);
  context.Changed();
  context.reply().Int(1);
}

void Move(Context& context) {
  const std::string_view key = context.arg(1);
  int db = 0;
  if (!DbArg(context, 2, &db)) return;
  if (db == context.db()) return context.Error(errors::kSameObject);
  if (!context.Find(key, Access::kWrite) || !context.MoveKey(key, db)) {
    return context.reply().Int(0);
  }
  context.Notify(kNotifyGeneric, "move_from", key);
  context.NotifyIn(db, kNotifyGeneric, "move_to", key);
  context.Changed();
  context.reply().Int(1);
}

constexpr KeySpec kDeleted = KeysFrom(1, 1, kKeyRm | kKeyDelete);
constexpr KeySpec kLookedAt = KeysFrom(1, 1, kKeyRo);
constexpr KeySpec kRenamed = KeyAt(1, kKeyRw | kKeyAccess | kKeyDelete);

constexpr CommandSpec kRows[] = {
    {.name = "del",
     .handler = Del,
     .arity = -2,
     .flags = kWrite,
     .acl = kAclKeyspace,
     .keys = {kDeleted},
     .group = "generic",
     .since = "1.0.0",
     .summary = "Deletes keys.",
     .complexity = "O(N) for N keys; large values are released in the background",
     .arguments = "key ...",
     .reply = "integer: how many keys there were",
     .example = "DEL one two",
     .tips = "request_policy:multi_shard,response_policy:agg_sum"},
    {.name = "unlink",
     .handler = Del,
     .arity = -2,
     .flags = kWrite | kFast,
     .acl = kAclKeyspace,
     .keys = {kDeleted},
     .group = "generic",
     .since = "4.0.0",
     .summary = "Deletes keys and releases their memory in the background.",
     .complexity = "O(1) for each key; the memory is released elsewhere",
     .arguments = "key ...",
     .reply = "integer: how many keys there were",
     .example = "UNLINK one two",
     .tips = "request_policy:multi_shard,response_policy:agg_sum"},
    {.name = "exists",
     .handler = Exists,
     .arity = -2,
     .flags = kReadonly | kFast,
     .acl = kAclKeyspace,
     .keys = {kLookedAt},
     .group = "generic",
     .since = "1.0.0",
     .summary = "Counts how many of the keys exist; a key named twice counts twice.",
     .complexity = "O(N) for N keys",
     .arguments = "key ...",
     .reply = "integer: how many exist",
     .example = "EXISTS one two",
     .tips = "request_policy:multi_shard,response_policy:agg_sum"},
    {.name = "type",
     .handler = Type,
     .arity = 2,
     .flags = kReadonly | kFast,
     .acl = kAclKeyspace,
     .keys = {KeyAt(1, kKeyRo)},
     .group = "generic",
     .since = "1.0.0",
     .summary = "Tells the type of what a key holds.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "the type's name, none for a missing key",
     .example = "TYPE greeting"},
    {.name = "touch",
     .handler = Touch,
     .arity = -2,
     .flags = kReadonly | kFast,
     .traits = kAlwaysTouches,
     .acl = kAclKeyspace,
     .keys = {kLookedAt},
     .group = "generic",
     .since = "3.2.1",
     .summary = "Marks keys as used now, and counts those that exist.",
     .complexity = "O(N) for N keys",
     .arguments = "key ...",
     .reply = "integer: how many exist",
     .example = "TOUCH one two",
     .tips = "request_policy:multi_shard,response_policy:agg_sum"},
    {.name = "rename",
     .handler = Rename,
     .arity = 3,
     .flags = kWrite,
     .acl = kAclKeyspace,
     .keys = {kRenamed, KeyAt(2, kKeyOw | kKeyUpdate)},
     .group = "generic",
     .since = "1.0.0",
     .summary = "Gives a key another name, in place of any key that has it.",
     .complexity = "O(1)",
     .arguments = "key newkey",
     .reply = "OK; an error when the key is missing",
     .example = "RENAME draft letter"},
    {.name = "renamenx",
     .handler = Renamenx,
     .arity = 3,
     .flags = kWrite | kFast,
     .acl = kAclKeyspace,
     .keys = {kRenamed, KeyAt(2, kKeyOw | kKeyInsert)},
     .group = "generic",
     .since = "1.0.0",
     .summary = "Gives a key another name unless that name is taken.",
     .complexity = "O(1)",
     .arguments = "key newkey",
     .reply = "integer: 1 when it was renamed, 0 when the name is taken",
     .example = "RENAMENX draft letter"},
    {.name = "copy",
     .handler = Copy,
     .arity = -3,
     .flags = kWrite | kDenyOom,
     .acl = kAclKeyspace,
     .keys = {KeyAt(1, kKeyRo | kKeyAccess), KeyAt(2, kKeyOw | kKeyUpdate)},
     .group = "generic",
     .since = "6.2.0",
     .summary = "Copies what a key holds, with its expiry, to another key or database.",
     .complexity = "O(N) for a collection of N elements, O(1) for a string",
     .arguments = "source:key destination:key [DB destination-db:integer] [REPLACE]",
     .reply = "integer: 1 when it was copied, 0 when the source is missing or the destination "
              "exists",
     .example = "COPY original copy"},
    {.name = "move",
     .handler = Move,
     .arity = 3,
     .flags = kWrite | kFast,
     .acl = kAclKeyspace,
     .keys = {KeyAt(1, kKeyRw | kKeyAccess | kKeyUpdate)},
     .group = "generic",
     .since = "1.0.0",
     .summary = "Moves a key to another database.",
     .complexity = "O(1)",
     .arguments = "key db",
     .reply = "integer: 1 when it was moved, 0 when it is missing here or exists there",
     .example = "MOVE letter 1"},
};

}  // namespace

}  // namespace keys

std::span<const CommandSpec> KeyCommands() {
  static const std::vector<CommandSpec> all = [] {
    std::vector<CommandSpec> rows;
    for (const auto part :
         {std::span<const CommandSpec>(keys::kRows), keys::DatabaseRows(), keys::ExpireRows(),
          keys::ScanRows(), keys::ObjectRows(), keys::DumpRows()}) {
      rows.insert(rows.end(), part.begin(), part.end());
    }
    return rows;
  }();
  return all;
}

}  // namespace sava::commands
