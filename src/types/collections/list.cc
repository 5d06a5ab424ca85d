#include "types/collections/list.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/if_memory.h"
#include "types/value/digest_sink.h"

namespace sava::types {

namespace {

constexpr size_t kSmallestBlock = 40;

// The sizes that list-max-listpack-size -1 to -5 stand for, and the one no block exceeds that is
// limited by its count.
constexpr size_t kSizeLimits[] = {4096, 8192, 16384, 32768, 65536};
constexpr size_t kSafeSize = 8192;

struct ListpackLimit {
  size_t bytes = SIZE_MAX;
  size_t count = SIZE_MAX;
};

ListpackLimit LimitOf(int64_t setting) {
  if (setting >= 0) return {SIZE_MAX, setting == 0 ? 1 : static_cast<size_t>(setting)};
  const size_t level = std::min<size_t>(static_cast<size_t>(-(setting + 1)), 4);
  return {kSizeLimits[level], SIZE_MAX};
}

}  // namespace

// ---- blocks ----

List::Block* List::NewBlock(size_t capacity) {
  // Allocators deal in steps of 16 bytes.
  capacity = ((capacity + sizeof(Block) + 15) & ~size_t{15}) - sizeof(Block);
  auto* block = static_cast<Block*>(std::malloc(sizeof(Block) + capacity));
  if (block == nullptr) throw std::bad_alloc();
  block->capacity = static_cast<uint32_t>(capacity);
  block->refs = 1;
  block->encoded = 0;
  return block;
}

void List::Release(Block* block) {
  if (--block->refs != 0) return;
  if (block->encoded != 0) EncodedTotal().Remove(block->capacity);
  std::free(block);
}

void List::Resettle(Piece& piece, size_t capacity, size_t front) {
  const size_t bytes = piece.bytes();
  if (!piece.shared() && capacity == piece.block->capacity) {
    memmove(piece.block->data() + front, piece.first(), bytes);
  } else {
    Block* const block = NewBlock(capacity);
    memcpy(block->data() + front, piece.first(), bytes);
    Release(piece.block);
    piece.block = block;
  }
  piece.begin = static_cast<uint32_t>(front);
  piece.end = static_cast<uint32_t>(front + bytes);
}

void List::Own(Piece& piece) {
  if (piece.shared()) Resettle(piece, piece.block->capacity, piece.begin);
}

List::~List() {
  cut_.reset();
  for (size_t i = 0; i < piece_count_; ++i) Release(pieces()[i].block);
  if (directory_ != &only_) delete[] directory_;
}

// ---- the directory ----

// Makes it larger, with a free place before `index` and room on both sides.
void List::GrowDirectory(size_t index) {
  const size_t size = size_t{directory_size_} + directory_size_ / 2 + 3;
  auto* grown = new Piece[size];
  const size_t room = size - piece_count_ - 1;
  // Whoever adds at one side goes on there.
  const size_t front = index == 0 ? room - room / 8 : index == piece_count_ ? room / 8 : room / 2;
  std::copy_n(pieces(), index, grown + front);
  std::copy_n(pieces() + index, piece_count_ - index, grown + front + index + 1);
  if (directory_ != &only_) delete[] directory_;
  directory_ = grown;
  directory_size_ = static_cast<uint32_t>(size);
  first_ = static_cast<uint32_t>(front);
}

// The piece's block is the list's, or without memory let go.
List::Piece& List::AddPiece(size_t index, const Piece& piece) {
  const size_t behind = directory_size_ - first_ - piece_count_;
  const bool front_half = index < piece_count_ / 2 || index == 0;
  if (front_half && first_ > 0) {
    --first_;
    std::copy(pieces() + 1, pieces() + 1 + index, pieces());
  } else if (behind > 0) {
    std::copy_backward(pieces() + index, pieces() + piece_count_, pieces() + piece_count_ + 1);
  } else if (first_ > directory_size_ / 2) {
    // The free places are all in front: bring them to the middle.
    const size_t shift = first_ - first_ / 2;
    std::copy(pieces(), pieces() + piece_count_, pieces() - shift);
    first_ -= static_cast<uint32_t>(shift);
    std::copy_backward(pieces() + index, pieces() + piece_count_, pieces() + piece_count_ + 1);
  } else if (!base::IfMemory([&] { GrowDirectory(index); })) {
    Release(piece.block);
    throw std::bad_alloc();
  }
  ++piece_count_;
  pieces()[index] = piece;
  return pieces()[index];
}

// Their blocks are the caller's business.
void List::RemovePieces(size_t index, size_t n) {
  if (index == 0) {
    first_ += static_cast<uint32_t>(n);
  } else {
    std::copy(pieces() + index + n, pieces() + piece_count_, pieces() + index);
  }
  piece_count_ -= static_cast<uint32_t>(n);
  if (piece_count_ == 0) first_ = 0;
  // A large directory for few pieces is not kept.
  if (directory_ == &only_ || piece_count_ * 4 > directory_size_) return;
  if (piece_count_ > 1 && directory_size_ <= 16) return;
  const size_t size = piece_count_ <= 1 ? 1 : size_t{piece_count_} * 2;
  Piece* const smaller = size == 1 ? &only_ : new (std::nothrow) Piece[size];
  if (smaller == nullptr) return;
  const size_t front = size == 1 ? 0 : piece_count_ / 2;
  std::copy_n(pieces(), piece_count_, smaller + front);
  delete[] directory_;
  directory_ = smaller;
  directory_size_ = static_cast<uint32_t>(size);
  first_ = static_cast<uint32_t>(front);
}

List::Place List::Locate(size_t index) const {
  size_t i = 0;
  const Piece* piece = pieces();
  if (index < count_ / 2 || piece_count_ == 1) {
    for (; index >= piece->count; ++piece, ++i) index -= piece->count;
  } else {
    size_t behind = count_ - index;  // the element and those after it
    i = piece_count_ - 1;
    piece += i;
    for (; behind > piece->count; --piece, --i) behind -= piece->count;
    index = piece->count - behind;
  }
  if (piece->encoded()) return {i, 0, static_cast<uint32_t>(index)};
  const char* p = nullptr;
  if (index <= piece->count / 2) {
    p = piece->first();
    for (size_t n = index; n > 0; --n) p = list_entry::Next(p);
  } else {
    p = piece->last();
    for (size_t n = piece->count - index; n > 0; --n) p = list_entry::Previous(p);
  }
  return {i, static_cast<uint32_t>(p - piece->block->data()), static_cast<uint32_t>(index)};
}

// ---- the ends ----

void List::MakeRoom(End side, size_t need) {
  const bool head = side == End::kHead;
  if (piece_count_ > 0 && piece_at(side).encoded() && piece_at(side).bytes() + need <= kJoined) {
    Expand(piece_at(side));
  }
  if (piece_count_ > 0 && piece_at(side).block->capacity <= kBlock && !piece_at(side).encoded()) {
    Piece& piece = piece_at(side);
    const size_t bytes = piece.bytes();
    const size_t capacity = piece.block->capacity;
    const size_t unused = capacity - bytes;
    const size_t other = piece.room(head ? End::kTail : End::kHead);
    // Enough room, though not on this side: shares it out, if that will do for a while.
    if (unused >= need && other >= bytes / 4 && unused / 2 >= need) {
      Resettle(piece, capacity, head ? unused - unused / 2 : unused / 2);
      if (piece.room(side) >= need) return;
    }
    if (piece.room(side) >= need && !piece.shared()) return;
    if (bytes + need <= kBlock && (capacity < kBlock || piece.shared())) {
      size_t grown = std::max({kSmallestBlock, capacity, bytes + need + (bytes + need) / 2});
      if (grown > kBlock) grown = kBlock;
      // A side that was used before keeps some room.
      const size_t spare = grown - bytes - need;
      const size_t keep = other > 0 && other < spare ? std::min(other, spare / 2) : 0;
      Resettle(piece, grown, head ? grown - bytes - keep : keep);
      return;
    }
  }
  size_t capacity = piece_count_ > 0 ? kBlock : std::max(kSmallestBlock, need);
  if (need > kBlock) capacity = need;
  Piece fresh;
  fresh.block = NewBlock(capacity);
  fresh.begin = fresh.end = head ? fresh.block->capacity : 0;
  AddPiece(head ? 0 : piece_count_, fresh);
  if (plain_ends_ != 0) EncodeInner(side);
}

void List::Push(End end, const list_entry::New& entry) {
  const size_t size = entry.size();
  if (piece_count_ == 0 || piece_at(end).room(end) < size || piece_at(end).shared()) {
    MakeRoom(end, size);
  }
  Piece& piece = piece_at(end);
  if (end == End::kHead) {
    piece.begin -= static_cast<uint32_t>(size);
    entry.Write(piece.first());
  } else {
    entry.Write(piece.last());
    piece.end += static_cast<uint32_t>(size);
  }
  ++piece.count;
  ++count_;
  bytes_ += size;
}

PackedItem List::Peek(End end) const {
  const Piece& piece = piece_at(end);
  if (piece.encoded()) return piece.item(end == End::kHead ? 0 : piece.count - 1);
  PackedItem item;
  list_entry::Read(end == End::kHead ? piece.first() : list_entry::Previous(piece.last()), &item);
  return item;
}

// REQUIRES: n < piece.count.
void List::DropFrom(Piece& piece, End end, size_t n) {
  const char* const data = piece.block->data();
  const size_t before = piece.bytes();
  if (piece.encoded()) {
    const size_t first = end == End::kHead ? piece.skipped : piece.skipped + piece.count - n;
    piece.end -= static_cast<uint32_t>(piece.entries().Size(first, n));
    if (end == End::kHead) piece.skipped += static_cast<uint32_t>(n);
  } else if (end == End::kHead) {
    const char* p = piece.first();
    for (size_t i = 0; i < n; ++i) p = list_entry::Next(p);
    piece.begin = static_cast<uint32_t>(p - data);
  } else {
    const char* p = piece.last();
    for (size_t i = 0; i < n; ++i) p = list_entry::Previous(p);
    piece.end = static_cast<uint32_t>(p - data);
  }
  piece.count -= static_cast<uint32_t>(n);
  count_ -= n;
  bytes_ -= before - piece.bytes();
}

void List::Drop(End end, size_t n) {
  size_t gone = 0;
  while (n > 0 && gone < piece_count_) {
    Piece& piece = pieces()[end == End::kHead ? gone : piece_count_ - 1 - gone];
    if (n < piece.count) {
      DropFrom(piece, end, n);
      break;
    }
    n -= piece.count;
    count_ -= piece.count;
    bytes_ -= piece.bytes();
    Release(piece.block);
    ++gone;
  }
  if (gone > 0) RemovePieces(end == End::kHead ? 0 : piece_count_ - gone, gone);
}

// ---- by position ----

PackedItem List::ItemAt(const Place& place) const {
  const Piece& piece = pieces()[place.piece];
  if (piece.encoded()) return piece.item(place.number);
  PackedItem item;
  list_entry::Read(piece.block->data() + place.at, &item);
  return item;
}

PackedItem List::At(size_t index) const { return ItemAt(Locate(index)); }

void List::Split(const Place& place) {
  Piece rest = pieces()[place.piece];
  const char* const first = rest.block->data() + place.at;
  const size_t bytes = rest.end - place.at;
  rest.count -= place.number;
  rest.block = NewBlock(std::max(kBlock, bytes));
  rest.begin = 0;
  rest.end = static_cast<uint32_t>(bytes);
  memcpy(rest.block->data(), first, bytes);
  AddPiece(place.piece + 1, rest);
  pieces()[place.piece].end = place.at;
  pieces()[place.piece].count = place.number;
}

void List::InsertAt(Place place, const list_entry::New& entry) {
  const size_t size = entry.size();
  const auto move = static_cast<uint32_t>(size);
  Piece* piece = &pieces()[place.piece];
  if (piece->bytes() + size > kBlock) {
    // Whole pieces before and after; the new element goes into the smaller, or one of its own.
    if (place.number > 0 && place.number < piece->count) Split(place);
    size_t at = place.number > 0 ? place.piece + 1 : place.piece;
    const auto fits = [this, size](size_t i) {
      return i < piece_count_ && !pieces()[i].encoded() && pieces()[i].bytes() + size <= kBlock;
    };
    if (at > 0 && fits(at - 1)) {
      --at;
      place = {at, pieces()[at].end, pieces()[at].count};
    } else {
      if (!fits(at)) {
        Piece fresh;
        fresh.block = NewBlock(std::max(size, std::min(size * 4, kBlock)));
        AddPiece(at, fresh);
      }
      place = {at, pieces()[at].begin, 0};
    }
    piece = &pieces()[place.piece];
  }
  const size_t before = place.at - piece->begin;
  const size_t after = piece->end - place.at;
  const bool toward_head = before < after;
  if (piece->shared() || piece->room(toward_head ? End::kHead : End::kTail) < size) {
    const size_t needed = piece->bytes() + size;
    const size_t capacity =
        std::max<size_t>(piece->block->capacity, std::min(kBlock, needed + needed / 2));
    const size_t spare = capacity - needed;
    Resettle(*piece, capacity, toward_head ? spare / 2 + size : spare / 2);
  }
  char* const data = piece->block->data();
  if (toward_head) {
    memmove(data + piece->begin - size, data + piece->begin, before);
    piece->begin -= move;
  } else {
    memmove(data + piece->begin + before + size, data + piece->begin + before, after);
    piece->end += move;
  }
  entry.Write(data + piece->begin + before);
  ++piece->count;
  ++count_;
  bytes_ += size;
}

void List::EraseAt(const Place& place) {
  Piece& piece = pieces()[place.piece];
  const char* const at = piece.block->data() + place.at;
  const auto size = static_cast<uint32_t>(list_entry::Next(at) - at);
  const uint32_t before = place.at - piece.begin;
  const uint32_t after = piece.end - place.at - size;
  if (before != 0 && after != 0) Own(piece);
  char* const data = piece.block->data();
  if (before < after) {
    if (before != 0) memmove(data + piece.begin + size, data + piece.begin, before);
    piece.begin += size;
  } else {
    if (after != 0) memmove(data + place.at, data + place.at + size, after);
    piece.end -= size;
  }
  --piece.count;
  --count_;
  bytes_ -= size;
}

// Appends the elements of a piece to another; its block is let go. False when there was no memory.
bool List::Join(Piece& left, const Piece& right) {
  const size_t bytes = left.bytes() + right.bytes();
  Block* block = nullptr;
  if (!base::IfMemory([&] { block = NewBlock(kBlock); })) return false;
  const size_t front = (kBlock - bytes) / 2;
  memcpy(block->data() + front, left.first(), left.bytes());
  memcpy(block->data() + front + left.bytes(), right.first(), right.bytes());
  Release(left.block);
  Release(right.block);
  left.block = block;
  left.begin = static_cast<uint32_t>(front);
  left.end = static_cast<uint32_t>(front + bytes);
  left.count += right.count;
  return true;
}

bool List::Merge(size_t index) {
  if (index + 1 >= piece_count_) return false;
  if (!Joinable(pieces()[index], pieces()[index + 1])) return false;
  if (!Join(pieces()[index], pieces()[index + 1])) return false;
  RemovePieces(index + 1, 1);
  return true;
}

// After a piece became smaller: removes it when empty, else joins it with a neighbour.
void List::Tidy(size_t index) {
  if (index >= piece_count_) return;
  if (pieces()[index].count == 0) {
    Release(pieces()[index].block);
    RemovePieces(index, 1);
    return;
  }
  if (pieces()[index].bytes() > kJoined / 2) return;
  if (!Merge(index) && index > 0) Merge(index - 1);
}

void List::Insert(size_t index, std::string_view text) {
  if (index == 0) return Push(End::kHead, text);
  if (index == count_) return Push(End::kTail, text);
  InsertAt(LocatePlain(index), list_entry::New(text));
}

void List::Set(size_t index, std::string_view text) {
  const Place place = LocatePlain(index);
  const list_entry::New entry(text);
  Piece& piece = pieces()[place.piece];
  const char* const at = piece.block->data() + place.at;
  const auto old_size = static_cast<size_t>(list_entry::Next(at) - at);
  if (old_size == entry.size()) {
    Own(piece);
    entry.Write(piece.block->data() + place.at);
    return;
  }
  if (piece.count > 1 && piece.bytes() - old_size + entry.size() > kBlock) {
    // The piece is parted. The new element comes first: without memory the old one is still there.
    InsertAt(place, entry);
    const Place old = Locate(index + 1);
    EraseAt(old);
    Tidy(old.piece);
    Tidy(Locate(index).piece);
    return;
  }
  ReplaceAt(place, old_size, entry);
  if (entry.size() < old_size) Tidy(place.piece);
}

// Another element instead of the one at a place, in the same piece.
void List::ReplaceAt(const Place& place, size_t old_size, const list_entry::New& entry) {
  Piece& piece = pieces()[place.piece];
  const size_t before = place.at - piece.begin;
  const size_t after = piece.end - place.at - old_size;
  const size_t bytes = before + entry.size() + after;
  const char* const behind = piece.block->data() + place.at + old_size;
  const bool outgrown = piece.block->capacity > kBlock && bytes <= kBlock;
  if (piece.shared() || outgrown || bytes > piece.block->capacity - piece.begin) {
    size_t capacity = std::max(kSmallestBlock, bytes);
    if (piece.count > 1) {
      const size_t least = outgrown ? 0 : piece.block->capacity;
      capacity = std::max<size_t>(least, std::min(kBlock, bytes + bytes / 2));
    }
    Block* const block = NewBlock(capacity);
    const size_t front = piece.count > 1 ? (capacity - bytes) / 2 : 0;
    memcpy(block->data() + front, piece.first(), before);
    memcpy(block->data() + front + before + entry.size(), behind, after);
    Release(piece.block);
    piece.block = block;
    piece.begin = static_cast<uint32_t>(front);
  } else {
    memmove(piece.first() + before + entry.size(), behind, after);
  }
  piece.end = piece.begin + static_cast<uint32_t>(bytes);
  entry.Write(piece.first() + before);
  bytes_ += entry.size() - old_size;
}

void List::Trim(size_t start, size_t count) {
  Drop(End::kTail, count_ - start - count);
  Drop(End::kHead, start);
}

// ---- as a value ----

void List::WillGrow(const CollectionLimits& limits, size_t bytes, size_t count) {
  set_encoding(limits);
  if (quicklist_) return;
  const ListpackLimit limit = LimitOf(limits.list_max_listpack_size);
  const size_t grown = listpack_bytes() + bytes;
  quicklist_ = limit.bytes != SIZE_MAX ? grown > limit.bytes
                                       : grown > kSafeSize || count_ + count > limit.count;
}

void List::Shrunk(int64_t list_max_listpack_size) {
  if (!quicklist_) return;
  const ListpackLimit limit = LimitOf(list_max_listpack_size);
  if (limit.bytes != SIZE_MAX) {
    quicklist_ = piece_count_ > 1 || listpack_bytes() > limit.bytes / 2;
  } else {
    quicklist_ = count_ > limit.count / 2 || listpack_bytes() > kSafeSize;
  }
}

void List::FitLoaded(int64_t list_max_listpack_size, size_t nodes) {
  const ListpackLimit limit = LimitOf(list_max_listpack_size);
  quicklist_ = nodes != 1 || listpack_bytes() > std::min(limit.bytes, kSizeLimits[4]) ||
               count_ > limit.count;
}

size_t List::MemoryUsage(size_t /*samples*/) const {
  size_t bytes = sizeof(List);
  if (directory_ != &only_) bytes += directory_size_ * sizeof(Piece);
  for (size_t i = 0; i < piece_count_; ++i) bytes += sizeof(Block) + pieces()[i].block->capacity;
  return bytes;
}

std::unique_ptr<Object> List::Copy() const {
  auto copy = std::make_unique<List>();
  for (size_t i = 0; i < piece_count_; ++i) {
    const Piece& from = pieces()[i];
    Piece piece = from;
    if (from.encoded()) {
      piece.block = NewEncoded({from.block->data(), from.block->capacity});
    } else {
      piece.block = NewBlock(piece.bytes());
      memcpy(piece.block->data(), from.first(), piece.bytes());
      piece.end = static_cast<uint32_t>(piece.bytes());
      piece.begin = 0;
    }
    copy->AddPiece(i, piece);
  }
  copy->count_ = count_;
  copy->bytes_ = bytes_;
  copy->quicklist_ = quicklist_;
  copy->plain_ends_ = plain_ends_;
  return copy;
}

void List::Digest(const std::function<void(std::string_view)>& add) const {
  ForRange(0, count_, [&add](const PackedItem& item) {
    PackedItem::Scratch scratch;
    add(item.Text(scratch));
  });
}

void List::DigestAsRedis(DigestSink& out) const {
  Digest([&out](std::string_view element) { out.Ordered(element); });
}

}  // namespace sava::types
