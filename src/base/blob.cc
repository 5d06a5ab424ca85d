#include "base/blob.h"

#include <malloc.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace sava::base {

Blob* Blob::New(size_t size) {
  void* memory = malloc(sizeof(Blob) + size);
  if (memory == nullptr) throw std::bad_alloc();
  auto* blob = new (memory) Blob;
  blob->size_ = size;
  blob->capacity_ = malloc_usable_size(memory) - sizeof(Blob);
  return blob;
}

Blob* Blob::Copy(std::string_view bytes) {
  Blob* blob = New(bytes.size());
  memcpy(blob->data(), bytes.data(), bytes.size());
  return blob;
}

Blob* Blob::Resize(Blob* blob, size_t size) {
  const size_t old = blob->size_;
  if (size > blob->capacity_ || size < blob->capacity_ / 2) {
    // Appending often is the usual reason to grow: leave room, a sixteenth at most once large.
    const size_t spare = size > old ? (size < (1U << 20) ? size : size / 16) : 0;
    void* memory = realloc(static_cast<void*>(blob), sizeof(Blob) + size + spare);
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
