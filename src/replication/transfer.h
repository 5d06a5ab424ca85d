// Transfer: a copy of the data set on its way from the snapshot's walker to the replicas that wait
// for it. It is written once and read by each at its own speed: out of memory while they keep up,
// then out of a file that has no name. So the walker never waits for a socket, and a slow
// replica delays no other.
//
// Thread safety: any thread; one writes, and a reader is used by one thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sava::replication {

class Transfer {
 public:
  static constexpr size_t kMemory = 16 << 20;

  class Reader {
   public:
    int64_t at() const { return at_; }

   private:
    friend class Transfer;
    int64_t at_ = 0;                            // guarded by the transfer's mutex
    std::shared_ptr<const std::string> chunk_;  // has the bytes that Read returned
    std::string from_file_;                     // or there, from file_begin_ on
    int64_t file_begin_ = 0;
    bool waits_ = false;  // guarded by the transfer's mutex
    bool gone_ = false;   // guarded by the transfer's mutex
    std::function<void()> wake_;
  };

  // `directory`: where the file goes; "": the working directory.
  explicit Transfer(std::string directory, size_t memory = kMemory);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // REQUIRES: nothing was written. `wake` is called, on the thread that writes, when the reader has
  // found nothing and there is more, and when no more will come.
  std::shared_ptr<Reader> AddReader(std::function<void()> wake);

  // ---- the writer ----
  // An error: there are no readers any more, or the bytes cannot be kept.
  base::Status Append(std::string_view bytes);
  // All was written; or no more will come.
  void Finish();
  void Fail(std::string error);

  // ---- readers ----
  // The bytes from where the reader is, as far as they are contiguous; they stay until its next
  // call. Empty: there are none now, and it will be woken.
  std::string_view Read(Reader& reader);
  void Advance(Reader& reader, size_t bytes);
  void Leave(Reader& reader);

  // The size, when all was written.
  std::optional<int64_t> size() const;
  std::optional<std::string> error() const;
  // Bytes so far; those in memory; those in the file.
  int64_t written() const;
  size_t in_memory() const;
  int64_t in_file() const;

 private:
  static constexpr size_t kChunk = 256 << 10;

  struct Chunk {
    int64_t begin;
    std::shared_ptr<std::string> bytes;  // never grows beyond what was reserved
    size_t size;                         // of it that may be read
  };

  base::Status AppendLocked(std::string_view bytes);
  base::Status OpenFile();
  void DropRead();
  void Wake(std::unique_lock<std::mutex>& lock);

  const std::string directory_;
  const size_t memory_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<std::shared_ptr<Reader>> readers_;
  std::deque<Chunk> chunks_;
  int64_t written_ = 0;
  int64_t file_from_ = -1;  // the first byte that went to the file
  int file_ = -1;           // set once
  bool finished_ = false;
  std::optional<std::string> error_;
};

}  // namespace sava::replication
