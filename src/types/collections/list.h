// List: a sequence of strings, fast at both ends.
//
// The elements stand as list_entry.h says in blocks of up to kBlock bytes, with room to grow at
// both sides of each; an element that is larger has a block of its own. A directory in order says
// which part of which block is in use and how many elements that is, so that a position is found
// by adding up counts from the nearer end.
//
// Inner blocks in which values repeat are dictionary-encoded (encoded_entries.h): a block is looked
// at once, when pushes at an end have put another between it and that end. Reading and taking
// elements away at the ends leave it as it is; a change of anything else in it expands it for good.
//
// A cut (a save while the list changes) shares the blocks as they are: a block that is shared is
// copied before its bytes change; taking elements away at an end needs no copy.
//
// What OBJECT ENCODING answers follows Redis 7.2: a list is a "listpack" until it would outgrow
// list-max-listpack-size, and becomes one again when it shrinks to half of that. Callers say when:
// WillGrow before elements are added, Shrunk after some went.
//
// Thread safety: as every Object.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "types/collections/collection_limits.h"
#include "types/collections/encoded_entries.h"
#include "types/collections/list_entry.h"
#include "types/collections/list_piece.h"
#include "types/collections/packed_forms.h"
#include "types/value/object.h"

namespace sava::types {

class List final : public Object {
 public:
  using End = ListEnd;
  // Of one element.
  static constexpr uint64_t kMaxElement = UINT32_MAX - 64;

  List() = default;
  ~List() override;

  // ---- the ends; texts have at most kMaxElement bytes ----
  void Push(End end, std::string_view text) { Push(end, list_entry::New(text)); }
  // The element there; views hold until the list changes. REQUIRES: not empty.
  PackedItem Peek(End end) const;
  // Takes `n` elements away. REQUIRES: n <= size().
  void Drop(End end, size_t n);

  // ---- by position, from 0 ----
  // REQUIRES: index < size().
  PackedItem At(size_t index) const;
  // REQUIRES: index < size().
  void Set(size_t index, std::string_view text);
  // The new element gets this position. REQUIRES: index <= size().
  void Insert(size_t index, std::string_view text);
  // Keeps `count` elements from `start` on. REQUIRES: start + count <= size().
  void Trim(size_t start, size_t count);

  // ---- by value ----
  // Removes up to `most` elements that equal the text, from that end on; how many.
  size_t Remove(std::string_view text, End from, size_t most);
  // The position of the first element that equals the text, from the head; size() when none does.
  size_t Find(std::string_view text) const;

  // visit(const PackedItem&) for `count` elements: the one at `start` and those after it.
  // REQUIRES: start + count <= size().
  template <typename Visit>
  void ForRange(size_t start, size_t count, Visit&& visit) const {
    ForWhile(start, count, [&visit](const PackedItem& item) {
      visit(item);
      return true;
    });
  }
  // The same until visit returns false.
  template <typename Visit>
  void ForWhile(size_t start, size_t count, Visit&& visit) const;
  // The element at `start` and those before it, down to count of them, until visit returns false.
  // REQUIRES: start < size(), count <= start + 1.
  template <typename Visit>
  void ForWhileBack(size_t start, size_t count, Visit&& visit) const;

  // ---- what Redis would keep it as ----
  // `count` elements of `bytes` bytes together are about to come.
  void WillGrow(const CollectionLimits& limits, size_t bytes, size_t count);
  void Shrunk(int64_t list_max_listpack_size);
  // It was put together as a whole: whatever it fits.
  void Settle(int64_t list_max_listpack_size) { FitLoaded(list_max_listpack_size, piece_count_); }
  // Which blocks may be encoded that pushes make inner ones from now on; none before it is called.
  // WillGrow does.
  void set_encoding(const CollectionLimits& limits);

  static const TypeInfo& Type();
  const TypeInfo& type() const override { return Type(); }
  std::string_view encoding() const override { return quicklist_ ? "quicklist" : "listpack"; }
  size_t size() const override { return count_; }
  size_t encoded_blocks() const override;
  size_t MemoryUsage(size_t samples) const override;
  std::unique_ptr<Object> Copy() const override;
  uint8_t rdb_type() const override;
  void Save(Writer& out) const override;
  void Digest(const std::function<void(std::string_view)>& add) const override;
  void DigestAsRedis(DigestSink& out) const override;
  bool Rebuild(std::string_view key, const CommandSink& emit) const override;
  bool large() const override { return quicklist_ && bytes_ > kLarge; }
  void BeginCut(const PieceSink& sink, bool refer) override;
  bool SavePieces(size_t budget) override;
  void AbortCut() override;

  // Bytes of all entries as a listpack.
  size_t listpack_bytes() const { return bytes_ + 7; }
  // Empty if the structure is sound, otherwise what is wrong with it. For tests.
  std::string Check() const;

 private:
  static constexpr size_t kLarge = 64 << 10;

  using Block = ListBlock;
  using Piece = ListPiece;
  static constexpr size_t kBlock = kListBlock;
  // Up to this many bytes neighbours are joined: some room is left for what comes next.
  static constexpr size_t kJoined = 6144;

  // Where an element is, or the end of a piece.
  struct Place {
    size_t piece;
    uint32_t at;      // byte in the block; 0 in an encoded one
    uint32_t number;  // of the element in the piece
  };

  // What is still to be saved of the list as it was when the cut began. Holds its blocks.
  struct Cut {
    Cut() = default;
    Cut(const Cut&) = delete;
    Cut& operator=(const Cut&) = delete;
    ~Cut();
    PieceSink sink;
    std::vector<Piece> pieces;
    size_t next = 0;
  };

  static Block* NewBlock(size_t capacity);
  static Block* NewEncoded(std::string_view bytes);
  static void Release(Block* block);
  static EncodedTotals& EncodedTotal();

  Piece* pieces() const { return directory_ + first_; }
  Piece& piece_at(End end) const { return pieces()[end == End::kHead ? 0 : piece_count_ - 1]; }
  // Makes room for an entry of `need` bytes at a side of the list's outermost piece, or a new one.
  void MakeRoom(End side, size_t need);
  void Push(End end, const list_entry::New& entry);
  // Moves a piece into a block of this capacity with so many bytes free in front.
  static void Resettle(Piece& piece, size_t capacity, size_t front);
  // Makes the piece's bytes its own.
  static void Own(Piece& piece);
  Piece& AddPiece(size_t index, const Piece& piece);
  void RemovePieces(size_t index, size_t n);
  void GrowDirectory(size_t index);
  Place Locate(size_t index) const;
  // The same; an encoded piece is expanded first.
  Place LocatePlain(size_t index);
  PackedItem ItemAt(const Place& place) const;
  // Encodes the piece that another one at that end has made an inner one, if that pays.
  void EncodeInner(End end);
  static void Expand(Piece& piece);
  // Expands the encoded pieces in which the first `most` elements from that end stand that equal
  // the entry.
  void ExpandWith(std::string_view entry, End from, size_t most);
  // The first element of an encoded piece that equals the entry; its count when none does.
  static size_t FindIn(const Piece& piece, std::string_view entry);
  static size_t CountIn(const Piece& piece, std::string_view entry);
  void InsertAt(Place place, const list_entry::New& entry);
  void ReplaceAt(const Place& place, size_t old_size, const list_entry::New& entry);
  // Takes an element out of its piece, which may be empty afterwards.
  void EraseAt(const Place& place);
  // Splits a piece before an element; the rest is the piece after it.
  void Split(const Place& place);
  void DropFrom(Piece& piece, End end, size_t n);
  static bool Joinable(const Piece& left, const Piece& right);
  // Joins a piece with the next if both are small enough.
  bool Merge(size_t index);
  static bool Join(Piece& left, const Piece& right);
  void Tidy(size_t index);
  void Compact();
  size_t RemoveIn(Piece& piece, std::string_view entry, size_t skip, size_t most);

  static std::string CheckPiece(const Piece& piece);
  static void AppendEntries(const Piece& piece, std::string* out);
  static void SavePiece(const Piece& piece, Writer& out);
  // Writes a node that holds the elements of `n` pieces: so many bytes and elements.
  static void AppendListpack(const Piece* pieces, size_t n, size_t bytes, size_t count,
                             Writer& out);
  static std::unique_ptr<Object> Load(uint8_t rdb_type, Reader& in);
  bool LoadNode(uint8_t rdb_type, Reader& in);
  // As what Redis would keep a list that it has read in so many nodes.
  void FitLoaded(int64_t list_max_listpack_size, size_t nodes);

  Piece* directory_ = &only_;
  uint32_t first_ = 0;  // the pieces in use stand from here
  uint32_t piece_count_ = 0;
  uint32_t directory_size_ = 1;
  bool quicklist_ = false;
  uint16_t plain_ends_ = 0;  // pieces at each end that are not encoded; 0: none is
  Piece only_;               // the directory while one piece is enough
  uint64_t count_ = 0;
  uint64_t bytes_ = 0;  // of all entries
  std::unique_ptr<Cut> cut_;
};

template <typename Visit>
void List::ForWhile(size_t start, size_t count, Visit&& visit) const {
  if (count == 0) return;
  const Place place = Locate(start);
  const Piece* piece = &pieces()[place.piece];
  const char* p = piece->block->data() + place.at;
  size_t here = piece->count - place.number;
  PackedItem item;
  for (;;) {
    if (here > count) here = count;
    count -= here;
    if (piece->encoded()) [[unlikely]] {
      for (size_t number = piece == &pieces()[place.piece] ? place.number : 0; here != 0; --here) {
        item = piece->item(number++);
        if (!visit(static_cast<const PackedItem&>(item))) return;
      }
    }
    for (; here != 0; --here) {
      p = list_entry::Read(p, &item);
      if (!visit(static_cast<const PackedItem&>(item))) return;
    }
    if (count == 0) return;
    ++piece;
    p = piece->first();
    here = piece->count;
  }
}

template <typename Visit>
void List::ForWhileBack(size_t start, size_t count, Visit&& visit) const {
  if (count == 0) return;
  const Place place = Locate(start);
  const Piece* piece = &pieces()[place.piece];
  PackedItem item;
  const char* end = piece->encoded() ? nullptr : list_entry::Next(piece->block->data() + place.at);
  size_t here = size_t{place.number} + 1;
  for (;;) {
    size_t number = here;
    if (here > count) here = count;
    count -= here;
    if (piece->encoded()) [[unlikely]] {
      for (; here != 0; --here) {
        item = piece->item(--number);
        if (!visit(static_cast<const PackedItem&>(item))) return;
      }
    }
    for (; here != 0; --here) {
      end = list_entry::Previous(end);
      list_entry::Read(end, &item);
      if (!visit(static_cast<const PackedItem&>(item))) return;
    }
    if (count == 0) return;
    --piece;
    end = piece->last();
    here = piece->count;
  }
}

}  // namespace sava::types
