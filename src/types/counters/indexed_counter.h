// IndexedCounter: a frequency list of any size with O(1) changes. All nodes form one list in order,
// cut into groups of equal rank; a table finds a member's node by its id.
//
// The rank is what the list is ordered by, descending: the count, or a decayed weight. Nodes live
// in blocks of 16 KB. A snapshot saves block by block (BeginCut, SaveNextBlocks); a change hands
// the block it is about to touch to the snapshot first, if that has not had it yet.
//
// References to ids are the owner's business. Used under the owner's lock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "types/counters/id_table.h"

namespace sava::types {

class IndexedCounter {
 public:
  using Node = uint32_t;
  static constexpr uint32_t kNothing = UINT32_MAX;
  static constexpr size_t kBlockNodes = 1024;
  static constexpr size_t kFirstNodes = 16;

  // A node as a snapshot sees it.
  struct Saved {
    Node node;
    uint32_t id;
    Node next;
    uint64_t rank;
    double score;
  };
  // Gets the live nodes of a block as they were at the cut.
  using BlockSink = std::function<void(size_t block, const std::vector<Saved>& nodes)>;

  // With scores, each node also has a number of the owner's.
  explicit IndexedCounter(bool with_scores = false) : with_scores_(with_scores) {}
  IndexedCounter(const IndexedCounter&) = delete;
  IndexedCounter& operator=(const IndexedCounter&) = delete;

  size_t size() const { return size_; }
  size_t bytes() const;

  // kNothing when it is not there.
  Node Find(uint32_t id) const {
    return table_.Find(id, [this](Node node) { return At(node).id; });
  }
  uint32_t IdOf(Node node) const { return At(node).id; }
  uint64_t RankOf(Node node) const { return groups_[At(node).group].rank; }
  double ScoreOf(Node node) const { return scores_[node / kBlockNodes][node % kBlockNodes]; }
  void SetScore(Node node, double score);

  // To the front of the group of `rank`; any rank.
  void Move(Node node, uint64_t rank);
  // At the front of the group of `rank`, or at the end of it. REQUIRES: the id is not there.
  Node Insert(uint32_t id, uint64_t rank, bool at_end);
  void Erase(Node node);

  // In order: First() … Next(node) … kNothing.
  Node First() const { return head_; }
  Node Last() const { return tail_; }
  Node Next(Node node) const { return At(node).next; }

  // ---- snapshots ----
  size_t blocks() const { return blocks_.size(); }
  // From here on, until all blocks are saved or AbortCut, `sink` gets every block as it is now.
  // What it needs besides: the first node.
  void BeginCut(BlockSink sink);
  bool cutting() const { return cut_ != nullptr; }
  // Saves up to `count` blocks that were not saved yet; true when all have been.
  bool SaveNextBlocks(size_t count);
  void AbortCut() { cut_.reset(); }

 private:
  struct Item {
    uint32_t id;
    Node prev;
    Node next;
    uint32_t group;  // kNothing: the node is free, next is the next free one
  };
  struct Group {
    uint64_t rank;
    Node head;
    uint32_t above;  // neighbours in order; of a free group: below is the next free one
    uint32_t below;
    uint32_t members;
  };
  struct Cut {
    BlockSink sink;
    std::vector<bool> saved;  // as many as there were blocks
    size_t next = 0;
  };

  const Item& At(Node node) const { return blocks_[node / kBlockNodes][node % kBlockNodes]; }
  // For change: a snapshot gets the block first.
  Item& Edit(Node node) {
    if (cut_ != nullptr) SaveFirst(node / kBlockNodes);
    return blocks_[node / kBlockNodes][node % kBlockNodes];
  }
  void SaveFirst(size_t block);
  void SaveBlock(size_t block) const;

  // The first group in order whose rank is not above `rank`, looked for from `hint` upwards and
  // from the top downwards at once; kNothing when all are above.
  uint32_t GroupAtMost(uint64_t rank, uint32_t hint) const;
  uint32_t NewGroup(uint64_t rank, uint32_t below);
  void DropGroup(uint32_t group);
  Node LastOf(uint32_t group) const;
  Node NewNode();
  void AddNodes();
  // Takes the node out of list and group; an empty group goes.
  void Unlink(Node node);
  // Puts it before `next` (kNothing: at the end) into `group`.
  void Link(Node node, Node next, uint32_t group);
  // Puts an unlinked node into the group of `rank`, made when missing.
  void Place(Node node, uint64_t rank, uint32_t at_most, bool at_end);

  std::vector<std::unique_ptr<Item[]>> blocks_;
  std::vector<std::unique_ptr<double[]>> scores_;
  std::vector<Group> groups_;
  IdTable table_;
  std::unique_ptr<Cut> cut_;
  Node head_ = kNothing;
  Node tail_ = kNothing;
  Node free_node_ = kNothing;
  Node used_ = 0;      // nodes ever used
  Node capacity_ = 0;  // nodes there is room for
  uint32_t top_ = kNothing;
  uint32_t bottom_ = kNothing;
  uint32_t free_group_ = kNothing;
  uint32_t size_ = 0;
  const bool with_scores_;
};

}  // namespace sava::types
