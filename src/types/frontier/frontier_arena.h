// FrontierArena: memory for the records of a Frontier: chunks of 64 to 1024 bytes, cut from blocks
// of 16 KB and named by numbers of 32 bits. A chunk begins with the name of another one (its link);
// the rest is its owner's.
//
// Blocks are what a snapshot saves: a writer asks for its chunk by Edit, which saves the
// block first if a cut is under way. Free chunks are kept for reuse; all blocks go when nothing is
// in use any more.
//
// Thread safety: none; used under its owner's lock. It may be freed on any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/huge_blocks.h"
#include "types/value/block_cut.h"

namespace sava::types {

class FrontierArena {
 public:
  // Number of its first unit, and in the upper three bits its class.
  using Ref = uint32_t;
  static constexpr Ref kNone = UINT32_MAX;
  static constexpr size_t kUnit = 64;
  static constexpr size_t kUnitsPerBlock = 256;
  static constexpr size_t kBlock = kUnit * kUnitsPerBlock;
  static constexpr unsigned kClasses = 6;
  static constexpr std::array<uint8_t, kClasses> kUnits = {1, 2, 3, 4, 8, 16};
  static constexpr size_t kLink = sizeof(Ref);

  static unsigned ClassOf(Ref chunk) { return chunk >> 29; }
  static uint32_t UnitOf(Ref chunk) { return chunk & 0x1fffffff; }
  static Ref MakeRef(unsigned cls, uint32_t unit) { return cls << 29 | unit; }
  // What an owner may use of it.
  static size_t Room(Ref chunk) { return kUnits[ClassOf(chunk)] * kUnit - kLink; }

  // REQUIRES: !full().
  Ref Allocate(unsigned cls);
  void Free(Ref chunk);
  // Whether it has come near the end of its names.
  bool full() const { return blocks_.size() >= kMostBlocks; }

  const char* Look(Ref chunk) const {
    const uint32_t unit = UnitOf(chunk);
    return blocks_[unit / kUnitsPerBlock] + unit % kUnitsPerBlock * kUnit;
  }
  char* Edit(Ref chunk) {
    const uint32_t unit = UnitOf(chunk);
    cut_.BeforeChange(unit / kUnitsPerBlock);
    return blocks_[unit / kUnitsPerBlock] + unit % kUnitsPerBlock * kUnit;
  }
  Ref Link(Ref chunk) const {
    Ref link = 0;
    memcpy(&link, Look(chunk), sizeof link);
    return link;
  }
  void SetLink(Ref chunk, Ref link) { memcpy(Edit(chunk), &link, sizeof link); }
  const char* Data(Ref chunk) const { return Look(chunk) + kLink; }
  char* EditData(Ref chunk) { return Edit(chunk) + kLink; }

  size_t bytes() const;
  size_t used_bytes() const { return used_units_ * kUnit; }
  void Clear();

  // ---- saving and loading ----
  size_t blocks() const { return blocks_.size(); }
  const char* block(size_t number) const { return blocks_[number]; }
  BlockCut& cut() { return cut_; }
  // Makes `count` blocks of zeros, all of them free. REQUIRES: it is empty.
  void Reserve(size_t count);
  char* raw(size_t number) { return blocks_[number]; }
  // Whether the chunk lies within a block; its class is good.
  bool Valid(Ref chunk) const;
  // Marks the units of chunks that are in use: false when one was marked before.
  bool Claim(Ref chunk, std::vector<bool>* used) const;
  // Everything that is not marked is free.
  void Adopt(const std::vector<bool>& used);
  void CopyFrom(const FrontierArena& other);

 private:
  static constexpr size_t kMostBlocks = (size_t{1} << 29) / kUnitsPerBlock - 64;

  // Gives units of one block to the lists of free chunks.
  void Release(uint32_t unit, uint32_t count);
  void Keep(Ref chunk);

  base::HugeBlocks memory_;
  std::vector<char*> blocks_;
  std::array<std::vector<Ref>, kClasses> free_;
  uint32_t next_ = 0;  // units of the last block from here to end_ were never used
  uint32_t end_ = 0;
  size_t used_units_ = 0;
  BlockCut cut_;
};

}  // namespace sava::types
