// What must hold for any bytes given as the manifest of an append-only log: they are refused with a
// text, or what they say is in order, can be written, and reads back the same. Shared by the fuzz
// target and by the unit test that replays its corpus.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "storage/aof_manifest.h"

namespace sava::storage {

// Empty if all is well, otherwise what went wrong.
inline std::string CheckAofManifest(std::string_view bytes) {
  const auto manifest = AofManifest::Parse(bytes);
  if (!manifest) return manifest.error().empty() ? "an error without a text" : "";
  std::set<std::string> names;
  uint64_t last = 0;
  for (size_t i = 0; i < manifest.value().files.size(); ++i) {
    const AofFile& file = manifest.value().files[i];
    if (file.name.empty() || file.name.find('/') != std::string::npos) return "a path";
    if (file.sequence == 0) return "no sequence number";
    if (!names.insert(file.name).second) return "a file twice";
    if (file.kind == AofFile::Kind::kBase && i != 0) return "the base is not first";
    if (file.kind == AofFile::Kind::kIncrement) {
      if (file.sequence <= last) return "increments are out of order";
      last = file.sequence;
    }
  }
  if (manifest.value().files.empty()) return "";
  const std::string text = manifest.value().Text();
  const auto again = AofManifest::Parse(text);
  // Quoting may make a line longer than is allowed.
  if (!again) return text.size() > 1000 ? "" : "what was written does not read: " + again.error();
  return again.value().files == manifest.value().files ? "" : "it does not read back";
}

}  // namespace sava::storage
