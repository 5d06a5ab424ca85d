// What must hold for any bytes given to the loaders of sketches: they are refused, or they are a
// sketch, which saves and loads equal and can be used. The first byte says which type is meant.
// Shared by the fuzz target and by the unit test that replays its corpus.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "types/sketches/count_min.h"
#include "types/sketches/simhash.h"
#include "types/sketches/top_k.h"
#include "types/value/save.h"

namespace sava::types {

inline const TypeInfo* const kSketchTypes[] = {&CountMin::Type(), &TopK::Type(), &SimHash::Type()};

// What follows the type byte and the module id of a saved sketch.
inline std::unique_ptr<Object> LoadSketch(const TypeInfo& type, std::string_view body) {
  Reader in(body);
  std::unique_ptr<Object> object = type.load(kRdbModule, in);
  return in.ok() ? std::move(object) : nullptr;
}

inline std::string BodyOf(std::string_view saved) {
  Reader in(saved);
  in.Length();
  return std::string(saved.substr(saved.size() - in.remaining()));
}

inline std::string SaveSketch(const Object& object) {
  std::string bytes;
  {
    Writer out(&bytes);
    object.Save(out);
  }
  return BodyOf(bytes);
}

inline std::string DigestOf(const Object& object) {
  std::string all;
  object.Digest([&all](std::string_view part) { all.append(part).append(1, '\n'); });
  return all;
}

// Uses it a little; empty if all is well.
inline std::string UseSketch(CountMin& sketch) {
  const uint64_t before = sketch.Estimate("an item");
  if (before < CountMin::kMost && sketch.Add("an item", 1) != before + 1)
    return "it does not count";
  return sketch.Estimate("an item") >= before ? "" : "it counts backwards";
}

inline std::string UseSketch(TopK& top) {
  uint64_t last = UINT64_MAX;
  for (const TopK::Item& item : top.List()) {
    if (item.count > last) return "the order is wrong";
    if (!top.Listed(item.text) || top.Count(item.text) != item.count) return "an item is not found";
    last = item.count;
  }
  for (int i = 0; i < 50; ++i) top.Add(std::to_string(i % 20), 1 + static_cast<uint64_t>(i));
  if (top.List().size() > top.options().k) return "the list is too long";
  return top.Count("9") != 0 ? "" : "it does not count";
}

inline std::string UseSketch(SimHash& documents) {
  std::vector<std::string> ids;
  for (const SimHash::Match& match : documents.Near(0, 64, SIZE_MAX)) ids.emplace_back(match.id);
  if (ids.size() != documents.size()) return "the number of documents is wrong";
  for (const std::string& id : ids) {
    if (!documents.Get(id) || !documents.Remove(id)) return "a document is not found";
  }
  return documents.size() == 0 ? "" : "documents are left";
}

// Empty if all is well, otherwise what went wrong.
inline std::string CheckSketchLoad(std::string_view bytes) {
  if (bytes.empty()) return "";
  const size_t which = static_cast<uint8_t>(bytes[0]) % 3;
  const TypeInfo& type = *kSketchTypes[which];
  const std::unique_ptr<Object> object = LoadSketch(type, bytes.substr(1));
  if (object == nullptr) return "";
  const std::string saved = SaveSketch(*object);
  const std::unique_ptr<Object> again = LoadSketch(type, saved);
  if (again == nullptr) return "what was saved does not load";
  const std::string digest = DigestOf(*object);
  if (DigestOf(*again) != digest) return "what was saved loads differently";
  if (SaveSketch(*again) != saved) return "what was saved saves differently";
  if (DigestOf(*object->Copy()) != digest) return "the copy differs";
  if (which == 0) return UseSketch(static_cast<CountMin&>(*again));
  if (which == 1) return UseSketch(static_cast<TopK&>(*again));
  return UseSketch(static_cast<SimHash&>(*again));
}

}  // namespace sava::types
