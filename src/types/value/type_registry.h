// TypeRegistry: which type reads a value of which RDB type, and what types do beyond that, so that
// no other room needs to know one by name. Filled at start; after that it is only
// read, by all threads. Strings (RDB type 0) need no entry: the code that reads
// values knows them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "types/value/object.h"

namespace sava::types {

class TypeRegistry {
 public:
  // Fails when another type claims one of its RDB types or its module id. REQUIRES: `info` lives as
  // long as this.
  base::Status Add(const TypeInfo& info);

  // nullptr when nobody reads that RDB type.
  const TypeInfo* Find(uint8_t rdb_type) const { return types_[rdb_type]; }
  // The native type with that id; nullptr when it is none of ours.
  const TypeInfo* FindModule(uint64_t id) const;
  // Reads a value of any type but a string, from behind its type byte; nullptr when nobody reads
  // that type or the bytes are no such value.
  std::unique_ptr<Object> Load(uint8_t rdb_type, Reader& in) const;

  // The types whose values share something in files.
  std::span<const TypeInfo* const> with_aux() const { return with_aux_; }
  void PinAux() const;
  void UnpinAux() const;
  bool has_aux() const;  // there is some now
  // The RDB version that a reader has to know for the values there are now.
  uint16_t rdb_version() const;
  std::span<const SharedStore> shared_stores() const { return shared_stores_; }

 private:
  void AddHooks(const TypeInfo& info);

  std::array<const TypeInfo*, 256> types_{};
  std::vector<const TypeInfo*> all_;
  std::vector<const TypeInfo*> modules_;
  std::vector<const TypeInfo*> with_aux_;
  std::vector<uint16_t (*)()> rdb_versions_;
  std::vector<SharedStore> shared_stores_;
};

// The types of this folder.
const TypeRegistry& AllTypes();

}  // namespace sava::types
