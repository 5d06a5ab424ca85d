#include "storage/aof_pending.h"

#include <fmt/format.h>

#include <ctime>
#include <new>

namespace sava::storage {

void AofPending::SetMark() {
  if (mark != kNoMark) return;
  mark = bytes.size();
  framing.Restart();
}

void AofPending::CancelSwitch() {
  switch_at = UINT64_MAX;
  mark = kNoMark;
}

void AofPending::Add(const journal::Record& record, bool timestamps) {
  if (record.ticket() >= switch_at) SetMark();
  if (record.ticket() < skip_below) return;
  const size_t before = bytes.size();
  try {
    if (timestamps) {
      const int64_t now = std::time(nullptr);
      if (now != second) bytes += fmt::format("#TS:{}\r\n", now);
      second = now;
    }
    framing.Append(record, bytes);
  } catch (const std::bad_alloc&) {
    bytes.resize(before);
    if (lost == 0) lost = record.ticket();
  }
}

}  // namespace sava::storage
