// Commands that combine sets: SINTER SINTERCARD SINTERSTORE SUNION SUNIONSTORE SDIFF SDIFFSTORE.
// They look at all sets before anything is changed; the storing ones put a new set in place of what
// was at their destination.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "commands/redis/families.h"
#include "commands/redis/sets.h"
#include "commands/registry.h"

namespace sava::commands {

namespace {

using types::Set;

// The sets at the arguments from `first` on, nullptr for a missing one. Replies WRONGTYPE and
// returns false when something else is at a key.
bool FindSets(Context& context, size_t first, size_t end, Access access, std::vector<Set*>* all) {
  for (size_t i = first; i < end; ++i) {
    Set* set = nullptr;
    if (!FindObject(context, context.arg(i), access, &set)) return false;
    all->push_back(set);
  }
  return true;
}

// Calls visit for the members that are in all of the sets until it returns false.
template <typename Visit>
void Intersect(std::vector<Set*> sets, const Visit& visit) {
  if (std::find(sets.begin(), sets.end(), nullptr) != sets.end()) return;
  std::stable_sort(sets.begin(), sets.end(),
                   [](const Set* a, const Set* b) { return a->size() < b->size(); });
  bool go_on = true;
  sets[0]->ForEach([&](std::string_view member) {
    if (!go_on) return;
    for (size_t i = 1; i < sets.size(); ++i) {
      if (sets[i] != sets[0] && !sets[i]->Contains(member)) return;
    }
    go_on = visit(member);
  });
}

// Makes the destination what was found and replies its size.
void Store(Context& context, std::unique_ptr<Set> result, std::string_view event) {
  const std::string_view key = context.arg(1);
  const auto size = static_cast<int64_t>(result->size());
  if (size > 0) {
    context.SetObject(key, std::move(result));
    context.Notify(kNotifySet, event, key);
    context.Changed();
  } else if (context.Delete(key)) {
    context.Notify(kNotifyGeneric, "del", key);
    context.Changed();
  }
  context.reply().Int(size);
}

void Sinter(Context& context) {
  std::vector<Set*> sets;
  if (!FindSets(context, 1, context.argc(), Access::kRead, &sets)) return;
  protocol::Reply& reply = context.reply();
  const size_t mark = reply.Mark();
  int64_t found = 0;
  Intersect(std::move(sets), [&](std::string_view member) {
    reply.Bulk(member);
    ++found;
    return true;
  });
  reply.SetAt(mark, found);
}

void Sinterstore(Context& context) {
  std::vector<Set*> sets;
  if (!FindSets(context, 2, context.argc(), Access::kRead, &sets)) return;
  const types::CollectionLimits& limits = context.collection_limits();
  // As Redis does: begun as numbers when the smallest set is one of numbers, as a listpack when
  // not; numbers at the end where that is possible.
  const Set* smallest = nullptr;
  for (const Set* set : sets) {
    if (set != nullptr && (smallest == nullptr || set->size() < smallest->size())) smallest = set;
  }
  std::unique_ptr<Set> result = std::make_unique<Set>();
  if (smallest != nullptr && !smallest->numbers()) {
    result = std::make_unique<Set>("", 0, limits);
  }
  Intersect(std::move(sets), [&](std::string_view member) {
    result->Add(member, limits);
    return true;
  });
  result->MaybeNumbers(limits);
  Store(context, std::move(result), "sinterstore");
}

void Sintercard(Context& context) {
  int64_t count = 0;
  if (!context.IntArg(1, &count, errors::kNumkeys)) return;
  if (count < 1) return context.Error(errors::kNumkeys);
  if (static_cast<uint64_t>(count) > context.argc() - 2) {
    return context.Error(errors::kTooManyKeys);
  }
  const auto end = static_cast<size_t>(count) + 2;
  int64_t limit = 0;
  for (size_t i = end; i < context.argc(); i += 2) {
    if (!context.ArgIs(i, "LIMIT") || i + 1 >= context.argc()) {
      return context.Error(errors::kSyntax);
    }
    if (!context.IntArg(i + 1, &limit, errors::kNegativeLimit)) return;
    if (limit < 0) return context.Error(errors::kNegativeLimit);
  }
  std::vector<Set*> sets;
  if (!FindSets(context, 2, end, Access::kRead, &sets)) return;
  int64_t found = 0;
  Intersect(std::move(sets), [&](std::string_view) { return ++found != limit; });
  context.reply().Int(found);
}

std::unique_ptr<Set> Union(Context& context, const std::vector<Set*>& sets) {
  auto result = std::make_unique<Set>();
  for (const Set* set : sets) {
    if (set == nullptr) continue;
    set->ForEach(
        [&](std::string_view member) { result->Add(member, context.collection_limits()); });
  }
  return result;
}

// Calls visit for the members of the first set that are in none of the others.
template <typename Visit>
void Subtract(const std::vector<Set*>& sets, const Visit& visit) {
  if (sets[0] == nullptr) return;
  // The largest of the others is the likeliest to have a member.
  std::vector<Set*> others;
  for (size_t i = 1; i < sets.size(); ++i) {
    if (sets[i] == sets[0]) return;
    if (sets[i] != nullptr) others.push_back(sets[i]);
  }
  std::stable_sort(others.begin(), others.end(),
                   [](const Set* a, const Set* b) { return a->size() > b->size(); });
  sets[0]->ForEach([&](std::string_view member) {
    for (const Set* other : others) {
      if (other->Contains(member)) return;
    }
    visit(member);
  });
}

void Sunion(Context& context) {
  std::vector<Set*> sets;
  if (!FindSets(context, 1, context.argc(), Access::kRead, &sets)) return;
  const std::unique_ptr<Set> result = Union(context, sets);
  context.reply().Set(static_cast<int64_t>(result->size()));
  result->ForEach([&](std::string_view member) { context.reply().Bulk(member); });
}

void Sunionstore(Context& context) {
  std::vector<Set*> sets;
  if (!FindSets(context, 2, context.argc(), Access::kRead, &sets)) return;
  Store(context, Union(context, sets), "sunionstore");
}

void Sdiff(Context& context) {
  std::vector<Set*> sets;
  if (!FindSets(context, 1, context.argc(), Access::kRead, &sets)) return;
  protocol::Reply& reply = context.reply();
  const size_t mark = reply.Mark();
  int64_t found = 0;
  Subtract(sets, [&](std::string_view member) {
    reply.Bulk(member);
    ++found;
  });
  reply.SetAt(mark, found);
}

void Sdiffstore(Context& context) {
  std::vector<Set*> sets;
  if (!FindSets(context, 2, context.argc(), Access::kRead, &sets)) return;
  auto result = std::make_unique<Set>();
  Subtract(sets,
           [&](std::string_view member) { result->Add(member, context.collection_limits()); });
  Store(context, std::move(result), "sdiffstore");
}

// ---- rows ----

constexpr KeySpec kSources = KeysFrom(2, 1, kKeyRo | kKeyAccess);

constexpr CommandSpec kRows[] = {
    {.name = "sinter",
     .handler = Sinter,
     .arity = -2,
     .flags = kReadonly,
     .acl = kAclSet,
     .keys = {KeysFrom(1, 1, kKeyRo | kKeyAccess)},
     .group = "set",
     .since = "1.0.0",
     .summary = "Gets the members that several sets have in common.",
     .complexity = "O(N*M) for M sets of which the smallest has N members",
     .arguments = "key [key ...]",
     .reply = "set of members",
     .example = "SINTER colours shades",
     .tips = "nondeterministic_output_order"},
    {.name = "sintercard",
     .handler = Sintercard,
     .arity = -3,
     .flags = kReadonly | kMovableKeys,
     .acl = kAclSet,
     .keys = {{.flags = kKeyRo | kKeyAccess,
               .first = 1,
               .keynum = true,
               .keynum_at = 0,
               .keynum_first = 1}},
     .group = "set",
     .since = "7.0.0",
     .summary = "Counts the members that several sets have in common.",
     .complexity = "O(N*M) for M sets of which the smallest has N members",
     .arguments = "numkeys:integer key [key ...] [LIMIT limit:integer]",
     .reply = "integer",
     .example = "SINTERCARD 2 colours shades LIMIT 10"},
    {.name = "sinterstore",
     .handler = Sinterstore,
     .arity = -3,
     .flags = kWrite | kDenyOom,
     .acl = kAclSet,
     .keys = {KeyAt(1, kKeyRw | kKeyUpdate), kSources},
     .group = "set",
     .since = "1.0.0",
     .summary = "Keeps the members that several sets have in common as a set.",
     .complexity = "O(N*M) for M sets of which the smallest has N members",
     .arguments = "destination:key key [key ...]",
     .reply = "integer: how many there are",
     .example = "SINTERSTORE both colours shades"},
    {.name = "sunion",
     .handler = Sunion,
     .arity = -2,
     .flags = kReadonly,
     .acl = kAclSet,
     .keys = {KeysFrom(1, 1, kKeyRo | kKeyAccess)},
     .group = "set",
     .since = "1.0.0",
     .summary = "Gets the members that are in any of several sets.",
     .complexity = "O(N) for N members in all sets",
     .arguments = "key [key ...]",
     .reply = "set of members",
     .example = "SUNION colours shades",
     .tips = "nondeterministic_output_order"},
    {.name = "sunionstore",
     .handler = Sunionstore,
     .arity = -3,
     .flags = kWrite | kDenyOom,
     .acl = kAclSet,
     .keys = {KeyAt(1, kKeyOw | kKeyUpdate), kSources},
     .group = "set",
     .since = "1.0.0",
     .summary = "Keeps the members that are in any of several sets as a set.",
     .complexity = "O(N) for N members in all sets",
     .arguments = "destination:key key [key ...]",
     .reply = "integer: how many there are",
     .example = "SUNIONSTORE all colours shades"},
    {.name = "sdiff",
     .handler = Sdiff,
     .arity = -2,
     .flags = kReadonly,
     .acl = kAclSet,
     .keys = {KeysFrom(1, 1, kKeyRo | kKeyAccess)},
     .group = "set",
     .since = "1.0.0",
     .summary = "Gets the members of the first set that are in none of the others.",
     .complexity = "O(N*M) for M sets of which the first has N members",
     .arguments = "key [key ...]",
     .reply = "set of members",
     .example = "SDIFF colours shades",
     .tips = "nondeterministic_output_order"},
    {.name = "sdiffstore",
     .handler = Sdiffstore,
     .arity = -3,
     .flags = kWrite | kDenyOom,
     .acl = kAclSet,
     .keys = {KeyAt(1, kKeyOw | kKeyUpdate), kSources},
     .group = "set",
     .since = "1.0.0",
     .summary = "Keeps the members of the first set that are in none of the others as a set.",
     .complexity = "O(N*M) for M sets of which the first has N members",
     .arguments = "destination:key key [key ...]",
     .reply = "integer: how many there are",
     .example = "SDIFFSTORE rest colours shades"},
};

}  // namespace

std::span<const CommandSpec> SetAlgebraCommands() { return kRows; }

}  // namespace sava::commands
