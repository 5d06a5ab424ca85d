#include "types/filters/bit_store.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/large_memory.h"

namespace sava::types {

std::unique_ptr<BitStore> BitStore::Make(uint64_t bytes) {
  constexpr size_t kAlign = 64;
  if (bytes > kMaxBytes) return nullptr;
  // Pages that were never written take no memory yet.
  void* const memory = calloc(bytes + kAlign, 1);
  if (memory == nullptr) return nullptr;
  std::unique_ptr<BitStore> store(new BitStore);
  store->memory_ = memory;
  const auto address = reinterpret_cast<uintptr_t>(memory);
  store->data_ = static_cast<uint8_t*>(memory) + (kAlign - address % kAlign) % kAlign;
  store->size_ = bytes;
  // Items fall anywhere: with large pages a look costs one miss instead of several.
  constexpr uintptr_t kHuge = 2 << 20;
  const uintptr_t first = (address + kHuge - 1) / kHuge * kHuge;
  const uintptr_t end = (address + bytes + kAlign) / kHuge * kHuge;
  if (first < end) base::WantHugePages(reinterpret_cast<void*>(first), end - first);
  return store;
}

BitStore::~BitStore() { free(memory_); }

std::string_view BitStore::Block(size_t block) const {
  const size_t from = block * kBlock;
  return {reinterpret_cast<const char*>(data_) + from, std::min(kBlock, size_ - from)};
}

void BitStore::BeginCut(BlockSink sink) {
  cut_ = std::make_unique<Cut>();
  cut_->sink = std::move(sink);
  cut_->saved.resize(blocks());
}

void BitStore::SaveFirst(size_t block) {
  if (cut_->saved[block]) return;
  cut_->saved[block] = true;
  cut_->sink(block, Block(block));
}

bool BitStore::SaveNextBlocks(size_t count) {
  if (cut_ == nullptr) return true;
  for (; cut_->next != cut_->saved.size(); ++cut_->next) {
    if (cut_->saved[cut_->next]) continue;
    if (count-- == 0) return false;
    SaveFirst(cut_->next);
  }
  cut_.reset();
  return true;
}

}  // namespace sava::types
