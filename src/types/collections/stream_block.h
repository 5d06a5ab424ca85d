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
// A block that takes no more entries may be dictionary-encoded (encoded_entries.h), all elements of
// `bytes` alike; a deletion expands it again.
//
// Thread safety: as the stream it belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "types/collections/encoded_entries.h"
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
    if (!encoded_.empty()) [[unlikely]] {
      return ForEachEncoded(visit);
    }
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

  template <typename Visit>
  void ForEachEncoded(Visit& visit) const {
    const EncodedEntries elements(encoded_);
    PackedItem::Scratch field_digits;
    PackedItem::Scratch value_digits;
    PackedItem field;
    PackedItem value;
    size_t at = values_at_;
    for (size_t i = 0; i < fields; ++i) {
      ReadPackedElement(elements[same_fields_ ? i : at++].data(), &field);
      ReadPackedElement(elements[at++].data(), &value);
      visit(field.Text(field_digits), value.Text(value_digits));
    }
  }

  const char* master_fields_ = nullptr;  // nullptr: the fields stand before their values
  const char* values_ = nullptr;
  // Of an encoded block: its bytes, and where its values begin.
  std::string_view encoded_;
  size_t values_at_ = 0;
  bool same_fields_ = false;
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
  // Of its fields and entries, as they are in a file.
  size_t bytes() const { return encoded() ? plain_bytes_ : bytes_.size(); }
  // No more entries will come. With `encode` it is encoded if that pays.
  void Close(bool encode);
  bool encoded() const { return plain_bytes_ != 0; }
  // Undoes the encoding; the position of what was at `at`. REQUIRES: encoded(). Without memory it
  // stays as it was.
  size_t Expand(size_t at);
  static EncodedTotals& EncodedTotal();

  // Positions are offsets, or numbers of elements when it is encoded; the first entry's is begin(),
  // behind the last one is end().
  size_t begin() const { return encoded() ? fields_ : entries_at_; }
  size_t end() const { return encoded() ? fields_ + elements_ : bytes_.size(); }
  // Reads the entry at `at`; returns the position of the next. REQUIRES: at < end().
  size_t Read(size_t at, StreamEntry* entry) const;
  // The position of the entry before; REQUIRES: at > begin().
  size_t Before(size_t at) const;
  // The id of the last entry, deleted or not.
  StreamId LastId() const;
  // Marks the entry at `at`. REQUIRES: it is not deleted, and the block is not encoded.
  void Delete(size_t at);

  // The listpack.
  std::string Pack() const;
  // nullptr when the bytes are no block that could be in a stream. Its entries' ids ascend.
  static std::unique_ptr<StreamBlock> Unpack(const StreamId& id, std::string_view listpack);

 private:
  // Its part of EncodedTotal().
  class Share {
   public:
    Share() = default;
    Share(const Share& other) : bytes_(other.bytes_) {
      if (bytes_ != 0) EncodedTotal().Add(bytes_);
    }
    Share& operator=(const Share&) = delete;
    ~Share() { Set(0); }
    void Set(size_t bytes) {
      if (bytes_ != 0) EncodedTotal().Remove(bytes_);
      if (bytes != 0) EncodedTotal().Add(bytes);
      bytes_ = bytes;
    }

   private:
    size_t bytes_ = 0;
  };

  explicit StreamBlock(const StreamId& id) : id_(id) {}
  size_t ReadEncoded(size_t at, StreamEntry* entry) const;
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
  uint32_t plain_bytes_ = 0;  // of an encoded block: how long `bytes_` would be; else 0
  Share share_;
};

}  // namespace sava::types
