// OutBuffer: the bytes a connection still has to send. One contiguous block that grows, plus
// references to large values which are sent from where they are.
//
// Layout: bytes [0, size) were produced; blob i belongs between the bytes before and after
// blobs_[i].offset. The owner sends from the front and calls Consume.
//
// A buffer that would grow beyond its limit, or finds no memory to grow, is over(): what it had is
// dropped, and so is all that comes after. Its connection has nothing more to say and is closed.
// Not thread-safe: a connection's loop owns it.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/blob.h"

namespace sava::protocol {

class OutBuffer {
 public:
  OutBuffer() = default;
  ~OutBuffer();
  OutBuffer(OutBuffer&& other) noexcept;
  OutBuffer& operator=(OutBuffer&& other) noexcept;

  // So many bytes may wait to be sent. Looked at when the block grows.
  void set_limit(size_t bytes) { limit_ = bytes; }
  bool over() const { return over_; }

  // At least n writable bytes; follow with Advance(written). nullptr when it is over().
  char* Reserve(size_t n) {
    if (static_cast<size_t>(end_ - cursor_) < n && !Grow(n)) [[unlikely]]
      return nullptr;
    return cursor_;
  }
  void Advance(size_t n) { cursor_ += n; }

  void Append(std::string_view bytes) {
    if (bytes.empty()) return;
    char* const p = Reserve(bytes.size());
    if (p == nullptr) [[unlikely]]
      return;
    memcpy(p, bytes.data(), bytes.size());
    cursor_ += bytes.size();
  }
  // What another has to send.
  void Append(const OutBuffer& other);
  // Takes a reference of its own.
  void AppendBlob(base::Blob* blob);

  // Everything that waits to be sent, blobs included.
  size_t pending() const { return static_cast<size_t>(cursor_ - begin_) - sent_ + blob_bytes_; }
  bool empty() const { return pending() == 0; }
  // Memory held for it (blobs counted: this connection keeps them alive).
  size_t memory() const { return static_cast<size_t>(end_ - begin_) + blob_bytes_; }

  // The same without blobs, which others may hold too.
  size_t block_bytes() const { return static_cast<size_t>(end_ - begin_); }

  // A position to come back to. Valid until Consume.
  size_t Mark() const { return static_cast<size_t>(cursor_ - begin_); }
  // Forgets everything after the mark.
  void TruncateTo(size_t mark);
  // The same, and returns it, blobs included.
  std::string CutFrom(size_t mark);
  // Puts bytes in at a mark, before what was written since (for lengths known late).
  // REQUIRES: no blob was appended since, or it stays behind the inserted bytes (always true).
  void InsertAt(size_t mark, std::string_view bytes);
  // The contiguous bytes since the mark. REQUIRES: no blob since.
  std::string_view Since(size_t mark) const {
    if (over_) return {};
    return {begin_ + mark, static_cast<size_t>(cursor_ - begin_) - mark};
  }

  // Fills up to max vectors with what must be sent next; returns how many.
  size_t Gather(iovec* vectors, size_t max) const;
  void Consume(size_t n);
  // Gives the block back when nothing is pending (idle connections cost nothing).
  void ReleaseIfEmpty(size_t keep);

 private:
  struct BlobAt {
    size_t offset;  // bytes of the block that go before it
    size_t sent;    // of the blob
    base::Blob* blob;
  };

  bool Grow(size_t n);
  void DropAll();
  void Reset();

  char* begin_ = nullptr;
  char* cursor_ = nullptr;
  char* end_ = nullptr;
  size_t sent_ = 0;
  size_t blob_bytes_ = 0;
  size_t limit_ = SIZE_MAX;
  bool over_ = false;
  std::vector<BlobAt> blobs_;
};

}  // namespace sava::protocol
