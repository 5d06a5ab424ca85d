#include "replication/change_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/if_memory.h"
#include "replication/wire.h"

namespace sava::replication {

namespace {

// At most this many places that wait for the log are noted one by one.
constexpr size_t kMostHeld = 4096;

}  // namespace

// ---- beginning and end ----

void ChangeStream::Begin(int64_t keep) {
  const std::lock_guard lock(mutex_);
  keep_ = keep;
  if (backlog_ == nullptr) Reset(history_.offset);
}

void ChangeStream::End() {
  const std::lock_guard lock(mutex_);
  if (backlog_ == nullptr) return;
  history_.offset = backlog_->written();
  history_.id = NewId();
  history_.ForgetSecond();
  TellAllMarks();
  backlog_.reset();
  held_.clear();
  running_.store(false, std::memory_order_release);
}

void ChangeStream::ChangeId() {
  const std::lock_guard lock(mutex_);
  history_.id = NewId();
  history_.ForgetSecond();
}

void ChangeStream::Renew() {
  const std::lock_guard lock(mutex_);
  if (backlog_ == nullptr || raw_.load(std::memory_order_relaxed)) return;
  TellAllMarks();
  history_.offset = backlog_->written();
  history_.id = NewId();
  history_.ForgetSecond();
  Reset(history_.offset);
}

void ChangeStream::GoOn(const History& history) {
  const std::lock_guard lock(mutex_);
  history_ = history;
  Reset(history.offset);
}

void ChangeStream::AppendGone(int db, std::string_view key) {
  const std::string command = fmt::format("*2\r\n$3\r\nDEL\r\n${}\r\n{}\r\n", key.size(), key);
  const journal::EffectHeader header{.ticket = 0,
                                     .size = command.size(),
                                     .database = static_cast<uint64_t>(db),
                                     .to = journal::kToReplicas,
                                     .last = 1};
  const std::lock_guard lock(mutex_);
  Out out{*this};
  framing_.Append(journal::Record(&header, command.data()), out);
  PublishAll();
}

// What was written needs no disk.
void ChangeStream::PublishAll() {
  seen_end_ = record_end_ = backlog_->written();
  backlog_->Publish(seen_end_);
  data_end_.store(seen_end_, std::memory_order_release);
  offset_.store(seen_end_, std::memory_order_release);
}

void ChangeStream::Reset(int64_t offset) {
  backlog_ = std::make_shared<Backlog>(offset, keep_);
  broken_ = false;
  held_.clear();
  framing_.Restart();
  seen_end_ = record_end_ = offset;
  data_end_.store(offset, std::memory_order_release);
  offset_.store(offset, std::memory_order_release);
  running_.store(true, std::memory_order_release);
}

// ---- the journal ----

void ChangeStream::AppendCommand(std::string_view command) {
  const int64_t begin = backlog_->written();
  backlog_->Append(command);
  const commands::Reader least = ReaderOf(command);
  if (least == commands::Reader::kStock) return;
  backlog_->MarkForeign(begin, backlog_->written(), least);
  ++foreign_;
}

// Without memory the stream is not what was done, and ends: the record may be there in part.
template <typename Work>
void ChangeStream::OrBreak(const Work& work) {
  if (base::IfMemory(work)) return;
  broken_ = true;
  hooks_.lost();
}

void ChangeStream::Receive(const journal::Record& record) {
  if (!open()) return;
  OrBreak([&] {
    if (!requests_.empty()) [[unlikely]]
      TellMarks(record.ticket());
    Out out{*this};
    framing_.Append(record, out);
    record_end_ = backlog_->written();
  });
}

void ChangeStream::EndRun(uint64_t next) {
  if (open()) {
    OrBreak([&] {
      if (!requests_.empty()) TellMarks(next);
      const int64_t end = backlog_->written();
      if (end != (held_.empty() ? seen_end_ : held_.back().end)) {
        if (held_.size() >= kMostHeld) held_.pop_back();
        held_.push_back({next, end});
      }
      offset_.store(end, std::memory_order_release);
    });
  }
  data_end_.store(record_end_, std::memory_order_release);
  merged_.store(next, std::memory_order_release);
  mutex_.unlock();
}

void ChangeStream::Pause() {
  {
    const std::lock_guard lock(mutex_);
    const bool ping = wants_ping_.exchange(false);
    const bool acks = wants_acks_.exchange(false);
    if (open()) {
      OrBreak([&] {
        if (ping) backlog_->Append(kPing);
        if (acks) backlog_->Append(kGetAck);
        const int64_t end = backlog_->written();
        if (ping || acks) held_.push_back({merged_.load(std::memory_order_relaxed), end});
        offset_.store(end, std::memory_order_release);
        Release();
      });
    }
  }
  hooks_.moved();
}

void ChangeStream::Kept() {
  {
    const std::lock_guard lock(mutex_);
    if (!open() || !Release()) return;
  }
  hooks_.moved();
}

// Whether more may be read now.
bool ChangeStream::Release() {
  const uint64_t kept = hooks_.kept();
  bool any = false;
  while (!held_.empty() && held_.front().ticket <= kept) {
    seen_end_ = held_.front().end;
    held_.pop_front();
    any = true;
  }
  if (any) backlog_->Publish(seen_end_);
  return any;
}

// ---- places ----

ChangeStream::Mark ChangeStream::MarkHere() {
  return {backlog_, backlog_->AtWritten(), history_.id, std::max(framing_.database(), 0)};
}

// Those up to the ticket that comes next.
void ChangeStream::TellMarks(uint64_t next) {
  std::erase_if(requests_, [&](const Request& request) {
    if (request.ticket > next) return false;
    if (request.begins) framing_.Restart();
    request.tell(MarkHere());
    return true;
  });
}

// Their replicas are being dropped: nothing may wait for a place any longer.
void ChangeStream::TellAllMarks() {
  for (const Request& request : std::exchange(requests_, {})) request.tell(MarkHere());
}

void ChangeStream::MarkAt(uint64_t ticket, bool begins, std::function<void(const Mark&)> tell) {
  const std::lock_guard lock(mutex_);
  if (!raw_.load(std::memory_order_relaxed)) {
    requests_.push_back({ticket, begins, std::move(tell)});
  } else {
    tell(MarkHere());
  }
}

std::optional<ChangeStream::Mark> ChangeStream::Resume(std::string_view id, int64_t from) {
  const std::lock_guard lock(mutex_);
  // PSYNC counts bytes from 1.
  if (backlog_ == nullptr || !history_.Covers(id, from + 1)) return std::nullopt;
  const auto place = backlog_->Open(from);
  if (!place) return std::nullopt;
  return Mark{backlog_, *place, history_.id};
}

History ChangeStream::history() const {
  const std::lock_guard lock(mutex_);
  History copy = history_;
  if (backlog_ != nullptr) copy.offset = backlog_->written();
  return copy;
}

int ChangeStream::db() const {
  const std::lock_guard lock(mutex_);
  return std::max(framing_.database(), 0);
}

ChangeStream::Figures ChangeStream::figures() const {
  const std::lock_guard lock(mutex_);
  Figures figures;
  figures.foreign = foreign_;
  if (backlog_ == nullptr) return figures;
  figures.active = true;
  figures.first = backlog_->first();
  figures.length = backlog_->written() - figures.first;
  figures.memory = backlog_->memory();
  return figures;
}

void ChangeStream::Keep(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  keep_ = bytes;
  if (backlog_ != nullptr) backlog_->Keep(bytes);
}

void ChangeStream::Trim() {
  const std::lock_guard lock(mutex_);
  if (backlog_ != nullptr) backlog_->Trim();
}

// ---- following a master ----

void ChangeStream::Adopt(std::string_view id, int64_t offset) {
  hooks_.drop("this server has another data set now");
  const std::lock_guard lock(mutex_);
  history_.id = id;
  history_.offset = offset;
  history_.ForgetSecond();
  if (backlog_ != nullptr) TellAllMarks();
  raw_.store(true);
  Reset(offset);
}

void ChangeStream::Rename(std::string_view id) {
  hooks_.drop("the master has another history now");
  const std::lock_guard lock(mutex_);
  history_.offset = backlog_ != nullptr ? backlog_->written() : history_.offset;
  history_.second_id = history_.id;
  history_.second_offset = history_.offset + 1;
  history_.id = id;
}

void ChangeStream::AppendRaw(std::string_view bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (backlog_ == nullptr) Reset(history_.offset);
    std::vector<std::string_view> words;
    while (!bytes.empty()) {
      const std::optional<size_t> size = SplitCommand(bytes, 1, &words);
      const std::string_view command = bytes.substr(0, size.value_or(bytes.size()));
      AppendCommand(command);
      bytes.remove_prefix(command.size());
    }
    PublishAll();
  }
  hooks_.moved();
}

void ChangeStream::Promote() {
  hooks_.drop("this server is a master now");
  if (running()) hooks_.attach();
  const std::lock_guard lock(mutex_);
  if (backlog_ != nullptr) history_.offset = backlog_->written();
  history_.Promote();
  framing_.Restart();
  raw_.store(false);
}

void ChangeStream::Demote() {
  hooks_.drop("this server is to be a replica");
  const std::lock_guard lock(mutex_);
  if (backlog_ == nullptr) Reset(history_.offset);
  seen_end_ = backlog_->written();
  held_.clear();
  TellAllMarks();
  backlog_->Publish(seen_end_);
  raw_.store(true);
}

}  // namespace sava::replication
