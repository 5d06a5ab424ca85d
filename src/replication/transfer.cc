#include "replication/transfer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sava::replication {

Transfer::Transfer(std::string directory, size_t memory)
    : directory_(directory.empty() ? "." : std::move(directory)), memory_(memory) {}

Transfer::~Transfer() {
  if (file_ >= 0) close(file_);
}

std::shared_ptr<Transfer::Reader> Transfer::AddReader(std::function<void()> wake) {
  auto reader = std::make_shared<Reader>();
  reader->wake_ = std::move(wake);
  const std::lock_guard lock(mutex_);
  readers_.push_back(reader);
  return reader;
}

// ---- writing ----

base::Status Transfer::OpenFile() {
  file_ = open(directory_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file_ < 0) {
    std::string name = directory_ + "/temp-sync-XXXXXX";
    file_ = mkostemp(name.data(), O_CLOEXEC);
    if (file_ >= 0) unlink(name.c_str());
  }
  if (file_ < 0) return base::Error{strerror(errno)};
  file_from_ = written_;
  return {};
}

base::Status Transfer::AppendLocked(std::string_view bytes) {
  while (!bytes.empty() && file_ < 0) {
    if (chunks_.empty() || chunks_.back().size == kChunk) {
      if (chunks_.size() * kChunk >= memory_) {
        if (base::Status opened = OpenFile(); !opened) return opened;
        break;
      }
      auto chunk = std::make_shared<std::string>();
      chunk->resize(kChunk);
      chunks_.push_back({written_, std::move(chunk), 0});
    }
    Chunk& chunk = chunks_.back();
    const size_t size = std::min(bytes.size(), kChunk - chunk.size);
    memcpy(chunk.bytes->data() + chunk.size, bytes.data(), size);
    chunk.size += size;
    written_ += static_cast<int64_t>(size);
    bytes.remove_prefix(size);
  }
  while (!bytes.empty()) {
    const ssize_t wrote = pwrite(file_, bytes.data(), bytes.size(), written_ - file_from_);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return base::Error{strerror(errno)};
    written_ += wrote;
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return {};
}

base::Status Transfer::Append(std::string_view bytes) {
  std::unique_lock lock(mutex_);
  if (error_) return base::Error{*error_};
  if (readers_.empty()) {
    error_ = "no replica waits for it any more";
    return base::Error{*error_};
  }
  base::Status status = AppendLocked(bytes);
  if (!status) error_ = status.error();
  Wake(lock);
  return status;
}

void Transfer::Finish() {
  std::unique_lock lock(mutex_);
  if (!error_) finished_ = true;
  for (const auto& reader : readers_) reader->waits_ = true;  // some wait for the size alone
  Wake(lock);
}

void Transfer::Fail(std::string error) {
  std::unique_lock lock(mutex_);
  if (!error_) error_ = std::move(error);
  for (const auto& reader : readers_) reader->waits_ = true;
  Wake(lock);
}

void Transfer::Wake(std::unique_lock<std::mutex>& lock) {
  std::vector<std::shared_ptr<Reader>> woken;
  for (const auto& reader : readers_) {
    if (std::exchange(reader->waits_, false)) woken.push_back(reader);
  }
  lock.unlock();
  for (const auto& reader : woken) reader->wake_();
}

// ---- reading ----

std::string_view Transfer::Read(Reader& reader) {
  int64_t at;
  int64_t end;
  {
    const std::lock_guard lock(mutex_);
    at = reader.at_;
    end = written_;
    if (at == end || reader.gone_) {
      reader.waits_ = !finished_ && !error_;
      return {};
    }
    if (file_from_ < 0 || at < file_from_) {
      reader.from_file_ = {};
      const auto behind = std::ranges::upper_bound(chunks_, at, {}, &Chunk::begin);
      const Chunk& chunk = *std::prev(behind);
      reader.chunk_ = chunk.bytes;
      const auto used = static_cast<size_t>(at - chunk.begin);
      return {chunk.bytes->data() + used, chunk.size - used};
    }
  }
  reader.chunk_.reset();
  const auto have = static_cast<int64_t>(reader.from_file_.size());
  if (at < reader.file_begin_ || at >= reader.file_begin_ + have) {
    reader.file_begin_ = at;
    reader.from_file_.resize(static_cast<size_t>(std::min<int64_t>(end - at, kChunk)));
    const ssize_t got =
        pread(file_, reader.from_file_.data(), reader.from_file_.size(), at - file_from_);
    reader.from_file_.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got <= 0) Fail(got < 0 ? strerror(errno) : "its file was cut off");
  }
  return std::string_view(reader.from_file_).substr(static_cast<size_t>(at - reader.file_begin_));
}

void Transfer::Advance(Reader& reader, size_t bytes) {
  const std::lock_guard lock(mutex_);
  reader.at_ += static_cast<int64_t>(bytes);
  DropRead();
}

void Transfer::Leave(Reader& reader) {
  const std::lock_guard lock(mutex_);
  reader.gone_ = true;
  std::erase_if(readers_, [&](const auto& one) { return one.get() == &reader; });
  DropRead();
}

// What all have read. The last chunk may still grow.
void Transfer::DropRead() {
  int64_t slowest = written_;
  for (const auto& reader : readers_) slowest = std::min(slowest, reader->at_);
  while (!chunks_.empty() && chunks_.front().size == kChunk &&
         chunks_.front().begin + static_cast<int64_t>(kChunk) <= slowest) {
    chunks_.pop_front();
  }
}

std::optional<int64_t> Transfer::size() const {
  const std::lock_guard lock(mutex_);
  return finished_ ? std::optional(written_) : std::nullopt;
}

std::optional<std::string> Transfer::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

int64_t Transfer::written() const {
  const std::lock_guard lock(mutex_);
  return written_;
}

size_t Transfer::in_memory() const {
  const std::lock_guard lock(mutex_);
  return chunks_.size() * kChunk;
}

int64_t Transfer::in_file() const {
  const std::lock_guard lock(mutex_);
  return file_from_ < 0 ? 0 : written_ - file_from_;
}

}  // namespace sava::replication
