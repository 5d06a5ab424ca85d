// The TOPK.* family: the most frequent items of a stream (docs/types/top-k.md). Names, replies and
// errors are RedisBloom's. Changes are logged as they came: nothing in them is left to chance.
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "commands/key_context.h"
#include "commands/native/families.h"
#include "commands/native/sketches.h"
#include "commands/registry.h"
#include "types/sketches/top_k.h"

namespace sava::commands {

namespace {

using types::TopK;

constexpr std::string_view kMissing = "TopK: key does not exist";
constexpr std::string_view kBadIncrement =
    "TopK: increment must be an integer greater or equal to 0 and smaller or equal to 100,000";
constexpr int64_t kMostIncrement = 100'000;

// ---- making ----

bool OptionArg(KeyContext& context, size_t i, std::string_view error, uint64_t* out) {
  int64_t value = 0;
  if (!context.IntArg(i, &value, error)) return false;
  if (value < 1 || value > static_cast<int64_t>(TopK::kMaxOption)) {
    context.Error(error);
    return false;
  }
  *out = static_cast<uint64_t>(value);
  return true;
}

bool ParseReserve(KeyContext& context, TopK::Options* options) {
  if (!OptionArg(context, 2, "TopK: invalid k", &options->k)) return false;
  if (context.argc() == 3) return true;
  if (!OptionArg(context, 3, "TopK: invalid width", &options->width)) return false;
  if (!OptionArg(context, 4, "TopK: invalid depth", &options->depth)) return false;
  if (!base::ParseDouble(context.arg(5), &options->decay) || !(options->decay > 0) ||
      options->decay > 1) {
    context.Error("TopK: invalid decay value. must be '<= 1' & '> 0'");
    return false;
  }
  return true;
}

void Reserve(KeyContext& context) {
  if (context.argc() != 3 && context.argc() != 6) return context.ArityError();
  const std::string_view key = context.arg(1);
  if (context.Find(key, Access::kWrite)) return context.Error("TopK: key already exists");
  TopK::Options options;
  if (!ParseReserve(context, &options)) return;
  context.SetObject(key, std::make_unique<TopK>(options));
  context.Changed();
  context.Notify(kNotifyModule, "topk.reserve", key);
  context.reply().Ok();
}

// ---- counting ----

void ReplyExpelled(KeyContext& context, const std::optional<std::string>& expelled) {
  expelled ? context.reply().Bulk(*expelled) : context.reply().Null();
}

void Add(KeyContext& context) {
  TopK* top = nullptr;
  if (!NeedObject(context, context.arg(1), Access::kWrite, kMissing, &top)) return;
  const auto items = static_cast<int64_t>(context.argc() - 2);
  context.reply().Array(items);
  for (size_t i = 2; i < context.argc(); ++i) ReplyExpelled(context, top->Add(context.arg(i), 1));
  SketchChanged(context, context.arg(1), items, "topk.add");
}

// An increment that is none stands as an error in the array, which ends there; what came before it
// has been counted.
void Incrby(KeyContext& context) {
  if (context.argc() % 2 != 0) return context.ArityError();
  TopK* top = nullptr;
  if (!NeedObject(context, context.arg(1), Access::kWrite, kMissing, &top)) return;
  const size_t mark = context.reply().Mark();
  int64_t replies = 0;
  int64_t changes = 0;
  for (size_t i = 2; i < context.argc(); i += 2) {
    int64_t n = 0;
    ++replies;
    if (!base::ParseInt(context.arg(i + 1), &n) || n < 0 || n > kMostIncrement) {
      context.Error(kBadIncrement);
      break;
    }
    if (n == 0) {
      context.reply().Null();
      continue;
    }
    ReplyExpelled(context, top->Add(context.arg(i), static_cast<uint64_t>(n)));
    ++changes;
  }
  context.reply().ArrayAt(mark, replies);
  if (changes > 0) SketchChanged(context, context.arg(1), changes, "topk.incrby");
}

// ---- reading ----

void Query(KeyContext& context) {
  TopK* top = nullptr;
  if (!NeedObject(context, context.arg(1), Access::kRead, kMissing, &top)) return;
  context.reply().Array(static_cast<int64_t>(context.argc() - 2));
  for (size_t i = 2; i < context.argc(); ++i) context.reply().Bool(top->Listed(context.arg(i)));
}

void Count(KeyContext& context) {
  TopK* top = nullptr;
  if (!NeedObject(context, context.arg(1), Access::kRead, kMissing, &top)) return;
  context.reply().Array(static_cast<int64_t>(context.argc() - 2));
  for (size_t i = 2; i < context.argc(); ++i) {
    context.reply().Int(ReplyNumber(top->Count(context.arg(i))));
  }
}

void List(KeyContext& context) {
  if (context.argc() > 3) return context.ArityError();
  const bool with_count = context.argc() == 3;
  if (with_count && !context.ArgIs(2, "WITHCOUNT")) {
    return context.Error("WITHCOUNT keyword expected");
  }
  TopK* top = nullptr;
  if (!NeedObject(context, context.arg(1), Access::kRead, kMissing, &top)) return;
  const std::vector<TopK::Item> items = top->List();
  context.reply().Array(static_cast<int64_t>(items.size() * (with_count ? 2 : 1)));
  for (const TopK::Item& item : items) {
    context.reply().Bulk(item.text);
    if (with_count) context.reply().Int(ReplyNumber(item.count));
  }
}

void Info(KeyContext& context) {
  TopK* top = nullptr;
  if (!NeedObject(context, context.arg(1), Access::kRead, kMissing, &top)) return;
  protocol::Reply& reply = context.reply();
  reply.Map(4);
  reply.Simple("k");
  reply.Int(ReplyNumber(top->options().k));
  reply.Simple("width");
  reply.Int(ReplyNumber(top->options().width));
  reply.Simple("depth");
  reply.Int(ReplyNumber(top->options().depth));
  reply.Simple("decay");
  reply.Double(top->options().decay);
}

// ---- rows ----

constexpr KeySpec kReadKey = KeyAt(1, kKeyRo | kKeyAccess);

const CommandSpec kRows[] = {
    {.name = "topk.reserve",
     .handler = Reserve,
     .arity = -3,
     .flags = kWrite | kDenyOom | kFast,
     .keys = {KeyAt(1, kKeyOw | kKeyInsert)},
     .group = "topk",
     .since = "0.1.0",
     .summary = "Makes an empty list of the k most frequent items.",
     .complexity = "O(1)",
     .arguments = "key k:integer [width:integer depth:integer decay:double]",
     .reply = "OK",
     .example = "TOPK.RESERVE trends 50 2000 7 0.925"},
    {.name = "topk.add",
     .handler = Add,
     .arity = -3,
     .flags = kWrite | kDenyOom | kFast,
     .keys = {KeyAt(1, kKeyRw | kKeyAccess | kKeyUpdate)},
     .group = "topk",
     .since = "0.1.0",
     .summary = "Counts one more occurrence of each item.",
     .complexity =
         "O(N log M) where N is the number of items given and M that of the counters kept",
     .arguments = "key item:string [item:string ...]",
     .reply = "array: for each item the one that left the list for it, or null",
     .example = "TOPK.ADD trends sava bridge"},
    {.name = "topk.incrby",
     .handler = Incrby,
     .arity = -4,
     .flags = kWrite | kDenyOom | kFast,
     .keys = {KeyAt(1, kKeyRw | kKeyAccess | kKeyUpdate)},
     .group = "topk",
     .since = "0.1.0",
     .summary = "Counts several more occurrences of items.",
     .complexity =
         "O(N log M) where N is the number of items given and M that of the counters kept",
     .arguments = "key (item:string increment:integer) [(item:string increment:integer) ...]",
     .reply = "array: for each item the one that left the list for it, or null",
     .example = "TOPK.INCRBY trends sava 3 bridge 2"},
    {.name = "topk.query",
     .handler = Query,
     .arity = -3,
     .flags = kReadonly | kFast,
     .keys = {kReadKey},
     .group = "topk",
     .since = "0.1.0",
     .summary = "Tells which items are in the list.",
     .complexity = "O(N) where N is the number of items given",
     .arguments = "key item:string [item:string ...]",
     .reply = "array of 1 and 0; booleans in RESP3",
     .example = "TOPK.QUERY trends sava"},
    {.name = "topk.count",
     .handler = Count,
     .arity = -3,
     .flags = kReadonly | kFast,
     .keys = {kReadKey},
     .group = "topk",
     .since = "0.1.0",
     .summary = "Estimates how often items occurred.",
     .complexity = "O(N) where N is the number of items given",
     .arguments = "key item:string [item:string ...]",
     .reply = "array of integers, 0 for items without a counter",
     .example = "TOPK.COUNT trends sava"},
    {.name = "topk.list",
     .handler = List,
     .arity = -2,
     .flags = kReadonly,
     .keys = {kReadKey},
     .group = "topk",
     .since = "0.1.0",
     .summary = "Gets the list, the most frequent first.",
     .complexity = "O(K log K) where K is the length of the list",
     .arguments = "key [WITHCOUNT]",
     .reply = "array of items; with WITHCOUNT item, count, item, count …",
     .example = "TOPK.LIST trends WITHCOUNT"},
    {.name = "topk.info",
     .handler = Info,
     .arity = 2,
     .flags = kReadonly | kFast,
     .keys = {KeyAt(1, kKeyRo)},
     .group = "topk",
     .since = "0.1.0",
     .summary = "Tells what a list was made with.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "map: k, width, depth, decay",
     .example = "TOPK.INFO trends"},
};

}  // namespace

std::span<const CommandSpec> TopKCommands() { return kRows; }

}  // namespace sava::commands
