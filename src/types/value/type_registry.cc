#include "types/value/type_registry.h"

#include <fmt/format.h>

#include <algorithm>

#include "types/collections/hash.h"
#include "types/collections/list.h"
#include "types/collections/set.h"
#include "types/collections/sorted_set.h"
#include "types/collections/stream.h"
#include "types/counters/afc.h"
#include "types/filters/bloom.h"
#include "types/filters/cuckoo.h"
#include "types/frontier/frontier.h"
#include "types/sketches/count_min.h"
#include "types/sketches/simhash.h"
#include "types/sketches/top_k.h"
#include "types/value/aux_data.h"
#include "types/value/save.h"

namespace sava::types {

base::Status TypeRegistry::Add(const TypeInfo& info) {
  if (info.module_id != 0) {
    if (const TypeInfo* other = FindModule(info.module_id); other != nullptr && other != &info) {
      return base::Error{
          fmt::format("types {} and {} have the same module id", other->name, info.name)};
    }
    modules_.push_back(&info);
    AddHooks(info);
    return {};
  }
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
  AddHooks(info);
  return {};
}

void TypeRegistry::AddHooks(const TypeInfo& info) {
  if (std::ranges::find(all_, &info) != all_.end()) return;
  all_.push_back(&info);
  if (info.aux != nullptr) with_aux_.push_back(&info);
  if (info.rdb_version != nullptr) rdb_versions_.push_back(info.rdb_version);
  shared_stores_.insert(shared_stores_.end(), info.shared_stores.begin(), info.shared_stores.end());
}

void TypeRegistry::PinAux() const {
  for (const TypeInfo* type : with_aux_) type->aux()->Pin();
}

void TypeRegistry::UnpinAux() const {
  for (const TypeInfo* type : with_aux_) type->aux()->Unpin();
}

bool TypeRegistry::has_aux() const {
  return std::ranges::any_of(with_aux_, [](const TypeInfo* type) { return !type->aux()->empty(); });
}

uint16_t TypeRegistry::rdb_version() const {
  uint16_t version = kRdbVersion;
  for (const auto needed : rdb_versions_) version = std::max(version, needed());
  return version;
}

const TypeInfo* TypeRegistry::FindModule(uint64_t id) const {
  for (const TypeInfo* info : modules_) {
    if (info->module_id == id) return info;
  }
  return nullptr;
}

std::unique_ptr<Object> TypeRegistry::Load(uint8_t rdb_type, Reader& in) const {
  const TypeInfo* info = rdb_type == kRdbModule ? FindModule(in.Length()) : Find(rdb_type);
  if (info == nullptr) {
    in.Fail("a type that is known here");
    return nullptr;
  }
  std::unique_ptr<Object> object = info->load(rdb_type, in);
  if (object == nullptr) in.Fail();
  return in.ok() ? std::move(object) : nullptr;
}

const TypeRegistry& AllTypes() {
  static const TypeRegistry registry = [] {
    TypeRegistry all;
    static_cast<void>(all.Add(Afc::Type()));
    static_cast<void>(all.Add(CountMin::Type()));
    static_cast<void>(all.Add(TopK::Type()));
    static_cast<void>(all.Add(SimHash::Type()));
    static_cast<void>(all.Add(Bloom::Type()));
    static_cast<void>(all.Add(Cuckoo::Type()));
    static_cast<void>(all.Add(Frontier::Type()));
    static_cast<void>(all.Add(List::Type()));
    static_cast<void>(all.Add(Set::Type()));
    static_cast<void>(all.Add(Hash::Type()));
    static_cast<void>(all.Add(Stream::Type()));
    static_cast<void>(all.Add(SortedSet::Type()));
    return all;
  }();
  return registry;
}

}  // namespace sava::types
