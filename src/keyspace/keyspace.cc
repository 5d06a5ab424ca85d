#include "keyspace/keyspace.h"

#include <algorithm>

namespace sava::keyspace {

void WatchMap::Add(int db, std::string_view key, Watcher* watcher, bool expired) {
  const auto it = map_.find(NameView{db, key});
  if (it != map_.end()) return it->second.push_back({watcher, expired});
  map_.emplace(Name{db, std::string(key)}, std::vector<Item>{{watcher, expired}});
}

void WatchMap::Remove(int db, std::string_view key, Watcher* watcher) {
  const auto it = map_.find(NameView{db, key});
  if (it == map_.end()) return;
  std::erase_if(it->second, [watcher](const Item& item) { return item.watcher == watcher; });
  if (it->second.empty()) map_.erase(it);
}

void WatchMap::Touch(int db, std::string_view key, bool removed_expired) {
  const auto it = map_.find(NameView{db, key});
  if (it == map_.end()) return;
  for (Item& item : it->second) {
    if (item.expired && removed_expired) {
      item.expired = false;  // what was seen as missing is now really gone: no change
      continue;
    }
    item.watcher->dirty.store(true, std::memory_order_release);
  }
}

Keyspace::Keyspace(size_t lanes, int databases, uint64_t hash_seed)
    : hasher_(hash_seed),
      databases_(databases),
      gate_(lanes),
      made_(static_cast<size_t>(databases)) {}

Keyspace::~Keyspace() {
  for (auto& each : made_) {
    Database* const database = each.load(std::memory_order_relaxed);
    if (database == nullptr) continue;
    for (size_t stripe = 0; stripe < kStripes; ++stripe) delete database->table(stripe);
    delete database;
  }
}

// Two stripes of a database may be the first at the same moment: one of the two objects stays.
Database& Keyspace::Make(int db) {
  if (Database* const there = Of(db)) return *there;
  auto fresh = std::make_unique<Database>();
  Database* expected = nullptr;
  if (!made_[static_cast<size_t>(db)].compare_exchange_strong(expected, fresh.get(),
                                                              std::memory_order_acq_rel)) {
    return *expected;
  }
  return *fresh.release();
}

Table& Keyspace::TableFor(int db, size_t stripe, int64_t now_ms) {
  Database::Place& place = Make(db).place(stripe);
  Table* table = place.load(std::memory_order_relaxed);
  if (table == nullptr) {
    table = new Table({&gate_.epoch(), hasher_, &version_, &stripes_[stripe].totals}, now_ms);
    place.store(table, std::memory_order_release);
  }
  return *table;
}

void Keyspace::MakeTables(int db, int64_t now_ms) {
  for (size_t stripe = 0; stripe < kStripes; ++stripe) TableFor(db, stripe, now_ms);
}

void Keyspace::DropEmpty(int db, size_t stripe) {
  Table* const table = this->table(db, stripe);
  if (table == nullptr || table->size() != 0) return;
  Of(db)->place(stripe).store(nullptr, std::memory_order_release);
  Table::Retire(table);
}

size_t Keyspace::Size(int db) const {
  size_t keys = 0;
  for (size_t stripe = 0; Of(db) != nullptr && stripe < kStripes; ++stripe) {
    if (const Table* const table = this->table(db, stripe)) keys += table->size();
  }
  return keys;
}

size_t Keyspace::Expiring(int db) const {
  size_t keys = 0;
  for (size_t stripe = 0; Of(db) != nullptr && stripe < kStripes; ++stripe) {
    if (const Table* const table = this->table(db, stripe)) keys += table->expiring();
  }
  return keys;
}

std::vector<std::unique_ptr<Table>> Keyspace::Detach(int db) {
  std::vector<std::unique_ptr<Table>> detached;
  Database* const database = Of(db);
  if (database == nullptr) return detached;
  detached.reserve(kStripes);
  for (size_t stripe = 0; stripe < kStripes; ++stripe) {
    Table* const table = database->place(stripe).exchange(nullptr, std::memory_order_acq_rel);
    if (table == nullptr) continue;
    table->LeaveTotals();
    detached.emplace_back(table);
  }
  return detached;
}

void Keyspace::Swap(int a, int b) {
  std::atomic<Database*>& second = made_[static_cast<size_t>(b)];
  second.store(made_[static_cast<size_t>(a)].exchange(second.load()));
}

}  // namespace sava::keyspace
