// BitStore: the bytes of a filter, zero at first, at an address that divides by 64. They are saved
// while they change: in blocks, each before it changes for the first time.
//
// Thread safety: none; used under its owner's lock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace sava::types {

class BitStore {
 public:
  static constexpr size_t kBlock = 16 << 10;
  // More is refused.
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 36;

  // nullptr when there is no such memory.
  static std::unique_ptr<BitStore> Make(uint64_t bytes);
  BitStore(const BitStore&) = delete;
  BitStore& operator=(const BitStore&) = delete;
  ~BitStore();

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  size_t blocks() const { return (size_ + kBlock - 1) / kBlock; }
  std::string_view Block(size_t block) const;

  // To be called before the byte at `offset` changes.
  void Touch(size_t offset) {
    if (cut_ != nullptr) SaveFirst(offset / kBlock);
  }

  using BlockSink = std::function<void(size_t block, std::string_view bytes)>;
  void BeginCut(BlockSink sink);
  // Hands on up to `count` blocks; true when all are.
  bool SaveNextBlocks(size_t count);
  void AbortCut() { cut_.reset(); }

 private:
  struct Cut {
    BlockSink sink;
    std::vector<bool> saved;
    size_t next = 0;
  };

  BitStore() = default;
  void SaveFirst(size_t block);

  uint8_t* data_ = nullptr;
  void* memory_ = nullptr;
  size_t size_ = 0;
  std::unique_ptr<Cut> cut_;
};

}  // namespace sava::types
