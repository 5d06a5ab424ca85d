// Commands that choose members of a set at random: SPOP SRANDMEMBER. What SPOP took is logged as
// SREM.
#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "commands/redis/families.h"
#include "commands/redis/sets.h"
#include "commands/registry.h"

namespace sava::commands {

namespace {

using sets::FinishRemoval;
using types::Set;

// Members to an SREM in the log.
constexpr size_t kRemovedAtOnce = 512;

std::vector<std::string> AllMembers(const Set& set) {
  std::vector<std::string> members;
  members.reserve(set.size());
  set.ForEach([&](std::string_view member) { members.emplace_back(member); });
  return members;
}

// `count` different members. REQUIRES: count <= the set's size.
std::vector<std::string> Sample(Context& context, const Set& set, size_t count) {
  std::vector<std::string> chosen;
  if (count * 3 > set.size()) {
    chosen = AllMembers(set);
    for (size_t i = 0; i < count; ++i) {
      std::swap(chosen[i], chosen[i + context.Random() % (chosen.size() - i)]);
    }
    chosen.resize(count);
    return chosen;
  }
  std::unordered_set<std::string> seen;
  std::string member;
  while (seen.size() < count) {
    set.Random([&] { return context.Random(); }, &member);
    if (seen.insert(member).second) chosen.push_back(member);
  }
  return chosen;
}

void ReplyMembers(protocol::Reply& reply, const std::vector<std::string>& members) {
  for (const std::string& member : members) reply.Bulk(member);
}

void LogRemoved(Context& context, std::string_view key, const std::vector<std::string>& members) {
  context.NoEffect();
  if (!context.wants_effects()) return;
  std::vector<std::string_view> words;
  for (size_t at = 0; at < members.size(); at += kRemovedAtOnce) {
    words.assign({"SREM", key});
    const size_t end = std::min(members.size(), at + kRemovedAtOnce);
    words.insert(words.end(), members.begin() + static_cast<ptrdiff_t>(at),
                 members.begin() + static_cast<ptrdiff_t>(end));
    context.Effect(Args(words));
  }
}

void PopSome(Context& context) {
  int64_t count = 0;
  const std::string_view key = context.arg(1);
  if (!context.IntArg(2, &count, errors::kMustBePositive)) return;
  if (count < 0) return context.Error(errors::kMustBePositive);
  Set* set = nullptr;
  if (!FindObject(context, key, Access::kWrite, &set)) return;
  protocol::Reply& reply = context.reply();
  if (set == nullptr || count == 0) return reply.Set(0);
  if (static_cast<uint64_t>(count) >= set->size()) {
    const auto size = static_cast<int64_t>(set->size());
    reply.Set(size);
    set->ForEach([&](std::string_view member) { reply.Bulk(member); });
    context.Delete(key);
    context.Notify(kNotifySet, "spop", key);
    context.Notify(kNotifyGeneric, "del", key);
    context.Changed(size);
    return context.Effect({"DEL", key});
  }
  const std::vector<std::string> members = Sample(context, *set, static_cast<size_t>(count));
  for (const std::string& member : members) set->Remove(member);
  reply.Set(count);
  ReplyMembers(reply, members);
  FinishRemoval(context, key, *set, count, "spop");
  LogRemoved(context, key, members);
}

void Spop(Context& context) {
  if (context.argc() > 3) return context.Error(errors::kSyntax);
  if (context.argc() == 3) return PopSome(context);
  const std::string_view key = context.arg(1);
  Set* set = nullptr;
  if (!FindObject(context, key, Access::kWrite, &set)) return;
  if (set == nullptr) return context.reply().Null();
  std::string member;
  set->Random([&] { return context.Random(); }, &member);
  context.reply().Bulk(member);
  context.Effect({"SREM", key, member});
  set->Remove(member);
  FinishRemoval(context, key, *set, 1, "spop");
}

void Srandmember(Context& context) {
  if (context.argc() > 3) return context.Error(errors::kSyntax);
  protocol::Reply& reply = context.reply();
  const bool counted = context.argc() == 3;
  int64_t count = 0;
  if (counted) {
    if (!context.IntArg(2, &count)) return;
    if (count == INT64_MIN) return context.Error(errors::kNoAbsolute);
  }
  Set* set = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &set)) return;
  std::string member;
  if (!counted) {
    if (set == nullptr) return reply.Null();
    set->Random([&] { return context.Random(); }, &member);
    return reply.Bulk(member);
  }
  if (set == nullptr || count == 0) return reply.Array(0);
  if (count < 0) {
    reply.Array(-count);
    for (; count < 0 && !reply.over(); ++count) {
      set->Random([&] { return context.Random(); }, &member);
      reply.Bulk(member);
    }
    return;
  }
  if (static_cast<uint64_t>(count) >= set->size()) {
    reply.Array(static_cast<int64_t>(set->size()));
    return set->ForEach([&](std::string_view each) { reply.Bulk(each); });
  }
  const std::vector<std::string> members = Sample(context, *set, static_cast<size_t>(count));
  reply.Array(count);
  ReplyMembers(reply, members);
}

// ---- rows ----

constexpr CommandSpec kRows[] = {
    {.name = "spop",
     .handler = Spop,
     .arity = -2,
     .flags = kWrite | kFast,
     .acl = kAclSet,
     .keys = {KeyAt(1, kKeyRw | kKeyAccess | kKeyDelete)},
     .group = "set",
     .since = "1.0.0",
     .summary = "Takes members chosen at random out of a set.",
     .complexity = "O(N) for N members taken",
     .arguments = "key [count:integer]",
     .reply = "bulk string or null; with count a set",
     .example = "SPOP colours",
     .tips = "nondeterministic_output"},
    {.name = "srandmember",
     .handler = Srandmember,
     .arity = -2,
     .flags = kReadonly,
     .acl = kAclSet,
     .keys = {KeyAt(1, kKeyRo | kKeyAccess)},
     .group = "set",
     .since = "1.0.0",
     .summary = "Gets members of a set chosen at random; with a negative count with repetitions.",
     .complexity = "O(N) for N members asked for",
     .arguments = "key [count:integer]",
     .reply = "bulk string or null; with count an array",
     .example = "SRANDMEMBER colours 2",
     .tips = "nondeterministic_output"},
};

}  // namespace

std::span<const CommandSpec> SetRandomCommands() { return kRows; }

}  // namespace sava::commands
