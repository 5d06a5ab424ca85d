// IdTable: finds the node of an id. Open addressing over node indexes; the ids themselves are read
// from the nodes by the caller's function. It grows by half, a few slots with each insertion, so
// that no insertion has to wait for a large table to be copied.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace sava::types {

class IdTable {
 public:
  static constexpr uint32_t kNothing = UINT32_MAX;

  // id_of(node) gives the id of a node in the table.
  template <typename IdOf>
  uint32_t Find(uint32_t id, const IdOf& id_of) const {
    const uint32_t found = FindIn(slots_, id, id_of);
    return found != kNothing || old_.empty() ? found : FindIn(old_, id, id_of);
  }

  // REQUIRES: the id is not in the table.
  template <typename IdOf>
  void Insert(uint32_t id, uint32_t node, const IdOf& id_of) {
    if (!old_.empty()) {
      MoveSome(kMovesPerInsert, id_of);
    } else if ((size_ + 1) * 10 > slots_.size() * 7) {
      old_ = std::exchange(slots_, Slots(std::max<size_t>(16, slots_.size() * 3 / 2)));
      moved_ = 0;
      MoveSome(kMovesPerInsert, id_of);
    }
    Place(slots_, id, node);
    ++size_;
  }

  // REQUIRES: the id is in the table.
  template <typename IdOf>
  void Erase(uint32_t id, const IdOf& id_of) {
    // While growing, finish first: gaps in two tables would have to be told apart.
    if (!old_.empty()) MoveSome(old_.size(), id_of);
    size_t gap = HomeOf(slots_, id);
    while (id_of(slots_[gap] - 1) != id) gap = After(slots_, gap);
    for (size_t slot = After(slots_, gap); slots_[slot] != 0; slot = After(slots_, slot)) {
      const size_t home = HomeOf(slots_, id_of(slots_[slot] - 1));
      const bool stays = gap < slot ? gap < home && home <= slot : gap < home || home <= slot;
      if (stays) continue;
      slots_[gap] = slots_[slot];
      gap = slot;
    }
    slots_[gap] = 0;
    --size_;
  }

  size_t bytes() const { return (slots_.size() + old_.size()) * sizeof(uint32_t); }

 private:
  // node + 1, 0: empty. Zeroed by the kernel page by page, not in one go.
  class Slots {
   public:
    Slots() = default;
    explicit Slots(size_t size)
        : data_(static_cast<uint32_t*>(calloc(size, sizeof(uint32_t)))), size_(size) {
      if (data_ == nullptr) throw std::bad_alloc();
    }
    uint32_t& operator[](size_t i) { return data_.get()[i]; }
    uint32_t operator[](size_t i) const { return data_.get()[i]; }
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }

   private:
    struct Free {
      void operator()(uint32_t* p) const { free(p); }
    };
    std::unique_ptr<uint32_t, Free> data_;
    size_t size_ = 0;
  };
  // The new table has room for a third of the old one's slots before it is due to grow itself.
  static constexpr size_t kMovesPerInsert = 16;

  static size_t HomeOf(const Slots& slots, uint32_t id) {
    return (uint64_t{id * 0x9e3779b1U} * slots.size()) >> 32;
  }
  static size_t After(const Slots& slots, size_t slot) {
    return slot + 1 == slots.size() ? 0 : slot + 1;
  }
  static void Place(Slots& slots, uint32_t id, uint32_t node) {
    size_t slot = HomeOf(slots, id);
    while (slots[slot] != 0) slot = After(slots, slot);
    slots[slot] = node + 1;
  }
  // Moved slots of the old table are not cleared: what they name is found in the new one first.
  template <typename IdOf>
  static uint32_t FindIn(const Slots& slots, uint32_t id, const IdOf& id_of) {
    if (slots.empty()) return kNothing;
    for (size_t slot = HomeOf(slots, id); slots[slot] != 0; slot = After(slots, slot)) {
      if (id_of(slots[slot] - 1) == id) return slots[slot] - 1;
    }
    return kNothing;
  }
  template <typename IdOf>
  void MoveSome(size_t count, const IdOf& id_of) {
    for (; count != 0 && moved_ != old_.size(); --count, ++moved_) {
      if (old_[moved_] != 0) Place(slots_, id_of(old_[moved_] - 1), old_[moved_] - 1);
    }
    if (moved_ == old_.size()) old_ = Slots();
  }

  Slots slots_;
  Slots old_;  // being emptied into slots_
  size_t moved_ = 0;
  size_t size_ = 0;
};

}  // namespace sava::types
