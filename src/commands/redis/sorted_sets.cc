// Sorted sets, member by member: ZADD ZINCRBY ZREM ZSCORE ZMSCORE ZCARD ZRANK ZREVRANK
// ZRANDMEMBER ZSCAN; and what the other files of the family share (docs/types/sorted-sets.md).
#include "commands/redis/sorted_sets.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <unordered_set>
#include <utility>

#include "base/glob.h"
#include "base/text.h"
#include "commands/redis/families.h"
#include "commands/registry.h"

namespace sava::commands {

using types::SortedSet;

// ---- shared ----

void ReplyScore(protocol::Reply& reply, double score) {
  const std::string text = types::ScoreText(score);
  if (reply.resp() != 3) return reply.Bulk(text);
  std::string line = ",";
  line += text;
  line += "\r\n";
  reply.Raw(line);
}

void ReplyMembersHead(protocol::Reply& reply, size_t count, bool with_scores) {
  const bool flat_pairs = with_scores && reply.resp() != 3;
  reply.Array(static_cast<int64_t>(flat_pairs ? count * 2 : count));
}

void ReplyMember(protocol::Reply& reply, std::string_view member, double score, bool with_scores) {
  if (with_scores && reply.resp() == 3) reply.Array(2);
  reply.Bulk(member);
  if (with_scores) ReplyScore(reply, score);
}

bool ParseScore(std::string_view text, double* out) {
  int64_t whole = 0;
  constexpr int64_t kExact = int64_t{1} << 53;
  if (base::ParseInt(text, &whole) && whole > -kExact && whole < kExact) {
    *out = static_cast<double>(whole);
    return true;
  }
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, *out);
  if (read.ec == std::errc() && read.ptr == end && std::isfinite(*out)) return true;
  return base::ParseDouble(text, out);
}

bool ScoreArg(Context& context, size_t i, double* out, std::string_view error) {
  if (ParseScore(context.arg(i), out)) return true;
  context.Error(error);
  return false;
}

void StoreSortedSet(Context& context, std::string_view key,
                    const std::vector<ScoredMember>& members, std::string_view event) {
  if (members.empty()) {
    if (context.Delete(key)) {
      context.Notify(kNotifyGeneric, "del", key);
      context.Changed();
    }
    return context.reply().Int(0);
  }
  auto set = std::make_unique<SortedSet>();
  const types::CollectionLimits& limits = context.collection_limits();
  for (const ScoredMember& item : members) set->Add(item.member, item.score, limits);
  set->ChooseEncoding(limits);
  const size_t size = set->size();
  context.SetObject(key, std::move(set));
  context.Notify(kNotifyZset, event, key);
  context.Changed();
  context.reply().Int(static_cast<int64_t>(size));
}

void FinishRemoval(Context& context, std::string_view key, const SortedSet& set, size_t removed,
                   std::string_view event) {
  if (removed == 0) return;
  const bool empty = set.size() == 0;
  context.Changed(static_cast<int64_t>(removed));
  if (empty) {
    context.Delete(key);
  } else {
    context.Touched(key);
  }
  context.Notify(kNotifyZset, event, key);
  if (empty) context.Notify(kNotifyGeneric, "del", key);
}

void AddToSortedSet(Context& context, std::string_view key, const ZaddOptions& options,
                    const std::vector<ScoredMember>& members) {
  protocol::Reply& reply = context.reply();
  SortedSet* set = nullptr;
  if (!FindObject(context, key, Access::kWrite, &set)) return;
  if (set == nullptr && options.add.only_existing) {
    return options.add.increment ? reply.Null() : reply.Int(0);
  }
  const types::CollectionLimits& limits = context.collection_limits();
  std::unique_ptr<SortedSet> fresh;
  if (set == nullptr) {
    fresh = std::make_unique<SortedSet>();
    set = fresh.get();
  }
  set->Expect(members.size(), fresh != nullptr ? members.front().member.size() : 0, limits);
  int64_t added = 0;
  int64_t updated = 0;
  bool nan = false;
  SortedSet::AddResult last;
  for (const ScoredMember& item : members) {
    last = set->Add(item.member, item.score, options.add, limits);
    nan = last.nan;
    if (nan) break;
    added += last.added ? 1 : 0;
    updated += last.updated ? 1 : 0;
  }
  if (nan) {
    reply.Error("ERR resulting score is not a number (NaN)");
  } else if (!options.add.increment) {
    reply.Int(options.reply_changed ? added + updated : added);
  } else if (last.refused) {
    reply.Null();
  } else {
    ReplyScore(reply, last.score);
  }
  if (added + updated == 0) return;
  if (fresh != nullptr) {
    context.SetObject(key, std::move(fresh));
  } else {
    context.Touched(key);
  }
  context.Changed(added + updated);
  context.Notify(kNotifyZset, options.add.increment ? "zincr" : "zadd", key);
}

namespace {

// ---- changing ----

// The words before the first score. Returns where that stands.
size_t ZaddWords(Context& context, ZaddOptions* options) {
  size_t i = 2;
  for (; i < context.argc(); ++i) {
    if (context.ArgIs(i, "NX")) {
      options->add.only_new = true;
    } else if (context.ArgIs(i, "XX")) {
      options->add.only_existing = true;
    } else if (context.ArgIs(i, "CH")) {
      options->reply_changed = true;
    } else if (context.ArgIs(i, "INCR")) {
      options->add.increment = true;
    } else if (context.ArgIs(i, "GT")) {
      options->add.only_greater = true;
    } else if (context.ArgIs(i, "LT")) {
      options->add.only_less = true;
    } else {
      break;
    }
  }
  return i;
}

void Zadd(Context& context) {
  ZaddOptions options;
  const size_t from = ZaddWords(context, &options);
  const size_t words = context.argc() - from;
  if (words % 2 != 0 || words == 0) return context.Error(errors::kSyntax);
  const SortedSet::AddOptions& add = options.add;
  if (add.only_new && add.only_existing) {
    return context.Error("ERR XX and NX options at the same time are not compatible");
  }
  if ((add.only_greater && add.only_new) || (add.only_less && add.only_new) ||
      (add.only_greater && add.only_less)) {
    return context.Error("ERR GT, LT, and/or NX options at the same time are not compatible");
  }
  if (add.increment && words > 2) {
    return context.Error("ERR INCR option supports a single increment-element pair");
  }
  std::vector<ScoredMember> members(words / 2);
  for (size_t i = 0; i < members.size(); ++i) {
    members[i].member = context.arg(from + i * 2 + 1);
    if (!ScoreArg(context, from + i * 2, &members[i].score)) return;
  }
  AddToSortedSet(context, context.arg(1), options, members);
}

void Zincrby(Context& context) {
  ZaddOptions options;
  options.add.increment = true;
  std::vector<ScoredMember> members(1);
  members[0].member = context.arg(3);
  if (!ScoreArg(context, 2, &members[0].score)) return;
  AddToSortedSet(context, context.arg(1), options, members);
}

void Zrem(Context& context) {
  SortedSet* set = nullptr;
  if (!FindObject(context, context.arg(1), Access::kWrite, &set)) return;
  size_t removed = 0;
  for (size_t i = 2; set != nullptr && i < context.argc() && set->size() > 0; ++i) {
    if (set->Remove(context.arg(i))) ++removed;
  }
  context.reply().Int(static_cast<int64_t>(removed));
  if (set != nullptr) FinishRemoval(context, context.arg(1), *set, removed, "zrem");
}

// ---- reading ----

void Zcard(Context& context) {
  SortedSet* set = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &set)) return;
  context.reply().Int(set == nullptr ? 0 : static_cast<int64_t>(set->size()));
}

void ReplyScoreOf(Context& context, const SortedSet* set, std::string_view member) {
  const std::optional<double> score = set == nullptr ? std::nullopt : set->Score(member);
  score ? ReplyScore(context.reply(), *score) : context.reply().Null();
}

void Zscore(Context& context) {
  SortedSet* set = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &set)) return;
  ReplyScoreOf(context, set, context.arg(2));
}

void Zmscore(Context& context) {
  SortedSet* set = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &set)) return;
  context.reply().Array(static_cast<int64_t>(context.argc() - 2));
  for (size_t i = 2; i < context.argc(); ++i) ReplyScoreOf(context, set, context.arg(i));
}

void RankGeneric(Context& context, bool reverse) {
  if (context.argc() > 4) return context.ArityError();
  const bool with_score = context.argc() == 4;
  if (with_score && !context.ArgIs(3, "WITHSCORE")) return context.Error(errors::kSyntax);
  SortedSet* set = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &set)) return;
  protocol::Reply& reply = context.reply();
  double score = 0;
  const std::optional<size_t> rank =
      set == nullptr ? std::nullopt : set->Rank(context.arg(2), &score);
  if (!rank) return with_score ? reply.NullArray() : reply.Null();
  if (with_score) reply.Array(2);
  reply.Int(static_cast<int64_t>(reverse ? set->size() - 1 - *rank : *rank));
  if (with_score) ReplyScore(reply, score);
}

void Zrank(Context& context) { RankGeneric(context, false); }
void Zrevrank(Context& context) { RankGeneric(context, true); }

// ---- at random ----

void RandomWithRepetition(Context& context, const SortedSet& set, uint64_t count,
                          bool with_scores) {
  ReplyMembersHead(context.reply(), count, with_scores);
  for (; count > 0 && !context.reply().over(); --count) {
    const SortedSet::Iterator it = set.At(context.Random() % set.size());
    ReplyMember(context.reply(), it.member(), it.score(), with_scores);
  }
}

// `count` different members, in their order when they are a large part of all.
void RandomDifferent(Context& context, const SortedSet& set, size_t count, bool with_scores) {
  const size_t size = set.size();
  ReplyMembersHead(context.reply(), count, with_scores);
  if (count * 4 > size) {
    size_t left = size;
    for (SortedSet::Iterator it = set.At(0); count > 0; it.Next(), --left) {
      if (context.Random() % left >= count) continue;
      ReplyMember(context.reply(), it.member(), it.score(), with_scores);
      --count;
    }
    return;
  }
  std::unordered_set<uint64_t> chosen;
  while (chosen.size() < count) {
    const uint64_t rank = context.Random() % size;
    if (!chosen.insert(rank).second) continue;
    const SortedSet::Iterator it = set.At(rank);
    ReplyMember(context.reply(), it.member(), it.score(), with_scores);
  }
}

void Zrandmember(Context& context) {
  const bool counted = context.argc() >= 3;
  int64_t count = 1;
  bool with_scores = false;
  if (counted) {
    if (!context.IntArg(2, &count)) return;
    if (count == INT64_MIN) {
      return context.Error(errors::kNoAbsolute);
    }
    if (context.argc() > 4 || (context.argc() == 4 && !context.ArgIs(3, "WITHSCORES"))) {
      return context.Error(errors::kSyntax);
    }
    with_scores = context.argc() == 4;
    if (with_scores && (count < -INT64_MAX / 2 || count > INT64_MAX / 2)) {
      return context.Error(errors::kOutOfRange);
    }
  }
  SortedSet* set = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &set)) return;
  if (!counted) {
    if (set == nullptr) return context.reply().Null();
    return context.reply().Bulk(set->At(context.Random() % set->size()).member());
  }
  if (set == nullptr || count == 0) return context.reply().Array(0);
  if (count < 0) {
    return RandomWithRepetition(context, *set, static_cast<uint64_t>(-count), with_scores);
  }
  RandomDifferent(context, *set, std::min<size_t>(static_cast<uint64_t>(count), set->size()),
                  with_scores);
}

// ---- ZSCAN ----

bool ParseZscanCursor(std::string_view text, uint64_t* cursor) {
  if (!text.empty() && isspace(static_cast<unsigned char>(text[0])) != 0) return false;
  const std::string copy(text);
  char* end = nullptr;
  errno = 0;
  *cursor = strtoull(copy.c_str(), &end, 10);
  return *end == '\0' && errno != ERANGE;
}

// A score in ZSCAN's reply: 17 digits once Redis would keep it in a skip list.
std::string ZscanScore(const SortedSet& set, double score) {
  if (set.encoding() == "listpack" || std::isinf(score)) return types::ScoreText(score);
  char text[64];
  const int size = snprintf(text, sizeof text, "%.17Lg", static_cast<long double>(score));
  return std::string(text, static_cast<size_t>(size));
}

void Zscan(Context& context) {
  uint64_t cursor = 0;
  if (!ParseZscanCursor(context.arg(2), &cursor)) return context.Error(errors::kBadCursor);
  SortedSet* set = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &set)) return;
  protocol::Reply& reply = context.reply();
  if (set == nullptr) {
    reply.Array(2);
    reply.Bulk("0");
    return reply.Array(0);
  }
  int64_t count = 10;
  std::optional<std::string_view> pattern;
  for (size_t i = 3; i < context.argc(); i += 2) {
    const bool has_value = i + 1 < context.argc();
    if (has_value && context.ArgIs(i, "COUNT")) {
      if (!context.IntArg(i + 1, &count)) return;
      if (count < 1) return context.Error(errors::kSyntax);
    } else if (has_value && context.ArgIs(i, "MATCH")) {
      pattern = context.arg(i + 1);
      if (*pattern == "*") pattern.reset();
    } else {
      return context.Error(errors::kSyntax);
    }
  }
  reply.Array(2);
  const size_t mark = reply.Mark();
  int64_t found = 0;
  const uint64_t next =
      set->Scan(cursor, static_cast<size_t>(count), [&](std::string_view member, double score) {
        if (pattern.has_value() && !base::GlobMatch(*pattern, member)) return;
        reply.Bulk(member);
        reply.Bulk(ZscanScore(*set, score));
        ++found;
      });
  // The cursor goes before the members, and is known only now.
  reply.ArrayAt(mark, found * 2);
  char digits[24];
  const size_t size = base::FormatUint(next, digits);
  std::string head = "$" + base::IntText(static_cast<int64_t>(size)) + "\r\n";
  head.append(digits, size).append("\r\n");
  reply.out().InsertAt(mark, head);
}

// ---- rows ----

constexpr KeySpec kZsetReadKey = KeyAt(1, kKeyRo | kKeyAccess);

const CommandSpec kMemberRows[] = {
    {.name = "zadd",
     .handler = Zadd,
     .arity = -4,
     .flags = kWrite | kDenyOom | kFast,
     .acl = kAclSortedSet,
     .keys = {KeyAt(1, kKeyRw | kKeyUpdate)},
     .group = "sorted-set",
     .since = "1.2.0",
     .summary = "Adds members with scores, or gives members other scores.",
     .complexity = "O(log(N)) for each member, N being the size of the sorted set",
     .arguments = "key [condition: NX | XX] [comparison: GT | LT] [CH] [INCR] "
                  "(score:double member:string) [(score:double member:string) ...]",
     .reply = "how many members are new, with CH also how many changed; with INCR the new score, "
              "or null",
     .example = "ZADD board 10 ana 20 bob"},
    {.name = "zincrby",
     .handler = Zincrby,
     .arity = 4,
     .flags = kWrite | kDenyOom | kFast,
     .acl = kAclSortedSet,
     .keys = {KeyAt(1, kKeyRw | kKeyAccess | kKeyUpdate)},
     .group = "sorted-set",
     .since = "1.2.0",
     .summary = "Adds to the score of a member.",
     .complexity = "O(log(N)) where N is the size of the sorted set",
     .arguments = "key increment:integer member:string",
     .reply = "the new score",
     .example = "ZINCRBY board 2 ana"},
    {.name = "zrem",
     .handler = Zrem,
     .arity = -3,
     .flags = kWrite | kFast,
     .acl = kAclSortedSet,
     .keys = {KeyAt(1, kKeyRw | kKeyDelete)},
     .group = "sorted-set",
     .since = "1.2.0",
     .summary = "Removes members.",
     .complexity = "O(M*log(N)) for M members given, N being the size of the sorted set",
     .arguments = "key member:string [member:string ...]",
     .reply = "how many were removed",
     .example = "ZREM board ana"},
    {.name = "zcard",
     .handler = Zcard,
     .arity = 2,
     .flags = kReadonly | kFast,
     .acl = kAclSortedSet,
     .keys = {KeyAt(1, kKeyRo)},
     .group = "sorted-set",
     .since = "1.2.0",
     .summary = "Counts the members.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "integer",
     .example = "ZCARD board"},
    {.name = "zscore",
     .handler = Zscore,
     .arity = 3,
     .flags = kReadonly | kFast,
     .acl = kAclSortedSet,
     .keys = {kZsetReadKey},
     .group = "sorted-set",
     .since = "1.2.0",
     .summary = "Gets the score of a member.",
     .complexity = "O(1)",
     .arguments = "key member:string",
     .reply = "the score, or null",
     .example = "ZSCORE board ana"},
    {.name = "zmscore",
     .handler = Zmscore,
     .arity = -3,
     .flags = kReadonly | kFast,
     .acl = kAclSortedSet,
     .keys = {kZsetReadKey},
     .group = "sorted-set",
     .since = "6.2.0",
     .summary = "Gets the scores of members.",
     .complexity = "O(N) where N is the number of members given",
     .arguments = "key member:string [member:string ...]",
     .reply = "array of scores and nulls",
     .example = "ZMSCORE board ana bob"},
    {.name = "zrank",
     .handler = Zrank,
     .arity = -3,
     .flags = kReadonly | kFast,
     .acl = kAclSortedSet,
     .keys = {kZsetReadKey},
     .group = "sorted-set",
     .since = "2.0.0",
     .summary = "Tells how many members stand before this one, counted from the lowest score.",
     .complexity = "O(log(N))",
     .arguments = "key member:string [WITHSCORE]",
     .reply = "the rank or null; with WITHSCORE an array of rank and score",
     .example = "ZRANK board ana WITHSCORE"},
    {.name = "zrevrank",
     .handler = Zrevrank,
     .arity = -3,
     .flags = kReadonly | kFast,
     .acl = kAclSortedSet,
     .keys = {kZsetReadKey},
     .group = "sorted-set",
     .since = "2.0.0",
     .summary = "Tells how many members stand before this one, counted from the highest score.",
     .complexity = "O(log(N))",
     .arguments = "key member:string [WITHSCORE]",
     .reply = "the rank or null; with WITHSCORE an array of rank and score",
     .example = "ZREVRANK board ana"},
    {.name = "zrandmember",
     .handler = Zrandmember,
     .arity = -2,
     .flags = kReadonly,
     .acl = kAclSortedSet,
     .keys = {kZsetReadKey},
     .group = "sorted-set",
     .since = "6.2.0",
     .summary = "Picks members at random.",
     .complexity = "O(N) where N is the number of members picked",
     .arguments = "key [options: count:integer [WITHSCORES]]",
     .reply = "a member or null; with count an array, which may repeat members when it is negative",
     .example = "ZRANDMEMBER board 2 WITHSCORES",
     .tips = "nondeterministic_output"},
    {.name = "zscan",
     .handler = Zscan,
     .arity = -3,
     .flags = kReadonly,
     .acl = kAclSortedSet,
     .keys = {kZsetReadKey},
     .group = "sorted-set",
     .since = "2.8.0",
     .summary = "Walks over the members in small steps.",
     .complexity = "O(1) for each call, O(N) for the whole walk over N members",
     .arguments = "key cursor:integer [MATCH pattern] [COUNT count:integer]",
     .reply = "array: the cursor for the next call (0: the walk is over), and members with scores",
     .example = "ZSCAN board 0 COUNT 100",
     .tips = "nondeterministic_output"},
};

}  // namespace

std::span<const CommandSpec> SortedSetCommands() { return kMemberRows; }

}  // namespace sava::commands
