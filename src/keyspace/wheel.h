// Wheel: which keys of a table may expire when. A coarse hierarchical timing wheel of key hashes.
//
// Level l has 64 slots of 128 ms · 64^l; an item is in the slot of its time on the lowest level
// that reaches it. Levels are made when they are needed, not before there are more than kFew items.
// Items are 8-byte hashes in chunks of 2, 14 or 62, the more the slot has; they are hints: when a
// slot falls due the table looks the key up and either expires it or files it again. Several items
// for one key are harmless; Table keeps them few.
//
// Used under the stripe's lock. Cost: O(1) to add, O(1) amortised per item to fire.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/rng.h"

namespace sava::keyspace {

class Wheel {
 public:
  static constexpr int kTickBits = 7;  // 128 ms
  static constexpr int kLevels = 6;
  static constexpr size_t kFew = 32;
  static constexpr size_t kFewest = 4;

  explicit Wheel(int64_t now_ms);
  ~Wheel();
  Wheel(const Wheel&) = delete;
  Wheel& operator=(const Wheel&) = delete;

  void Add(uint64_t hash, int64_t at_ms);
  // Takes at most `budget` items whose slot is reached and calls fire for each; fire expires the
  // key or files it again with its true time, or throws: then the item stays. Returns how many
  // items were taken.
  size_t Advance(int64_t now_ms, size_t budget, const std::function<void(uint64_t)>& fire);
  // Takes at most `budget` items out, slot after slot, for sweeping stale ones: `each` files again
  // what is still wanted. Returns false after a whole turn. A few items are not worth it.
  bool Sweep(size_t budget, const std::function<void(uint64_t)>& each);

  // Whether the next item would need more memory while there are a few: time to leave out those
  // that are no longer wanted.
  bool crowded() const { return few_.size() >= kFewest && few_.size() == few_.capacity(); }
  // REQUIRES: crowded().
  void LeaveOut(const std::function<bool(uint64_t)>& unwanted);

  // Some item; false when there is none.
  bool Random(base::Rng& rng, uint64_t* item) const;

  size_t size() const { return size_; }
  size_t bytes() const {
    return sizeof(Wheel) + few_.capacity() * sizeof(Item) +
           (many_ == nullptr ? 0 : sizeof(Many) + many_->bytes);
  }

 private:
  struct Chunk;
  struct Slot {
    Chunk* head = nullptr;
  };
  struct Pending;
  struct Item {
    uint64_t tick;
    uint64_t hash;
  };

  static constexpr size_t kSlots = 64;
  using Level = std::array<Slot, kSlots>;

  // Where items are once there are more than a few.
  struct Many {
    std::array<std::unique_ptr<Level>, kLevels> levels;
    size_t bytes = 0;  // of levels and chunks
    size_t sweep = 0;  // the next slot to sweep
    Slot sweeping;     // the rest of the slot being swept
  };

  void AddItem(const Item& item);
  void Spread();
  void DropMany();
  void File(uint64_t hash, uint64_t tick);
  size_t AdvanceFew(uint64_t now_tick, size_t budget, const std::function<void(uint64_t)>& fire);
  void Push(Slot& slot, uint64_t hash);
  bool Pop(Slot& slot, uint64_t* hash);
  bool FireLast(Slot& slot, const std::function<void(uint64_t)>& fire);

  // While there are a few only: many tables have no more.
  std::vector<Item> few_;
  std::unique_ptr<Many> many_;  // then few_ is empty
  uint64_t tick_;               // the first tick not yet passed
  size_t size_ = 0;
};

}  // namespace sava::keyspace
