// CutWriter: a snapshot is written to it key by key. An RDB file (RdbWriter) or commands
// (CommandWriter).
#pragma once

#include <cstdint>
#include <string_view>

#include "types/value/save.h"

namespace sava::snapshot {

// A key and what is saved beside its value; -1: not known.
struct CutKey {
  std::string_view key;
  int64_t expire_at_ms = -1;
  int64_t idle_seconds = -1;
  int frequency = -1;
};

class CutWriter {
 public:
  CutWriter() = default;
  CutWriter(const CutWriter&) = delete;
  CutWriter& operator=(const CutWriter&) = delete;
  virtual ~CutWriter() = default;

  // In front of the keys. A field of an RDB file; commands have no place for one.
  virtual void Aux(std::string_view name, std::string_view value) {
    static_cast<void>(name), static_cast<void>(value);
  }
  // A function library: its source, shebang line included.
  virtual void Function(std::string_view code) = 0;

  // `keys` and `expiring` are hints for the reader's tables.
  virtual void SelectDb(uint64_t db, uint64_t keys, uint64_t expiring) = 0;
  // Goes on with a database that had its SelectDb already.
  virtual void SwitchDb(uint64_t db) = 0;

  // REQUIRES: no key twice in a database.
  virtual void String(const CutKey& key, std::string_view value) = 0;
  // The string that `value` is in decimal.
  virtual void Number(const CutKey& key, int64_t value) = 0;
  // Everything before the value; the caller writes that as its type saves itself, e.g. in the
  // pieces of Object::BeginCut, and then calls CloseValue.
  virtual types::Writer& OpenValue(const CutKey& key, uint8_t rdb_type) = 0;
  virtual void CloseValue() {}
};

}  // namespace sava::snapshot
