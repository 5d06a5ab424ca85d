// The SIMHASH.* family: near-duplicates among documents (docs/types/simhash.md). Whatever
// a document was added by, its fingerprint is what goes to the log.
#include <bit>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "commands/key_context.h"
#include "commands/native/families.h"
#include "commands/native/sketches.h"
#include "commands/registry.h"
#include "types/sketches/simhash.h"
#include "types/sketches/simhash_text.h"

namespace sava::commands {

namespace {

using types::SimHash;

constexpr std::string_view kBadHash = "ERR fingerprint must be 16 hexadecimal digits";
constexpr std::string_view kBadDistance = "ERR distance must be an integer from 0 to 64";
constexpr int64_t kBits = 64;

// What SIMHASH.INFO looks at to tell the size, as MEMORY USAGE does.
constexpr size_t kSamples = 5;

// ---- fingerprints ----

bool HashArg(KeyContext& context, size_t i, uint64_t* fingerprint) {
  if (types::ParseFingerprint(context.arg(i), fingerprint)) return true;
  context.Error(kBadHash);
  return false;
}

// The pairs of feature and weight from argument `first` to the end.
bool FeatureArgs(KeyContext& context, size_t first, uint64_t* fingerprint) {
  if ((context.argc() - first) % 2 != 0 || first == context.argc()) {
    context.Error(errors::kSyntax);
    return false;
  }
  types::FingerprintBuilder builder;
  for (size_t i = first; i < context.argc(); i += 2) {
    double weight = 0;
    if (!base::ParseDouble(context.arg(i + 1), &weight) || !std::isfinite(weight)) {
      context.Error(errors::kNotFloat);
      return false;
    }
    builder.Add(context.arg(i), weight);
  }
  *fingerprint = builder.Fingerprint();
  return true;
}

// TEXT t or HASH hex at argument i; replies the error and returns false when it is neither.
bool FingerprintArg(KeyContext& context, size_t i, uint64_t* fingerprint) {
  if (i + 1 < context.argc() && context.ArgIs(i, "HASH")) {
    return HashArg(context, i + 1, fingerprint);
  }
  if (i + 1 < context.argc() && context.ArgIs(i, "TEXT")) {
    *fingerprint = types::FingerprintOfText(context.arg(i + 1));
    return true;
  }
  context.Error(errors::kSyntax);
  return false;
}

// ---- changes ----

void Add(KeyContext& context) {
  const std::string_view key = context.arg(1);
  const std::string_view id = context.arg(2);
  uint64_t fingerprint = 0;
  if (context.ArgIs(3, "FEATURES")) {
    if (!FeatureArgs(context, 4, &fingerprint)) return;
  } else if (context.argc() != 5) {
    return context.Error(errors::kSyntax);
  } else if (!FingerprintArg(context, 3, &fingerprint)) {
    return;
  }
  SimHash* documents = nullptr;
  if (!FindObject(context, key, Access::kWrite, &documents)) return;
  const std::string text = types::FingerprintText(fingerprint);
  if (documents == nullptr) {
    auto made = std::make_unique<SimHash>();
    made->Add(id, fingerprint);
    context.SetObject(key, std::move(made));
  } else {
    documents->Add(id, fingerprint);
    context.Touched(key);
  }
  if (context.wants_effects()) context.Effect({"SIMHASH.ADD", key, id, "HASH", text});
  context.Changed();
  context.Notify(kNotifyModule, "simhash.add", key);
  context.reply().Bulk(text);
}

void Rem(KeyContext& context) {
  const std::string_view key = context.arg(1);
  SimHash* documents = nullptr;
  if (!FindObject(context, key, Access::kWrite, &documents)) return;
  int64_t removed = 0;
  for (size_t i = 2; documents != nullptr && i < context.argc(); ++i) {
    removed += documents->Remove(context.arg(i)) ? 1 : 0;
  }
  if (removed > 0) {
    SketchChanged(context, key, removed, "simhash.rem");
    if (documents->size() == 0) {
      context.Delete(key);
      context.Notify(kNotifyGeneric, "del", key);
    }
  }
  context.reply().Int(removed);
}

// ---- reading ----

struct QueryOptions {
  int64_t distance = SimHash::kIndexDistance;
  int64_t limit = INT64_MAX;
  bool with_distances = false;
};

bool ParseQuery(KeyContext& context, QueryOptions* options) {
  for (size_t i = 4; i < context.argc(); ++i) {
    const bool has_number = i + 1 < context.argc();
    if (context.ArgIs(i, "WITHDISTANCES")) {
      options->with_distances = true;
    } else if (has_number && context.ArgIs(i, "DISTANCE")) {
      if (!context.IntArg(++i, &options->distance, kBadDistance)) return false;
      if (options->distance < 0 || options->distance > kBits) {
        context.Error(kBadDistance);
        return false;
      }
    } else if (has_number && context.ArgIs(i, "LIMIT")) {
      if (!context.IntArg(++i, &options->limit)) return false;
      if (options->limit < 0) {
        context.Error(errors::kMustBePositive);
        return false;
      }
    } else {
      context.Error(errors::kSyntax);
      return false;
    }
  }
  return true;
}

void Query(KeyContext& context) {
  uint64_t fingerprint = 0;
  QueryOptions options;
  if (!FingerprintArg(context, 2, &fingerprint) || !ParseQuery(context, &options)) return;
  SimHash* documents = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &documents)) return;
  std::vector<SimHash::Match> found;
  if (documents != nullptr) {
    found = documents->Near(fingerprint, static_cast<int>(options.distance),
                            static_cast<size_t>(options.limit));
  }
  protocol::Reply& reply = context.reply();
  const bool pairs = options.with_distances && reply.resp() == 3;
  const bool flat = options.with_distances && !pairs;
  reply.Array(static_cast<int64_t>(found.size() * (flat ? 2 : 1)));
  for (const SimHash::Match& match : found) {
    if (pairs) reply.Array(2);
    reply.Bulk(match.id);
    if (options.with_distances) reply.Int(match.distance);
  }
}

void Dist(KeyContext& context) {
  SimHash* documents = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &documents)) return;
  std::optional<uint64_t> a;
  std::optional<uint64_t> b;
  if (documents != nullptr) {
    a = documents->Get(context.arg(2));
    b = documents->Get(context.arg(3));
  }
  a&& b ? context.reply().Int(std::popcount(*a ^ *b)) : context.reply().Null();
}

void Get(KeyContext& context) {
  SimHash* documents = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &documents)) return;
  std::optional<uint64_t> fingerprint;
  if (documents != nullptr) fingerprint = documents->Get(context.arg(2));
  if (fingerprint) {
    context.reply().Bulk(types::FingerprintText(*fingerprint));
  } else {
    context.reply().Null();
  }
}

void Card(KeyContext& context) {
  SimHash* documents = nullptr;
  if (!FindObject(context, context.arg(1), Access::kRead, &documents)) return;
  context.reply().Int(documents == nullptr ? 0 : static_cast<int64_t>(documents->size()));
}

void Info(KeyContext& context) {
  const std::string_view key = context.arg(1);
  SimHash* documents = nullptr;
  if (!NeedObject(context, key, Access::kRead, errors::kNoSuchKey, &documents)) return;
  protocol::Reply& reply = context.reply();
  reply.Map(4);
  reply.Bulk("documents");
  reply.Int(static_cast<int64_t>(documents->size()));
  reply.Bulk("bits");
  reply.Int(kBits);
  reply.Bulk("layout");
  reply.Bulk(documents->encoding());
  reply.Bulk("bytes");
  reply.Int(context.MemoryOf(key, kSamples));
}

// ---- rows ----

constexpr KeySpec kReadKey = KeyAt(1, kKeyRo | kKeyAccess);

const CommandSpec kRows[] = {
    {.name = "simhash.add",
     .handler = Add,
     .arity = -5,
     .flags = kWrite | kDenyOom,
     .keys = {KeyAt(1, kKeyRw | kKeyInsert)},
     .group = "simhash",
     .since = "0.1.0",
     .summary = "Keeps a document's fingerprint, made of its text or features or given as such.",
     .complexity = "O(N) where N is the length of the text or the number of features; O(1) by HASH",
     .arguments = "key id:string (TEXT text:string | HASH fingerprint:string | FEATURES "
                  "(feature:string weight:double) [(feature:string weight:double) ...])",
     .reply = "string: the fingerprint, 16 hexadecimal digits",
     .example = "SIMHASH.ADD pages home TEXT \"the quick brown fox jumps\""},
    {.name = "simhash.query",
     .handler = Query,
     .arity = -4,
     .flags = kReadonly,
     .keys = {kReadKey},
     .group = "simhash",
     .since = "0.1.0",
     .summary = "Finds the documents that differ in few bits, the nearest first.",
     .complexity = "O(N / 16384) for distances up to 3, O(N) beyond, where N is the number of "
                   "documents",
     .arguments = "key (TEXT text:string | HASH fingerprint:string) [DISTANCE distance:integer] "
                  "[LIMIT limit:integer] [WITHDISTANCES]",
     .reply = "array of ids; with WITHDISTANCES id, distance, id, distance … in RESP2, pairs in "
              "RESP3",
     .example = "SIMHASH.QUERY pages TEXT \"the quick brown fox leaps\" DISTANCE 10 WITHDISTANCES"},
    {.name = "simhash.dist",
     .handler = Dist,
     .arity = 4,
     .flags = kReadonly | kFast,
     .keys = {kReadKey},
     .group = "simhash",
     .since = "0.1.0",
     .summary = "Tells in how many bits two documents differ.",
     .complexity = "O(1)",
     .arguments = "key id1:string id2:string",
     .reply = "integer from 0 to 64, or null when one is not there",
     .example = "SIMHASH.DIST pages home about"},
    {.name = "simhash.get",
     .handler = Get,
     .arity = 3,
     .flags = kReadonly | kFast,
     .keys = {kReadKey},
     .group = "simhash",
     .since = "0.1.0",
     .summary = "Gets a document's fingerprint.",
     .complexity = "O(1)",
     .arguments = "key id:string",
     .reply = "string of 16 hexadecimal digits, or null when it is not there",
     .example = "SIMHASH.GET pages home"},
    {.name = "simhash.rem",
     .handler = Rem,
     .arity = -3,
     .flags = kWrite | kFast,
     .keys = {KeyAt(1, kKeyRw | kKeyDelete)},
     .group = "simhash",
     .since = "0.1.0",
     .summary = "Forgets documents, and the key when none is left.",
     .complexity = "O(M) where M is the number of ids given",
     .arguments = "key id:string [id:string ...]",
     .reply = "integer: how many were removed",
     .example = "SIMHASH.REM pages home"},
    {.name = "simhash.card",
     .handler = Card,
     .arity = 2,
     .flags = kReadonly | kFast,
     .keys = {KeyAt(1, kKeyRo)},
     .group = "simhash",
     .since = "0.1.0",
     .summary = "Tells how many documents there are.",
     .complexity = "O(1)",
     .arguments = "key",
     .reply = "integer: the number of documents, 0 for a missing key",
     .example = "SIMHASH.CARD pages"},
    {.name = "simhash.info",
     .handler = Info,
     .arity = 2,
     .flags = kReadonly | kFast,
     .keys = {KeyAt(1, kKeyRo)},
     .group = "simhash",
     .since = "0.1.0",
     .summary = "Tells the number of documents, how they are searched, and the memory.",
     .complexity = "O(N / 512) where N is the number of documents",
     .arguments = "key",
     .reply = "map: documents, bits, layout, bytes",
     .example = "SIMHASH.INFO pages"},
};

}  // namespace

std::span<const CommandSpec> SimHashCommands() { return kRows; }

}  // namespace sava::commands
