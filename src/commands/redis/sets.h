// What the commands on sets share: sets.cc, sets_random.cc and sets_algebra.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "commands/context.h"
#include "types/collections/set.h"

namespace sava::commands {

// The set at a key. Replies WRONGTYPE and returns false when something else is there; true with
// nullptr when nothing is.
inline bool FindSet(Context& context, std::string_view key, Access access, types::Set** set) {
  const Value value = context.Find(key, access);
  *set = nullptr;
  if (!value) return true;
  if (value.kind == Value::Kind::kObject && &value.object->type() == &types::Set::Type()) {
    *set = static_cast<types::Set*>(value.object);
    return true;
  }
  context.Error(errors::kWrongType);
  return false;
}

// For a count of which the absolute value must be a number too.
inline constexpr std::string_view kCountRange =
    "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807";

namespace sets {

// What every removal from a set ends with; an empty set goes with its key.
void FinishRemoval(Context& context, std::string_view key, const types::Set& set, int64_t removed,
                   std::string_view event);

}  // namespace sets

}  // namespace sava::commands
