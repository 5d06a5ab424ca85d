// PendingList: items ordered by their StreamId in blocks of at most kBlock, for the entries of a
// stream that a group, or one of its consumers, has not acknowledged yet.
//
// Blocks are shared with the caller of Blocks(): one of them is copied before it changes, so what
// was taken stays as it was. That is how a snapshot saves a long list while it changes.
//
// Complexity: O(log n) to find; to insert or erase O(kBlock + n / kBlock), at the end O(1).
// Thread safety: as the stream it belongs to; that holds for what was taken too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/if_memory.h"
#include "types/collections/stream_id.h"

namespace sava::types {

// T has a member `id`.
template <typename T>
class PendingList {
 public:
  static constexpr size_t kBlock = 256;
  using Block = std::vector<T>;
  using SharedBlock = std::shared_ptr<const Block>;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t MemoryUsage() const {
    return blocks_.capacity() * sizeof(blocks_[0]) + blocks_.size() * 64 + size_ * sizeof(T);
  }

  // REQUIRES: not empty.
  const T& front() const { return blocks_.front()->front(); }
  const T& back() const { return blocks_.back()->back(); }

  const T* Find(const StreamId& id) const {
    const Place at = Lower(id);
    if (at.block == blocks_.size()) return nullptr;
    const T& item = (*blocks_[at.block])[at.index];
    return item.id == id ? &item : nullptr;
  }

  // The first item that is not below `id`; nullptr when there is none.
  const T* FindFrom(const StreamId& id) const {
    const Place at = Lower(id);
    return at.block == blocks_.size() ? nullptr : &(*blocks_[at.block])[at.index];
  }

  // The item for change (not of its id); nullptr when there is none. Valid until the next call.
  T* Edit(const StreamId& id) {
    const Place at = Lower(id);
    if (at.block == blocks_.size() || (*blocks_[at.block])[at.index].id != id) return nullptr;
    return &Own(at.block)[at.index];
  }

  // False when the id is there already.
  bool Insert(T item) {
    if (blocks_.empty() || item.id > back().id) {
      Append(std::move(item));
      return true;
    }
    const Place at = Lower(item.id);
    if ((*blocks_[at.block])[at.index].id == item.id) return false;
    Block& block = Own(at.block);
    block.insert(block.begin() + static_cast<ptrdiff_t>(at.index), std::move(item));
    ++size_;
    if (block.size() > kBlock) base::IfMemory([&] { Split(at.block); });
    return true;
  }

  bool Erase(const StreamId& id) {
    const Place at = Lower(id);
    if (at.block == blocks_.size() || (*blocks_[at.block])[at.index].id != id) return false;
    if (blocks_[at.block]->size() == 1) {
      --size_;
      blocks_.erase(blocks_.begin() + static_cast<ptrdiff_t>(at.block));
      return true;
    }
    Block& block = Own(at.block);
    --size_;
    block.erase(block.begin() + static_cast<ptrdiff_t>(at.index));
    // Small and large blocks do no harm: without memory they stay.
    if (block.size() < kBlock / 4) base::IfMemory([&] { Merge(at.block); });
    return true;
  }

  // visit(const T&) -> bool, from the first item not below `from` on, until it returns false. The
  // list must not change meanwhile.
  template <typename Visit>
  void ForEachFrom(const StreamId& from, Visit&& visit) const {
    Place at = Lower(from);
    for (; at.block < blocks_.size(); ++at.block, at.index = 0) {
      const Block& block = *blocks_[at.block];
      for (; at.index < block.size(); ++at.index) {
        if (!visit(block[at.index])) return;
      }
    }
  }

  // The list as it is now.
  std::vector<SharedBlock> Blocks() const { return {blocks_.begin(), blocks_.end()}; }

 private:
  struct Place {
    size_t block;
    size_t index;
  };

  Place Lower(const StreamId& id) const {
    const auto block = std::partition_point(blocks_.begin(), blocks_.end(),
                                            [&](const auto& each) { return each->back().id < id; });
    if (block == blocks_.end()) return {blocks_.size(), 0};
    const Block& items = **block;
    const auto item = std::partition_point(items.begin(), items.end(),
                                           [&](const T& each) { return each.id < id; });
    return {static_cast<size_t>(block - blocks_.begin()),
            static_cast<size_t>(item - items.begin())};
  }

  Block& Own(size_t block) {
    std::shared_ptr<Block>& shared = blocks_[block];
    if (shared.use_count() > 1) shared = std::make_shared<Block>(*shared);
    return *shared;
  }

  void Append(T item) {
    if (blocks_.empty() || blocks_.back()->size() >= kBlock) {
      auto block = std::make_shared<Block>();
      block->push_back(std::move(item));
      blocks_.push_back(std::move(block));
    } else {
      Own(blocks_.size() - 1).push_back(std::move(item));
    }
    ++size_;
  }

  void Split(size_t block) {
    Block& left = *blocks_[block];
    const auto middle = left.begin() + static_cast<ptrdiff_t>(left.size() / 2);
    blocks_.insert(blocks_.begin() + static_cast<ptrdiff_t>(block) + 1,
                   std::make_shared<Block>(middle, left.end()));
    left.erase(middle, left.end());
  }

  // A small block goes into a neighbour that has room.
  void Merge(size_t block) {
    for (const size_t left : {block - 1, block}) {
      if (left >= blocks_.size() || left + 1 >= blocks_.size()) continue;
      if (blocks_[left]->size() + blocks_[left + 1]->size() > kBlock / 2) continue;
      const Block& right = *blocks_[left + 1];
      Block& into = Own(left);
      into.insert(into.end(), right.begin(), right.end());
      blocks_.erase(blocks_.begin() + static_cast<ptrdiff_t>(left) + 1);
      return;
    }
  }

  std::vector<std::shared_ptr<Block>> blocks_;
  size_t size_ = 0;
};

}  // namespace sava::types
