// Backlog: the bytes of the stream that were sent last, or are still to be sent, in blocks.
// Replicas read them where they are; one that comes back asks for what it has missed.
//
// Each reader holds the block it is at; blocks leave from the front when no reader needs them and
// the rest is enough. So a slow reader keeps all behind it; its owner may count that (end - at)
// and drop it. Bytes are numbered from the first one of the stream's history; the first has 0.
//
// A part of the stream may be of no use to some replicas (foreign): its place is remembered.
//
// Thread safety: Append, MarkForeign and Publish on one thread at a time, the writer's; the rest on
// any. What is published does not change.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "commands/stock.h"

namespace sava::replication {

struct BacklogBlock {
  BacklogBlock(int64_t first, size_t bytes)
      : begin(first), size(bytes), data(std::make_unique_for_overwrite<char[]>(bytes)) {}
  const int64_t begin;
  const size_t size;
  const std::unique_ptr<char[]> data;
};

// Where a reader is: the byte it wants next, and the block it holds, which has that byte or is
// the one before it.
struct BacklogPlace {
  int64_t at = 0;
  std::shared_ptr<BacklogBlock> block;
};

class Backlog {
 public:
  struct Span {
    int64_t begin;
    int64_t end;
  };
  static constexpr size_t kSmallestBlock = 16 * 1024;

  // What comes next has this number.
  Backlog(int64_t begin, int64_t keep);

  // ---- the writer ----
  void Append(std::string_view bytes);
  // What only `least`, and those above it, know.
  void MarkForeign(int64_t begin, int64_t end, commands::Reader least);
  // What was appended before this byte may be read.
  void Publish(int64_t end) { end_.store(end, std::memory_order_release); }
  int64_t written() const { return written_; }
  // For a reader that begins with what will be appended next.
  BacklogPlace AtWritten();

  // ---- readers ----
  int64_t end() const { return end_.load(std::memory_order_acquire); }
  // The first byte that is still there.
  int64_t first() const;
  // None: it is not there, or does not come next. `at` may be end().
  std::optional<BacklogPlace> Open(int64_t at);
  // Bytes at the place, before `limit`, as far as they are in one block; the place is moved to
  // the next block when it is at the end of one. Empty: there are none.
  std::string_view Read(BacklogPlace* place, int64_t limit);
  // The first part foreign to the reader that ends behind `at`.
  std::optional<Span> ForeignFrom(int64_t at, commands::Reader reader) const;

  // ---- size ----
  // repl-backlog-size. What is more than that leaves with what is appended, and with Trim.
  void Keep(int64_t bytes) { keep_.store(bytes, std::memory_order_relaxed); }
  void Trim();
  // Memory of all blocks.
  int64_t memory() const { return memory_.load(std::memory_order_relaxed); }

 private:
  void AddBlock(size_t wanted);
  void TrimLocked();

  std::atomic<int64_t> keep_;
  int64_t written_ = 0;           // the writer's
  BacklogBlock* tail_ = nullptr;  // the writer's; the last of blocks_
  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<BacklogBlock>>
      blocks_;                               // guarded by mutex_, never empty, without gaps
  std::array<std::deque<Span>, 2> foreign_;  // guarded by mutex_: by reader, each in order
  int64_t first_;                            // guarded by mutex_
  std::atomic<int64_t> end_;
  std::atomic<int64_t> memory_{0};
};

}  // namespace sava::replication
