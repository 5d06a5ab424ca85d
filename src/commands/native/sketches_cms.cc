// The CMS.* family: count-min sketches (docs/types/count-min.md). Names, replies and errors are
// RedisBloom's. Changes are logged as they came: a sketch depends on nothing but its commands.
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "base/text.h"
#include "commands/key_context.h"
#include "commands/native/families.h"
#include "commands/native/sketches.h"
#include "commands/registry.h"
#include "types/sketches/count_min.h"

namespace sava::commands {

namespace {

using types::CountMin;

constexpr std::string_view kMissing = "CMS: key does not exist";
constexpr std::string_view kExists = "CMS: key already exists";
constexpr std::string_view kOverflow = "CMS: INCRBY overflow";

// ---- making ----

// Whether the key is free for a new sketch; replies the error when it is not.
bool IsFree(KeyContext& context) {
  if (!context.Find(context.arg(1), Access::kWrite)) return true;
  context.Error(kExists);
  return false;
}

void Make(KeyContext& context, uint64_t width, uint64_t depth, std::string_view event) {
  std::unique_ptr<CountMin> sketch;
  if (context.RoomFor(CountMin::BytesFor(width, depth))) sketch = CountMin::Make(width, depth);
  if (sketch == nullptr) {
    context.Error("CMS: Insufficient memory to create the key");
    return;
  }
  context.SetObject(context.arg(1), std::move(sketch));
  context.Changed();
  context.Notify(kNotifyModule, event, context.arg(1));
  context.reply().Ok();
}

void InitByDim(KeyContext& context) {
  if (!IsFree(context)) return;
  int64_t width = 0;
  int64_t depth = 0;
  if (!context.IntArg(2, &width, "CMS: invalid width")) return;
  if (width < 1) return context.Error("CMS: invalid width");
  if (!context.IntArg(3, &depth, "CMS: invalid depth")) return;
  if (depth < 1) return context.Error("CMS: invalid depth");
  if (width > INT64_MAX / depth) return context.Error("CMS: invalid init arguments");
  Make(context, static_cast<uint64_t>(width), static_cast<uint64_t>(depth), "cms.initbydim");
}

// An argument between 0 and 1, both excluded.
bool FractionArg(KeyContext& context, size_t i, std::string_view error, double* out) {
  if (base::ParseDouble(context.arg(i), out) && *out > 0 && *out < 1) return true;
  context.Error(error);
  return false;
}

void InitByProb(KeyContext& context) {
  if (!IsFree(context)) return;
  double error = 0;
  double probability = 0;
  if (!FractionArg(context, 2, "CMS: invalid overestimation value", &error)) return;
  if (!FractionArg(context, 3, "CMS: invalid prob value", &probability)) return;
  const double width = std::ceil(2 / error);
  // In single precision as RedisBloom does, so that the depth is the same.
  const auto depth =
      static_cast<double>(std::ceil(log10f(static_cast<float>(probability)) / log10f(0.5F)));
  if (!(width * depth < 9e18) || depth < 1) return context.Error("CMS: invalid init arguments");
  Make(context, static_cast<uint64_t>(width), static_cast<uint64_t>(depth), "cms.initbyprob");
}

// ---- counting ----

// The increments of all pairs; replies the error when one is no number or negative.
bool ParseIncrements(KeyContext& context, std::vector<uint64_t>* increments) {
  for (size_t i = 3; i < context.argc(); i += 2) {
    int64_t n = 0;
    if (!context.IntArg(i, &n, "CMS: Cannot parse number")) return false;
    if (n < 0) {
      context.Error("CMS: Number cannot be negative");
      return false;
    }
    increments->push_back(static_cast<uint64_t>(n));
  }
  return true;
}

void Incrby(KeyContext& context) {
  if (context.argc() % 2 != 0) return context.ArityError();
  CountMin* sketch = nullptr;
  if (!NeedObject(context, context.arg(1), Access::kWrite, kMissing, &sketch)) return;
  std::vector<uint64_t> increments;
  if (!ParseIncrements(context, &increments)) return;
  context.reply().Array(static_cast<int64_t>(increments.size()));
  int64_t changes = 0;
  for (size_t i = 0; i < increments.size(); ++i) {
    const uint64_t count = sketch->Add(context.arg(2 + 2 * i), increments[i]);
    changes += increments[i] != 0 ? 1 : 0;
    if (count < CountMin::kMost) {
      context.reply().Int(ReplyNumber(count));
    } else {
      context.Error(kOverflow);
    }
  }
  if (changes > 0) SketchChanged(context, context.arg(1), changes, "cms.incrby");
}

void Query(KeyContext& context) {
  CountMin* sketch = nullptr;
  if (!NeedObject(context, context.arg(1), Access::kRead, kMissing, &sketch)) return;
  context.reply().Array(static_cast<int64_t>(context.argc() - 2));
  for (size_t i = 2; i < context.argc(); ++i) {
    context.reply().Int(ReplyNumber(sketch->Estimate(context.arg(i))));
  }
}

void Info(KeyContext& context) {
  CountMin* sketch = nullptr;
  if (!NeedObject(context, context.arg(1), Access::kRead, kMissing, &sketch)) return;
  protocol::Reply& reply = context.reply();
  reply.Map(3);
  reply.Simple("width");
  reply.Int(ReplyNumber(sketch->width()));
  reply.Simple("depth");
  reply.Int(ReplyNumber(sketch->depth()));
  reply.Simple("count");
  reply.Int(ReplyNumber(sketch->total()));
}

// ---- merging ----

// The destination, and the sources as far as there are as many as announced; whether the arguments
// are right is the handler's business.
bool MergeKeys(Args args, std::vector<int>* indexes) {
  indexes->push_back(1);
  int64_t count = 0;
  if (args.size() < 4 || !base::ParseInt(args[2], &count) || count < 1) return true;
  const auto end = std::min(static_cast<uint64_t>(count), uint64_t{args.size() - 3}) + 3;
  for (uint64_t i = 3; i < end; ++i) indexes->push_back(static_cast<int>(i));
  return true;
}

// Where WEIGHTS stands among the arguments, or their number.
size_t FindWeights(KeyContext& context) {
  size_t at = 3;
  while (at < context.argc() && !context.ArgIs(at, "WEIGHTS")) ++at;
  return at;
}

// Reads the number of keys; replies the error when it does not fit the arguments.
bool ParseMerge(KeyContext& context, size_t* keys, bool* weighted) {
  int64_t count = 0;
  if (!context.IntArg(2, &count, "CMS: invalid numkeys")) return false;
  if (count <= 0) {
    context.Error("CMS: Number of keys must be positive");
    return false;
  }
  const size_t at = FindWeights(context);
  const uint64_t given = context.argc() - 3;
  *keys = static_cast<size_t>(count);
  *weighted = at < context.argc();
  if (!*weighted && *keys == given) return true;
  if (*weighted && at - 3 == *keys && given == 1 + 2 * *keys) return true;
  context.Error(*weighted ? "CMS: wrong number of keys/weights" : "CMS: wrong number of keys");
  return false;
}

void Merge(KeyContext& context) {
  CountMin* target = nullptr;
  if (!NeedObject(context, context.arg(1), Access::kWrite, kMissing, &target)) return;
  size_t keys = 0;
  bool weighted = false;
  if (!ParseMerge(context, &keys, &weighted)) return;
  std::vector<CountMin::Weighted> sources;
  for (size_t i = 3; i < 3 + keys; ++i) {
    int64_t weight = 1;
    if (weighted && !context.IntArg(i + keys + 1, &weight, "CMS: invalid weight value")) return;
    CountMin* source = nullptr;
    if (!NeedObject(context, context.arg(i), Access::kRead, kMissing, &source)) return;
    if (source->width() != target->width() || source->depth() != target->depth()) {
      return context.Error("CMS: width/depth is not equal");
    }
    sources.push_back({source, weight});
  }
  if (!target->Merge(sources)) return context.Error("CMS: MERGE overflow");
  SketchChanged(context, context.arg(1), 1, "cms.merge");
  context.reply().Ok();
}

// ---- rows ----

const CommandSpec kRows[] = {
    {.name = "cms.initbydim",
     .handler = InitByDim,
     .arity = 4,
     .flags = kWrite | kDenyOom | kFast,
     .keys = {KeyAt(1, kKeyOw | kKeyInsert)},
     .group = "cms",
     .since = "0.1.0",
     .summary = "Makes a count-min sketch of so many counters in so many rows.",
     .complexity = "O(1)",
     .arguments = "key width:integer depth:integer",
     .reply = "OK",
     .example = "CMS.INITBYDIM views 2000 7"},
    {.name = "cms.initbyprob",
     .handler = InitByProb,
     .arity = 4,
     .flags = kWrite | kDenyOom | kFast,
     .keys = {KeyAt(1, kKeyOw | kKeyInsert)},
     .group = "cms",
     .since = "0.1.0",
     .summary = "Makes a count-min sketch for a relative error and the probability to exceed it.",
     .complexity = "O(1)",
     .arguments = "key error:double probability:double",
     .reply = "OK",
     .example = "CMS.INITBYPROB views 0.001 0.01"},
    {.name = "cms.incrby",
     .handler = Incrby,
     .arity = -4,
     .flags = kWrite | kDenyOom | kFast,
     .keys = {KeyAt(1, kKeyRw | kKeyAccess | kKeyUpdate)},
     .group = "cms",
     .since = "0.1.0",
     .summary = "Counts more occurrences of items.",
     .complexity = "O(N) where N is the number of items given",
     .arguments = "key (item:string increment:integer) [(item:string increment:integer) ...]",
     .reply =
         "array of integers: the items' estimates now; an error in place of one that overflows",
     .example = "CMS.INCRBY views home 1 about 3"},
    {.name = "cms.query",
     .handler = Query,
     .arity = -3,
     .flags = kReadonly | kFast,
     .keys = {KeyAt(1, kKeyRo | kKeyAccess)},
     .group = "cms",
     .since = "0.1.0",
     .summary = "Estimates how often items occurred; never too low.",
     .complexity = "O(N) where N is the number of items given",
     .arguments = "key item:string [item:string ...]",
     .reply = "array of integers",
     .example = "CMS.QUERY views home"},
    {.name = "cms.merge",
     .handler = Merge,
     .arity = -4,
     .flags = kWrite | kDenyOom,
     .keys = {KeyAt(1, kKeyOw | kKeyUpdate),
              {.flags = kKeyRo | kKeyAccess,
               .first = 2,
               .keynum = true,
               .keynum_at = 0,
               .keynum_first = 1}},
     .find_keys = MergeKeys,
     .group = "cms",
     .since = "0.1.0",
     .summary = "Makes a sketch the weighted sum of others of the same size.",
     .complexity = "O(N) where N is the number of counters of all sources",
     .arguments = "destination:key numkeys:integer source:key [source:key ...] "
                  "[WEIGHTS weight:integer [weight:integer ...]]",
     .reply = "OK",
     .example = "CMS.MERGE all 2 views:a views:b WEIGHTS 1 2"},
    {.name = "cms.info",
     .handler = Info,
     .arity = 2,
     .flags = kReadonly | kFast,
     .keys = {KeyAt(1, kKeyRo)},
     .group = "cms",
     .since = "0.1.0",
     .summary = "Tells a sketch's width, depth and the sum of all increments.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "map: width, depth, count",
     .example = "CMS.INFO views"},
};

}  // namespace

std::span<const CommandSpec> CountMinCommands() { return kRows; }

}  // namespace sava::commands
