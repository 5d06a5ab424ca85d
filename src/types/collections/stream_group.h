// StreamGroup: consumers that share the reading of a stream, and the entries that were delivered to
// them and are not acknowledged yet. Every pending entry belongs to exactly one consumer.
//
// Thread safety: as the stream it belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "types/collections/pending_list.h"
#include "types/collections/stream_id.h"

namespace sava::types {

struct StreamConsumer;

// A delivered entry.
struct PendingEntry {
  StreamId id;
  int64_t delivered_at = 0;  // Unix ms
  uint64_t deliveries = 0;
  StreamConsumer* consumer = nullptr;
};

struct PendingId {
  StreamId id;
};

struct StreamConsumer {
  std::string name;
  int64_t seen_at = 0;     // Unix ms: it was named in a command
  int64_t active_at = -1;  // it was given entries; -1: never
  PendingList<PendingId> pending;
};

class StreamGroup {
 public:
  static constexpr int64_t kUnknownRead = -1;
  using Consumers = std::map<std::string, std::unique_ptr<StreamConsumer>, std::less<>>;

  StreamGroup(const StreamId& last, int64_t read) : last_id(last), entries_read(read) {}

  StreamId last_id;      // up to which entries were delivered
  int64_t entries_read;  // how many entries of the stream that is; kUnknownRead

  const Consumers& consumers() const { return consumers_; }
  const PendingList<PendingEntry>& pending() const { return pending_; }

  // nullptr when there is none.
  StreamConsumer* FindConsumer(std::string_view name) const {
    const auto found = consumers_.find(name);
    return found == consumers_.end() ? nullptr : found->second.get();
  }
  // nullptr when there is one of that name.
  StreamConsumer* AddConsumer(std::string_view name, int64_t now_ms) {
    if (consumers_.contains(name)) return nullptr;
    auto consumer = std::make_unique<StreamConsumer>();
    consumer->name = name;
    consumer->seen_at = now_ms;
    return consumers_.emplace(std::string(name), std::move(consumer)).first->second.get();
  }
  // With all that is pending for it.
  void RemoveConsumer(std::string_view name) {
    const auto found = consumers_.find(name);
    if (found == consumers_.end()) return;
    found->second->pending.ForEachFrom(kLeastStreamId, [this](const PendingId& item) {
      pending_.Erase(item.id);
      return true;
    });
    consumers_.erase(found);
  }

  // Makes the entry pending for a consumer, whoever had it before.
  void Assign(const PendingEntry& entry) {
    if (PendingEntry* known = pending_.Edit(entry.id); known != nullptr) {
      if (known->consumer != entry.consumer) {
        entry.consumer->pending.Insert({entry.id});
        known->consumer->pending.Erase(entry.id);
      }
      *known = entry;
      return;
    }
    // In both or in none.
    entry.consumer->pending.Insert({entry.id});
    if (base::IfMemory([&] { pending_.Insert(entry); })) return;
    entry.consumer->pending.Erase(entry.id);
    throw std::bad_alloc();
  }
  // False when it is not pending.
  bool Acknowledge(const StreamId& id) {
    const PendingEntry* entry = pending_.Find(id);
    if (entry == nullptr) return false;
    entry->consumer->pending.Erase(id);
    return pending_.Erase(id);
  }
  // For change of times and counts.
  PendingEntry* EditPending(const StreamId& id) { return pending_.Edit(id); }

  size_t MemoryUsage() const {
    size_t bytes = sizeof(*this) + pending_.MemoryUsage();
    for (const auto& [name, consumer] : consumers_) {
      bytes += sizeof(StreamConsumer) + 64 + 2 * name.capacity() + consumer->pending.MemoryUsage();
    }
    return bytes;
  }

 private:
  Consumers consumers_;
  PendingList<PendingEntry> pending_;
};

}  // namespace sava::types
