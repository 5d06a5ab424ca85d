#include "types/collections/sorted_tree.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "base/hash.h"
#include "base/if_memory.h"
#include "base/rng.h"

namespace sava::types {

namespace {

// Below this a leaf looks for a neighbour to join; joined leaves leave room for what comes.
constexpr size_t kSparseBytes = SortedTree::kLeafBytes / 4;
constexpr size_t kJoinedBytes = SortedTree::kLeafBytes * 3 / 4;
constexpr size_t kSparseLeaves = SortedTree::kNodeLeaves / 4;
constexpr size_t kJoinedLeaves = SortedTree::kNodeLeaves / 2;

using OwnBlock = std::unique_ptr<SortedBlock, decltype(&SortedBlock::Free)>;

// Where to cut a block in two of about the same size, between entry 1 and the last.
size_t MiddleOf(const SortedBlock& block) {
  const size_t per_entry = (block.bytes() - block.text_bytes()) / block.count();
  size_t sum = 0;
  SortedBlock::Spot spot{0, 0};
  for (; spot.index + 1 < block.count(); ++spot.index) {
    const size_t next = block.After(spot);
    sum += per_entry + next - spot.offset;
    if (sum * 2 >= block.bytes()) break;
    spot.offset = next;
  }
  return std::clamp<size_t>(spot.index + (sum * 2 >= block.bytes() ? 1 : 0), 1, block.count() - 1);
}

}  // namespace

uint32_t SortedMemberHash(std::string_view member) {
  static const uint64_t kSeed = base::SecureRandom64();
  return static_cast<uint32_t>(base::HashBytes(member, kSeed) >> 32);
}

// ---- making ----

SortedTree::SortedTree(SortedBlock* block) {
  AddFirst(block);
  SplitIfLarge({0, 0, {}}, SIZE_MAX);
}

// REQUIRES: the tree is empty.
void SortedTree::AddFirst(SortedBlock* block) {
  auto node = std::make_unique<Node>();
  ReserveLeaf();
  ReserveNode();
  std::string scratch;
  scratch.reserve(block->longest());
  if (block->count() == 1) index_.Reserve(SortedMemberHash(block->member({0, 0}, &scratch)));
  Node* const only = node.get();
  const uint32_t id = NewLeaf(block, only);
  only->count = 1;
  only->leaf[0] = id;
  InsertNode(0, std::move(node));
  Refresh(0, 0);
  size_ = block->count();
  block_bytes_ = block->capacity();
  SortedBlock::Spot spot{0, 0};
  for (; spot.index < block->count(); spot.offset = block->After(spot), ++spot.index) {
    index_.Insert(SortedMemberHash(block->member(spot, &scratch)), id);
  }
}

SortedTree::SortedTree(const SortedTree& other)
    : SortedTree() {  // so that it is freed when it throws
  size_ = other.size_;
  std::string scratch;
  for (const auto& from : other.nodes_) {
    auto node = std::make_unique<Node>(*from);
    for (size_t i = 0; i < node->count; ++i) {
      const SortedBlock* block = other.leaves_[from->leaf[i]].block;
      ReserveLeaf();
      node->leaf[i] = NewLeaf(SortedBlock::Compose({{block, 0, block->count()}}), node.get());
      const SortedBlock* mine = leaves_[node->leaf[i]].block;
      block_bytes_ += mine->capacity();
      SortedBlock::Spot spot{0, 0};
      for (; spot.index < mine->count(); spot.offset = mine->After(spot), ++spot.index) {
        index_.Insert(SortedMemberHash(mine->member(spot, &scratch)), node->leaf[i]);
      }
    }
    nodes_.push_back(std::move(node));
  }
  firsts_ = other.firsts_;
  totals_ = other.totals_;
}

SortedTree::~SortedTree() {
  for (const Leaf& leaf : leaves_) {
    if (leaf.block != nullptr) SortedBlock::Free(leaf.block);
  }
}

size_t SortedTree::bytes() const {
  return sizeof(*this) + block_bytes_ + index_.bytes() + nodes_.size() * sizeof(Node) +
         nodes_.capacity() * 24 + leaves_.size() * sizeof(Leaf) + free_.capacity() * 4;
}

// Takes the memory that the next NewLeaf, and FreeLeaf of any leaf, need.
void SortedTree::ReserveLeaf() {
  if (free_.empty()) {
    const size_t leaves = leaves_.size() + 1;
    if (free_.capacity() < leaves) free_.reserve(leaves + leaves / 2);
    leaves_.push_back({});
    free_.push_back(static_cast<uint32_t>(leaves - 1));
  }
  // An id that was free when a cut began counts as saved from now on.
  cut_.BeforeChange(free_.back());
}

// The same for InsertNode.
void SortedTree::ReserveNode() {
  if (nodes_.size() < nodes_.capacity()) return;
  const size_t nodes = std::max<size_t>(1, 2 * nodes_.size());
  firsts_.reserve(nodes);
  totals_.reserve(nodes);
  nodes_.reserve(nodes);
}

// REQUIRES: ReserveLeaf.
uint32_t SortedTree::NewLeaf(SortedBlock* block, Node* node) {
  const uint32_t id = free_.back();
  free_.pop_back();
  leaves_[id] = {block, node};
  return id;
}

void SortedTree::FreeLeaf(uint32_t id) {
  leaves_[id] = {};
  free_.push_back(id);
}

// ---- changing ----

void SortedTree::Refresh(uint32_t at, uint32_t leaf) {
  Node& node = *nodes_[at];
  const SortedBlock& block = *leaves_[node.leaf[leaf]].block;
  totals_[at] += block.count() - uint64_t{node.size[leaf]};
  node.size[leaf] = static_cast<uint16_t>(block.count());
  node.first[leaf] = block.score(0);
  if (leaf == 0) firsts_[at] = node.first[0];
}

void SortedTree::Insert(const Place& place, double score, std::string_view member) {
  if (nodes_.empty()) {
    OwnBlock first(SortedBlock::Make(), SortedBlock::Free);
    SortedBlock* const made = SortedBlock::Insert(first.get(), {0, 0}, score, member);
    static_cast<void>(first.release());
    first.reset(made);
    AddFirst(first.get());
    static_cast<void>(first.release());
    return;
  }
  const uint32_t id = nodes_[place.node]->leaf[place.leaf];
  cut_.BeforeChange(id);
  const uint32_t hash = SortedMemberHash(member);
  index_.Reserve(hash);
  SortedBlock*& block = leaves_[id].block;
  const SortedBlock::Spot spot = block->LowerBound(score, member);
  const size_t before = block->capacity();
  block = SortedBlock::Insert(block, spot, score, member);
  block_bytes_ += block->capacity() - before;
  ++size_;
  index_.Insert(hash, id);
  Refresh(place.node, place.leaf);
  SplitIfLarge(place, spot.index);
}

// Without memory a leaf stays too large until its next change.
void SortedTree::SplitIfLarge(const Place& place, size_t changed) {
  const SortedBlock& whole = block(place);
  if (whole.bytes() <= kLeafBytes || whole.count() <= 1) return;
  base::IfMemory([&] { SplitLeaf(place, changed); });
}

// `changed` is the entry that came last: when it stands at one end of everything, members come in
// order, and the leaf beside it stays full. REQUIRES: the leaf has two members, and is saved.
void SortedTree::SplitLeaf(const Place& place, size_t changed) {
  const uint32_t id = nodes_[place.node]->leaf[place.leaf];
  SortedBlock* whole = leaves_[id].block;
  const size_t count = whole->count();
  const bool last_leaf =
      place.node + 1 == nodes_.size() && place.leaf + 1 == nodes_[place.node]->count;
  const bool first_leaf = place.node == 0 && place.leaf == 0;
  size_t middle = MiddleOf(*whole);
  if (last_leaf && changed == count - 1) middle = count - 1;
  if (first_leaf && changed == 0) middle = 1;
  // All memory first: without it nothing has changed.
  OwnBlock left(SortedBlock::Compose({{whole, 0, middle}}), SortedBlock::Free);
  OwnBlock right(SortedBlock::Compose({{whole, middle, count}}), SortedBlock::Free);
  std::string scratch;
  scratch.reserve(right->longest());
  ReserveLeaf();
  Place at = place;
  if (nodes_[at.node]->count == kNodeLeaves) {
    SplitNode(at.node, last_leaf);
    at = PlaceOf(id);
  }
  block_bytes_ += left->capacity() + right->capacity();
  block_bytes_ -= whole->capacity();
  SortedBlock::Free(whole);
  leaves_[id].block = left.release();
  Refresh(at.node, at.leaf);
  const uint32_t added = AddLeafAfter(at, right.release(), last_leaf, &scratch);
  SplitIfLarge(PlaceOf(added), SIZE_MAX);
  SplitIfLarge(PlaceOf(id), SIZE_MAX);
}

// REQUIRES: ReserveLeaf; the node has room, or is full and has an empty one behind it.
uint32_t SortedTree::AddLeafAfter(const Place& at, SortedBlock* block, bool at_end,
                                  std::string* scratch) {
  const uint32_t before = nodes_[at.node]->leaf[at.leaf];
  Node* node = nodes_[at.node].get();
  uint32_t to = at.leaf + 1;
  if (at_end && node->count == kNodeLeaves) {
    // The node stays full; its neighbour begins with this leaf.
    node = nodes_[at.node + 1].get();
    to = 0;
  }
  const uint32_t id = NewLeaf(block, node);
  const auto open = [&](auto* array) {
    std::copy_backward(array + to, array + node->count, array + node->count + 1);
  };
  open(node->first);
  open(node->leaf);
  open(node->size);
  ++node->count;
  node->leaf[to] = id;
  node->size[to] = 0;
  Refresh(node->at, to);
  Reindex(*block, before, id, scratch);
  return id;
}

// Halves a full node; at the end of the tree an empty one is put behind it instead.
void SortedTree::SplitNode(uint32_t at, bool at_end) {
  Node& left = *nodes_[at];
  auto right = std::make_unique<Node>();
  ReserveNode();
  if (!at_end) {
    const uint32_t half = left.count / 2;
    right->count = left.count - half;
    std::copy(left.first + half, left.first + left.count, right->first);
    std::copy(left.leaf + half, left.leaf + left.count, right->leaf);
    std::copy(left.size + half, left.size + left.count, right->size);
    left.count = half;
    for (uint32_t i = 0; i < right->count; ++i) leaves_[right->leaf[i]].node = right.get();
  }
  InsertNode(at + 1, std::move(right));
  if (!at_end) totals_[at] -= totals_[at + 1];
}

void SortedTree::InsertNode(uint32_t at, std::unique_ptr<Node> node) {
  const uint64_t total = std::accumulate(node->size, node->size + node->count, uint64_t{0});
  firsts_.insert(firsts_.begin() + at, node->count == 0 ? 0 : node->first[0]);
  totals_.insert(totals_.begin() + at, total);
  nodes_.insert(nodes_.begin() + at, std::move(node));
  Renumber(at);
}

void SortedTree::Renumber(size_t from) {
  for (size_t i = from; i < nodes_.size(); ++i) nodes_[i]->at = static_cast<uint32_t>(i);
}

// The members of this block went from one leaf to another. REQUIRES: `scratch` has room for any.
void SortedTree::Reindex(const SortedBlock& block, uint32_t from, uint32_t to,
                         std::string* scratch) {
  constexpr size_t kAhead = 8;
  uint32_t hashes[kAhead];
  SortedBlock::Spot spot{0, 0};
  while (spot.index < block.count()) {
    size_t n = 0;
    for (; n < kAhead && spot.index < block.count(); ++n) {
      hashes[n] = SortedMemberHash(block.member(spot, scratch));
      index_.Prefetch(hashes[n]);
      spot.offset = block.After(spot);
      ++spot.index;
    }
    for (size_t i = 0; i < n; ++i) index_.Change(hashes[i], from, to);
  }
}

void SortedTree::Update(const Place& place, const Place& target, double score) {
  const uint32_t from = nodes_[place.node]->leaf[place.leaf];
  SortedBlock*& old = leaves_[from].block;
  std::string scratch;
  const std::string_view member = old->member(place.spot, &scratch);
  const uint32_t to = nodes_[target.node]->leaf[target.leaf];
  cut_.BeforeChange(from);
  if (to == from) {
    const size_t at = old->LowerBound(score, member).index;
    const size_t before = old->capacity();
    old = SortedBlock::Move(old, place.spot, at > place.spot.index ? at - 1 : at, score);
    block_bytes_ += old->capacity() - before;
    Refresh(place.node, place.leaf);
    SplitIfLarge(place, SIZE_MAX);
    return;
  }
  cut_.BeforeChange(to);
  SortedBlock*& block = leaves_[to].block;
  const SortedBlock::Spot spot = block->LowerBound(score, member);
  const size_t before = block->capacity();
  block = SortedBlock::Insert(block, spot, score, member);
  block_bytes_ += block->capacity() - before;
  index_.Change(SortedMemberHash(member), from, to);
  Refresh(target.node, target.leaf);
  Place rest = place;
  if (block->bytes() > kLeafBytes && block->count() > 1) {
    SplitIfLarge(target, spot.index);
    rest = PlaceOf(from);
    rest.spot = place.spot;
  }
  EraseHere(rest, place.spot.index + 1);
}

// Takes the entries from the place's up to `end` out of their leaf. REQUIRES: they are out of the
// index, and the leaf is saved.
void SortedTree::EraseHere(const Place& place, size_t end) {
  SortedBlock*& block = leaves_[nodes_[place.node]->leaf[place.leaf]].block;
  if (end - place.spot.index == block->count()) return RemoveLeaf(place);
  block_bytes_ -= block->capacity();
  block = SortedBlock::Erase(block, place.spot.index, end);
  block_bytes_ += block->capacity();
  Refresh(place.node, place.leaf);
  Tidy(place);
}

void SortedTree::Erase(const Place& place) {
  const uint32_t id = nodes_[place.node]->leaf[place.leaf];
  cut_.BeforeChange(id);
  std::string scratch;
  index_.Erase(SortedMemberHash(leaves_[id].block->member(place.spot, &scratch)), id);
  --size_;
  EraseHere(place, place.spot.index + 1);
}

void SortedTree::EraseRanks(size_t from, size_t to) {
  std::string scratch;
  while (from < to) {
    const Place place = At(from);
    const uint32_t id = nodes_[place.node]->leaf[place.leaf];
    cut_.BeforeChange(id);
    const SortedBlock& block = *leaves_[id].block;
    scratch.reserve(block.longest());
    const size_t end = std::min(block.count(), place.spot.index + (to - from));
    SortedBlock::Spot spot = place.spot;
    for (; spot.index < end; spot.offset = block.After(spot), ++spot.index) {
      index_.Erase(SortedMemberHash(block.member(spot, &scratch)), id);
    }
    const size_t gone = end - place.spot.index;
    size_ -= gone;
    to -= gone;
    EraseHere(place, end);
  }
}

// REQUIRES: its members are out of the index, and it is saved.
void SortedTree::RemoveLeaf(const Place& place) {
  Node& node = *nodes_[place.node];
  const uint32_t id = node.leaf[place.leaf];
  block_bytes_ -= leaves_[id].block->capacity();
  SortedBlock::Free(leaves_[id].block);
  FreeLeaf(id);
  totals_[place.node] -= node.size[place.leaf];
  const auto close = [&](auto* array) {
    std::copy(array + place.leaf + 1, array + node.count, array + place.leaf);
  };
  close(node.first);
  close(node.leaf);
  close(node.size);
  if (--node.count == 0) return RemoveNode(place.node);
  firsts_[place.node] = node.first[0];
  if (node.count >= kSparseLeaves) return;
  if (place.node > 0 && nodes_[place.node - 1]->count + node.count <= kJoinedLeaves) {
    JoinNodes(place.node - 1);
  } else if (place.node + 1 < nodes_.size() &&
             nodes_[place.node + 1]->count + node.count <= kJoinedLeaves) {
    JoinNodes(place.node);
  }
}

void SortedTree::RemoveNode(uint32_t at) {
  nodes_.erase(nodes_.begin() + at);
  firsts_.erase(firsts_.begin() + at);
  totals_.erase(totals_.begin() + at);
  Renumber(at);
}

void SortedTree::JoinNodes(uint32_t at) {
  Node& left = *nodes_[at];
  const Node& right = *nodes_[at + 1];
  std::copy(right.first, right.first + right.count, left.first + left.count);
  std::copy(right.leaf, right.leaf + right.count, left.leaf + left.count);
  std::copy(right.size, right.size + right.count, left.size + left.count);
  for (uint32_t i = 0; i < right.count; ++i) leaves_[right.leaf[i]].node = &left;
  left.count += right.count;
  totals_[at] += totals_[at + 1];
  RemoveNode(at + 1);
}

// Joins a leaf that has become sparse with a neighbour in its node when both fit well.
void SortedTree::Tidy(const Place& place) {
  if (block(place).bytes() >= kSparseBytes) return;
  const auto fits = [&](uint32_t left) {
    return block({place.node, left, {}}).bytes() + block({place.node, left + 1, {}}).bytes() <=
           kJoinedBytes;
  };
  if (place.leaf > 0 && fits(place.leaf - 1)) {
    base::IfMemory([&] { JoinLeaves(place.node, place.leaf - 1); });
  } else if (place.leaf + 1 < nodes_[place.node]->count && fits(place.leaf)) {
    base::IfMemory([&] { JoinLeaves(place.node, place.leaf); });
  }
}

void SortedTree::JoinLeaves(uint32_t at, uint32_t left) {
  Node& node = *nodes_[at];
  const uint32_t to = node.leaf[left];
  const uint32_t from = node.leaf[left + 1];
  cut_.BeforeChange(to);
  cut_.BeforeChange(from);
  SortedBlock* a = leaves_[to].block;
  const SortedBlock* b = leaves_[from].block;
  std::string scratch;
  scratch.reserve(b->longest());
  SortedBlock* both = SortedBlock::Compose({{a, 0, a->count()}, {b, 0, b->count()}});
  Reindex(*b, from, to, &scratch);
  block_bytes_ += both->capacity();
  block_bytes_ -= a->capacity();
  SortedBlock::Free(a);
  leaves_[to].block = both;
  Refresh(at, left);
  RemoveLeaf({at, left + 1, {}});
}

SortedBlock* SortedTree::TakeOnlyBlock() {
  assert(leaves() == 1 && !cut_.active());
  Leaf& leaf = leaves_[nodes_[0]->leaf[0]];
  return std::exchange(leaf.block, nullptr);
}

// ---- saving ----

void SortedTree::BeginCut(const Object::PieceSink& sink, std::string_view head) {
  const auto save = [this](size_t id, Writer& out) {
    const SortedBlock* block = leaves_[id].block;
    if (block == nullptr) return;
    std::string scratch;
    SortedBlock::Spot spot{0, 0};
    for (; spot.index < block->count(); spot.offset = block->After(spot), ++spot.index) {
      out.String(block->member(spot, &scratch));
      out.Double(block->score(spot.index));
    }
  };
  cut_.Begin(sink, head, leaves_.size(), save, false);
}

// ---- checking ----

bool SortedTree::Check() const {
  size_t size = 0;
  size_t bytes = 0;
  double score = 0;
  std::string member;
  std::string scratch;
  for (size_t at = 0; at < nodes_.size(); ++at) {
    const Node& node = *nodes_[at];
    if (node.at != at || node.count == 0 || node.first[0] != firsts_[at]) return false;
    uint64_t total = 0;
    for (uint32_t i = 0; i < node.count; ++i) {
      const Leaf& leaf = leaves_[node.leaf[i]];
      const SortedBlock& here = *leaf.block;
      if (leaf.node != &node || here.count() == 0 || node.size[i] != here.count()) return false;
      if (node.first[i] != here.score(0)) return false;
      if (here.bytes() > kLeafBytes && here.count() > 1) return false;
      bytes += here.capacity();
      total += here.count();
      for (size_t j = 0; j < here.count(); ++j) {
        const std::string_view next = here.member(here.SpotOf(j), &scratch);
        const bool in_order =
            size == 0 || score < here.score(j) || (score == here.score(j) && member < next);
        const Place place = Find(next);
        if (!in_order || place.node != at || place.leaf != i || place.spot.index != j) return false;
        score = here.score(j);
        member = next;
        ++size;
      }
    }
    if (total != totals_[at]) return false;
  }
  return size == size_ && bytes == block_bytes_;
}

}  // namespace sava::types
