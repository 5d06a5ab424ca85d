// What must hold for any bytes given to the loader of lists: they are refused, or they are a sound
// list, which saves and loads equal and can be used. The first byte says which RDB type is meant.
// Shared by the fuzz target and by the unit test that replays its corpus.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "types/collections/list.h"
#include "types/value/save.h"

namespace sava::types {

inline std::unique_ptr<Object> LoadList(uint8_t rdb_type, std::string_view body,
                                        const CollectionLimits& limits = kDefaultCollectionLimits) {
  Reader in(body);
  in.set_limits(limits);
  std::unique_ptr<Object> object = List::Type().load(rdb_type, in);
  return in.ok() && in.remaining() == 0 ? std::move(object) : nullptr;
}

inline std::string SaveList(const Object& list) {
  std::string bytes;
  {
    Writer out(&bytes);
    list.Save(out);
  }
  return bytes;
}

inline std::string ListText(const Object& list) {
  std::string all;
  list.Digest([&all](std::string_view part) { all.append(part).append(1, '\n'); });
  return all;
}

// Empty if all is well, otherwise what went wrong.
inline std::string CheckListLoad(std::string_view bytes) {
  if (bytes.empty()) return "";
  const uint8_t type = List::Type().rdb_types[static_cast<uint8_t>(bytes[0]) % 4];
  const std::unique_ptr<Object> object = LoadList(type, bytes.substr(1));
  if (object == nullptr) return "";
  auto& list = static_cast<List&>(*object);
  if (list.size() == 0) return "an empty list";
  if (std::string problem = list.Check(); !problem.empty()) return problem;
  const std::unique_ptr<Object> again = LoadList(list.rdb_type(), SaveList(list));
  if (again == nullptr) return "what was saved does not load";
  if (ListText(*again) != ListText(list)) return "what was saved loads differently";
  if (ListText(*list.Copy()) != ListText(list)) return "the copy differs";
  const size_t size = list.size();
  list.Insert(size / 2, "an element");
  if (list.Find("an element") > size / 2) return "an element is not found";
  list.Set(size / 2, "12");
  list.Remove("12", List::End::kTail, SIZE_MAX);
  while (list.size() > 0) list.Drop(list.size() % 2 == 0 ? List::End::kHead : List::End::kTail, 1);
  return list.Check();
}

}  // namespace sava::types
