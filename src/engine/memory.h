// Memory: the memory of the process's data, and the work to keep it below maxmemory: eviction,
// before commands run and before locks are taken, and freeing displaced values.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "commands/spec.h"
#include "config/settings.h"
#include "engine/lane.h"
#include "keyspace/keyspace.h"
#include "types/value/object.h"

namespace sava::engine {

class Engine;

class Memory {
 public:
  explicit Memory(Engine* engine);

  // Bytes in use by the process's data; see docs/architecture.md. Inside the gate.
  size_t Used() const;
  // Of clients' input and output.
  int64_t BufferBytes() const;
  // Set from time to time from the figures of the allocator: what it holds besides the keyspace,
  // and how much of that are records on their way to the log, which do not count toward maxmemory.
  // Buffers of clients are known at any time.
  // Less than nothing where keys share a value that each of them counts.
  void SetOther(int64_t bytes, size_t log_bytes) {
    other_.store(bytes - BufferBytes(), std::memory_order_relaxed);
    log_.store(log_bytes, std::memory_order_relaxed);
  }
  size_t log_bytes() const { return log_.load(std::memory_order_relaxed); }
  // An object is about to be freed: its bytes leave the account now, not when the allocator is
  // asked next, so that eviction stops in time.
  void NoteFreed(const types::Object& object) {
    if (settings_.maxmemory == 0) return;
    other_.fetch_sub(static_cast<int64_t>(object.MemoryUsage(5)), std::memory_order_relaxed);
  }
  // All the memory there is for the process. Before there are clients.
  void set_ceiling(uint64_t bytes) { ceiling_ = bytes; }
  // Whether a value of that many bytes could be held, with all others or, where they can be
  // evicted, without them.
  bool RoomFor(uint64_t bytes) const;

  // Something was written and may not be what is logged of it.
  void NoteExhausted();

  // At the beginning of a batch. REQUIRES: inside the gate, no stripe held.
  void LookAt(Lane& lane);
  // Whether a command that may add its arguments is to run. A batch that adds more than there is
  // room for looks at memory again; a few KB for all lanes together are not worth it.
  bool HasRoom(Lane& lane, commands::Args args);
  // Frees displaced values. REQUIRES: no stripe held.
  void FreeGarbage(Lane& lane) {
    if (!lane.memory.garbage.empty()) FreeAll(lane);
  }
  // Frees the memory of a database without keys. REQUIRES: inside the gate, the
  // stripe's lock.
  void DropIfEmpty(int db, size_t stripe);

 private:
  enum class Evicted : uint8_t { kOne, kNotNow, kNothingLeft, kNoMemory };

  // Evicts until below maxmemory; false when it could not.
  bool MakeRoom(Lane& lane);
  Evicted EvictOne(Lane& lane);
  std::optional<Evicted> SampleOrEvict(Lane& lane, int db, size_t stripe, bool volatile_only);
  std::optional<Evicted> EvictBest(Lane& lane, bool volatile_only);
  void NoteCandidate(Lane& lane, int db, const keyspace::Entry& entry);
  Evicted EvictAt(Lane& lane, int db, size_t stripe, keyspace::Entry* entry, uint64_t hash);
  void FreeAll(Lane& lane);

  Engine& engine_;
  const config::Settings& settings_;
  std::atomic<int64_t> other_{0};
  std::atomic<size_t> log_{0};
  std::atomic<int64_t> evicting_{0};  // bytes that lanes are about to free
  uint64_t ceiling_ = UINT64_MAX;
};

}  // namespace sava::engine
