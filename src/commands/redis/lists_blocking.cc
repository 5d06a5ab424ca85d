// Blocking list commands: BLPOP BRPOP BLMOVE BRPOPLPUSH BLMPOP.
//
// Each does what its plain form does, or waits. In the log they are their plain forms.
#include "base/text.h"
#include "commands/blocking.h"
#include "commands/redis/families.h"
#include "commands/redis/lists.h"

namespace sava::commands {

namespace {

using types::List;

// The list at the key, if there is one for a client to take from. Something else at the key is an
// error for who has just come (replied, false), and none of his business for who waits.
bool FindFilled(Context& ctx, std::string_view key, List** list) {
  if (!ctx.runs_again()) return FindObject(ctx, key, Access::kWrite, list);
  *list = ObjectAs<List>(ctx.Find(key, Access::kWrite));
  return true;
}

// The first of the keys that has a list, or the only one that may be looked at. False when an error
// was replied.
bool FirstFilled(Context& ctx, Args keys, std::string_view* key, List** list) {
  *list = nullptr;
  if (ctx.ready_key().has_value()) {
    *key = *ctx.ready_key();
    return FindFilled(ctx, *key, list);
  }
  for (const std::string_view candidate : keys) {
    *key = candidate;
    if (!FindFilled(ctx, candidate, list)) return false;
    if (*list != nullptr) return true;
  }
  return true;
}

void PopOrWait(Context& ctx, ListEnd end) {
  int64_t deadline = 0;
  if (!TimeoutSeconds(ctx, ctx.argc() - 1, &deadline)) return;
  const Args keys = ctx.args().subspan(1, ctx.argc() - 2);
  std::string_view key;
  List* list = nullptr;
  if (!FirstFilled(ctx, keys, &key, &list)) return;
  if (list != nullptr) {
    ctx.reply().Array(2);
    ctx.reply().Bulk(key);
    PopOne(ctx, key, *list, end);
    return ctx.Effect({PopCommand(end), key});
  }
  if (!ctx.can_block()) return ctx.reply().NullArray();
  ctx.Block({.keys = keys, .deadline_ms = deadline, .type = &List::Type()});
}

void Blpop(Context& ctx) { PopOrWait(ctx, ListEnd::kHead); }
void Brpop(Context& ctx) { PopOrWait(ctx, ListEnd::kTail); }

void Blmpop(Context& ctx) {
  PopManyArgs args;
  int64_t deadline = 0;
  if (!ParsePopMany(ctx, 2, &args) || !TimeoutSeconds(ctx, 1, &deadline)) return;
  const Args keys = ctx.args().subspan(args.first_key, args.keys);
  std::string_view key;
  List* list = nullptr;
  if (!FirstFilled(ctx, keys, &key, &list)) return;
  if (list != nullptr) {
    const int64_t popped = PopSome(ctx, key, *list, args.end, args.count);
    char number[24];
    return ctx.Effect(
        {PopCommand(args.end), key, std::string_view(number, base::FormatInt(popped, number))});
  }
  if (!ctx.can_block()) return ctx.reply().NullArray();
  ctx.Block({.keys = keys, .deadline_ms = deadline, .type = &List::Type()});
}

void MoveOrWait(Context& ctx, ListEnd from, ListEnd to, size_t timeout_at, bool old_form) {
  int64_t deadline = 0;
  if (!TimeoutSeconds(ctx, timeout_at, &deadline)) return;
  List* list = nullptr;
  if (!FindFilled(ctx, ctx.arg(1), &list)) return;
  if (list != nullptr) {
    if (!MoveOne(ctx, ctx.arg(1), *list, from, ctx.arg(2), to)) return;
    if (old_form) return ctx.Effect({"RPOPLPUSH", ctx.arg(1), ctx.arg(2)});
    return ctx.Effect({"LMOVE", ctx.arg(1), ctx.arg(2), EndWord(from), EndWord(to)});
  }
  if (!ctx.can_block()) return ctx.reply().Null();
  ctx.Block({.keys = ctx.args().subspan(1, 1), .deadline_ms = deadline, .type = &List::Type()});
}

void Blmove(Context& ctx) {
  ListEnd from = ListEnd::kHead;
  ListEnd to = ListEnd::kHead;
  if (!ListEndArg(ctx, 3, &from) || !ListEndArg(ctx, 4, &to)) return;
  MoveOrWait(ctx, from, to, 5, false);
}

void Brpoplpush(Context& ctx) { MoveOrWait(ctx, ListEnd::kTail, ListEnd::kHead, 3, true); }

constexpr uint32_t kWaits = kWrite | kBlocking;
constexpr KeySpec kSource = KeyAt(1, kKeyRw | kKeyAccess | kKeyDelete);
constexpr KeySpec kDestination = KeyAt(2, kKeyRw | kKeyInsert);
constexpr KeySpec kAllButLast = {
    .flags = kKeyRw | kKeyAccess | kKeyDelete, .first = 1, .last = -2, .step = 1};

constexpr CommandSpec kBlockingRows[] = {
    {.name = "blpop",
     .handler = Blpop,
     .arity = -3,
     .flags = kWaits,
     .acl = kAclList,
     .keys = {kAllButLast},
     .group = "list",
     .since = "2.0.0",
     .summary = "Takes the first element of the first list that has one; waits for one otherwise.",
     .complexity = "O(N) where N is the number of provided keys.",
     .arguments = "key [key ...] timeout:double",
     .reply = "key and element, or null when the time is up",
     .example = "BLPOP queue 0.1"},
    {.name = "brpop",
     .handler = Brpop,
     .arity = -3,
     .flags = kWaits,
     .acl = kAclList,
     .keys = {kAllButLast},
     .group = "list",
     .since = "2.0.0",
     .summary = "Takes the last element of the first list that has one; waits for one otherwise.",
     .complexity = "O(N) where N is the number of provided keys.",
     .arguments = "key [key ...] timeout:double",
     .reply = "key and element, or null when the time is up",
     .example = "BRPOP queue 0.1"},
    {.name = "blmpop",
     .handler = Blmpop,
     .arity = -5,
     .flags = kWrite | kBlocking | kMovableKeys,
     .acl = kAclList,
     .keys = {{.flags = kKeyRw | kKeyAccess | kKeyDelete, .first = 2, .keynum = true}},
     .group = "list",
     .since = "7.0.0",
     .summary = "Takes elements of the first list that has some; waits for them otherwise.",
     .complexity = "O(N+M) where N is the number of provided keys and M is the number of elements "
                   "returned.",
     .arguments = "timeout:double numkeys:integer key [key ...] (where: LEFT | RIGHT) [COUNT "
                  "count:integer]",
     .reply = "key and elements, or null when the time is up",
     .example = "BLMPOP 0.1 1 queue LEFT COUNT 10"},
    {.name = "blmove",
     .handler = Blmove,
     .arity = 6,
     .flags = kWaits | kDenyOom,
     .acl = kAclList,
     .keys = {kSource, kDestination},
     .group = "list",
     .since = "6.2.0",
     .summary = "Moves an element from one list to another; waits for one otherwise.",
     .complexity = "O(1)",
     .arguments = "source:key destination:key (wherefrom: LEFT | RIGHT) (whereto: LEFT | RIGHT) "
                  "timeout:double",
     .reply = "the element, or null when the time is up",
     .example = "BLMOVE queue busy RIGHT LEFT 0.1"},
    {.name = "brpoplpush",
     .handler = Brpoplpush,
     .arity = 4,
     .flags = kWaits | kDenyOom,
     .acl = kAclList,
     .keys = {kSource, kDestination},
     .group = "list",
     .since = "2.2.0",
     .summary = "Moves the last element of a list to the head of another; waits for one otherwise.",
     .complexity = "O(1)",
     .arguments = "source:key destination:key timeout:double",
     .reply = "the element, or null when the time is up",
     .example = "BRPOPLPUSH queue busy 0.1",
     .deprecated_since = "6.2.0",
     .replaced_by = "`BLMOVE` with the `RIGHT` and `LEFT` arguments"},
};

}  // namespace

std::span<const CommandSpec> ListBlockingCommands() { return kBlockingRows; }

}  // namespace sava::commands
