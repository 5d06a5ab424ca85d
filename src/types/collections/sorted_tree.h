// SortedTree: the large form of a sorted set, a B+-tree of three levels with a member index.
//
//   root    one array of nodes, with each node's first score and number of members
//   nodes   up to 128 leaves each, with every leaf's first score and number of members
//   leaves  SortedBlocks of at most 2 KB; longer only when they hold a single member
//   index   member -> leaf (member_index.h); a member's text stands in its leaf only
//
// Finding by member: index, then the leaf. By score: halving in root, node and leaf; where first
// scores are equal the first members of the leaves decide. By rank: the counts are summed up, over
// N / 5,000 nodes at most, a microsecond for 20 million members.
//
// Leaves fill up by insertion anywhere to some 70 %, of which the allocator sees the size class,
// and wholly when members come in order, ascending or descending.
//
// While a cut is under way (block_cut.h) a leaf is saved before it changes, splits or merges.
// Invariants: no leaf and no node is empty unless the tree is; counts and first scores are exact.
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "types/collections/member_index.h"
#include "types/collections/sorted_block.h"
#include "types/value/block_cut.h"

namespace sava::types {

// The bits of a member's hash that the index uses; the same for all sorted sets of this process.
uint32_t SortedMemberHash(std::string_view member);

class SortedTree {
 public:
  static constexpr size_t kLeafBytes = 2048;
  static constexpr size_t kNodeLeaves = 128;

  // A leaf in its node, and an entry in it.
  struct Place {
    uint32_t node = 0;
    uint32_t leaf = 0;
    SortedBlock::Spot spot;
    bool found() const { return spot.found(); }
  };

  // Takes over the block. REQUIRES: it is not empty.
  explicit SortedTree(SortedBlock* block);
  SortedTree(const SortedTree& other);
  SortedTree& operator=(const SortedTree&) = delete;
  SortedTree() = default;
  ~SortedTree();

  size_t size() const { return size_; }
  size_t bytes() const;
  // Of leaves only.
  size_t block_bytes() const { return block_bytes_; }
  size_t leaves() const { return leaves_.size() - free_.size(); }
  bool cutting() const { return cut_.active(); }

  const SortedBlock& block(const Place& place) const {
    return *leaves_[nodes_[place.node]->leaf[place.leaf]].block;
  }
  double score(const Place& place) const { return block(place).score(place.spot.index); }

  Place Find(std::string_view member) const;
  // The score alone, which is all that most look for.
  std::optional<double> Score(std::string_view member) const;
  // The leaf that holds this key or would: the last that does not begin above it. What Insert and
  // Update need is on its way from memory when it returns.
  Place Aim(double score, std::string_view member) const;
  // Adds a member that is not there. REQUIRES: `aim` is Aim of the same, and nothing has changed.
  void Insert(const Place& aim, double score, std::string_view member);
  // Gives the member at `place` another score. REQUIRES: as before.
  void Update(const Place& place, const Place& aim, double score);
  // Has the index's slot fetched for a Find that follows soon.
  void Prefetch(std::string_view member) const { index_.Prefetch(SortedMemberHash(member)); }
  void Erase(const Place& place);
  // Removes the members of ranks [from, to).
  void EraseRanks(size_t from, size_t to);

  // REQUIRES: rank < size().
  Place At(size_t rank) const;
  size_t RankOf(const Place& place) const;
  // False at the end (or the beginning); the place then stays as it is.
  bool Next(Place* place) const;
  bool Previous(Place* place) const;

  // How many members have lower scores; with `equal` also those with an equal one.
  size_t CountBelow(double score, bool equal) const;
  // How many members stand before the first that is not below, or with `equal` above, this one.
  // REQUIRES: all scores are equal; else the answer is some number up to size().
  size_t CountMembersBelow(std::string_view member, bool equal) const;

  // Members whose hashes are not below `hash`, in the order of their hashes: calls
  // visit(member, score) for `count` of them or a few more, and returns where to go on; 2^32 at the
  // end.
  template <typename Visit>
  uint64_t Scan(uint64_t hash, size_t count, const Visit& visit) const;

  // The block is the caller's then, and the tree of no use afterwards.
  // REQUIRES: it has one leaf, and no cut is under way.
  SortedBlock* TakeOnlyBlock();

  void BeginCut(const Object::PieceSink& sink, std::string_view head);
  bool SavePieces(size_t budget) { return cut_.SaveSome(budget); }
  void AbortCut() { cut_.Abort(); }

  // Whether all invariants hold. For tests.
  bool Check() const;

 private:
  struct Node {
    uint32_t at = 0;  // in the root
    uint32_t count = 0;
    double first[kNodeLeaves];
    uint32_t leaf[kNodeLeaves];
    uint16_t size[kNodeLeaves];
  };
  struct Leaf {
    SortedBlock* block = nullptr;
    Node* node = nullptr;
  };

  Place PlaceOf(uint32_t leaf) const;
  int CompareFirst(const Node& node, size_t i, std::string_view member) const {
    return leaves_[node.leaf[i]].block->Compare({0, 0}, member);
  }
  void AddFirst(SortedBlock* block);
  void SplitLeaf(const Place& place, size_t changed);
  void SplitIfLarge(const Place& place, size_t changed);
  uint32_t AddLeafAfter(const Place& place, SortedBlock* block, bool at_end, std::string* scratch);
  void SplitNode(uint32_t at, bool at_end);
  void EraseHere(const Place& place, size_t end);
  void RemoveLeaf(const Place& place);
  void RemoveNode(uint32_t at);
  void Tidy(const Place& place);
  void JoinLeaves(uint32_t node, uint32_t left);
  void JoinNodes(uint32_t left);
  void InsertNode(uint32_t at, std::unique_ptr<Node> node);
  void Renumber(size_t from);
  void Reindex(const SortedBlock& block, uint32_t from, uint32_t to, std::string* scratch);
  void ReserveLeaf();
  void ReserveNode();
  uint32_t NewLeaf(SortedBlock* block, Node* node);
  void FreeLeaf(uint32_t id);
  void Refresh(uint32_t node, uint32_t leaf);

  // Root: the same order in all three.
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<double> firsts_;
  std::vector<uint64_t> totals_;

  std::deque<Leaf> leaves_;  // by id; a deque grows without moving what it has
  std::vector<uint32_t> free_;
  MemberIndex index_;
  size_t size_ = 0;
  size_t block_bytes_ = 0;
  BlockCut cut_;
};

template <typename Visit>
uint64_t SortedTree::Scan(uint64_t hash, size_t count, const Visit& visit) const {
  constexpr uint64_t kEnd = uint64_t{1} << 32;
  struct Found {
    uint32_t hash;
    uint32_t leaf;
  };
  std::vector<Found> found;
  std::string scratch;
  while (hash < kEnd && found.size() < count) {
    const uint64_t from = hash;
    hash = index_.VisitSegment(static_cast<uint32_t>(from), [&](uint32_t other, uint32_t leaf) {
      if (other >= from) found.push_back({other, leaf});
    });
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.hash < b.hash; });
  for (size_t i = 0; i < found.size(); ++i) {
    if (i > 0 && found[i].hash == found[i - 1].hash) continue;
    if (i >= count) return found[i].hash;
    // Equal hashes are reported together, each leaf once.
    std::vector<uint32_t> seen;
    for (size_t j = i; j < found.size() && found[j].hash == found[i].hash; ++j) {
      if (std::find(seen.begin(), seen.end(), found[j].leaf) != seen.end()) continue;
      seen.push_back(found[j].leaf);
      const SortedBlock& block = *leaves_[found[j].leaf].block;
      SortedBlock::Spot spot{0, 0};
      for (; spot.index < block.count(); spot.offset = block.After(spot), ++spot.index) {
        const std::string_view member = block.member(spot, &scratch);
        if (SortedMemberHash(member) == found[i].hash) visit(member, block.score(spot.index));
      }
    }
  }
  return hash;
}

}  // namespace sava::types
