// The packed forms in which Redis writes small collections into RDB files and DUMP payloads:
// listpacks (since 5.0 for streams, 7.0 for all), ziplists, intsets and zipmaps (before). Read here
// from bytes that nothing vouches for, and, the two that Redis 7.0 writes, written.
//
// A reader checks what Redis checks under `sanitize-dump-payload yes`: sizes, element counts, every
// length, back lengths, the end mark. Whether elements make sense together (pairs, duplicates) is
// the caller's to check. The views it gives point into the bytes read.
//
// Use:  const bool ok = ForEachListpack(bytes, [&](const PackedItem& item) { ...; return true; });
// The visitor returns false to refuse. False as the result: damaged or refused; the visitor may
// have seen some items by then.
//
// Thread safety: no shared state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace sava::types {

// An element as it is packed: a number or a text.
struct PackedItem {
  // Room for the digits of any number.
  using Scratch = char[24];

  std::string_view text;  // when it is no number
  int64_t number = 0;
  bool is_number = false;

  // The element's text; of a number it is put into `scratch`.
  std::string_view Text(Scratch& scratch) const {
    return is_number ? Digits(number, scratch) : text;
  }
  static std::string_view Digits(int64_t value, Scratch& scratch);
};

// Steps through a listpack: for callers that cannot use a visitor.
class ListpackCursor {
 public:
  explicit ListpackCursor(std::string_view bytes);
  // False at the end or where the bytes are damaged: see ok().
  bool Next(PackedItem* item);
  // After Next returned false: whether it was the regular end.
  bool ok() const { return ok_; }
  // How many elements the head states; 65535: too many to say.
  size_t stated() const { return stated_; }

 private:
  std::string_view bytes_;
  size_t at_ = 6;
  size_t seen_ = 0;
  size_t stated_ = 0;
  bool ok_ = true;
};

class ZiplistCursor {
 public:
  explicit ZiplistCursor(std::string_view bytes);
  bool Next(PackedItem* item);
  bool ok() const { return ok_; }

 private:
  bool ReadEntry(PackedItem* item);

  std::string_view bytes_;
  size_t at_ = 10;
  size_t last_ = 0;       // where the entry before begins; 0: none
  size_t last_size_ = 0;  // its bytes
  size_t seen_ = 0;
  size_t stated_ = 0;
  size_t tail_ = 0;
  bool ok_ = true;
};

class ZipmapCursor {
 public:
  explicit ZipmapCursor(std::string_view bytes);
  bool Next(std::string_view* field, std::string_view* value);
  bool ok() const { return ok_; }

 private:
  bool ReadLength(size_t* length);

  std::string_view bytes_;
  size_t at_ = 1;
  size_t seen_ = 0;
  bool ok_ = true;
};

// visit(const PackedItem&) -> bool, in order.
template <typename Visit>
bool ForEachListpack(std::string_view bytes, Visit&& visit) {
  ListpackCursor cursor(bytes);
  PackedItem item;
  while (cursor.Next(&item)) {
    if (!visit(static_cast<const PackedItem&>(item))) return false;
  }
  return cursor.ok();
}

// visit(const PackedItem&) -> bool, in order.
template <typename Visit>
bool ForEachZiplist(std::string_view bytes, Visit&& visit) {
  ZiplistCursor cursor(bytes);
  PackedItem item;
  while (cursor.Next(&item)) {
    if (!visit(static_cast<const PackedItem&>(item))) return false;
  }
  return cursor.ok();
}

// visit(std::string_view field, std::string_view value) -> bool, in order.
template <typename Visit>
bool ForEachZipmap(std::string_view bytes, Visit&& visit) {
  ZipmapCursor cursor(bytes);
  std::string_view field;
  std::string_view value;
  while (cursor.Next(&field, &value)) {
    if (!visit(field, value)) return false;
  }
  return cursor.ok();
}

// The numbers of an intset: their width in bytes and how many; false when damaged. There is at
// least one, and they ascend strictly.
bool CheckIntset(std::string_view bytes, size_t* width, size_t* count);
// REQUIRES: CheckIntset was true; i < count.
int64_t IntsetAt(std::string_view bytes, size_t width, size_t i);

// visit(int64_t) -> bool, ascending.
template <typename Visit>
bool ForEachIntset(std::string_view bytes, Visit&& visit) {
  size_t width = 0;
  size_t count = 0;
  if (!CheckIntset(bytes, &width, &count)) return false;
  for (size_t i = 0; i < count; ++i) {
    if (!visit(IntsetAt(bytes, width, i))) return false;
  }
  return true;
}

// Makes a listpack.
class ListpackWriter {
 public:
  ListpackWriter() : bytes_(6, '\0') {}

  // A text that is a number in canonical form is kept as the number, as Redis does.
  void Add(std::string_view text);
  void AddInt(int64_t value);
  // Elements so far.
  size_t count() const { return count_; }
  // Size when finished now.
  size_t size() const { return bytes_.size() + 1; }
  // The whole listpack; the writer is empty again. REQUIRES: size() < 2^32.
  std::string Finish();

 private:
  void AddText(std::string_view text);
  void AddBackLength(size_t length);

  std::string bytes_;
  size_t count_ = 0;
};

// Bytes an element takes in a listpack, its back length included.
size_t ListpackSize(std::string_view text);
size_t ListpackSizeOfInt(int64_t value);

// In the smallest width that holds all. REQUIRES: the values ascend strictly; at least one.
std::string WriteIntset(std::span<const int64_t> values);

}  // namespace sava::types
