#include "protocol/out_buffer.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace sava::protocol {

namespace {
constexpr size_t kFirstBlock = 4096;
}

OutBuffer::~OutBuffer() { DropAll(); }

void OutBuffer::DropAll() {
  for (const BlobAt& at : blobs_) at.blob->Unref();
  blobs_.clear();
  free(begin_);
  begin_ = cursor_ = end_ = nullptr;
  sent_ = blob_bytes_ = 0;
}

OutBuffer::OutBuffer(OutBuffer&& other) noexcept { *this = std::move(other); }

OutBuffer& OutBuffer::operator=(OutBuffer&& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(cursor_, other.cursor_);
  std::swap(end_, other.end_);
  std::swap(sent_, other.sent_);
  std::swap(blob_bytes_, other.blob_bytes_);
  std::swap(limit_, other.limit_);
  std::swap(over_, other.over_);
  std::swap(blobs_, other.blobs_);
  return *this;
}

bool OutBuffer::Grow(size_t n) {
  if (over_) return false;
  const auto used = static_cast<size_t>(cursor_ - begin_);
  const auto capacity = static_cast<size_t>(end_ - begin_);
  const size_t waiting = pending();
  char* block = nullptr;
  if (waiting <= limit_ && n <= limit_ - waiting) {
    const size_t ample = std::max({kFirstBlock, capacity * 2, used + n}) - used;
    size_t more = std::max(n, std::min(ample, limit_ - waiting));
    block = static_cast<char*>(realloc(begin_, used + more));
    if (block == nullptr && more > n) {
      more = n;
      block = static_cast<char*>(realloc(begin_, used + more));
    }
    if (block != nullptr) end_ = block + used + more;
  }
  if (block == nullptr) {
    over_ = true;
    DropAll();
    return false;
  }
  begin_ = block;
  cursor_ = block + used;
  return true;
}

void OutBuffer::Append(const OutBuffer& other) {
  size_t position = other.sent_;
  for (const BlobAt& at : other.blobs_) {
    Append({other.begin_ + position, at.offset - position});
    Append(at.blob->view().substr(at.sent));
    position = at.offset;
  }
  Append({other.begin_ + position, other.Mark() - position});
  if (other.over_) {
    over_ = true;
    DropAll();
  }
}

void OutBuffer::AppendBlob(base::Blob* blob) {
  if (!over_ && (pending() > limit_ || blob->size() > limit_ - pending())) {
    over_ = true;
    DropAll();
  }
  if (over_) return;
  blob->Ref();
  blobs_.push_back({Mark(), 0, blob});
  blob_bytes_ += blob->size();
}

void OutBuffer::TruncateTo(size_t mark) {
  if (over_) return;
  cursor_ = begin_ + mark;
  // A blob at the mark itself was appended after it: nothing precedes it since.
  while (!blobs_.empty() && blobs_.back().offset >= mark && blobs_.back().sent == 0) {
    blob_bytes_ -= blobs_.back().blob->size();
    blobs_.back().blob->Unref();
    blobs_.pop_back();
  }
}

void OutBuffer::InsertAt(size_t mark, std::string_view bytes) {
  if (Reserve(bytes.size()) == nullptr) return;
  const size_t tail = Mark() - mark;
  memmove(begin_ + mark + bytes.size(), begin_ + mark, tail);
  memcpy(begin_ + mark, bytes.data(), bytes.size());
  cursor_ += bytes.size();
  for (auto it = blobs_.rbegin(); it != blobs_.rend() && it->offset > mark; ++it) {
    it->offset += bytes.size();
  }
}

std::string OutBuffer::CutFrom(size_t mark) {
  if (over_) return {};
  std::string bytes;
  size_t position = mark;
  for (const BlobAt& at : blobs_) {
    if (at.offset < mark || at.sent > 0) continue;
    bytes.append(begin_ + position, at.offset - position);
    bytes.append(at.blob->view());
    position = at.offset;
  }
  bytes.append(begin_ + position, Mark() - position);
  TruncateTo(mark);
  return bytes;
}

size_t OutBuffer::Gather(iovec* vectors, size_t max) const {
  size_t count = 0;
  size_t position = sent_;
  const size_t end = Mark();
  for (const BlobAt& at : blobs_) {
    if (count == max) return count;
    if (at.offset > position) {
      vectors[count++] = {begin_ + position, at.offset - position};
      position = at.offset;
      if (count == max) return count;
    }
    if (at.blob->size() > at.sent) {
      vectors[count++] = {at.blob->data() + at.sent, at.blob->size() - at.sent};
    }
  }
  if (count < max && end > position) vectors[count++] = {begin_ + position, end - position};
  return count;
}

void OutBuffer::Consume(size_t n) {
  size_t done = 0;
  for (BlobAt& at : blobs_) {
    const size_t plain = std::min(n, at.offset - sent_);
    sent_ += plain;
    n -= plain;
    if (sent_ < at.offset) break;
    const size_t part = std::min(n, at.blob->size() - at.sent);
    at.sent += part;
    blob_bytes_ -= part;
    n -= part;
    if (at.sent < at.blob->size()) break;
    at.blob->Unref();
    ++done;
  }
  if (done > 0) blobs_.erase(blobs_.begin(), blobs_.begin() + static_cast<std::ptrdiff_t>(done));
  sent_ += n;
  if (sent_ == Mark() && blobs_.empty()) {
    Reset();
  } else if (blobs_.empty() && sent_ > (1U << 16) && sent_ > Mark() / 2) {
    memmove(begin_, begin_ + sent_, Mark() - sent_);
    cursor_ -= sent_;
    sent_ = 0;
  }
}

void OutBuffer::Reset() {
  cursor_ = begin_;
  sent_ = 0;
}

void OutBuffer::ReleaseIfEmpty(size_t keep) {
  if (!empty() || static_cast<size_t>(end_ - begin_) <= keep) return;
  free(begin_);
  begin_ = cursor_ = end_ = nullptr;
  sent_ = 0;
}

}  // namespace sava::protocol
