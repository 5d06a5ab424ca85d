// What must hold for any bytes given to the loaders of sets and hashes: they are refused, or they
// are a value, which saves and loads equal and can be used. The first byte says which type and RDB
// type is meant. Shared by the fuzz target and by the unit test that replays its corpus.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "types/collections/hash.h"
#include "types/collections/set.h"
#include "types/value/save.h"

namespace sava::types {

struct LoadableForm {
  const TypeInfo* type;
  uint8_t rdb_type;
};
inline const LoadableForm kLoadableForms[] = {
    {&Set::Type(), 2},   {&Set::Type(), 11},  {&Set::Type(), 20},  {&Hash::Type(), 4},
    {&Hash::Type(), 9},  {&Hash::Type(), 13}, {&Hash::Type(), 16}, {&Hash::Type(), 22},
    {&Hash::Type(), 23}, {&Hash::Type(), 24}, {&Hash::Type(), 25}};

inline std::unique_ptr<Object> LoadForm(const TypeInfo& type, uint8_t rdb_type,
                                        std::string_view body) {
  Reader in(body);
  std::unique_ptr<Object> object = type.load(rdb_type, in);
  return in.ok() ? std::move(object) : nullptr;
}

inline std::string SaveForm(const Object& object) {
  std::string bytes;
  {
    Writer out(&bytes);
    object.Save(out);
  }
  return bytes;
}

inline std::string FormText(const Object& object) {
  std::string all;
  object.Digest([&all](std::string_view part) { all.append(part).append(1, '\n'); });
  return all;
}

inline std::string UseLoaded(Set& set) {
  std::vector<std::string> members;
  set.ForEach([&](std::string_view member) { members.emplace_back(member); });
  if (members.size() != set.size()) return "the number of members is wrong";
  set.Add("another", kDefaultCollectionLimits);
  for (const std::string& member : members) {
    if (!set.Contains(member) || !set.Remove(member)) return "a member is not found";
  }
  return set.size() <= 1 ? "" : "members are left";
}

inline std::string UseLoaded(Hash& hash) {
  std::vector<std::string> fields;
  hash.ForEach(Hash::kNever,
               [&](std::string_view field, std::string_view) { fields.emplace_back(field); });
  if (fields.size() != hash.size()) return "the number of fields is wrong";
  hash.Set("another", "value", 0, kDefaultCollectionLimits);
  for (const std::string& field : fields) {
    if (!hash.Find(field, Hash::kNever, nullptr)) return "a field is not found";
    hash.SetExpiry(field, 5);
  }
  std::vector<std::string> names;
  while (hash.RemoveExpired(6, 3, &names)) {
  }
  return names.size() == fields.size() ? "" : "fields do not expire";
}

// Empty if all is well, otherwise what went wrong.
inline std::string CheckSetHashLoad(std::string_view bytes) {
  if (bytes.empty()) return "";
  const LoadableForm& form =
      kLoadableForms[static_cast<uint8_t>(bytes[0]) % std::size(kLoadableForms)];
  const std::unique_ptr<Object> object = LoadForm(*form.type, form.rdb_type, bytes.substr(1));
  if (object == nullptr) return "";
  if (object->size() == 0) return "an empty value";
  const std::unique_ptr<Object> again = LoadForm(*form.type, object->rdb_type(), SaveForm(*object));
  if (again == nullptr) return "what was saved does not load";
  const std::string text = FormText(*object);
  if (FormText(*again) != text) return "what was saved loads differently";
  if (FormText(*object->Copy()) != text) return "the copy differs";
  if (form.type == &Set::Type()) return UseLoaded(static_cast<Set&>(*again));
  return UseLoaded(static_cast<Hash&>(*again));
}

}  // namespace sava::types
