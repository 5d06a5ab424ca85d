#include "base/blob.h"

#include <malloc.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

namespace sava::base {

namespace {

// From this size on, zeroes come from the system page by page, when they are touched.
constexpr size_t kLateZeroes = 1 << 20;

// What a block that grows is to have: the allocator's next size, at most a quarter more.
size_t RoomFor(size_t bytes) {
  const size_t step = bytes <= 128 ? 16 : size_t{1} << (std::bit_width(bytes - 1) - 3);
  return (bytes + step - 1) & ~(step - 1);
}

}  // namespace

Blob* Blob::Init(void* memory, size_t size) {
  if (memory == nullptr) throw std::bad_alloc();
  auto* blob = new (memory) Blob;
  blob->size_ = size;
  blob->capacity_ = malloc_usable_size(memory) - sizeof(Blob);
  return blob;
}

Blob* Blob::New(size_t size) { return Init(malloc(sizeof(Blob) + size), size); }

Blob* Blob::Extended(std::string_view bytes, size_t size) {
  const size_t added = size - bytes.size();
  Blob* blob = added < kLateZeroes ? New(size) : Init(calloc(1, sizeof(Blob) + size), size);
  if (!bytes.empty()) memcpy(blob->data(), bytes.data(), bytes.size());
  if (added < kLateZeroes) memset(blob->data() + bytes.size(), 0, added);
  return blob;
}

Blob* Blob::Copy(std::string_view bytes) {
  Blob* blob = New(bytes.size());
  memcpy(blob->data(), bytes.data(), bytes.size());
  return blob;
}

Blob* Blob::Resize(Blob* blob, size_t size) {
  const size_t old = blob->size_;
  if (size > 2 * old && size - old >= kLateZeroes && size > blob->capacity_) {
    Blob* larger = Extended(blob->view(), size);
    blob->Unref();
    return larger;
  }
  if (size > blob->capacity_ || size < blob->capacity_ / 2) {
    // Appending often is the usual reason to grow.
    const size_t bytes = sizeof(Blob) + size;
    void* memory = realloc(static_cast<void*>(blob), size > old ? RoomFor(bytes) : bytes);
    if (memory == nullptr) throw std::bad_alloc();
    blob = static_cast<Blob*>(memory);
    blob->capacity_ = malloc_usable_size(memory) - sizeof(Blob);
  }
  if (size > old) memset(blob->data() + old, 0, size - old);
  blob->size_ = size;
  return blob;
}

void Blob::Unref() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    this->~Blob();
    free(this);
  }
}

}  // namespace sava::base
