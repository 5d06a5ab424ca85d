// The part of EngineContext that looks beyond the keys of a command: other databases, all keys.
#include <memory>
#include <vector>

#include "engine/engine_context.h"

namespace sava::engine {

using keyspace::Entry;
using keyspace::Keyspace;
using keyspace::Table;

int EngineContext::database_count() const { return engine_.keyspace().databases(); }

int64_t EngineContext::DbSize() { return static_cast<int64_t>(engine_.keyspace().Size(db_)); }

// A stripe that a command visits in its own order. Expired keys that it finds are logged before
// the lock is given back, so that no thread writes them again first; each in a record of its own,
// since they have nothing to do with one another.
class EngineContext::Visit {
 public:
  Visit(EngineContext& context, size_t stripe)
      : context_(context), guard_(context.lane_.locks, stripe) {}
  void Expire(Table& table, Entry* entry, uint64_t hash) {
    context_.keys_.Expire(context_.db_, table, entry, hash);
    if (context_.invocation_.outermost()) context_.invocation_.Commit();
  }
  void Finish() {
    if (context_.lane_.exclusive()) return;
    context_.engine_.waiting().ServeReady(context_.lane_);
  }

 private:
  EngineContext& context_;
  const StripeGuard guard_;
};

bool EngineContext::RandomKey(std::string* key) {
  Keyspace& keyspace = engine_.keyspace();
  for (int tries = 0; tries < 100; ++tries) {
    const size_t total = keyspace.Size(db_);
    if (total == 0) return false;
    uint64_t pick = lane_.rng.Below(total);
    size_t stripe = 0;
    for (; stripe < Keyspace::kStripes - 1; ++stripe) {
      const Table* table = keyspace.table(db_, stripe);
      const size_t size = table == nullptr ? 0 : table->size();
      if (pick < size) break;
      pick -= size;
    }
    Visit visit(*this, stripe);
    Table* table = keyspace.table(db_, stripe);
    Entry* entry = table == nullptr ? nullptr : table->Random(lane_.rng);
    bool found = false;
    if (entry != nullptr) {
      if (keys_.Expired(*entry)) {
        if (engine_.admission().MayRemoveExpired(now_ms_)) {
          visit.Expire(*table, entry, keyspace.Hash(entry->key()));
        }
      } else {
        *key = entry->key();
        found = true;
      }
    }
    visit.Finish();
    if (found) return true;
  }
  return false;
}

// True when the stripe is done; *order is where to go on otherwise.
bool EngineContext::ScanStripe(
    size_t stripe, uint64_t* order, int64_t* left,
    const std::function<void(std::string_view, std::string_view)>& visit) {
  Keyspace& keyspace = engine_.keyspace();
  Visit visited(*this, stripe);
  Table* const table = keyspace.table(db_, stripe);
  if (table == nullptr) return true;
  std::vector<std::string> expired;
  *order = table->Scan(*order, static_cast<size_t>(*left), [&](Entry* entry) {
    --*left;
    if (keys_.Expired(*entry)) {
      if (engine_.admission().MayRemoveExpired(now_ms_)) expired.emplace_back(entry->key());
      return;
    }
    visit(entry->key(), entry->kind() == keyspace::Kind::kObject ? entry->object()->type().name
                                                                 : std::string_view("string"));
  });
  for (const std::string& key : expired) {
    const uint64_t hash = keyspace.Hash(key);
    if (Entry* entry = table->Find(hash, key); entry != nullptr) {
      visited.Expire(*table, entry, hash);
    }
  }
  visited.Finish();
  return *order == 0;
}

uint64_t EngineContext::Scan(uint64_t cursor, int64_t count,
                             const std::function<void(std::string_view, std::string_view)>& visit) {
  size_t stripe = cursor >> Table::kOrderBits;
  uint64_t order = cursor & ((uint64_t{1} << Table::kOrderBits) - 1);
  int64_t left = count;
  while (stripe < Keyspace::kStripes) {
    if (engine_.keyspace().table(db_, stripe) != nullptr &&
        !ScanStripe(stripe, &order, &left, visit)) {
      return (uint64_t{stripe} << Table::kOrderBits) | order;
    }
    order = 0;
    ++stripe;
    if (left <= 0 && stripe < Keyspace::kStripes) return uint64_t{stripe} << Table::kOrderBits;
  }
  return 0;
}

void EngineContext::ForEachKey(const std::function<void(std::string_view)>& visit) {
  for (size_t stripe = 0; stripe < Keyspace::kStripes; ++stripe) {
    const Table* table = engine_.keyspace().table(db_, stripe);
    if (table == nullptr) continue;
    table->ForEach([&](Entry* entry) {
      if (keys_.Expired(*entry)) return;
      visit(entry->key());
    });
  }
}

void EngineContext::TouchAllWatched(int db, int other_db) {
  Keyspace& keyspace = engine_.keyspace();
  const int64_t now = lane_.now_ms;
  const auto find = [&](int in, size_t stripe, std::string_view key) -> const Entry* {
    const Table* table = in < 0 ? nullptr : keyspace.table(in, stripe);
    return table == nullptr ? nullptr : table->Find(keyspace.Hash(key), key);
  };
  for (size_t stripe = 0; stripe < Keyspace::kStripes; ++stripe) {
    keyspace::WatchMap& watches = keyspace.stripe(stripe).watches;
    if (watches.empty()) continue;
    watches.ForEach(db, [&](std::string_view key, keyspace::Watcher* watcher, bool* was_expired) {
      // What had expired when it was watched was missing, and so is what comes expired.
      const bool before = find(db, stripe, key) != nullptr && !*was_expired;
      const Entry* coming = find(other_db, stripe, key);
      *was_expired =
          coming != nullptr && coming->has(keyspace::kHasExpiry) && coming->expire_at() < now;
      const bool after = coming != nullptr && !*was_expired;
      if (before || after) watcher->dirty.store(true, std::memory_order_release);
    });
  }
}

namespace {

// Clients that track are told at the end of the batch, as of other changes; the house lane may have
// none.
void ForgetTracked(Engine& engine, Lane& lane) {
  engine.tracking().Flushed();
  if (!engine.tracking().any()) return;
  lane.stale.lost = true;
  if (&lane == &engine.house_lane()) engine.tracking().Post(lane);
}

}  // namespace

int64_t EngineContext::Flush(int db, bool async) {
  static_cast<void>(async);  // both free in the background: no client waits for it
  Keyspace& keyspace = engine_.keyspace();
  int64_t removed = 0;
  for (int i = db < 0 ? 0 : db; i < (db < 0 ? keyspace.databases() : db + 1); ++i) {
    const auto size = static_cast<int64_t>(keyspace.Size(i));
    TouchAllWatched(i, -1);
    if (&lane_ != &engine_.house_lane()) engine_.waiting().MarkAllReady(lane_, i, true);
    auto detached = keyspace.Detach(i);
    if (i == 0) keyspace.MakeTables(i, now_ms_);
    if (engine_.snapshot().active()) {
      detached = engine_.snapshot().TakeTables(std::move(detached));
    }
    auto tables = std::make_shared<std::vector<std::unique_ptr<Table>>>(std::move(detached));
    if (!tables->empty()) {
      engine_.background().Run([tables] { tables->clear(); }, size);
    }
    removed += size;
  }
  ForgetTracked(engine_, lane_);
  if (db < 0 && engine_.snapshot().active()) engine_.snapshot().Flushed();
  if (db < 0 && engine_.host() != nullptr && &lane_ != &engine_.house_lane()) {
    // As Flushall counts it.
    const bool wait = engine_.host()->FlushedAll(static_cast<uint64_t>(removed) + 1);
    lane_.batch.awaits_save = wait && invocation_.origin().blocks;
  }
  return removed;
}

void EngineContext::SwapDb(int a, int b) {
  if (a == b) return;
  TouchAllWatched(a, b);
  TouchAllWatched(b, a);
  engine_.keyspace().Swap(a, b);
  ForgetTracked(engine_, lane_);
  engine_.waiting().MarkAllReady(lane_, a, false);
  engine_.waiting().MarkAllReady(lane_, b, false);
}

}  // namespace sava::engine
