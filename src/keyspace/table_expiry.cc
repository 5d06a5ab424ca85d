// What a table does by time: the items in its wheel, and what becomes due.

#include <algorithm>
#include <memory>
#include <new>

#include "keyspace/table.h"
#include "keyspace/table_layout.h"

namespace sava::keyspace {

namespace {

constexpr size_t kStaleItems = 64;  // that many items in a wheel may have no entry any more

}  // namespace
// Whether the item was filed for the entry as it is. Items of objects have the tag of the last note
// in the bits above a key's tag, which are zero in items of keys.
bool Table::Wants(const Entry& entry, uint64_t item) {
  if (const uint64_t tag = item >> 4 & 7; tag != 0) {
    return entry.kind() == Kind::kObject && entry.object()->deadline_tag() == tag;
  }
  return entry.has(kHasExpiry) && entry.wheel_tag() == (item & 15);
}

// False when there was no memory.
bool Table::FileItem(uint64_t item, int64_t at) {
  try {
    if (wheel_ == nullptr) wheel_ = std::make_unique<Wheel>(wheel_start_);
    if (wheel_->crowded()) {
      wheel_->LeaveOut([this](uint64_t each) {
        Entry* entries[8];
        const size_t found = FindByItem(each, entries, 8);
        return std::none_of(entries, entries + found,
                            [each](const Entry* entry) { return Wants(*entry, each); });
      });
    }
    wheel_->Add(item, at);
  } catch (const std::bad_alloc&) {
    return false;
  }
  // Many items may be of entries that have gone, or have another time now.
  if (wheel_->size() > 2 * std::max<size_t>(expiring(), swept_size_) + kStaleItems) {
    sweeping_ = true;
  }
  return true;
}

// Files the entry in the wheel unless it has an item at or before its expiry already. An entry for
// which there is no memory expires at its next access, or its next note.
void Table::NoteExpiry(uint64_t hash, Entry* entry, int64_t old_expiry) {
  const int64_t at = entry->expire_at();
  if (entry->has(kInWheel) && old_expiry >= 0 && at >= old_expiry) return;
  // Items filed for it before carry another tag and are dropped when they are met.
  entry->set_wheel_tag((entry->wheel_tag() + 1) & 15);
  entry->set_flag(kInWheel, FileItem(WheelItem(hash, entry), at));
}

void Table::NoteDeadline(uint64_t hash, Entry* entry) {
  types::Object* object = entry->object();
  const int64_t at = object->next_deadline();
  if (at < 0) return;
  const auto tag = static_cast<uint8_t>(object->deadline_tag() % 7 + 1);
  object->set_deadline_tag(tag);
  FileItem((hash & ~uint64_t{127}) | uint64_t{tag} << 4, at);
  Settle();
}

size_t Table::Expire(int64_t now_ms, size_t budget, const std::function<void(Entry*)>& expire,
                     const std::function<void(Entry*)>& visit) {
  wheel_start_ = now_ms;
  if (wheel_ == nullptr) return 0;
  // A due item's keys expire, or are filed again with their true time, once.
  const auto look = [&](uint64_t item) {
    Entry* entries[8];
    const size_t found = FindByItem(item, entries, 8);
    for (size_t i = 0; i < found; ++i) {
      Entry* entry = entries[i];
      if (!Wants(*entry, item)) continue;
      if ((item >> 4 & 7) != 0) {
        const int64_t at = entry->object()->next_deadline();
        if (at < 0) continue;
        if (at < now_ms && visit) {
          visit(entry);
        } else {
          wheel_->Add(item, at);
        }
        continue;
      }
      if (entry->expire_at() < now_ms) {
        expire(entry);
      } else {
        wheel_->Add(item, entry->expire_at());
      }
    }
  };
  size_t looked = wheel_->Advance(now_ms, budget, look);
  if (sweeping_ && looked < budget) {
    sweeping_ = wheel_->Sweep(budget - looked, look);
    if (!sweeping_) swept_size_ = wheel_->size();
    looked = budget;
  }
  if (wheel_->size() == 0 && expiring() == 0) {
    wheel_.reset();
    swept_size_ = 0;
  }
  Settle();
  return looked;
}

int64_t Table::AverageTtl(int64_t now_ms, base::Rng& rng) const {
  if (expiring() == 0) return 0;
  int64_t sum = 0;
  int64_t seen = 0;
  for (int round = 0; round < 16; ++round) {
    Entry* entries[8];
    const size_t n = Sample(rng, entries, 8);
    for (size_t i = 0; i < n; ++i) {
      const int64_t at = entries[i]->expire_at();
      if (at > now_ms) {
        sum += at - now_ms;
        ++seen;
      }
    }
  }
  return seen == 0 ? 0 : sum / seen;
}

}  // namespace sava::keyspace
