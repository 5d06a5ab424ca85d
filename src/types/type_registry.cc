#include "types/type_registry.h"

#include <fmt/format.h>

#include "types/save.h"

namespace sava::types {

base::Status TypeRegistry::Add(const TypeInfo& info) {
  for (size_t i = 0; i < info.rdb_type_count; ++i) {
    const uint8_t id = info.rdb_types[i];
    if (id == kRdbString) {
      return base::Error{fmt::format("type {} claims RDB type 0, the strings'", info.name)};
    }
    if (types_[id] != nullptr && types_[id] != &info) {
      return base::Error{
          fmt::format("types {} and {} both claim RDB type {}", types_[id]->name, info.name, id)};
    }
  }
  for (size_t i = 0; i < info.rdb_type_count; ++i) types_[info.rdb_types[i]] = &info;
  return {};
}

}  // namespace sava::types
