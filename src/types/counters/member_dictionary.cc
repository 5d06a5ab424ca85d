#include "types/counters/member_dictionary.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/if_memory.h"
#include "base/rng.h"
#include "types/value/save.h"

namespace sava::types {

namespace {

// Held for one lookup, so waiting means spinning; a holder that lost its core gets it back.
class SpinLock {
 public:
  void lock() {
    for (int spins = 0; taken_.exchange(true, std::memory_order_acquire); ++spins) {
      if (spins % 256 == 255) {
        sched_yield();
      } else {
        __builtin_ia32_pause();
      }
    }
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

constexpr size_t kFirstChunk = 64;  // records; each further chunk has twice as many
constexpr size_t kChunks = 18;      // 64 * (2^18 - 1) records: 24 bits
constexpr uint32_t kMaxIndex = (1U << 24) - 1;

uint32_t ShortHash(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

}  // namespace

// A member of up to 22 bytes stands in its record; a longer one in a block of its own.
struct MemberDictionary::Record {
  static constexpr uint8_t kLong = 255;

  // Under the shard's lock; what follows is read without it.
  uint32_t references : 31;
  uint32_t in_limbo : 1;  // stands in its shard's limbo
  uint32_t hash;
  uint8_t uuid;
  uint8_t size;  // kLong: data holds a pointer and a length
  char data[22];

  KeptMember Get() const {
    if (size != kLong) return {{data, size}, uuid != 0};
    const char* bytes;
    size_t length;
    memcpy(&bytes, data, sizeof(bytes));
    memcpy(&length, data + sizeof(bytes), sizeof(length));
    return {{bytes, length}, false};
  }
  void Set(const KeptMember& member) {
    uuid = member.uuid ? 1 : 0;
    if (member.bytes.size() <= sizeof(data)) {
      size = static_cast<uint8_t>(member.bytes.size());
      if (size != 0) memcpy(data, member.bytes.data(), size);
      return;
    }
    const size_t length = member.bytes.size();
    char* bytes = static_cast<char*>(malloc(length));
    if (bytes == nullptr) throw std::bad_alloc();
    size = kLong;
    memcpy(bytes, member.bytes.data(), length);
    memcpy(data, &bytes, sizeof(bytes));
    memcpy(data + sizeof(bytes), &length, sizeof(length));
  }
  void Clear() {
    if (size == kLong) free(const_cast<char*>(Get().bytes.data()));
    size = 0;
  }
  // Of a free record: the next free one.
  uint32_t next_free() const {
    uint32_t next;
    memcpy(&next, data, sizeof(next));
    return next;
  }
  void set_next_free(uint32_t next) { memcpy(data, &next, sizeof(next)); }
};

struct alignas(64) MemberDictionary::Shard {
  static constexpr uint32_t kNoIndex = UINT32_MAX;

  ~Shard() {
    for (uint32_t index = 0; index < used; ++index) RecordAt(index)->Clear();
    for (size_t i = 0; i < kChunks; ++i) free(Chunk(i).load(std::memory_order_relaxed));
  }

  std::atomic<Record*>& Chunk(size_t chunk) const { return chunks[chunk * kShards]; }

  Record* RecordAt(uint32_t index) const {
    const auto chunk = static_cast<size_t>(std::bit_width(index / kFirstChunk + 1) - 1);
    const size_t first = kFirstChunk * ((size_t{1} << chunk) - 1);
    return Chunk(chunk).load(std::memory_order_acquire) + (index - first);
  }
  size_t HomeOf(uint32_t hash) const { return (uint64_t{hash} * slots.size()) >> 32; }
  size_t After(size_t slot) const { return slot + 1 == slots.size() ? 0 : slot + 1; }

  uint32_t Find(const KeptMember& member, uint32_t hash) const {
    if (slots.empty()) return kNoIndex;
    for (size_t slot = HomeOf(hash); slots[slot] != 0; slot = After(slot)) {
      if (((slots[slot] ^ hash) & 0xff) != 0) continue;
      const Record* record = RecordAt(IndexIn(slots[slot]));
      if (record->hash == hash && record->Get() == member) return IndexIn(slots[slot]);
    }
    return kNoIndex;
  }

  // A slot: index + 1, and the low byte of the hash, so that most others are passed over unread.
  static uint32_t SlotFor(uint32_t index, uint32_t hash) {
    return (index + 1) << 8 | (hash & 0xff);
  }
  static uint32_t IndexIn(uint32_t slot) { return (slot >> 8) - 1; }

  void Resize(size_t size) {
    std::vector<uint32_t> old(size);
    old.swap(slots);
    for (const uint32_t entry : old) {
      if (entry == 0) continue;
      size_t slot = HomeOf(RecordAt(IndexIn(entry))->hash);
      while (slots[slot] != 0) slot = After(slot);
      slots[slot] = entry;
    }
  }

  uint32_t NewIndex() {
    if (free_head != kNoIndex) {
      const uint32_t index = free_head;
      free_head = RecordAt(index)->next_free();
      return index;
    }
    if (used > kMaxIndex - kFirstChunk) throw std::bad_alloc();
    const auto chunk = static_cast<size_t>(std::bit_width(used / kFirstChunk + 1) - 1);
    if (Chunk(chunk).load(std::memory_order_relaxed) == nullptr) {
      auto* fresh = static_cast<Record*>(malloc((kFirstChunk << chunk) * sizeof(Record)));
      if (fresh == nullptr) throw std::bad_alloc();
      Chunk(chunk).store(fresh, std::memory_order_release);
    }
    return used++;
  }

  uint32_t Insert(const KeptMember& member, uint32_t hash) {
    if ((live + 1) * 10 > slots.size() * 7) Resize(std::max<size_t>(16, slots.size() * 3 / 2));
    const uint32_t index = NewIndex();
    Record* record = RecordAt(index);
    record->size = 0;
    record->in_limbo = 0;
    record->references = 1;
    record->hash = hash;
    try {
      record->Set(member);
    } catch (const std::bad_alloc&) {
      record->set_next_free(free_head);
      free_head = index;
      throw;
    }
    if (record->size == Record::kLong) long_bytes += member.bytes.size();
    size_t slot = HomeOf(hash);
    while (slots[slot] != 0) slot = After(slot);
    slots[slot] = SlotFor(index, hash);
    ++live;
    return index;
  }

  // Takes it out of the table, closing the gap so that every probe sequence stays unbroken.
  void Erase(uint32_t index) {
    Record* record = RecordAt(index);
    size_t gap = HomeOf(record->hash);
    while (slots[gap] != SlotFor(index, record->hash)) gap = After(gap);
    for (size_t slot = After(gap); slots[slot] != 0; slot = After(slot)) {
      const size_t home = HomeOf(RecordAt(IndexIn(slots[slot]))->hash);
      const bool stays = gap < slot ? gap < home && home <= slot : gap < home || home <= slot;
      if (stays) continue;
      slots[gap] = slots[slot];
      gap = slot;
    }
    slots[gap] = 0;
    --live;
    if (record->size == Record::kLong) long_bytes -= record->Get().bytes.size();
    record->Clear();
    record->set_next_free(free_head);
    free_head = index;
    if (live == 0) {
      GiveBack();
    } else if (slots.size() > 64 && live * 4 < slots.size()) {
      base::IfMemory([this] { Resize(live * 2); });  // else it stays as it is
    }
  }

  // Nothing is left: neither are readers.
  void GiveBack() {
    for (size_t i = 0; i < kChunks; ++i) {
      free(Chunk(i).exchange(nullptr, std::memory_order_relaxed));
    }
    std::vector<uint32_t>().swap(slots);
    std::vector<uint32_t>().swap(limbo);
    used = 0;
    free_head = kNoIndex;
  }

  mutable SpinLock lock;
  // All below guarded by `lock`, except that chunk pointers are read without it.
  std::vector<uint32_t> slots;  // see SlotFor; 0: empty
  size_t live = 0;
  size_t long_bytes = 0;
  uint32_t used = 0;  // records ever used
  uint32_t free_head = kNoIndex;
  std::vector<uint32_t> limbo;             // without references, kept because of a pin
  std::atomic<Record*>* chunks = nullptr;  // this shard's column of MemberDictionary::chunks_
};

// In how many counters the members of a sample have been seen. What is in the sample is decided by
// the member's hash; when it grows too large, every second member leaves it.
class MemberDictionary::Sample {
 public:
  bool Has(uint64_t hash) const {
    return ((hash >> 40) & mask_.load(std::memory_order_relaxed)) == 0;
  }

  void Note(uint64_t hash) {
    const std::scoped_lock guard(mutex_);
    Slot& slot = slots_[(hash >> 8) % kSlots];
    const uint32_t tag = ShortHash(hash) | 1;
    if (slot.tag == tag) {
      slot.seen += slot.seen < UINT32_MAX ? 1 : 0;
    } else if (slot.tag == 0) {
      slot = {tag, 1};
      if (++used_ > kSlots * 3 / 4) Thin();
    } else if (--slot.seen == 0) {
      slot = {tag, 1};
    }
  }

  uint32_t Seen(uint64_t hash) const {
    const std::scoped_lock guard(mutex_);
    const Slot& slot = slots_[(hash >> 8) % kSlots];
    return slot.tag == (ShortHash(hash) | 1) ? slot.seen : 0;
  }

 private:
  static constexpr size_t kSlots = 32768;
  struct Slot {
    uint32_t tag = 0;
    uint32_t seen = 0;
  };

  void Thin() {
    const uint64_t mask = mask_.load(std::memory_order_relaxed) * 2 + 1;
    mask_.store(mask, std::memory_order_relaxed);
    used_ = 0;
    for (Slot& slot : slots_) {
      if (((slot.tag >> 8) & mask) != 0) slot = {};
      used_ += slot.tag != 0 ? 1 : 0;
    }
  }

  std::atomic<uint64_t> mask_{3};
  mutable SpinLock mutex_;
  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);  // guarded by mutex_
  size_t used_ = 0;                                      // guarded by mutex_
};

MemberDictionary& MemberDictionary::Shared() {
  // Never destroyed: counters may be freed by other threads until the process ends.
  static auto* shared = new MemberDictionary;
  return *shared;
}

MemberDictionary::MemberDictionary()
    : seed_(base::SecureRandom64()),
      chunks_(std::make_unique<std::atomic<Record*>[]>(kChunks * kShards)),
      shards_(std::make_unique<Shard[]>(kShards)),
      sample_(std::make_unique<Sample>()) {
  for (size_t i = 0; i < kShards; ++i) shards_[i].chunks = &chunks_[i];
}

MemberDictionary::~MemberDictionary() = default;

MemberDictionary::Shard& MemberDictionary::ShardOf(uint64_t hash) const {
  return shards_[hash & (kShards - 1)];
}

MemberDictionary::Record* MemberDictionary::RecordOf(Id id) const {
  const uint32_t index = id >> kShardBits;
  const auto chunk = static_cast<size_t>(std::bit_width(index / kFirstChunk + 1) - 1);
  const size_t first = kFirstChunk * ((size_t{1} << chunk) - 1);
  return chunks_[chunk * kShards + (id & (kShards - 1))].load(std::memory_order_acquire) +
         (index - first);
}

KeptMember MemberDictionary::Get(Id id) const { return RecordOf(id)->Get(); }

MemberDictionary::Id MemberDictionary::Intern(const KeptMember& member, uint64_t hash) {
  Shard& shard = ShardOf(hash);
  const std::scoped_lock guard(shard.lock);
  uint32_t index = shard.Find(member, ShortHash(hash));
  if (index != Shard::kNoIndex) {
    ++shard.RecordAt(index)->references;
  } else {
    index = shard.Insert(member, ShortHash(hash));
  }
  return (index << kShardBits) | static_cast<Id>(hash & (kShards - 1));
}

MemberDictionary::Id MemberDictionary::Find(const KeptMember& member, uint64_t hash) const {
  const Shard& shard = ShardOf(hash);
  const std::scoped_lock guard(shard.lock);
  const uint32_t index = shard.Find(member, ShortHash(hash));
  if (index == Shard::kNoIndex) return kNone;
  return (index << kShardBits) | static_cast<Id>(hash & (kShards - 1));
}

void MemberDictionary::AddReference(Id id) {
  Shard& shard = shards_[id & (kShards - 1)];
  const std::scoped_lock guard(shard.lock);
  ++shard.RecordAt(id >> kShardBits)->references;
}

void MemberDictionary::Release(Id id) {
  Shard& shard = shards_[id & (kShards - 1)];
  const uint32_t index = id >> kShardBits;
  const std::scoped_lock guard(shard.lock);
  if (--shard.RecordAt(index)->references != 0) return;
  Record* record = shard.RecordAt(index);
  if (record->in_limbo != 0) return;  // Unpin will come to it
  if (pins_.load(std::memory_order_acquire) != 0) {
    record->in_limbo = 1;
    shard.limbo.push_back(index);
  } else {
    shard.Erase(index);
  }
}

void MemberDictionary::Pin() { pins_.fetch_add(1, std::memory_order_acq_rel); }

void MemberDictionary::Unpin() {
  if (pins_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  for (size_t i = 0; i < kShards; ++i) {
    Shard& shard = shards_[i];
    const std::scoped_lock guard(shard.lock);
    if (pins_.load(std::memory_order_acquire) != 0) return;  // pinned anew: the next Unpin goes on
    // Erasing the last record clears the list itself.
    const std::vector<uint32_t> limbo = std::exchange(shard.limbo, {});
    for (const uint32_t index : limbo) {
      Record* record = shard.RecordAt(index);
      record->in_limbo = 0;
      if (record->references == 0) shard.Erase(index);
    }
  }
}

void MemberDictionary::NoteSighting(uint64_t hash) {
  if (sample_->Has(hash)) sample_->Note(hash);
}

uint32_t MemberDictionary::Sightings(uint64_t hash) const {
  return sample_->Has(hash) ? sample_->Seen(hash) : 0;
}

size_t MemberDictionary::size() const {
  size_t total = 0;
  for (size_t i = 0; i < kShards; ++i) {
    const std::scoped_lock guard(shards_[i].lock);
    total += shards_[i].live;
  }
  return total;
}

size_t MemberDictionary::bytes() const {
  size_t total = 0;
  for (size_t i = 0; i < kShards; ++i) {
    const std::scoped_lock guard(shards_[i].lock);
    const Shard& shard = shards_[i];
    total +=
        shard.used * sizeof(Record) + shard.slots.capacity() * sizeof(uint32_t) + shard.long_bytes;
  }
  return total;
}

// Module items: for each shard a string of records behind varint ids, in chunks; an empty string
// ends the list.
void MemberDictionary::SaveNew(Writer& out, SavedIds* saved) const {
  constexpr size_t kChunkBytes = 64 << 10;
  saved->resize(kShards);
  std::string chunk;
  std::vector<uint32_t> indexes;
  for (size_t i = 0; i < kShards; ++i) {
    const Shard& shard = shards_[i];
    {
      const std::scoped_lock guard(shard.lock);
      indexes.assign(shard.slots.begin(), shard.slots.end());
    }
    // A pin keeps the members; without one the caller keeps writers away.
    for (const uint32_t entry : indexes) {
      if (entry == 0) continue;
      const uint32_t index = Shard::IndexIn(entry);
      std::vector<bool>& known = (*saved)[i];
      if (known.size() <= index) known.resize(std::max<size_t>(index + 1, indexes.size()));
      if (known[index]) continue;
      known[index] = true;
      const KeptMember member = shard.RecordAt(index)->Get();
      base::AppendVarint(&chunk, (uint64_t{index} << kShardBits) | i);
      const size_t at = chunk.size();
      chunk.resize(at + member.record_size());
      member.Write(reinterpret_cast<uint8_t*>(chunk.data()) + at);
      if (chunk.size() < kChunkBytes) continue;
      out.ModuleString(chunk);
      chunk.clear();
    }
  }
  if (!chunk.empty()) out.ModuleString(chunk);
}

void MemberDictionary::SaveEnd(Writer& out) { out.ModuleString({}); }

void MemberDictionary::SaveAll(Writer& out) const {
  SavedIds saved;
  SaveNew(out, &saved);
  SaveEnd(out);
}

bool SavedDictionary::Load(Reader& in) {
  const bool read = Read(in);
  std::ranges::sort(sparse_, {}, &Known::saved);
  if (!read || std::ranges::adjacent_find(sparse_, {}, &Known::saved) != sparse_.end()) {
    return false;
  }
  // Ids of one writer stand close to each other; a table by id then takes little.
  size_t dense = 0;
  while (dense < sparse_.size() && sparse_[dense].saved < 4 * (dense + 1) + 65536) ++dense;
  if (dense == 0) return true;
  dense_.assign(sparse_[dense - 1].saved + 1, MemberDictionary::kNone);
  for (size_t i = 0; i < dense; ++i) dense_[sparse_[i].saved] = sparse_[i].id;
  sparse_.erase(sparse_.begin(), sparse_.begin() + static_cast<std::ptrdiff_t>(dense));
  sparse_.shrink_to_fit();
  return true;
}

bool SavedDictionary::Read(Reader& in) {
  MemberDictionary& dictionary = MemberDictionary::Shared();
  for (;;) {
    const std::string chunk = in.ModuleString();
    if (!in.ok()) return false;
    if (chunk.empty()) return true;
    const auto* p = reinterpret_cast<const uint8_t*>(chunk.data());
    const uint8_t* const end = p + chunk.size();
    while (p != end) {
      uint64_t saved = 0;
      KeptMember member;
      p = base::GetVarint(p, end, &saved);
      if (p != nullptr) p = ReadRecord(p, end, &member);
      if (p == nullptr || !member.canonical()) return false;
      sparse_.push_back({saved, dictionary.Intern(member, dictionary.HashOf(member))});
    }
  }
}

SavedDictionary::~SavedDictionary() {
  for (const MemberDictionary::Id id : dense_) {
    if (id != MemberDictionary::kNone) MemberDictionary::Shared().Release(id);
  }
  for (const Known& known : sparse_) MemberDictionary::Shared().Release(known.id);
}

}  // namespace sava::types
