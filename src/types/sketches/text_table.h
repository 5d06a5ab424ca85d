// TextTable: finds the node of a text. Open addressing over node numbers, each beside 32 bits of
// its text's hash; the texts themselves are compared by the caller's function. It grows by half, a
// few slots with each insertion, so that no insertion waits for a large table to be copied.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "base/prefetch.h"

namespace sava::types {

class TextTable {
 public:
  static constexpr uint32_t kNothing = UINT32_MAX;

  static uint32_t HashOf(std::string_view text) {
    return static_cast<uint32_t>(base::HashBytes(text, 0));
  }

  // is(node) tells whether a node has the text that `hash` belongs to.
  template <typename Is>
  uint32_t Find(uint32_t hash, const Is& is) const {
    const uint32_t found = FindIn(slots_, hash, is);
    return found != kNothing || old_.empty() ? found : FindIn(old_, hash, is);
  }

  // Asks for the memory that Find will look at first.
  void Prefetch(uint32_t hash) const {
    if (!slots_.empty()) base::Prefetch(&slots_[HomeOf(slots_, hash)]);
  }

  // Takes the memory that the next Insert needs.
  void Reserve() {
    if (!old_.empty()) {
      MoveSome(kMovesPerInsert);
    } else if ((size_ + 1) * 10 > slots_.size() * 7) {
      old_ = std::exchange(slots_, Slots(std::max<size_t>(8, slots_.size() * 3 / 2)));
      moved_ = 0;
      MoveSome(kMovesPerInsert);
    }
  }
  // REQUIRES: the text is not in the table; node < kNothing - 1.
  void Insert(uint32_t hash, uint32_t node) {
    Reserve();
    Place({hash, node + 1});
    ++size_;
  }

  // REQUIRES: the node is in the table under that hash.
  void Erase(uint32_t hash, uint32_t node) {
    // While growing, finish first: gaps in two tables would have to be told apart.
    if (!old_.empty()) MoveSome(old_.size());
    size_t gap = HomeOf(slots_, hash);
    while (slots_[gap].node != node + 1) gap = After(slots_, gap);
    for (size_t at = After(slots_, gap); slots_[at].node != 0; at = After(slots_, at)) {
      const size_t home = HomeOf(slots_, slots_[at].hash);
      const bool stays = gap < at ? gap < home && home <= at : gap < home || home <= at;
      if (stays) continue;
      slots_[gap] = slots_[at];
      gap = at;
    }
    slots_[gap] = {};
    --size_;
  }

  size_t bytes() const { return (slots_.size() + old_.size()) * sizeof(Slot); }

 private:
  struct Slot {
    uint32_t hash;
    uint32_t node;  // + 1; 0: empty
  };
  // Zeroed by the kernel page by page, not in one go.
  class Slots {
   public:
    Slots() = default;
    explicit Slots(size_t size)
        : data_(static_cast<Slot*>(calloc(size, sizeof(Slot)))), size_(size) {
      if (data_ == nullptr) throw std::bad_alloc();
    }
    Slot& operator[](size_t i) { return data_.get()[i]; }
    const Slot& operator[](size_t i) const { return data_.get()[i]; }
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }

   private:
    struct Free {
      void operator()(Slot* p) const { free(p); }
    };
    std::unique_ptr<Slot, Free> data_;
    size_t size_ = 0;
  };
  // The new table has room for a third of the old one's slots before it is due to grow itself.
  static constexpr size_t kMovesPerInsert = 16;

  static size_t HomeOf(const Slots& slots, uint32_t hash) {
    return (uint64_t{hash} * slots.size()) >> 32;
  }
  static size_t After(const Slots& slots, size_t at) { return at + 1 == slots.size() ? 0 : at + 1; }
  void Place(Slot slot) {
    size_t at = HomeOf(slots_, slot.hash);
    while (slots_[at].node != 0) at = After(slots_, at);
    slots_[at] = slot;
  }
  // Moved slots of the old table are not cleared: what they name is found in the new one first.
  template <typename Is>
  static uint32_t FindIn(const Slots& slots, uint32_t hash, const Is& is) {
    if (slots.empty()) return kNothing;
    for (size_t at = HomeOf(slots, hash); slots[at].node != 0; at = After(slots, at)) {
      if (slots[at].hash == hash && is(slots[at].node - 1)) return slots[at].node - 1;
    }
    return kNothing;
  }
  void MoveSome(size_t count) {
    for (; count != 0 && moved_ != old_.size(); --count, ++moved_) {
      if (old_[moved_].node != 0) Place(old_[moved_]);
    }
    if (moved_ == old_.size()) old_ = Slots();
  }

  Slots slots_;
  Slots old_;  // being emptied into slots_
  size_t moved_ = 0;
  size_t size_ = 0;
};

}  // namespace sava::types
