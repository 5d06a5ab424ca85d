// The PF* family: estimating how many different elements were seen
// (docs/types/hyperloglog.md). The value is a string, with the same bytes as Redis's.
#include "types/sketches/hyperloglog.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "base/text.h"
#include "commands/context.h"
#include "commands/redis/families.h"
#include "commands/registry.h"

namespace sava::commands {

namespace {

namespace hll = types::hyperloglog;

constexpr std::string_view kNoEstimator = "WRONGTYPE Key is not a valid HyperLogLog string value.";
constexpr std::string_view kDamaged = "INVALIDOBJ Corrupted HLL object detected";

// The estimator at a key, empty when there is none; replies an error and returns false when
// something else is there.
bool FindEstimator(Context& context, std::string_view key, Access access, std::string_view* bytes) {
  const Value value = context.Find(key, access);
  if (!context.RequireString(value)) return false;
  *bytes = value.bytes;
  if (!value) return true;
  if (!value.is_int() && hll::Valid(value.bytes)) return true;
  context.Error(kNoEstimator);
  return false;
}

// Puts changed bytes back; the string is raw whatever its length, as in Redis.
void Store(Context& context, std::string_view key, size_t old_size, std::string_view bytes) {
  if (bytes.size() < old_size) context.SetString(key, bytes, kKeepExpiry, false);
  memcpy(context.EditString(key, bytes.size()), bytes.data(), bytes.size());
}

void EstimatorChanged(Context& context, std::string_view key, int64_t changes) {
  context.Notify(kNotifyString, "pfadd", key);
  context.Changed(changes);
}

// ---- PFADD ----

int64_t AddToDense(Context& context, std::string_view key, std::string_view bytes) {
  int64_t changes = 0;
  char* edited = nullptr;
  const char* seen = bytes.data();
  for (const std::string_view element : context.args().subspan(2)) {
    const hll::Mark mark = hll::MarkOf(element);
    if (hll::DenseAt(seen, mark.index) >= mark.rank) continue;
    if (edited == nullptr) edited = context.EditString(key, hll::kDenseSize);
    seen = edited;
    hll::SetDenseAt(edited, mark.index, mark.rank);
    ++changes;
  }
  if (edited != nullptr) hll::ForgetCount(edited);
  return changes;
}

void Pfadd(Context& context) {
  const std::string_view key = context.arg(1);
  std::string_view bytes;
  if (!FindEstimator(context, key, Access::kWrite, &bytes)) return;
  int64_t changes = 0;
  if (!bytes.empty() && hll::IsDense(bytes)) {
    changes = AddToDense(context, key, bytes);
  } else {
    const uint64_t most = context.collection_limits().hll_sparse_max_bytes;
    std::string changed(bytes);
    if (bytes.empty()) {
      changed = hll::New();
      ++changes;
    }
    for (const std::string_view element : context.args().subspan(2)) {
      const hll::Change change = hll::Set(&changed, hll::MarkOf(element), most);
      if (change == hll::Change::kDamaged) return context.Error(kDamaged);
      if (change == hll::Change::kChanged) ++changes;
    }
    if (changes > 0) {
      hll::ForgetCount(changed.data());
      Store(context, key, bytes.size(), changed);
    }
  }
  if (changes > 0) EstimatorChanged(context, key, changes);
  context.reply().Int(changes > 0 ? 1 : 0);
}

// ---- PFCOUNT ----

// The estimate is kept in the string: that changes it.
void CountOne(Context& context) {
  const std::string_view key = context.arg(1);
  std::string_view bytes;
  if (!FindEstimator(context, key, Access::kRead, &bytes)) return;
  if (bytes.empty()) return context.reply().Int(0);
  uint64_t count = 0;
  if (!hll::KeptCount(bytes, &count)) {
    if (!hll::Count(bytes, &count)) return context.Error(kDamaged);
    hll::KeepCount(context.EditString(key, bytes.size()), count);
    context.Changed();
  }
  context.reply().Int(static_cast<int64_t>(count));
}

void Pfcount(Context& context) {
  if (context.argc() == 2) return CountOne(context);
  auto all = std::make_unique<hll::Registers>();
  for (const std::string_view key : context.args().subspan(1)) {
    std::string_view bytes;
    if (!FindEstimator(context, key, Access::kRead, &bytes)) return;
    if (!bytes.empty() && !hll::MergeInto(all.get(), bytes)) return context.Error(kDamaged);
  }
  context.reply().Int(static_cast<int64_t>(hll::Count(*all)));
}

// ---- PFMERGE ----

void Pfmerge(Context& context) {
  auto all = std::make_unique<hll::Registers>();
  bool dense = false;
  for (const std::string_view key : context.args().subspan(1)) {
    std::string_view bytes;
    if (!FindEstimator(context, key, Access::kRead, &bytes)) return;
    if (bytes.empty()) continue;
    dense = dense || hll::IsDense(bytes);
    if (!hll::MergeInto(all.get(), bytes)) return context.Error(kDamaged);
  }
  const std::string_view key = context.arg(1);
  std::string_view bytes;
  if (!FindEstimator(context, key, Access::kWrite, &bytes)) return;
  std::string merged = bytes.empty() ? hll::New() : std::string(bytes);
  if (dense && !hll::MakeDense(&merged)) return context.Error(kDamaged);
  const uint64_t most = context.collection_limits().hll_sparse_max_bytes;
  for (uint32_t i = 0; i < hll::kRegisters; ++i) {
    if ((*all)[i] != 0) hll::Set(&merged, {i, (*all)[i]}, most);
  }
  hll::ForgetCount(merged.data());
  Store(context, key, bytes.size(), merged);
  EstimatorChanged(context, key, 1);
  context.reply().Ok();
}

// ---- PFDEBUG ----

// Makes the estimator dense; what it is then. False when it is damaged, which is replied.
bool MadeDense(Context& context, std::string_view key, std::string_view bytes, std::string* dense) {
  *dense = bytes;
  if (!hll::MakeDense(dense)) {
    context.Error(kDamaged);
    return false;
  }
  if (!hll::IsDense(bytes)) {
    Store(context, key, bytes.size(), *dense);
    context.Changed();
  }
  return true;
}

void Pfdebug(Context& context) {
  const std::string_view key = context.arg(2);
  std::string_view bytes;
  if (!FindEstimator(context, key, Access::kWrite, &bytes)) return;
  if (bytes.empty()) return context.Error("ERR The specified key does not exist");
  protocol::Reply& reply = context.reply();
  const bool was_dense = hll::IsDense(bytes);
  std::string dense;
  if (context.ArgIs(1, "GETREG")) {
    if (!MadeDense(context, key, bytes, &dense)) return;
    reply.Array(hll::kRegisters);
    for (uint32_t i = 0; i < hll::kRegisters; ++i) reply.Int(hll::DenseAt(dense.data(), i));
  } else if (context.ArgIs(1, "DECODE")) {
    if (was_dense) return context.Error("ERR HLL encoding is not sparse");
    reply.Bulk(hll::Describe(bytes));
  } else if (context.ArgIs(1, "ENCODING")) {
    reply.Simple(was_dense ? "dense" : "sparse");
  } else if (context.ArgIs(1, "TODENSE")) {
    if (!MadeDense(context, key, bytes, &dense)) return;
    reply.Int(was_dense ? 0 : 1);
  } else {
    context.Error(fmt::format("ERR Unknown PFDEBUG subcommand '{}'", context.arg(1)));
  }
}

// ---- PFSELFTEST ----

// Empty if all is well.
std::string TestRegisters(Context& context) {
  std::string dense = hll::New();
  hll::MakeDense(&dense);
  auto expected = std::make_unique<hll::Registers>();
  for (int turn = 0; turn < 20; ++turn) {
    for (uint32_t i = 0; i < hll::kRegisters; ++i) {
      (*expected)[i] = static_cast<uint8_t>(context.Random() & 63);
      hll::SetDenseAt(dense.data(), i, (*expected)[i]);
    }
    for (uint32_t i = 0; i < hll::kRegisters; ++i) {
      if (hll::DenseAt(dense.data(), i) != (*expected)[i]) {
        return fmt::format("Register {} does not keep what it is set to", i);
      }
    }
  }
  return "";
}

std::string TestEstimates(Context& context) {
  const uint64_t seed = context.Random();
  std::string dense = hll::New();
  hll::MakeDense(&dense);
  std::string sparse = hll::New();
  uint64_t next = 1;
  for (uint64_t n = 1; n <= 100'000; ++n) {
    const uint64_t number = seed ^ n;
    const hll::Mark mark = hll::MarkOf({reinterpret_cast<const char*>(&number), sizeof number});
    hll::Set(&dense, mark, 0);
    hll::Set(&sparse, mark, hll::kDenseSize);
    if (n != next) continue;
    next = next < 10 ? next + 1 : next * 10;
    uint64_t estimates[2] = {0, 0};
    if (!hll::Count(dense, &estimates[0]) || !hll::Count(sparse, &estimates[1]) ||
        estimates[0] != estimates[1]) {
      return "The dense and the sparse form differ";
    }
    // Six standard errors of 1.04 / sqrt(registers).
    const double error = std::abs(static_cast<double>(estimates[0]) - static_cast<double>(n));
    if (error > std::ceil(static_cast<double>(n) * 6 * 1.04 / 128)) {
      return fmt::format("Too big error: {} elements are estimated as {}", n, estimates[0]);
    }
  }
  return "";
}

void Pfselftest(Context& context) {
  std::string problem = TestRegisters(context);
  if (problem.empty()) problem = TestEstimates(context);
  if (problem.empty()) return context.reply().Ok();
  context.Error("TESTFAILED " + problem);
}

// ---- rows ----

const CommandSpec kEstimatorRows[] = {
    {.name = "pfadd",
     .handler = Pfadd,
     .arity = -2,
     .flags = kWrite | kDenyOom | kFast,
     .acl = kAclHyperloglog,
     .keys = {KeyAt(1, kKeyRw | kKeyInsert)},
     .group = "hyperloglog",
     .since = "2.8.9",
     .summary = "Adds elements to an estimator of how many different ones there were.",
     .complexity = "O(N) where N is the number of elements given",
     .arguments = "key [element:string ...]",
     .reply = "1 when the estimate may have changed, else 0",
     .example = "PFADD visitors ada grace"},
    {.name = "pfcount",
     .handler = Pfcount,
     .arity = -2,
     .flags = kReadonly | kMayReplicate,
     .acl = kAclHyperloglog,
     .keys = {{.flags = kKeyRw | kKeyAccess,
               .first = 1,
               .last = -1,
               .notes = "RW because it may change the internal representation of the key, and "
                        "propagate to replicas"}},
     .group = "hyperloglog",
     .since = "2.8.9",
     .summary = "Estimates how many different elements one or several estimators have seen.",
     .complexity = "O(1) for one key, O(N) for N keys",
     .arguments = "key [key ...]",
     .reply = "integer",
     .example = "PFCOUNT visitors"},
    {.name = "pfmerge",
     .handler = Pfmerge,
     .arity = -2,
     .flags = kWrite | kDenyOom,
     .acl = kAclHyperloglog,
     .keys = {KeyAt(1, kKeyRw | kKeyAccess | kKeyInsert), KeysFrom(2, 1, kKeyRo | kKeyAccess)},
     .group = "hyperloglog",
     .since = "2.8.9",
     .summary = "Makes an estimator that has seen what it and others have.",
     .complexity = "O(N) where N is the number of estimators",
     .arguments = "destkey:key [sourcekey:key ...]",
     .reply = "OK",
     .example = "PFMERGE all visitors"},
    {.name = "pfdebug",
     .handler = Pfdebug,
     .arity = 3,
     .flags = kWrite | kDenyOom | kAdmin,
     .acl = kAclHyperloglog,
     .keys = {KeyAt(2, kKeyRw | kKeyAccess)},
     .group = "hyperloglog",
     .since = "2.8.9",
     .summary = "Looks inside an estimator: GETREG, DECODE, ENCODING, TODENSE.",
     .complexity = "N/A",
     .arguments = "subcommand:string key",
     .reply = "depends on the subcommand",
     .example = "PFDEBUG ENCODING visitors"},
    {.name = "pfselftest",
     .handler = Pfselftest,
     .arity = 1,
     .flags = kAdmin,
     .acl = kAclHyperloglog,
     .group = "hyperloglog",
     .since = "2.8.9",
     .summary = "Tests registers and estimates.",
     .complexity = "N/A",
     .arguments = "",
     .reply = "OK",
     .example = "PFSELFTEST"},
};

}  // namespace

std::span<const CommandSpec> HyperLogLogCommands() { return kEstimatorRows; }

}  // namespace sava::commands
