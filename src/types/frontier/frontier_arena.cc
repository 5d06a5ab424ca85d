#include "types/frontier/frontier_arena.h"

#include "base/if_memory.h"
#include "base/prefetch.h"

namespace sava::types {

void FrontierArena::Release(uint32_t unit, uint32_t count) {
  for (unsigned cls = kClasses; cls-- > 0;) {
    for (; count >= kUnits[cls]; count -= kUnits[cls], unit += kUnits[cls]) {
      Keep(MakeRef(cls, unit));
    }
  }
}

// Without memory for its place in the list a chunk is lost until the value is loaded again.
void FrontierArena::Keep(Ref chunk) {
  base::IfMemory([&] { free_[ClassOf(chunk)].push_back(chunk); });
}

FrontierArena::Ref FrontierArena::Allocate(unsigned cls) {
  const uint32_t units = kUnits[cls];
  if (!free_[cls].empty()) {
    const Ref chunk = free_[cls].back();
    free_[cls].pop_back();
    used_units_ += units;
    if (!free_[cls].empty()) base::PrefetchForWrite(Look(free_[cls].back()));
    return chunk;
  }
  for (unsigned larger = cls + 1; larger < kClasses; ++larger) {
    if (free_[larger].empty()) continue;
    const uint32_t unit = UnitOf(free_[larger].back());
    free_[larger].pop_back();
    used_units_ += units;
    Release(unit + units, kUnits[larger] - units);
    return MakeRef(cls, unit);
  }
  if (end_ - next_ < units) {
    if (blocks_.size() == blocks_.capacity()) blocks_.reserve(2 * blocks_.size() + 1);
    char* const block = memory_.Allocate(kBlock);
    // What is never written is saved, too.
    memset(block, 0, kBlock);
    Release(next_, end_ - next_);
    next_ = static_cast<uint32_t>(blocks_.size() * kUnitsPerBlock);
    end_ = next_ + kUnitsPerBlock;
    blocks_.push_back(block);
  }
  used_units_ += units;
  const Ref chunk = MakeRef(cls, next_);
  next_ += units;
  return chunk;
}

void FrontierArena::Free(Ref chunk) {
  used_units_ -= kUnits[ClassOf(chunk)];
  Keep(chunk);
  if (used_units_ == 0 && blocks_.size() > 1 && !cut_.active()) Clear();
}

size_t FrontierArena::bytes() const {
  size_t bytes = blocks_.size() * kBlock + memory_.slack() + blocks_.capacity() * sizeof(void*);
  for (const auto& list : free_) bytes += list.capacity() * sizeof(Ref);
  return bytes;
}

void FrontierArena::Clear() {
  blocks_.clear();
  blocks_.shrink_to_fit();
  memory_.Clear();
  for (auto& list : free_) std::vector<Ref>().swap(list);
  next_ = end_ = 0;
  used_units_ = 0;
}

void FrontierArena::Reserve(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    blocks_.push_back(memory_.Allocate(kBlock));
    memset(blocks_.back(), 0, kBlock);
  }
}

bool FrontierArena::Valid(Ref chunk) const {
  if (ClassOf(chunk) >= kClasses) return false;
  const uint32_t unit = UnitOf(chunk);
  return unit / kUnitsPerBlock < blocks_.size() &&
         unit % kUnitsPerBlock + kUnits[ClassOf(chunk)] <= kUnitsPerBlock;
}

bool FrontierArena::Claim(Ref chunk, std::vector<bool>* used) const {
  const uint32_t unit = UnitOf(chunk);
  for (uint32_t i = 0; i < kUnits[ClassOf(chunk)]; ++i) {
    if ((*used)[unit + i]) return false;
    (*used)[unit + i] = true;
  }
  return true;
}

void FrontierArena::Adopt(const std::vector<bool>& used) {
  used_units_ = 0;
  for (size_t block = 0; block < blocks_.size(); ++block) {
    const size_t first = block * kUnitsPerBlock;
    for (size_t i = 0; i < kUnitsPerBlock;) {
      size_t end = i;
      while (end < kUnitsPerBlock && !used[first + end]) ++end;
      Release(static_cast<uint32_t>(first + i), static_cast<uint32_t>(end - i));
      while (end < kUnitsPerBlock && used[first + end]) {
        ++end;
        ++used_units_;
      }
      i = end;
    }
  }
  next_ = end_ = static_cast<uint32_t>(blocks_.size() * kUnitsPerBlock);
}

void FrontierArena::CopyFrom(const FrontierArena& other) {
  Clear();
  for (const char* block : other.blocks_) {
    blocks_.push_back(memory_.Allocate(kBlock));
    memcpy(blocks_.back(), block, kBlock);
  }
  free_ = other.free_;
  next_ = other.next_;
  end_ = other.end_;
  used_units_ = other.used_units_;
}

}  // namespace sava::types
