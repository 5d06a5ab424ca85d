// Blob: a large byte string with a reference count, so that a reply, the log and the keyspace can
// share it without copying and without holding a lock.
//
// A Blob with one reference may be changed in place by its owner; with more it is read-only.
// The count is atomic; the bytes are published by the thread that hands the reference over.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sava::base {

class Blob {
 public:
  // A blob of `size` bytes, not initialised, with one reference.
  static Blob* New(size_t size);
  static Blob* Copy(std::string_view bytes);
  // The bytes, and zeroes behind them up to `size`; many of those cost nothing yet.
  static Blob* Extended(std::string_view bytes, size_t size);
  // Like realloc; REQUIRES: unique(). New bytes are zero. May move: the old pointer is dead. Room
  // is left for more, at most a quarter.
  static Blob* Resize(Blob* blob, size_t size);

  char* data() { return reinterpret_cast<char*>(this + 1); }
  const char* data() const { return reinterpret_cast<const char*>(this + 1); }
  size_t size() const { return size_; }
  std::string_view view() const { return {data(), size_}; }
  bool unique() const { return refs_.load(std::memory_order_acquire) == 1; }
  // What the allocator holds for it.
  size_t memory() const { return sizeof(Blob) + capacity_; }

  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref();

 private:
  static Blob* Init(void* memory, size_t size);

  std::atomic<uint32_t> refs_{1};
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace sava::base
