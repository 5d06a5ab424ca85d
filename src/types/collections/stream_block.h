// StreamBlock: a run of consecutive entries of a stream, packed as in the listpacks that Redis
// keeps its streams in, so that a block is written to a file nearly as it lies in memory:
//
//   head     count, deleted, number of master fields, the fields, 0
//   entry    flags (1 deleted, 2 same fields as the head), ms and seq relative to the block's id,
//            values | number of fields, field, value, …; then how many elements these were
//
// The numbers of the head are members and packed only when the block is written; `bytes` holds the
// elements of the master fields and then those of all entries. An entry that is deleted is marked
// and stays; a block without any other entry goes as a whole.
//
// Thread safety: as the stream it belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "types/collections/packed_forms.h"
#include "types/collections/stream_id.h"

namespace sava::types {

// Reads the element at `p`, which must be well-formed; returns what is behind it.
const char* ReadPackedElement(const char* p, PackedItem* item);

class StreamBlock;

// An entry where it lies: valid until its block changes.
class StreamEntry {
 public:
  StreamId id;
  bool deleted = false;
  size_t fields = 0;

  // visit(std::string_view field, std::string_view value), in order.
  template <typename Visit>
  void ForEachField(Visit&& visit) const {
    const char* field_at = master_fields_;
    const char* value_at = values_;
    PackedItem::Scratch field_digits;
    PackedItem::Scratch value_digits;
    PackedItem field;
    PackedItem value;
    for (size_t i = 0; i < fields; ++i) {
      if (master_fields_ != nullptr) {
        field_at = ReadPackedElement(field_at, &field);
      } else {
        value_at = ReadPackedElement(value_at, &field);
      }
      value_at = ReadPackedElement(value_at, &value);
      visit(field.Text(field_digits), value.Text(value_digits));
    }
  }

 private:
  friend class StreamBlock;
  const char* master_fields_ = nullptr;  // nullptr: the fields stand before their values
  const char* values_ = nullptr;
};

class StreamBlock {
 public:
  // The largest sum of a block's fields and values, as in Redis.
  static constexpr size_t kMostBytes = size_t{1} << 30;

  // An empty block; its id is that of the entry that comes first, and so are the master fields.
  StreamBlock(const StreamId& id, std::span<const std::string_view> pairs);

  // Without memory it stays as it was. REQUIRES: id is not below any id of the block.
  void Append(const StreamId& id, std::span<const std::string_view> pairs);

  const StreamId& id() const { return id_; }
  uint32_t count() const { return count_; }
  uint32_t deleted() const { return deleted_; }
  // Bytes of the block when it is written now.
  size_t PackedSize() const;
  // Whether the block takes an entry of `size` bytes of fields and values more.
  bool HasRoom(size_t size, uint64_t max_bytes, int64_t max_entries) const;
  size_t MemoryUsage() const { return sizeof(*this) + bytes_.capacity(); }
  // No more entries will come.
  void Close() { bytes_.shrink_to_fit(); }

  // Positions are offsets; the first entry's is begin(), behind the last one is end().
  size_t begin() const { return entries_at_; }
  size_t end() const { return bytes_.size(); }
  // Reads the entry at `at`; returns the position of the next. REQUIRES: at < end().
  size_t Read(size_t at, StreamEntry* entry) const;
  // The position of the entry before; REQUIRES: at > begin().
  size_t Before(size_t at) const;
  // The id of the last entry, deleted or not.
  StreamId LastId() const;
  // Marks the entry at `at`. REQUIRES: it is not deleted.
  void Delete(size_t at);

  // The listpack.
  std::string Pack() const;
  // nullptr when the bytes are no block that could be in a stream. Its entries' ids ascend.
  static std::unique_ptr<StreamBlock> Unpack(const StreamId& id, std::string_view listpack);

 private:
  explicit StreamBlock(const StreamId& id) : id_(id) {}
  bool UnpackEntry(ListpackCursor& in, const PackedItem& flags, StreamId* last);
  void AppendEntry(const StreamId& id, std::span<const std::string_view> pairs);
  void AppendItem(const PackedItem& item);
  void AppendText(std::string_view text);
  void AppendInt(int64_t value);
  bool SameFields(std::span<const std::string_view> pairs) const;

  StreamId id_;
  uint32_t count_ = 0;
  uint32_t deleted_ = 0;
  uint32_t fields_ = 0;      // of the head
  uint32_t entries_at_ = 0;  // where the fields end
  uint64_t elements_ = 0;    // of all entries
  std::string bytes_;
};

}  // namespace sava::types
