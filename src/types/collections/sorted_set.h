// SortedSet: Redis's sorted set. Members are unique byte strings with scores (doubles), in the
// order of (score, member).
//
// A small one is a single packed block (sorted_block.h, up to 2 KB), a large one a tree of such
// blocks with an index of members (sorted_tree.h). What OBJECT ENCODING answers is kept apart from
// that: "listpack" until the set has once exceeded Redis's limits, "skiplist" from then on.
//
// Cost: by member O(1), by score or rank O(log N), a change O(log N); N up to tens of millions
// (sorted_tree.h). Memory: 16 bytes and the block when small; 16-byte members of a large one take
// some 35 to 45 bytes each.
//
// Thread safety: as Object. Iterators are valid until the set changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "types/collections/collection_limits.h"
#include "types/collections/sorted_tree.h"
#include "types/value/object.h"

namespace sava::types {

class SortedSet final : public Object {
 public:
  struct AddOptions {
    bool increment = false;      // the score is added to what the member has
    bool only_new = false;       // NX
    bool only_existing = false;  // XX
    bool only_greater = false;   // GT
    bool only_less = false;      // LT
  };
  struct AddResult {
    bool added = false;
    bool updated = false;  // another score than before
    bool refused = false;  // by one of the conditions
    bool nan = false;      // the sum is no number; nothing changed
    double score = 0;      // the member's now, unless refused
  };

  class Iterator {
   public:
    // Past the end, or before the beginning.
    explicit operator bool() const { return set_ != nullptr; }
    double score() const;
    // Valid until the set changes or the iterator moves or goes.
    std::string_view member() const;
    void Next();
    void Previous();

   private:
    friend class SortedSet;
    Iterator() = default;
    Iterator(const SortedSet* set, const SortedTree::Place& place) : set_(set), place_(place) {}
    const SortedBlock& block() const;

    const SortedSet* set_ = nullptr;
    SortedTree::Place place_;  // of a small set only the spot
    mutable std::string scratch_;
  };

  SortedSet();
  ~SortedSet() override;

  static const TypeInfo& Type();

  // ---- members ----

  std::optional<double> Score(std::string_view member) const;
  AddResult Add(std::string_view member, double score, const AddOptions& options,
                const CollectionLimits& limits);
  AddResult Add(std::string_view member, double score, const CollectionLimits& limits) {
    return Add(member, score, AddOptions{}, limits);
  }
  bool Remove(std::string_view member);
  // Its rank from the lowest, and its score.
  std::optional<size_t> Rank(std::string_view member, double* score) const;

  // ---- ranks ----

  // How many members have lower scores; with `equal` also those with an equal one.
  size_t CountBelow(double score, bool equal) const;
  // The same by member. REQUIRES: all scores are equal; else the answer is some number up to size.
  size_t CountMembersBelow(std::string_view member, bool equal) const;
  // No iterator when there is no such rank.
  Iterator At(size_t rank) const;
  // Removes ranks [from, to). REQUIRES: from <= to <= size().
  void RemoveRanks(size_t from, size_t to);

  // ---- walking ----

  // Calls visit(member, score) for some `count` members, all of them when the encoding is listpack,
  // and returns the cursor to go on from; 0 at the end. Members that are there all the time are
  // visited at least once from cursor 0 to 0, whatever happens in between.
  uint64_t Scan(uint64_t cursor, size_t count,
                const std::function<void(std::string_view member, double score)>& visit) const;

  // ---- encoding ----

  // `members` are to come, one of them with this many bytes: Redis decides by that beforehand.
  void Expect(size_t members, size_t length, const CollectionLimits& limits);
  // For results that were put together: listpack if it is within the limits.
  void ChooseEncoding(const CollectionLimits& limits);

  // ---- Object ----

  const TypeInfo& type() const override { return Type(); }
  std::string_view encoding() const override { return skiplist() ? "skiplist" : "listpack"; }
  size_t size() const override;
  size_t MemoryUsage(size_t samples) const override;
  std::unique_ptr<Object> Copy() const override;
  uint8_t rdb_type() const override;
  void Save(Writer& out) const override;
  void Digest(const std::function<void(std::string_view)>& add) const override;
  void DigestAsRedis(DigestSink& out) const override;
  bool Rebuild(std::string_view key, const CommandSink& emit) const override;
  bool large() const override;
  void BeginCut(const PieceSink& sink, bool refer) override;
  bool SavePieces(size_t budget) override;
  void AbortCut() override;

  // Whether the invariants of the large form hold. For tests.
  bool Check() const { return !is_tree() || tree()->Check(); }
  bool is_tree() const { return (form_ & kTree) != 0; }

 private:
  // In form_, below the address: it is a tree, the encoding is skiplist.
  static constexpr uintptr_t kTree = 1;
  static constexpr uintptr_t kSkiplist = 2;
  static constexpr uintptr_t kTags = kTree | kSkiplist;

  static std::unique_ptr<Object> Load(uint8_t rdb_type, Reader& in);
  bool LoadPairs(uint8_t rdb_type, Reader& in);
  bool LoadPacked(uint8_t rdb_type, Reader& in);
  bool LoadOne(std::string_view member, double score);

  bool skiplist() const { return (form_ & kSkiplist) != 0; }
  void set_skiplist(bool on) { form_ = on ? form_ | kSkiplist : form_ & ~kSkiplist; }
  SortedBlock* block() const { return reinterpret_cast<SortedBlock*>(form_ & ~kTags); }
  SortedTree* tree() const { return reinterpret_cast<SortedTree*>(form_ & ~kTags); }
  void set_block(SortedBlock* block) {
    form_ = reinterpret_cast<uintptr_t>(block) | (form_ & kSkiplist);
  }
  void set_tree(SortedTree* tree) {
    form_ = reinterpret_cast<uintptr_t>(tree) | kTree | (form_ & kSkiplist);
  }
  void InsertSmall(std::string_view member, double score);
  static bool Decide(double old, double score, const AddOptions& options, AddResult* result);
  void CheckLimits(size_t length, const CollectionLimits& limits);
  // A listpack keeps whole numbers as integers, which have no negative zero.
  double Kept(double score) const { return skiplist() ? score : score + 0.0; }
  void GrowIfNeeded();
  void ShrinkIfPossible();

  uintptr_t form_;
};

inline const SortedBlock& SortedSet::Iterator::block() const {
  return set_->is_tree() ? set_->tree()->block(place_) : *set_->block();
}
inline double SortedSet::Iterator::score() const { return block().score(place_.spot.index); }
inline std::string_view SortedSet::Iterator::member() const {
  return block().member(place_.spot, &scratch_);
}

// A score as Redis writes it into listpacks and replies: the shortest digits that read back as the
// same number; whole numbers without a fraction; inf and -inf.
std::string ScoreText(double score);

}  // namespace sava::types
