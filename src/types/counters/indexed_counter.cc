#include "types/counters/indexed_counter.h"

#include <algorithm>

namespace sava::types {

size_t IndexedCounter::bytes() const {
  return sizeof(*this) + capacity_ * (sizeof(Item) + (with_scores_ ? sizeof(double) : 0)) +
         groups_.capacity() * sizeof(Group) + table_.bytes();
}

// ---- groups ----

uint32_t IndexedCounter::GroupAtMost(uint64_t rank, uint32_t hint) const {
  if (bottom_ == kNothing || groups_[bottom_].rank > rank) return kNothing;
  uint32_t down = top_;
  if (hint != kNothing && groups_[hint].rank > rank) hint = kNothing;
  uint32_t up = hint;
  for (;;) {
    if (groups_[down].rank <= rank) return down;
    down = groups_[down].below;
    if (up == kNothing) continue;
    const uint32_t above = groups_[up].above;
    if (above == kNothing || groups_[above].rank > rank) return up;
    up = above;
  }
}

// Stands before `below` in order, at the end when that is kNothing.
uint32_t IndexedCounter::NewGroup(uint64_t rank, uint32_t below) {
  uint32_t group = free_group_;
  if (group != kNothing) {
    free_group_ = groups_[group].below;
  } else {
    group = static_cast<uint32_t>(groups_.size());
    groups_.emplace_back();
  }
  const uint32_t above = below == kNothing ? bottom_ : groups_[below].above;
  groups_[group] = {rank, kNothing, above, below, 0};
  (above == kNothing ? top_ : groups_[above].below) = group;
  (below == kNothing ? bottom_ : groups_[below].above) = group;
  return group;
}

void IndexedCounter::DropGroup(uint32_t group) {
  const Group old = groups_[group];
  (old.above == kNothing ? top_ : groups_[old.above].below) = old.below;
  (old.below == kNothing ? bottom_ : groups_[old.below].above) = old.above;
  groups_[group].below = free_group_;
  free_group_ = group;
}

IndexedCounter::Node IndexedCounter::LastOf(uint32_t group) const {
  const uint32_t below = groups_[group].below;
  return below == kNothing ? tail_ : At(groups_[below].head).prev;
}

// ---- nodes ----

void IndexedCounter::SetScore(Node node, double score) {
  if (cut_ != nullptr) SaveFirst(node / kBlockNodes);
  scores_[node / kBlockNodes][node % kBlockNodes] = score;
}

IndexedCounter::Node IndexedCounter::NewNode() {
  if (free_node_ != kNothing) {
    const Node node = free_node_;
    free_node_ = At(node).next;
    return node;
  }
  if (used_ == capacity_) AddNodes();
  return used_++;
}

// The first block doubles until it is whole; then whole blocks are added.
void IndexedCounter::AddNodes() {
  const bool first = capacity_ < kBlockNodes;
  const size_t nodes = first ? std::max<size_t>(kFirstNodes, capacity_ * 2) : kBlockNodes;
  auto block = std::make_unique_for_overwrite<Item[]>(nodes);
  auto scores = with_scores_ ? std::make_unique<double[]>(nodes) : nullptr;
  const size_t old = first ? capacity_ : 0;
  for (size_t i = 0; i < old; ++i) block[i] = blocks_[0][i];
  for (size_t i = old; i < nodes; ++i) block[i].group = kNothing;
  if (scores != nullptr) {
    for (size_t i = 0; i < old; ++i) scores[i] = scores_[0][i];
  }
  if (old != 0) {
    blocks_[0] = std::move(block);
    if (scores != nullptr) scores_[0] = std::move(scores);
  } else {
    blocks_.push_back(std::move(block));
    if (scores != nullptr) scores_.push_back(std::move(scores));
  }
  capacity_ = static_cast<Node>(first ? nodes : capacity_ + nodes);
}

void IndexedCounter::Unlink(Node node) {
  const Item item = At(node);
  (item.prev == kNothing ? head_ : Edit(item.prev).next) = item.next;
  (item.next == kNothing ? tail_ : Edit(item.next).prev) = item.prev;
  Group& group = groups_[item.group];
  if (--group.members == 0) {
    DropGroup(item.group);
  } else if (group.head == node) {
    group.head = item.next;
  }
}

void IndexedCounter::Link(Node node, Node next, uint32_t group) {
  const Node prev = next == kNothing ? tail_ : At(next).prev;
  Item& item = Edit(node);
  item.prev = prev;
  item.next = next;
  item.group = group;
  (prev == kNothing ? head_ : Edit(prev).next) = node;
  (next == kNothing ? tail_ : Edit(next).prev) = node;
  ++groups_[group].members;
}

void IndexedCounter::Place(Node node, uint64_t rank, uint32_t at_most, bool at_end) {
  if (at_most != kNothing && groups_[at_most].rank == rank) {
    if (at_end) {
      const Node last = LastOf(at_most);
      Link(node, At(last).next, at_most);
    } else {
      Link(node, groups_[at_most].head, at_most);
      groups_[at_most].head = node;
    }
    return;
  }
  const Node next = at_most == kNothing ? kNothing : groups_[at_most].head;
  const uint32_t group = NewGroup(rank, at_most);
  groups_[group].head = node;
  Link(node, next, group);
}

void IndexedCounter::Move(Node node, uint64_t rank) {
  Edit(node);
  const uint32_t from = At(node).group;
  if (groups_[from].rank == rank && groups_[from].head == node) return;
  const uint32_t at_most = GroupAtMost(rank, from);
  if (at_most == from && groups_[from].members == 1) {
    // Alone in its group, and no other group stands between: the group itself takes the new rank.
    groups_[from].rank = rank;
    return;
  }
  Unlink(node);
  Place(node, rank, at_most, false);
}

IndexedCounter::Node IndexedCounter::Insert(uint32_t id, uint64_t rank, bool at_end) {
  const Node node = NewNode();
  Edit(node).id = id;
  // New members are mostly the least frequent: start from the bottom.
  Place(node, rank, GroupAtMost(rank, bottom_), at_end);
  table_.Insert(id, node, [this](Node n) { return At(n).id; });
  ++size_;
  return node;
}

void IndexedCounter::Erase(Node node) {
  table_.Erase(At(node).id, [this](Node n) { return At(n).id; });
  Edit(node);
  Unlink(node);
  Item& item = Edit(node);
  item.group = kNothing;
  item.next = free_node_;
  free_node_ = node;
  --size_;
}

// ---- snapshots ----

void IndexedCounter::BeginCut(BlockSink sink) {
  cut_ = std::make_unique<Cut>();
  cut_->sink = std::move(sink);
  cut_->saved.resize(blocks_.size());
}

void IndexedCounter::SaveBlock(size_t block) const {
  std::vector<Saved> nodes;
  nodes.reserve(kBlockNodes);
  const size_t first = block * kBlockNodes;
  const size_t end = std::min<size_t>(first + kBlockNodes, capacity_);
  for (size_t i = first; i < end; ++i) {
    const auto node = static_cast<Node>(i);
    const Item& item = At(node);
    if (item.group == kNothing) continue;
    nodes.push_back(
        {node, item.id, item.next, groups_[item.group].rank, with_scores_ ? ScoreOf(node) : 0});
  }
  cut_->sink(block, nodes);
}

void IndexedCounter::SaveFirst(size_t block) {
  if (block >= cut_->saved.size() || cut_->saved[block]) return;
  cut_->saved[block] = true;
  SaveBlock(block);
}

bool IndexedCounter::SaveNextBlocks(size_t count) {
  if (cut_ == nullptr) return true;
  for (; cut_->next != cut_->saved.size(); ++cut_->next) {
    if (cut_->saved[cut_->next]) continue;
    if (count-- == 0) return false;
    SaveFirst(cut_->next);
  }
  cut_.reset();
  return true;
}

}  // namespace sava::types
