// Saving and loading of Stream: Redis's RDB types 19 (written and read), 15 and 21 (read).
//
//   length   blocks; of each a string of 16 bytes, its id big-endian, and a string, its listpack
//   length   entries; then as lengths last id, [19, 21: first id, highest deleted id, entries
//   added] length   groups; of each its name, last id, [19, 21: entries read]; pending entries (16
//   bytes
//            id, 8 bytes time, length deliveries); consumers (name, 8 bytes seen, [21: 8 bytes
//            active], the ids of its pending entries)
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "types/collections/stream.h"
#include "types/collections/stream_cut.h"
#include "types/value/save.h"

namespace sava::types {

namespace {

constexpr uint8_t kStreamV1 = 15;
constexpr uint8_t kStreamV2 = 19;
constexpr uint8_t kStreamV3 = 21;
constexpr uint8_t kStreamRdbTypes[] = {kStreamV2, kStreamV1, kStreamV3};

constexpr size_t kLargeBytes = 64 * 1024;
// Lists of no more blocks are written when a cut begins.
constexpr size_t kShortList = 2;

void PutId(const StreamId& id, Writer& out) {
  char bytes[16];
  for (int i = 0; i < 8; ++i) {
    bytes[i] = static_cast<char>(id.ms >> (56 - 8 * i));
    bytes[i + 8] = static_cast<char>(id.seq >> (56 - 8 * i));
  }
  out.Raw({bytes, sizeof bytes});
}

bool GetId(std::string_view bytes, StreamId* id) {
  if (bytes.size() != 16) return false;
  for (size_t i = 0; i < 8; ++i) {
    id->ms = id->ms << 8 | static_cast<uint8_t>(bytes[i]);
    id->seq = id->seq << 8 | static_cast<uint8_t>(bytes[i + 8]);
  }
  return true;
}

void PutBlock(const StreamBlock& block, Writer& out) {
  std::string id;
  {
    Writer id_out(&id);
    PutId(block.id(), id_out);
  }
  out.String(id);
  out.String(block.Pack());
}

void PutIdNumbers(const StreamId& id, Writer& out) {
  out.Length(id.ms);
  out.Length(id.seq);
}

StreamId GetIdNumbers(Reader& in) {
  const uint64_t ms = in.Length();
  return {ms, in.Length()};
}

void PutItem(const PendingEntry& entry, Writer& out) {
  PutId(entry.id, out);
  out.Fixed64(static_cast<uint64_t>(entry.delivered_at));
  out.Length(entry.deliveries);
}

void PutItem(const PendingId& item, Writer& out) { PutId(item.id, out); }

template <typename Blocks>
void PutItems(const Blocks& blocks, Writer& out) {
  for (const auto& block : blocks) {
    for (const auto& item : *block) PutItem(item, out);
  }
}

// Makes the pieces behind the blocks.
class TailMaker {
 public:
  explicit TailMaker(size_t most_inline) : most_inline_(most_inline) {}

  // Appends to the bytes of the current piece.
  template <typename Write>
  void Put(const Write& write) {
    Writer out(&pieces_.back().bytes);
    write(out);
  }

  void PutList(const PendingList<PendingEntry>& list) {
    PutOrShare(list, [this](auto blocks) { pieces_.back().entries = std::move(blocks); });
  }
  void PutList(const PendingList<PendingId>& list) {
    PutOrShare(list, [this](auto blocks) { pieces_.back().ids = std::move(blocks); });
  }

  void PutGroup(const std::string& name, const StreamGroup& group) {
    Put([&](Writer& out) {
      out.String(name);
      PutIdNumbers(group.last_id, out);
      out.Length(static_cast<uint64_t>(group.entries_read));
      out.Length(group.pending().size());
    });
    PutList(group.pending());
    Put([&](Writer& out) { out.Length(group.consumers().size()); });
    for (const auto& [consumer_name, consumer] : group.consumers()) {
      Put([&, &who = consumer_name, &its = *consumer](Writer& out) {
        out.String(who);
        out.Fixed64(static_cast<uint64_t>(its.seen_at));
        out.Length(its.pending.size());
      });
      PutList(consumer->pending);
    }
  }

  std::vector<StreamTailPiece> Take() { return std::move(pieces_); }

 private:
  template <typename List, typename Share>
  void PutOrShare(const List& list, const Share& share) {
    auto blocks = list.Blocks();
    if (blocks.size() <= most_inline_) {
      Put([&](Writer& out) { PutItems(blocks, out); });
      return;
    }
    share(std::move(blocks));
    pieces_.emplace_back();
  }

  size_t most_inline_;
  std::vector<StreamTailPiece> pieces_{1};
};

}  // namespace

const TypeInfo& Stream::Type() {
  static constexpr SharedStore kEncodedBlocks[] = {
      {"stream-encoded-blocks",
       [] { return StreamBlock::EncodedTotal().blocks.load(std::memory_order_relaxed); },
       [] { return StreamBlock::EncodedTotal().bytes.load(std::memory_order_relaxed); }}};
  static const TypeInfo kInfo{.name = "stream",
                              .rdb_types = kStreamRdbTypes,
                              .rdb_type_count = std::size(kStreamRdbTypes),
                              .load = &Stream::Load,
                              .shared_stores = kEncodedBlocks,
                              .digest_number = 6};
  return kInfo;
}

uint8_t Stream::rdb_type() const { return kStreamV2; }

// ---- saving ----

void Stream::SaveNumbers(Writer& out) const {
  out.Length(length_);
  PutIdNumbers(last_id_, out);
  PutIdNumbers(first_id_, out);
  PutIdNumbers(max_deleted_id_, out);
  out.Length(entries_added_);
  out.Length(groups_.size());
}

void Stream::Save(Writer& out) const {
  out.Length(blocks_.size());
  for (const auto& [id, block] : blocks_) PutBlock(*block, out);
  SaveNumbers(out);
  for (const auto& [name, group] : groups_) {
    TailMaker maker(SIZE_MAX);
    maker.PutGroup(name, *group);
    out.Raw(maker.Take().front().bytes);
  }
}

bool Stream::large() const {
  uint64_t bytes = bytes_;
  for (const auto& [name, group] : groups_) {
    bytes += 64 + group->pending().size() * 64 + group->consumers().size() * 64;
  }
  return bytes > kLargeBytes;
}

void Stream::BeginCut(const PieceSink& sink, bool /*refer*/) {
  cut_ = std::make_unique<StreamCut>();
  cut_->sink = sink;
  if (!blocks_.empty()) {
    cut_->blocks_left = true;
    cut_->next = blocks_.begin()->first;
    cut_->last = blocks_.rbegin()->first;
  }
  TailMaker maker(kShortList);
  maker.Put([this](Writer& out) { SaveNumbers(out); });
  for (const auto& [name, group] : groups_) maker.PutGroup(name, *group);
  cut_->tail = maker.Take();
  std::string head;
  {
    Writer out(&head);
    out.Length(blocks_.size());
  }
  sink(head);
}

void Stream::BeforeChange(const StreamBlock& block) {
  if (cut_ == nullptr || !cut_->blocks_left) return;
  if (block.id() < cut_->next || block.id() > cut_->last) return;
  if (!cut_->early.insert(block.id()).second) return;
  std::string bytes;
  {
    Writer out(&bytes);
    PutBlock(block, out);
  }
  cut_->sink(bytes);
}

bool Stream::SavePieces(size_t budget) {
  if (cut_ == nullptr) return true;
  size_t done = 0;
  std::string bytes;
  const auto hand_on = [&](const auto& write) {
    bytes.clear();
    {
      Writer out(&bytes);
      write(out);
    }
    done += bytes.size();
    if (!bytes.empty()) cut_->sink(bytes);
  };
  while (cut_->blocks_left && done < budget) {
    const auto block = blocks_.lower_bound(cut_->next);
    if (block == blocks_.end() || block->first > cut_->last) {
      cut_->blocks_left = false;
      break;
    }
    if (cut_->early.erase(block->first) == 0) {
      hand_on([&](Writer& out) { PutBlock(*block->second, out); });
    }
    cut_->next = block->first;
    if (!cut_->next.Increment()) cut_->blocks_left = false;
  }
  while (!cut_->blocks_left && cut_->tail_piece < cut_->tail.size() && done < budget) {
    StreamTailPiece& piece = cut_->tail[cut_->tail_piece];
    const size_t number = cut_->tail_block++;
    if (number == 0) {
      hand_on([&](Writer& out) { out.Raw(piece.bytes); });
    } else if (number <= piece.entries.size()) {
      const auto block = std::exchange(piece.entries[number - 1], nullptr);
      hand_on([&](Writer& out) { PutItems(std::array{block}, out); });
    } else if (number <= piece.ids.size()) {
      const auto block = std::exchange(piece.ids[number - 1], nullptr);
      hand_on([&](Writer& out) { PutItems(std::array{block}, out); });
    } else {
      cut_->tail_block = 0;
      ++cut_->tail_piece;
    }
  }
  if (cut_->blocks_left || cut_->tail_piece < cut_->tail.size()) return false;
  const PieceSink sink = std::move(cut_->sink);
  AbortCut();
  sink({});
  return true;
}

void Stream::AbortCut() { cut_.reset(); }

// ---- loading ----

bool Stream::LoadBlocks(Reader& in) {
  const uint64_t count = in.Count(2);
  std::string scratch;
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    StreamId id;
    if (!GetId(in.String(), &id)) return in.Fail("the id of a stream's block");
    std::unique_ptr<StreamBlock> block = StreamBlock::Unpack(id, in.StringView(&scratch));
    if (block == nullptr) return in.Fail("the listpack of a stream");
    length_ += block->count();
    bytes_ += block->bytes();
    if (!blocks_.emplace(id, std::move(block)).second) return in.Fail("no block twice");
  }
  // Entries ascend over all blocks.
  StreamId last;
  StreamEntry entry;
  for (const auto& [id, block] : blocks_) {
    if (id <= last && last != StreamId{}) return in.Fail("entries of a stream ascend");
    for (size_t at = block->begin(); at < block->end();) {
      at = block->Read(at, &entry);
      if (entry.deleted) continue;
      if (entry.id <= last) return in.Fail("entries of a stream ascend");
      last = entry.id;
    }
  }
  last_id_ = blocks_.empty() ? last : std::max(last, blocks_.rbegin()->first);
  for (const auto& [id, block] : blocks_) {
    if (block != blocks_.rbegin()->second) block->Close(in.limits().dictionary_encoding);
  }
  return in.ok();
}

bool Stream::LoadNumbers(uint8_t rdb_type, Reader& in) {
  const uint64_t stated = in.Length();
  const StreamId last = GetIdNumbers(in);
  if (!in.ok()) return false;
  if (stated != length_ || last < last_id_) return in.Fail("length and last id of a stream");
  last_id_ = last;
  first_id_ = First().value_or(kLeastStreamId);
  if (rdb_type == kStreamV1) {
    entries_added_ = length_;
    return true;
  }
  GetIdNumbers(in);
  max_deleted_id_ = GetIdNumbers(in);
  entries_added_ = in.Length();
  return in.ok() && entries_added_ <= INT64_MAX;
}

bool Stream::LoadPending(Reader& in, std::vector<PendingEntry>* entries) {
  const uint64_t count = in.Count(25);
  entries->reserve(count);
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    PendingEntry& entry = entries->emplace_back();
    if (!GetId(in.Raw(16), &entry.id)) return false;
    entry.delivered_at = static_cast<int64_t>(in.Fixed64());
    entry.deliveries = in.Length();
  }
  const auto below = [](const PendingEntry& a, const PendingEntry& b) { return a.id < b.id; };
  const auto same = [](const PendingEntry& a, const PendingEntry& b) { return a.id == b.id; };
  std::sort(entries->begin(), entries->end(), below);
  return in.ok() && std::adjacent_find(entries->begin(), entries->end(), same) == entries->end();
}

bool Stream::LoadConsumer(uint8_t rdb_type, Reader& in, StreamGroup* group,
                          std::vector<PendingEntry>* entries) {
  const std::string name = in.String();
  const auto seen = static_cast<int64_t>(in.Fixed64());
  const auto active = rdb_type == kStreamV3 ? static_cast<int64_t>(in.Fixed64()) : seen;
  const uint64_t count = in.Count(16);
  StreamConsumer* consumer = in.ok() ? group->AddConsumer(name, seen) : nullptr;
  if (consumer == nullptr) return false;
  consumer->active_at = active;
  for (uint64_t i = 0; i < count; ++i) {
    StreamId id;
    if (!GetId(in.Raw(16), &id)) return false;
    const auto entry =
        std::lower_bound(entries->begin(), entries->end(), id,
                         [](const PendingEntry& a, const StreamId& b) { return a.id < b; });
    if (entry == entries->end() || entry->id != id || entry->consumer != nullptr) return false;
    entry->consumer = consumer;
  }
  return true;
}

bool Stream::LoadGroup(uint8_t rdb_type, Reader& in) {
  const std::string name = in.String();
  const StreamId last = GetIdNumbers(in);
  const auto read = rdb_type == kStreamV1 ? CountUpTo(last) : static_cast<int64_t>(in.Length());
  if (!in.ok() || read < StreamGroup::kUnknownRead || !AddGroup(name, last, read)) return false;
  StreamGroup* group = FindGroup(name);
  std::vector<PendingEntry> entries;
  if (!LoadPending(in, &entries)) return false;
  const uint64_t consumers = in.Count(10);
  for (uint64_t i = 0; i < consumers; ++i) {
    if (!LoadConsumer(rdb_type, in, group, &entries)) return false;
  }
  for (const PendingEntry& entry : entries) {
    if (entry.consumer == nullptr) return false;
    group->Assign(entry);
  }
  return in.ok();
}

std::unique_ptr<Object> Stream::Load(uint8_t rdb_type, Reader& in) {
  auto stream = std::make_unique<Stream>();
  if (!stream->LoadBlocks(in) || !stream->LoadNumbers(rdb_type, in)) return nullptr;
  const uint64_t groups = in.Count(5);
  for (uint64_t i = 0; i < groups; ++i) {
    if (!stream->LoadGroup(rdb_type, in)) {
      in.Fail("a group of a stream, its consumers and what is pending");
      return nullptr;
    }
  }
  return in.ok() ? std::move(stream) : nullptr;
}

}  // namespace sava::types
