// What must hold for any bytes given to the loaders of Bloom and cuckoo filters: they are refused,
// or they are a filter, which saves and loads equal and can be used. Shared by the fuzz targets and
// by the unit tests that replay their corpora.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "types/filters/bloom.h"
#include "types/filters/cuckoo.h"
#include "types/value/save.h"

namespace sava::types {

// What follows the type byte and the module id of a saved filter.
template <typename Filter>
std::unique_ptr<Filter> LoadFilter(std::string_view body) {
  Reader in(body);
  std::unique_ptr<Object> object = Filter::Type().load(kRdbModule, in);
  return std::unique_ptr<Filter>(static_cast<Filter*>(object.release()));
}

inline std::string BehindModuleId(std::string_view saved) {
  Reader in(saved);
  in.Length();
  return std::string(saved.substr(saved.size() - in.remaining()));
}

inline std::string SaveFilter(const Object& filter) {
  std::string bytes;
  {
    Writer out(&bytes);
    filter.Save(out);
  }
  return BehindModuleId(bytes);
}

inline std::vector<std::string> DigestOf(const Object& filter) {
  std::vector<std::string> all;
  filter.Digest([&all](std::string_view part) { all.emplace_back(part); });
  return all;
}

inline bool HasHash(const Bloom& bloom, uint64_t hash) { return bloom.Has(hash); }
inline bool HasHash(const Cuckoo& cuckoo, uint64_t hash) { return cuckoo.Count(hash) != 0; }
inline bool IsFull(Bloom::Added added) { return added == Bloom::Added::kFull; }
inline bool IsFull(Cuckoo::Added added) { return added == Cuckoo::Added::kFull; }

// Carries a filter over by its header and chunks; nullptr when that fails.
template <typename Filter>
std::unique_ptr<Filter> CarriedOver(const Filter& filter) {
  std::unique_ptr<Filter> copy = Filter::FromHeader(filter.Header());
  int64_t iterator = 1;
  std::string chunk;
  while (copy != nullptr && filter.ReadChunk(&iterator, &chunk)) {
    if (!copy->AddChunk(chunk)) return nullptr;
  }
  return copy;
}

// Empty if all is well, otherwise what went wrong.
template <typename Filter>
std::string CheckFilterLoad(std::string_view bytes) {
  const std::unique_ptr<Filter> filter = LoadFilter<Filter>(bytes);
  if (filter == nullptr) return "";
  const std::string saved = SaveFilter(*filter);
  const std::unique_ptr<Filter> again = LoadFilter<Filter>(saved);
  if (again == nullptr) return "what was saved does not load";
  if (DigestOf(*filter) != DigestOf(*again)) return "what was saved loads differently";
  if (SaveFilter(*again) != saved) return "what was saved saves differently";
  if (DigestOf(*filter->Copy()) != DigestOf(*filter)) return "the copy is different";
  const std::unique_ptr<Filter> carried = CarriedOver(*filter);
  if (carried == nullptr) return "its chunks are refused";
  if (DigestOf(*carried) != DigestOf(*filter)) return "its chunks make another filter";
  for (uint64_t i = 0; i < 50; ++i) {
    const uint64_t hash = FilterHash(std::to_string(i));
    if (!IsFull(again->Add(hash)) && !HasHash(*again, hash)) return "what was added is not there";
  }
  return "";
}

}  // namespace sava::types
