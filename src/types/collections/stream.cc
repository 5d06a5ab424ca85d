#include "types/collections/stream.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include "base/if_memory.h"
#include "types/collections/stream_cut.h"
#include "types/value/digest_sink.h"

namespace sava::types {

namespace {

using IdBytes = std::array<uint8_t, 16>;

// False, and nothing has changed, when there is no memory: what is trimmed then ends there.
bool Expand(StreamBlock& block) {
  return !block.encoded() || base::IfMemory([&block] { block.Expand(0); });
}

IdBytes BytesOf(const StreamId& id) {
  IdBytes bytes;
  for (int i = 0; i < 8; ++i) {
    bytes[static_cast<size_t>(i)] = static_cast<uint8_t>(id.ms >> (56 - 8 * i));
    bytes[static_cast<size_t>(i) + 8] = static_cast<uint8_t>(id.seq >> (56 - 8 * i));
  }
  return bytes;
}

// Nodes of the compressed radix tree of the sorted keys, which agree in the first `depth` bytes: a
// run of bytes without a branch is one node, a branch is one, the end of a key is one.
size_t TreeNodes(std::span<const IdBytes> keys, size_t depth) {
  if (keys.size() == 1) return depth == keys[0].size() ? 1 : 2;
  size_t branch = depth;
  while (keys.front()[branch] == keys.back()[branch]) ++branch;
  size_t nodes = branch > depth ? 2 : 1;
  for (size_t first = 0; first < keys.size();) {
    size_t last = first;
    while (last < keys.size() && keys[last][branch] == keys[first][branch]) ++last;
    nodes += TreeNodes(keys.subspan(first, last - first), branch + 1);
    first = last;
  }
  return nodes;
}

}  // namespace

Stream::Stream() = default;
Stream::~Stream() = default;

// ---- entries ----

std::optional<StreamId> Stream::NextId(uint64_t now_ms) const {
  if (now_ms > last_id_.ms) return StreamId{now_ms, 0};
  StreamId id = last_id_;
  return id.Increment() ? std::optional(id) : std::nullopt;
}

Stream::AddResult Stream::Add(const StreamId& id, std::span<const std::string_view> pairs,
                              const CollectionLimits& limits) {
  if (id <= last_id_) return AddResult::kIdTooSmall;
  size_t size = 0;
  for (const std::string_view text : pairs) size += text.size();
  if (size > StreamBlock::kMostBytes) return AddResult::kTooLarge;
  StreamBlock* block = blocks_.empty() ? nullptr : std::prev(blocks_.end())->second.get();
  if (block != nullptr &&
      !block->HasRoom(size, limits.stream_node_max_bytes, limits.stream_node_max_entries)) {
    block->Close(limits.dictionary_encoding);
    block = nullptr;
  }
  if (block == nullptr) {
    // After XTRIM and XSETID an id of the cut's range may come again: the block is not the cut's.
    if (cut_ != nullptr && id <= cut_->last) cut_->early.insert(id);
    auto fresh = std::make_unique<StreamBlock>(id, pairs);
    fresh->Append(id, pairs);
    blocks_.emplace_hint(blocks_.end(), id, std::move(fresh));
  } else {
    BeforeChange(*block);
    block->Append(id, pairs);
  }
  bytes_ += size + 16;
  last_id_ = id;
  if (entries_added_ < INT64_MAX) ++entries_added_;
  if (++length_ == 1) first_id_ = id;
  return AddResult::kAdded;
}

Stream::Blocks::const_iterator Stream::BlockOf(const StreamId& id) const {
  const auto after = blocks_.upper_bound(id);
  return after == blocks_.begin() ? blocks_.end() : std::prev(after);
}

bool Stream::Contains(const StreamId& id) const {
  bool found = false;
  Range(id, id, [&found](const StreamEntry&) {
    found = true;
    return false;
  });
  return found;
}

std::optional<StreamId> Stream::First() const {
  std::optional<StreamId> id;
  Range(kLeastStreamId, kGreatestStreamId, [&id](const StreamEntry& entry) {
    id = entry.id;
    return false;
  });
  return id;
}

std::optional<StreamId> Stream::Last() const {
  std::optional<StreamId> id;
  RangeReverse(kLeastStreamId, kGreatestStreamId, [&id](const StreamEntry& entry) {
    id = entry.id;
    return false;
  });
  return id;
}

// After `count` entries went, the first one perhaps among them.
void Stream::Removed(uint64_t count) {
  if (count == 0) return;
  length_ -= count;
  first_id_ = First().value_or(kLeastStreamId);
  bytes_ = length_ == 0 ? 0 : bytes_;
}

bool Stream::Delete(const StreamId& id) {
  const auto found = BlockOf(id);
  if (found == blocks_.end()) return false;
  StreamBlock& block = *found->second;
  StreamEntry entry;
  for (size_t at = block.begin(); at < block.end();) {
    const size_t next = block.Read(at, &entry);
    if (!entry.deleted && entry.id == id) {
      BeforeChange(block);
      if (block.count() == 1) {
        bytes_ -= std::min<uint64_t>(bytes_, block.bytes());
        blocks_.erase(found);
      } else {
        block.Delete(block.encoded() ? block.Expand(at) : at);
      }
      if (id == first_id_) {
        Removed(1);
      } else {
        --length_;
      }
      max_deleted_id_ = std::max(max_deleted_id_, id);
      return true;
    }
    at = next;
  }
  return false;
}

uint64_t Stream::TrimToLength(uint64_t length, bool approximate, uint64_t limit) {
  uint64_t gone = 0;
  while (!blocks_.empty() && length_ - gone > length) {
    const auto first = blocks_.begin();
    StreamBlock& block = *first->second;
    if (limit != 0 && gone + block.count() > limit) break;
    const bool whole = length_ - gone - block.count() >= length;
    if (!whole && approximate) break;
    BeforeChange(block);
    if (whole) {
      gone += block.count();
      bytes_ -= std::min<uint64_t>(bytes_, block.bytes());
      blocks_.erase(first);
      continue;
    }
    if (!Expand(block)) break;
    StreamEntry entry;
    for (size_t at = block.begin(); length_ - gone > length;) {
      const size_t next = block.Read(at, &entry);
      if (!entry.deleted) {
        block.Delete(at);
        ++gone;
      }
      at = next;
    }
  }
  Removed(gone);
  return gone;
}

uint64_t Stream::TrimBefore(const StreamId& id, bool approximate, uint64_t limit) {
  uint64_t gone = 0;
  while (!blocks_.empty()) {
    const auto first = blocks_.begin();
    StreamBlock& block = *first->second;
    if (limit != 0 && gone + block.count() > limit) break;
    if (block.LastId() < id) {
      BeforeChange(block);
      gone += block.count();
      bytes_ -= std::min<uint64_t>(bytes_, block.bytes());
      blocks_.erase(first);
      continue;
    }
    if (approximate || block.id() >= id) break;
    BeforeChange(block);
    if (!Expand(block)) break;
    StreamEntry entry;
    for (size_t at = block.begin(); at < block.end();) {
      const size_t next = block.Read(at, &entry);
      if (entry.id >= id) break;
      if (!entry.deleted) {
        block.Delete(at);
        ++gone;
      }
      at = next;
    }
    break;
  }
  Removed(gone);
  return gone;
}

size_t Stream::RadixTreeNodes() const {
  if (blocks_.empty()) return 1;
  std::vector<IdBytes> keys;
  keys.reserve(blocks_.size());
  for (const auto& [id, block] : blocks_) keys.push_back(BytesOf(id));
  return TreeNodes(keys, 0);
}

// ---- groups ----

StreamGroup* Stream::FindGroup(std::string_view name) const {
  const auto found = groups_.find(name);
  return found == groups_.end() ? nullptr : found->second.get();
}

bool Stream::AddGroup(std::string_view name, const StreamId& last_id, int64_t entries_read) {
  if (groups_.contains(name)) return false;
  groups_.emplace(std::string(name), std::make_unique<StreamGroup>(last_id, entries_read));
  return true;
}

bool Stream::RemoveGroup(std::string_view name) {
  const auto found = groups_.find(name);
  if (found == groups_.end()) return false;
  groups_.erase(found);
  return true;
}

bool Stream::HasTombstonesFrom(const StreamId& id) const {
  return length_ != 0 && !max_deleted_id_.zero() && first_id_ <= max_deleted_id_ &&
         id <= max_deleted_id_;
}

int64_t Stream::CountUpTo(const StreamId& id) const {
  const auto added = static_cast<int64_t>(entries_added_);
  if (added == 0) return 0;
  if (length_ == 0 && id <= last_id_) return added;
  if (id == last_id_) return added;
  if (id > last_id_) return StreamGroup::kUnknownRead;
  if (max_deleted_id_.zero() || max_deleted_id_ < first_id_) {
    const auto before_first = added - static_cast<int64_t>(length_);
    if (id < first_id_) return before_first;
    if (id == first_id_) return before_first + 1;
  }
  return StreamGroup::kUnknownRead;
}

std::optional<int64_t> Stream::Lag(const StreamGroup& group) const {
  const auto added = static_cast<int64_t>(entries_added_);
  if (added == 0) return 0;
  if (group.entries_read != StreamGroup::kUnknownRead && !HasTombstonesFrom(group.last_id)) {
    return added - group.entries_read;
  }
  const int64_t read = CountUpTo(group.last_id);
  if (read == StreamGroup::kUnknownRead) return std::nullopt;
  return added - read;
}

void Stream::Advance(StreamGroup& group, const StreamId& id) const {
  if (group.entries_read != StreamGroup::kUnknownRead && !HasTombstonesFrom(id)) {
    if (group.entries_read < INT64_MAX) ++group.entries_read;
  } else if (entries_added_ != 0) {
    group.entries_read = CountUpTo(id);
  }
  group.last_id = id;
}

// ---- as an object ----

size_t Stream::encoded_blocks() const {
  size_t encoded = 0;
  for (const auto& [id, block] : blocks_) encoded += block->encoded() ? 1 : 0;
  return encoded;
}

size_t Stream::MemoryUsage(size_t samples) const {
  size_t bytes = sizeof(*this);
  size_t seen = 0;
  size_t block_bytes = 0;
  for (const auto& [id, block] : blocks_) {
    if (samples != 0 && seen == samples) break;
    block_bytes += block->MemoryUsage() + 64;
    ++seen;
  }
  if (seen != 0) bytes += block_bytes * blocks_.size() / seen;
  for (const auto& [name, group] : groups_) bytes += 80 + name.capacity() + group->MemoryUsage();
  return bytes;
}

std::unique_ptr<Object> Stream::Copy() const {
  auto copy = std::make_unique<Stream>();
  for (const auto& [id, block] : blocks_) {
    copy->blocks_.emplace_hint(copy->blocks_.end(), id, std::make_unique<StreamBlock>(*block));
  }
  copy->length_ = length_;
  copy->last_id_ = last_id_;
  copy->first_id_ = first_id_;
  copy->max_deleted_id_ = max_deleted_id_;
  copy->entries_added_ = entries_added_;
  copy->bytes_ = bytes_;
  for (const auto& [name, group] : groups_) {
    copy->AddGroup(name, group->last_id, group->entries_read);
    StreamGroup& to = *copy->FindGroup(name);
    for (const auto& [consumer_name, consumer] : group->consumers()) {
      to.AddConsumer(consumer_name, consumer->seen_at)->active_at = consumer->active_at;
    }
    group->pending().ForEachFrom(kLeastStreamId, [&to](PendingEntry entry) {
      entry.consumer = to.FindConsumer(entry.consumer->name);
      to.Assign(entry);
      return true;
    });
  }
  return copy;
}

void Stream::DigestAsRedis(DigestSink& out) const {
  Range(kLeastStreamId, kGreatestStreamId, [&out](const StreamEntry& entry) {
    std::string id = entry.id.Text();
    id[id.find('-')] = '.';
    out.Ordered(id);
    entry.ForEachField([&out](std::string_view field, std::string_view value) {
      out.Ordered(field);
      out.Ordered(value);
    });
    return true;
  });
}

void Stream::Digest(const std::function<void(std::string_view)>& add) const {
  Range(kLeastStreamId, kGreatestStreamId, [&add](const StreamEntry& entry) {
    add(base::IntText(static_cast<int64_t>(entry.fields)));
    add(entry.id.Text());
    entry.ForEachField([&add](std::string_view field, std::string_view value) {
      add(field);
      add(value);
    });
    return true;
  });
  const auto add_number = [&add](uint64_t number) { add(StreamId{number, 0}.Text()); };
  add(last_id_.Text());
  add(max_deleted_id_.Text());
  add_number(entries_added_);
  for (const auto& [name, group] : groups_) {
    add(name);
    add(group->last_id.Text());
    add(base::IntText(group->entries_read));
    add_number(group->consumers().size());
    for (const auto& [consumer_name, consumer] : group->consumers()) add(consumer_name);
    add_number(group->pending().size());
    group->pending().ForEachFrom(kLeastStreamId, [&](const PendingEntry& entry) {
      add(entry.id.Text());
      add(base::IntText(entry.delivered_at));
      add_number(entry.deliveries);
      add(entry.consumer->name);
      return true;
    });
  }
}

}  // namespace sava::types
