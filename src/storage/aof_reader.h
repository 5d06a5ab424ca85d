// ReadAof: reads the commands of an append-only file from memory and hands them on, one after
// another; what MULTI opens is handed on only when its EXEC is there, so a transaction is whole or
// absent. Lines that begin with '#' (timestamps) are passed over. Of a file that begins as an RDB
// file (the preamble of older logs) the caller passes the rest.
//
// Nothing in a file is trusted: lengths are checked against the size of the file. When power fails,
// some unsynced parts may be on disk and others not; these read as zeros. Zeros up to the end,
// or zeros in a file of Sava's (docs/formats/aof.md: #SYNCED) of which nothing says that it was
// synced beyond them, are a cut-off tail; any others are corruption.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sava::storage {

struct AofEnd {
  enum class Kind : uint8_t {
    kWhole,      // the file ends with a whole command, outside a transaction
    kTruncated,  // the file is cut off within a command or transaction, as by a crash
    kCorrupt,    // something else stands where a command should be
    kRefused,    // the receiver returned an error
  };
  Kind kind = Kind::kWhole;
  uint64_t offset = 0;  // where the damage begins
  uint64_t good = 0;    // up to here everything is whole, transactions included
  uint64_t commands = 0;
  std::string text;  // what is wrong
};

// The words are views of the file; the span of them is valid during the call. `in_transaction`:
// part of a MULTI; the words MULTI and EXEC themselves are not handed on, `last` tells that the
// transaction ends with this command.
struct AofCommand {
  std::span<const std::string_view> words;
  uint64_t offset = 0;  // of its first byte
  bool in_transaction = false;
  bool last = false;
};

// "#SYNCED:123\r\n": when this line was written, that many bytes of the file were synced.
inline constexpr std::string_view kAofSyncedMark = "#SYNCED:";
std::string AofSyncedLine(uint64_t size);

// "#AFTER:3:4567\r\n", the second line of an increment that got records before the earlier ones
// were synced: increment 3 had 4567 bytes then, so that a file with fewer has lost its end.
inline constexpr std::string_view kAofAfterMark = "#AFTER:";
struct AofAfter {
  uint64_t sequence = 0;  // 0: there is no such line
  uint64_t size = 0;

  static AofAfter Of(std::string_view file);  // its beginning is enough
  std::string Line() const;
};

// Whether an increment shows that the ones before it were synced as a whole: a later cut in those
// is damage then. One that does not show it holds nothing that counted as durable; when an earlier
// one is cut off, the log ends there, and such ones after it are left out.
bool AofProvesSync(std::string_view file);

using AofReceiver = std::function<base::Status(const AofCommand&)>;

// `progress` is told now and then how many bytes are done.
AofEnd ReadAof(std::string_view file, const AofReceiver& receive,
               const std::function<void(uint64_t)>& progress = {});

}  // namespace sava::storage
