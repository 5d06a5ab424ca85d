// Keyspace: all databases, cut into stripes by key hash. A stripe has one lock; each database has
// one Table per stripe, made when first needed or by MakeTables. The stripe of a key does not
// depend on its database, so lock sets stay valid through SELECT, MOVE and SWAPDB.
//
// Thread safety: table() and prefetching inside the gate; contents of a table under its stripe's
// lock; Detach and Swap with the gate closed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "base/rng.h"
#include "keyspace/gate.h"
#include "keyspace/stripe_lock.h"
#include "keyspace/table.h"

namespace sava::keyspace {

// Shared by a client that WATCHes keys and the threads that change them.
struct Watcher {
  std::atomic<bool> dirty{false};
};

// The watched keys of a stripe. Guarded by the stripe's lock.
class WatchMap {
 public:
  // `expired`: the key had expired when it was watched; its removal is then no change.
  void Add(int db, std::string_view key, Watcher* watcher, bool expired);
  void Remove(int db, std::string_view key, Watcher* watcher);
  // Marks every client that watches the key. removed_expired: the change is the removal of a key
  // that had expired.
  void Touch(int db, std::string_view key, bool removed_expired = false);
  bool empty() const { return map_.empty(); }
  template <typename Visit>
  void ForEach(int db, const Visit& visit) {
    for (auto& [name, list] : map_) {
      if (name.db != db) continue;
      for (auto& item : list) visit(std::string_view(name.key), item.watcher, &item.expired);
    }
  }

 private:
  struct Item {
    Watcher* watcher;
    bool expired;
  };
  struct Name {
    int db;
    std::string key;
  };
  struct NameView {
    int db;
    std::string_view key;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(const NameView& name) const {
      static const uint64_t kSeed = base::SecureRandom64();
      return base::HashBytes(name.key, kSeed + static_cast<uint64_t>(name.db));
    }
    size_t operator()(const Name& name) const { return (*this)(NameView{name.db, name.key}); }
  };
  struct Equal {
    using is_transparent = void;
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return a.db == b.db && a.key == b.key;
    }
  };
  // Looking a key up takes no memory.
  std::unordered_map<Name, std::vector<Item>, Hash, Equal> map_;
};

// A thread that may log what it does locks a stripe with the last ticket it has seen
// (journal/journal.h), so that tickets of what is done under the lock come in its order. `lock`
// alone: for one that logs nothing.
struct alignas(64) Stripe {
  bool TryLock(uint64_t* ticket) { return lock.TryLock() && Learn(ticket); }
  void Lock(uint64_t* ticket) {
    lock.Lock();
    Learn(ticket);
  }
  bool TryLockFor(int64_t micros, uint64_t* ticket) {
    return lock.TryLockFor(micros) && Learn(ticket);
  }
  bool LockWithin(int64_t millis, uint64_t* ticket) {
    return lock.LockWithin(millis) && Learn(ticket);
  }
  // ticket: as it is after the work under the lock.
  void Unlock(uint64_t ticket) {
    seen = ticket;
    lock.Unlock();
  }

  StripeLock lock;
  uint64_t seen = 0;  // guarded by lock: the last ticket of its holders
  // What clients have changed here has lower tickets (engine/changes.h). Stored under the lock.
  std::atomic<uint64_t> changed{0};
  WatchMap watches;  // guarded by lock
  Totals totals;     // of its tables in all databases

 private:
  bool Learn(uint64_t* ticket) const {
    if (*ticket < seen) *ticket = seen;
    return true;
  }
};

// A database: its table in each stripe, made when first needed.
class Database {
 public:
  static constexpr size_t kStripes = 128;
  using Place = std::atomic<Table*>;

  Place& place(size_t stripe) { return tables_[stripe]; }
  Table* table(size_t stripe) const { return tables_[stripe].load(std::memory_order_acquire); }

 private:
  std::array<Place, kStripes> tables_ = {};
};

class Keyspace {
 public:
  static constexpr size_t kStripes = Database::kStripes;

  Keyspace(size_t lanes, int databases, uint64_t hash_seed);
  ~Keyspace();
  Keyspace(const Keyspace&) = delete;
  Keyspace& operator=(const Keyspace&) = delete;

  uint64_t Hash(std::string_view key) const { return hasher_(key); }
  static size_t StripeOf(uint64_t hash) { return hash & (kStripes - 1); }
  Stripe& stripe(size_t index) { return stripes_[index]; }
  Gate& gate() { return gate_; }
  int databases() const { return databases_; }
  // What entries saved by the current snapshot, or made since it began, carry as kVersion. Flipped
  // with the gate closed.
  bool version() const { return version_; }
  void FlipVersion() { version_ = !version_; }

  // The table, or nullptr when none was made yet.
  Table* table(int db, size_t stripe) const {
    const Database* const database = Of(db);
    return database == nullptr ? nullptr : database->table(stripe);
  }
  // REQUIRES: the stripe's lock.
  Table& TableFor(int db, size_t stripe, int64_t now_ms);
  // Makes all of them, so that what they take is not counted as that of the first keys. With the
  // gate closed, or alone.
  void MakeTables(int db, int64_t now_ms);
  // Gives the table back if it has no keys. REQUIRES: the stripe's lock; no pointer to it is kept
  // beyond that lock, as a snapshot keeps one.
  void DropEmpty(int db, size_t stripe);

  // Sums over all stripes; exact when no thread writes. Those of all databases cost the same
  // whatever their number.
  size_t Size(int db) const;
  size_t Expiring(int db) const;
  size_t AllKeys() const { return Total(&Totals::keys); }
  size_t UsedBytes() const { return Total(&Totals::used); }
  size_t HeldBytes() const { return Total(&Totals::held); }

  // With the gate closed: takes all tables of a database away (for freeing elsewhere).
  std::vector<std::unique_ptr<Table>> Detach(int db);
  void Swap(int a, int b);

 private:
  Database* Of(int db) const {
    return made_[static_cast<size_t>(db)].load(std::memory_order_acquire);
  }
  Database& Make(int db);
  size_t Total(std::atomic<size_t> Totals::*part) const {
    size_t total = 0;
    for (const Stripe& stripe : stripes_) {
      total += (stripe.totals.*part).load(std::memory_order_relaxed);
    }
    return total;
  }

  const KeyHasher hasher_;
  const int databases_;
  bool version_ = false;
  Gate gate_;
  std::array<Stripe, kStripes> stripes_;
  std::vector<std::atomic<Database*>> made_;  // nullptr: never used
};

}  // namespace sava::keyspace
