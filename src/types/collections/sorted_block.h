// SortedBlock: members with scores, packed in one piece of memory in the order of (score, member).
// A small sorted set is one such block, a leaf of a large one is another.
//
//   count u16 | width u8 | flags u8 | text bytes u32 | [base i64] | [prefix] |
//   lengths | scores | texts
//
// A score takes `width` bytes: 1, 2 or 4 as a signed integer relative to the base (0 when there is
// none), or 8 as a double. Width and base are chosen for all scores of a block together: the
// smallest that fit when the block is made, wider ones when a score comes that does not fit. A
// length takes one byte; 255 says that four bytes with the real length stand before the text. What
// all members begin with stands once, as the prefix (a byte of length, then the text): lengths and
// texts are of what follows it. It is looked for whenever the block is made anew or has to grow.
//
// The memory is exactly the allocator's size class of bytes(), so a block needs no room for a
// capacity. Calls that change a block give back its new address. Positions are given with the
// offset of their text where the caller knows it: finding it out takes a pass over the lengths.
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>

namespace sava::types {

class SortedBlock {
 public:
  static constexpr size_t kNowhere = SIZE_MAX;

  // An entry's number and where its text begins.
  struct Spot {
    size_t index = kNowhere;
    size_t offset = 0;
    bool found() const { return index != kNowhere; }
  };
  // Entries [from, to) of a block.
  struct Part {
    const SortedBlock* block;
    size_t from;
    size_t to;
  };

  SortedBlock(const SortedBlock&) = delete;
  SortedBlock& operator=(const SortedBlock&) = delete;

  static SortedBlock* Make();
  static void Free(SortedBlock* block);
  // A new block of these entries, in the narrowest form. REQUIRES: they are in order.
  static SortedBlock* Compose(std::initializer_list<Part> parts);
  // Like the next two: frees the block, or changes it in place; without memory, when it throws, the
  // block is as it was.
  [[nodiscard]] static SortedBlock* Insert(SortedBlock* block, Spot at, double score,
                                           std::string_view member);
  // Needs no memory.
  [[nodiscard]] static SortedBlock* Erase(SortedBlock* block, size_t from, size_t to);
  // Gives the entry another score and its place among the others: `to` counts without the entry.
  [[nodiscard]] static SortedBlock* Move(SortedBlock* block, Spot from, size_t to, double score);

  size_t count() const { return count_; }
  size_t bytes() const { return kHead + Front() + count_ * (width_ + size_t{1}) + text_bytes_; }
  // What the allocator gives for bytes().
  size_t capacity() const { return SizeClass(bytes()); }
  size_t text_bytes() const { return text_bytes_; }
  // No member is longer.
  size_t longest() const { return prefix().size() + text_bytes_; }

  double score(size_t i) const;
  // The member at a spot; `scratch` holds it where the block has a prefix.
  std::string_view member(Spot spot, std::string* scratch) const {
    const std::string_view rest = suffix(spot);
    if (!prefixed()) return rest;
    scratch->assign(prefix()).append(rest);
    return *scratch;
  }
  // <0, 0 or >0 as the member at a spot is below, equal to or above the given one.
  int Compare(Spot spot, std::string_view member) const {
    const std::string_view before = prefix();
    const int order = before.compare(member.substr(0, before.size()));
    return order != 0 ? order : suffix(spot).compare(member.substr(before.size()));
  }
  // Where the text after this one begins.
  size_t After(Spot spot) const { return spot.offset + Stored(spot); }
  size_t Before(Spot spot) const;
  Spot SpotOf(size_t i) const { return {i, OffsetOf(i)}; }

  // The entry of this member; looks at all of them.
  Spot Find(std::string_view member) const;
  // How many scores are below; with `equal` also those that are equal.
  size_t CountBelow(double score, bool equal) const;
  // The first entry that is not below (score, member).
  Spot LowerBound(double score, std::string_view member) const;
  // The first entry whose member is not below, or with `equal` above the given one, whatever its
  // score.
  size_t FirstMember(std::string_view member, bool equal) const;

 private:
  static constexpr uint8_t kLong = 255;
  enum Flag : uint8_t { kBased = 1, kHasLong = 2, kPrefixed = 4 };
  static constexpr size_t kMostPrefix = 255;
  static constexpr size_t kLeastPrefix = 2;
  static constexpr size_t kHead = 8;

  struct Form {
    uint8_t width = 1;
    bool based = false;
    int64_t base = 0;
    std::string_view prefix = {};
    bool Fits(double score) const;
    size_t Front() const { return (based ? 8 : 0) + (prefix.empty() ? 0 : prefix.size() + 1); }
  };
  struct Range;

  static size_t StoredSize(size_t length) { return length < kLong ? length : length + 4; }

  SortedBlock() = default;

  static size_t SizeClass(size_t bytes);
  static SortedBlock* Allocate(size_t bytes);
  static SortedBlock* Resize(SortedBlock* block, size_t from, size_t to);
  static SortedBlock* ComposeAs(const Form& form, std::initializer_list<Part> parts);
  class Change;
  static SortedBlock* Widen(const SortedBlock* block, double score);

  static void Narrow(std::initializer_list<Part> parts, std::string* prefix);
  static SortedBlock* WithPrefix(const SortedBlock* block, std::string_view prefix);
  static SortedBlock* FitPrefix(const SortedBlock* block, std::string_view member);
  static SortedBlock* FindPrefix(SortedBlock* block, std::string_view member);
  size_t CopyTexts(const Part& part, size_t at, size_t offset);
  size_t PutText(size_t at, char* text, std::string_view rest);

  bool based() const { return (flags_ & kBased) != 0; }
  bool prefixed() const { return (flags_ & kPrefixed) != 0; }
  std::string_view prefix() const {
    if (!prefixed()) return {};
    const char* at = body() + (based() ? 8 : 0);
    return {at + 1, static_cast<uint8_t>(*at)};
  }
  // What stands between head and lengths.
  size_t Front() const { return (based() ? 8 : 0) + (prefixed() ? prefix().size() + 1 : 0); }
  // What follows the prefix.
  std::string_view suffix(Spot spot) const {
    const char* text = texts() + spot.offset;
    const uint8_t length = lengths()[spot.index];
    if (length != kLong) return {text, length};
    uint32_t size = 0;
    memcpy(&size, text, sizeof size);
    return {text + sizeof size, size};
  }
  Form form() const;
  size_t OffsetOf(size_t i) const;
  size_t Stored(Spot spot) const {
    const uint8_t length = lengths()[spot.index];
    return length != kLong ? length : LongStored(spot.offset);
  }
  size_t LongStored(size_t offset) const;
  void SetScore(size_t i, double score);
  void ScanRange(size_t from, size_t to, Range* range) const;

  char* body() { return reinterpret_cast<char*>(this) + kHead; }
  const char* body() const { return reinterpret_cast<const char*>(this) + kHead; }
  uint8_t* lengths() { return reinterpret_cast<uint8_t*>(body()) + Front(); }
  const uint8_t* lengths() const { return reinterpret_cast<const uint8_t*>(body()) + Front(); }
  char* scores() { return reinterpret_cast<char*>(lengths()) + count_; }
  const char* scores() const { return reinterpret_cast<const char*>(lengths()) + count_; }
  char* texts() { return scores() + size_t{count_} * width_; }
  const char* texts() const { return scores() + size_t{count_} * width_; }

  uint16_t count_;
  uint8_t width_;
  uint8_t flags_;
  uint32_t text_bytes_;
};

}  // namespace sava::types
