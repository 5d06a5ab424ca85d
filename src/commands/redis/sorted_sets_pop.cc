// Taking members from the ends of sorted sets: ZPOPMIN ZPOPMAX ZMPOP, and the forms that wait for
// some, BZPOPMIN BZPOPMAX BZMPOP. In the log the latter, and ZMPOP, are ZPOPMIN or ZPOPMAX.
#include <algorithm>
#include <string>

#include "base/text.h"
#include "commands/blocking.h"
#include "commands/redis/families.h"
#include "commands/redis/sorted_sets.h"
#include "commands/registry.h"

namespace sava::commands {

namespace {

using types::SortedSet;

enum class ZsetEnd : uint8_t { kMin, kMax };

std::string_view ZpopEvent(ZsetEnd end) { return end == ZsetEnd::kMin ? "zpopmin" : "zpopmax"; }
std::string_view ZpopCommand(ZsetEnd end) { return end == ZsetEnd::kMin ? "ZPOPMIN" : "ZPOPMAX"; }

// How the members that were taken are replied.
enum class PopForm : uint8_t {
  kFlat,     // member, score, member, score …
  kPairs,    // [member, score] …
  kKeyFlat,  // key, member, score
  kKeyPairs  // key, [[member, score] …]
};

void ReplyPopHead(protocol::Reply& reply, PopForm form, std::string_view key, size_t count) {
  const auto n = static_cast<int64_t>(count);
  switch (form) {
    case PopForm::kFlat:
      return reply.Array(n * 2);
    case PopForm::kPairs:
      return reply.Array(n);
    case PopForm::kKeyFlat:
      reply.Array(n * 2 + 1);
      return reply.Bulk(key);
    case PopForm::kKeyPairs:
      reply.Array(2);
      reply.Bulk(key);
      return reply.Array(n);
  }
}

// Takes up to `count` members, replies them and does the bookkeeping except Effect; how many.
// REQUIRES: the set stands at `key`, not empty.
size_t Pop(Context& context, std::string_view key, SortedSet& set, ZsetEnd end, uint64_t count,
           PopForm form) {
  const size_t size = set.size();
  const size_t n = std::min<size_t>(count, size);
  ReplyPopHead(context.reply(), form, key, n);
  const bool pairs = form == PopForm::kPairs || form == PopForm::kKeyPairs;
  SortedSet::Iterator it = set.At(end == ZsetEnd::kMin ? 0 : size - 1);
  for (size_t i = 0; i < n; ++i) {
    if (pairs) context.reply().Array(2);
    context.reply().Bulk(it.member());
    ReplyScore(context.reply(), it.score());
    end == ZsetEnd::kMin ? it.Next() : it.Previous();
  }
  set.RemoveRanks(end == ZsetEnd::kMin ? 0 : size - n, end == ZsetEnd::kMin ? n : size);
  FinishRemoval(context, key, set, n, ZpopEvent(end));
  return n;
}

void LogPop(Context& context, std::string_view key, ZsetEnd end, size_t count) {
  char number[24];
  const size_t size = base::FormatUint(count, number);
  context.Effect({ZpopCommand(end), key, std::string_view(number, size)});
}

void ZpopGeneric(Context& context, ZsetEnd end) {
  if (context.argc() > 3) return context.Error(errors::kSyntax);
  const bool counted = context.argc() == 3;
  int64_t count = 1;
  if (counted) {
    if (!context.IntArg(2, &count, errors::kMustBePositive)) return;
    if (count < 0) return context.Error(errors::kMustBePositive);
  }
  SortedSet* set = nullptr;
  if (!FindObject(context, context.arg(1), Access::kWrite, &set)) return;
  if (set == nullptr || count == 0) return context.reply().Array(0);
  const PopForm form = counted && context.reply().resp() == 3 ? PopForm::kPairs : PopForm::kFlat;
  Pop(context, context.arg(1), *set, end, static_cast<uint64_t>(count), form);
}

void Zpopmin(Context& context) { ZpopGeneric(context, ZsetEnd::kMin); }
void Zpopmax(Context& context) { ZpopGeneric(context, ZsetEnd::kMax); }

// numkeys key [key ...] MIN|MAX [COUNT count]
struct MpopArgs {
  Args keys;
  ZsetEnd end = ZsetEnd::kMin;
  int64_t count = 1;
};

bool MpopError(Context& context, std::string_view text) {
  context.Error(text);
  return false;
}

// From argument `from` on; replies the error and returns false when they are wrong.
bool ParseMpop(Context& context, size_t from, MpopArgs* args) {
  int64_t keys = 0;
  if (!base::ParseInt(context.arg(from), &keys) || keys < 1) {
    return MpopError(context, errors::kNumkeys);
  }
  const size_t rest = context.argc() - from - 1;
  if (static_cast<uint64_t>(keys) >= rest) return MpopError(context, errors::kSyntax);
  args->keys = context.args().subspan(from + 1, static_cast<size_t>(keys));
  size_t i = from + 1 + args->keys.size();
  if (context.ArgIs(i, "MIN")) {
    args->end = ZsetEnd::kMin;
  } else if (context.ArgIs(i, "MAX")) {
    args->end = ZsetEnd::kMax;
  } else {
    return MpopError(context, errors::kSyntax);
  }
  bool counted = false;
  for (++i; i < context.argc(); i += 2) {
    if (counted || !context.ArgIs(i, "COUNT") || i + 1 >= context.argc()) {
      return MpopError(context, errors::kSyntax);
    }
    if (!base::ParseInt(context.arg(i + 1), &args->count) || args->count < 1) {
      return MpopError(context, errors::kCount);
    }
    counted = true;
  }
  return true;
}

void Zmpop(Context& context) {
  MpopArgs args;
  if (!ParseMpop(context, 1, &args)) return;
  for (const std::string_view key : args.keys) {
    SortedSet* set = nullptr;
    if (!FindObject(context, key, Access::kWrite, &set)) return;
    if (set == nullptr) continue;
    const size_t n =
        Pop(context, key, *set, args.end, static_cast<uint64_t>(args.count), PopForm::kKeyPairs);
    return LogPop(context, key, args.end, n);
  }
  context.reply().NullArray();
}

// ---- waiting ----

// The first of the keys that has a sorted set, or the only one that may be looked at. Something
// else at a key is an error for who has just come (replied, false), and none of his business for
// who waits.
bool FirstFilledSet(Context& context, Args keys, std::string_view* key, SortedSet** set) {
  *set = nullptr;
  const std::optional<std::string_view> ready = context.ready_key();
  const Args candidates = ready.has_value() ? Args(&*ready, 1) : keys;
  for (const std::string_view candidate : candidates) {
    *key = candidate;
    if (!context.runs_again() && !ready.has_value()) {
      if (!FindObject(context, candidate, Access::kWrite, set)) return false;
    } else {
      *set = ObjectAs<SortedSet>(context.Find(candidate, Access::kWrite));
    }
    if (*set != nullptr) return true;
  }
  return true;
}

// Takes, or waits.
void PopOrWaitFor(Context& context, const MpopArgs& args, int64_t deadline, PopForm form) {
  std::string_view key;
  SortedSet* set = nullptr;
  if (!FirstFilledSet(context, args.keys, &key, &set)) return;
  if (set != nullptr) {
    // The key may be a view of the context's; the effect needs it after the set has gone.
    const std::string name(key);
    const size_t n = Pop(context, name, *set, args.end, static_cast<uint64_t>(args.count), form);
    if (form == PopForm::kKeyFlat) return context.Effect({ZpopCommand(args.end), name});
    return LogPop(context, name, args.end, n);
  }
  if (!context.can_block()) return context.reply().NullArray();
  context.Block({.keys = args.keys, .deadline_ms = deadline, .type = &SortedSet::Type()});
}

void BzpopGeneric(Context& context, ZsetEnd end) {
  int64_t deadline = 0;
  if (!TimeoutSeconds(context, context.argc() - 1, &deadline)) return;
  const MpopArgs args{.keys = context.args().subspan(1, context.argc() - 2), .end = end};
  PopOrWaitFor(context, args, deadline, PopForm::kKeyFlat);
}

void Bzpopmin(Context& context) { BzpopGeneric(context, ZsetEnd::kMin); }
void Bzpopmax(Context& context) { BzpopGeneric(context, ZsetEnd::kMax); }

void Bzmpop(Context& context) {
  MpopArgs args;
  int64_t deadline = 0;
  if (!ParseMpop(context, 2, &args) || !TimeoutSeconds(context, 1, &deadline)) return;
  PopOrWaitFor(context, args, deadline, PopForm::kKeyPairs);
}

// ---- rows ----

constexpr uint16_t kPopFlags = kKeyRw | kKeyAccess | kKeyDelete;
constexpr KeySpec kPopNumbered(int16_t at) {
  return {.flags = kPopFlags, .first = at, .keynum = true, .keynum_at = 0, .keynum_first = 1};
}
constexpr KeySpec kPopAllButLast = {.flags = kPopFlags, .first = 1, .last = -2, .step = 1};
constexpr std::string_view kPopCost =
    "O(log(N)*M) with N being the size of the sorted set and M the number of members taken";
constexpr std::string_view kMpopCost =
    "O(K) + O(M*log(N)) where K is the number of keys, N the size of the sorted set and M the "
    "number of members taken";

const CommandSpec kPopRows[] = {
    {.name = "zpopmin",
     .handler = Zpopmin,
     .arity = -2,
     .flags = kWrite | kFast,
     .acl = kAclSortedSet,
     .keys = {KeyAt(1, kPopFlags)},
     .group = "sorted-set",
     .since = "5.0.0",
     .summary = "Takes the members with the lowest scores.",
     .complexity = kPopCost,
     .arguments = "key [count:integer]",
     .reply = "array of members and scores",
     .example = "ZPOPMIN board 2"},
    {.name = "zpopmax",
     .handler = Zpopmax,
     .arity = -2,
     .flags = kWrite | kFast,
     .acl = kAclSortedSet,
     .keys = {KeyAt(1, kPopFlags)},
     .group = "sorted-set",
     .since = "5.0.0",
     .summary = "Takes the members with the highest scores.",
     .complexity = kPopCost,
     .arguments = "key [count:integer]",
     .reply = "array of members and scores",
     .example = "ZPOPMAX board"},
    {.name = "zmpop",
     .handler = Zmpop,
     .arity = -4,
     .flags = kWrite | kMovableKeys,
     .acl = kAclSortedSet,
     .keys = {kPopNumbered(1)},
     .group = "sorted-set",
     .since = "7.0.0",
     .summary = "Takes members from one end of the first sorted set that has some.",
     .complexity = kMpopCost,
     .arguments = "numkeys:integer key [key ...] (where: MIN | MAX) [COUNT count:integer]",
     .reply = "null, or the key and an array of pairs of member and score",
     .example = "ZMPOP 2 board other MAX COUNT 3"},
    {.name = "bzpopmin",
     .handler = Bzpopmin,
     .arity = -3,
     .flags = kWrite | kBlocking | kFast,
     .acl = kAclSortedSet,
     .keys = {kPopAllButLast},
     .group = "sorted-set",
     .since = "5.0.0",
     .summary = "Takes the member with the lowest score; waits for one when there is none.",
     .complexity = "O(log(N)) with N being the size of the sorted set",
     .arguments = "key [key ...] timeout:double",
     .reply = "key, member and score, or null when the time is up",
     .example = "BZPOPMIN board 0.01"},
    {.name = "bzpopmax",
     .handler = Bzpopmax,
     .arity = -3,
     .flags = kWrite | kBlocking | kFast,
     .acl = kAclSortedSet,
     .keys = {kPopAllButLast},
     .group = "sorted-set",
     .since = "5.0.0",
     .summary = "Takes the member with the highest score; waits for one when there is none.",
     .complexity = "O(log(N)) with N being the size of the sorted set",
     .arguments = "key [key ...] timeout:double",
     .reply = "key, member and score, or null when the time is up",
     .example = "BZPOPMAX board 0.01"},
    {.name = "bzmpop",
     .handler = Bzmpop,
     .arity = -5,
     .flags = kWrite | kBlocking | kMovableKeys,
     .acl = kAclSortedSet,
     .keys = {kPopNumbered(2)},
     .group = "sorted-set",
     .since = "7.0.0",
     .summary = "Takes members from one end of the first sorted set that has some; waits for one "
                "when none has.",
     .complexity = kMpopCost,
     .arguments =
         "timeout:double numkeys:integer key [key ...] (where: MIN | MAX) [COUNT count:integer]",
     .reply = "the key and an array of pairs of member and score, or null when the time is up",
     .example = "BZMPOP 0.01 1 board MIN"},
};

}  // namespace

std::span<const CommandSpec> SortedSetPopCommands() { return kPopRows; }

}  // namespace sava::commands
