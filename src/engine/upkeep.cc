#include "engine/upkeep.h"

#include "base/if_memory.h"
#include "engine/engine.h"
#include "engine/keys.h"

namespace sava::engine {

using keyspace::Keyspace;

bool StripeUpkeep::Run(Lane& lane) {
  engine_.BeginBatch(lane);
  Limiter& limiter = engine_.limiter();
  if (limiter.engaged()) {
    engine_.charging().WriteBuckets(lane);
    if (lane.index == 0) base::IfMemory([&] { limiter.Prune(lane.now_ms); });
  }
  // A visit to every stripe that belongs to this lane, unless that takes too long at once.
  const base::Budget budget(500);
  const size_t lanes = engine_.lanes().size();
  bool more = false;
  for (size_t visited = 0; visited < Keyspace::kStripes; ++visited) {
    const size_t stripe = lane.upkeep.stripe;
    lane.upkeep.stripe = (lane.upkeep.stripe + 1) % Keyspace::kStripes;
    if (stripe % lanes == lane.index) more = VisitStripe(lane, stripe) || more;
    if (budget.spent() || engine_.keyspace().gate().wanted()) {
      more = true;
      break;
    }
  }
  engine_.EndBatch(lane);
  return more;
}

// True when the stripe has more to do than one visit allows.
bool StripeUpkeep::VisitStripe(Lane& lane, size_t stripe) {
  Keyspace& keyspace = engine_.keyspace();
  const StripeGuard guard(lane.locks, stripe, StripeGuard::How::kTry);
  if (!guard.locked()) return false;
  const Admission& admission = engine_.admission();
  const bool expire = engine_.switches().active_expire.load(std::memory_order_relaxed) &&
                      admission.MayRemoveExpired(lane.now_ms) && !admission.loading();
  bool more = false;
  for (int db = 0; db < keyspace.databases(); ++db) {
    keyspace::Table* table = keyspace.table(db, stripe);
    if (table == nullptr) continue;
    if (expire) more = ExpireKeys(lane, db, *table) || more;
    const size_t moved = table->Compact();
    lane.stats.upkeep.compacted.Add(moved);
    more = more || moved > 0;
    engine_.memory().DropIfEmpty(db, stripe);
  }
  engine_.waiting().ServeReady(lane);
  return engine_.tracking().Trim(lane, stripe) || more;
}

bool StripeUpkeep::ExpireKeys(Lane& lane, int db, keyspace::Table& table) {
  const Keyspace& keyspace = engine_.keyspace();
  const uint64_t start = base::Ticks();
  const auto budget = static_cast<size_t>(64 * engine_.settings().active_expire_effort);
  size_t looked = 0;
  DoUpkeep(lane, [&](Keys& keys) {
    looked = table.Expire(
        lane.now_ms, budget,
        [&](keyspace::Entry* entry) { keys.Expire(db, table, entry, keyspace.Hash(entry->key())); },
        [&](keyspace::Entry* entry) {
          keys.ExpireParts(db, table, entry, keyspace.Hash(entry->key()), budget);
        });
  });
  const uint64_t nanos = engine_.observer().Nanos(base::Ticks() - start);
  lane.stats.upkeep.expire_nanos.Add(nanos);
  const int64_t threshold = engine_.settings().latency_monitor_threshold;
  if (threshold > 0) {
    engine_.observer().latency().Add("expire-cycle", lane.now_ms / 1000,
                                     static_cast<int64_t>(nanos / 1000000), threshold);
  }
  if (looked < budget) return false;
  lane.stats.upkeep.expire_cycles_capped.Add();
  return true;
}

}  // namespace sava::engine
