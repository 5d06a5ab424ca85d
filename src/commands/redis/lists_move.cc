// The LIST family, third part: elements that go from one list to another, and LMPOP
// (docs/types/lists.md).
#include <memory>
#include <span>
#include <string>

#include "base/text.h"
#include "commands/context.h"
#include "commands/redis/families.h"
#include "commands/redis/lists.h"
#include "commands/registry.h"

namespace sava::commands {

namespace {

using types::List;

void Move(Context& context, ListEnd from_end, ListEnd to_end) {
  List* list = nullptr;
  if (!FindObject(context, context.arg(1), Access::kWrite, &list)) return;
  if (list == nullptr) return context.reply().Null();
  MoveOne(context, context.arg(1), *list, from_end, context.arg(2), to_end);
}

void Lmove(Context& context) {
  ListEnd from = ListEnd::kHead;
  ListEnd to = ListEnd::kHead;
  if (!ListEndArg(context, 3, &from) || !ListEndArg(context, 4, &to)) return;
  Move(context, from, to);
}

void Rpoplpush(Context& context) { Move(context, ListEnd::kTail, ListEnd::kHead); }

void Lmpop(Context& context) {
  PopManyArgs args;
  if (!ParsePopMany(context, 1, &args)) return;
  for (size_t i = 0; i < args.keys; ++i) {
    const std::string_view key = context.arg(args.first_key + i);
    List* list = nullptr;
    if (!FindObject(context, key, Access::kWrite, &list)) return;
    if (list == nullptr) continue;
    const int64_t taken = PopSome(context, key, *list, args.end, args.count);
    if (context.wants_effects()) {
      context.Effect({PopCommand(args.end), key, base::IntText(taken)});
    }
    return;
  }
  context.reply().NullArray();
}

constexpr KeySpec kFromKey = KeyAt(1, kKeyRw | kKeyAccess | kKeyDelete);
constexpr KeySpec kToKey = KeyAt(2, kKeyRw | kKeyInsert);

const CommandSpec kMoveRows[] = {
    {.name = "lmove",
     .handler = Lmove,
     .arity = 5,
     .flags = kWrite | kDenyOom,
     .acl = kAclList,
     .keys = {kFromKey, kToKey},
     .group = "list",
     .since = "6.2.0",
     .summary =
         "Takes an element from one list and puts it into another, or elsewhere in the same.",
     .complexity = "O(1)",
     .arguments = "source:key destination:key (wherefrom: LEFT | RIGHT) (whereto: LEFT | RIGHT)",
     .reply = "the element, or null when there is none",
     .example = "LMOVE tasks done LEFT RIGHT"},
    {.name = "rpoplpush",
     .handler = Rpoplpush,
     .arity = 3,
     .flags = kWrite | kDenyOom,
     .acl = kAclList,
     .keys = {kFromKey, kToKey},
     .group = "list",
     .since = "1.2.0",
     .summary = "Takes the last element of a list and puts it before the first of another.",
     .complexity = "O(1)",
     .arguments = "source:key destination:key",
     .reply = "the element, or null when there is none",
     .example = "RPOPLPUSH tasks done",
     .deprecated_since = "6.2.0",
     .replaced_by = "`LMOVE` with the `RIGHT` and `LEFT` arguments"},
    {.name = "lmpop",
     .handler = Lmpop,
     .arity = -4,
     .flags = kWrite | kMovableKeys,
     .acl = kAclList,
     .keys = {{.flags = kKeyRw | kKeyAccess | kKeyDelete,
               .first = 1,
               .keynum = true,
               .keynum_at = 0,
               .keynum_first = 1}},
     .group = "list",
     .since = "7.0.0",
     .summary = "Takes elements from the first of several lists that is not empty.",
     .complexity = "O(N+M) where N is the number of keys given and M that of the elements returned",
     .arguments = "numkeys:integer key [key ...] (where: LEFT | RIGHT) [COUNT count:integer]",
     .reply = "the key and an array of elements, or null",
     .example = "LMPOP 2 urgent tasks LEFT COUNT 10"},
};

}  // namespace

bool ListEndArg(Context& context, size_t i, ListEnd* end) {
  if (context.ArgIs(i, "LEFT")) {
    *end = ListEnd::kHead;
  } else if (context.ArgIs(i, "RIGHT")) {
    *end = ListEnd::kTail;
  } else {
    context.Error(errors::kSyntax);
    return false;
  }
  return true;
}

bool MoveOne(Context& context, std::string_view from, List& list, ListEnd from_end,
             std::string_view to, ListEnd to_end) {
  List* target = nullptr;
  if (!FindObject(context, to, Access::kWrite, &target)) return false;
  const types::CollectionLimits& limits = context.collection_limits();
  types::PackedItem::Scratch scratch;
  const types::PackedItem item = list.Peek(from_end);
  // A copy: both lists may be the same, and setting a key may move things.
  const std::string element(item.Text(scratch));
  std::unique_ptr<List> fresh;
  if (target == nullptr) {
    fresh = std::make_unique<List>();
    target = fresh.get();
  }
  target->WillGrow(limits, element.size(), 1);
  // It is in both for a moment: without memory it stays where it was. In one list the end that it
  // leaves may be the one it comes to, with an element that is the same.
  target->Push(to_end, element);
  if (fresh != nullptr) {
    context.SetObject(to, std::move(fresh));
  } else {
    context.Touched(to);
  }
  list.Drop(from_end, 1);
  context.Notify(kNotifyList, PushEvent(to_end), to);
  context.reply().Bulk(element);
  context.Notify(kNotifyList, PopEvent(from_end), from);
  if (list.size() == 0) {
    context.Delete(from);
    context.Notify(kNotifyGeneric, "del", from);
  } else {
    list.Shrunk(limits.list_max_listpack_size);
    context.Touched(from);
  }
  context.Changed();
  return true;
}

bool ParsePopMany(Context& context, size_t from, PopManyArgs* args) {
  int64_t keys = 0;
  if (!base::ParseInt(context.arg(from), &keys) || keys < 1) {
    context.Error(errors::kNumkeys);
    return false;
  }
  const size_t rest = context.argc() - from - 1;
  if (static_cast<uint64_t>(keys) >= rest) {
    context.Error(errors::kSyntax);
    return false;
  }
  args->first_key = from + 1;
  args->keys = static_cast<size_t>(keys);
  size_t i = args->first_key + args->keys;
  if (!ListEndArg(context, i, &args->end)) return false;
  if (++i == context.argc()) return true;
  if (!context.ArgIs(i, "COUNT") || i + 2 != context.argc()) {
    // A count that is none is found before what follows it.
    if (context.ArgIs(i, "COUNT") && i + 2 < context.argc() &&
        (!base::ParseInt(context.arg(i + 1), &args->count) || args->count < 1)) {
      context.Error(errors::kCount);
    } else {
      context.Error(errors::kSyntax);
    }
    return false;
  }
  if (!base::ParseInt(context.arg(i + 1), &args->count) || args->count < 1) {
    context.Error(errors::kCount);
    return false;
  }
  return true;
}

std::span<const CommandSpec> ListMoveCommands() { return kMoveRows; }

}  // namespace sava::commands
