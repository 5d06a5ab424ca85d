// The part of Memory that evicts.
//
// As in Redis, the best of a few samples goes, helped by a small pool of the best candidates seen
// so far; each lane has its own pool. A lane claims the bytes it is going to free from one shared
// budget, so that several lanes over the limit together free the excess once.
#include <algorithm>

#include "base/if_memory.h"
#include "engine/aging.h"
#include "engine/engine.h"
#include "engine/keys.h"
#include "engine/memory.h"

namespace sava::engine {

using keyspace::Entry;
using keyspace::Keyspace;
using keyspace::Table;

namespace {

constexpr int64_t kClaim = 64 * 1024;

bool VolatileOnly(config::MaxmemoryPolicy policy) {
  return policy == config::MaxmemoryPolicy::kVolatileLru ||
         policy == config::MaxmemoryPolicy::kVolatileLfu ||
         policy == config::MaxmemoryPolicy::kVolatileRandom ||
         policy == config::MaxmemoryPolicy::kVolatileTtl;
}

bool RandomPolicy(config::MaxmemoryPolicy policy) {
  return policy == config::MaxmemoryPolicy::kVolatileRandom ||
         policy == config::MaxmemoryPolicy::kAllkeysRandom;
}

// Higher is better to evict.
uint64_t Score(const Entry& entry, const config::Settings& settings, int64_t now_ms,
               uint32_t lru_clock) {
  if (settings.maxmemory_policy == config::MaxmemoryPolicy::kVolatileTtl) {
    return UINT64_MAX - static_cast<uint64_t>(entry.expire_at());
  }
  if (UsesLfu(settings.maxmemory_policy)) {
    return static_cast<uint64_t>(255 - LfuDecayed(entry.age(), now_ms, settings));
  }
  return LruIdleSeconds(entry.age(), lru_clock);
}

// How many keys could be evicted there: of a table, or of a stripe's totals.
size_t Candidates(const Table& table, bool volatile_only) {
  return volatile_only ? table.expiring() : table.size();
}
size_t Candidates(const keyspace::Totals& totals, bool volatile_only) {
  return (volatile_only ? totals.expiring : totals.keys).load(std::memory_order_relaxed);
}

// A random table with something to evict, weighted by size; false when there is none anywhere. The
// keys counted may be gone when they are looked for: then db is -1.
bool PickTable(Keyspace& keyspace, base::Rng& rng, bool volatile_only, int* db, size_t* stripe) {
  size_t total = 0;
  for (size_t s = 0; s < Keyspace::kStripes; ++s) {
    total += Candidates(keyspace.stripe(s).totals, volatile_only);
  }
  *db = -1;
  if (total == 0) return false;
  size_t pick = rng.Below(total);
  *stripe = 0;
  for (; *stripe + 1 < Keyspace::kStripes; ++*stripe) {
    const size_t here = Candidates(keyspace.stripe(*stripe).totals, volatile_only);
    if (pick < here) break;
    pick -= here;
  }
  for (int i = 0; i < keyspace.databases(); ++i) {
    const Table* table = keyspace.table(i, *stripe);
    const size_t here = table == nullptr ? 0 : Candidates(*table, volatile_only);
    if (here == 0) continue;
    *db = i;
    if (pick < here) break;
    pick -= here;
  }
  return true;
}

}  // namespace

// Evicts the key of the entry. REQUIRES: the stripe's lock.
Memory::Evicted Memory::EvictAt(Lane& lane, int db, size_t stripe, Entry* entry, uint64_t hash) {
  const bool evicted = DoUpkeep(lane, [&](Keys& keys) {
    keys.Evict(db, *engine_.keyspace().table(db, stripe), entry, hash);
  });
  engine_.waiting().ServeReady(lane);
  DropIfEmpty(db, stripe);
  return evicted ? Evicted::kOne : Evicted::kNoMemory;
}

// Adds the sample to the lane's pool unless that has better ones.
void Memory::NoteCandidate(Lane& lane, int db, const Entry& entry) {
  const uint64_t score = Score(entry, settings_, lane.now_ms, lane.batch.lru_clock);
  std::vector<LaneMemory::Candidate>& pool = lane.memory.candidates;
  if (pool.size() >= LaneMemory::kCandidates && score <= pool.front().score) return;
  const std::string_view key = entry.key();
  const bool known = std::ranges::any_of(
      pool, [&](const LaneMemory::Candidate& c) { return c.db == db && c.key == key; });
  if (known) return;
  const auto at = std::upper_bound(
      pool.begin(), pool.end(), score,
      [](uint64_t value, const LaneMemory::Candidate& c) { return value < c.score; });
  pool.insert(at, {db, score, engine_.keyspace().Hash(key), std::string(key)});
  if (pool.size() > LaneMemory::kCandidates) pool.erase(pool.begin());
}

// Takes samples from a table: into the lane's pool, or, with a random policy, the first is evicted
// at once. REQUIRES: the stripe's lock.
std::optional<Memory::Evicted> Memory::SampleOrEvict(Lane& lane, int db, size_t stripe,
                                                     bool volatile_only) {
  Table* table = engine_.keyspace().table(db, stripe);
  const auto wanted = static_cast<size_t>(std::min<int64_t>(settings_.maxmemory_samples, 64));
  Entry* samples[64];
  size_t found = 0;
  for (int round = 0; table != nullptr && round < 16 && found < wanted; ++round) {
    Entry* some[8];
    const size_t n =
        volatile_only ? table->SampleExpiring(lane.rng, some, 8) : table->Sample(lane.rng, some, 8);
    for (size_t i = 0; i < n && found < wanted; ++i) samples[found++] = some[i];
  }
  if (found > 0 && RandomPolicy(settings_.maxmemory_policy)) {
    return EvictAt(lane, db, stripe, samples[0], engine_.keyspace().Hash(samples[0]->key()));
  }
  for (size_t i = 0; i < found; ++i) NoteCandidate(lane, db, *samples[i]);
  return std::nullopt;
}

// Evicts the best candidate that is still there, if one is.
std::optional<Memory::Evicted> Memory::EvictBest(Lane& lane, bool volatile_only) {
  while (!lane.memory.candidates.empty()) {
    const LaneMemory::Candidate best = std::move(lane.memory.candidates.back());
    lane.memory.candidates.pop_back();
    const size_t home = Keyspace::StripeOf(best.hash);
    const StripeGuard guard(lane.locks, home, StripeGuard::How::kTry);
    if (!guard.locked()) continue;
    const Table* holder = engine_.keyspace().table(best.db, home);
    Entry* entry = holder == nullptr ? nullptr : holder->Find(best.hash, best.key);
    if (entry == nullptr || (volatile_only && !entry->has(keyspace::kHasExpiry))) continue;
    return EvictAt(lane, best.db, home, entry, best.hash);
  }
  return std::nullopt;
}

// Fills the lane's pool from one random table and evicts the best candidate that is still there.
Memory::Evicted Memory::EvictOne(Lane& lane) {
  const bool volatile_only = VolatileOnly(settings_.maxmemory_policy);
  for (int tries = 0; tries < 64; ++tries) {
    int db;
    size_t stripe;
    if (!PickTable(engine_.keyspace(), lane.rng, volatile_only, &db, &stripe)) {
      return Evicted::kNothingLeft;
    }
    if (db < 0) continue;
    {
      const StripeGuard guard(lane.locks, stripe, StripeGuard::How::kTry);
      if (!guard.locked()) continue;
      if (const auto evicted = SampleOrEvict(lane, db, stripe, volatile_only)) return *evicted;
    }
    if (const auto evicted = EvictBest(lane, volatile_only)) return *evicted;
  }
  return Evicted::kNotNow;
}

bool Memory::MakeRoom(Lane& lane) {
  const auto limit = static_cast<int64_t>(std::min<uint64_t>(settings_.maxmemory, INT64_MAX));
  const auto uncounted = static_cast<int64_t>(log_bytes());
  auto used = static_cast<int64_t>(Used()) - uncounted;
  lane.memory.room = limit - used;
  if (used <= limit) return true;
  if (settings_.maxmemory_policy == config::MaxmemoryPolicy::kNoEviction) return false;
  const uint64_t start = base::Ticks();
  // 500 microseconds at the default tenacity of 10, without end at 100.
  const int64_t tenacity = settings_.maxmemory_eviction_tenacity;
  const auto allowed =
      tenacity >= 100
          ? UINT64_MAX
          : static_cast<uint64_t>(static_cast<double>(50 * tenacity) * base::TicksPerMicro());
  bool made = true;
  while (used > limit) {
    const int64_t others = evicting_.load(std::memory_order_relaxed);
    const int64_t excess = used - limit - others;
    if (excess <= 0) break;  // other lanes are freeing it already
    const int64_t claim = std::min(excess, kClaim);
    evicting_.fetch_add(claim, std::memory_order_relaxed);
    const int64_t goal = used - claim;
    Evicted evicted = Evicted::kOne;
    while (used > goal && evicted == Evicted::kOne) {
      if (!base::IfMemory([&] { evicted = EvictOne(lane); })) evicted = Evicted::kNoMemory;
      used = static_cast<int64_t>(Used()) - uncounted;
      if (base::Ticks() - start > allowed) break;
    }
    evicting_.fetch_sub(claim, std::memory_order_relaxed);
    if (evicted == Evicted::kNothingLeft || evicted == Evicted::kNoMemory) {
      made = used <= limit;
      break;
    }
    if (evicted == Evicted::kNotNow) break;
    if (base::Ticks() - start > allowed) break;  // the next batch goes on
  }
  lane.memory.room = std::max<int64_t>(0, limit - used);
  const auto nanos = engine_.observer().Nanos(base::Ticks() - start);
  lane.stats.upkeep.eviction_stalls_nanos.Add(nanos);
  if (settings_.latency_monitor_threshold > 0) {
    engine_.observer().latency().Add("eviction-cycle", lane.now_ms / 1000,
                                     static_cast<int64_t>(nanos / 1000000),
                                     settings_.latency_monitor_threshold);
  }
  return made;
}

}  // namespace sava::engine
