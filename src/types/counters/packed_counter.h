// PackedCounter: a small frequency list in one block of memory.
//
//   runs       for each group of equal counts, most frequent first: varint count (from the second
//              group on: how much less than the group before), varint number of members
//   members    in list order: ids of `width` bytes (2 to 4, little-endian), or with width 0 the
//              members themselves as records (member.h)
//
// It only keeps bytes in order: what an id means, and its references, are the owner's business.
// Every change costs one pass over the runs and a move of the bytes between two places.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>

#include "base/prefetch.h"
#include "types/counters/member.h"

namespace sava::types {

class PackedCounter {
 public:
  static constexpr size_t kMaxMembers = 1024;

  // Where a member stands.
  struct Place {
    uint32_t position = 0;  // in list order
    uint32_t offset = 0;    // of its bytes
    uint32_t size = 0;      // of its bytes; 0: not there
    explicit operator bool() const { return size != 0; }
  };

  PackedCounter() = default;
  explicit PackedCounter(uint8_t width) : width_(width) {}
  PackedCounter(PackedCounter&& other) noexcept { *this = std::move(other); }
  PackedCounter& operator=(PackedCounter&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    std::swap(run_bytes_, other.run_bytes_);
    std::swap(member_bytes_, other.member_bytes_);
    std::swap(size_, other.size_);
    std::swap(width_, other.width_);
    return *this;
  }
  ~PackedCounter() { free(data_); }

  size_t size() const { return size_; }
  // 0: members stand here themselves.
  uint8_t width() const { return width_; }
  size_t member_bytes() const { return member_bytes_; }
  size_t allocated() const { return capacity_; }
  // Begins to fetch the block, while the caller finds out what to look for in it.
  void Prefetch() const {
    for (size_t at = 0; at < run_bytes_ + member_bytes_ && at < 512; at += 64) {
      base::Prefetch(data_ + at);
    }
  }

  // REQUIRES: width() is 0.
  Place Find(const KeptMember& member) const;
  // REQUIRES: width() is not 0.
  Place FindId(uint32_t id) const;
  Place Last() const;
  uint64_t CountAt(uint32_t position) const;

  // To the front of the group of `count`. REQUIRES: not less than its count now.
  void Move(const Place& place, uint64_t count);
  void Erase(const Place& place);
  // A new member, at the front of the group of `count` or at the end of it.
  // REQUIRES: size() < kMaxMembers; ids fit the width.
  void Insert(const KeptMember& member, uint64_t count, bool at_end);
  void InsertId(uint32_t id, uint64_t count, bool at_end);
  // A whole list at once. REQUIRES: as many counts as ids, at most kMaxMembers, never rising; ids
  // fit the width.
  static PackedCounter Of(uint8_t width, std::span<const uint32_t> ids,
                          std::span<const uint64_t> counts);
  // Gives back what is not needed.
  void ShrinkToFit();
  PackedCounter Clone() const;

  // Walks in list order.
  class Cursor {
   public:
    explicit Cursor(const PackedCounter& list);
    bool valid() const { return left_ != 0; }
    uint64_t count() const { return count_; }
    KeptMember member() const;
    uint32_t id() const;
    void Next();

   private:
    void NextRun();

    const PackedCounter* list_;
    const uint8_t* run_;
    const uint8_t* member_;
    size_t left_;
    uint64_t count_ = 0;
    uint64_t in_run_ = 0;
  };

 private:
  friend class Cursor;
  struct Run {
    uint64_t count;
    uint64_t members;
  };

  const uint8_t* members() const { return data_ + run_bytes_; }
  uint8_t* members() { return data_ + run_bytes_; }
  const uint8_t* end() const { return members() + member_bytes_; }
  uint32_t OffsetOf(uint32_t position) const;
  size_t ReadRuns(Run* runs) const;
  // REQUIRES: room for `extra` more bytes of members afterwards is made by the same call.
  void WriteRuns(const Run* runs, size_t count, size_t extra);
  void InsertBytes(const uint8_t* bytes, uint32_t size, uint64_t count, bool at_end);
  static uint8_t* PutId(uint8_t* out, uint32_t id, uint8_t width);

  uint8_t* data_ = nullptr;
  uint32_t capacity_ = 0;
  uint32_t run_bytes_ = 0;
  uint32_t member_bytes_ = 0;
  uint16_t size_ = 0;
  uint8_t width_ = 0;
};

}  // namespace sava::types
