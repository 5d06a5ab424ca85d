// The options of BF.RESERVE and BF.INSERT. Nothing here keeps state.
#pragma once

#include <cstddef>

#include "commands/key_context.h"
#include "types/filters/bloom.h"

namespace sava::commands {

// Reads all of BF.RESERVE. False when an error was replied.
bool ParseBloomReserve(KeyContext& context, types::Bloom::Options* options);

struct BloomInsert {
  types::Bloom::Options options;
  bool create = true;     // a filter that is missing
  size_t first_item = 0;  // the argument where they begin
};
// Reads BF.INSERT up to its items. False when an error was replied.
bool ParseBloomInsert(KeyContext& context, BloomInsert* insert);

}  // namespace sava::commands
