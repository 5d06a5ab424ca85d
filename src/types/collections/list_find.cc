// The elements of a List by value: LREM, LPOS and their like.
#include <algorithm>
#include <cstring>
#include <utility>

#include "types/collections/list.h"

namespace sava::types {

namespace {

std::string EntryOf(std::string_view text) {
  const list_entry::New entry(text);
  std::string bytes(entry.size(), '\0');
  entry.Write(bytes.data());
  return bytes;
}

}  // namespace

size_t List::Find(std::string_view text) const {
  const std::string entry = EntryOf(text);
  size_t index = 0;
  for (size_t i = 0; i < piece_count_; ++i) {
    if (pieces()[i].encoded()) {
      const size_t number = FindIn(pieces()[i], entry);
      if (number < pieces()[i].count) return index + number;
      index += number;
      continue;
    }
    const char* const end = pieces()[i].last();
    for (const char* p = pieces()[i].first(); p != end; p = list_entry::Next(p), ++index) {
      if (list_entry::Equal(p, end, entry)) return index;
    }
  }
  return count_;
}

// Removes up to `most` entries of a piece that equal `entry`, from its head on but for the first
// `skip`; how many.
size_t List::RemoveIn(Piece& piece, std::string_view entry, size_t skip, size_t most) {
  size_t removed = 0;
  const char* p = piece.first();
  char* to = nullptr;  // where the next entry to keep goes, once something was removed
  while (p != piece.last()) {
    const bool equal = removed < most && list_entry::Equal(p, piece.last(), entry);
    const auto size = equal ? entry.size() : static_cast<size_t>(list_entry::Next(p) - p);
    if (equal && skip > 0) {
      --skip;
    } else if (equal) {
      if (removed++ == 0) {
        const auto offset = p - piece.first();
        Own(piece);
        to = piece.first() + offset;
        p = to;
      }
    } else if (to != nullptr) {
      memmove(to, p, size);
      to += size;
    }
    p += size;
  }
  if (removed == 0) return 0;
  piece.end = static_cast<uint32_t>(to - piece.block->data());
  piece.count -= static_cast<uint32_t>(removed);
  count_ -= removed;
  bytes_ -= removed * entry.size();
  return removed;
}

size_t List::Remove(std::string_view text, End from, size_t most) {
  const std::string entry = EntryOf(text);
  ExpandWith(entry, from, most);
  size_t removed = 0;
  for (size_t n = piece_count_; n > 0 && removed < most; --n) {
    Piece& piece = pieces()[from == End::kHead ? piece_count_ - n : n - 1];
    if (piece.encoded()) continue;  // the entry is not in it
    const size_t here = most - removed;
    size_t skip = 0;
    if (from == End::kTail && here < piece.count) {
      const size_t equal = CountIn(piece, entry);
      if (equal > here) skip = equal - here;
    }
    removed += RemoveIn(piece, entry, skip, here);
  }
  if (removed > 0) Compact();
  return removed;
}

// Removes empty pieces and joins small neighbours.
void List::Compact() {
  size_t kept = 0;
  for (size_t i = 0; i < piece_count_; ++i) {
    const Piece piece = pieces()[i];
    if (piece.count == 0) {
      Release(piece.block);
    } else if (kept == 0 || !Joinable(pieces()[kept - 1], piece) ||
               !Join(pieces()[kept - 1], piece)) {
      pieces()[kept++] = piece;
    }
  }
  if (kept < piece_count_) RemovePieces(kept, piece_count_ - kept);
}

}  // namespace sava::types
