// FieldExpiries: when the fields of one hash expire, for those that do. A table of the times by
// field, and a heap of (time, hash of the field) that tells what is due next. Items of the heap
// whose field has another time by now are dropped when they are met, so the first of the heap is
// never later than the earliest time.
//
// Thread safety: as the hash it belongs to. Cost: Set O(log n), Of O(1).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/if_memory.h"
#include "types/collections/record_table.h"

namespace sava::types {

class FieldExpiries {
 public:
  static constexpr int64_t kNone = -1;

  FieldExpiries() { alive_.fetch_add(1, std::memory_order_relaxed); }
  FieldExpiries(const FieldExpiries&) = delete;
  FieldExpiries& operator=(const FieldExpiries&) = delete;
  ~FieldExpiries() { alive_.fetch_sub(1, std::memory_order_relaxed); }
  // Whether there is any in this process: files are then of the version that knows such hashes.
  // From any thread.
  static bool Any() { return alive_.load(std::memory_order_relaxed) > 0; }

  size_t size() const { return times_.size(); }
  size_t memory() const {
    return sizeof(*this) + times_.memory() + heap_.capacity() * sizeof(Item);
  }

  // Unix ms; kNone when it has no time.
  int64_t Of(std::string_view field) const {
    std::string_view bytes;
    if (!times_.Find(field, &bytes)) return kNone;
    int64_t at;
    memcpy(&at, bytes.data(), sizeof at);
    return at;
  }

  // REQUIRES: at >= 0.
  void Set(std::string_view field, int64_t at) {
    char bytes[sizeof at];
    memcpy(bytes, &at, sizeof at);
    // Every time has its item: without memory nothing has changed.
    if (heap_.size() == heap_.capacity()) heap_.reserve(2 * heap_.size() + 1);
    times_.Put(field, {bytes, sizeof bytes});
    if (heap_.size() > 2 * times_.size() + 64) {
      Rebuild();
      return;
    }
    heap_.push_back({at, RecordTable::HashOf(field)});
    std::push_heap(heap_.begin(), heap_.end(), Later);
  }

  bool Remove(std::string_view field) { return times_.Erase(field); }

  // Not later than the earliest time. REQUIRES: size() > 0.
  int64_t earliest() const { return heap_.front().at; }

  // Appends fields whose time is before `now` to `fields`, looking at no more than `budget` items.
  // They keep their times. True when there may be more.
  bool Due(int64_t now, size_t budget, std::vector<std::string>* fields) {
    const size_t before = fields->size();
    bool more = false;
    if (base::IfMemory([&] { more = TakeDue(now, budget, fields); })) return more;
    for (size_t i = before; i < fields->size(); ++i) {
      const std::string& field = (*fields)[i];
      heap_.push_back({Of(field), RecordTable::HashOf(field)});  // into the room that it has left
      std::push_heap(heap_.begin(), heap_.end(), Later);
    }
    fields->resize(before);
    throw std::bad_alloc();
  }

  void CopyFrom(const FieldExpiries& other) {
    times_.CopyFrom(other.times_);
    heap_ = other.heap_;
  }

 private:
  struct Item {
    int64_t at;
    uint64_t hash;
  };
  static bool Later(const Item& a, const Item& b) { return a.at > b.at; }

  bool TakeDue(int64_t now, size_t budget, std::vector<std::string>* fields) {
    for (; !heap_.empty() && heap_.front().at < now; --budget) {
      if (budget == 0) return true;
      const Item item = heap_.front();
      times_.ForHash(item.hash, [&](const RecordTable::Record& record) {
        int64_t at;
        memcpy(&at, record.payload.data(), sizeof at);
        if (at == item.at) fields->emplace_back(record.key);
      });
      std::pop_heap(heap_.begin(), heap_.end(), Later);
      heap_.pop_back();
    }
    return false;
  }
  void Rebuild() {
    heap_.clear();
    times_.ForEach([&](const RecordTable::Record& record) {
      int64_t at;
      memcpy(&at, record.payload.data(), sizeof at);
      heap_.push_back({at, RecordTable::HashOf(record.key)});
    });
    std::make_heap(heap_.begin(), heap_.end(), Later);
  }

  inline static std::atomic<int64_t> alive_{0};

  RecordTable times_{RecordTable::Payload::kFixed8};
  std::vector<Item> heap_;
};

}  // namespace sava::types
