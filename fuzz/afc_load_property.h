// What must hold for any bytes given to the loader of counters: they are refused, or they are a
// counter, which saves and loads equal and can be used. Shared by the fuzz target and by the unit
// test that replays its corpus.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "types/counters/afc.h"
#include "types/counters/member_dictionary.h"
#include "types/value/save.h"

namespace sava::types {

// What follows the type byte and the module id of a saved counter.
inline std::unique_ptr<Afc> LoadAfc(std::string_view body,
                                    const SavedDictionary* dictionary = nullptr) {
  FileAux aux;
  // Whoever called keeps it.
  const std::shared_ptr<const LoadedAux> kept(std::shared_ptr<void>(), dictionary);
  if (dictionary != nullptr) aux.Put(Afc::Type().module_id, kept);
  Reader in(body);
  in.set_aux(&aux);
  std::unique_ptr<Object> object = Afc::Type().load(kRdbModule, in);
  return std::unique_ptr<Afc>(static_cast<Afc*>(object.release()));
}

inline std::string WithoutModuleId(std::string_view saved) {
  Reader in(saved);
  in.Length();
  return std::string(saved.substr(saved.size() - in.remaining()));
}

inline std::string SaveAfc(const Afc& afc, bool refer = false) {
  std::string bytes;
  Writer out(&bytes);
  out.set_refers(refer);
  afc.Save(out);
  return WithoutModuleId(bytes);
}

// All of it, in order.
inline std::vector<std::pair<std::string, uint64_t>> ContentOf(const Afc& afc, int64_t now_ms) {
  std::vector<std::pair<std::string, uint64_t>> all;
  afc.Top(SIZE_MAX, now_ms,
          [&all](std::string_view member, uint64_t count) { all.emplace_back(member, count); });
  return all;
}

// Empty if all is well, otherwise what went wrong.
inline std::string CheckAfcLoad(std::string_view bytes) {
  const std::unique_ptr<Afc> afc = LoadAfc(bytes);
  if (afc == nullptr) return "";
  const std::unique_ptr<Afc> again = LoadAfc(SaveAfc(*afc));
  if (again == nullptr) return "what was saved does not load";
  constexpr int64_t kTimes[] = {0, 1'700'000'000'000, INT64_MAX / 2};
  for (const int64_t now : kTimes) {
    const auto content = ContentOf(*afc, now);
    if (content != ContentOf(*again, now)) return "what was saved loads differently";
    if (content.size() != afc->Card(now)) return "the number of members is wrong";
    if (afc->Total(now) != again->Total(now)) return "the total is not the same";
    uint64_t last = UINT64_MAX;
    for (const auto& [member, count] : content) {
      if (count > last && !afc->timed()) return "the order is wrong";
      if (count > Afc::kMaxCount) return "a count is too large";
      if (afc->Count(member, now) != count) return "a member is not found";
      last = count;
    }
  }
  if (SaveAfc(*afc) != SaveAfc(*again)) return "what was saved saves differently";
  const int64_t now = kTimes[1];
  if (again->Add("a member", 1, now).count == 0 && !again->timed()) return "it does not count";
  for (const auto& [member, count] : ContentOf(*again, now)) {
    if (!again->Remove(member, now)) return "a member is not removed";
  }
  return again->Card(now) == 0 ? "" : "members are left";
}

}  // namespace sava::types
