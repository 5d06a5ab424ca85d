// The BF.* family: Bloom filters (docs/types/bloom.md), with the names, options, replies
// and errors of RedisBloom. Every change is logged as it came: a filter is what its commands made
// it.
#include "types/filters/bloom.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "commands/native/bloom_options.h"
#include "commands/native/families.h"
#include "commands/native/filters.h"
#include "commands/registry.h"

namespace sava::commands {

namespace {

using types::Bloom;

constexpr std::string_view kFull = "ERR non scaling filter is full";
constexpr std::string_view kTooMany = "ERR filter is full";
constexpr std::string_view kNoMemory = "ERR Insufficient memory to create filter";
constexpr std::string_view kBadData = "ERR received bad data";
constexpr std::string_view kNotDeletable = "ERR filter is not deletable";
constexpr std::string_view kDifferent = "ERR filters cannot be merged";

// ---- making ----

std::unique_ptr<Bloom> MakeFilter(KeyContext& context, const Bloom::Options& options) {
  return context.RoomFor(Bloom::BytesFor(options)) ? Bloom::Make(options) : nullptr;
}

void Reserve(KeyContext& context) {
  Bloom::Options options;
  if (!ParseBloomReserve(context, &options)) return;
  Bloom* bloom = nullptr;
  if (!FindObject(context, context.arg(1), Access::kWrite, &bloom)) return;
  if (bloom != nullptr) {
    context.Error(kFilterExists);
    return;
  }
  std::unique_ptr<Bloom> made = MakeFilter(context, options);
  if (made == nullptr) {
    context.Error(kNoMemory);
    return;
  }
  FilterChanged(context, std::move(made), 1, "bf.reserve");
  context.reply().Ok();
}

// ---- adding ----

// Adds the arguments from `first` on. A filter that is missing is made by `wanted`, unless that is
// nullptr. With `many` the reply is an array, which ends where the filter is full.
void AddItems(KeyContext& context, size_t first, const Bloom::Options* wanted, bool many) {
  Bloom* bloom = nullptr;
  if (!FindObject(context, context.arg(1), Access::kWrite, &bloom)) return;
  std::unique_ptr<Bloom> made;
  if (bloom == nullptr) {
    if (wanted == nullptr) {
      context.Error(kFilterNotFound);
      return;
    }
    made = MakeFilter(context, *wanted);
    if (made == nullptr) {
      context.Error(kNoMemory);
      return;
    }
    bloom = made.get();
  }
  protocol::Reply& reply = context.reply();
  const std::vector<uint64_t> hashes = HashItems(context, first, many ? bloom : nullptr);
  const size_t mark = reply.Mark();
  int64_t replies = 0;
  int64_t changes = made != nullptr ? 1 : 0;
  for (const uint64_t hash : hashes) {
    const Bloom::Added added = bloom->Add(hash);
    ++replies;
    if (added == Bloom::Added::kFull) {
      reply.Error(bloom->options().expansion == 0 ? kFull : kTooMany);
      break;
    }
    reply.Bool(added == Bloom::Added::kNew);
    if (added == Bloom::Added::kNew || bloom->options().deletable) ++changes;
  }
  if (many) reply.ArrayAt(mark, replies);
  if (changes != 0) FilterChanged(context, std::move(made), changes, "bf.add");
}

void Add(KeyContext& context) {
  const Bloom::Options wanted;
  AddItems(context, 2, &wanted, false);
}

void Madd(KeyContext& context) {
  const Bloom::Options wanted;
  AddItems(context, 2, &wanted, true);
}

void Insert(KeyContext& context) {
  BloomInsert insert;
  if (!ParseBloomInsert(context, &insert)) return;
  AddItems(context, insert.first_item, insert.create ? &insert.options : nullptr, true);
}

void Del(KeyContext& context) {
  Bloom* bloom = nullptr;
  if (!RequireFilter(context, Access::kWrite, &bloom)) return;
  if (!bloom->options().deletable) {
    context.Error(kNotDeletable);
    return;
  }
  const bool removed = bloom->Remove(types::FilterHash(context.arg(2)));
  if (removed) FilterChanged<Bloom>(context, nullptr, 1, "bf.del");
  context.reply().Bool(removed);
}

void Merge(KeyContext& context) {
  Bloom* bloom = nullptr;
  if (!FindObject(context, context.arg(1), Access::kWrite, &bloom)) return;
  std::vector<const Bloom*> sources;
  for (size_t i = 2; i < context.argc(); ++i) {
    Bloom* source = nullptr;
    if (!FindObject(context, context.arg(i), Access::kRead, &source)) return;
    if (source == nullptr) {
      context.Error(kFilterNotFound);
      return;
    }
    sources.push_back(source);
  }
  std::unique_ptr<Bloom> made;
  if (bloom == nullptr) {
    made.reset(static_cast<Bloom*>(sources[0]->Copy().release()));
    bloom = made.get();
    sources.erase(sources.begin());
  }
  const Bloom::Merged merged = bloom->Merge(sources);
  if (merged != Bloom::Merged::kDone) {
    const bool scales = bloom->options().expansion != 0;
    context.Error(merged == Bloom::Merged::kDifferent ? kDifferent : scales ? kTooMany : kFull);
    return;
  }
  FilterChanged(context, std::move(made), 1, "bf.merge");
  context.reply().Ok();
}

// ---- asking ----

void Exists(KeyContext& context) {
  Bloom* bloom = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &bloom)) return;
  context.reply().Bool(bloom != nullptr && bloom->Has(types::FilterHash(context.arg(2))));
}

void Mexists(KeyContext& context) {
  Bloom* bloom = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &bloom)) return;
  const std::vector<uint64_t> hashes = HashItems(context, 2, bloom);
  context.reply().Array(static_cast<int64_t>(hashes.size()));
  for (const uint64_t hash : hashes) context.reply().Bool(bloom != nullptr && bloom->Has(hash));
}

void Card(KeyContext& context) {
  Bloom* bloom = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &bloom)) return;
  context.reply().Int(bloom == nullptr ? 0 : static_cast<int64_t>(bloom->items()));
}

void ReplyExpansion(protocol::Reply& reply, const Bloom& bloom) {
  if (bloom.options().expansion == 0) {
    reply.Null();
  } else {
    reply.Int(bloom.options().expansion);
  }
}

void InfoField(KeyContext& context, const Bloom& bloom) {
  protocol::Reply& reply = context.reply();
  const Bloom::Growth growth = bloom.growth();
  int64_t number = -1;
  if (context.ArgIs(2, "CAPACITY")) number = static_cast<int64_t>(growth.capacity);
  if (context.ArgIs(2, "SIZE")) number = static_cast<int64_t>(bloom.MemoryUsage(0));
  if (context.ArgIs(2, "FILTERS")) number = static_cast<int64_t>(growth.filters);
  if (context.ArgIs(2, "ITEMS")) number = static_cast<int64_t>(bloom.items());
  if (number < 0 && !context.ArgIs(2, "EXPANSION")) {
    context.Error("Invalid information value");
    return;
  }
  reply.Array(1);
  if (number < 0) {
    ReplyExpansion(reply, bloom);
  } else {
    reply.Int(number);
  }
}

void Info(KeyContext& context) {
  if (context.argc() > 3) {
    context.ArityError();
    return;
  }
  Bloom* bloom = nullptr;
  if (!RequireFilter(context, Access::kRead, &bloom)) return;
  if (context.argc() == 3) {
    InfoField(context, *bloom);
    return;
  }
  protocol::Reply& reply = context.reply();
  const Bloom::Growth growth = bloom->growth();
  reply.Map(5);
  reply.Simple("Capacity");
  reply.Int(static_cast<int64_t>(growth.capacity));
  reply.Simple("Size");
  reply.Int(static_cast<int64_t>(bloom->MemoryUsage(0)));
  reply.Simple("Number of filters");
  reply.Int(static_cast<int64_t>(growth.filters));
  reply.Simple("Number of items inserted");
  reply.Int(static_cast<int64_t>(bloom->items()));
  reply.Simple("Expansion rate");
  ReplyExpansion(reply, *bloom);
}

void Stats(KeyContext& context) {
  Bloom* bloom = nullptr;
  if (!RequireFilter(context, Access::kRead, &bloom)) return;
  const Bloom::Stats stats = bloom->stats();
  protocol::Reply& reply = context.reply();
  reply.Map(11);
  reply.Bulk("m");
  reply.Int(static_cast<int64_t>(stats.bits));
  reply.Bulk("n");
  reply.Int(static_cast<int64_t>(stats.items));
  reply.Bulk("k");
  reply.Int(stats.hashes);
  reply.Bulk("fill");
  reply.Double(stats.fill);
  reply.Bulk("rate_formula");
  reply.Double(stats.rate_formula);
  reply.Bulk("rate_observed");
  reply.Double(stats.rate_observed);
  reply.Bulk("rate_promised");
  reply.Double(bloom->options().error);
  reply.Bulk("layout");
  reply.Bulk(bloom->encoding());
  reply.Bulk("stages");
  reply.Int(static_cast<int64_t>(stats.stages));
  reply.Bulk("deletable");
  reply.Bool(bloom->options().deletable);
  reply.Bulk("bytes");
  reply.Int(static_cast<int64_t>(bloom->MemoryUsage(0)));
}

void Debug(KeyContext& context) {
  Bloom* bloom = nullptr;
  if (!RequireFilter(context, Access::kRead, &bloom)) return;
  const std::vector<Bloom::Part> parts = bloom->parts();
  protocol::Reply& reply = context.reply();
  reply.Array(static_cast<int64_t>(parts.size()) + 1);
  reply.Bulk(fmt::format("size:{}", bloom->items()));
  for (const Bloom::Part& part : parts) {
    reply.Bulk(fmt::format("bytes:{} bits:{} hashes:{} hashwidth:64 capacity:{} size:{} ratio:{:g}",
                           part.bytes, part.bits, part.hashes, part.capacity, part.items,
                           bloom->options().error));
  }
}

// ---- carrying elsewhere ----

void Scandump(KeyContext& context) {
  Bloom* bloom = nullptr;
  if (!RequireFilter(context, Access::kRead, &bloom)) return;
  int64_t iterator = 0;
  if (!context.IntArg(2, &iterator, "Second argument must be numeric")) return;
  protocol::Reply& reply = context.reply();
  std::string chunk;
  if (iterator == 0) {
    iterator = 1;
    chunk = bloom->Header();
  } else if (!bloom->ReadChunk(&iterator, &chunk)) {
    iterator = 0;
  }
  reply.Array(2);
  reply.Int(iterator);
  reply.Bulk(chunk);
}

void Loadchunk(KeyContext& context) {
  int64_t iterator = 0;
  if (!context.IntArg(2, &iterator, "ERR Second argument must be numeric")) return;
  Bloom* bloom = nullptr;
  if (!FindObject(context, context.arg(1), Access::kWrite, &bloom)) return;
  if (bloom == nullptr && iterator != 1) {
    context.Error(kFilterNotFound);
    return;
  }
  std::unique_ptr<Bloom> made;
  if (bloom == nullptr) made = Bloom::FromHeader(context.arg(3));
  if (bloom == nullptr ? made == nullptr : !bloom->AddChunk(context.arg(3))) {
    context.Error(kBadData);
    return;
  }
  FilterChanged(context, std::move(made), 1, "bf.loadchunk");
  context.reply().Ok();
}

// ---- rows ----

constexpr KeySpec kReadKey = KeyAt(1, kKeyRo | kKeyAccess);
constexpr KeySpec kAddKey = KeyAt(1, kKeyRw | kKeyInsert);

const CommandSpec kRows[] = {
    {.name = "bf.reserve",
     .handler = Reserve,
     .arity = -4,
     .flags = kWrite | kDenyOom,
     .keys = {KeyAt(1, kKeyOw | kKeyInsert)},
     .group = "bf",
     .summary = "Makes an empty Bloom filter for a number of items at a rate of false positives.",
     .complexity = "O(1)",
     .arguments = "key error-rate:double capacity:integer [EXPANSION expansion:integer] "
                  "[NONSCALING] [LAYOUT (BLOCKED | CLASSIC)] [DELETABLE]",
     .reply = "OK",
     .example = "BF.RESERVE seen 0.01 1000000"},
    {.name = "bf.add",
     .handler = Add,
     .arity = 3,
     .flags = kWrite | kDenyOom | kFast,
     .keys = {kAddKey},
     .group = "bf",
     .summary = "Adds an item to a Bloom filter; makes the filter when it is missing.",
     .complexity = "O(K) where K is the number of hashes",
     .arguments = "key item:string",
     .reply = "1 when the item is new, 0 when it may have been there; booleans in RESP3",
     .example = "BF.ADD seen alice@example.com"},
    {.name = "bf.madd",
     .handler = Madd,
     .arity = -3,
     .flags = kWrite | kDenyOom,
     .keys = {kAddKey},
     .group = "bf",
     .summary = "Adds items to a Bloom filter; makes the filter when it is missing.",
     .complexity = "O(K * N) where K is the number of hashes and N the number of items",
     .arguments = "key item:string [item:string ...]",
     .reply = "array: as BF.ADD for each item, up to the one for which a filter that does not "
              "grow has no room",
     .example = "BF.MADD seen alice@example.com bob@example.com"},
    {.name = "bf.insert",
     .handler = Insert,
     .arity = -4,
     .flags = kWrite | kDenyOom,
     .keys = {kAddKey},
     .group = "bf",
     .summary = "Adds items to a Bloom filter and says how to make it when it is missing.",
     .complexity = "O(K * N) where K is the number of hashes and N the number of items",
     .arguments = "key [CAPACITY capacity:integer] [ERROR error:double] "
                  "[EXPANSION expansion:integer] [NOCREATE] [NONSCALING] "
                  "[LAYOUT (BLOCKED | CLASSIC)] [DELETABLE] ITEMS item:string [item:string ...]",
     .reply = "array: as BF.MADD",
     .example = "BF.INSERT seen CAPACITY 10000 ERROR 0.001 ITEMS alice@example.com"},
    {.name = "bf.del",
     .handler = Del,
     .arity = 3,
     .flags = kWrite | kFast,
     .keys = {KeyAt(1, kKeyRw | kKeyDelete)},
     .group = "bf",
     .since = "0.1.0",
     .summary = "Deletes an item from a filter reserved with DELETABLE, once.",
     .complexity = "O(1)",
     .arguments = "key item:string",
     .reply = "1 when it was there, else 0; booleans in RESP3",
     .example = "BF.DEL blocked 192.0.2.1"},
    {.name = "bf.merge",
     .handler = Merge,
     .arity = -3,
     .flags = kWrite | kDenyOom,
     .keys = {KeyAt(1, kKeyRw | kKeyAccess | kKeyInsert), KeysFrom(2, 1, kKeyRo | kKeyAccess)},
     .group = "bf",
     .since = "0.1.0",
     .summary = "Adds all items of other Bloom filters to a filter.",
     .complexity = "O(N) where N is the size of the sources",
     .arguments = "destination:key source:key [source:key ...]",
     .reply = "OK",
     .example = "BF.MERGE seen:all seen:monday seen:tuesday"},
    {.name = "bf.exists",
     .handler = Exists,
     .arity = 3,
     .flags = kReadonly | kFast,
     .keys = {kReadKey},
     .group = "bf",
     .summary = "Tells whether an item may have been added to a Bloom filter.",
     .complexity = "O(K) where K is the number of hashes",
     .arguments = "key item:string",
     .reply = "1 when it may have been added, 0 when it was not; booleans in RESP3",
     .example = "BF.EXISTS seen alice@example.com"},
    {.name = "bf.mexists",
     .handler = Mexists,
     .arity = -3,
     .flags = kReadonly | kFast,
     .keys = {kReadKey},
     .group = "bf",
     .summary = "Tells of several items whether they may have been added to a Bloom filter.",
     .complexity = "O(K * N) where K is the number of hashes and N the number of items",
     .arguments = "key item:string [item:string ...]",
     .reply = "array: as BF.EXISTS for each item",
     .example = "BF.MEXISTS seen alice@example.com bob@example.com"},
    {.name = "bf.card",
     .handler = Card,
     .arity = 2,
     .flags = kReadonly | kFast,
     .keys = {KeyAt(1, kKeyRo)},
     .group = "bf",
     .summary = "Tells how many different items were added, as far as the filter can tell.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "integer: 0 for a missing key",
     .example = "BF.CARD seen"},
    {.name = "bf.info",
     .handler = Info,
     .arity = -2,
     .flags = kReadonly | kFast,
     .keys = {KeyAt(1, kKeyRo)},
     .group = "bf",
     .summary = "Tells what a Bloom filter was made for and how large it is.",
     .complexity = "O(1)",
     .arguments = "key [CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION]",
     .reply = "map: Capacity, Size, Number of filters, Number of items inserted, Expansion rate; "
              "or an array with one of these numbers",
     .example = "BF.INFO seen"},
    {.name = "bf.stats",
     .handler = Stats,
     .arity = 2,
     .flags = kReadonly,
     .keys = {KeyAt(1, kKeyRo)},
     .group = "bf",
     .since = "0.1.0",
     .summary =
         "Tells a Bloom filter's numbers: bits, items, hashes, fill, and its rate by formula "
         "and as its bits say.",
     .complexity = "O(M) where M is the number of bits, 4 MB of them at most",
     .arguments = "key",
     .reply = "map: m, n, k, fill, rate_formula, rate_observed, rate_promised, layout, stages, "
              "deletable, bytes",
     .example = "BF.STATS seen"},
    {.name = "bf.debug",
     .handler = Debug,
     .arity = 2,
     .flags = kReadonly | kFast,
     .keys = {KeyAt(1, kKeyRo)},
     .group = "bf",
     .summary = "Tells how many items a Bloom filter has, and a line of numbers for each stage.",
     .complexity = "O(N) where N is the number of stages",
     .arguments = "key",
     .reply = "array: size, then for each stage bytes, bits, hashes, hashwidth, capacity, size, "
              "ratio",
     .example = "BF.DEBUG seen"},
    {.name = "bf.scandump",
     .handler = Scandump,
     .arity = 3,
     .flags = kReadonly,
     .keys = {KeyAt(1, kKeyRo | kKeyAccess)},
     .group = "bf",
     .summary = "Reads a Bloom filter chunk by chunk, to carry it elsewhere.",
     .complexity = "O(N) where N is the size of the chunk",
     .arguments = "key iterator:integer",
     .reply = "array: the next iterator and a chunk; 0 and an empty chunk behind the last",
     .example = "BF.SCANDUMP seen 0"},
    {.name = "bf.loadchunk",
     .handler = Loadchunk,
     .arity = 4,
     .flags = kWrite | kDenyOom,
     .keys = {kAddKey},
     .group = "bf",
     .summary = "Puts a chunk of BF.SCANDUMP into a Bloom filter; the first makes it.",
     .complexity = "O(N) where N is the size of the chunk",
     .arguments = "key iterator:integer data:string",
     .reply = "OK",
     .example = "BF.LOADCHUNK copy 1 data"},
};

}  // namespace

std::span<const CommandSpec> BloomCommands() { return kRows; }

}  // namespace sava::commands
