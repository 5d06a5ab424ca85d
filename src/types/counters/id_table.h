// IdTable: finds the node of an id. Open addressing over node indexes; the ids themselves are read
// from the nodes by the caller's function. The bits of a slot that no node needs say how far it is
// from where its id belongs, so that only nodes with the same place are read, however full the
// table is. It grows by a third or a half, a few slots with each insertion, so that no insertion
// has to wait for a large table to be copied.
#pragma once

#include <algorithm>
#include <bit>
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
    } else if ((size_ + 1) * 32 > slots_.size() * kMostIn32) {
      old_ = std::exchange(slots_, Slots(NextSize(slots_.size())));
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
    size_t gap = SlotOf(slots_, id, id_of);
    for (size_t slot = After(slots_, gap); slots_[slot] != 0; slot = After(slots_, slot)) {
      const size_t away = AwayAt(slots_, slot, id_of);
      const size_t from_gap = Between(slots_, gap, slot);
      if (away < from_gap) continue;  // its place is behind the gap
      slots_[gap] = slots_.Make(NodeAt(slots_, slot), away - from_gap);
      gap = slot;
    }
    slots_[gap] = 0;
    --size_;
  }

  size_t bytes() const { return (slots_.size() + old_.size()) * sizeof(uint32_t); }

 private:
  // A slot is 0 when it is empty, else node + 1 in its low bits and above them the distance from
  // its place, or the largest number there is room for. Nodes are taken anew before new ones are
  // made, so node + 1 is at most the largest number of members there were, and a table has more
  // slots than that. Zeroed by the kernel page by page, not in one go.
  class Slots {
   public:
    Slots() = default;
    explicit Slots(size_t size)
        : data_(static_cast<uint32_t*>(calloc(size, sizeof(uint32_t)))), size_(size) {
      if (data_ == nullptr) throw std::bad_alloc();
    }
    uint32_t Make(uint32_t node, size_t away) const {
      return static_cast<uint32_t>(std::min(away, farthest()) << bits()) | (node + 1);
    }
    uint32_t NodeOf(uint32_t slot) const {
      return static_cast<uint32_t>(slot & ((uint64_t{1} << bits()) - 1)) - 1;
    }
    size_t AwayOf(uint32_t slot) const { return uint64_t{slot} >> bits(); }
    size_t farthest() const { return uint64_t{UINT32_MAX} >> bits(); }
    uint32_t& operator[](size_t i) { return data_.get()[i]; }
    uint32_t operator[](size_t i) const { return data_.get()[i]; }
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }

   private:
    int bits() const { return std::bit_width(size_); }
    struct Free {
      void operator()(uint32_t* p) const { free(p); }
    };
    std::unique_ptr<uint32_t, Free> data_;
    size_t size_ = 0;
  };
  static constexpr size_t kMostIn32 = 25;
  // The new table has room for a quarter of the old one's slots before it is due to grow itself.
  static constexpr size_t kMovesPerInsert = 64;

  // Powers of two and what lies in the middle: sizes in which the allocator gives memory, too.
  static size_t NextSize(size_t size) { return size == 0 ? 16 : size + std::bit_floor(size) / 2; }
  static size_t HomeOf(const Slots& slots, uint32_t id) {
    return (uint64_t{id * 0x9e3779b1U} * slots.size()) >> 32;
  }
  static size_t After(const Slots& slots, size_t slot) {
    return slot + 1 == slots.size() ? 0 : slot + 1;
  }
  static size_t Between(const Slots& slots, size_t from, size_t to) {
    return to >= from ? to - from : to + slots.size() - from;
  }
  static uint32_t NodeAt(const Slots& slots, size_t slot) { return slots.NodeOf(slots[slot]); }
  template <typename IdOf>
  static size_t AwayAt(const Slots& slots, size_t slot, const IdOf& id_of) {
    const size_t away = slots.AwayOf(slots[slot]);
    if (away < slots.farthest()) return away;
    return Between(slots, HomeOf(slots, id_of(NodeAt(slots, slot))), slot);
  }
  static void Place(Slots& slots, uint32_t id, uint32_t node) {
    size_t away = 0;
    size_t slot = HomeOf(slots, id);
    for (; slots[slot] != 0; slot = After(slots, slot)) ++away;
    slots[slot] = slots.Make(node, away);
  }
  // The slot with the id, or the empty one at which looking for it ends.
  template <typename IdOf>
  static size_t SlotOf(const Slots& slots, uint32_t id, const IdOf& id_of) {
    const size_t farthest = slots.farthest();
    size_t away = 0;
    size_t slot = HomeOf(slots, id);
    for (uint32_t found; (found = slots[slot]) != 0; slot = After(slots, slot)) {
      if (slots.AwayOf(found) == away && id_of(slots.NodeOf(found)) == id) break;
      if (away < farthest) ++away;
    }
    return slot;
  }
  // Moved slots of the old table are not cleared: what they name is found in the new one first.
  template <typename IdOf>
  static uint32_t FindIn(const Slots& slots, uint32_t id, const IdOf& id_of) {
    if (slots.empty()) return kNothing;
    const size_t slot = SlotOf(slots, id, id_of);
    return slots[slot] == 0 ? kNothing : NodeAt(slots, slot);
  }
  template <typename IdOf>
  void MoveSome(size_t count, const IdOf& id_of) {
    for (; count != 0 && moved_ != old_.size(); --count, ++moved_) {
      if (old_[moved_] == 0) continue;
      const uint32_t node = NodeAt(old_, moved_);
      Place(slots_, id_of(node), node);
    }
    if (moved_ == old_.size()) old_ = Slots();
  }

  Slots slots_;
  Slots old_;  // being emptied into slots_
  size_t moved_ = 0;
  size_t size_ = 0;
};

}  // namespace sava::types
