// Eviction: keeps used memory below maxmemory, before commands run and before locks are taken.
//
// As in Redis, the best of a few samples goes, helped by a small pool of the best candidates seen
// so far; each lane has its own pool. A lane claims the bytes it is going to free from one shared
// budget, so that several lanes over the limit together free the excess once.
#include <algorithm>
#include <optional>

#include "base/if_memory.h"
#include "engine/aging.h"
#include "engine/engine.h"
#include "engine/engine_context.h"

namespace sava::engine {

using keyspace::Entry;
using keyspace::Keyspace;
using keyspace::Table;

namespace {

constexpr int64_t kClaim = 64 * 1024;

bool VolatileOnly(MaxmemoryPolicy policy) {
  return policy == MaxmemoryPolicy::kVolatileLru || policy == MaxmemoryPolicy::kVolatileLfu ||
         policy == MaxmemoryPolicy::kVolatileRandom || policy == MaxmemoryPolicy::kVolatileTtl;
}

bool RandomPolicy(MaxmemoryPolicy policy) {
  return policy == MaxmemoryPolicy::kVolatileRandom || policy == MaxmemoryPolicy::kAllkeysRandom;
}

// Higher is better to evict.
uint64_t Score(const Entry& entry, const Settings& settings, int64_t now_ms, uint32_t lru_clock) {
  if (settings.maxmemory_policy == MaxmemoryPolicy::kVolatileTtl) {
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

// A stripe that is looked at for keys to evict.
class Held {
 public:
  Held(keyspace::Stripe& stripe, uint64_t* seen) : stripe_(stripe), seen_(*seen) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { stripe_.Unlock(seen_); }  // also when there is no memory

 private:
  keyspace::Stripe& stripe_;
  const uint64_t& seen_;
};

}  // namespace

// REQUIRES: the stripe's lock.
Engine::Evicted Engine::EvictKey(Lane& lane, int db, size_t stripe, Entry* entry) {
  EngineContext& context = *lane.context;
  const bool evicted = context.DoUpkeep([&] {
    context.EvictKey(db, *keyspace_.table(db, stripe), entry, keyspace_.Hash(entry->key()));
  });
  ServeReady(lane);
  DropIfEmpty(db, stripe);
  return evicted ? Evicted::kOne : Evicted::kNoMemory;
}

// Fills the lane's pool from one random table and evicts the best candidate that is still there.
Engine::Evicted Engine::EvictOne(Lane& lane) {
  const Settings& settings = *settings_;
  const bool volatile_only = VolatileOnly(settings.maxmemory_policy);
  for (int tries = 0; tries < 64; ++tries) {
    int db;
    size_t stripe;
    if (!PickTable(keyspace_, lane.rng, volatile_only, &db, &stripe)) {
      return Evicted::kNothingLeft;
    }
    if (!keyspace_.stripe(stripe).TryLock(&lane.seen)) continue;
    std::optional<Held> held(std::in_place, keyspace_.stripe(stripe), &lane.seen);
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
      return EvictKey(lane, db, stripe, samples[0]);
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
    held.reset();
    while (!lane.candidates.empty()) {
      const Lane::Candidate best = std::move(lane.candidates.back());
      lane.candidates.pop_back();
      const size_t home = Keyspace::StripeOf(best.hash);
      if (!keyspace_.stripe(home).TryLock(&lane.seen)) continue;
      const Held at_home(keyspace_.stripe(home), &lane.seen);
      Table* holder = keyspace_.table(best.db, home);
      Entry* entry = holder == nullptr ? nullptr : holder->Find(best.hash, best.key);
      const bool evict = entry != nullptr && (!volatile_only || entry->has(keyspace::kHasExpiry));
      if (evict) return EvictKey(lane, best.db, home, entry);
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
  if (settings_->maxmemory_policy == MaxmemoryPolicy::kNoEviction) return false;
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
      if (!base::IfMemory([&] { evicted = EvictOne(lane); })) evicted = Evicted::kNoMemory;
      used = static_cast<int64_t>(UsedMemory()) - uncounted;
      if (base::Ticks() - start > allowed) break;
    }
    evicting_bytes_.fetch_sub(claim, std::memory_order_relaxed);
    if (evicted == Evicted::kNothingLeft || evicted == Evicted::kNoMemory) {
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
