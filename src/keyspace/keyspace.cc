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
    : seed_(hash_seed),
      databases_(databases),
      gate_(lanes),
      tables_(static_cast<size_t>(databases) * kStripes),
      touched_(static_cast<size_t>(databases)) {}

Keyspace::~Keyspace() {
  for (auto& table : tables_) delete table.load(std::memory_order_relaxed);
}

Table& Keyspace::TableFor(int db, size_t stripe, int64_t now_ms) {
  auto& place = tables_[static_cast<size_t>(db) * kStripes + stripe];
  Table* table = place.load(std::memory_order_relaxed);
  if (table == nullptr) {
    table = new Table(&gate_.epoch(), seed_, now_ms, &version_);
    place.store(table, std::memory_order_release);
    touched_[static_cast<size_t>(db)].store(true, std::memory_order_release);
  }
  return *table;
}

void Keyspace::MakeTables(int db, int64_t now_ms) {
  for (size_t stripe = 0; stripe < kStripes; ++stripe) TableFor(db, stripe, now_ms);
}

void Keyspace::DropEmpty(int db, size_t stripe) {
  auto& place = tables_[static_cast<size_t>(db) * kStripes + stripe];
  Table* table = place.load(std::memory_order_relaxed);
  if (table == nullptr || table->size() != 0) return;
  place.store(nullptr, std::memory_order_release);
  Table::Retire(table);
}

namespace {

template <typename Tables, typename Measure>
size_t Sum(const Tables& tables, size_t first, size_t count, const Measure& measure) {
  size_t total = 0;
  for (size_t i = first; i < first + count; ++i) {
    const Table* table = tables[i].load(std::memory_order_acquire);
    if (table != nullptr) total += measure(*table);
  }
  return total;
}

}  // namespace

size_t Keyspace::Size(int db) const {
  return Sum(tables_, static_cast<size_t>(db) * kStripes, kStripes,
             [](const Table& table) { return table.size(); });
}

size_t Keyspace::Expiring(int db) const {
  return Sum(tables_, static_cast<size_t>(db) * kStripes, kStripes,
             [](const Table& table) { return table.expiring(); });
}

size_t Keyspace::UsedBytes() const {
  size_t total = 0;
  for (size_t db = 0; db < static_cast<size_t>(databases_); ++db) {
    if (!touched_[db].load(std::memory_order_relaxed)) continue;
    total += Sum(tables_, db * kStripes, kStripes,
                 [](const Table& table) { return table.used_bytes(); });
  }
  return total;
}

size_t Keyspace::HeldBytes() const {
  size_t total = 0;
  for (size_t db = 0; db < static_cast<size_t>(databases_); ++db) {
    if (!touched_[db].load(std::memory_order_relaxed)) continue;
    total += Sum(tables_, db * kStripes, kStripes,
                 [](const Table& table) { return table.held_bytes(); });
  }
  return total;
}

std::vector<std::unique_ptr<Table>> Keyspace::Detach(int db) {
  std::vector<std::unique_ptr<Table>> detached;
  detached.reserve(kStripes);
  for (size_t i = 0; i < kStripes; ++i) {
    Table* table = tables_[static_cast<size_t>(db) * kStripes + i].exchange(
        nullptr, std::memory_order_acq_rel);
    if (table != nullptr) detached.emplace_back(table);
  }
  return detached;
}

void Keyspace::Swap(int a, int b) {
  for (size_t i = 0; i < kStripes; ++i) {
    auto& first = tables_[static_cast<size_t>(a) * kStripes + i];
    auto& second = tables_[static_cast<size_t>(b) * kStripes + i];
    Table* kept = first.load(std::memory_order_relaxed);
    first.store(second.load(std::memory_order_relaxed), std::memory_order_release);
    second.store(kept, std::memory_order_release);
  }
  const bool kept = touched_[static_cast<size_t>(a)].load();
  touched_[static_cast<size_t>(a)].store(touched_[static_cast<size_t>(b)].load());
  touched_[static_cast<size_t>(b)].store(kept);
}

}  // namespace sava::keyspace
