// The object of a type at a key: what nearly every command of a family begins with.
#pragma once

#include <string_view>

#include "commands/key_context.h"

namespace sava::commands {

// nullptr when the value is none: nothing, a string, an object of another type.
template <typename T>
T* ObjectAs(const Value& value) {
  if (value.kind != Value::Kind::kObject || &value.object->type() != &T::Type()) return nullptr;
  return static_cast<T*>(value.object);
}

// The object at a key. Replies WRONGTYPE and returns false when something else is there; true with
// nullptr when nothing is.
template <typename T>
bool FindObject(KeyContext& context, std::string_view key, Access access, T** object) {
  const Value value = context.Find(key, access);
  *object = ObjectAs<T>(value);
  if (!value || *object != nullptr) return true;
  context.Error(errors::kWrongType);
  return false;
}

// The same where a missing key is an error too.
template <typename T>
bool NeedObject(KeyContext& context, std::string_view key, Access access, std::string_view missing,
                T** object) {
  if (!FindObject(context, key, access, object)) return false;
  if (*object != nullptr) return true;
  context.Error(missing);
  return false;
}

}  // namespace sava::commands
