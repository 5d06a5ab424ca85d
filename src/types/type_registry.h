// TypeRegistry: which type reads a value of which RDB type. The composition root fills it at start;
// after that it is only read, by all threads. Strings (RDB type 0) need no entry: whoever reads
// values knows them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "types/object.h"

namespace sava::types {

class TypeRegistry {
 public:
  // Fails when another type claims one of its RDB types. REQUIRES: `info` lives as long as this.
  base::Status Add(const TypeInfo& info);

  // nullptr when nobody reads that RDB type.
  const TypeInfo* Find(uint8_t rdb_type) const { return types_[rdb_type]; }

 private:
  std::array<const TypeInfo*, 256> types_{};
};

}  // namespace sava::types
