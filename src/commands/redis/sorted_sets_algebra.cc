// Unions, intersections and differences: ZUNION ZINTER ZDIFF, their STORE forms and ZINTERCARD.
// Plain sets may take part: their members count as having the score 1.
#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <string>
#include <unordered_map>

#include "base/text.h"
#include "commands/redis/families.h"
#include "commands/redis/sorted_sets.h"
#include "commands/registry.h"
#include "types/collections/set.h"

namespace sava::commands {

namespace {

using types::Set;
using types::SortedSet;

enum class SetOp : uint8_t { kUnion, kInter, kDiff };
enum class Aggregate : uint8_t { kSum, kMin, kMax };

// One of the keys.
struct Source {
  const SortedSet* scored = nullptr;
  const Set* plain = nullptr;
  double weight = 1;

  size_t size() const {
    if (scored != nullptr) return scored->size();
    return plain != nullptr ? plain->size() : 0;
  }
  std::optional<double> Score(std::string_view member) const {
    if (scored != nullptr) return scored->Score(member);
    if (plain != nullptr && plain->Contains(member)) return 1.0;
    return std::nullopt;
  }
  // visit(member, score) -> bool, until it says false.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    if (scored != nullptr) {
      for (SortedSet::Iterator it = scored->At(0); it; it.Next()) {
        if (!visit(it.member(), it.score())) return;
      }
    } else if (plain != nullptr) {
      bool on = true;
      plain->ForEach([&](std::string_view member) { on = on && visit(member, 1.0); });
    }
  }
};

struct AlgebraRequest {
  SetOp op = SetOp::kUnion;
  std::vector<Source> sources;
  Aggregate aggregate = Aggregate::kSum;
  bool with_scores = false;
  uint64_t limit = 0;  // of ZINTERCARD; 0: none
};

double Weighted(double weight, double score) {
  const double value = weight * score;
  return std::isnan(value) ? 0 : value;
}

void AddTo(double* total, double value, Aggregate aggregate) {
  switch (aggregate) {
    case Aggregate::kSum:
      *total += value;
      // inf and -inf
      if (std::isnan(*total)) *total = 0;
      break;
    case Aggregate::kMin:
      *total = value < *total ? value : *total;
      break;
    case Aggregate::kMax:
      *total = value > *total ? value : *total;
      break;
  }
}

// What came out, with the members' texts.
struct AlgebraResult {
  std::deque<std::string> texts;
  std::vector<ScoredMember> members;

  ScoredMember& Add(std::string_view member, double score) {
    texts.emplace_back(member);
    return members.emplace_back(ScoredMember{texts.back(), score});
  }
  void Sort() {
    std::sort(members.begin(), members.end(), [](const ScoredMember& a, const ScoredMember& b) {
      return a.score != b.score ? a.score < b.score : a.member < b.member;
    });
  }
};

void Unite(const AlgebraRequest& request, AlgebraResult* result) {
  std::unordered_map<std::string_view, size_t> places;
  for (const Source& source : request.sources) {
    source.ForEach([&](std::string_view member, double score) {
      const double value = Weighted(source.weight, score);
      const auto found = places.find(member);
      if (found != places.end()) {
        AddTo(&result->members[found->second].score, value, request.aggregate);
      } else {
        const std::string_view kept = result->Add(member, value).member;
        places.emplace(kept, result->members.size() - 1);
      }
      return true;
    });
  }
}

// visit(member, score) -> bool for what is in all sources, until it says false.
template <typename Visit>
void Intersect(const AlgebraRequest& request, const Visit& visit) {
  const Source& first = request.sources.front();
  first.ForEach([&](std::string_view member, double score) {
    double total = Weighted(first.weight, score);
    for (size_t i = 1; i < request.sources.size(); ++i) {
      const Source& other = request.sources[i];
      const std::optional<double> there = other.Score(member);
      if (!there) return true;
      AddTo(&total, other.weight * *there, request.aggregate);
    }
    return visit(member, total);
  });
}

void Subtract(const AlgebraRequest& request, AlgebraResult* result) {
  request.sources.front().ForEach([&](std::string_view member, double score) {
    const bool elsewhere =
        std::any_of(request.sources.begin() + 1, request.sources.end(),
                    [&](const Source& other) { return other.Score(member).has_value(); });
    if (!elsewhere) result->Add(member, score);
    return true;
  });
}

// ---- arguments ----

// The keys behind argument `numkeys`. Replies the error and returns false when something is wrong.
bool ParseSources(Context& context, size_t numkeys, AlgebraRequest* request) {
  int64_t count = 0;
  if (!context.IntArg(numkeys, &count)) return false;
  if (count < 1) {
    std::string text = "ERR at least 1 input key is needed for '";
    text += base::ToLower(context.arg(0));
    text += "' command";
    context.Error(text);
    return false;
  }
  if (static_cast<uint64_t>(count) > context.argc() - numkeys - 1) {
    context.Error(errors::kSyntax);
    return false;
  }
  for (size_t i = numkeys + 1; i <= numkeys + static_cast<size_t>(count); ++i) {
    Source source;
    const Value value = context.Find(context.arg(i), Access::kRead);
    source.scored = ObjectAs<SortedSet>(value);
    source.plain = ObjectAs<Set>(value);
    if (value && source.scored == nullptr && source.plain == nullptr) {
      context.Error(errors::kWrongType);
      return false;
    }
    request->sources.push_back(source);
  }
  return true;
}

// Which of the words behind the keys a command knows.
struct KnownWords {
  bool weights = true;  // and AGGREGATE
  bool with_scores = false;
  bool limit = false;
};

bool ParseAlgebraWords(Context& context, size_t from, const KnownWords& known,
                       AlgebraRequest* request) {
  const size_t sources = request->sources.size();
  for (size_t i = from; i < context.argc(); ++i) {
    const size_t behind = context.argc() - i - 1;
    if (known.weights && behind >= sources && context.ArgIs(i, "WEIGHTS")) {
      for (Source& source : request->sources) {
        if (!ScoreArg(context, ++i, &source.weight, "ERR weight value is not a float")) {
          return false;
        }
      }
    } else if (known.weights && behind >= 1 && context.ArgIs(i, "AGGREGATE")) {
      ++i;
      if (context.ArgIs(i, "SUM")) {
        request->aggregate = Aggregate::kSum;
      } else if (context.ArgIs(i, "MIN")) {
        request->aggregate = Aggregate::kMin;
      } else if (context.ArgIs(i, "MAX")) {
        request->aggregate = Aggregate::kMax;
      } else {
        context.Error(errors::kSyntax);
        return false;
      }
    } else if (known.with_scores && context.ArgIs(i, "WITHSCORES")) {
      request->with_scores = true;
    } else if (known.limit && behind >= 1 && context.ArgIs(i, "LIMIT")) {
      int64_t limit = 0;
      if (!context.IntArg(++i, &limit, errors::kNegativeLimit)) return false;
      if (limit < 0) {
        context.Error(errors::kNegativeLimit);
        return false;
      }
      request->limit = static_cast<uint64_t>(limit);
    } else {
      context.Error(errors::kSyntax);
      return false;
    }
  }
  return true;
}

// Small sources first: sums are made in this order, and intersections begin with the smallest.
void OrderSources(AlgebraRequest* request) {
  if (request->op == SetOp::kDiff) return;
  std::stable_sort(request->sources.begin(), request->sources.end(),
                   [](const Source& a, const Source& b) { return a.size() < b.size(); });
}

// The whole of a command but its reply; false when an error was replied.
bool Compute(Context& context, SetOp op, size_t numkeys, bool store, AlgebraResult* result,
             bool* with_scores) {
  AlgebraRequest request;
  request.op = op;
  if (!ParseSources(context, numkeys, &request)) return false;
  const KnownWords known{.weights = op != SetOp::kDiff, .with_scores = !store};
  if (!ParseAlgebraWords(context, numkeys + 1 + request.sources.size(), known, &request)) {
    return false;
  }
  OrderSources(&request);
  *with_scores = request.with_scores;
  switch (op) {
    case SetOp::kUnion:
      Unite(request, result);
      break;
    case SetOp::kInter:
      Intersect(request, [&](std::string_view member, double score) {
        result->Add(member, score);
        return true;
      });
      break;
    case SetOp::kDiff:
      Subtract(request, result);
      break;
  }
  result->Sort();
  return true;
}

// ---- commands ----

void ReplyAlgebra(Context& context, SetOp op) {
  AlgebraResult result;
  bool with_scores = false;
  if (!Compute(context, op, 1, false, &result, &with_scores)) return;
  ReplyMembersHead(context.reply(), result.members.size(), with_scores);
  for (const ScoredMember& item : result.members) {
    ReplyMember(context.reply(), item.member, item.score, with_scores);
  }
}

void StoreAlgebra(Context& context, SetOp op, std::string_view event) {
  AlgebraResult result;
  bool with_scores = false;
  if (!Compute(context, op, 2, true, &result, &with_scores)) return;
  StoreSortedSet(context, context.arg(1), result.members, event);
}

void Zunion(Context& context) { ReplyAlgebra(context, SetOp::kUnion); }
void Zinter(Context& context) { ReplyAlgebra(context, SetOp::kInter); }
void Zdiff(Context& context) { ReplyAlgebra(context, SetOp::kDiff); }
void Zunionstore(Context& context) { StoreAlgebra(context, SetOp::kUnion, "zunionstore"); }
void Zinterstore(Context& context) { StoreAlgebra(context, SetOp::kInter, "zinterstore"); }
void Zdiffstore(Context& context) { StoreAlgebra(context, SetOp::kDiff, "zdiffstore"); }

void Zintercard(Context& context) {
  AlgebraRequest request;
  request.op = SetOp::kInter;
  if (!ParseSources(context, 1, &request)) return;
  const KnownWords known{.weights = false, .limit = true};
  if (!ParseAlgebraWords(context, 2 + request.sources.size(), known, &request)) return;
  OrderSources(&request);
  uint64_t count = 0;
  Intersect(request, [&](std::string_view, double) { return ++count != request.limit; });
  context.reply().Int(static_cast<int64_t>(count));
}

// ---- rows ----

constexpr KeySpec NumberedSources(int16_t at) {
  return {
      .flags = kKeyRo | kKeyAccess, .first = at, .keynum = true, .keynum_at = 0, .keynum_first = 1};
}
constexpr KeySpec kAlgebraTarget = KeyAt(1, kKeyOw | kKeyUpdate);
constexpr std::string_view kUnionCost =
    "O(N)+O(M*log(M)) with N being the sum of the sizes of the inputs and M the size of the result";
constexpr std::string_view kInterCost =
    "O(N*K)+O(M*log(M)) at worst, with N being the size of the smallest input, K the number of "
    "inputs and M the size of the result";
constexpr std::string_view kDiffCost =
    "O(L*K + N*log(N)) with L being the size of the first input, K the number of inputs and N the "
    "size of the result";
constexpr std::string_view kWeightedArguments =
    "numkeys:integer key [key ...] [WEIGHTS weight:integer [weight:integer ...]] "
    "[AGGREGATE (aggregate: SUM | MIN | MAX)] [WITHSCORES]";
constexpr std::string_view kWeightedStoreArguments =
    "destination:key numkeys:integer key [key ...] "
    "[WEIGHTS weight:integer [weight:integer ...]] [AGGREGATE (aggregate: SUM | MIN | MAX)]";
constexpr std::string_view kAlgebraReply =
    "array of members; with WITHSCORES each followed by its score (RESP2) or in pairs (RESP3)";

const CommandSpec kAlgebraRows[] = {
    {.name = "zunion",
     .handler = Zunion,
     .arity = -3,
     .flags = kReadonly | kMovableKeys,
     .acl = kAclSortedSet,
     .keys = {NumberedSources(1)},
     .group = "sorted-set",
     .since = "6.2.0",
     .summary = "Gets the members that are in any of the sorted sets.",
     .complexity = kUnionCost,
     .arguments = kWeightedArguments,
     .reply = kAlgebraReply,
     .example = "ZUNION 2 monday tuesday WEIGHTS 1 2 WITHSCORES"},
    {.name = "zinter",
     .handler = Zinter,
     .arity = -3,
     .flags = kReadonly | kMovableKeys,
     .acl = kAclSortedSet,
     .keys = {NumberedSources(1)},
     .group = "sorted-set",
     .since = "6.2.0",
     .summary = "Gets the members that are in all of the sorted sets.",
     .complexity = kInterCost,
     .arguments = kWeightedArguments,
     .reply = kAlgebraReply,
     .example = "ZINTER 2 monday tuesday AGGREGATE MAX"},
    {.name = "zdiff",
     .handler = Zdiff,
     .arity = -3,
     .flags = kReadonly | kMovableKeys,
     .acl = kAclSortedSet,
     .keys = {NumberedSources(1)},
     .group = "sorted-set",
     .since = "6.2.0",
     .summary = "Gets the members of the first sorted set that are in none of the others.",
     .complexity = kDiffCost,
     .arguments = "numkeys:integer key [key ...] [WITHSCORES]",
     .reply = kAlgebraReply,
     .example = "ZDIFF 2 monday tuesday"},
    {.name = "zunionstore",
     .handler = Zunionstore,
     .arity = -4,
     .flags = kWrite | kDenyOom | kMovableKeys,
     .acl = kAclSortedSet,
     .keys = {kAlgebraTarget, NumberedSources(2)},
     .group = "sorted-set",
     .since = "2.0.0",
     .summary = "Stores the members that are in any of the sorted sets.",
     .complexity = kUnionCost,
     .arguments = kWeightedStoreArguments,
     .reply = "how many members were stored",
     .example = "ZUNIONSTORE week 2 monday tuesday"},
    {.name = "zinterstore",
     .handler = Zinterstore,
     .arity = -4,
     .flags = kWrite | kDenyOom | kMovableKeys,
     .acl = kAclSortedSet,
     .keys = {kAlgebraTarget, NumberedSources(2)},
     .group = "sorted-set",
     .since = "2.0.0",
     .summary = "Stores the members that are in all of the sorted sets.",
     .complexity = kInterCost,
     .arguments = kWeightedStoreArguments,
     .reply = "how many members were stored",
     .example = "ZINTERSTORE both 2 monday tuesday"},
    {.name = "zdiffstore",
     .handler = Zdiffstore,
     .arity = -4,
     .flags = kWrite | kDenyOom | kMovableKeys,
     .acl = kAclSortedSet,
     .keys = {kAlgebraTarget, NumberedSources(2)},
     .group = "sorted-set",
     .since = "6.2.0",
     .summary = "Stores the members of the first sorted set that are in none of the others.",
     .complexity = kDiffCost,
     .arguments = "destination:key numkeys:integer key [key ...]",
     .reply = "how many members were stored",
     .example = "ZDIFFSTORE gone 2 monday tuesday"},
    {.name = "zintercard",
     .handler = Zintercard,
     .arity = -3,
     .flags = kReadonly | kMovableKeys,
     .acl = kAclSortedSet,
     .keys = {NumberedSources(1)},
     .group = "sorted-set",
     .since = "7.0.0",
     .summary = "Counts the members that are in all of the sorted sets.",
     .complexity = "O(N*K) at worst, with N being the size of the smallest input and K the number "
                   "of inputs",
     .arguments = "numkeys:integer key [key ...] [LIMIT limit:integer]",
     .reply = "integer, at most the limit",
     .example = "ZINTERCARD 2 monday tuesday LIMIT 10"},
};

}  // namespace

std::span<const CommandSpec> SortedSetAlgebraCommands() { return kAlgebraRows; }

}  // namespace sava::commands
