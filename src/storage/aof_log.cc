#include "storage/aof_log.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/prefetch.h"
#include "storage/aof_reader.h"

namespace sava::storage {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kBigBuffer = 1 << 20;
constexpr std::chrono::seconds kSyncEvery{1};
constexpr int64_t kDelayedMicros = 2'000'000;
// A comment line says how much is synced after this many more bytes, or after this time.
constexpr uint64_t kMarkBytes = 64 << 10;
constexpr std::chrono::seconds kMarkEvery{1};
// The system is told to write the new bytes in steps of this size.
constexpr uint64_t kBehindStep = 4 << 20;

// Whether it was lower.
bool RaiseTo(std::atomic<uint64_t>& value, uint64_t to) {
  uint64_t now = value.load();
  while (now < to) {
    if (value.compare_exchange_weak(now, to)) return true;
  }
  return false;
}

int64_t Micros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now().time_since_epoch())
      .count();
}

}  // namespace

// ---- records ----

void AofLog::Receive(const journal::Record& record) {
  // A few records ahead: the core that wrote them has their lines. Beyond the chunk it does no
  // harm.
  base::Prefetch(record.bytes().data() + 1024);
  base::Prefetch(record.bytes().data() + 1088);
  pending_.Add(record, timestamps_.load(std::memory_order_relaxed));
}

void AofLog::NoteLost(uint64_t ticket, std::string why) {
  const std::lock_guard lock(pending_.mutex);
  if (pending_.lost == 0) {
    pending_.lost = ticket;
    lost_why_ = std::move(why);
  }
}

void AofLog::EndRun(uint64_t next) {
  pending_.next_ticket = next;
  if (next >= pending_.switch_at) pending_.SetMark();
  pending_.mutex.unlock();
}

void AofLog::Pause() {
  {
    const Lock lock(mutex_);
    Step();
    const int64_t began = sync_began_.load();
    if (began != 0 && Micros() - began > kDelayedMicros) {
      int64_t expected = began;
      if (sync_began_.compare_exchange_strong(expected, 0)) delayed_syncs_.fetch_add(1);
    }
  }
  Tell();
}

// ---- writing ----

// Without memory it is tried again later.
void AofLog::Step() {
  try {
    WriteAndSync();
  } catch (const std::bad_alloc&) {
    WriteFailed("Out of memory");
  }
}

void AofLog::WriteAndSync() {
  WriteOut();
  if (current_ == nullptr || current_->broken || hold_writes_) return;
  if (always() && current_->synced < written_end_) SyncWritten();
  if (writing_.empty() && sync_requested_.exchange(false)) {
    sync_asked_ = true;
    wake_.notify_one();
  }
}

void AofLog::WriteOut() {
  if (hold_writes_ || TooEarly()) return;
  if (current_ == nullptr || current_->broken) {
    Discard();
    StartSwitch();
    return;
  }
  if (unsure_ && !busy_ && current_->named) {
    SettleManifest();
    if (unsure_) return;
  }
  if (!writing_.empty() && !Write()) return;
  if (Take() && !Write()) return;
  if (SwitchToPrepared() && Take() && !Write()) return;
  if (!StartSwitch()) WriteWorked();
}

// After a failure the next try has to wait.
bool AofLog::TooEarly() const {
  return write_failed_ && Clock::now() - last_try_ < options_.retry_after;
}

// Moves what may be written now into writing_, which is empty.
bool AofLog::Take() {
  {
    const std::lock_guard lock(pending_.mutex);
    if (pending_.lost != 0 && pending_.lost < pending_.switch_at) {
      pending_.lost = 0;
      Broken(*current_, lost_why_);
      return false;
    }
    const size_t size = std::min(pending_.mark, pending_.bytes.size());
    writing_end_ = pending_.mark == AofPending::kNoMark ? pending_.next_ticket : pending_.switch_at;
    if (size == 0) {
      RaiseWritten(writing_end_);
      return false;
    }
    if (size == pending_.bytes.size()) {
      writing_.swap(pending_.bytes);
    } else {
      writing_.assign(pending_.bytes, 0, size);
      pending_.bytes.erase(0, size);
    }
    if (pending_.mark != AofPending::kNoMark) pending_.mark = 0;
  }
  if (!current_->after.empty()) {
    writing_.insert(0, current_->after);
    current_->after.clear();
  }
  AppendSyncedMark();
  writing_size_ = writing_.size();
  return true;
}

void AofLog::AppendSyncedMark() {
  Increment& at = *current_;
  const uint64_t synced = at.synced_size;
  const Time now = Clock::now();
  if (synced < at.marked + kMarkBytes && (synced <= at.marked || now - at.marked_at < kMarkEvery)) {
    return;
  }
  writing_ += AofSyncedLine(synced);
  at.marked = synced;
  at.marked_at = now;
}

bool AofLog::Write() {
  last_try_ = Clock::now();
  Increment& at = *current_;
  // Memory for the notes below is reserved now: once the bytes are written nothing may fail.
  SyncPath& path = *path_.load();
  path.Reserve(writing_.size());
  const base::Status status = at.file->Append(writing_);
  if (!status) {
    WriteFailed(status.error());
    if (at.file->size() != at.good) {
      const base::Status cut = at.file->Truncate(at.good);
      if (!cut) Broken(at, cut.error());
    }
    return false;
  }
  at.good = at.file->size();
  RaiseWritten(writing_end_);
  if (always()) {
    path.Append(writing_);
  } else {
    path.Restart();
  }
  writing_.clear();
  if (writing_.capacity() > 4 * kBigBuffer) writing_.shrink_to_fit();
  writing_size_ = 0;
  SetSize();
  if (BehindIsDue()) wake_.notify_one();
  return true;
}

// There is no file to write to: records that the coming base will have are dropped, later ones
// kept.
void AofLog::Discard() {
  writing_.clear();
  writing_size_ = 0;
  const std::lock_guard lock(pending_.mutex);
  pending_.bytes.erase(0, std::min(pending_.mark, pending_.bytes.size()));
  if (pending_.mark != AofPending::kNoMark) pending_.mark = 0;
  if (!pending_.switching()) pending_.framing.Restart();
}

// When everything before a switch is written: the disk's thread goes on from there.
bool AofLog::StartSwitch() {
  {
    const std::lock_guard lock(pending_.mutex);
    if (pending_.mark != 0 || !writing_.empty()) return false;
  }
  hold_writes_ = true;
  wake_.notify_one();
  return true;
}

void AofLog::SettleManifest() {
  last_try_ = Clock::now();
  const base::Status status = WriteManifest(manifest_);
  if (!status) return WriteFailed(status.error());
  unsure_ = false;
  RemoveOrphans();
}

void AofLog::WriteFailed(const std::string& error) {
  last_try_ = Clock::now();
  SetError(error);
  if (write_failed_.exchange(true)) return;
  told_ = false;
  spdlog::error("Error writing to the AOF file: {}", error);
}

void AofLog::WriteWorked() {
  if (!write_failed_.exchange(false)) return;
  told_ = false;
  spdlog::warn("AOF write error looks solved, the server can write again.");
}

void AofLog::SetSize() { size_ = other_sizes_ + (current_ == nullptr ? 0 : current_->good); }

// ---- syncing ----

// Covers the file's first `size` bytes, which have every ticket below `ticket`. mutex_ may be held
// or not.
bool AofLog::SyncFile(Increment& increment, uint64_t ticket, uint64_t size) {
  const std::lock_guard lock(sync_mutex_);
  // The system reports a failure once: a sync after it would seem to have worked.
  if (increment.broken || !SyncPrevious(increment)) return false;
  const int64_t began = Micros();
  sync_began_ = began;
  syncing_ = true;
  const base::Status status = increment.file->Sync();
  syncing_ = false;
  const int64_t took = Micros() - began;
  if (sync_began_.exchange(0) != 0 && took > kDelayedMicros) delayed_syncs_.fetch_add(1);
  if (!status) {
    Broken(increment, status.error());
    return false;
  }
  RaiseTo(increment.synced, ticket);
  RaiseTo(increment.synced_size, size);
  if (increment.named && !needs_base_) RaiseDurable(ticket);
  return true;
}

// Syncs earlier files that were left without a sync. When it fails, the increment
// is not synced either: it must not seem to follow whole files. REQUIRES: sync_mutex_.
bool AofLog::SyncPrevious(Increment& increment) {
  std::vector<Increment*> earlier;
  for (Increment* at = increment.previous.get(); at != nullptr; at = at->previous.get()) {
    earlier.insert(earlier.begin(), at);
  }
  for (Increment* const at : earlier) {
    if (at->broken) return false;
    // Even when all of it was synced: bytes of a failed write may have been truncated away since.
    if (const base::Status status = at->file->Sync(); !status) {
      Broken(*at, status.error());
      return false;
    }
    at->synced_size = at->good;
  }
  increment.previous = nullptr;
  increment.alone = true;
  return true;
}

void AofLog::RaiseDurable(uint64_t ticket) {
  if (RaiseTo(durable_, ticket)) told_ = false;
}

// kAlways: brings the written bytes to the disk.
void AofLog::SyncWritten() {
  SyncPath& path = *path_.load();
  Increment& at = *current_;
  const bool counts = at.named && !needs_base_;
  const auto sync_file = [this] { return SyncFile(*current_, written_end_, current_->good); };
  if (path.MakeDurable({at.sequence, at.good, at.synced_size, counts}, sync_file)) {
    RaiseTo(at.synced, written_end_);
    if (at.named && !needs_base_) RaiseDurable(written_end_);
  }
  const bool sync = path.wants_file_sync() && !syncing_ && !sync_asked_;
  if (sync) sync_asked_ = true;
  if (sync || PathIsToBePrepared()) wake_.notify_one();
}

// REQUIRES: mutex_.
void AofLog::RaiseWritten(uint64_t ticket) {
  if (ticket <= written_end_.load(std::memory_order_relaxed)) return;
  written_end_.store(ticket, std::memory_order_release);
  FileWritten();
}

// REQUIRES: mutex_.
void AofLog::FileWritten() {
  if (!needs_base_ && RaiseTo(filed_, written_end_) && !always()) told_ = false;
}

void AofLog::Broken(Increment& increment, const std::string& error) {
  SetError(error);
  if (!increment.broken.exchange(true)) {
    spdlog::error("The AOF file cannot be trusted any more, a new base is needed: {}", error);
  }
  if (increment.named) needs_base_ = true;
  told_ = false;
}

void AofLog::RunDisk() {
  Lock lock(mutex_);
  Time next = Clock::now() + kSyncEvery;
  while (true) {
    wake_.wait_until(lock, next, [this] {
      return stopping_ || hold_writes_ || sync_asked_ || BehindIsDue() || PathIsToBePrepared() ||
             &WantedPath() != path_.load();
    });
    if (hold_writes_) {
      Switch(lock);
    } else if (stopping_) {
      return;
    } else {
      WriteBehind(lock);
      const bool asked = std::exchange(sync_asked_, false);
      const Time now = Clock::now();
      const bool tick = now >= next;
      if (tick) next = now + kSyncEvery;
      if (asked || (tick && policy_.load() != Policy::kNo && !hold_sync_)) SyncIfDue(lock);
      FollowRingSetting(lock, tick);
      // After that sync: bytes of an earlier ring may be nowhere else.
      if (PathIsToBePrepared() && !sync_asked_) path_.load()->Prepare(lock);
      if (tick) LookForFiles(lock);
    }
    lock.unlock();
    Tell();
    lock.lock();
  }
}

void AofLog::SyncIfDue(Lock& lock) {
  const std::shared_ptr<Increment> at = current_;
  if (at == nullptr || at->broken) return;
  if (at->synced >= written_end_ && at->synced_size >= at->good && at->alone) return;
  const uint64_t ticket = written_end_;
  const uint64_t size = at->good;
  lock.unlock();
  SyncFile(*at, ticket, size);
  lock.lock();
}

bool AofLog::PathIsToBePrepared() const {
  return always() && current_ != nullptr && current_->named && !current_->broken && !stopping_ &&
         path_.load()->wants_preparation();
}

SyncPath& AofLog::WantedPath() {
  if (wants_ring_.load(std::memory_order_relaxed)) return ring_path_;
  return file_path_;
}

void AofLog::FollowRingSetting(Lock& lock, bool tick) {
  SyncPath& wanted = WantedPath();
  const bool change = &wanted != path_.load();
  if (change) {
    wanted.Restart();
    path_ = &wanted;
  }
  // Files that could not be dropped at once may be later.
  if ((change || tick) && &wanted != &ring_path_ && ring_path_.has_ring()) DropRing(lock);
}

// The bytes in the ring must be in the file before the ring is removed.
void AofLog::DropRing(Lock& lock) {
  const std::shared_ptr<Increment> at = current_;
  if (at == nullptr || !at->named) return;
  const uint64_t size = at->good;
  SyncIfDue(lock);
  if (!at->broken && at->alone && at->synced_size >= size) ring_path_.Remove(lock);
}

bool AofLog::BehindIsDue() const {
  return current_ != nullptr && current_->good >= current_->behind + kBehindStep;
}

// The bytes of the last step are written by now, as a rule; their pages can be dropped.
void AofLog::WriteBehind(Lock& lock) {
  if (!BehindIsDue()) return;
  const std::shared_ptr<Increment> at = current_;
  const uint64_t begin = at->behind - std::min(at->behind, 2 * kBehindStep);
  const uint64_t end = at->behind = at->good / kBehindStep * kBehindStep;
  lock.unlock();
  at->file->WriteBehind(begin, end);
  lock.lock();
}

std::string AofLog::MissingFile(const AofManifest& manifest) const {
  for (const AofFile& file : manifest.files) {
    if (file.kind == AofFile::Kind::kHistory || files_.Exists(Path(file.name))) continue;
    return Path(file.name);
  }
  return {};
}

bool AofLog::HasItsFiles() {
  const Lock lock(mutex_);
  return !manifest_.files.empty() && MissingFile(manifest_).empty() &&
         files_.Exists(ManifestPath());
}

// A file that was removed would take the records with it.
void AofLog::LookForFiles(Lock& lock) {
  const std::shared_ptr<Increment> at = current_;
  if (busy_ || hold_writes_ || unsure_ || at == nullptr || at->broken || !at->named) return;
  const AofManifest manifest = manifest_;
  lock.unlock();
  const std::string missing = MissingFile(manifest);
  const bool has_manifest = files_.Exists(ManifestPath());
  lock.lock();
  if (!path_.load()->LookForFile(lock)) sync_asked_ = true;
  if (busy_ || hold_writes_ || manifest_.files != manifest.files) return;
  if (!missing.empty()) {
    Broken(*at, fmt::format("{} has vanished", missing));
  } else if (!has_manifest) {
    spdlog::warn("The AOF manifest {} has vanished, writing it again", ManifestPath());
    unsure_ = true;
  }
}

// ---- beginning and end ----

AofLog::AofLog(Options options)
    : options_(std::move(options)),
      files_(*options_.files),
      policy_(options_.policy),
      timestamps_(options_.timestamps),
      wants_ring_(options_.ring),
      ring_path_(files_, RingPath(), options_.ring_size),
      path_(&WantedPath()) {}

AofLog::~AofLog() {
  {
    Lock lock(mutex_);
    Abort(lock);
    stopping_ = true;
    wake_.notify_one();
  }
  if (disk_.joinable()) disk_.join();
  Lock lock(mutex_);
  last_try_ = {};
  WriteOut();
  if (current_ == nullptr || current_->broken || policy_.load() == Policy::kNo) return;
  Increment& at = *current_;
  const bool synced = at.synced_size >= at.good && at.previous == nullptr;
  if (!synced && !SyncFile(at, written_end_, at.good)) return;
  ring_path_.Remove(lock);
  if (!end_line_.empty() && at.named && at.file->Append(end_line_)) at.good += end_line_.size();
  if (at.good > at.marked) (void)at.file->Append(AofSyncedLine(at.good));
}

// ---- for other threads ----

void AofLog::SetEndLine(std::string line) {
  const Lock lock(mutex_);
  end_line_ = std::move(line);
}
void AofLog::SetPolicy(Policy policy) { policy_ = policy; }
void AofLog::set_hold_sync(bool hold) { hold_sync_ = hold; }
void AofLog::SetRing(bool on) {
  wants_ring_ = on;
  wake_.notify_one();
}
void AofLog::RequestSync() { sync_requested_ = true; }

uint64_t AofLog::size() const { return size_; }
uint64_t AofLog::base_size() const { return base_size_; }
uint64_t AofLog::delayed_syncs() const { return delayed_syncs_; }

uint64_t AofLog::buffered() const {
  const std::lock_guard lock(pending_.mutex);
  return pending_.bytes.size() + writing_size_;
}

std::string AofLog::last_error() const {
  const std::lock_guard lock(error_mutex_);
  return last_error_;
}

void AofLog::SetError(const std::string& error) {
  const std::lock_guard lock(error_mutex_);
  last_error_ = error;
}

// REQUIRES: no lock is held.
void AofLog::Tell() {
  if (!told_.exchange(true)) options_.changed();
}

}  // namespace sava::storage
