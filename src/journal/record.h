// Record: what one unit of work has changed, as the journal hands it to its consumers: a ticket and
// effects in order. An effect is one command in RESP; its bytes are where its writer put them.
// Framing: how one consumer makes a stream of commands of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace sava::journal {

// The readers an effect is for.
using Destinations = uint8_t;
inline constexpr Destinations kToLog = 1;
inline constexpr Destinations kToReplicas = 2;
inline constexpr Destinations kToAll = kToLog | kToReplicas;

struct Effect {
  uint32_t database;
  Destinations to;
  std::string_view bytes;
};

// Of an effect, in its writer's buffer.
struct EffectHeader {
  uint64_t ticket;  // of the record; only in the header of its first effect
  uint64_t size : 36;
  uint64_t database : 25;
  uint64_t to : 2;
  uint64_t last : 1;  // of its record
};
static_assert(sizeof(EffectHeader) == 16);

class Record {
 public:
  // Headers go down in memory from `first`, bytes go up.
  class Iterator {
   public:
    Iterator(const EffectHeader* header, const char* bytes) : header_(header), bytes_(bytes) {}
    Effect operator*() const {
      return {static_cast<uint32_t>(header_->database),
              static_cast<Destinations>(header_->to),
              {bytes_, header_->size}};
    }
    Iterator& operator++() {
      bytes_ += header_->size;
      --header_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return header_ == other.header_; }

   private:
    const EffectHeader* header_;
    const char* bytes_;
  };

  Record(const EffectHeader* first, const char* bytes) : first_(first), bytes_(bytes) {
    const EffectHeader* at = first;
    total_ = at->size;
    while (at->last == 0) total_ += (--at)->size;
    size_ = static_cast<size_t>(first - at) + 1;
  }

  uint64_t ticket() const { return first_->ticket; }
  size_t size() const { return size_; }  // effects
  Iterator begin() const { return {first_, bytes_}; }
  Iterator end() const { return {first_ - size_, nullptr}; }
  // The effects' bytes, one after the other.
  std::string_view bytes() const { return {bytes_, total_}; }

 private:
  const EffectHeader* first_;
  const char* bytes_;
  size_t size_;
  size_t total_;
};

// Adds SELECT where the database changes, and MULTI and EXEC around the effects of a record that
// has several for this destination. Each consumer has one, with its own selected database.
class Framing {
 public:
  explicit Framing(Destinations to) : to_(to) {}

  // The database that is selected; -1: none yet.
  int database() const { return database_ == kNone ? -1 : static_cast<int>(database_); }
  // The bytes from here on may be read without the earlier ones.
  void Restart() { database_ = kNone; }

  // Out: append(std::string_view). Nothing is appended when the record is not for this destination.
  template <class Out>
  void Append(const Record& record, Out& out) {
    if (record.size() > 1) [[unlikely]]
      return AppendSeveral(record, out);
    const Effect effect = *record.begin();
    if ((effect.to & to_) != 0) AppendOne(effect, out);
  }

 private:
  static constexpr uint64_t kNone = UINT64_MAX;

  template <class Out>
  void AppendOne(const Effect& effect, Out& out) {
    if (effect.database != database_) Select(effect.database, out);
    out.append(effect.bytes);
  }

  template <class Out>
  void AppendSeveral(const Record& record, Out& out) {
    size_t count = 0;
    for (const Effect& effect : record) count += (effect.to & to_) != 0 ? 1 : 0;
    const bool transaction = count > 1;
    bool begins = transaction;
    for (const Effect& effect : record) {
      if ((effect.to & to_) == 0) continue;
      if (effect.database != database_) Select(effect.database, out);
      if (std::exchange(begins, false)) out.append(std::string_view("*1\r\n$5\r\nMULTI\r\n"));
      out.append(effect.bytes);
    }
    if (transaction) out.append(std::string_view("*1\r\n$4\r\nEXEC\r\n"));
  }

  template <class Out>
  void Select(uint32_t database, Out& out) {
    char digits[24];
    char length[24];
    const std::string_view number(digits, base::FormatInt(database, digits));
    out.append(std::string_view("*2\r\n$6\r\nSELECT\r\n$"));
    out.append(
        std::string_view(length, base::FormatInt(static_cast<int64_t>(number.size()), length)));
    out.append(std::string_view("\r\n"));
    out.append(number);
    out.append(std::string_view("\r\n"));
    database_ = database;
  }

  const Destinations to_;
  uint64_t database_ = kNone;
};

}  // namespace sava::journal
