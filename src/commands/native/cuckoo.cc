// The CF.* family: cuckoo filters (docs/types/cuckoo.md), with the names, options, replies
// and errors of RedisBloom. Every change is logged as it came.
#include "types/filters/cuckoo.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "commands/native/families.h"
#include "commands/native/filters.h"
#include "commands/registry.h"

namespace sava::commands {

namespace {

using types::Cuckoo;

constexpr std::string_view kTooSmall = "Capacity must be at least (BucketSize * 2)";
constexpr std::string_view kBadPosition = "Invalid position";

constexpr int64_t kMaxCapacity = int64_t{1} << 40;
constexpr int64_t kMaxBucketSize = 255;
constexpr int64_t kMaxIterations = 65535;
constexpr int64_t kMaxExpansion = 32768;

// ---- making ----

// One of the numbers of CF.RESERVE.
struct Parameter {
  std::string_view name;
  std::string_view unparsed;
  std::string_view out_of_range;
  int64_t least;
  int64_t most;
  uint64_t Cuckoo::Options::*field;
};

constexpr Parameter kParameters[] = {
    {"BUCKETSIZE", "Couldn't parse BUCKETSIZE",
     "BUCKETSIZE: value must be an integer between 1 and 255, inclusive.", 1, kMaxBucketSize,
     &Cuckoo::Options::bucket_size},
    {"MAXITERATIONS", "Couldn't parse MAXITERATIONS",
     "MAXITERATIONS: value must be an integer between 1 and 65535, inclusive.", 1, kMaxIterations,
     &Cuckoo::Options::max_iterations},
    {"EXPANSION", "Couldn't parse EXPANSION",
     "EXPANSION: value must be an integer between 0 and 32768, inclusive.", 0, kMaxExpansion,
     &Cuckoo::Options::expansion},
};

bool ParseCapacity(KeyContext& context, size_t i, uint64_t* capacity) {
  int64_t number = 0;
  if (!context.IntArg(i, &number, "Bad capacity")) return false;
  if (number > kMaxCapacity) {
    context.Error("Bad capacity");
    return false;
  }
  *capacity = number < 0 ? 0 : static_cast<uint64_t>(number);
  return true;
}

bool ParseParameter(KeyContext& context, size_t i, Cuckoo::Options* options) {
  for (const Parameter& parameter : kParameters) {
    if (!context.ArgIs(i, parameter.name)) continue;
    int64_t number = 0;
    if (!context.IntArg(i + 1, &number, parameter.unparsed)) return false;
    if (number < parameter.least || number > parameter.most) {
      context.Error(parameter.out_of_range);
      return false;
    }
    options->*parameter.field = static_cast<uint64_t>(number);
    return true;
  }
  context.Error(errors::kSyntax);
  return false;
}

void Reserve(KeyContext& context) {
  if (context.argc() % 2 == 0) {
    context.ArityError();
    return;
  }
  Cuckoo::Options options;
  if (!ParseCapacity(context, 2, &options.capacity)) return;
  for (size_t i = 3; i < context.argc(); i += 2) {
    if (!ParseParameter(context, i, &options)) return;
  }
  if (options.capacity < options.bucket_size * 2) {
    context.Error(kTooSmall);
    return;
  }
  Cuckoo* cuckoo = nullptr;
  if (!FindObject(context, context.arg(1), Access::kWrite, &cuckoo)) return;
  if (cuckoo != nullptr) {
    context.Error(kFilterExists);
    return;
  }
  FilterChanged(context, std::make_unique<Cuckoo>(options), 1, "cf.reserve");
  context.reply().Ok();
}

// ---- adding ----

struct HowToAdd {
  size_t first = 2;  // where the items begin
  bool create = true;
  bool only_new = false;
  bool many = false;
  Cuckoo::Options options;
};

void ReplyAdded(protocol::Reply& reply, Cuckoo::Added added, bool many) {
  if (added != Cuckoo::Added::kFull) {
    reply.Bool(added == Cuckoo::Added::kAdded);
  } else if (many) {
    reply.Int(-1);
  } else {
    reply.Error("Filter is full");
  }
}

void AddItems(KeyContext& context, const HowToAdd& how) {
  Cuckoo* cuckoo = nullptr;
  if (!FindObject(context, context.arg(1), Access::kWrite, &cuckoo)) return;
  std::unique_ptr<Cuckoo> made;
  if (cuckoo == nullptr) {
    if (!how.create) {
      context.Error(kFilterNotFound);
      return;
    }
    made = std::make_unique<Cuckoo>(how.options);
    cuckoo = made.get();
  }
  const std::vector<uint64_t> hashes = HashItems(context, how.first, how.many ? cuckoo : nullptr);
  int64_t changes = made != nullptr ? 1 : 0;
  if (how.many) context.reply().Array(static_cast<int64_t>(hashes.size()));
  for (const uint64_t hash : hashes) {
    const Cuckoo::Added added = how.only_new ? cuckoo->AddNew(hash) : cuckoo->Add(hash);
    if (added == Cuckoo::Added::kAdded) ++changes;
    ReplyAdded(context.reply(), added, how.many);
  }
  if (changes != 0) FilterChanged(context, std::move(made), changes, "cf.add");
}

void Add(KeyContext& context) { AddItems(context, {}); }
void AddNx(KeyContext& context) { AddItems(context, {.only_new = true, .options = {}}); }

void InsertItems(KeyContext& context, bool only_new) {
  HowToAdd how{.only_new = only_new, .many = true, .options = {}};
  size_t i = 2;
  for (; i < context.argc() && !context.ArgIs(i, "ITEMS"); ++i) {
    if (context.ArgIs(i, "NOCREATE")) {
      how.create = false;
    } else if (!context.ArgIs(i, "CAPACITY")) {
      context.Error("Unknown argument received");
      return;
    } else if (++i == context.argc()) {
      context.ArityError();
      return;
    } else if (!ParseCapacity(context, i, &how.options.capacity)) {
      return;
    } else if (how.options.capacity < how.options.bucket_size * 2) {
      context.Error(kTooSmall);
      return;
    }
  }
  if (i + 1 >= context.argc()) {
    context.ArityError();
    return;
  }
  how.first = i + 1;
  AddItems(context, how);
}

void Insert(KeyContext& context) { InsertItems(context, false); }
void InsertNx(KeyContext& context) { InsertItems(context, true); }

void Del(KeyContext& context) {
  Cuckoo* cuckoo = nullptr;
  if (!RequireFilter(context, Access::kWrite, &cuckoo, "Not found")) return;
  const bool removed = cuckoo->Remove(types::FilterHash(context.arg(2)));
  if (removed) FilterChanged<Cuckoo>(context, nullptr, 1, "cf.del");
  context.reply().Bool(removed);
}

void Compact(KeyContext& context) {
  Cuckoo* cuckoo = nullptr;
  if (!RequireFilter(context, Access::kWrite, &cuckoo, "Cuckoo filter was not found")) return;
  cuckoo->Compact();
  FilterChanged<Cuckoo>(context, nullptr, 1, "cf.compact");
  context.reply().Ok();
}

// ---- asking ----

void Exists(KeyContext& context) {
  Cuckoo* cuckoo = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &cuckoo)) return;
  context.reply().Bool(cuckoo != nullptr && cuckoo->Count(types::FilterHash(context.arg(2))) != 0);
}

void Mexists(KeyContext& context) {
  Cuckoo* cuckoo = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &cuckoo)) return;
  const std::vector<uint64_t> hashes = HashItems(context, 2, cuckoo);
  context.reply().Array(static_cast<int64_t>(hashes.size()));
  for (const uint64_t hash : hashes) {
    context.reply().Bool(cuckoo != nullptr && cuckoo->Count(hash) != 0);
  }
}

void Count(KeyContext& context) {
  Cuckoo* cuckoo = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &cuckoo)) return;
  context.reply().Int(cuckoo == nullptr ? 0 : cuckoo->Count(types::FilterHash(context.arg(2))));
}

void Info(KeyContext& context) {
  Cuckoo* cuckoo = nullptr;
  if (!RequireFilter(context, Access::kRead, &cuckoo)) return;
  const Cuckoo::Options& options = cuckoo->options();
  const std::pair<std::string_view, uint64_t> fields[] = {
      {"Size", cuckoo->MemoryUsage(0)},
      {"Number of buckets", cuckoo->buckets()},
      {"Number of filters", cuckoo->filters()},
      {"Number of items inserted", cuckoo->items()},
      {"Number of items deleted", cuckoo->deleted()},
      {"Bucket size", options.bucket_size},
      {"Expansion rate", options.expansion},
      {"Max iterations", options.max_iterations},
  };
  context.reply().Map(std::size(fields));
  for (const auto& [name, number] : fields) {
    context.reply().Simple(name);
    context.reply().Int(static_cast<int64_t>(number));
  }
}

void Debug(KeyContext& context) {
  Cuckoo* cuckoo = nullptr;
  if (!RequireFilter(context, Access::kRead, &cuckoo)) return;
  const Cuckoo::Options& options = cuckoo->options();
  context.reply().Bulk(fmt::format(
      "bktsize:{} buckets:{} items:{} deletes:{} filters:{} max_iterations:{} expansion:{}",
      options.bucket_size, cuckoo->buckets(), cuckoo->items(), cuckoo->deleted(), cuckoo->filters(),
      options.max_iterations, options.expansion));
}

// ---- carrying elsewhere ----

void Scandump(KeyContext& context) {
  int64_t position = 0;
  if (!context.IntArg(2, &position, kBadPosition)) return;
  Cuckoo* cuckoo = nullptr;
  if (!RequireFilter(context, Access::kRead, &cuckoo)) return;
  protocol::Reply& reply = context.reply();
  std::string chunk;
  bool there = cuckoo->items() != 0;
  if (there && position == 0) {
    position = 1;
    chunk = cuckoo->Header();
  } else if (there) {
    there = cuckoo->ReadChunk(&position, &chunk);
  }
  reply.Array(2);
  reply.Int(there ? position : 0);
  if (there) {
    reply.Bulk(chunk);
  } else {
    reply.Null();
  }
}

void Loadchunk(KeyContext& context) {
  int64_t position = 0;
  if (!context.IntArg(2, &position, kBadPosition)) return;
  if (position == 0) {
    context.Error(kBadPosition);
    return;
  }
  Cuckoo* cuckoo = nullptr;
  if (!FindObject(context, context.arg(1), Access::kWrite, &cuckoo)) return;
  std::unique_ptr<Cuckoo> made;
  if (position == 1) {
    if (cuckoo != nullptr) {
      context.Error(kFilterExists);
      return;
    }
    made = Cuckoo::FromHeader(context.arg(3));
    if (made == nullptr) {
      context.Error("Invalid header");
      return;
    }
  } else if (cuckoo == nullptr) {
    context.Error(kFilterNotFound);
    return;
  } else if (!cuckoo->AddChunk(context.arg(3))) {
    context.Error("Couldn't load chunk!");
    return;
  }
  FilterChanged(context, std::move(made), 1, "cf.loadchunk");
  context.reply().Ok();
}

// ---- rows ----

constexpr KeySpec kReadKey = KeyAt(1, kKeyRo | kKeyAccess);
constexpr KeySpec kAddKey = KeyAt(1, kKeyRw | kKeyInsert);

const CommandSpec kRows[] = {
    {.name = "cf.reserve",
     .handler = Reserve,
     .arity = -3,
     .flags = kWrite | kDenyOom,
     .keys = {KeyAt(1, kKeyOw | kKeyInsert)},
     .group = "cf",
     .summary = "Makes an empty cuckoo filter.",
     .complexity = "O(1)",
     .arguments = "key capacity:integer [BUCKETSIZE bucketsize:integer] "
                  "[MAXITERATIONS maxiterations:integer] [EXPANSION expansion:integer]",
     .reply = "OK",
     .example = "CF.RESERVE sessions 100000"},
    {.name = "cf.add",
     .handler = Add,
     .arity = 3,
     .flags = kWrite | kDenyOom | kFast,
     .keys = {kAddKey},
     .group = "cf",
     .summary = "Adds an item to a cuckoo filter, also once more; makes the filter when it is "
                "missing.",
     .complexity = "O(1)",
     .arguments = "key item:string",
     .reply = "1; a boolean in RESP3",
     .example = "CF.ADD sessions 4711"},
    {.name = "cf.addnx",
     .handler = AddNx,
     .arity = 3,
     .flags = kWrite | kDenyOom | kFast,
     .keys = {kAddKey},
     .group = "cf",
     .summary = "Adds an item to a cuckoo filter unless it may be there already.",
     .complexity = "O(1)",
     .arguments = "key item:string",
     .reply = "1 when it was added, 0 when it may have been there; booleans in RESP3",
     .example = "CF.ADDNX sessions 4711"},
    {.name = "cf.insert",
     .handler = Insert,
     .arity = -4,
     .flags = kWrite | kDenyOom,
     .keys = {kAddKey},
     .group = "cf",
     .summary = "Adds items to a cuckoo filter and says how to make it when it is missing.",
     .complexity = "O(N) where N is the number of items",
     .arguments = "key [CAPACITY capacity:integer] [NOCREATE] ITEMS item:string "
                  "[item:string ...]",
     .reply = "array: 1 for each item, -1 when the filter is full; booleans in RESP3",
     .example = "CF.INSERT sessions CAPACITY 1000 ITEMS 4711 4712"},
    {.name = "cf.insertnx",
     .handler = InsertNx,
     .arity = -4,
     .flags = kWrite | kDenyOom,
     .keys = {kAddKey},
     .group = "cf",
     .summary = "Adds items to a cuckoo filter unless they may be there already.",
     .complexity = "O(N) where N is the number of items",
     .arguments = "key [CAPACITY capacity:integer] [NOCREATE] ITEMS item:string "
                  "[item:string ...]",
     .reply = "array: 1 or 0 for each item, -1 when the filter is full; booleans in RESP3",
     .example = "CF.INSERTNX sessions CAPACITY 1000 ITEMS 4711 4712"},
    {.name = "cf.exists",
     .handler = Exists,
     .arity = 3,
     .flags = kReadonly | kFast,
     .keys = {kReadKey},
     .group = "cf",
     .summary = "Tells whether an item may be in a cuckoo filter.",
     .complexity = "O(1)",
     .arguments = "key item:string",
     .reply = "1 when it may be there, 0 when it is not; booleans in RESP3",
     .example = "CF.EXISTS sessions 4711"},
    {.name = "cf.mexists",
     .handler = Mexists,
     .arity = -3,
     .flags = kReadonly | kFast,
     .keys = {kReadKey},
     .group = "cf",
     .summary = "Tells of several items whether they may be in a cuckoo filter.",
     .complexity = "O(N) where N is the number of items",
     .arguments = "key item:string [item:string ...]",
     .reply = "array: as CF.EXISTS for each item",
     .example = "CF.MEXISTS sessions 4711 4712"},
    {.name = "cf.count",
     .handler = Count,
     .arity = 3,
     .flags = kReadonly | kFast,
     .keys = {kReadKey},
     .group = "cf",
     .summary = "Tells how often an item may have been added; too high at the filter's rate, never "
                "too low.",
     .complexity = "O(1)",
     .arguments = "key item:string",
     .reply = "integer: 255 at most",
     .example = "CF.COUNT sessions 4711"},
    {.name = "cf.del",
     .handler = Del,
     .arity = 3,
     .flags = kWrite | kFast,
     .keys = {KeyAt(1, kKeyRw | kKeyDelete)},
     .group = "cf",
     .summary = "Deletes an item from a cuckoo filter, once.",
     .complexity = "O(1)",
     .arguments = "key item:string",
     .reply = "1 when it was there, else 0; booleans in RESP3",
     .example = "CF.DEL sessions 4711"},
    {.name = "cf.info",
     .handler = Info,
     .arity = 2,
     .flags = kReadonly | kFast,
     .keys = {KeyAt(1, kKeyRo)},
     .group = "cf",
     .summary = "Tells what a cuckoo filter was made for and how large it is.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply =
         "map: Size, Number of buckets, Number of filters, Number of items inserted, Number of "
         "items deleted, Bucket size, Expansion rate, Max iterations",
     .example = "CF.INFO sessions"},
    {.name = "cf.compact",
     .handler = Compact,
     .arity = 2,
     .flags = kWrite,
     .keys = {KeyAt(1, kKeyRw)},
     .group = "cf",
     .summary = "Gives back the memory that deletions left unused in a cuckoo filter.",
     .complexity = "O(N) where N is the number of items",
     .arguments = "key",
     .reply = "OK",
     .example = "CF.COMPACT sessions"},
    {.name = "cf.debug",
     .handler = Debug,
     .arity = 2,
     .flags = kReadonly | kFast,
     .keys = {KeyAt(1, kKeyRo)},
     .group = "cf",
     .summary = "Tells the numbers of CF.INFO in one line.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "string: bktsize, buckets, items, deletes, filters, max_iterations, expansion",
     .example = "CF.DEBUG sessions"},
    {.name = "cf.scandump",
     .handler = Scandump,
     .arity = 3,
     .flags = kReadonly,
     .keys = {KeyAt(1, kKeyRo | kKeyAccess)},
     .group = "cf",
     .summary = "Reads a cuckoo filter chunk by chunk, to carry it elsewhere.",
     .complexity = "O(N) where N is the size of the chunk",
     .arguments = "key iterator:integer",
     .reply = "array: the next iterator and a chunk; 0 and nothing behind the last",
     .example = "CF.SCANDUMP sessions 0"},
    {.name = "cf.loadchunk",
     .handler = Loadchunk,
     .arity = 4,
     .flags = kWrite | kDenyOom,
     .keys = {kAddKey},
     .group = "cf",
     .summary = "Puts a chunk of CF.SCANDUMP into a cuckoo filter; the first makes it.",
     .complexity = "O(N) where N is the size of the chunk",
     .arguments = "key iterator:integer data:string",
     .reply = "OK",
     .example = "CF.LOADCHUNK copy 1 data"},
};

}  // namespace

std::span<const CommandSpec> CuckooCommands() { return kRows; }

}  // namespace sava::commands
