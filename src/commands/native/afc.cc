// The AFC.* family: association frequency counters (docs/types/afc.md).
//
// A counter is changed in place: one look at the key, then the change, then whoever watches the key
// is told. What a counter with HALFLIFE or WINDOW becomes depends on when it was changed, so those
// changes are logged with their time: AFC.ADDAT, AFC.REMAT and AFC.RESERVE … NOW. Changes of plain
// counters are logged as they came.
#include "types/counters/afc.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "commands/find_object.h"
#include "commands/key_context.h"
#include "commands/native/families.h"
#include "commands/registry.h"

namespace sava::commands {

namespace {

using types::Afc;

// HALFLIFE and WINDOW end here, a hundred years: no sum of times overflows.
constexpr int64_t kMaxSeconds = int64_t{100} * 366 * 86400;
// The times of ADDAT, REMAT and NOW: until the year 5138.
constexpr int64_t kMaxTime = 100'000'000'000'000;

// What AFC.INFO looks at to tell the size, as MEMORY USAGE does.
constexpr size_t kSamples = 5;

// A number as text, for effects.
struct Decimal {
  explicit Decimal(int64_t value) : size(base::FormatInt(value, digits)) {}

  char digits[24];
  size_t size;

  std::string_view text() const { return {digits, size}; }
};

// An argument that is a number from `least` to `most`; replies the error when it is none.
bool BoundedArg(KeyContext& context, size_t i, int64_t least, int64_t most, int64_t* out) {
  if (!context.IntArg(i, out)) return false;
  if (*out >= least && *out <= most) return true;
  context.Error(*out < least ? errors::kMustBePositive : errors::kNotInteger);
  return false;
}

int64_t Clamped(uint64_t value) {
  return static_cast<int64_t>(std::min(value, uint64_t{INT64_MAX}));
}

// ---- changes ----

// A counter being changed: the one at the key, or a new one that stands at the key once it is done.
class Change {
 public:
  // False when an error was replied.
  bool Open(KeyContext& context, std::string_view key) {
    key_ = key;
    if (!FindObject(context, key, Access::kWrite, &afc_)) return false;
    if (afc_ == nullptr) {
      made_ = std::make_unique<Afc>();
      afc_ = made_.get();
    }
    return true;
  }

  Afc& afc() { return *afc_; }

  void Close(KeyContext& context, int64_t changes, std::string_view event) {
    made_ == nullptr ? context.Touched(key_) : context.SetObject(key_, std::move(made_));
    context.Changed(changes);
    context.Notify(kNotifyModule, event, key_);
  }

 private:
  std::string_view key_;
  Afc* afc_ = nullptr;
  std::unique_ptr<Afc> made_;
};

// Adds the arguments from `first` on as members, n each; logs the time where it matters.
void AddMembers(KeyContext& context, size_t first, int64_t n, int64_t time,
                std::string_view event) {
  Change change;
  if (!change.Open(context, context.arg(1))) return;
  int64_t added = 0;
  for (size_t i = first; i < context.argc(); ++i) {
    if (change.afc().Add(context.arg(i), static_cast<uint64_t>(n), time).is_new) ++added;
  }
  if (change.afc().timed()) {
    const Decimal when(time);
    const Decimal amount(n);
    for (size_t i = first; i < context.argc(); ++i) {
      context.Effect({"AFC.ADDAT", context.arg(1), when.text(), amount.text(), context.arg(i)});
    }
  }
  change.Close(context, static_cast<int64_t>(context.argc() - first), event);
  context.reply().Int(added);
}

void Add(KeyContext& context) { AddMembers(context, 2, 1, context.now_ms(), "afc.add"); }

void AddAt(KeyContext& context) {
  int64_t time = 0;
  int64_t n = 0;
  if (!BoundedArg(context, 2, 0, kMaxTime, &time)) return;
  if (!BoundedArg(context, 3, 1, INT64_MAX, &n)) return;
  AddMembers(context, 4, n, time, "afc.add");
}

void Incrby(KeyContext& context) {
  int64_t n = 0;
  if (!BoundedArg(context, 3, 1, INT64_MAX, &n)) return;
  const std::string_view key = context.arg(1);
  const std::string_view member = context.arg(2);
  Change change;
  if (!change.Open(context, key)) return;
  const Afc::Added now = change.afc().Add(member, static_cast<uint64_t>(n), context.now_ms());
  if (change.afc().timed()) {
    context.Effect({"AFC.ADDAT", key, Decimal(context.now_ms()).text(), Decimal(n).text(), member});
  }
  change.Close(context, 1, "afc.incrby");
  context.reply().Int(Clamped(now.count));
}

// Removes the arguments from `first` on, and the key when nothing is left.
void RemoveMembers(KeyContext& context, size_t first, int64_t time) {
  const std::string_view key = context.arg(1);
  Afc* afc = nullptr;
  if (!FindObject(context, key, Access::kWrite, &afc)) return;
  int64_t removed = 0;
  if (afc != nullptr) {
    const bool timed = afc->timed();
    const Decimal when(time);
    for (size_t i = first; i < context.argc(); ++i) {
      if (!afc->Remove(context.arg(i), time)) continue;
      ++removed;
      if (timed) context.Effect({"AFC.REMAT", key, when.text(), context.arg(i)});
    }
  }
  if (removed > 0) {
    context.Touched(key);
    context.Changed(removed);
    context.Notify(kNotifyModule, "afc.rem", key);
    if (afc->Card(time) == 0) {
      context.Delete(key);
      context.Notify(kNotifyGeneric, "del", key);
    }
  }
  context.reply().Int(removed);
}

void Rem(KeyContext& context) { RemoveMembers(context, 2, context.now_ms()); }

void RemAt(KeyContext& context) {
  int64_t time = 0;
  if (BoundedArg(context, 2, 0, kMaxTime, &time)) RemoveMembers(context, 3, time);
}

void Drop(KeyContext& context) {
  const std::string_view key = context.arg(1);
  Afc* afc = nullptr;
  if (!FindObject(context, key, Access::kWrite, &afc)) return;
  if (afc != nullptr) {
    context.Delete(key);
    context.Effect({"DEL", key});
    context.Changed();
    context.Notify(kNotifyGeneric, "del", key);
  }
  context.reply().Int(afc != nullptr ? 1 : 0);
}

using Counts = std::vector<std::pair<std::string, uint64_t>>;

// All of a counter, most frequent first.
Counts Snapshot(const Afc& afc, int64_t now_ms) {
  Counts counts;
  const size_t size = afc.Card(now_ms);
  counts.reserve(size);
  afc.Top(size, now_ms, [&counts](std::string_view member, uint64_t count) {
    counts.emplace_back(member, count);
  });
  return counts;
}

// As many INCRBY as there are members, from the last to the first; returns how many. When they must
// be logged one by one: with their time if the counter is timed.
int64_t AddCounts(KeyContext& context, const Counts& counts, bool one_by_one, Afc* afc) {
  const std::string_view key = context.arg(1);
  const Decimal when(context.now_ms());
  int64_t added = 0;
  for (auto it = counts.rbegin(); it != counts.rend(); ++it) {
    const auto& [member, count] = *it;
    if (count == 0) continue;  // decayed to nothing
    afc->Add(member, count, context.now_ms());
    ++added;
    if (!one_by_one) continue;
    const Decimal amount(Clamped(count));
    if (afc->timed()) {
      context.Effect({"AFC.ADDAT", key, when.text(), amount.text(), member});
    } else {
      context.Effect({"AFC.INCRBY", key, member, amount.text()});
    }
  }
  return added;
}

void Merge(KeyContext& context) {
  Change change;
  if (!change.Open(context, context.arg(1))) return;
  Afc* target = &change.afc();
  std::vector<Afc*> sources;
  bool timed = target->timed();
  for (size_t i = 2; i < context.argc(); ++i) {
    Afc* source = nullptr;
    if (!FindObject(context, context.arg(i), Access::kRead, &source)) return;
    if (source == nullptr) continue;
    sources.push_back(source);
    timed = timed || source->timed();
  }
  // As a source the destination counts as it was before the command.
  Counts own;
  if (std::find(sources.begin(), sources.end(), target) != sources.end()) {
    own = Snapshot(*target, context.now_ms());
  }
  int64_t added = 0;
  for (const Afc* source : sources) {
    const bool itself = source == target;
    added += AddCounts(context, itself ? own : Snapshot(*source, context.now_ms()), timed, target);
  }
  if (added > 0) change.Close(context, added, "afc.merge");
  context.reply().Ok();
}

// What AFC.RESERVE was asked for.
struct ReserveOptions {
  Afc::Options afc;
  int64_t time = -1;  // NOW
};

// Reads the options of AFC.RESERVE; each may be given once. Replies the error when they make no
// sense.
bool ParseReserve(KeyContext& context, ReserveOptions* options) {
  for (size_t i = 2; i < context.argc(); i += 2) {
    const bool has_number = i + 1 < context.argc();
    const bool recency = options->afc.halflife_ms != 0 || options->afc.window_ms != 0;
    int64_t number = 0;
    if (has_number && context.ArgIs(i, "MAXLEN") && options->afc.maxlen == 0) {
      if (!BoundedArg(context, i + 1, 1, INT64_MAX, &number)) return false;
      options->afc.maxlen = static_cast<uint64_t>(number);
    } else if (has_number && context.ArgIs(i, "HALFLIFE") && !recency) {
      if (!BoundedArg(context, i + 1, 1, kMaxSeconds, &number)) return false;
      options->afc.halflife_ms = number * 1000;
    } else if (has_number && context.ArgIs(i, "WINDOW") && !recency) {
      if (!BoundedArg(context, i + 1, 1, kMaxSeconds, &number)) return false;
      options->afc.window_ms = number * 1000;
    } else if (has_number && context.ArgIs(i, "NOW") && options->time < 0) {
      if (!BoundedArg(context, i + 1, 0, kMaxTime, &options->time)) return false;
    } else {
      context.Error(errors::kSyntax);
      return false;
    }
  }
  return true;
}

// The command with its time, for the log.
void LogReserve(KeyContext& context, const Afc::Options& options, int64_t time) {
  const bool decays = options.halflife_ms != 0;
  const Decimal when(time);
  const Decimal seconds((decays ? options.halflife_ms : options.window_ms) / 1000);
  const std::string_view recency = decays ? "HALFLIFE" : "WINDOW";
  if (options.maxlen == 0) {
    context.Effect({"AFC.RESERVE", context.arg(1), recency, seconds.text(), "NOW", when.text()});
  } else {
    context.Effect({"AFC.RESERVE", context.arg(1), "MAXLEN",
                    Decimal(static_cast<int64_t>(options.maxlen)).text(), recency, seconds.text(),
                    "NOW", when.text()});
  }
}

void Reserve(KeyContext& context) {
  const std::string_view key = context.arg(1);
  ReserveOptions options;
  if (!ParseReserve(context, &options)) return;
  if (context.Find(key, Access::kWrite)) {
    context.Error(errors::kKeyExists);
    return;
  }
  const int64_t time = options.time >= 0 ? options.time : context.now_ms();
  auto made = std::make_unique<Afc>(options.afc, time);
  if (made->timed()) LogReserve(context, options.afc, time);
  context.SetObject(key, std::move(made));
  context.Changed();
  context.Notify(kNotifyModule, "afc.reserve", key);
  context.reply().Ok();
}

// ---- reading ----

void Top(KeyContext& context) {
  int64_t k = 0;
  if (!BoundedArg(context, 2, 0, INT64_MAX, &k)) return;
  const bool with_counts = context.argc() == 4 && context.ArgIs(3, "WITHCOUNTS");
  if (context.argc() > 3 && !with_counts) {
    context.Error(errors::kSyntax);
    return;
  }
  Afc* afc = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &afc)) return;
  protocol::Reply& reply = context.reply();
  if (afc == nullptr) {
    reply.Array(0);
    return;
  }
  const int64_t size = std::min(k, Clamped(afc->Card(context.now_ms())));
  const bool pairs = with_counts && reply.resp() == 3;
  reply.Array(with_counts && !pairs ? size * 2 : size);
  struct Form {
    bool pairs;
    bool counts;
  };
  afc->Top(static_cast<size_t>(size), context.now_ms(),
           [&reply, form = Form{pairs, with_counts}](std::string_view member, uint64_t count) {
             if (form.pairs) reply.Array(2);
             reply.Bulk(member);
             if (form.counts) reply.Int(Clamped(count));
           });
}

void Count(KeyContext& context) {
  Afc* afc = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &afc)) return;
  context.reply().Array(static_cast<int64_t>(context.argc() - 2));
  for (size_t i = 2; i < context.argc(); ++i) {
    const uint64_t count = afc == nullptr ? 0 : afc->Count(context.arg(i), context.now_ms());
    context.reply().Int(Clamped(count));
  }
}

void Card(KeyContext& context) {
  Afc* afc = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &afc)) return;
  context.reply().Int(afc == nullptr ? 0 : Clamped(afc->Card(context.now_ms())));
}

void Total(KeyContext& context) {
  Afc* afc = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &afc)) return;
  context.reply().Int(afc == nullptr ? 0 : Clamped(afc->Total(context.now_ms())));
}

void Info(KeyContext& context) {
  const std::string_view key = context.arg(1);
  Afc* afc = nullptr;
  if (!FindObject(context, key, Access::kRead, &afc)) return;
  protocol::Reply& reply = context.reply();
  if (afc == nullptr) {
    reply.Error(errors::kNoSuchKey);
    return;
  }
  const Afc::Options options = afc->options();
  reply.Map(7);
  reply.Bulk("members");
  reply.Int(Clamped(afc->Card(context.now_ms())));
  reply.Bulk("total");
  reply.Int(Clamped(afc->Total(context.now_ms())));
  reply.Bulk("layout");
  reply.Bulk(afc->layout());
  reply.Bulk("maxlen");
  reply.Int(Clamped(options.maxlen));
  reply.Bulk("halflife");
  reply.Int(options.halflife_ms / 1000);
  reply.Bulk("window");
  reply.Int(options.window_ms / 1000);
  reply.Bulk("bytes");
  reply.Int(context.MemoryOf(key, kSamples));
}

// ---- rows ----

constexpr KeySpec kReadKey = KeyAt(1, kKeyRo | kKeyAccess);
constexpr KeySpec kCardKey = KeyAt(1, kKeyRo);

const CommandSpec kRows[] = {
    {.name = "afc.add",
     .handler = Add,
     .arity = -3,
     .flags = kWrite | kDenyOom | kFast,
     .keys = {KeyAt(1, kKeyRw | kKeyInsert)},
     .group = "afc",
     .since = "0.1.0",
     .summary = "Counts one more occurrence of each member; makes the counter when it is missing.",
     .complexity = "O(M) where M is the number of members given",
     .arguments = "key member:string [member:string ...]",
     .reply = "integer: how many of the members are new to the counter",
     .example = "AFC.ADD assoc:alice books"},
    {.name = "afc.incrby",
     .handler = Incrby,
     .arity = 4,
     .flags = kWrite | kDenyOom | kFast,
     .keys = {KeyAt(1, kKeyRw | kKeyAccess | kKeyUpdate)},
     .group = "afc",
     .since = "0.1.0",
     .summary = "Counts several more occurrences of a member.",
     .complexity =
         "O(1) for small increments, else O(G) where G is the number of different counts passed",
     .arguments = "key member:string increment:integer",
     .reply = "integer: the member's count now",
     .example = "AFC.INCRBY assoc:alice books 5"},
    {.name = "afc.top",
     .handler = Top,
     .arity = -3,
     .flags = kReadonly,
     .keys = {kReadKey},
     .group = "afc",
     .since = "0.1.0",
     .summary = "Gets the most frequent members, the most frequent first.",
     .complexity = "O(K) where K is the number of members returned",
     .arguments = "key k:integer [WITHCOUNTS]",
     .reply = "array of members; with WITHCOUNTS member, count, member, count … in RESP2, pairs in "
              "RESP3",
     .example = "AFC.TOP assoc:alice 20 WITHCOUNTS"},
    {.name = "afc.count",
     .handler = Count,
     .arity = -3,
     .flags = kReadonly | kFast,
     .keys = {kReadKey},
     .group = "afc",
     .since = "0.1.0",
     .summary = "Tells how often members occurred.",
     .complexity = "O(M) where M is the number of members given",
     .arguments = "key member:string [member:string ...]",
     .reply = "array of integers, 0 for members that are not there",
     .example = "AFC.COUNT assoc:alice books"},
    {.name = "afc.card",
     .handler = Card,
     .arity = 2,
     .flags = kReadonly | kFast,
     .keys = {kCardKey},
     .group = "afc",
     .since = "0.1.0",
     .summary = "Tells how many members a counter has.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "integer: the number of members, 0 for a missing key",
     .example = "AFC.CARD assoc:alice"},
    {.name = "afc.total",
     .handler = Total,
     .arity = 2,
     .flags = kReadonly | kFast,
     .keys = {kCardKey},
     .group = "afc",
     .since = "0.1.0",
     .summary = "Tells how many occurrences a counter has counted.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "integer: the sum of all counts, 0 for a missing key",
     .example = "AFC.TOTAL assoc:alice"},
    {.name = "afc.rem",
     .handler = Rem,
     .arity = -3,
     .flags = kWrite | kFast,
     .keys = {KeyAt(1, kKeyRw | kKeyDelete)},
     .group = "afc",
     .since = "0.1.0",
     .summary = "Forgets members, and the key when none is left.",
     .complexity = "O(M) where M is the number of members given",
     .arguments = "key member:string [member:string ...]",
     .reply = "integer: how many were removed",
     .example = "AFC.REM assoc:alice books"},
    {.name = "afc.drop",
     .handler = Drop,
     .arity = 2,
     .flags = kWrite | kFast,
     .keys = {KeyAt(1, kKeyRm | kKeyDelete)},
     .group = "afc",
     .since = "0.1.0",
     .summary = "Forgets a counter; a key of another type is left alone.",
     .complexity = "O(1); what it held is freed elsewhere",
     .arguments = "key",
     .reply = "integer: 1 when there was a counter, else 0",
     .example = "AFC.DROP assoc:alice"},
    {.name = "afc.merge",
     .handler = Merge,
     .arity = -3,
     .flags = kWrite | kDenyOom,
     .keys = {KeyAt(1, kKeyRw | kKeyAccess | kKeyInsert), KeysFrom(2, 1, kKeyRo | kKeyAccess)},
     .group = "afc",
     .since = "0.1.0",
     .summary = "Adds all counts of other counters to a counter.",
     .complexity = "O(N) where N is the number of members of all sources",
     .arguments = "destination:key source:key [source:key ...]",
     .reply = "OK",
     .example = "AFC.MERGE assoc:all assoc:alice assoc:bob"},
    {.name = "afc.reserve",
     .handler = Reserve,
     .arity = -2,
     .flags = kWrite | kDenyOom | kFast,
     .keys = {KeyAt(1, kKeyOw | kKeyInsert)},
     .group = "afc",
     .since = "0.1.0",
     .summary = "Makes an empty counter with a bound, with decay or with a window.",
     .complexity = "O(1)",
     .arguments = "key [MAXLEN maxlen:integer] [HALFLIFE halflife:integer | WINDOW window:integer] "
                  "[NOW unix-time-milliseconds:unix-time]",
     .reply = "OK",
     .example = "AFC.RESERVE assoc:alice MAXLEN 1000 HALFLIFE 86400"},
    {.name = "afc.info",
     .handler = Info,
     .arity = 2,
     .flags = kReadonly | kFast,
     .keys = {kCardKey},
     .group = "afc",
     .since = "0.1.0",
     .summary = "Tells a counter's size, layout and options.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "map: members, total, layout, maxlen, halflife, window, bytes",
     .example = "AFC.INFO assoc:alice"},
    {.name = "afc.addat",
     .handler = AddAt,
     .arity = -5,
     .flags = kWrite | kDenyOom | kFast,
     .keys = {KeyAt(1, kKeyRw | kKeyInsert)},
     .group = "afc",
     .since = "0.1.0",
     .summary = "Counts occurrences at a given time; how changes of timed counters are logged.",
     .complexity = "O(M) where M is the number of members given",
     .arguments = "key unix-time-milliseconds:unix-time increment:integer member:string "
                  "[member:string ...]",
     .reply = "integer: how many of the members are new to the counter",
     .example = "AFC.ADDAT assoc:alice 1700000000000 1 books"},
    {.name = "afc.remat",
     .handler = RemAt,
     .arity = -4,
     .flags = kWrite | kFast,
     .keys = {KeyAt(1, kKeyRw | kKeyDelete)},
     .group = "afc",
     .since = "0.1.0",
     .summary = "Forgets members at a given time; how changes of timed counters are logged.",
     .complexity = "O(M) where M is the number of members given",
     .arguments = "key unix-time-milliseconds:unix-time member:string [member:string ...]",
     .reply = "integer: how many were removed",
     .example = "AFC.REMAT assoc:alice 1700000000000 books"},
};

}  // namespace

std::span<const CommandSpec> AfcCommands() { return kRows; }

}  // namespace sava::commands
