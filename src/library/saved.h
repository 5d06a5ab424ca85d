// What the types of the library share: their bytes are those of DUMP (docs/formats/dump.md).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "types/value/object.h"
#include "types/value/save.h"

namespace sava::library {

inline std::string SavedBytes(const types::Object& object) {
  std::string bytes(1, static_cast<char>(object.rdb_type()));
  {
    types::Writer writer(&bytes);
    object.Save(writer);
  }
  types::SealDump(&bytes);
  return bytes;
}

// nullptr when the bytes are not those of a T, which is a native type.
template <typename T>
std::unique_ptr<T> LoadedFrom(std::string_view bytes) {
  std::string_view body;
  if (!types::OpenDump(bytes, &body)) return nullptr;
  types::Reader reader(body);
  if (reader.Byte() != types::kRdbModule || reader.Length() != T::Type().module_id) return nullptr;
  std::unique_ptr<types::Object> object = T::Type().load(types::kRdbModule, reader);
  if (object == nullptr || !reader.ok() || reader.remaining() != 0) return nullptr;
  return std::unique_ptr<T>(static_cast<T*>(object.release()));
}

// A copy of a T. Throws std::bad_alloc when there is no memory for it.
template <typename T>
std::unique_ptr<T> CopyOf(const T& object) {
  return std::unique_ptr<T>(static_cast<T*>(object.Copy().release()));
}

// Bytes of a value, every element counted.
inline size_t MemoryOf(const types::Object& object) { return object.MemoryUsage(0); }

}  // namespace sava::library
