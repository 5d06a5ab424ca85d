// What SSCAN, HSCAN and ZSCAN share: cursor, options and the form of the reply.
#pragma once

#include <cstdint>
#include <string_view>

#include "commands/context.h"

namespace sava::commands {

struct ElementScan {
  uint64_t cursor = 0;
  int64_t count = 10;
  bool by_pattern = false;
  bool no_values = false;  // NOVALUES
  std::string_view pattern;

  // Whether an element of that name is to be reported.
  bool Passes(std::string_view name) const;
};

// A cursor as the C library reads an unsigned number: signs and leading zeros are fine, and nothing
// at all is 0.
bool ParseScanCursor(std::string_view text, uint64_t* cursor);
// The cursor in argument 2. Replies the error and returns false when it is none.
bool ScanCursorArg(Context& context, ElementScan* scan);
// The options from argument 3 on. Replies the error and returns false when they are wrong.
bool ScanOptionArgs(Context& context, bool knows_no_values, ElementScan* scan);
// The reply for a key that is not there.
void ReplyEmptyScan(Context& context);
// To be called with the reply's mark before the first element, how many elements were written
// since, and the next cursor.
void FinishScan(Context& context, size_t mark, int64_t found, uint64_t next);

}  // namespace sava::commands
