#include "keyspace/table.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/prefetch.h"
#include "keyspace/table_layout.h"

namespace sava::keyspace {

Table::Segment* Table::NewSegment(uint32_t buckets) {
  const size_t bytes = SegmentBytes(buckets);
  void* memory = aligned_alloc(64, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  memset(memory, 0, bytes);
  index_bytes_ += bytes;
  return static_cast<Segment*>(memory);
}

void Table::RetireSegment(Segment* segment, uint32_t buckets) {
  index_bytes_ -= SegmentBytes(buckets);
  epoch_->Retire(segment);
}

Table::Table(const TableSite& site, int64_t now_ms)
    : epoch_(site.epoch),
      hasher_(site.hasher),
      version_(site.version),
      totals_(site.totals),
      wheel_start_(now_ms) {
  Segment* const segment = NewSegment(kFirstBuckets);
  auto* directory = static_cast<Directory*>(malloc(Directory::Bytes(0)));
  if (directory == nullptr) {
    free(segment);
    throw std::bad_alloc();
  }
  directory->depth = 0;
  new (&directory->places[0]) std::atomic<uint64_t>(Pack(segment, kFirstBuckets, 0));
  index_bytes_ += Directory::Bytes(0);
  SetDirectory(directory);
  Settle();
}

Table::~Table() {
  LeaveTotals();
  // Entries in slab pages need no release of their own: only values and blocks outside do.
  if (external_bytes_ > 0 || slab_.large_bytes() > 0) {
    ForEach([this](Entry* entry) {
      Displaced displaced;
      TakeValue(entry, &displaced);
      if (displaced.blob != nullptr) displaced.blob->Unref();
      delete displaced.object;
      const size_t size = entry->BlockSize();
      if (size > base::Slab::kMaxBlock) slab_.Release(entry, size);
    });
  }
  Directory* directory = directory_.load(std::memory_order_relaxed);
  Segment* last = nullptr;
  for (size_t i = 0; i < size_t{1} << directory->depth; ++i) {
    Segment* segment = Unpack(directory->places[i].load(std::memory_order_relaxed)).segment;
    if (segment != last) epoch_->Retire(segment);
    last = segment;
  }
  epoch_->Retire(directory);
}

void* Table::operator new(size_t size) {
  void* memory = malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void Table::operator delete(void* memory) { free(memory); }

void Table::Retire(Table* table) {
  Epoch* epoch = table->epoch_;
  table->~Table();
  epoch->Retire(table);
}

uint64_t Table::HashOf(const Entry* entry) const { return hasher_(entry->key()); }

size_t Table::DirectoryIndex(uint64_t order) const {
  const uint32_t depth = directory_.load(std::memory_order_relaxed)->depth;
  return static_cast<size_t>(order >> (kOrderBits - depth));
}

void Table::SetDirectory(Directory* directory) {
  directory_.store(directory, std::memory_order_release);
  root_.store((uint64_t{directory->depth} << 48) | reinterpret_cast<uintptr_t>(directory),
              std::memory_order_release);
}

// ---- finding ----

Table::Slot* Table::FindSlot(uint64_t hash, std::string_view key) const {
  const uint64_t order = OrderOf(hash);
  const Place place = PlaceOf(order);
  const uint32_t fingerprint = Fingerprint(order, place.depth);
  const uint32_t home = Home(fingerprint, place.buckets);
  uint32_t index = home;
  uint32_t steps = 0;
  while (true) {
    Slot* bucket = place.segment->bucket(place.buckets, index);
    for (int i = 0; i < 8; ++i) {
      const uint64_t slot = bucket[i].load(std::memory_order_relaxed);
      if (FingerprintOf(slot) == fingerprint && slot != 0 && EntryOf(slot)->KeyIs(key)) {
        return &bucket[i];
      }
    }
    if (steps == 0 && place.segment->spill()[home] == 0) return nullptr;
    if (++steps > place.segment->reach) return nullptr;
    index = index + 1 == place.buckets ? 0 : index + 1;
  }
}

Table::Slot* Table::FindEntrySlot(uint64_t hash, const Entry* entry) const {
  const uint64_t order = OrderOf(hash);
  const Place place = PlaceOf(order);
  const uint64_t wanted = MakeSlot(Fingerprint(order, place.depth), entry);
  uint32_t index = Home(FingerprintOf(wanted), place.buckets);
  for (uint32_t steps = 0; steps <= place.segment->reach; ++steps) {
    Slot* bucket = place.segment->bucket(place.buckets, index);
    for (int i = 0; i < 8; ++i) {
      if (bucket[i].load(std::memory_order_relaxed) == wanted) return &bucket[i];
    }
    index = index + 1 == place.buckets ? 0 : index + 1;
  }
  return nullptr;
}

// The lowest seven bits of an item are not the hash's: a key's stripe has them all alike.
uint64_t Table::WheelItem(uint64_t hash, const Entry* entry) {
  return (hash & ~uint64_t{127}) | entry->wheel_tag();
}

size_t Table::FindByItem(uint64_t item, Entry** out, size_t max) const {
  const uint64_t order = OrderOf(item);
  const Place place = PlaceOf(order);
  const uint32_t fingerprint = Fingerprint(order, place.depth);
  uint32_t index = Home(fingerprint, place.buckets);
  size_t found = 0;
  for (uint32_t steps = 0; steps <= place.segment->reach; ++steps) {
    Slot* bucket = place.segment->bucket(place.buckets, index);
    for (int i = 0; i < 8; ++i) {
      const uint64_t slot = bucket[i].load(std::memory_order_relaxed);
      if (slot == 0 || FingerprintOf(slot) != fingerprint) continue;
      if ((HashOf(EntryOf(slot)) ^ item) >> 7 == 0 && found < max) out[found++] = EntryOf(slot);
    }
    index = index + 1 == place.buckets ? 0 : index + 1;
  }
  return found;
}

Entry* Table::EntryAt(const Slot* slot) {
  return slot == nullptr ? nullptr : EntryOf(slot->load(std::memory_order_relaxed));
}

Entry* Table::Find(uint64_t hash, std::string_view key) const {
  return EntryAt(FindSlot(hash, key));
}

void Table::PrefetchDirectory(uint64_t hash) const { base::Prefetch(PlaceAt(OrderOf(hash))); }

void Table::PrefetchBucket(uint64_t hash) const {
  const uint64_t order = OrderOf(hash);
  const Place place = PlaceOf(order);
  const uint32_t home = Home(Fingerprint(order, place.depth), place.buckets);
  base::Prefetch(place.segment->bucket(place.buckets, home));
}

void Table::PrefetchPlace(uint64_t hash) const {
  const uint64_t order = OrderOf(hash);
  const Place place = PlaceOf(order);
  const uint32_t home = Home(Fingerprint(order, place.depth), place.buckets);
  base::PrefetchForWrite(place.segment->bucket(place.buckets, home));
  base::PrefetchForWrite(place.segment);
  base::Prefetch(place.segment->spill() + home);
}

void Table::PrefetchEntry(uint64_t hash, size_t writes) const {
  const uint64_t order = OrderOf(hash);
  const Place place = PlaceOf(order);
  const uint32_t fingerprint = Fingerprint(order, place.depth);
  Slot* bucket = place.segment->bucket(place.buckets, Home(fingerprint, place.buckets));
  for (int i = 0; i < 8; ++i) {
    const uint64_t slot = bucket[i].load(std::memory_order_relaxed);
    if (FingerprintOf(slot) != fingerprint) continue;
    const auto* entry = reinterpret_cast<const char*>(EntryOf(slot));
    if (writes == 0) {
      base::Prefetch(entry);
      base::Prefetch(entry + 64);
      continue;
    }
    const char* const last = entry + std::min(writes, Entry::kMaxInline) - 1;
    for (const char* p = entry; p < last; p += 64) base::PrefetchForWrite(p);
    base::PrefetchForWrite(last);
  }
}

// ---- entries ----

namespace {

size_t PayloadSize(const NewValue& value) {
  if (value.kind == Kind::kObject || value.blob != nullptr || value.form == Form::kInt) return 8;
  return value.bytes.size();
}

uint8_t ValueFlags(const NewValue& value) {
  return value.kind == Kind::kObject || value.blob != nullptr ? kExternal : 0;
}

}  // namespace

void Table::StoreValue(Entry* entry, const NewValue& value) {
  if (value.kind == Kind::kObject) {
    entry->StorePayload(value.object);
  } else if (value.blob != nullptr) {
    entry->StorePayload(value.blob);
    external_bytes_ += value.blob->memory();
  } else if (value.form == Form::kInt) {
    entry->StorePayload(value.integer);
  } else {
    memcpy(entry->mutable_payload(), value.bytes.data(), value.bytes.size());
  }
  if (value.kind == Kind::kObject) external_bytes_ += 1;  // marks the table as having objects
}

Entry* Table::NewEntry(std::string_view key, const NewValue& value, int64_t expire_at) {
  const size_t payload = PayloadSize(value);
  const bool expiry = expire_at >= 0;
  auto* entry = static_cast<Entry*>(slab_.Allocate(Entry::SizeFor(key.size(), expiry, payload)));
  const auto flags = static_cast<uint8_t>(ValueFlags(value) | (expiry ? kHasExpiry : 0) |
                                          (*version_ ? kVersion : 0));
  entry->Init(value.kind, value.form, flags, key, payload, expire_at);
  entry->set_age(0);
  entry->set_wheel_tag(next_tag_++ & 15);
  StoreValue(entry, value);
  return entry;
}

void Table::TakeValue(Entry* entry, Displaced* displaced) {
  if (!entry->has(kExternal)) return;
  if (entry->kind() == Kind::kObject) {
    displaced->object = entry->object();
    external_bytes_ -= 1;
  } else {
    displaced->blob = entry->blob();
    external_bytes_ -= displaced->blob->memory();
  }
}

void Table::FreeEntry(Entry* entry) { slab_.Release(entry, entry->BlockSize()); }

Entry* Table::PutAt(Slot* slot, uint64_t hash, std::string_view key, const NewValue& value,
                    int64_t expire_at, Displaced* displaced) {
  if (slot == nullptr) {
    Entry* entry = NewEntry(key, value, expire_at);
    try {
      Insert(hash, entry);
    } catch (const std::bad_alloc&) {
      Displaced again;
      TakeValue(entry, &again);  // it stays the caller's
      FreeEntry(entry);
      Settle();
      throw;
    }
    if (expire_at >= 0) {
      CountExpiring(1);
      NoteExpiry(hash, entry, -1);
    }
    if (value.kind == Kind::kObject) NoteDeadline(hash, entry);
    Settle();
    return entry;
  }
  const uint64_t word = slot->load(std::memory_order_relaxed);
  Entry* entry = EntryOf(word);
  const int64_t old_expiry = entry->expire_at();
  const size_t payload = PayloadSize(value);
  const size_t old_size = entry->BlockSize();
  const size_t size = Entry::SizeFor(key.size(), expire_at >= 0, payload);
  if ((old_expiry >= 0) == (expire_at >= 0) && size <= base::Slab::kMaxBlock &&
      old_size <= base::Slab::kMaxBlock &&
      base::Slab::ClassOf(size < 24 ? 24 : size) ==
          base::Slab::ClassOf(old_size < 24 ? 24 : old_size)) {
    TakeValue(entry, displaced);
    const uint8_t kept = entry->flags() & (kHasExpiry | kInWheel | kVersion | kWheelTag);
    entry->SetShape(value.kind, value.form, kept | ValueFlags(value), payload);
    if (expire_at >= 0) entry->set_expire_at(expire_at);
    StoreValue(entry, value);
  } else {
    Entry* fresh = NewEntry(key, value, expire_at);
    TakeValue(entry, displaced);
    fresh->set_age(entry->age());
    fresh->set_flag(kInWheel, entry->has(kInWheel) && expire_at >= 0);
    fresh->set_wheel_tag(entry->wheel_tag());
    slot->store(MakeSlot(FingerprintOf(word), fresh), std::memory_order_relaxed);
    FreeEntry(entry);
    entry = fresh;
  }
  if ((old_expiry >= 0) != (expire_at >= 0)) CountExpiring(expire_at >= 0 ? 1 : -1);
  if (expire_at >= 0) NoteExpiry(hash, entry, old_expiry);
  if (value.kind == Kind::kObject) NoteDeadline(hash, entry);
  Settle();
  return entry;
}

bool Table::OverwriteInline(Entry* entry, Form form, std::string_view bytes, int64_t expire_at) {
  if (entry->kind() != Kind::kString || entry->form() != form || form == Form::kInt ||
      entry->has(kExternal) || !entry->has(kHasExpiry) || !entry->has(kInWheel) ||
      expire_at < entry->expire_at()) {
    return false;
  }
  const std::string_view old = entry->inline_bytes();
  if (old.size() != bytes.size()) return false;
  memcpy(const_cast<char*>(old.data()), bytes.data(), bytes.size());
  entry->set_expire_at(expire_at);
  return true;
}

char* Table::Edit(uint64_t hash, std::string_view key, size_t size, Displaced* displaced) {
  Entry* entry = Find(hash, key);
  if (entry != nullptr && entry->has(kExternal)) {
    base::Blob* blob = entry->blob();
    const size_t wanted = std::max(size, blob->size());
    if (!blob->unique()) {
      base::Blob* copy = base::Blob::Extended(blob->view(), wanted);
      external_bytes_ += copy->memory() - blob->memory();
      displaced->blob = blob;
      blob = copy;
    } else if (wanted > blob->size()) {
      const size_t before = blob->memory();
      blob = base::Blob::Resize(blob, wanted);
      external_bytes_ += blob->memory() - before;
    }
    entry->StorePayload(blob);
    entry->SetShape(Kind::kString, Form::kRaw, entry->flags(), 8);
    Settle();
    return blob->data();
  }
  char digits[24];
  std::string_view current;
  int64_t expire_at = -1;
  if (entry != nullptr) {
    expire_at = entry->expire_at();
    if (entry->form() == Form::kInt) {
      const int n =
          snprintf(digits, sizeof digits, "%lld", static_cast<long long>(entry->integer()));
      current = {digits, static_cast<size_t>(n)};
    } else {
      current = entry->inline_bytes();
      if (current.size() >= size) {
        entry->SetShape(Kind::kString, Form::kRaw, entry->flags(), current.size());
        return entry->mutable_payload();
      }
    }
  }
  const size_t wanted = std::max(size, current.size());
  NewValue value;
  value.form = Form::kRaw;
  char small[Entry::kMaxInline];
  if (Entry::SizeFor(key.size(), expire_at >= 0, wanted) <= Entry::kMaxInline) {
    if (!current.empty()) memcpy(small, current.data(), current.size());
    memset(small + current.size(), 0, wanted - current.size());
    value.bytes = {small, wanted};
  } else {
    value.blob = base::Blob::Extended(current, wanted);
  }
  try {
    entry = Put(hash, key, value, expire_at, displaced);
  } catch (const std::bad_alloc&) {
    if (value.blob != nullptr) value.blob->Unref();
    throw;
  }
  return value.blob != nullptr ? value.blob->data() : entry->mutable_payload();
}

bool Table::Remove(uint64_t hash, std::string_view key, Displaced* displaced) {
  Slot* slot = FindSlot(hash, key);
  if (slot == nullptr) return false;
  Entry* entry = EntryOf(slot->load(std::memory_order_relaxed));
  TakeValue(entry, displaced);
  if (entry->has(kHasExpiry)) CountExpiring(-1);
  EraseSlot(hash, slot);
  FreeEntry(entry);
  Settle();
  return true;
}

Entry* Table::SetExpiry(uint64_t hash, Entry* entry, int64_t expire_at) {
  const int64_t old_expiry = entry->expire_at();
  if ((old_expiry >= 0) == (expire_at >= 0)) {
    if (expire_at >= 0) {
      entry->set_expire_at(expire_at);
      NoteExpiry(hash, entry, old_expiry);
      Settle();
    }
    return entry;
  }
  Slot* slot = FindEntrySlot(hash, entry);
  assert(slot != nullptr);
  const std::string_view key = entry->key();
  const size_t payload = entry->payload_size();
  auto* fresh =
      static_cast<Entry*>(slab_.Allocate(Entry::SizeFor(key.size(), expire_at >= 0, payload)));
  auto flags = static_cast<uint8_t>(entry->flags() & ~(kHasExpiry | kInWheel));
  if (expire_at >= 0) flags |= kHasExpiry;
  fresh->Init(entry->kind(), entry->form(), flags, key, payload, expire_at);
  fresh->set_age(entry->age());
  memcpy(fresh->mutable_payload(), entry->mutable_payload(), payload);
  slot->store(MakeSlot(FingerprintOf(slot->load(std::memory_order_relaxed)), fresh),
              std::memory_order_relaxed);
  FreeEntry(entry);
  CountExpiring(expire_at >= 0 ? 1 : -1);
  if (expire_at >= 0) NoteExpiry(hash, fresh, -1);
  Settle();
  return fresh;
}

// ---- accounts and upkeep ----

namespace {

void Move(std::atomic<size_t>& total, size_t from, size_t to) {
  total.store(total.load(std::memory_order_relaxed) + to - from, std::memory_order_relaxed);
}

}  // namespace

// Overwriting in place changes nothing here: then no line is taken from other threads.
void Table::Settle() {
  const size_t used = sizeof(Table) + slab_.used() + external_bytes_ + index_bytes_ +
                      (wheel_ ? wheel_->bytes() : 0);
  const size_t held = used + slab_.idle();
  if (const size_t before = used_.load(std::memory_order_relaxed); before != used) {
    used_.store(used, std::memory_order_relaxed);
    Move(totals_->used, before, used);
  }
  if (const size_t before = held_.load(std::memory_order_relaxed); before != held) {
    held_.store(held, std::memory_order_relaxed);
    Move(totals_->held, before, held);
  }
  if (told_keys_ != size()) Move(totals_->keys, std::exchange(told_keys_, size()), size());
  if (told_expiring_ != expiring()) {
    Move(totals_->expiring, std::exchange(told_expiring_, expiring()), expiring());
  }
}

void Table::LeaveTotals() {
  if (totals_ == nullptr) return;
  Move(totals_->used, used_bytes(), 0);
  Move(totals_->held, held_bytes(), 0);
  Move(totals_->keys, told_keys_, 0);
  Move(totals_->expiring, told_expiring_, 0);
  totals_ = nullptr;
}

size_t Table::Compact() {
  base::Slab::Page* page = slab_.BeginEvacuate();
  if (page == nullptr) return 0;
  void* blocks[192];
  const size_t count = base::Slab::Blocks(page, blocks, 192);
  size_t moved = 0;
  for (; moved < count; ++moved) {
    auto* entry = static_cast<Entry*>(blocks[moved]);
    const uint64_t hash = HashOf(entry);
    Slot* slot = FindEntrySlot(hash, entry);
    assert(slot != nullptr);
    const size_t size = entry->BlockSize();
    void* target = nullptr;
    try {
      target = slab_.Allocate(size);
    } catch (const std::bad_alloc&) {  // the rest stays where it is
      break;
    }
    memcpy(target, entry, size);
    slot->store(
        MakeSlot(FingerprintOf(slot->load(std::memory_order_relaxed)), static_cast<Entry*>(target)),
        std::memory_order_relaxed);
    slab_.Release(entry, size);
  }
  slab_.EndEvacuate(page);
  Settle();
  return moved;
}

}  // namespace sava::keyspace
