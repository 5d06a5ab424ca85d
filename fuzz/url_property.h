// What must hold for any bytes as a URL. Shared by the fuzz target and by the unit test that
// replays its corpus.

#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "types/frontier/url.h"

namespace sava::types {

// Empty if all is well, otherwise what went wrong.
inline std::string CheckUrl(UrlNorm norm, std::string_view bytes) {
  // Exactly the room that is asked for, so that a sanitizer sees what goes beyond it.
  const auto room = std::make_unique<char[]>(UrlRoom(std::min(bytes.size(), kMaxUrlSize)));
  const SplitUrl split = NormalizeUrl(norm, bytes, room.get());
  if (!split.ok()) {
    if (!split.host.empty() || !split.rest.empty()) return "a refused URL has parts";
    if (UrlFaultText(split.fault).empty()) return "a refusal without a reason";
    return {};
  }
  if (split.host.empty() || split.host.size() > kMaxUrlHostSize) return "the host's size";
  if (split.rest.size() > kMaxUrlSize + 1) return "the rest's size";
  std::string url;
  AppendUrl(split.host, split.rest, &url);
  if (url.size() != UrlSize(split.host, split.rest)) return "its size is told wrongly";
  if (url.size() > bytes.size() + 1) return "it grew";
  if (url.size() > kMaxUrlSize) return {};

  const auto second_room = std::make_unique<char[]>(UrlRoom(url.size()));
  const SplitUrl again = NormalizeUrl(norm, url, second_room.get());
  if (!again.ok()) return "a normalised URL is refused: " + url;
  if (again.host != split.host || again.rest != split.rest || again.depth != split.depth) {
    return "a normalised URL changes: " + url;
  }
  const auto host_room = std::make_unique<char[]>(UrlRoom(url.size()));
  if (NormalizeUrlHost(norm, url, host_room.get()) != split.host) return "the host of a URL";
  const auto name_room = std::make_unique<char[]>(UrlRoom(split.host.size()));
  const std::string_view name = NormalizeUrlHost(norm, split.host, name_room.get());
  // Of https the port 80 is worth saying, but `host:80` alone means http's own.
  if (name != split.host && name.size() + 3 != split.host.size()) return "the host of a host";
  return {};
}

inline std::string CheckUrl(std::string_view bytes) {
  const std::string problem = CheckUrl(UrlNorm::kUfmg, bytes);
  return problem.empty() ? CheckUrl(UrlNorm::kRfc3986, bytes) : problem;
}

}  // namespace sava::types
