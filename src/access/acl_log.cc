#include "access/acl_log.h"

#include <algorithm>

namespace sava::access {

namespace {
constexpr int64_t kSameEntryMs = 60'000;
// How many of the newest entries are looked at for an equal one.
constexpr size_t kLookedAt = 10;
}  // namespace

void AclLog::Add(AclLogEntry entry, int64_t now_ms, size_t max_length) {
  const std::lock_guard lock(mutex_);
  ++denied_[static_cast<size_t>(entry.reason)];
  const auto newest =
      entries_.begin() + static_cast<ptrdiff_t>(std::min(entries_.size(), kLookedAt));
  const auto same = std::find_if(entries_.begin(), newest, [&](const AclLogEntry& old) {
    return old.reason == entry.reason && old.context == entry.context &&
           old.object == entry.object && old.username == entry.username &&
           now_ms - old.updated_ms <= kSameEntryMs;
  });
  if (same != newest) {
    entry.id = same->id;
    entry.count = same->count + 1;
    entry.created_ms = same->created_ms;
    entries_.erase(same);
  } else {
    entry.id = next_id_++;
    entry.created_ms = now_ms;
  }
  entry.updated_ms = now_ms;
  entries_.push_front(std::move(entry));
  while (entries_.size() > max_length) entries_.pop_back();
}

std::vector<AclLogEntry> AclLog::Newest(size_t count) const {
  const std::lock_guard lock(mutex_);
  const size_t n = std::min(count, entries_.size());
  return {entries_.begin(), entries_.begin() + static_cast<ptrdiff_t>(n)};
}

void AclLog::Reset() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
}

int64_t AclLog::denied(Reason reason) const {
  const std::lock_guard lock(mutex_);
  return denied_[static_cast<size_t>(reason)];
}

void AclLog::ResetDenied() {
  const std::lock_guard lock(mutex_);
  denied_.fill(0);
}

}  // namespace sava::access
