// What must hold for any bytes given to the loader of streams: they are refused, or they are a
// stream, which saves and loads equal and can be used. The first byte says which RDB type is meant.
// Shared by the fuzz target and by the unit test that replays its corpus.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "types/collections/stream.h"
#include "types/value/save.h"

namespace sava::types {

inline std::unique_ptr<Stream> LoadStream(uint8_t rdb_type, std::string_view body) {
  Reader in(body);
  std::unique_ptr<Object> object = Stream::Type().load(rdb_type, in);
  if (!in.ok() || object == nullptr) return nullptr;
  return std::unique_ptr<Stream>(static_cast<Stream*>(object.release()));
}

inline std::string SaveStream(const Object& stream) {
  std::string bytes;
  {
    Writer out(&bytes);
    stream.Save(out);
  }
  return bytes;
}

inline std::string StreamDigest(const Object& object) {
  std::string all;
  object.Digest([&all](std::string_view part) { all.append(part).append(1, '\n'); });
  return all;
}

// Uses it a little; empty if all is well.
inline std::string UseStream(Stream& stream) {
  uint64_t forward = 0;
  StreamId last;
  bool ordered = true;
  stream.Range(kLeastStreamId, kGreatestStreamId, [&](const StreamEntry& entry) {
    ordered = ordered && entry.id > last;
    last = entry.id;
    entry.ForEachField([](std::string_view, std::string_view) {});
    ++forward;
    return true;
  });
  uint64_t backward = 0;
  stream.RangeReverse(kLeastStreamId, kGreatestStreamId, [&](const StreamEntry& entry) {
    ordered = ordered && entry.id <= last;
    last = entry.id;
    ++backward;
    return true;
  });
  if (!ordered) return "entries are not in order";
  if (forward != stream.length() || backward != forward) return "the length is wrong";
  if (stream.RadixTreeNodes() == 0) return "there are no nodes";
  const std::string_view pair[] = {"field", "value"};
  if (const auto id = stream.NextId(1)) {
    if (stream.Add(*id, pair, kDefaultCollectionLimits) != Stream::AddResult::kAdded) {
      return "nothing can be added";
    }
    if (!stream.Contains(*id) || !stream.Delete(*id)) return "what was added is not there";
  }
  for (const auto& [name, group] : stream.groups()) {
    static_cast<void>(stream.Lag(*group));
    std::vector<StreamId> ids;
    group->pending().ForEachFrom(kLeastStreamId, [&ids](const PendingEntry& entry) {
      ids.push_back(entry.id);
      return true;
    });
    for (const StreamId& id : ids) {
      if (!group->Acknowledge(id)) return "what is pending is not found";
    }
    if (!group->pending().empty()) return "something is still pending";
    for (const auto& [consumer_name, consumer] : group->consumers()) {
      if (!consumer->pending.empty()) return "something is still pending for a consumer";
    }
  }
  stream.TrimToLength(stream.length() / 2, false, 0);
  stream.TrimBefore(kGreatestStreamId, false, 0);
  return stream.length() == 0 ? "" : "entries are left";
}

// Empty if all is well, otherwise what went wrong.
inline std::string CheckStreamLoad(std::string_view bytes) {
  if (bytes.empty()) return "";
  constexpr uint8_t kTypes[] = {15, 19, 21};
  const uint8_t type = kTypes[static_cast<uint8_t>(bytes[0]) % 3];
  const std::unique_ptr<Stream> stream = LoadStream(type, bytes.substr(1));
  if (stream == nullptr) return "";
  const std::string saved = SaveStream(*stream);
  const std::unique_ptr<Stream> again = LoadStream(stream->rdb_type(), saved);
  if (again == nullptr) return "what was saved does not load";
  const std::string digest = StreamDigest(*stream);
  if (StreamDigest(*again) != digest) return "what was saved loads differently";
  if (SaveStream(*again) != saved) return "what was saved saves differently";
  if (StreamDigest(*stream->Copy()) != digest) return "the copy differs";
  return UseStream(*again);
}

}  // namespace sava::types
