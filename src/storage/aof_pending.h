// AofPending: bytes that the log has received and not begun to write. Its mutex is a leaf, held for
// moments or for one run of records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include "journal/record.h"

namespace sava::storage {

// Everything is guarded by the mutex.
struct AofPending {
  static constexpr size_t kNoMark = SIZE_MAX;

  bool switching() const { return switch_at != UINT64_MAX; }
  void SetMark();
  void CancelSwitch();
  // Adds a record, framed. timestamps: a comment line says when, once a second.
  void Add(const journal::Record& record, bool timestamps);

  mutable std::mutex mutex;
  std::string bytes;
  uint64_t next_ticket = 0;         // every lower one has come
  uint64_t switch_at = UINT64_MAX;  // the switch to make
  size_t mark = kNoMark;            // its records begin here in bytes
  uint64_t skip_below = 0;          // a base has these
  journal::Framing framing{journal::kToLog};
  int64_t second = 0;  // of the last timestamp
  uint64_t lost = 0;   // the first ticket for whose record there was no memory
};

}  // namespace sava::storage
