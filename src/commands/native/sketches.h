// What the families of sketches (CMS.*, TOPK.*, SIMHASH.*) share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "commands/find_object.h"
#include "commands/key_context.h"

namespace sava::commands {

// What every change of a sketch in place ends with.
inline void SketchChanged(KeyContext& context, std::string_view key, int64_t changes,
                          std::string_view event) {
  context.Touched(key);
  context.Changed(changes);
  context.Notify(kNotifyModule, event, key);
}

inline int64_t ReplyNumber(uint64_t value) {
  return static_cast<int64_t>(std::min(value, uint64_t{INT64_MAX}));
}

}  // namespace sava::commands
