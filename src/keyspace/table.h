// Table: the keys of one database in one stripe. Extendible hashing over segments that grow in
// steps before they split, so that the load stays high and no insertion moves more than a segment.
//
//   order   = hash >> 19: 45 bits; everything below is in this order, so SCAN's cursor is an order
//   directory[top bits of order] -> segment (pointer, bucket count, depth in one word)
//   segment = spill counts, then buckets of 8 slots (64 bytes, one cache line)
//   slot    = fingerprint (the 16 bits of order after the segment's depth) << 48 | Entry*
//   home bucket = fingerprint * buckets >> 16: ascending in order
//
// A full bucket spills to the next ones (wrapping); spill[home] counts how many went elsewhere, so
// that a miss usually ends in its home bucket. Growing or merging a segment needs only the
// fingerprints; splitting looks at the entries once.
//
// Thread safety: everything under the stripe's lock, except Prefetch*, which any thread inside the
// gate may call: slots and directory are atomics, retired memory goes through Epoch.
// Cost: find, put, remove O(1); SCAN step O(keys reported).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/prefetch.h"
#include "base/rng.h"
#include "base/slab.h"
#include "keyspace/entry.h"
#include "keyspace/epoch.h"
#include "keyspace/key_hasher.h"
#include "keyspace/wheel.h"

namespace sava::keyspace {

// A value on its way into a table. At most one of bytes, blob, object.
struct NewValue {
  Kind kind = Kind::kString;
  Form form = Form::kRaw;
  int64_t integer = 0;
  std::string_view bytes;
  // What a table takes over when Put returns; without memory, when it throws, they stay the
  // caller's and the table stays as it was.
  base::Blob* blob = nullptr;
  types::Object* object = nullptr;
};

// Values that a change threw out, to release after the lock.
struct Displaced {
  base::Blob* blob = nullptr;
  types::Object* object = nullptr;
};

// What tables hold together. Written under the stripe's lock, read by all threads.
struct Totals {
  std::atomic<size_t> keys{0};
  std::atomic<size_t> expiring{0};
  std::atomic<size_t> used{0};  // bytes, as Table::used_bytes
  std::atomic<size_t> held{0};
};

// The owners of a table. All of it outlives the table, but for `totals`: see LeaveTotals.
struct TableSite {
  Epoch* epoch;
  KeyHasher hasher;
  const bool* version;  // what new entries carry as kVersion
  Totals* totals;       // of the stripe
};

class Table {
 public:
  // Where an entry is in the index. Valid until the table changes.
  using Slot = std::atomic<uint64_t>;

  static constexpr int kOrderBits = 45;
  static uint64_t OrderOf(uint64_t hash) { return hash >> (64 - kOrderBits); }

  Table(const TableSite& site, int64_t now_ms);
  // Frees entries and their values. May take long: large tables die on a background thread.
  ~Table();
  // From now on the stripe's totals are without this table. REQUIRES: the stripe's lock, or the
  // gate closed; nothing changes the table afterwards.
  void LeaveTotals();
  // Deletes an empty table that other threads inside the gate may be prefetching from.
  static void Retire(Table* table);
  static void* operator new(size_t size);
  static void operator delete(void* memory);
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  Entry* Find(uint64_t hash, std::string_view key) const;
  // The place of a key, nullptr when it is not there; EntryAt looks it up.
  Slot* FindSlot(uint64_t hash, std::string_view key) const;
  static Entry* EntryAt(const Slot* slot);
  // Inserts or replaces. expire_at -1: none. The entry's age is left as it was (0 when new).
  Entry* Put(uint64_t hash, std::string_view key, const NewValue& value, int64_t expire_at,
             Displaced* displaced) {
    return PutAt(FindSlot(hash, key), hash, key, value, expire_at, displaced);
  }
  // The same for a key whose place has just been found.
  Entry* PutAt(Slot* slot, uint64_t hash, std::string_view key, const NewValue& value,
               int64_t expire_at, Displaced* displaced);
  // PutAt for the usual case, when the same bytes of the same entry can hold the new ones and
  // nothing needs accounting: an inline string that keeps its form and length, with an expiry
  // that does not come earlier. False, and nothing done, otherwise.
  bool OverwriteInline(Entry* entry, Form form, std::string_view bytes, int64_t expire_at);
  // The string at the key for change in place, at least `size` bytes, zero-filled growth, form raw.
  // Created when missing. REQUIRES: a string or missing.
  char* Edit(uint64_t hash, std::string_view key, size_t size, Displaced* displaced);
  bool Remove(uint64_t hash, std::string_view key, Displaced* displaced);
  // Makes the index of an empty table large enough for that many keys; nothing when it has some.
  void Reserve(size_t keys);
  // May move the entry: use what it returns. expire_at -1 removes the expiry.
  Entry* SetExpiry(uint64_t hash, Entry* entry, int64_t expire_at);

  // The database it belonged to when the current snapshot began.
  int cut_db() const { return cut_db_; }
  void set_cut_db(int db) { cut_db_ = db; }

  size_t size() const { return count_.load(std::memory_order_relaxed); }
  size_t expiring() const { return expiring_.load(std::memory_order_relaxed); }
  // Sum of remaining lifetimes' expiry times, for INFO's avg_ttl.
  int64_t AverageTtl(int64_t now_ms, base::Rng& rng) const;

  // Bytes: what entries, values and the index use; and what the allocator holds for them.
  // Readable by any thread inside the gate.
  size_t used_bytes() const { return used_.load(std::memory_order_relaxed); }
  size_t held_bytes() const { return held_.load(std::memory_order_relaxed); }

  // Reports every entry whose order is in [from, …) in ascending home buckets until about `count`
  // were reported; returns the order to go on from, or 0 at the end.
  uint64_t Scan(uint64_t from, size_t count, const std::function<void(Entry*)>& visit) const;
  void ForEach(const std::function<void(Entry*)>& visit) const;
  // Some entry chosen at random; nullptr when empty.
  Entry* Random(base::Rng& rng) const;
  // Up to max entries from a random place.
  size_t Sample(base::Rng& rng, Entry** out, size_t max) const;
  // The same among the entries that have an expiry.
  size_t SampleExpiring(base::Rng& rng, Entry** out, size_t max) const;

  // Takes at most `budget` due wheel items; `expire` is called for each entry past its time and
  // must remove it; `visit` for each whose object has parts past their time: it removes some, and
  // calls NoteDeadline or removes the entry. Returns how many items were looked at.
  size_t Expire(int64_t now_ms, size_t budget, const std::function<void(Entry*)>& expire,
                const std::function<void(Entry*)>& visit = nullptr);
  // The entry's object wants to be visited at its next_deadline(). Put does this itself.
  void NoteDeadline(uint64_t hash, Entry* entry);
  // Moves entries off a sparse page, if there is one; returns how many were moved.
  size_t Compact();

  // Cache hints, callable without the lock by any thread inside the gate, one after another for all
  // keys of a batch: each needs what the one before it fetched.
  void PrefetchTable() const { base::Prefetch(&root_); }
  void PrefetchDirectory(uint64_t hash) const;
  void PrefetchBucket(uint64_t hash) const;
  // writes: that many bytes of the entry may be written; 0: it is read.
  void PrefetchEntry(uint64_t hash, size_t writes) const;
  // For a key that is probably new, instead of PrefetchBucket: also what counts the segment's keys.
  void PrefetchPlace(uint64_t hash) const;

  // For tests: walks everything and aborts on a broken invariant.
  void CheckInvariants() const;

 private:
  struct Segment;
  struct Directory;
  struct Place {  // a segment as the directory knows it
    Segment* segment;
    uint32_t buckets;
    uint32_t depth;
  };

  static uint64_t Pack(Segment* segment, uint32_t buckets, uint32_t depth);
  static Place Unpack(uint64_t word);
  static uint64_t SegmentBytes(uint32_t buckets);

  Place PlaceOf(uint64_t order) const;
  size_t DirectoryIndex(uint64_t order) const;
  Slot* FindEntrySlot(uint64_t hash, const Entry* entry) const;
  void Insert(uint64_t hash, Entry* entry);
  bool TryPlace(const Place& place, uint32_t fingerprint, Entry* entry);
  void Grow(uint64_t order);
  void Resize(uint64_t order, uint32_t buckets);
  void Split(uint64_t order);
  void MaybeShrink(uint64_t order);
  bool TryMerge(uint64_t order);
  void Publish(uint64_t order, uint32_t depth, Segment* segment, uint32_t buckets);
  void SetDirectory(Directory* directory);
  const std::atomic<uint64_t>* PlaceAt(uint64_t order) const;
  void EraseSlot(uint64_t hash, Slot* slot);
  Segment* NewSegment(uint32_t buckets);
  void RetireSegment(Segment* segment, uint32_t buckets);

  Entry* NewEntry(std::string_view key, const NewValue& value, int64_t expire_at);
  void StoreValue(Entry* entry, const NewValue& value);
  void FreeEntry(Entry* entry);
  void TakeValue(Entry* entry, Displaced* displaced);
  void NoteExpiry(uint64_t hash, Entry* entry, int64_t old_expiry);
  bool FileItem(uint64_t item, int64_t at);
  static bool Wants(const Entry& entry, uint64_t item);
  void CountExpiring(int64_t delta) {
    expiring_.store(expiring_.load(std::memory_order_relaxed) + static_cast<size_t>(delta),
                    std::memory_order_relaxed);
  }
  uint64_t HashOf(const Entry* entry) const;
  // Publishes the accounts, here and in the totals; the last thing every change does.
  void Settle();
  static uint64_t WheelItem(uint64_t hash, const Entry* entry);
  size_t FindByItem(uint64_t item, Entry** out, size_t max) const;

  Epoch* const epoch_;
  const KeyHasher hasher_;
  const bool* const version_;
  Totals* totals_;
  int cut_db_ = 0;
  std::atomic<Directory*> directory_;
  // The directory and its depth in one word, so that a lookup needs no line of it but the right
  // one.
  std::atomic<uint64_t> root_;
  base::Slab slab_;
  std::unique_ptr<Wheel> wheel_;
  int64_t wheel_start_;
  std::atomic<size_t> count_{0};
  std::atomic<size_t> expiring_{0};
  std::atomic<size_t> used_{0};
  std::atomic<size_t> held_{0};
  size_t told_keys_ = 0;  // what of it is in totals_
  size_t told_expiring_ = 0;
  size_t external_bytes_ = 0;
  size_t index_bytes_ = 0;
  bool sweeping_ = false;
  size_t swept_size_ = 0;  // items that the last whole sweep left
  uint8_t next_tag_ = 0;
};

}  // namespace sava::keyspace
