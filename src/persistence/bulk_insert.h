// BulkInsert: puts the keys of an RDB file into the keyspace with several threads.
//
// The reading thread passes on keys with their values as bytes of the file. Each inserting
// thread has stripes of its own (stripe modulo threads), gets its keys in batches through a ring
// that holds a few, decodes the values and inserts them: first the cache lines of a group of keys
// are fetched, then each key goes in under its stripe's lock. So no two threads ever meet at a
// table, and memory beside the data set is bounded by the rings.
//
// Thread safety: all calls from the reading thread, which stays outside the gate.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/engine.h"
#include "storage/rdb_reader.h"

namespace sava::persistence {

class BulkInsert {
 public:
  struct Item {
    uint64_t hash = 0;
    std::string_view key;
    std::string_view value;                 // undecoded; must stay until Finish
    std::unique_ptr<types::Object> object;  // instead of a value: decoded already
    int64_t expire_at = -1;
    uint32_t age = 0;
    uint8_t rdb_type = 0;
  };
  struct Failure {
    const char* at;  // the undecoded value
    std::string text;
  };

  // `locking`: others are inside the gate. `loaded` counts the keys that are in, unless nullptr.
  BulkInsert(engine::Engine* engine, size_t threads, bool locking, std::atomic<uint64_t>* loaded);
  ~BulkInsert() { Finish(); }
  BulkInsert(const BulkInsert&) = delete;
  BulkInsert& operator=(const BulkInsert&) = delete;

  // What follows belongs to this database, which gets about `keys` keys.
  void Select(int db, uint64_t keys);
  // A key that is there already is replaced. Before the first Add.
  void set_replace(bool on) { replace_ = on; }
  void set_aux(const types::FileAux* aux) { aux_ = aux; }
  // `stays`: the key's bytes stay until Finish; else they are copied. False when an insertion has
  // failed: nothing more is worth adding.
  bool Add(Item item, bool stays);
  // Waits until all is in.
  std::optional<Failure> Finish();

 private:
  static constexpr size_t kBatchKeys = 512;
  static constexpr size_t kBatchBytes = 1 << 20;  // undecoded
  static constexpr size_t kBatches = 4;           // in a ring
  static constexpr size_t kGroup = 64;            // keys whose cache lines are fetched together

  struct Batch {
    int db = 0;
    size_t keys_per_table = 0;
    const types::FileAux* aux = nullptr;
    bool last = false;
    size_t bytes = 0;
    std::vector<Item> items;
    std::pmr::monotonic_buffer_resource copies;  // of keys
  };
  // A ring: batches [emptied, filled) are the thread's, the one at `filled` is being filled.
  struct Worker {
    std::array<Batch, kBatches> ring;
    std::atomic<uint32_t> filled{0};
    std::atomic<uint32_t> emptied{0};
    std::thread thread;
    Batch& open() { return ring[filled.load(std::memory_order_relaxed) % kBatches]; }
  };

  void Publish(Worker& worker, bool last);
  void Run(Worker& worker, size_t lane);
  void Decode(Batch& batch);
  void Insert(Batch& batch, size_t lane);
  // scratch: for a text that is decoded.
  void InsertGroup(const Batch& batch, std::span<Item> group, std::string* scratch);
  void InsertOne(const Batch& batch, Item& item, std::string* scratch);
  void Fail(const Item& item, std::string text);

  engine::Engine& engine_;
  keyspace::Keyspace& keyspace_;
  const bool locking_;
  bool replace_ = false;
  std::atomic<uint64_t>* const loaded_;
  const int64_t now_ms_;
  int db_ = 0;
  size_t keys_per_table_ = 0;
  const types::FileAux* aux_ = nullptr;
  bool finished_ = false;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::optional<Failure> failure_;  // guarded by mutex_: the first in the file
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace sava::persistence
