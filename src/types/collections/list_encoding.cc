// The encoded blocks of List, and the check of its structure.
#include <algorithm>
#include <cstring>
#include <string>

#include "base/if_memory.h"
#include "types/collections/list.h"

namespace sava::types {

namespace {

// More than enough for any list to have none.
constexpr int64_t kMostPlainEnds = UINT16_MAX;

}  // namespace

EncodedTotals& List::EncodedTotal() {
  static EncodedTotals totals;
  return totals;
}

void List::set_encoding(const CollectionLimits& limits) {
  if (!limits.dictionary_encoding) {
    plain_ends_ = 0;
  } else if (limits.list_compress_depth <= 1) {
    plain_ends_ = 1;
  } else {
    plain_ends_ = static_cast<uint16_t>(std::min(limits.list_compress_depth, kMostPlainEnds));
  }
}

List::Block* List::NewEncoded(std::string_view bytes) {
  Block* const block = NewBlock(bytes.size());
  memcpy(block->data(), bytes.data(), bytes.size());
  block->encoded = 1;
  EncodedTotal().Add(block->capacity);
  return block;
}

void List::EncodeInner(End end) {
  if (piece_count_ <= 2U * plain_ends_) return;
  Piece& piece = pieces()[end == End::kHead ? plain_ends_ : piece_count_ - 1 - plain_ends_];
  if (piece.encoded()) return;
  static thread_local std::string bytes;
  // Without memory it stays as it is.
  base::IfMemory([&] {
    if (!EncodeEntries({piece.first(), piece.bytes()}, piece.count, &bytes)) return;
    Block* const block = NewEncoded(bytes);
    piece.end = static_cast<uint32_t>(piece.bytes());
    piece.begin = 0;
    piece.skipped = 0;
    Release(piece.block);
    piece.block = block;
  });
}

void List::Expand(Piece& piece) {
  const size_t bytes = piece.bytes();
  Block* const block = NewBlock(std::max(kBlock, bytes));
  const size_t front = (block->capacity - bytes) / 2;
  piece.entries().Expand(piece.skipped, piece.count, block->data() + front);
  Release(piece.block);
  piece.block = block;
  piece.begin = static_cast<uint32_t>(front);
  piece.end = static_cast<uint32_t>(front + bytes);
  piece.skipped = 0;
}

List::Place List::LocatePlain(size_t index) {
  const Place place = Locate(index);
  if (!pieces()[place.piece].encoded()) return place;
  Expand(pieces()[place.piece]);
  return Locate(index);
}

size_t List::FindIn(const Piece& piece, std::string_view entry) {
  const EncodedEntries entries = piece.entries();
  size_t number = 0;
  while (number < piece.count && entries[piece.skipped + number] != entry) ++number;
  return number;
}

size_t List::CountIn(const Piece& piece, std::string_view entry) {
  size_t equal = 0;
  if (piece.encoded()) {
    const EncodedEntries entries = piece.entries();
    for (size_t i = 0; i < piece.count; ++i) {
      if (entries[piece.skipped + i] == entry) ++equal;
    }
    return equal;
  }
  for (const char* p = piece.first(); p != piece.last(); p = list_entry::Next(p)) {
    if (list_entry::Equal(p, piece.last(), entry)) ++equal;
  }
  return equal;
}

void List::ExpandWith(std::string_view entry, End from, size_t most) {
  if (encoded_blocks() == 0) return;
  size_t found = 0;
  for (size_t n = piece_count_; n > 0 && found < most; --n) {
    Piece& piece = pieces()[from == End::kHead ? piece_count_ - n : n - 1];
    const size_t here = CountIn(piece, entry);
    if (here > 0 && piece.encoded()) Expand(piece);
    found += here;
  }
}

bool List::Joinable(const Piece& left, const Piece& right) {
  return !left.encoded() && !right.encoded() && left.bytes() + right.bytes() <= kJoined;
}

void List::AppendEntries(const Piece& piece, std::string* out) {
  if (!piece.encoded()) {
    out->append(piece.first(), piece.bytes());
    return;
  }
  const size_t before = out->size();
  out->resize(before + piece.bytes());
  piece.entries().Expand(piece.skipped, piece.count, out->data() + before);
}

size_t List::encoded_blocks() const {
  size_t blocks = 0;
  for (size_t i = 0; i < piece_count_; ++i) blocks += pieces()[i].encoded() ? 1 : 0;
  return blocks;
}

std::string List::CheckPiece(const Piece& piece) {
  if (piece.count == 0) return "a piece is empty";
  if (piece.block->refs == 0) return "a block is not held";
  if (piece.encoded()) {
    const EncodedEntries entries = piece.entries();
    if (piece.begin != 0 || piece.skipped + piece.count > entries.count()) {
      return "an encoded piece overflows";
    }
    const bool sized = entries.Size(piece.skipped, piece.count) == piece.bytes();
    return sized ? "" : "an encoded piece's size is wrong";
  }
  if (piece.begin > piece.end || piece.end > piece.block->capacity) return "a piece overflows";
  if (piece.skipped != 0) return "a plain piece skips elements";
  size_t here = 0;
  for (const char* p = piece.first(); p != piece.last(); ++here) {
    const char* const next = list_entry::Next(p);
    if (next > piece.last() || list_entry::Previous(next) != p) return "an entry is damaged";
    p = next;
  }
  if (here != piece.count) return "a piece's count is wrong";
  return piece.bytes() > kBlock && here != 1 ? "a large element is not alone" : "";
}

std::string List::Check() const {
  size_t count = 0;
  size_t bytes = 0;
  for (size_t i = 0; i < piece_count_; ++i) {
    const Piece& piece = pieces()[i];
    if (std::string problem = CheckPiece(piece); !problem.empty()) return problem;
    count += piece.count;
    bytes += piece.bytes();
  }
  if (first_ + piece_count_ > directory_size_) return "the directory overflows";
  if (count != count_) return "the count is wrong";
  return bytes == bytes_ ? "" : "the size is wrong";
}

}  // namespace sava::types
