// What must hold for any bytes given to the loader of sorted sets: they are refused, or they are a
// sorted set, which saves and loads equal and can be used. The first byte says which RDB type is
// meant. Shared by the fuzz target and by the unit test that replays its corpus.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "types/collections/sorted_set.h"
#include "types/value/save.h"

namespace sava::types {

inline constexpr uint8_t kZsetLoadTypes[] = {3, 5, 12, 17};

inline std::unique_ptr<SortedSet> LoadZset(uint8_t rdb_type, std::string_view body) {
  Reader in(body);
  std::unique_ptr<Object> object = SortedSet::Type().load(rdb_type, in);
  if (!in.ok() || object == nullptr) return nullptr;
  return std::unique_ptr<SortedSet>(static_cast<SortedSet*>(object.release()));
}

inline std::string SaveZset(const SortedSet& set) {
  std::string bytes;
  {
    Writer out(&bytes);
    set.Save(out);
  }
  return bytes;
}

inline std::string ZsetDigest(const SortedSet& set) {
  std::string all;
  set.Digest([&all](std::string_view part) {
    all.append(std::to_string(part.size())).append(1, ':').append(part).append(1, '\n');
  });
  return all;
}

// Takes it apart; empty if all is well.
inline std::string UseZset(SortedSet& set) {
  if (!set.Check()) return "the tree is not in order";
  std::vector<std::string> members;
  for (SortedSet::Iterator it = set.At(0); it; it.Next()) members.emplace_back(it.member());
  if (members.size() != set.size()) return "the number of members is wrong";
  double score = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    if (set.Rank(members[i], &score) != i) return "a rank is wrong";
    if (!set.Score(members[i])) return "a member is not found";
  }
  for (const std::string& member : members) {
    set.Add(member, 1, {}, kDefaultCollectionLimits);
    if (!set.Remove(member)) return "a member cannot be removed";
  }
  return set.size() == 0 ? "" : "members are left";
}

// Empty if all is well, otherwise what went wrong.
inline std::string CheckZsetLoad(std::string_view bytes) {
  if (bytes.empty()) return "";
  const uint8_t type = kZsetLoadTypes[static_cast<uint8_t>(bytes[0]) % 4];
  const std::unique_ptr<SortedSet> set = LoadZset(type, bytes.substr(1));
  if (set == nullptr) return "";
  if (set->size() == 0) return "an empty one was not refused";
  const std::string saved = SaveZset(*set);
  const std::unique_ptr<SortedSet> again = LoadZset(set->rdb_type(), saved);
  if (again == nullptr) return "what was saved does not load";
  if (ZsetDigest(*again) != ZsetDigest(*set)) return "what was saved loads differently";
  if (SaveZset(*again) != saved) return "what was saved saves differently";
  const std::unique_ptr<Object> copy = set->Copy();
  if (ZsetDigest(static_cast<SortedSet&>(*copy)) != ZsetDigest(*set)) return "the copy differs";
  return UseZset(*again);
}

}  // namespace sava::types
