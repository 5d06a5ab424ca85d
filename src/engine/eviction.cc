// Eviction: keeps used memory below maxmemory, before commands run and before locks are taken.
//
// As in Redis, the best of a few samples goes, helped by a small pool of the best candidates seen
// so far; each lane has its own pool. A lane claims the bytes it is going to free from one shared
// budget, so that several lanes over the limit together free the excess once.
#include <algorithm>

#include "engine/aging.h"
#include "engine/engine.h"
#include "engine/engine_context.h"

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

// A random stripe and database with something to evict, weighted by size; false when none.
bool PickTable(Keyspace& keyspace, base::Rng& rng, bool volatile_only, int* db, size_t* stripe) {
  size_t total = 0;
  for (int i = 0; i < keyspace.databases(); ++i) {
    total += volatile_only ? keyspace.Expiring(i) : keyspace.Size(i);
  }
  if (total == 0) return false;
  uint64_t pick = rng.Below(total);
  bool any = false;  // keys may go between the two walks: then the last table with some will do
  for (int i = 0; i < keyspace.databases(); ++i) {
    for (size_t s = 0; s < Keyspace::kStripes; ++s) {
      const Table* table = keyspace.table(i, s);
      if (table == nullptr) continue;
      const size_t size = volatile_only ? table->expiring() : table->size();
      if (size > 0) {
        any = true;
        *db = i;
        *stripe = s;
      }
      if (pick < size) return true;
      pick -= size;
    }
  }
  return any;
}

}  // namespace

// Fills the lane's pool from one random table and evicts the best candidate that is still there.
Engine::Evicted Engine::EvictOne(Lane& lane) {
  const config::Settings& settings = *settings_;
  const bool volatile_only = VolatileOnly(settings.maxmemory_policy);
  EngineContext& context = *lane.context;
  for (int tries = 0; tries < 64; ++tries) {
    int db;
    size_t stripe;
    if (!PickTable(keyspace_, lane.rng, volatile_only, &db, &stripe)) {
      return Evicted::kNothingLeft;
    }
    if (!keyspace_.stripe(stripe).TryLock(&lane.seen)) continue;
    Table* table = keyspace_.table(db, stripe);
    size_t wanted = static_cast<size_t>(std::min<int64_t>(settings.maxmemory_samples, 64));
    Entry* samples[64];
    size_t found = 0;
    for (int round = 0; table != nullptr && round < 16 && found < wanted; ++round) {
      Entry* some[8];
      const size_t n = volatile_only ? table->SampleExpiring(lane.rng, some, 8)
                                     : table->Sample(lane.rng, some, 8);
      for (size_t i = 0; i < n && found < wanted; ++i) samples[found++] = some[i];
    }
    if (found > 0 && RandomPolicy(settings.maxmemory_policy)) {
      context.BeginUpkeep();
      context.EvictKey(db, *table, samples[0], keyspace_.Hash(samples[0]->key()));
      context.EndUpkeep();
      ServeReady(lane);
      DropIfEmpty(db, stripe);
      keyspace_.stripe(stripe).Unlock(lane.seen);
      return Evicted::kOne;
    }
    for (size_t i = 0; i < found; ++i) {
      const uint64_t score = Score(*samples[i], settings, lane.now_ms, lane.lru_clock);
      if (lane.candidates.size() >= Lane::kCandidates && score <= lane.candidates.front().score)
        continue;
      const std::string_view key = samples[i]->key();
      const bool known =
          std::any_of(lane.candidates.begin(), lane.candidates.end(),
                      [&](const Lane::Candidate& c) { return c.db == db && c.key == key; });
      if (known) continue;
      const auto at = std::upper_bound(
          lane.candidates.begin(), lane.candidates.end(), score,
          [](uint64_t value, const Lane::Candidate& c) { return value < c.score; });
      lane.candidates.insert(at, {db, score, keyspace_.Hash(key), std::string(key)});
      if (lane.candidates.size() > Lane::kCandidates)
        lane.candidates.erase(lane.candidates.begin());
    }
    keyspace_.stripe(stripe).Unlock(lane.seen);
    while (!lane.candidates.empty()) {
      const Lane::Candidate best = std::move(lane.candidates.back());
      lane.candidates.pop_back();
      const size_t home = Keyspace::StripeOf(best.hash);
      if (!keyspace_.stripe(home).TryLock(&lane.seen)) continue;
      Table* holder = keyspace_.table(best.db, home);
      Entry* entry = holder == nullptr ? nullptr : holder->Find(best.hash, best.key);
      const bool evict = entry != nullptr && (!volatile_only || entry->has(keyspace::kHasExpiry));
      if (evict) {
        context.BeginUpkeep();
        context.EvictKey(best.db, *holder, entry, best.hash);
        context.EndUpkeep();
        ServeReady(lane);
        DropIfEmpty(best.db, home);
      }
      keyspace_.stripe(home).Unlock(lane.seen);
      if (evict) return Evicted::kOne;
    }
  }
  return Evicted::kNotNow;
}

bool Engine::MakeRoom(Lane& lane) {
  const auto limit = static_cast<int64_t>(std::min<uint64_t>(settings_->maxmemory, INT64_MAX));
  const auto uncounted = static_cast<int64_t>(log_memory());
  auto used = static_cast<int64_t>(UsedMemory()) - uncounted;
  lane.room = limit - used;
  if (used <= limit) return true;
  if (settings_->maxmemory_policy == config::MaxmemoryPolicy::kNoEviction) return false;
  const uint64_t start = base::Ticks();
  // 500 microseconds at the default tenacity of 10, without end at 100.
  const int64_t tenacity = settings_->maxmemory_eviction_tenacity;
  const auto allowed =
      tenacity >= 100
          ? UINT64_MAX
          : static_cast<uint64_t>(static_cast<double>(50 * tenacity) * base::TicksPerMicro());
  bool made = true;
  while (used > limit) {
    const int64_t others = evicting_bytes_.load(std::memory_order_relaxed);
    const int64_t excess = used - limit - others;
    if (excess <= 0) break;  // other lanes are freeing it already
    const int64_t claim = std::min(excess, kClaim);
    evicting_bytes_.fetch_add(claim, std::memory_order_relaxed);
    const int64_t goal = used - claim;
    Evicted evicted = Evicted::kOne;
    while (used > goal && evicted == Evicted::kOne) {
      evicted = EvictOne(lane);
      used = static_cast<int64_t>(UsedMemory()) - uncounted;
      if (base::Ticks() - start > allowed) break;
    }
    evicting_bytes_.fetch_sub(claim, std::memory_order_relaxed);
    if (evicted == Evicted::kNothingLeft) {
      made = used <= limit;
      break;
    }
    if (evicted == Evicted::kNotNow) break;
    if (base::Ticks() - start > allowed) break;  // the next batch goes on
  }
  lane.room = std::max<int64_t>(0, limit - used);
  const auto nanos =
      static_cast<uint64_t>(static_cast<double>(base::Ticks() - start) * nanos_per_tick_);
  lane.stats.eviction_stalls_nanos.Add(nanos);
  if (settings_->latency_monitor_threshold > 0) {
    latency_.Add("eviction-cycle", lane.now_ms / 1000, static_cast<int64_t>(nanos / 1000000),
                 settings_->latency_monitor_threshold);
  }
  return made;
}

}  // namespace sava::engine
