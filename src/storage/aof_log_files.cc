// AofLog, its files: opening, increments, the manifest, a new base.

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/alternate_stack.h"
#include "storage/aof_log.h"
#include "storage/aof_reader.h"

namespace sava::storage {

namespace {

// With its end, which is that of the text.
std::string_view LastLine(std::string_view text) {
  if (text.size() < 2) return text;
  const size_t before = text.rfind('\n', text.size() - 2);
  return before == std::string_view::npos ? text : text.substr(before + 1);
}

}  // namespace

// ---- files ----

base::Status AofLog::MakeDirectory() const {
  if (options_.directory.empty() || files_.Exists(options_.directory)) return {};
  if (base::Status status = files_.MakeDirectory(options_.directory); !status) return status;
  return files_.SyncDirectory(DirectoryOf(options_.directory));
}

base::Status AofLog::WriteManifest(AofManifest manifest) {
  manifest.data_set = options_.data_set;
  return WriteAtomically(files_, ManifestPath(), manifest.Text());
}

std::string AofLog::NoNumberLeft() const {
  return fmt::format("{}: no sequence number is left after {}", ManifestPath(),
                     AofManifest::kLastSequence);
}

// A new file, without records, and on the disk under its name.
base::Result<std::shared_ptr<AofLog::Increment>> AofLog::MakeIncrement() {
  if (base::Status status = MakeDirectory(); !status) return base::Error{status.error()};
  if (last_increment_ >= AofManifest::kLastSequence) return base::Error{NoNumberLeft()};
  auto made = std::make_shared<Increment>();
  made->sequence = last_increment_ + 1;
  made->name = AofIncrementName(options_.name, made->sequence);
  auto file = files_.Open(Path(made->name), FileSystem::Mode::kNew);
  if (!file) return base::Error{file.error()};
  made->file = std::move(*file);
  if (base::Status status = made->file->Append(AofSyncedLine(0)); !status) {
    return base::Error{status.error()};
  }
  if (base::Status status = made->file->Sync(); !status) return base::Error{status.error()};
  made->good = made->marked = made->synced_size = made->file->size();
  if (base::Status status = files_.SyncDirectory(options_.directory); !status) {
    return base::Error{status.error()};
  }
  return made;
}

void AofLog::RemoveOrphans() {
  for (const std::string& name : std::exchange(orphans_, {})) {
    const bool used = (current_ != nullptr && current_->name == name) ||
                      std::any_of(manifest_.files.begin(), manifest_.files.end(),
                                  [&name](const AofFile& file) { return file.name == name; });
    if (!used) (void)files_.Remove(Path(name));
  }
}

// The manifest that would name it could not be written, and may be there all the same: its name
// must not be used again, or a file that is just being made would stand for one that is whole.
void AofLog::Abandon(const Increment& increment) {
  orphans_.push_back(increment.name);
  last_increment_ = std::max(last_increment_, increment.sequence);
  unsure_ = true;
}

void AofLog::SetCurrent(std::shared_ptr<Increment> increment, bool named) {
  increment->named = named;
  last_increment_ = std::max(last_increment_, increment->sequence);
  if (current_ != nullptr && current_->named) other_sizes_ += current_->good;
  current_ = std::move(increment);
  path_.load()->Restart();
  SetSize();
}

// The switch that was wanted is made: current_ is where its records go.
uint64_t AofLog::CompleteSwitch() {
  const std::lock_guard lock(pending_.mutex);
  switched_at_ = pending_.switch_at;
  pending_.CancelSwitch();
  rewriting_ = true;
  RaiseWritten(switched_at_);
  return switched_at_;
}

base::Status AofLog::PrepareSwitch() {
  Lock lock(mutex_);
  settled_.wait(lock, [this] { return !busy_ && !hold_writes_; });
  const bool good = state() == State::kGood && !unsure_ && current_ != nullptr && current_->named;
  if (!good || prepared_ != nullptr || rewriting_) return {};
  busy_ = true;
  AofManifest next = manifest_;
  lock.unlock();
  auto made = MakeIncrement();
  base::Status status = made ? base::Status() : base::Error{made.error()};
  if (status) {
    next.files.push_back({(*made)->name, (*made)->sequence, AofFile::Kind::kIncrement});
    status = WriteManifest(next);
  }
  lock.lock();
  busy_ = false;
  settled_.notify_all();
  if (status) {
    manifest_ = std::move(next);
    prepared_ = std::move(*made);
    prepared_->named = true;
    last_increment_ = prepared_->sequence;
  } else if (made) {
    Abandon(**made);
  }
  return status;
}

// When everything before a switch is written and the next increment is ready: goes on there at
// once.
bool AofLog::SwitchToPrepared() {
  if (prepared_ == nullptr || busy_ || unsure_ || needs_base_) return false;
  // An increment without records says nothing of the earlier ones.
  if (current_ == nullptr || current_->broken || !current_->named || !current_->after.empty()) {
    return false;
  }
  {
    const std::lock_guard lock(pending_.mutex);
    if (pending_.mark != 0 || !writing_.empty()) return false;
  }
  const std::shared_ptr<Increment> next = std::exchange(prepared_, nullptr);
  next->previous = current_;
  next->alone = false;
  next->after = AofAfter{current_->sequence, current_->good}.Line();
  next->synced = current_->synced.load();
  SetCurrent(next, true);
  (void)CompleteSwitch();
  return true;
}

// On the disk's thread: everything before the switch is written, and must be on disk before the
// next file gets anything.
void AofLog::Switch(Lock& lock) {
  settled_.wait(lock, [this] { return !busy_; });
  if (!hold_writes_) return;
  if (SwitchToPrepared()) {
    hold_writes_ = false;
    settled_.notify_all();
    return Step();
  }
  prepared_ = nullptr;  // The manifest names it until there is a new base.
  busy_ = true;
  const std::shared_ptr<Increment> old = current_;
  const uint64_t ticket = written_end_;
  const uint64_t size = old == nullptr ? 0 : old->good;
  AofManifest next = manifest_;
  lock.unlock();
  const bool named = old != nullptr && old->named && SyncFile(*old, ticket, size) && !needs_base_;
  auto made = MakeIncrement();
  base::Status manifest;
  if (made && named) {
    next.files.push_back({(*made)->name, (*made)->sequence, AofFile::Kind::kIncrement});
    manifest = WriteManifest(next);
  }
  lock.lock();
  busy_ = false;
  hold_writes_ = false;
  settled_.notify_all();
  if (!made || !manifest) {
    if (made) Abandon(**made);
    return WriteFailed(made ? manifest.error() : made.error());
  }
  if (named) {
    manifest_ = std::move(next);
    unsure_ = false;
  }
  SetCurrent(*made, named);
  current_->synced = CompleteSwitch();
  WriteWorked();
  Step();
}

// ---- a new base ----

void AofLog::SwitchAt(uint64_t ticket) {
  // The first sync after it is not.
  path_.load()->ExpectSlow();
  const std::lock_guard lock(pending_.mutex);
  pending_.CancelSwitch();
  pending_.switch_at = ticket;
  if (pending_.next_ticket >= ticket) pending_.SetMark();
}

std::string AofLog::TemporaryBase() const {
  (void)MakeDirectory();
  return Path(fmt::format("temp-rewriteaof-{}", options_.name));
}

// The base is there before the switch was made: unwritten records before the switch need not be
// written any more.
base::Status AofLog::SwitchForFinish(Lock& lock) {
  {
    const std::lock_guard pending(pending_.mutex);
    if (!pending_.switching()) return base::Error{"no rewrite of the AOF is in progress"};
  }
  busy_ = true;
  prepared_ = nullptr;
  lock.unlock();
  auto made = MakeIncrement();
  lock.lock();
  busy_ = false;
  hold_writes_ = false;
  settled_.notify_all();
  if (!made) return base::Error{made.error()};
  Discard();
  {
    const std::lock_guard pending(pending_.mutex);
    pending_.skip_below = pending_.switch_at;
    if (pending_.mark == AofPending::kNoMark) pending_.framing.Restart();
  }
  if (current_ != nullptr && current_->named) needs_base_ = true;
  SetCurrent(*made, false);
  current_->synced = CompleteSwitch();
  WriteWorked();
  return {};
}

// The base takes its name, and the manifest names it and the increment.
base::Status AofLog::NameBase(bool rdb, const Increment& increment, AofManifest* next) {
  if (last_base_ >= AofManifest::kLastSequence) return base::Error{NoNumberLeft()};
  const std::string name = AofBaseName(options_.name, ++last_base_, rdb);
  if (!files_.Exists(Path(increment.name))) {
    return base::Error{fmt::format("{} has vanished", Path(increment.name))};
  }
  if (base::Status status = files_.Rename(TemporaryBase(), Path(name)); !status) return status;
  next->files.push_back({name, last_base_, AofFile::Kind::kBase});
  next->files.push_back({increment.name, increment.sequence, AofFile::Kind::kIncrement});
  for (const AofFile& file : manifest_.files) {
    if (file.name == increment.name) continue;
    next->files.push_back({file.name, file.sequence, AofFile::Kind::kHistory});
  }
  if (base::Status status = files_.SyncDirectory(options_.directory); !status) return status;
  return WriteManifest(*next);
}

base::Status AofLog::FinishRewrite(bool rdb) {
  Lock lock(mutex_);
  settled_.wait(lock, [this] { return !busy_ && !hold_writes_; });
  if (!rewriting_) WriteOut();
  settled_.wait(lock, [this] { return !busy_ && !hold_writes_; });
  base::Status status;
  if (!rewriting_) status = SwitchForFinish(lock);
  if (status && current_->broken) status = base::Error{last_error()};
  if (status) {
    busy_ = true;
    const std::shared_ptr<Increment> increment = current_;
    AofManifest next;
    lock.unlock();
    status = NameBase(rdb, *increment, &next);
    const auto base_size = status ? files_.Size(Path(next.files[0].name)) : uint64_t{0};
    // The two locks are not held together: a sync may take long.
    Lock sync(sync_mutex_, std::defer_lock);
    std::lock(lock, sync);
    busy_ = false;
    settled_.notify_all();
    if (!status) {
      unsure_ = unsure_ || !next.files.empty();
      if (!next.files.empty()) orphans_.push_back(next.files[0].name);
    } else {
      manifest_ = std::move(next);
      unsure_ = false;
      rewriting_ = false;
      increment->named = true;
      increment->previous = nullptr;
      needs_base_ = increment->broken.load();
      told_ = false;
      RaiseDurable(std::max<uint64_t>(switched_at_, needs_base_ ? 0 : increment->synced.load()));
      FileWritten();
      other_sizes_ = base_size ? base_size.value() : 0;
      SetSize();
      base_size_ = size_.load();
    }
  }
  if (status) {
    RemoveHistory(lock);
  } else {
    Abort(lock);
  }
  lock.unlock();
  Tell();
  return status;
}

// Removes the files the manifest calls history, then names them no more. When that fails they are
// left, and named until the next manifest is written.
void AofLog::RemoveHistory(Lock& lock) {
  RemoveOrphans();
  AofManifest next;
  std::vector<std::string> history;
  for (const AofFile& file : manifest_.files) {
    if (file.kind == AofFile::Kind::kHistory) {
      history.push_back(file.name);
    } else {
      next.files.push_back(file);
    }
  }
  if (history.empty()) return;
  manifest_ = next;
  busy_ = true;
  lock.unlock();
  for (const std::string& name : history) (void)files_.Remove(Path(name));
  const base::Status status = WriteManifest(next);
  lock.lock();
  if (!status) spdlog::warn("Removing history from the AOF manifest: {}", status.error());
  busy_ = false;
  settled_.notify_all();
}

void AofLog::AbortRewrite() {
  {
    Lock lock(mutex_);
    Abort(lock);
  }
  Tell();
}

void AofLog::Abort(Lock& lock) {
  settled_.wait(lock, [this] { return !busy_; });
  bool wanted = rewriting_;
  {
    const std::lock_guard pending(pending_.mutex);
    wanted = wanted || pending_.switching();
    pending_.CancelSwitch();
  }
  if (!wanted) return;
  hold_writes_ = false;
  settled_.notify_all();
  if (std::exchange(rewriting_, false) && !current_->named) {
    // Without the base its records are useless.
    orphans_.push_back(current_->name);
    current_ = nullptr;
    Discard();
    SetSize();
    needs_base_ = true;
    told_ = false;
  }
  if (current_ == nullptr && !needs_base_.exchange(true)) told_ = false;
  (void)files_.Remove(TemporaryBase());
  if (!unsure_) RemoveOrphans();
}

// ---- opening ----

base::Result<bool> AofLog::FindManifest(FileSystem& files, const std::string& directory,
                                        const std::string& name, AofManifest* manifest) {
  const std::string path = PathIn(directory, AofManifestName(name));
  if (!files.Exists(path)) return false;
  auto read = AofManifest::Read(files, path);
  if (!read) return base::Error{read.error()};
  *manifest = std::move(*read);
  return true;
}

// The last increment, to append to it. None when it is not one of Sava's: without their first line
// a start could not tell what a crash leaves behind its end from damage.
base::Result<std::shared_ptr<AofLog::Increment>> AofLog::LastIncrement(const AofFile& last) {
  const std::string path = Path(last.name);
  const std::string first = AofSyncedLine(0);
  const auto beginning = files_.Read(path, 0, first.size());
  if (!beginning) return base::Error{beginning.error()};
  if (beginning.value() != first) return std::shared_ptr<Increment>();
  auto file = files_.Open(path, FileSystem::Mode::kAppend);
  if (!file) return base::Error{file.error()};
  const uint64_t size = (*file)->size();
  // All of it is synced. That is said at once, so that a cut before the end is known as damage,
  // unless the earlier process said it when it ended, or nothing was recorded.
  const std::string line = AofSyncedLine(size);
  const auto end = files_.Read(path, size - std::min<uint64_t>(size, line.size()), line.size());
  if (!end) return base::Error{end.error()};
  if (!end.value().ends_with(AofSyncedLine(size - LastLine(end.value()).size()))) {
    base::Status status = (*file)->Append(line);
    if (status) status = (*file)->Sync();
    if (!status) {
      (void)(*file)->Truncate(size);
      return base::Error{status.error()};
    }
  }
  auto increment = std::make_shared<Increment>();
  increment->name = last.name;
  increment->sequence = last.sequence;
  increment->good = increment->marked = increment->synced_size = increment->behind =
      (*file)->size();
  increment->file = std::move(*file);
  other_sizes_ -= size;
  return increment;
}

base::Status AofLog::Open(const AofManifest& manifest, uint64_t next_ticket) {
  if (base::Status status = MakeDirectory(); !status) return status;
  if (files_.Exists(TemporaryBase())) (void)files_.Remove(TemporaryBase());
  pending_.next_ticket = next_ticket;
  written_end_ = next_ticket;
  filed_ = next_ticket;
  durable_ = next_ticket;
  for (const AofFile& file : manifest.files) {
    if (file.kind != AofFile::Kind::kIncrement) last_base_ = std::max(last_base_, file.sequence);
    if (file.kind != AofFile::Kind::kBase) {
      last_increment_ = std::max(last_increment_, file.sequence);
    }
    if (file.kind == AofFile::Kind::kHistory) continue;
    const auto size = files_.Size(Path(file.name));
    if (!size) return base::Error{size.error()};
    other_sizes_ += size.value();
  }
  manifest_ = manifest;
  const std::vector<AofFile> increments = manifest.increments();
  base::Result<std::shared_ptr<Increment>> increment = std::shared_ptr<Increment>();
  // An earlier process may have left them without a sync.
  for (const AofFile& file : increments) {
    auto opened = files_.Open(Path(file.name), FileSystem::Mode::kAppend);
    if (!opened) return base::Error{opened.error()};
    if (base::Status status = (*opened)->Sync(); !status) return status;
  }
  if (!increments.empty()) increment = LastIncrement(increments.back());
  if (increment && *increment == nullptr && (manifest.base() != nullptr || !increments.empty())) {
    increment = MakeIncrement();
    if (increment) {
      manifest_.files.push_back(
          {(*increment)->name, (*increment)->sequence, AofFile::Kind::kIncrement});
      if (base::Status status = WriteManifest(manifest_); !status) return status;
    }
  }
  if (!increment) return base::Error{increment.error()};
  // One that is used goes on telling whose it is, and one of another server begins to.
  if (*increment != nullptr && manifest.data_set != options_.data_set) {
    if (base::Status status = WriteManifest(manifest_); !status) return status;
  }
  Lock lock(mutex_);
  if (*increment != nullptr) {
    (*increment)->synced = next_ticket;
    SetCurrent(*increment, true);
    RemoveHistory(lock);
  }
  SetSize();
  base_size_ = size_.load();
  // Its bytes are in the files by now (RestoreFromRing), and these may be written again.
  // Of a log that is not used any more the ring stays: its files may come to be used again.
  const bool used = *increment != nullptr || manifest.files.empty();
  if (used && files_.Exists(RingPath())) {
    (void)files_.Remove(RingPath());
    (void)files_.SyncDirectory(options_.directory);
  }
  disk_ = std::thread([this] {
    const base::AlternateStack stack;
    RunDisk();
  });
  return {};
}

}  // namespace sava::storage
