// Commands on the members of sets: SADD SREM SMEMBERS SISMEMBER SMISMEMBER SCARD SMOVE SSCAN.
#include "commands/redis/sets.h"

#include <memory>
#include <utility>

#include "commands/redis/element_scan.h"
#include "commands/redis/families.h"
#include "commands/registry.h"

namespace sava::commands {

namespace sets {

void FinishRemoval(Context& context, std::string_view key, const types::Set& set, int64_t removed,
                   std::string_view event) {
  if (removed == 0) return;
  const bool empty = set.size() == 0;
  context.Notify(kNotifySet, event, key);
  if (empty) {
    context.Delete(key);
    context.Notify(kNotifyGeneric, "del", key);
  } else {
    context.Touched(key);
  }
  context.Changed(removed);
}

}  // namespace sets

namespace {

using sets::FinishRemoval;
using types::Set;

void Sadd(Context& context) {
  const std::string_view key = context.arg(1);
  const types::CollectionLimits& limits = context.collection_limits();
  Set* set = nullptr;
  if (!FindObject(context, key, Access::kWrite, &set)) return;
  std::unique_ptr<Set> fresh;
  const size_t members = context.argc() - 2;
  if (set == nullptr) {
    fresh = std::make_unique<Set>(context.arg(2), members, limits);
    set = fresh.get();
  } else {
    set->Expect(members, limits);
  }
  int64_t added = 0;
  for (size_t i = 2; i < context.argc(); ++i) added += set->Add(context.arg(i), limits) ? 1 : 0;
  if (fresh != nullptr) {
    context.SetObject(key, std::move(fresh));
  } else if (added > 0) {
    context.Touched(key);
  }
  if (added > 0) {
    context.Notify(kNotifySet, "sadd", key);
    context.Changed(added);
  }
  context.reply().Int(added);
}

void Srem(Context& context) {
  const std::string_view key = context.arg(1);
  Set* set = nullptr;
  if (!FindObject(context, key, Access::kWrite, &set)) return;
  if (set == nullptr) return context.reply().Int(0);
  int64_t removed = 0;
  for (size_t i = 2; i < context.argc() && set->size() > 0; ++i) {
    removed += set->Remove(context.arg(i)) ? 1 : 0;
  }
  context.reply().Int(removed);
  FinishRemoval(context, key, *set, removed, "srem");
}

void Smembers(Context& context) {
  Set* set = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &set)) return;
  protocol::Reply& reply = context.reply();
  if (set == nullptr) return reply.Set(0);
  reply.Set(static_cast<int64_t>(set->size()));
  set->ForEach([&](std::string_view member) { reply.Bulk(member); });
}

void Sismember(Context& context) {
  Set* set = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &set)) return;
  context.reply().Int(set != nullptr && set->Contains(context.arg(2)) ? 1 : 0);
}

void Smismember(Context& context) {
  Set* set = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &set)) return;
  context.reply().Array(static_cast<int64_t>(context.argc() - 2));
  for (size_t i = 2; i < context.argc(); ++i) {
    context.reply().Int(set != nullptr && set->Contains(context.arg(i)) ? 1 : 0);
  }
}

void Scard(Context& context) {
  Set* set = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &set)) return;
  context.reply().Int(set == nullptr ? 0 : static_cast<int64_t>(set->size()));
}

void Smove(Context& context) {
  const std::string_view source = context.arg(1);
  const std::string_view target = context.arg(2);
  const std::string_view member = context.arg(3);
  Set* from = nullptr;
  if (!FindObject(context, source, Access::kWrite, &from)) return;
  if (from == nullptr) return context.reply().Int(0);
  if (source == target) return context.reply().Int(from->Contains(member) ? 1 : 0);
  Set* to = nullptr;
  if (!FindObject(context, target, Access::kWrite, &to)) return;
  if (!from->Contains(member)) return context.reply().Int(0);

  // It is in both for a moment: without memory it stays where it was.
  const types::CollectionLimits& limits = context.collection_limits();
  std::unique_ptr<Set> fresh;
  if (to == nullptr) {
    fresh = std::make_unique<Set>(member, 1, limits);
    to = fresh.get();
  }
  const bool added = to->Add(member, limits);
  // Told in Redis's order, though the target comes first; a new one tells of itself.
  const bool last = from->size() == 1;
  context.Notify(kNotifySet, "srem", source);
  if (last) context.Notify(kNotifyGeneric, "del", source);
  if (fresh != nullptr) {
    context.SetObject(target, std::move(fresh));
  } else if (added) {
    context.Touched(target);
  }
  from->Remove(member);
  last ? static_cast<void>(context.Delete(source)) : context.Touched(source);
  context.Changed();
  if (added) {
    context.Changed();
    context.Notify(kNotifySet, "sadd", target);
  }
  context.reply().Int(1);
}

void Sscan(Context& context) {
  ElementScan scan;
  if (!ScanCursorArg(context, &scan)) return;
  Set* set = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &set)) return;
  if (set == nullptr) return ReplyEmptyScan(context);
  if (!ScanOptionArgs(context, false, &scan)) return;
  protocol::Reply& reply = context.reply();
  const size_t mark = reply.Mark();
  int64_t found = 0;
  const uint64_t next =
      set->Scan(scan.cursor, static_cast<size_t>(scan.count), [&](std::string_view member) {
        if (!scan.Passes(member)) return;
        reply.Bulk(member);
        ++found;
      });
  FinishScan(context, mark, found, next);
}

// ---- rows ----

constexpr KeySpec kReadKey = KeyAt(1, kKeyRo | kKeyAccess);

constexpr CommandSpec kRows[] = {
    {.name = "sadd",
     .handler = Sadd,
     .arity = -3,
     .flags = kWrite | kDenyOom | kFast,
     .traits = kFindsElement,
     .acl = kAclSet,
     .keys = {KeyAt(1, kKeyRw | kKeyInsert)},
     .group = "set",
     .since = "1.0.0",
     .summary = "Adds members to a set, which is made when it is not there.",
     .complexity = "O(N) for N members given",
     .arguments = "key member:string [member:string ...]",
     .reply = "integer: how many of them are new",
     .example = "SADD colours red green"},
    {.name = "srem",
     .handler = Srem,
     .arity = -3,
     .flags = kWrite | kFast,
     .traits = kFindsElement,
     .acl = kAclSet,
     .keys = {KeyAt(1, kKeyRw | kKeyDelete)},
     .group = "set",
     .since = "1.0.0",
     .summary = "Removes members from a set; the key goes with the last of them.",
     .complexity = "O(N) for N members given",
     .arguments = "key member:string [member:string ...]",
     .reply = "integer: how many were there",
     .example = "SREM colours red"},
    {.name = "smembers",
     .handler = Smembers,
     .arity = 2,
     .flags = kReadonly,
     .acl = kAclSet,
     .keys = {kReadKey},
     .group = "set",
     .since = "1.0.0",
     .summary = "Gets all members of a set.",
     .complexity = "O(N) for N members in the set",
     .arguments = "key",
     .reply = "set of members",
     .example = "SMEMBERS colours",
     .tips = "nondeterministic_output_order"},
    {.name = "sismember",
     .handler = Sismember,
     .arity = 3,
     .flags = kReadonly | kFast,
     .traits = kFindsElement,
     .acl = kAclSet,
     .keys = {KeyAt(1, kKeyRo)},
     .group = "set",
     .since = "1.0.0",
     .summary = "Tells whether something is a member of a set.",
     .complexity = "O(1)",
     .arguments = "key member:string",
     .reply = "integer: 1 when it is, else 0",
     .example = "SISMEMBER colours red"},
    {.name = "smismember",
     .handler = Smismember,
     .arity = -3,
     .flags = kReadonly | kFast,
     .traits = kFindsElement,
     .acl = kAclSet,
     .keys = {kReadKey},
     .group = "set",
     .since = "6.2.0",
     .summary = "Tells for several whether they are members of a set.",
     .complexity = "O(N) for N members given",
     .arguments = "key member:string [member:string ...]",
     .reply = "array of 1 and 0",
     .example = "SMISMEMBER colours red blue"},
    {.name = "scard",
     .handler = Scard,
     .arity = 2,
     .flags = kReadonly | kFast,
     .acl = kAclSet,
     .keys = {KeyAt(1, kKeyRo)},
     .group = "set",
     .since = "1.0.0",
     .summary = "Counts the members of a set.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "integer",
     .example = "SCARD colours"},
    {.name = "smove",
     .handler = Smove,
     .arity = 4,
     .flags = kWrite | kFast,
     .acl = kAclSet,
     .keys = {KeyAt(1, kKeyRw | kKeyAccess | kKeyDelete), KeyAt(2, kKeyRw | kKeyInsert)},
     .group = "set",
     .since = "1.0.0",
     .summary = "Moves a member from one set to another.",
     .complexity = "O(1)",
     .arguments = "source:key destination:key member:string",
     .reply = "integer: 1, or 0 when it was not in the source",
     .example = "SMOVE colours shades grey"},
    {.name = "sscan",
     .handler = Sscan,
     .arity = -3,
     .flags = kReadonly,
     .acl = kAclSet,
     .keys = {kReadKey},
     .group = "set",
     .since = "2.8.0",
     .summary = "Walks over the members of a set in small steps.",
     .complexity = "O(1) for each call, O(N) for the whole walk over N members",
     .arguments = "key cursor:integer [MATCH pattern] [COUNT count:integer]",
     .reply = "array: the cursor for the next call (0: the walk is over) and an array of members",
     .example = "SSCAN colours 0 MATCH r*",
     .tips = "nondeterministic_output"},
};

}  // namespace

std::span<const CommandSpec> SetCommands() { return kRows; }

}  // namespace sava::commands
