// Buffer: bytes that come in at the end and go out at the front. Grows without clearing memory.
// What goes out in pieces costs no more than the bytes: the rest moves when it is no more than
// that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "base/spare_memory.h"

namespace sava::base {

class Buffer {
 public:
  Buffer() = default;
  ~Buffer() { free(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::string_view view() const { return {data_ + head_, size_}; }
  char* data() { return data_ + head_; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }

  // At least n writable bytes behind the end; follow with Grow(written). `most`: the
  // number of bytes that is known to be enough.
  char* Reserve(size_t n, size_t most = SIZE_MAX / 2) {
    if (capacity_ - head_ - size_ < n && head_ > 0) MoveToFront();
    if (capacity_ - head_ - size_ < n) {
      const size_t wanted =
          std::max(size_ + n, std::min({capacity_ * 2, capacity_ + (64U << 20), size_ + most}));
      char* bigger = static_cast<char*>(realloc(data_, wanted));
      while (bigger == nullptr) {
        if (wanted > kMostSpared || !ReleaseSpareMemory()) throw std::bad_alloc();
        bigger = static_cast<char*>(realloc(data_, wanted));
      }
      data_ = bigger;
      capacity_ = wanted;
    }
    return data_ + head_ + size_;
  }
  void Grow(size_t n) { size_ += n; }
  // Drops n bytes at the end.
  void Shrink(size_t n) { size_ -= n; }
  void Append(std::string_view bytes) {
    if (bytes.empty()) return;
    memcpy(Reserve(bytes.size()), bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  // Drops everything; memory is kept up to so much.
  void Clear(size_t keep) {
    head_ = size_ = 0;
    if (capacity_ <= keep) return;
    free(data_);
    data_ = nullptr;
    capacity_ = 0;
  }
  // Drops n bytes at the front; an emptied buffer gives its memory back.
  void Consume(size_t n) {
    if (n == 0) return;
    if (n == size_) {
      free(data_);
      data_ = nullptr;
      head_ = size_ = capacity_ = 0;
      return;
    }
    head_ += n;
    size_ -= n;
    if (head_ >= size_) MoveToFront();
  }

 private:
  void MoveToFront() {
    memmove(data_, data_ + head_, size_);
    head_ = 0;
  }

  // The spare memory is for what is small.
  static constexpr size_t kMostSpared = 64 * 1024;

  char* data_ = nullptr;
  size_t head_ = 0;  // bytes before the first
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace sava::base
