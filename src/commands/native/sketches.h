// What the families of sketches (CMS.*, TOPK.*, SIMHASH.*) share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "commands/context.h"

namespace sava::commands {

// The sketch of type T at a key. Replies WRONGTYPE and returns false when something else is there;
// true with nullptr when nothing is.
template <typename T>
bool FindSketch(Context& context, std::string_view key, Access access, T** sketch) {
  const Value value = context.Find(key, access);
  *sketch = nullptr;
  if (!value) return true;
  if (value.kind == Value::Kind::kObject && &value.object->type() == &T::Type()) {
    *sketch = static_cast<T*>(value.object);
    return true;
  }
  context.Error(errors::kWrongType);
  return false;
}

// The same where a missing key is an error too.
template <typename T>
bool NeedSketch(Context& context, std::string_view key, Access access, std::string_view missing,
                T** sketch) {
  if (!FindSketch(context, key, access, sketch)) return false;
  if (*sketch != nullptr) return true;
  context.Error(missing);
  return false;
}

// What every change of a sketch in place ends with.
inline void SketchChanged(Context& context, std::string_view key, int64_t changes,
                          std::string_view event) {
  context.Touched(key);
  context.Changed(changes);
  context.Notify(kNotifyModule, event, key);
}

inline int64_t ReplyNumber(uint64_t value) {
  return static_cast<int64_t>(std::min(value, uint64_t{INT64_MAX}));
}

}  // namespace sava::commands
