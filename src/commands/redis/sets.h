// What the commands on sets share: sets.cc, sets_random.cc and sets_algebra.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "commands/context.h"
#include "commands/find_object.h"
#include "types/collections/set.h"

namespace sava::commands {

namespace sets {

// What every removal from a set ends with; an empty set goes with its key.
void FinishRemoval(Context& context, std::string_view key, const types::Set& set, int64_t removed,
                   std::string_view event);

}  // namespace sets

}  // namespace sava::commands
