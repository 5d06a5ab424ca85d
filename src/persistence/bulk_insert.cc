#include "persistence/bulk_insert.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/alternate_stack.h"
#include "base/if_memory.h"
#include "base/prefetch.h"
#include "engine/string_value.h"
#include "types/value/save.h"
#include "types/value/type_registry.h"

namespace sava::persistence {

using keyspace::Keyspace;
using keyspace::Table;

BulkInsert::BulkInsert(engine::Engine* engine, size_t threads, bool locking,
                       std::atomic<uint64_t>* loaded)
    : engine_(*engine),
      keyspace_(engine->keyspace()),
      locking_(locking),
      loaded_(loaded),
      now_ms_(engine->clock().WallMillis()) {
  threads = std::clamp<size_t>(threads, 1, engine::Engine::kHelperLanes);
  for (size_t i = 0; i < threads; ++i) {
    workers_.push_back(std::make_unique<Worker>());
    Worker& worker = *workers_.back();
    for (Batch& batch : worker.ring) batch.items.reserve(kBatchKeys);
    worker.thread = std::thread([this, &worker, lane = engine_.first_helper_lane() + i] {
      const base::AlternateStack stack;
      Run(worker, lane);
    });
  }
}

void BulkInsert::Select(int db, uint64_t keys) {
  for (auto& worker : workers_) {
    if (!worker->open().items.empty()) Publish(*worker, false);
  }
  db_ = db;
  keys_per_table_ = static_cast<size_t>(keys / Keyspace::kStripes);
}

bool BulkInsert::Add(Item item, bool stays) {
  Worker& worker = *workers_[Keyspace::StripeOf(item.hash) % workers_.size()];
  Batch& batch = worker.open();
  batch.bytes += item.value.size() + item.key.size();
  if (!stays && !item.key.empty()) {
    auto* copy = static_cast<char*>(batch.copies.allocate(item.key.size(), 1));
    memcpy(copy, item.key.data(), item.key.size());
    item.key = {copy, item.key.size()};
  }
  batch.items.push_back(std::move(item));
  if (batch.items.size() == kBatchKeys || batch.bytes >= kBatchBytes) Publish(worker, false);
  return !failed_.load(std::memory_order_relaxed);
}

// Hands the open batch over and waits until there is another one to fill.
void BulkInsert::Publish(Worker& worker, bool last) {
  Batch& batch = worker.open();
  batch.db = db_;
  batch.keys_per_table = keys_per_table_;
  batch.aux = aux_;
  batch.last = last;
  const uint32_t filled = worker.filled.load(std::memory_order_relaxed) + 1;
  worker.filled.store(filled, std::memory_order_release);
  worker.filled.notify_one();
  if (last) return;
  uint32_t emptied = worker.emptied.load(std::memory_order_acquire);
  while (filled - emptied == kBatches) {
    worker.emptied.wait(emptied, std::memory_order_acquire);
    emptied = worker.emptied.load(std::memory_order_acquire);
  }
}

std::optional<BulkInsert::Failure> BulkInsert::Finish() {
  if (!finished_) {
    finished_ = true;
    for (auto& worker : workers_) Publish(*worker, true);
    for (auto& worker : workers_) worker->thread.join();
  }
  const std::lock_guard lock(mutex_);
  return failure_;
}

void BulkInsert::Fail(const Item& item, std::string text) {
  const std::lock_guard lock(mutex_);
  if (!failure_ || item.value.data() < failure_->at) {
    failure_ = Failure{item.value.data(), std::move(text)};
  }
  failed_.store(true, std::memory_order_relaxed);
}

// ---- the inserting threads ----

void BulkInsert::Run(Worker& worker, size_t lane) {
  for (uint32_t emptied = 0;; ++emptied) {
    while (worker.filled.load(std::memory_order_acquire) == emptied) {
      worker.filled.wait(emptied, std::memory_order_acquire);
    }
    Batch& batch = worker.ring[emptied % kBatches];
    const bool last = batch.last;
    if (!failed_.load(std::memory_order_relaxed)) {
      const bool done = base::IfMemory([&] {
        Decode(batch);
        Insert(batch, lane);
      });
      keyspace_.gate().epoch().Collect();
      if (!done) Fail(batch.items.front(), "out of memory");
      if (loaded_ != nullptr) loaded_->fetch_add(batch.items.size(), std::memory_order_relaxed);
    }
    batch.items.clear();
    batch.bytes = 0;
    batch.copies.release();
    worker.emptied.store(emptied + 1, std::memory_order_release);
    worker.emptied.notify_one();
    if (last) return;
  }
}

// Objects are made before anything is locked: a large one takes its time.
void BulkInsert::Decode(Batch& batch) {
  for (Item& item : batch.items) {
    if (item.rdb_type == types::kRdbString || item.object != nullptr) continue;
    auto object =
        storage::DecodeRdbObject(types::AllTypes(), item.key, item.rdb_type, item.value, batch.aux);
    if (!object.ok()) return Fail(item, object.error());
    item.object = std::move(object.value());
  }
}

void BulkInsert::Insert(Batch& batch, size_t lane) {
  keyspace::Gate& gate = keyspace_.gate();
  const std::span<Item> items(batch.items);
  std::string scratch;
  if (locking_) gate.Enter(lane);
  const struct Leaves {
    ~Leaves() {  // also when there is no memory
      if (locking) gate.Leave(lane);
    }
    keyspace::Gate& gate;
    const size_t lane;
    const bool locking;
  } leaves{gate, lane, locking_};
  for (size_t at = 0; at < items.size() && !failed_.load(std::memory_order_relaxed); at += kGroup) {
    if (locking_ && gate.wanted()) {
      gate.Leave(lane);
      gate.Enter(lane);
    }
    InsertGroup(batch, items.subspan(at, std::min(kGroup, items.size() - at)), &scratch);
  }
}

void BulkInsert::InsertGroup(const Batch& batch, std::span<Item> group, std::string* scratch) {
  const auto for_each_table = [&](const auto& prefetch) {
    for (const Item& item : group) {
      const Table* table = keyspace_.table(batch.db, Keyspace::StripeOf(item.hash));
      if (table != nullptr) prefetch(*table, item);
    }
  };
  for_each_table([](const Table& table, const Item& item) {
    table.PrefetchTable();
    base::Prefetch(item.key.data());
    if (!item.value.empty()) base::Prefetch(item.value.data());
  });
  for_each_table([](const Table& table, const Item& item) { table.PrefetchDirectory(item.hash); });
  for_each_table([](const Table& table, const Item& item) { table.PrefetchPlace(item.hash); });
  for (Item& item : group) InsertOne(batch, item, scratch);
}

void BulkInsert::InsertOne(const Batch& batch, Item& item, std::string* scratch) {
  keyspace::NewValue value;
  if (item.rdb_type != types::kRdbString) {
    if (item.object == nullptr) return;  // failed
    value.kind = keyspace::Kind::kObject;
  } else {
    const auto text = storage::DecodeRdbString(item.key, item.value, scratch);
    if (!text.ok()) return Fail(item, text.error());
    value = engine::StringValue(text.value(), true);
    if (value.form != keyspace::Form::kInt && engine::KeptOutside(item.key, text.value())) {
      value.blob = base::Blob::Copy(text.value());
    }
  }
  const size_t stripe = Keyspace::StripeOf(item.hash);
  keyspace::StripeLock& lock = keyspace_.stripe(stripe).lock;
  bool put = false;
  keyspace::Displaced displaced;
  if (locking_) lock.Lock();
  const bool had_memory = base::IfMemory([&] {
    Table& table = keyspace_.TableFor(batch.db, stripe, now_ms_);
    if (table.size() == 0) table.Reserve(batch.keys_per_table);
    Table::Slot* const slot = table.FindSlot(item.hash, item.key);
    if (slot != nullptr && !replace_) return;
    value.object = item.object.get();
    table.PutAt(slot, item.hash, item.key, value, item.expire_at, &displaced)->set_age(item.age);
    static_cast<void>(item.object.release());
    put = true;
  });
  if (locking_) lock.Unlock();
  if (displaced.blob != nullptr) displaced.blob->Unref();
  delete displaced.object;
  if (put) return;
  if (value.blob != nullptr) value.blob->Unref();
  if (!had_memory) throw std::bad_alloc();
  Fail(item,
       fmt::format("RDB has duplicated key {} in DB {}", storage::ShownKey(item.key), batch.db));
}

}  // namespace sava::persistence
