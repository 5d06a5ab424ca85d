// Stream: an append-only log of entries with ascending ids, and groups of consumers that share the
// reading of it.
//
// Entries lie in blocks (stream_block.h) that end where Redis's would, by stream-node-max-bytes and
// stream-node-max-entries, ordered by the id of their first entry. A deleted entry is marked; a
// block goes when its last entry is deleted. A group keeps what it has read up to, and for every
// entry delivered but not acknowledged to whom, when and how often; each consumer keeps the ids of
// its own.
//
// A snapshot saves block by block: a block that is about to change before its turn is saved at once
// (their order in a file means nothing); groups are written when the cut begins, but long lists of
// pending entries only share their blocks with it (pending_list.h).
//
// Thread safety: as every Object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "types/collections/collection_limits.h"
#include "types/collections/stream_block.h"
#include "types/collections/stream_group.h"
#include "types/collections/stream_id.h"
#include "types/value/object.h"

namespace sava::types {

class StreamCut;

class Stream final : public Object {
 public:
  using Groups = std::map<std::string, std::unique_ptr<StreamGroup>, std::less<>>;

  Stream();
  ~Stream() override;

  // ---- entries ----
  enum class AddResult : uint8_t { kAdded, kIdTooSmall, kTooLarge };
  // `pairs` is field, value, …
  AddResult Add(const StreamId& id, std::span<const std::string_view> pairs,
                const CollectionLimits& limits);
  // The id that an entry added at `now_ms` gets; nothing when there is none left.
  std::optional<StreamId> NextId(uint64_t now_ms) const;
  // False when it is not there. The latest deletion is remembered.
  bool Delete(const StreamId& id);
  bool Contains(const StreamId& id) const;
  // Remove entries from the front until `length` remain, or all below `id`. `approximate`: only
  // whole blocks; limit: at most that many entries (0: any number). How many went.
  uint64_t TrimToLength(uint64_t length, bool approximate, uint64_t limit);
  uint64_t TrimBefore(const StreamId& id, bool approximate, uint64_t limit);
  // visit(const StreamEntry&) -> bool for the entries from `from` to `to`, both included, until it
  // returns false; the stream must not change meanwhile.
  template <typename Visit>
  void Range(const StreamId& from, const StreamId& to, Visit&& visit) const;
  template <typename Visit>
  void RangeReverse(const StreamId& from, const StreamId& to, Visit&& visit) const;
  // Of the entries that are there; nothing when there are none.
  std::optional<StreamId> First() const;
  std::optional<StreamId> Last() const;

  uint64_t length() const { return length_; }
  // The highest id ever given.
  const StreamId& last_id() const { return last_id_; }
  // 0-0 when empty.
  const StreamId& first_id() const { return first_id_; }
  const StreamId& max_deleted_id() const { return max_deleted_id_; }
  uint64_t entries_added() const { return entries_added_; }
  // XSETID. REQUIRES: id is not below any entry's.
  void SetLastId(const StreamId& id) { last_id_ = id; }
  void SetEntriesAdded(uint64_t count) { entries_added_ = count; }
  void SetMaxDeletedId(const StreamId& id) { max_deleted_id_ = id; }

  // Blocks, and the nodes that Redis's radix tree of their ids has.
  size_t blocks() const { return blocks_.size(); }
  size_t RadixTreeNodes() const;

  // ---- groups ----
  const Groups& groups() const { return groups_; }
  // nullptr when there is none.
  StreamGroup* FindGroup(std::string_view name) const;
  // False when there is one of that name.
  bool AddGroup(std::string_view name, const StreamId& last_id, int64_t entries_read);
  bool RemoveGroup(std::string_view name);
  // How many entries were ever added up to `id`; kUnknownRead when that cannot be said.
  int64_t CountUpTo(const StreamId& id) const;
  // How many entries the group has not read; nothing when that cannot be said.
  std::optional<int64_t> Lag(const StreamGroup& group) const;
  // The group is given the entry `id`, above all it had.
  void Advance(StreamGroup& group, const StreamId& id) const;

  static const TypeInfo& Type();
  const TypeInfo& type() const override { return Type(); }
  std::string_view encoding() const override { return "stream"; }
  size_t size() const override { return length_; }
  size_t encoded_blocks() const override;
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

 private:
  using Blocks = std::map<StreamId, std::unique_ptr<StreamBlock>>;

  static std::unique_ptr<Object> Load(uint8_t rdb_type, Reader& in);
  bool LoadBlocks(Reader& in);
  bool LoadNumbers(uint8_t rdb_type, Reader& in);
  bool LoadGroup(uint8_t rdb_type, Reader& in);
  static bool LoadPending(Reader& in, std::vector<PendingEntry>* entries);
  static bool LoadConsumer(uint8_t rdb_type, Reader& in, StreamGroup* group,
                           std::vector<PendingEntry>* entries);
  // The block that may hold `id`; blocks_.end() when none may.
  Blocks::const_iterator BlockOf(const StreamId& id) const;
  bool HasTombstonesFrom(const StreamId& id) const;
  void BeforeChange(const StreamBlock& block);
  void Removed(uint64_t count);
  void SaveNumbers(Writer& out) const;

  Blocks blocks_;
  uint64_t length_ = 0;
  StreamId last_id_;
  StreamId first_id_;
  StreamId max_deleted_id_;
  uint64_t entries_added_ = 0;
  uint64_t bytes_ = 0;  // of all blocks, roughly
  Groups groups_;
  std::unique_ptr<StreamCut> cut_;  // while one is under way
};

template <typename Visit>
void Stream::Range(const StreamId& from, const StreamId& to, Visit&& visit) const {
  auto block = BlockOf(from);
  if (block == blocks_.end()) block = blocks_.begin();
  StreamEntry entry;
  for (; block != blocks_.end() && block->first <= to; ++block) {
    for (size_t at = block->second->begin(); at < block->second->end();) {
      at = block->second->Read(at, &entry);
      if (entry.deleted || entry.id < from) continue;
      if (entry.id > to || !visit(static_cast<const StreamEntry&>(entry))) return;
    }
  }
}

template <typename Visit>
void Stream::RangeReverse(const StreamId& from, const StreamId& to, Visit&& visit) const {
  auto block = blocks_.upper_bound(to);
  StreamEntry entry;
  while (block != blocks_.begin()) {
    --block;
    for (size_t at = block->second->end(); at > block->second->begin();) {
      at = block->second->Before(at);
      block->second->Read(at, &entry);
      if (entry.deleted || entry.id > to) continue;
      if (entry.id < from || !visit(static_cast<const StreamEntry&>(entry))) return;
    }
  }
}

}  // namespace sava::types
