#include "engine/memory.h"

#include <algorithm>

#include "base/if_memory.h"
#include "engine/engine.h"

namespace sava::engine {

namespace {

// Garbage above this is freed on the background thread.
constexpr size_t kFreeInline = 64 * 1024;
constexpr size_t kFreeInlineElements = 64;
// That many large values wait for the end of the round.
constexpr size_t kKeptGarbage = 64;
// Added by all lanes together before memory is looked at again.
constexpr int64_t kUnlookedBytes = 2048;

}  // namespace

Memory::Memory(Engine* engine) : engine_(*engine), settings_(engine->settings()) {}

int64_t Memory::BufferBytes() const {
  uint64_t total = 0;
  engine_.ForEachLane([&](const Lane& lane) { total += lane.memory.buffer_bytes.get(); });
  return static_cast<int64_t>(total);
}

size_t Memory::Used() const {
  const int64_t other = other_.load(std::memory_order_relaxed) + BufferBytes();
  const int64_t used = static_cast<int64_t>(engine_.keyspace().UsedBytes()) + other;
  return static_cast<size_t>(std::max<int64_t>(0, used));
}

bool Memory::RoomFor(uint64_t bytes) const {
  if (bytes == UINT64_MAX) return false;
  const uint64_t limit = settings_.maxmemory;
  const bool evicts = settings_.maxmemory_policy != config::MaxmemoryPolicy::kNoEviction;
  if (limit > 0 && bytes > limit - (evicts ? 0 : std::min<uint64_t>(limit, Used()))) {
    return false;
  }
  return bytes <= ceiling_ - std::min<uint64_t>(ceiling_, Used());
}

void Memory::NoteExhausted() {
  if (engine_.host() != nullptr) engine_.host()->OutOfMemory();
}

void Memory::LookAt(Lane& lane) {
  // A replica has what its master has.
  const bool exempt = engine_.role().replica() && settings_.replica_ignore_maxmemory;
  lane.memory.limited = settings_.maxmemory > 0 && !engine_.admission().loading() && !exempt;
  lane.memory.over = lane.memory.limited && !MakeRoom(lane);
}

bool Memory::HasRoom(Lane& lane, commands::Args args) {
  if (lane.memory.over) return false;
  int64_t bytes = 0;
  for (const std::string_view arg : args) bytes += static_cast<int64_t>(arg.size()) + 32;
  lane.memory.room -= bytes;
  if (lane.memory.room < -kUnlookedBytes / static_cast<int64_t>(engine_.lanes().size())) {
    lane.locks.ReleaseHeld();
    LookAt(lane);
    FreeGarbage(lane);
    lane.memory.room -= bytes;
  }
  return !lane.memory.over;
}

// Large values stay in the lane until the round ends: the thread that frees them may take this
// one's processor as soon as it wakes, and the round's answers should be on their way by then.
void Memory::FreeAll(Lane& lane) {
  const bool later = lane.locks.in_round() && lane.memory.garbage.size() <= kKeptGarbage;
  size_t kept = 0;
  for (keyspace::Displaced item : lane.memory.garbage) {
    if (types::Object* const object = item.object; object != nullptr) {
      if (object->size() <= kFreeInlineElements) {
        delete object;
        item.object = nullptr;
      } else if (!later) {
        if (!base::IfMemory([&] { engine_.background().Run([object] { delete object; }); })) {
          delete object;
        }
        item.object = nullptr;
      }
    }
    if (base::Blob* const blob = item.blob; blob != nullptr) {
      if (blob->size() <= kFreeInline || !blob->unique()) {
        blob->Unref();
        item.blob = nullptr;
      } else if (!later) {
        if (!base::IfMemory([&] { engine_.background().Run([blob] { blob->Unref(); }); })) {
          blob->Unref();
        }
        item.blob = nullptr;
      }
    }
    if (item.object != nullptr || item.blob != nullptr) lane.memory.garbage[kept++] = item;
  }
  lane.memory.garbage.resize(kept);
}

// The first database's tables are counted as the server's own; a snapshot walks the tables that
// there were when it began.
void Memory::DropIfEmpty(int db, size_t stripe) {
  if (db != 0 && !engine_.snapshot().active() && !engine_.admission().loading()) {
    engine_.keyspace().DropEmpty(db, stripe);
  }
}

}  // namespace sava::engine
