// MemberDictionary: members that many counters share, each kept once and named by a number.
//
// A counter that names its members by id holds one reference for each. An id is reused only when
// its last reference is gone, so the holder of one may read the member without a lock. While the
// dictionary is pinned (a snapshot refers to it), ids are not reused at all.
//
// Sharded by the member's hash; an id's low bits are its shard. Records live in chunks that double
// in size and never move, so growth copies nothing but a shard's table of ids.
//
// It also knows, from a sample, in how many counters members have been seen, which tells whether
// naming them by id would pay: see Sightings.
//
// Thread safety: all calls from any thread; shard locks are leaves, held for one lookup.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/prefetch.h"
#include "types/counters/member.h"
#include "types/value/aux_data.h"

namespace sava::types {

class Reader;
class Writer;

class MemberDictionary {
 public:
  using Id = uint32_t;
  static constexpr Id kNone = UINT32_MAX;

  // The one that all counters of the process share.
  static MemberDictionary& Shared();

  MemberDictionary();
  ~MemberDictionary();
  MemberDictionary(const MemberDictionary&) = delete;
  MemberDictionary& operator=(const MemberDictionary&) = delete;

  uint64_t HashOf(const KeptMember& member) const { return member.Hash(seed_); }

  // The member's id with one more reference. Throws std::bad_alloc when there are no ids left.
  Id Intern(const KeptMember& member, uint64_t hash);
  // kNone when it is not known. No reference is taken: the id means something only to a caller who
  // holds one, e.g. as a counter in whose list it then finds the id.
  Id Find(const KeptMember& member, uint64_t hash) const;
  void AddReference(Id id);
  void Release(Id id);
  // REQUIRES: the caller holds a reference, and keeps it as long as it uses the result.
  KeptMember Get(Id id) const;
  void Prefetch(Id id) const { base::Prefetch(RecordOf(id)); }

  // While pinned, ids whose last reference went keep their member.
  void Pin();
  void Unpin();

  // Called once for each member new to a counter.
  void NoteSighting(uint64_t hash);
  // In how many counters it was seen as far as is known; 0 when it is not in the sample.
  uint32_t Sightings(uint64_t hash) const;

  size_t size() const;
  size_t bytes() const;

  // All members with their ids, for files whose values refer to them: SaveNew as often as wanted,
  // each time what has come since (`saved` is kept by the caller), and the end.
  using SavedIds = std::vector<std::vector<bool>>;
  void SaveNew(Writer& out, SavedIds* saved) const;
  static void SaveEnd(Writer& out);
  void SaveAll(Writer& out) const;

 private:
  struct Record;
  struct Shard;
  class Sample;

  static constexpr size_t kShardBits = 8;
  static constexpr size_t kShards = size_t{1} << kShardBits;

  Shard& ShardOf(uint64_t hash) const;
  Record* RecordOf(Id id) const;

  const uint64_t seed_;
  // Where the records are: chunk by chunk, the shards of one chunk side by side, so that reading by
  // id touches little besides the record.
  std::unique_ptr<std::atomic<Record*>[]> chunks_;
  std::unique_ptr<Shard[]> shards_;
  std::unique_ptr<Sample> sample_;
  std::atomic<int> pins_{0};
};

// The dictionary of a file being loaded: which id of ours each saved id is. Holds a reference to
// each until it is destroyed.
class SavedDictionary final : public LoadedAux {
 public:
  SavedDictionary() = default;
  ~SavedDictionary() override;

  // What SaveNew and SaveEnd wrote; false when it is damaged.
  bool Load(Reader& in);
  // kNone when the file did not name it.
  MemberDictionary::Id Find(uint64_t saved) const {
    if (saved < dense_.size()) return dense_[saved];
    const auto found = std::ranges::lower_bound(sparse_, saved, {}, &Known::saved);
    return found == sparse_.end() || found->saved != saved ? MemberDictionary::kNone : found->id;
  }

 private:
  struct Known {
    uint64_t saved;
    MemberDictionary::Id id;
  };
  bool Read(Reader& in);

  std::vector<MemberDictionary::Id> dense_;  // by saved id, as long as they stand close enough
  std::vector<Known> sparse_;                // the others, in order
};

}  // namespace sava::types
