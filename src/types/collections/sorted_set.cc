#include "types/collections/sorted_set.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/if_memory.h"
#include "types/value/digest_sink.h"

namespace sava::types {

namespace {

// A tree becomes a block again when it fits twice: so that it does not go to and fro.
constexpr size_t kBlockAgain = SortedTree::kLeafBytes / 2;
// Above this it is saved in pieces.
constexpr size_t kLargeBytes = 64 * 1024;

}  // namespace

SortedSet::SortedSet() : form_(0) { set_block(SortedBlock::Make()); }

SortedSet::~SortedSet() {
  if (is_tree()) {
    delete tree();
  } else {
    SortedBlock::Free(block());
  }
}

size_t SortedSet::size() const { return is_tree() ? tree()->size() : block()->count(); }

// ---- members ----

std::optional<double> SortedSet::Score(std::string_view member) const {
  if (is_tree()) return tree()->Score(member);
  const SortedBlock::Spot spot = block()->Find(member);
  if (!spot.found()) return std::nullopt;
  return block()->score(spot.index);
}

// Decides about a member that is there with the score `old`; true when it is to have result->score.
bool SortedSet::Decide(double old, double score, const AddOptions& options, AddResult* result) {
  if (options.only_new) {
    result->refused = true;
    return false;
  }
  if (options.increment) {
    score += old;
    result->nan = std::isnan(score);
    if (result->nan) return false;
  }
  if ((options.only_less && score >= old) || (options.only_greater && score <= old)) {
    result->refused = true;
    return false;
  }
  result->score = score;
  result->updated = score != old;
  return result->updated;
}

void SortedSet::CheckLimits(size_t length, const CollectionLimits& limits) {
  if (!skiplist() && (size() + 1 > static_cast<size_t>(limits.zset_max_listpack_entries) ||
                      length > limits.zset_max_listpack_value)) {
    set_skiplist(true);
  }
}

SortedSet::AddResult SortedSet::Add(std::string_view member, double score,
                                    const AddOptions& options, const CollectionLimits& limits) {
  AddResult result;
  SortedTree::Place place;
  SortedTree::Place aim;
  if (is_tree()) {
    // Two ways into the tree at once, by score and by member: each waits for memory.
    tree()->Prefetch(member);
    if (!options.increment) aim = tree()->Aim(score, member);
    place = tree()->Find(member);
  } else {
    place.spot = block()->Find(member);
  }
  if (!place.found()) {
    result.refused = options.only_existing;
    if (result.refused) return result;
    CheckLimits(member.size(), limits);
    result.added = true;
    result.score = Kept(score);
    if (is_tree()) {
      if (options.increment) aim = tree()->Aim(score, member);
      tree()->Insert(aim, result.score, member);
    } else {
      InsertSmall(member, result.score);
    }
    return result;
  }
  const double old = is_tree() ? tree()->score(place) : block()->score(place.spot.index);
  if (!Decide(old, score, options, &result)) return result;
  if (is_tree()) {
    if (options.increment) aim = tree()->Aim(result.score, member);
    tree()->Update(place, aim, Kept(result.score));
    return result;
  }
  const size_t to = block()->LowerBound(result.score, member).index;
  const size_t from = place.spot.index;
  set_block(SortedBlock::Move(block(), place.spot, to > from ? to - 1 : to, Kept(result.score)));
  GrowIfNeeded();
  return result;
}

void SortedSet::InsertSmall(std::string_view member, double score) {
  const SortedBlock::Spot spot = block()->LowerBound(score, member);
  set_block(SortedBlock::Insert(block(), spot, score, member));
  GrowIfNeeded();
}

bool SortedSet::Remove(std::string_view member) {
  if (!is_tree()) {
    const SortedBlock::Spot spot = block()->Find(member);
    if (!spot.found()) return false;
    set_block(SortedBlock::Erase(block(), spot.index, spot.index + 1));
    return true;
  }
  const SortedTree::Place place = tree()->Find(member);
  if (!place.found()) return false;
  tree()->Erase(place);
  ShrinkIfPossible();
  return true;
}

std::optional<size_t> SortedSet::Rank(std::string_view member, double* score) const {
  if (!is_tree()) {
    const SortedBlock::Spot spot = block()->Find(member);
    if (!spot.found()) return std::nullopt;
    *score = block()->score(spot.index);
    return spot.index;
  }
  const SortedTree::Place place = tree()->Find(member);
  if (!place.found()) return std::nullopt;
  *score = tree()->score(place);
  return tree()->RankOf(place);
}

void SortedSet::GrowIfNeeded() {
  if (block()->bytes() > SortedTree::kLeafBytes && block()->count() > 1) {
    base::IfMemory([this] { set_tree(new SortedTree(block())); });  // else the next time
  }
}

void SortedSet::ShrinkIfPossible() {
  SortedTree* const large = tree();
  if (large->cutting()) return;
  if (large->size() == 0) {
    if (!base::IfMemory([this] { set_block(SortedBlock::Make()); })) return;
  } else if (large->leaves() == 1 && large->block_bytes() <= kBlockAgain) {
    set_block(large->TakeOnlyBlock());
  } else {
    return;
  }
  delete large;
}

// ---- ranks ----

size_t SortedSet::CountBelow(double score, bool equal) const {
  return is_tree() ? tree()->CountBelow(score, equal) : block()->CountBelow(score, equal);
}

size_t SortedSet::CountMembersBelow(std::string_view member, bool equal) const {
  return is_tree() ? tree()->CountMembersBelow(member, equal) : block()->FirstMember(member, equal);
}

SortedSet::Iterator SortedSet::At(size_t rank) const {
  if (rank >= size()) return {};
  if (is_tree()) return {this, tree()->At(rank)};
  return {this, {0, 0, block()->SpotOf(rank)}};
}

void SortedSet::RemoveRanks(size_t from, size_t to) {
  if (from >= to) return;
  if (is_tree()) {
    tree()->EraseRanks(from, to);
    ShrinkIfPossible();
  } else {
    set_block(SortedBlock::Erase(block(), from, to));
  }
}

// ---- walking ----

void SortedSet::Iterator::Next() {
  if (set_->is_tree()) {
    if (!set_->tree()->Next(&place_)) set_ = nullptr;
    return;
  }
  SortedBlock::Spot& spot = place_.spot;
  if (spot.index + 1 >= set_->block()->count()) {
    set_ = nullptr;
    return;
  }
  spot.offset = set_->block()->After(spot);
  ++spot.index;
}

void SortedSet::Iterator::Previous() {
  if (set_->is_tree()) {
    if (!set_->tree()->Previous(&place_)) set_ = nullptr;
    return;
  }
  SortedBlock::Spot& spot = place_.spot;
  if (spot.index == 0) {
    set_ = nullptr;
    return;
  }
  spot.offset = set_->block()->Before(spot);
  --spot.index;
}

uint64_t SortedSet::Scan(
    uint64_t cursor, size_t count,
    const std::function<void(std::string_view member, double score)>& visit) const {
  if (is_tree() && skiplist()) {
    const uint64_t next = tree()->Scan(cursor, std::max<size_t>(count, 1), visit);
    return next >> 32 != 0 ? 0 : next;
  }
  // A walk that began in the large form has seen what comes before the cursor.
  for (Iterator it = At(0); it; it.Next()) {
    if (SortedMemberHash(it.member()) >= cursor) visit(it.member(), it.score());
  }
  return 0;
}

// ---- encoding ----

void SortedSet::Expect(size_t members, size_t length, const CollectionLimits& limits) {
  if (members > static_cast<size_t>(limits.zset_max_listpack_entries) ||
      length > limits.zset_max_listpack_value) {
    set_skiplist(true);
  }
}

void SortedSet::ChooseEncoding(const CollectionLimits& limits) {
  bool packed = size() <= static_cast<size_t>(limits.zset_max_listpack_entries);
  for (Iterator it = packed ? At(0) : Iterator(); it; it.Next()) {
    if (it.member().size() > limits.zset_max_listpack_value) {
      packed = false;
      break;
    }
  }
  set_skiplist(!packed);
}

// ---- Object ----

size_t SortedSet::MemoryUsage(size_t /*samples*/) const {
  return sizeof(*this) + (is_tree() ? tree()->bytes() : block()->capacity());
}

std::unique_ptr<Object> SortedSet::Copy() const {
  auto copy = std::make_unique<SortedSet>();
  SortedBlock* const empty = copy->block();
  if (is_tree()) {
    copy->set_tree(new SortedTree(*tree()));
  } else {
    copy->set_block(SortedBlock::Compose({{block(), 0, block()->count()}}));
  }
  SortedBlock::Free(empty);
  copy->set_skiplist(skiplist());
  return copy;
}

void SortedSet::Digest(const std::function<void(std::string_view)>& add) const {
  for (Iterator it = At(0); it; it.Next()) {
    add(it.member());
    add(ScoreText(it.score()));
  }
}

void SortedSet::DigestAsRedis(DigestSink& out) const {
  for (Iterator it = At(0); it; it.Next()) {
    char score[64];
    const int size = snprintf(score, sizeof score, "%.17g", it.score());
    out.UnorderedPair(it.member(), {score, static_cast<size_t>(size)});
  }
}

bool SortedSet::large() const { return is_tree() && tree()->block_bytes() > kLargeBytes; }

}  // namespace sava::types
