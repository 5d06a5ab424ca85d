// Sorted sets by rank, score and member: ZRANGE with all its forms and the older commands, ZCOUNT
// ZLEXCOUNT ZRANGESTORE ZREMRANGEBY*. Every range becomes a range of ranks first.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <optional>
#include <string>

#include "base/text.h"
#include "commands/redis/families.h"
#include "commands/redis/sorted_sets.h"
#include "commands/registry.h"

namespace sava::commands {

namespace {

using types::SortedSet;

constexpr std::string_view kBadScores = "ERR min or max is not a float";
constexpr std::string_view kBadMembers = "ERR min or max not valid string range item";

enum class RangeBy : uint8_t { kAuto, kRank, kScore, kMember };
enum class Direction : uint8_t { kAuto, kForward, kReverse };

// Ranks [from, to).
struct Ranks {
  size_t from = 0;
  size_t to = 0;
  size_t size() const { return to - from; }
};

// ---- what a range is given by ----

struct ScoreBound {
  double score = 0;
  bool exclusive = false;
};

// As the C library reads a number up to the first NUL; nothing at all is 0.
bool ParseScoreBound(std::string_view text, ScoreBound* bound) {
  if (!text.empty() && text[0] == '(') {
    bound->exclusive = true;
    text.remove_prefix(1);
  }
  const char* const text_end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), text_end, bound->score);
  if (read.ec == std::errc() && read.ptr == text_end) return !std::isnan(bound->score);
  const std::string copy(text);
  char* end = nullptr;
  bound->score = strtod(copy.c_str(), &end);
  return *end == '\0' && !std::isnan(bound->score);
}

struct MemberBound {
  enum class Kind : uint8_t { kLowest, kHighest, kMember } kind = Kind::kMember;
  std::string_view member;
  bool exclusive = false;
};

bool ParseMemberBound(std::string_view text, MemberBound* bound) {
  if (text.empty()) return false;
  switch (text[0]) {
    case '-':
      bound->kind = MemberBound::Kind::kLowest;
      return text.size() == 1;
    case '+':
      bound->kind = MemberBound::Kind::kHighest;
      return text.size() == 1;
    case '(':
    case '[':
      bound->exclusive = text[0] == '(';
      bound->member = text.substr(1);
      return true;
    default:
      return false;
  }
}

// How many members stand before a bound, from below or from above.
size_t RankOfBound(const SortedSet& set, const MemberBound& bound, bool from_above) {
  if (bound.kind == MemberBound::Kind::kLowest) return 0;
  if (bound.kind == MemberBound::Kind::kHighest) return set.size();
  return set.CountMembersBelow(bound.member, bound.exclusive != from_above);
}

// A range as it was asked for; the bounds of its kind are set.
struct RangeRequest {
  RangeBy by = RangeBy::kRank;
  int64_t first = 0;
  int64_t last = 0;
  ScoreBound low;
  ScoreBound high;
  MemberBound lowest;
  MemberBound highest;

  // Counted from the other end with `reverse`, for ranks.
  Ranks In(const SortedSet& set, bool reverse) const;
};

Ranks RangeRequest::In(const SortedSet& set, bool reverse) const {
  Ranks ranks;
  if (by == RangeBy::kScore) {
    // Bounds that exclude each other leave nothing, also where both are the same score.
    ranks.from = set.CountBelow(low.score, low.exclusive);
    ranks.to = set.CountBelow(high.score, !high.exclusive);
  } else if (by == RangeBy::kMember) {
    ranks.from = RankOfBound(set, lowest, false);
    ranks.to = RankOfBound(set, highest, true);
  } else {
    const auto size = static_cast<int64_t>(set.size());
    int64_t start = first < 0 ? std::max<int64_t>(first + size, 0) : first;
    const int64_t end = std::min(last < 0 ? last + size : last, size - 1);
    if (start > end || start >= size) return {};
    ranks.from = static_cast<size_t>(start);
    ranks.to = static_cast<size_t>(end) + 1;
    if (reverse) ranks = {set.size() - ranks.to, set.size() - ranks.from};
  }
  if (ranks.to < ranks.from) ranks.to = ranks.from;
  return ranks;
}

// Reads the bounds from arguments `low` and `high`; replies the error and returns false when they
// are none.
bool ParseBounds(Context& context, RangeBy by, size_t low, size_t high, RangeRequest* range) {
  range->by = by;
  switch (by) {
    case RangeBy::kScore:
      if (ParseScoreBound(context.arg(low), &range->low) &&
          ParseScoreBound(context.arg(high), &range->high)) {
        return true;
      }
      context.Error(kBadScores);
      return false;
    case RangeBy::kMember:
      if (ParseMemberBound(context.arg(low), &range->lowest) &&
          ParseMemberBound(context.arg(high), &range->highest)) {
        return true;
      }
      context.Error(kBadMembers);
      return false;
    default:
      return context.IntArg(low, &range->first) && context.IntArg(high, &range->last);
  }
}

// Members are in order only among equal scores. Which ones a range of members takes otherwise
// depends on how the set is kept, so the log has the ranks instead.
bool LoggedByRank(const SortedSet& set, RangeBy by) {
  return by == RangeBy::kMember && set.At(0).score() != set.At(set.size() - 1).score();
}

// Logs `words first last`, the ranks being first and last of those taken.
void LogRanks(Context& context, std::vector<std::string_view> words, const Ranks& ranks) {
  const std::string first = base::IntText(static_cast<int64_t>(ranks.from));
  const std::string last = base::IntText(static_cast<int64_t>(ranks.to) - 1);
  words.insert(words.end(), {first, last});
  context.Effect(Args(words));
}

// ---- ZRANGE and its family ----

struct RangeOptions {
  RangeBy by = RangeBy::kAuto;
  Direction direction = Direction::kAuto;
  bool with_scores = false;
  int64_t offset = 0;
  int64_t limit = -1;
};

bool ParseRangeWords(Context& context, size_t from, bool store, RangeOptions* options) {
  for (size_t i = from; i < context.argc(); ++i) {
    if (!store && context.ArgIs(i, "WITHSCORES")) {
      options->with_scores = true;
    } else if (context.ArgIs(i, "LIMIT") && i + 2 < context.argc()) {
      if (!context.IntArg(i + 1, &options->offset) || !context.IntArg(i + 2, &options->limit)) {
        return false;
      }
      i += 2;
    } else if (options->direction == Direction::kAuto && context.ArgIs(i, "REV")) {
      options->direction = Direction::kReverse;
    } else if (options->by == RangeBy::kAuto && context.ArgIs(i, "BYLEX")) {
      options->by = RangeBy::kMember;
    } else if (options->by == RangeBy::kAuto && context.ArgIs(i, "BYSCORE")) {
      options->by = RangeBy::kScore;
    } else {
      context.Error(errors::kSyntax);
      return false;
    }
  }
  if (options->direction == Direction::kAuto) options->direction = Direction::kForward;
  if (options->by == RangeBy::kAuto) options->by = RangeBy::kRank;
  if (options->limit != -1 && options->by == RangeBy::kRank) {
    context.Error(
        "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
    return false;
  }
  if (options->with_scores && options->by == RangeBy::kMember) {
    context.Error("ERR syntax error, WITHSCORES not supported in combination with BYLEX");
    return false;
  }
  return true;
}

// What LIMIT leaves of the ranks, seen from the end where the reply begins.
Ranks Limited(Ranks ranks, const RangeOptions& options, bool reverse) {
  if (options.offset < 0) return {};
  const size_t skip = std::min<size_t>(static_cast<uint64_t>(options.offset), ranks.size());
  size_t count = ranks.size() - skip;
  if (options.limit >= 0) count = std::min<size_t>(count, static_cast<uint64_t>(options.limit));
  const size_t from = reverse ? ranks.to - skip - count : ranks.from + skip;
  return {from, from + count};
}

// Calls visit(member, score) for the ranks in order.
template <typename Visit>
void Walk(const SortedSet& set, const Ranks& ranks, bool reverse, const Visit& visit) {
  if (ranks.size() == 0) return;
  SortedSet::Iterator it = set.At(reverse ? ranks.to - 1 : ranks.from);
  for (size_t left = ranks.size(); left > 0; --left) {
    visit(it.member(), it.score());
    reverse ? it.Previous() : it.Next();
  }
}

// key stands at argument `key`, the bounds behind it; with `store` the destination before it.
void RangeGeneric(Context& context, size_t key, bool store, RangeOptions options) {
  if (!ParseRangeWords(context, key + 3, store, &options)) return;
  const bool reverse = options.direction == Direction::kReverse;
  const bool swapped = reverse && options.by != RangeBy::kRank;
  RangeRequest range;
  if (!ParseBounds(context, options.by, key + (swapped ? 2 : 1), key + (swapped ? 1 : 2), &range)) {
    return;
  }
  SortedSet* set = nullptr;
  if (!FindObject(context, context.arg(key), Access::kRead, &set)) return;
  Ranks ranks;
  if (set != nullptr) ranks = Limited(range.In(*set, reverse), options, reverse);
  if (store) {
    std::deque<std::string> texts;
    std::vector<ScoredMember> members;
    members.reserve(ranks.size());
    if (set != nullptr) {
      if (ranks.size() > 0 && LoggedByRank(*set, options.by)) {
        LogRanks(context, {"ZRANGESTORE", context.arg(1), context.arg(2)}, ranks);
      }
      Walk(*set, ranks, false, [&](std::string_view member, double score) {
        members.push_back({texts.emplace_back(member), score});
      });
    }
    return StoreSortedSet(context, context.arg(1), members, "zrangestore");
  }
  protocol::Reply& reply = context.reply();
  ReplyMembersHead(reply, ranks.size(), options.with_scores);
  if (set == nullptr) return;
  Walk(*set, ranks, reverse, [&](std::string_view member, double score) {
    ReplyMember(reply, member, score, options.with_scores);
  });
}

void Zrange(Context& context) { RangeGeneric(context, 1, false, {}); }
void Zrangestore(Context& context) { RangeGeneric(context, 2, true, {}); }
void Zrevrange(Context& context) {
  RangeGeneric(context, 1, false, {.by = RangeBy::kRank, .direction = Direction::kReverse});
}
void Zrangebyscore(Context& context) {
  RangeGeneric(context, 1, false, {.by = RangeBy::kScore, .direction = Direction::kForward});
}
void Zrevrangebyscore(Context& context) {
  RangeGeneric(context, 1, false, {.by = RangeBy::kScore, .direction = Direction::kReverse});
}
void Zrangebylex(Context& context) {
  RangeGeneric(context, 1, false, {.by = RangeBy::kMember, .direction = Direction::kForward});
}
void Zrevrangebylex(Context& context) {
  RangeGeneric(context, 1, false, {.by = RangeBy::kMember, .direction = Direction::kReverse});
}

// ---- counting and removing ----

void CountGeneric(Context& context, RangeBy by) {
  RangeRequest range;
  if (!ParseBounds(context, by, 2, 3, &range)) return;
  SortedSet* set = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &set)) return;
  context.reply().Int(set == nullptr ? 0 : static_cast<int64_t>(range.In(*set, false).size()));
}

void Zcount(Context& context) { CountGeneric(context, RangeBy::kScore); }
void Zlexcount(Context& context) { CountGeneric(context, RangeBy::kMember); }

void RemoveGeneric(Context& context, RangeBy by, std::string_view event) {
  RangeRequest range;
  if (!ParseBounds(context, by, 2, 3, &range)) return;
  SortedSet* set = nullptr;
  if (!FindObject(context, context.arg(1), Access::kWrite, &set)) return;
  if (set == nullptr) return context.reply().Int(0);
  const Ranks ranks = range.In(*set, false);
  if (ranks.size() > 0 && LoggedByRank(*set, by)) {
    LogRanks(context, {"ZREMRANGEBYRANK", context.arg(1)}, ranks);
  }
  set->RemoveRanks(ranks.from, ranks.to);
  context.reply().Int(static_cast<int64_t>(ranks.size()));
  FinishRemoval(context, context.arg(1), *set, ranks.size(), event);
}

void Zremrangebyrank(Context& context) {
  RemoveGeneric(context, RangeBy::kRank, "zremrangebyrank");
}
void Zremrangebyscore(Context& context) {
  RemoveGeneric(context, RangeBy::kScore, "zremrangebyscore");
}
void Zremrangebylex(Context& context) {
  RemoveGeneric(context, RangeBy::kMember, "zremrangebylex");
}

// ---- rows ----

constexpr KeySpec kRangeKey = KeyAt(1, kKeyRo | kKeyAccess);
constexpr KeySpec kRemoveKey = KeyAt(1, kKeyRw | kKeyDelete);
constexpr std::string_view kRangeCost =
    "O(log(N)+M) with N being the size of the sorted set and M the number of members returned";
constexpr std::string_view kRemoveCost =
    "O(log(N)+M) with N being the size of the sorted set and M the number of members removed";
constexpr std::string_view kRangeReply =
    "array of members; with WITHSCORES each followed by its score (RESP2) or in pairs (RESP3)";

const CommandSpec kRangeRows[] = {
    {.name = "zrange",
     .handler = Zrange,
     .arity = -4,
     .flags = kReadonly,
     .acl = kAclSortedSet,
     .keys = {kRangeKey},
     .group = "sorted-set",
     .since = "1.2.0",
     .summary = "Gets the members of a range of ranks, scores or names.",
     .complexity = kRangeCost,
     .arguments = "key start:string stop:string [sortby: BYSCORE | BYLEX] [REV] "
                  "[LIMIT offset:integer count:integer] [WITHSCORES]",
     .reply = kRangeReply,
     .example = "ZRANGE board 0 -1 WITHSCORES"},
    {.name = "zrangestore",
     .handler = Zrangestore,
     .arity = -5,
     .flags = kWrite | kDenyOom,
     .acl = kAclSortedSet,
     .keys = {KeyAt(1, kKeyOw | kKeyUpdate), KeyAt(2, kKeyRo | kKeyAccess)},
     .group = "sorted-set",
     .since = "6.2.0",
     .summary = "Stores the members of a range of ranks, scores or names in another key.",
     .complexity =
         "O(log(N)+M) with N being the size of the sorted set and M the number of members "
         "stored",
     .arguments = "dst:key src:key min:string max:string [sortby: BYSCORE | BYLEX] [REV] "
                  "[LIMIT offset:integer count:integer]",
     .reply = "how many members were stored",
     .example = "ZRANGESTORE best board 0 9 REV"},
    {.name = "zrevrange",
     .handler = Zrevrange,
     .arity = -4,
     .flags = kReadonly,
     .acl = kAclSortedSet,
     .keys = {kRangeKey},
     .group = "sorted-set",
     .since = "1.2.0",
     .summary = "Gets the members of a range of ranks, the highest score first.",
     .complexity = kRangeCost,
     .arguments = "key start:integer stop:integer [WITHSCORES]",
     .reply = kRangeReply,
     .example = "ZREVRANGE board 0 9",
     .deprecated_since = "6.2.0",
     .replaced_by = "`ZRANGE` with the `REV` argument"},
    {.name = "zrangebyscore",
     .handler = Zrangebyscore,
     .arity = -4,
     .flags = kReadonly,
     .acl = kAclSortedSet,
     .keys = {kRangeKey},
     .group = "sorted-set",
     .since = "1.0.5",
     .summary = "Gets the members of a range of scores.",
     .complexity = kRangeCost,
     .arguments = "key min:double max:double [WITHSCORES] [LIMIT offset:integer count:integer]",
     .reply = kRangeReply,
     .example = "ZRANGEBYSCORE board (10 +inf LIMIT 0 5",
     .deprecated_since = "6.2.0",
     .replaced_by = "`ZRANGE` with the `BYSCORE` argument"},
    {.name = "zrevrangebyscore",
     .handler = Zrevrangebyscore,
     .arity = -4,
     .flags = kReadonly,
     .acl = kAclSortedSet,
     .keys = {kRangeKey},
     .group = "sorted-set",
     .since = "2.2.0",
     .summary = "Gets the members of a range of scores, the highest first.",
     .complexity = kRangeCost,
     .arguments = "key max:double min:double [WITHSCORES] [LIMIT offset:integer count:integer]",
     .reply = kRangeReply,
     .example = "ZREVRANGEBYSCORE board +inf 10",
     .deprecated_since = "6.2.0",
     .replaced_by = "`ZRANGE` with the `REV` and `BYSCORE` arguments"},
    {.name = "zrangebylex",
     .handler = Zrangebylex,
     .arity = -4,
     .flags = kReadonly,
     .acl = kAclSortedSet,
     .keys = {kRangeKey},
     .group = "sorted-set",
     .since = "2.8.9",
     .summary = "Gets the members of a range of names, where all scores are equal.",
     .complexity = kRangeCost,
     .arguments = "key min:string max:string [LIMIT offset:integer count:integer]",
     .reply = "array of members",
     .example = "ZRANGEBYLEX names [a (b",
     .deprecated_since = "6.2.0",
     .replaced_by = "`ZRANGE` with the `BYLEX` argument"},
    {.name = "zrevrangebylex",
     .handler = Zrevrangebylex,
     .arity = -4,
     .flags = kReadonly,
     .acl = kAclSortedSet,
     .keys = {kRangeKey},
     .group = "sorted-set",
     .since = "2.8.9",
     .summary = "Gets the members of a range of names backwards, where all scores are equal.",
     .complexity = kRangeCost,
     .arguments = "key max:string min:string [LIMIT offset:integer count:integer]",
     .reply = "array of members",
     .example = "ZREVRANGEBYLEX names + [a",
     .deprecated_since = "6.2.0",
     .replaced_by = "`ZRANGE` with the `REV` and `BYLEX` arguments"},
    {.name = "zcount",
     .handler = Zcount,
     .arity = 4,
     .flags = kReadonly | kFast,
     .acl = kAclSortedSet,
     .keys = {kRangeKey},
     .group = "sorted-set",
     .since = "2.0.0",
     .summary = "Counts the members of a range of scores.",
     .complexity = "O(log(N)) with N being the size of the sorted set",
     .arguments = "key min:double max:double",
     .reply = "integer",
     .example = "ZCOUNT board (10 20"},
    {.name = "zlexcount",
     .handler = Zlexcount,
     .arity = 4,
     .flags = kReadonly | kFast,
     .acl = kAclSortedSet,
     .keys = {kRangeKey},
     .group = "sorted-set",
     .since = "2.8.9",
     .summary = "Counts the members of a range of names, where all scores are equal.",
     .complexity = "O(log(N)) with N being the size of the sorted set",
     .arguments = "key min:string max:string",
     .reply = "integer",
     .example = "ZLEXCOUNT names - +"},
    {.name = "zremrangebyrank",
     .handler = Zremrangebyrank,
     .arity = 4,
     .flags = kWrite,
     .acl = kAclSortedSet,
     .keys = {kRemoveKey},
     .group = "sorted-set",
     .since = "2.0.0",
     .summary = "Removes the members of a range of ranks.",
     .complexity = kRemoveCost,
     .arguments = "key start:integer stop:integer",
     .reply = "how many were removed",
     .example = "ZREMRANGEBYRANK board 0 -11"},
    {.name = "zremrangebyscore",
     .handler = Zremrangebyscore,
     .arity = 4,
     .flags = kWrite,
     .acl = kAclSortedSet,
     .keys = {kRemoveKey},
     .group = "sorted-set",
     .since = "1.2.0",
     .summary = "Removes the members of a range of scores.",
     .complexity = kRemoveCost,
     .arguments = "key min:double max:double",
     .reply = "how many were removed",
     .example = "ZREMRANGEBYSCORE board -inf (10"},
    {.name = "zremrangebylex",
     .handler = Zremrangebylex,
     .arity = 4,
     .flags = kWrite,
     .acl = kAclSortedSet,
     .keys = {kRemoveKey},
     .group = "sorted-set",
     .since = "2.8.9",
     .summary = "Removes the members of a range of names, where all scores are equal.",
     .complexity = kRemoveCost,
     .arguments = "key min:string max:string",
     .reply = "how many were removed",
     .example = "ZREMRANGEBYLEX names [a (b"},
};

}  // namespace

std::span<const CommandSpec> SortedSetRangeCommands() { return kRangeRows; }

}  // namespace sava::commands
