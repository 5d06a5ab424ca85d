#include "keyspace/wheel.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/if_memory.h"

namespace sava::keyspace {

// Its items follow.
struct Wheel::Chunk {
  Chunk* next;
  uint32_t count;
  uint32_t room;

  uint64_t* items() { return reinterpret_cast<uint64_t*>(this + 1); }
  const uint64_t* items() const { return reinterpret_cast<const uint64_t*>(this + 1); }
  static size_t Bytes(uint32_t room) { return sizeof(Chunk) + room * sizeof(uint64_t); }
  // Of the chunk that follows one of this size: 32, 128, 512 bytes.
  static uint32_t RoomAfter(uint32_t room) { return room == 0 ? 2 : room == 2 ? 14 : 62; }
};

Wheel::Wheel(int64_t now_ms) : tick_(static_cast<uint64_t>(now_ms) >> kTickBits) {}

Wheel::~Wheel() { DropMany(); }

void Wheel::DropMany() {
  if (many_ == nullptr) return;
  uint64_t hash;
  for (const auto& level : many_->levels) {
    if (level == nullptr) continue;
    for (Slot& slot : *level) {
      while (Pop(slot, &hash)) {
      }
    }
  }
  while (Pop(many_->sweeping, &hash)) {
  }
  many_ = nullptr;
}

void Wheel::Push(Slot& slot, uint64_t hash) {
  if (slot.head == nullptr || slot.head->count == slot.head->room) {
    const uint32_t room = Chunk::RoomAfter(slot.head == nullptr ? 0 : slot.head->room);
    auto* chunk = static_cast<Chunk*>(malloc(Chunk::Bytes(room)));
    if (chunk == nullptr) throw std::bad_alloc();
    *chunk = {.next = slot.head, .count = 0, .room = room};
    slot.head = chunk;
    many_->bytes += Chunk::Bytes(room);
  }
  slot.head->items()[slot.head->count++] = hash;
  ++size_;
}

bool Wheel::Pop(Slot& slot, uint64_t* hash) {
  Chunk* chunk = slot.head;
  if (chunk == nullptr) return false;
  *hash = chunk->items()[--chunk->count];
  --size_;
  if (chunk->count == 0) {
    slot.head = chunk->next;
    many_->bytes -= Chunk::Bytes(chunk->room);
    free(chunk);
  }
  return true;
}

void Wheel::Add(uint64_t hash, int64_t at_ms) {
  // One tick late, so that a key is past its expiry when its slot is taken.
  uint64_t tick = (static_cast<uint64_t>(at_ms < 0 ? 0 : at_ms) >> kTickBits) + 1;
  AddItem({std::max(tick, tick_), hash});
}

// REQUIRES: its tick >= tick_.
void Wheel::AddItem(const Item& item) {
  if (many_ == nullptr && few_.size() < kFew) {
    few_.push_back(item);
    ++size_;
    return;
  }
  if (many_ == nullptr) Spread();
  File(item.hash, item.tick);
}

// From a few to levels; without memory they stay a few.
void Wheel::Spread() {
  many_ = std::make_unique<Many>();
  size_ = 0;
  try {
    for (const Item& item : few_) File(item.hash, item.tick);
  } catch (const std::bad_alloc&) {
    DropMany();
    size_ = few_.size();
    throw;
  }
  std::vector<Item>().swap(few_);
}

// REQUIRES: tick >= tick_.
void Wheel::File(uint64_t hash, uint64_t tick) {
  const uint64_t distance = tick - tick_;
  int level = 0;
  while (level < kLevels - 1 && distance >= (uint64_t{64} << (6 * level))) ++level;
  if (level == kLevels - 1 && distance >= (uint64_t{64} << (6 * level))) {
    tick = tick_ + (uint64_t{63} << (6 * level));  // beyond the wheel: filed again when reached
  }
  std::unique_ptr<Level>& slots = many_->levels[static_cast<size_t>(level)];
  if (slots == nullptr) {
    slots = std::make_unique<Level>();
    many_->bytes += sizeof(Level);
  }
  Push((*slots)[(tick >> (6 * level)) & 63], hash);
}

// The item goes only when firing has come to its end; that may file others, but not here. False
// when there is none.
bool Wheel::FireLast(Slot& slot, const std::function<void(uint64_t)>& fire) {
  if (slot.head == nullptr) return false;
  uint64_t hash = slot.head->items()[slot.head->count - 1];
  fire(hash);
  return Pop(slot, &hash);
}

// A slot's items while they are fired; those that are left go back, also when firing finds no
// memory.
struct Wheel::Pending {
  explicit Pending(Slot& from) : slot(from) { std::swap(items.head, slot.head); }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  ~Pending() {
    if (items.head == nullptr) return;
    Chunk* last = items.head;
    while (last->next != nullptr) last = last->next;
    last->next = slot.head;
    slot.head = items.head;
  }

  Slot& slot;
  Slot items;
};

size_t Wheel::Advance(int64_t now_ms, size_t budget, const std::function<void(uint64_t)>& fire) {
  const uint64_t now_tick = static_cast<uint64_t>(now_ms) >> kTickBits;
  size_t taken = many_ == nullptr ? AdvanceFew(now_tick, budget, fire) : 0;
  if (many_ == nullptr) return taken;
  auto& levels = many_->levels;
  while (tick_ <= now_tick) {
    if (size_ == 0) {
      tick_ = now_tick + 1;
      break;
    }
    // Higher levels first: their items may belong to this very tick.
    for (int level = kLevels - 1; level > 0; --level) {
      if ((tick_ & ((uint64_t{1} << (6 * level)) - 1)) != 0) continue;
      Level* const slots = levels[static_cast<size_t>(level)].get();
      if (slots == nullptr) continue;
      Slot& slot = (*slots)[(tick_ >> (6 * level)) & 63];
      // Detach: firing may add to the same slot again.
      Pending pending(slot);
      while (taken < budget && FireLast(pending.items, fire)) ++taken;
      if (pending.items.head != nullptr) return taken;
    }
    // Firing may make the level.
    while (levels[0] != nullptr && (*levels[0])[tick_ & 63].head != nullptr) {
      if (taken == budget) return taken;
      Pending pending((*levels[0])[tick_ & 63]);
      while (taken < budget && FireLast(pending.items, fire)) ++taken;
    }
    ++tick_;
  }
  return taken;
}

// Firing may file items, due ones too, here or, when they become more, on the levels, which the
// caller goes on with.
size_t Wheel::AdvanceFew(uint64_t now_tick, size_t budget,
                         const std::function<void(uint64_t)>& fire) {
  size_t taken = 0;
  while (many_ == nullptr) {
    const auto due = std::find_if(few_.begin(), few_.end(),
                                  [now_tick](const Item& item) { return item.tick <= now_tick; });
    if (due == few_.end()) {
      tick_ = std::max(tick_, now_tick + 1);
      break;
    }
    if (taken == budget) break;
    const Item item = *due;
    *due = few_.back();
    few_.pop_back();
    --size_;
    if (!base::IfMemory([&] { fire(item.hash); })) {
      // It stays, in the room that it has left unless firing has filled that.
      base::IfMemory([&] { AddItem(item); });
      throw std::bad_alloc();
    }
    ++taken;
  }
  return taken;
}

bool Wheel::Sweep(size_t budget, const std::function<void(uint64_t)>& each) {
  if (many_ == nullptr) return false;
  auto& levels = many_->levels;
  size_t& sweep = many_->sweep;
  for (; budget > 0; --budget) {
    if (FireLast(many_->sweeping, each)) continue;
    while (sweep < kSlots * kLevels && levels[sweep / kSlots] == nullptr) sweep += kSlots;
    if (sweep == kSlots * kLevels) {
      sweep = 0;
      return false;
    }
    std::swap(many_->sweeping.head, (*levels[sweep / kSlots])[sweep % kSlots].head);
    ++sweep;
  }
  return true;
}

// The rest gets enough room that this need not be done again soon.
void Wheel::LeaveOut(const std::function<bool(uint64_t)>& unwanted) {
  std::erase_if(few_, [&](const Item& item) { return unwanted(item.hash); });
  size_ = few_.size();
  if (few_.size() > kFew - kFew / 4) return Spread();
  std::vector<Item> left;
  left.reserve(std::max(kFewest, std::bit_ceil(few_.size() + few_.size() / 4 + 1)));
  left.assign(few_.begin(), few_.end());
  few_.swap(left);
}

bool Wheel::Random(base::Rng& rng, uint64_t* item) const {
  if (!few_.empty()) {
    *item = few_[rng.Below(few_.size())].hash;
    return true;
  }
  if (many_ == nullptr) return false;
  const Chunk* filled[64 * kLevels];
  size_t count = 0;
  for (const auto& level : many_->levels) {
    if (level == nullptr) continue;
    for (const Slot& slot : *level) {
      if (slot.head != nullptr) filled[count++] = slot.head;
    }
  }
  if (count == 0) return false;
  const Chunk* chunk = filled[rng.Below(count)];
  // A few chunks down the list, so that not only the latest items are seen.
  for (uint64_t skip = rng.Below(8); skip > 0 && chunk->next != nullptr; --skip) {
    chunk = chunk->next;
  }
  *item = chunk->items()[rng.Below(chunk->count)];
  return true;
}

}  // namespace sava::keyspace
