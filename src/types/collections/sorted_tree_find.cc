// Looking for places in a SortedTree: by member, score and rank.
#include <algorithm>
#include <cassert>
#include <numeric>

#include "base/prefetch.h"
#include "types/collections/sorted_tree.h"

namespace sava::types {

namespace {

// Of n things in order, each with a first score: the last that does not begin above (score,
// member), 0 when all do. compare(i), asked where scores are equal, compares its first member.
template <typename CompareFirstOf>
size_t LastNotAbove(const double* firsts, size_t n, double score, const CompareFirstOf& compare) {
  const double* const end = std::upper_bound(firsts, firsts + n, score);
  auto high = static_cast<size_t>(end - firsts);
  if (high == 0) return 0;
  if (firsts[high - 1] != score) return high - 1;
  auto low = static_cast<size_t>(std::lower_bound(firsts, end, score) - firsts);
  // The first in [low, high) whose member is above.
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (compare(middle) <= 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low == 0 ? 0 : low - 1;
}

}  // namespace

SortedTree::Place SortedTree::PlaceOf(uint32_t leaf) const {
  const Node& node = *leaves_[leaf].node;
  uint32_t i = 0;
  while (node.leaf[i] != leaf) ++i;
  return {node.at, i, {}};
}

SortedTree::Place SortedTree::Find(std::string_view member) const {
  Place place;
  index_.Find(SortedMemberHash(member), [&](uint32_t leaf) {
    const SortedBlock::Spot spot = leaves_[leaf].block->Find(member);
    if (!spot.found()) return false;
    place = PlaceOf(leaf);
    place.spot = spot;
    return true;
  });
  return place;
}

std::optional<double> SortedTree::Score(std::string_view member) const {
  std::optional<double> score;
  index_.Find(SortedMemberHash(member), [&](uint32_t leaf) {
    const SortedBlock& block = *leaves_[leaf].block;
    const SortedBlock::Spot spot = block.Find(member);
    if (spot.found()) score = block.score(spot.index);
    return spot.found();
  });
  return score;
}

SortedTree::Place SortedTree::Aim(double score, std::string_view member) const {
  if (nodes_.empty()) return {};
  const size_t at = LastNotAbove(firsts_.data(), firsts_.size(), score,
                                 [&](size_t i) { return CompareFirst(*nodes_[i], 0, member); });
  const Node& node = *nodes_[at];
  const size_t leaf = LastNotAbove(node.first, node.count, score,
                                   [&](size_t i) { return CompareFirst(node, i, member); });
  base::Prefetch(leaves_[node.leaf[leaf]].block);
  return {static_cast<uint32_t>(at), static_cast<uint32_t>(leaf), {}};
}

SortedTree::Place SortedTree::At(size_t rank) const {
  assert(rank < size_);
  uint32_t at = 0;
  while (rank >= totals_[at]) rank -= totals_[at++];
  const Node& node = *nodes_[at];
  uint32_t leaf = 0;
  while (rank >= node.size[leaf]) rank -= node.size[leaf++];
  return {at, leaf, leaves_[node.leaf[leaf]].block->SpotOf(rank)};
}

size_t SortedTree::RankOf(const Place& place) const {
  const Node& node = *nodes_[place.node];
  size_t rank = place.spot.index;
  for (uint32_t i = 0; i < place.leaf; ++i) rank += node.size[i];
  return std::accumulate(totals_.begin(), totals_.begin() + place.node, rank);
}

bool SortedTree::Next(Place* place) const {
  const SortedBlock& here = block(*place);
  if (place->spot.index + 1 < here.count()) {
    place->spot.offset = here.After(place->spot);
    ++place->spot.index;
    return true;
  }
  if (place->leaf + 1 < nodes_[place->node]->count) {
    *place = {place->node, place->leaf + 1, {0, 0}};
    return true;
  }
  if (place->node + 1 < nodes_.size()) {
    *place = {place->node + 1, 0, {0, 0}};
    return true;
  }
  return false;
}

bool SortedTree::Previous(Place* place) const {
  if (place->spot.index > 0) {
    place->spot.offset = block(*place).Before(place->spot);
    --place->spot.index;
    return true;
  }
  if (place->leaf > 0) {
    --place->leaf;
  } else if (place->node > 0) {
    --place->node;
    place->leaf = nodes_[place->node]->count - 1;
  } else {
    return false;
  }
  const SortedBlock& there = block(*place);
  place->spot = there.SpotOf(there.count() - 1);
  return true;
}

size_t SortedTree::CountBelow(double score, bool equal) const {
  if (size_ == 0) return 0;
  // The last node and the last leaf that begin below; what stands before them is below too.
  const auto last = [&](const double* firsts, size_t n) {
    const double* end = equal ? std::upper_bound(firsts, firsts + n, score)
                              : std::lower_bound(firsts, firsts + n, score);
    return static_cast<size_t>(std::max<ptrdiff_t>(end - firsts - 1, 0));
  };
  Place place;
  place.node = static_cast<uint32_t>(last(firsts_.data(), firsts_.size()));
  const Node& node = *nodes_[place.node];
  place.leaf = static_cast<uint32_t>(last(node.first, node.count));
  place.spot.index = block(place).CountBelow(score, equal);
  return RankOf(place);
}

size_t SortedTree::CountMembersBelow(std::string_view member, bool equal) const {
  if (size_ == 0) return 0;
  const auto last = [&](size_t n, const auto& compare) {
    size_t low = 0;
    while (n > 0) {
      const size_t half = n / 2;
      const int order = compare(low + half);
      if (equal ? order > 0 : order >= 0) {
        n = half;
      } else {
        low += half + 1;
        n -= half + 1;
      }
    }
    return low == 0 ? 0 : low - 1;
  };
  Place place;
  place.node = static_cast<uint32_t>(
      last(nodes_.size(), [&](size_t i) { return CompareFirst(*nodes_[i], 0, member); }));
  const Node& node = *nodes_[place.node];
  place.leaf = static_cast<uint32_t>(
      last(node.count, [&](size_t i) { return CompareFirst(node, i, member); }));
  place.spot.index = block(place).FirstMember(member, equal);
  return RankOf(place);
}

}  // namespace sava::types
